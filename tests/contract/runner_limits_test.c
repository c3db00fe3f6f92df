/* What a runner does with what should not be: handlers that say nothing or nonsense, types that nobody knows, more claimed than
 * can be begun, leases that ran out while the process was asleep. R1–R5 are those of job/runner.h. */
#include "support/runner_fixture.h"

/* ---- what handlers say ---- */

static void say_nothing(struct qr_job_run *run, struct qr_outcome *outcome QR_UNUSED)
{
    const struct qr_script *script = run->arg;
    while (script->waits && !qr_job_is_cancelled(run)) {
        qr_world_pause_briefly();
    }
}

static void say_nonsense(struct qr_job_run *run, struct qr_outcome *outcome)
{
    struct qr_script *script = run->arg;
    if (atomic_fetch_add(&script->runs, 1) > 0) {
        outcome->kind = QR_OUTCOME_COMPLETED;
        return;
    }
    outcome->kind = script->kind;
    outcome->error.code = script->code;
    memcpy(outcome->error.msg, "caf\xe9 \x1b[2J\n", 11);
}

static void open_with(struct qr_scene *scene, struct qr_test *t, qr_handler_fn *fn)
{
    qr_scene_open(scene, t, NULL);
    scene->handlers[0].fn = fn;
}

QR_DB_TEST(a_handler_that_says_nothing_has_not_completed)
{
    struct qr_scene scene;
    open_with(&scene, t, say_nothing);
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6 AND code = 'internal'", 1);
    qr_scene_stop(&scene);
    QR_CHECK_INT(QR_JOB_FAILED, qr_world_state(&scene.world, id));
    qr_scene_close(&scene);
}

