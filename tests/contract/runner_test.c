/* The runner over every database: what becomes of an attempt, whatever its handler does. R1–R5 are those of job/runner.h. */
#include "support/runner_fixture.h"

/* ---- every job once ---- */

QR_DB_TEST(every_job_runs_once_and_is_told_to_the_plan_once) /* JOB-1, R1 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    for (int i = 0; i < 150; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    qr_scene_start(&scene);
    for (int i = 0; i < 50; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    qr_world_wait_for(&scene.world, QR_COMPLETED, 200);
    QR_CHECK_INT(200, atomic_load(&scene.script.runs));
    QR_CHECK_INT(200, qr_world_i64(&scene.world, QR_EFFECTS "state = 5"));
    qr_scene_stop(&scene);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM worker"));
    qr_scene_close(&scene);
}

static void *add_one(void *arg)
{
    struct qr_world mine;
    qr_world_share(&mine, arg);
    qr_world_add(&mine, (struct qr_job_spec){0});
    qr_world_unshare(&mine);
    return NULL;
}

QR_DB_TEST(a_job_starts_without_polling)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    qr_scene_start(&scene);
    for (int i = 1; i <= 3; i++) {
        pthread_t thread;
        QR_CHECK_INT(0, pthread_create(&thread, NULL, add_one, &scene.world));
        QR_CHECK_INT(0, pthread_join(thread, NULL));
        qr_world_wait_for(&scene.world, QR_COMPLETED, i);
    }
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_delete_does_not_wait_behind_other_work)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.script.waits = true;
    for (int i = 0; i < 20; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 2);
    qr_world_add(&scene.world, (struct qr_job_spec){.queue = QR_QUEUE_DELETE, .type = "quick"});
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK_INT(2, atomic_load(&scene.script.runs));
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 21);
    QR_CHECK_INT(2, atomic_load(&scene.script.running_max)); /* a queue has its own concurrency */
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_runner_without_anything_to_do_writes_nothing)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.script.waits = true;
    qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 600000});
    qr_world_add(&scene.world, (struct qr_job_spec){.run_at_ms = qr_clock_wall_ms(qr_clock_system()) + 600000});
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 1);
    QR_CHECK(qr_scene_writes_in_a_while(&scene) <= 2);
    atomic_store(&scene.script.gate, true);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* ---- failing ---- */