QR_DB_TEST(a_handler_that_was_told_to_end_and_says_nothing_hands_back)
{
    struct qr_scene scene;
    open_with(&scene, t, say_nothing);
    scene.script.waits = true;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 4", 1);
    QR_CHECK(qr_runner_stop(scene.runner, 0));
    const struct qr_job job = qr_world_find(&scene.world, id);
    QR_CHECK_INT(QR_JOB_QUEUED, job.state);
    QR_CHECK_INT(0, job.attempts);
    QR_CHECK_INT(0, job.crashes);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_message_that_is_not_text_is_stored_as_text_and_the_job_tried_again) /* I10, AGAIN-1 */
{
    struct qr_scene scene;
    open_with(&scene, t, say_nonsense);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_UNAVAILABLE;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_scene_wait_until_put_off(&scene);
    QR_CHECK_TEXT("caf? ?[2J ", qr_world_find(&scene.world, id).message);
    qr_scene_go_to_next(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_code_or_outcome_that_there_is_not_is_an_internal_failure)
{
    struct qr_scene scene;
    open_with(&scene, t, say_nonsense);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = (qr_code)1000;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6 AND code = 'internal'", 1);
    scene.script.kind = (enum qr_outcome_kind)77;
    atomic_store(&scene.script.runs, 0);
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6 AND code = 'internal'", 2);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_job_that_this_worker_does_not_know_waits_for_one_that_does)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){.type = "unheard-of"});
    qr_scene_start(&scene);
    qr_scene_wait_until_put_off(&scene);
    qr_scene_stop(&scene);
    const struct qr_job job = qr_world_find(&scene.world, id);
    QR_CHECK_TEXT("this worker has no handler for jobs of type unheard-of", job.message);
    QR_CHECK_INT(QR_WORLD_BEGIN_MS + QR_UNKNOWN_TYPE_MS, job.run_at_ms);
    QR_CHECK_INT(0, job.attempts);
    scene.handlers[1].type = "unheard-of"; /* a newer worker */
    qr_scene_start(&scene);
    qr_scene_go_to_next(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* ---- what is claimed ahead ---- */

/* One thread, whose handlers were short until now: all ten are claimed, one runs and does not end. */
static void claim_ahead(struct qr_scene *scene, struct qr_test *t)
{
    qr_scene_open(scene, t, NULL);
    scene->options.slots[QR_QUEUE_CONVERT] = 1;
    scene->script.waits = true;
    qr_scene_start(scene);
    {
        QR_HOLD(&scene->runner->lock);
        scene->runner->average_us[QR_QUEUE_CONVERT] = 0;
    }
    qr_world_add_many(&scene->world, (struct qr_job_spec){0}, 10);
    qr_world_wait_for(&scene->world, "SELECT count(*) FROM job WHERE state = 4", 10);
    qr_scene_wait_for(&scene->script.running, 1);
}

static void expect_one_left(struct qr_scene *scene)
{
    qr_world_wait_for(&scene->world, "SELECT count(*) FROM job WHERE state = 3", 9);
    QR_CHECK_INT(1, qr_world_count(&scene->world, QR_JOB_RUNNING));
    QR_CHECK_INT(0, qr_world_i64(&scene->world, "SELECT count(*) FROM job WHERE attempts + crashes > 0"));
    QR_CHECK(qr_scene_writes_in_a_while(scene) <= 2); /* nor does it claim them again and again */
    QR_CHECK_INT(1, atomic_load(&scene->script.runs));
}

static void go_on(struct qr_scene *scene)
{
    atomic_store(&scene->script.gate, true);
    qr_world_wait_for(&scene->world, QR_COMPLETED, 10);
    QR_CHECK_INT(10, qr_world_i64(&scene->world, QR_EFFECTS "1 = 1"));
    qr_scene_stop(scene);
    qr_scene_close(scene);
}

QR_DB_TEST(a_pause_sends_back_what_is_claimed_and_has_not_begun)
{
    struct qr_scene scene;
    claim_ahead(&scene, t);
    qr_world_pause(&scene.world, QR_QUEUE_CONVERT, true);
    expect_one_left(&scene);
    qr_world_pause(&scene.world, QR_QUEUE_CONVERT, false);
    go_on(&scene);
}

QR_DB_TEST(what_waits_too_long_for_a_busy_thread_goes_back_to_the_others)
{
    struct qr_scene scene;
    claim_ahead(&scene, t);
    qr_test_clock_advance(QR_READY_MS_MAX);
    qr_world_notify(&scene.world);
    expect_one_left(&scene);
    go_on(&scene);
}

/* ---- leases ---- */

QR_DB_TEST(a_process_that_was_asleep_for_longer_than_its_lease_has_not_crashed) /* R3, AGAIN-3 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.script.waits = true;
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_CANCELLED;
    scene.script.times = 2 * (QR_JOB_CRASHES_MAX + 1);
    qr_world_add_many(&scene.world, (struct qr_job_spec){0}, 2);
    qr_scene_start(&scene);
    for (int i = 1; i <= QR_JOB_CRASHES_MAX + 1; i++) {
        qr_scene_wait_for(&scene.script.runs, 2 * i);
        qr_test_clock_advance(QR_WORKER_LEASE_MS + 1);
        qr_world_notify(&scene.world);
        while (qr_scene_stats(&scene).leases_lost < (uint64_t)i) {
            qr_world_pause_briefly();
        }
    }
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 2);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE crashes + attempts > 0"));
    QR_CHECK_INT(2 * (QR_JOB_CRASHES_MAX + 1),
                 qr_world_i64(&scene.world, "SELECT count(*) FROM job_attempt WHERE outcome = 'handed_back'"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT count(*) FROM worker"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* ---- numbers ---- */

QR_DB_TEST(times_without_end_are_clamped)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.options.poll_ms = INT64_MAX;
    qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = INT64_MAX, .run_at_ms = -1});
    qr_world_add(&scene.world, (struct qr_job_spec){.run_at_ms = INT64_MAX});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK(qr_runner_stop(scene.runner, INT64_MAX));
    qr_scene_close(&scene);
}

QR_DB_TEST(jobs_with_the_largest_args_run_however_many_there_are) /* DB-7 */
{
    enum { COUNT = 256 };
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    static char args[QR_JOB_ARGS_MAX];
    memset(args, 'x', sizeof args);
    args[0] = args[sizeof args - 1] = '"';
    for (int i = 0; i < COUNT; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick", .args = {args, sizeof args}});
    }
    scene.options.slots[QR_QUEUE_CONVERT] = 8;
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, COUNT);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}