QR_DB_TEST(what_may_pass_is_tried_again_with_back_off_a_bounded_number_of_times) /* AGAIN-1 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_UNAVAILABLE;
    scene.script.times = QR_SCENE_ALWAYS;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    int64_t full_ms = QR_JOB_BACKOFF_MS_MIN;
    for (int attempt = 1; attempt < QR_JOB_ATTEMPTS_MAX; attempt++) {
        const int64_t wait_ms = qr_scene_go_to_next(&scene);
        QR_CHECK(wait_ms >= full_ms / 2 && wait_ms <= full_ms);
        full_ms = QR_MIN(full_ms * 2, (int64_t)QR_JOB_BACKOFF_MS_MAX);
    }
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6", 1);
    QR_CHECK_INT(QR_JOB_ATTEMPTS_MAX, atomic_load(&scene.script.runs));
    QR_CHECK_TEXT("unavailable", qr_world_find(&scene.world, id).code);
    struct qr_job_attempt *attempts;
    QR_CHECK_INT(QR_JOB_ATTEMPTS_MAX - 1, qr_world_attempts(&scene.world, id, &attempts));
    QR_CHECK_TEXT("retried", attempts[0].outcome);
    QR_CHECK_INT(QR_JOB_ATTEMPTS_MAX - 1, qr_world_i64(&scene.world, QR_EFFECTS "state = 2"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "state = 6"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_retry_waits_as_long_as_the_other_side_asked) /* AGAIN-1 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_UNAVAILABLE;
    scene.script.times = 1;
    scene.script.delay_ms = 600000;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    QR_CHECK_INT(600000, qr_scene_go_to_next(&scene)); /* and the lease, which ends meanwhile, is taken anew (R3) */
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT attempts FROM job"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(what_cannot_pass_is_not_tried_again) /* AGAIN-1, AGAIN-4 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_INVALID_VALUE;
    scene.script.times = QR_SCENE_ALWAYS;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6", 1);
    QR_CHECK_INT(1, atomic_load(&scene.script.runs));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "state = 6"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_snooze_counts_no_attempt)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_SNOOZED;
    scene.script.times = QR_JOB_ATTEMPTS_MAX + 1;
    scene.script.delay_ms = 5000;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    for (int i = 0; i < QR_JOB_ATTEMPTS_MAX + 1; i++) {
        QR_CHECK_INT(5000, qr_scene_go_to_next(&scene));
    }
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT attempts FROM job"));
    QR_CHECK_INT(QR_JOB_ATTEMPTS_MAX + 1, qr_scene_stats(&scene).snoozed);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_job_that_is_no_longer_wanted_ends_skipped) /* GEN-1 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_SKIPPED;
    scene.script.code = QR_CODE_STALE;
    scene.script.times = 1;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 7 AND code = 'stale_generation'", 1);
    scene.script.kind = QR_OUTCOME_FAILED; /* by the policy of the code */
    scene.script.times = QR_SCENE_ALWAYS;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 7 AND code = 'stale_generation'", 2);
    QR_CHECK_INT(2, qr_world_i64(&scene.world, QR_EFFECTS "state = 7"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* ---- the plan ---- */

QR_DB_TEST(a_part_and_the_end_reach_the_plan_under_the_fence) /* JOB-1, I2 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.script.reports = true;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK_INT(QR_OK, atomic_load(&scene.script.part_rc));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "kind = 'part' AND fence = (SELECT fence FROM job)"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "kind = 'ended' AND fence = (SELECT fence FROM job)"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_plan_that_fails_undoes_the_record_and_is_the_failure_of_the_job) /* JOB-1 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.refusal = QR_CODE_UNAVAILABLE;
    atomic_store(&scene.refusals, 1);
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 2", 1);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, QR_EFFECTS "state = 5"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "state = 2")); /* it was told of the failure instead */
    QR_CHECK_INT(1, qr_world_find(&scene.world, id).attempts);
    QR_CHECK_TEXT("the plan says no", qr_world_find(&scene.world, id).message);
    qr_scene_go_to_next(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "state = 5"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_plan_that_always_fails_holds_up_nobody)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.refusal = QR_CODE_INTERNAL;
    atomic_store(&scene.refusals, -1);
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 2 AND code = 'internal'", 1); /* I1 */
    QR_CHECK_INT(0, qr_world_i64(&scene.world, QR_EFFECTS "1 = 1"));
    atomic_store(&scene.refusals, 0);
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_job_does_not_end_behind_the_back_of_a_plan_that_may_succeed_later)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_UNAVAILABLE;
    scene.script.times = QR_SCENE_ALWAYS;
    scene.refusal = QR_CODE_DISK_FULL;
    atomic_store(&scene.refusals, -1);
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    for (int i = 0; i < QR_JOB_ATTEMPTS_MAX + 1; i++) {
        qr_scene_go_to_next(&scene);
    }
    qr_scene_wait_until_put_off(&scene);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, QR_EFFECTS "1 = 1"));
    atomic_store(&scene.refusals, 0);
    qr_scene_go_to_next(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6", 1);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "state = 6"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* ---- progress ---- */

struct reporter {
    atomic_int said, may_say;
};

static void report(struct qr_job_run *run, struct qr_outcome *outcome)
{
    outcome->kind = QR_OUTCOME_COMPLETED;
    struct reporter *reporter = run->arg;
    int at = 0;
    for (int until = 0; at < 1001;) {
        until = atomic_load(&reporter->may_say);
        while (at < until) {
            qr_job_progress(run, ++at, 1001);
        }
        atomic_store(&reporter->said, at);
        qr_world_pause_briefly();
    }
}

QR_DB_TEST(progress_is_written_now_and_then_and_at_the_end)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    struct reporter reporter = {0};
    scene.handlers[0] = (struct qr_handler){"work", report, &reporter};
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    atomic_store(&reporter.may_say, 1);
    qr_world_wait_for(&scene.world, "SELECT progress_done FROM job", 1);
    atomic_store(&reporter.may_say, 1000);
    qr_scene_wait_for(&reporter.said, 1000);
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"}); /* a round passes */
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT progress_done FROM job WHERE type = 'work'"));
    qr_test_clock_advance(QR_PROGRESS_MS);
    qr_world_notify(&scene.world);
    qr_world_wait_for(&scene.world, "SELECT progress_done FROM job WHERE type = 'work'", 1000);
    atomic_store(&reporter.may_say, 1001);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 2);
    QR_CHECK_INT(1001, qr_world_i64(&scene.world, "SELECT progress_done FROM job WHERE type = 'work'"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}
