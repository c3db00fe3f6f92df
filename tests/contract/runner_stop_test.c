/* Attempts and runners that are told to end, over every database: cancel, time limits, stuck handlers, shutdown, and what a
 * dead or late worker leaves behind. R1–R5 are those of job/runner.h. */
#include "base/failpoint.h"
#include "support/runner_fixture.h"

/* ---- being told to end ---- */

QR_DB_TEST(a_cancelled_handler_is_told_and_its_outcome_thrown_away) /* FENCE-1, FENCE-3, R2, I2 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.script.is_told = scene.script.reports = true;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 1);
    QR_CHECK_INT(QR_OK, qr_world_cancel(&scene.world, id, NULL));
    qr_scene_wait_for(&scene.script.was_told, 1);
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"}); /* the runner goes on */
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    qr_scene_stop(&scene);
    QR_CHECK_INT(QR_LOST, atomic_load(&scene.script.part_rc));
    QR_CHECK_INT(QR_JOB_CANCELLED, qr_world_state(&scene.world, id));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "1 = 1")); /* of the quick one */
    qr_scene_close(&scene);
}

QR_DB_TEST(a_job_past_its_time_limit_is_told_to_end_and_tried_again) /* FENCE-2, AGAIN-1 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.script.is_told = true;
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_CANCELLED;
    scene.script.times = QR_SCENE_ALWAYS;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000});
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 1);
    qr_test_clock_advance(999);
    qr_world_notify(&scene.world);
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"}); /* a round has passed when it is done */
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK_INT(0, atomic_load(&scene.script.was_told));
    qr_test_clock_advance(1);
    qr_world_notify(&scene.world);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 2 AND code = 'timeout'", 1);
    struct qr_job_attempt *attempts;
    QR_CHECK_INT(1, qr_world_attempts(&scene.world, id, &attempts));
    QR_CHECK_TEXT("timed_out", attempts[0].outcome);
    QR_CHECK_INT(1, qr_world_find(&scene.world, id).attempts);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_handler_that_does_not_return_is_fenced_and_its_thread_replaced) /* R4, FENCE-1 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.options.slots[QR_QUEUE_CONVERT] = 1;
    scene.script.ignores = true;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000});
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 1);
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"});
    while (qr_scene_stats(&scene).stuck == 0) {
        qr_test_clock_advance(500);
        qr_world_notify(&scene.world);
        QR_CHECK_INT(QR_OK, qr_world_beat(&scene.world, scene.runner->worker_id)); /* its own thread sleeps real time */
    }
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1); /* the quick one, on the new thread */
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job_attempt WHERE outcome = 'timed_out'", 1);
    QR_CHECK_TEXT("timeout", qr_world_find(&scene.world, id).code);
    QR_CHECK_INT(1, atomic_load(&scene.script.running));
    sem_post(&scene.script.unstick); /* what it returns at last is thrown away */
    sem_post(&scene.script.unstick);
    qr_scene_stop(&scene);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, QR_EFFECTS "state = 5 AND fence = 1 AND kind = 'ended' AND "
                                                          "job_id = (SELECT job_id FROM job_attempt)"));
    qr_scene_close(&scene);
}

QR_DB_TEST(too_many_stuck_handlers_are_told_to_the_owner) /* R4 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.options.stuck_max = 1;
    scene.script.ignores = true;
    qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000});
    qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000});
    qr_scene_start(&scene);
    while (atomic_load(&scene.on_stuck_calls) == 0) {
        qr_test_clock_advance(500);
        qr_world_notify(&scene.world);
        QR_CHECK_INT(QR_OK, qr_world_beat(&scene.world, scene.runner->worker_id));
    }
    for (int i = 0; i < 16; i++) {
        sem_post(&scene.script.unstick);
    }
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* ---- ending and beginning ---- */

QR_DB_TEST(a_runner_that_stops_hands_back_and_the_next_one_completes_the_rest) /* FENCE-1, I5 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.script.waits = true;
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_CANCELLED;
    scene.script.times = 2; /* the two that are told to end */
    for (int i = 0; i < 20; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 2);
    QR_CHECK(qr_runner_stop(scene.runner, 0));
    QR_CHECK_INT(20, qr_world_count(&scene.world, QR_JOB_QUEUED));
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE attempts + crashes > 0"));
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM worker"));
    atomic_store(&scene.script.gate, true);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 20);
    QR_CHECK_INT(20, qr_world_i64(&scene.world, QR_EFFECTS "state = 5"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

static void *stop_in_time(void *arg)
{
    struct qr_scene *scene = arg;
    qr_scene_stop(scene);
    return NULL;
}

QR_DB_TEST(a_runner_that_stops_lets_handlers_finish_and_begins_nothing_new)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.script.waits = true;
    for (int i = 0; i < 6; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 2);
    pthread_t thread;
    QR_CHECK_INT(0, pthread_create(&thread, NULL, stop_in_time, &scene));
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 4", 2); /* claimed ahead: handed back */
    for (bool stopping = false; !stopping; qr_world_pause_briefly()) {
        QR_HOLD(&scene.runner->lock);
        stopping = scene.runner->stopping;
    }
    QR_CHECK(qr_scene_writes_in_a_while(&scene) <= 2); /* it waits, and does not look all the time */
    atomic_store(&scene.script.gate, true);
    QR_CHECK_INT(0, pthread_join(thread, NULL));
    QR_CHECK_INT(2, qr_world_count(&scene.world, QR_JOB_COMPLETED));
    QR_CHECK_INT(4, qr_world_count(&scene.world, QR_JOB_QUEUED));
    QR_CHECK_INT(2, atomic_load(&scene.script.runs));
    qr_scene_close(&scene);
}

/* A job whose end cannot be recorded: no write can. */
static void bring_into_trouble(struct qr_scene *scene)
{
    qr_err err;
    scene->script.waits = true;
    qr_world_add(&scene->world, (struct qr_job_spec){0});
    qr_scene_start(scene);
    qr_scene_wait_for(&scene->script.running, 1);
    QR_CHECK_RC(QR_OK, qr_failpoints_set("db.write.before_commit=error", &err));
    atomic_store(&scene->script.gate, true);
    while (qr_scene_stats(scene).trouble.code == QR_CODE_NONE) {
        qr_world_pause_briefly();
    }
}

QR_DB_TEST(a_runner_whose_writes_are_refused_waits_no_grace_and_loses_nothing) /* FENCE-4, I5, DB-8 */
{
    enum { LONGER_THAN_A_TEST_MS = 3600000 };
    if (!qr_failpoints_built_in()) {
        qr_test_skip("built without failpoints");
    }
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    bring_into_trouble(&scene);
    QR_CHECK(qr_runner_stop(scene.runner, LONGER_THAN_A_TEST_MS));
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    QR_CHECK_INT(0, qr_world_i64(&scene.world, QR_EFFECTS "1 = 1"));
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_runner_that_was_refused_tries_once_more_before_it_ends) /* I5 */
{
    if (!qr_failpoints_built_in()) {
        qr_test_skip("built without failpoints");
    }
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    bring_into_trouble(&scene);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    qr_scene_stop(&scene);
    QR_CHECK_INT(1, qr_world_count(&scene.world, QR_JOB_COMPLETED));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "state = 5"));
    qr_scene_close(&scene);
}

QR_DB_TEST(the_jobs_of_a_dead_predecessor_run_at_once_and_one_at_a_time) /* FENCE-4, AGAIN-3, R5 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    const qr_uuid predecessor = qr_world_worker(&scene.world);
    for (int i = 0; i < 6; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    struct qr_job taken[6];
    QR_CHECK_INT(6, qr_world_claim(&scene.world, predecessor, taken, 6));
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 6);
    QR_CHECK_INT(1, atomic_load(&scene.script.running_max));
    QR_CHECK_INT(6, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE crashes = 1"));
    QR_CHECK_INT(6, qr_world_i64(&scene.world, QR_EFFECTS "state = 5"));
    QR_CHECK_INT(QR_LOST, qr_world_finish(&scene.world, &taken[0], QR_JOB_COMPLETED));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

static qr_rc bring_to_the_last_crash(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_job *job = arg;
    return qr_tx_exec(tx, "UPDATE job SET crashes = ?2 WHERE id = ?1",
                      QR_VALS(qr_val_blob(job->id.bytes, QR_UUID_BYTES), qr_val_i64(QR_JOB_CRASHES_MAX - 1)), NULL,
                      err);
}

/* FENCE-4, AGAIN-3, R6, I1: an item that waits for its job to end has one until the plan was told */
QR_DB_TEST(a_plan_that_always_refuses_keeps_no_process_from_starting)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.refusal = QR_CODE_UNAVAILABLE;
    atomic_store(&scene.refusals, QR_SCENE_ALWAYS);
    struct qr_job taken[3];
    qr_world_add_many(&scene.world, (struct qr_job_spec){0}, 3);
    QR_CHECK_INT(3, qr_world_claim(&scene.world, qr_world_worker(&scene.world), taken, 3));
    qr_world_write(&scene.world, bring_to_the_last_crash, &taken[0]);
    qr_world_write(&scene.world, bring_to_the_last_crash, &taken[2]);
    qr_scene_start(&scene);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT count(*) FROM worker")); /* its own */
    for (int refused = 1; refused <= 3; refused++) {
        char sql[96];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM job WHERE state = 2 AND attempts = %d", refused);
        qr_world_wait_for(&scene.world, sql, 3);
        QR_CHECK_INT(refused, atomic_load(&scene.script.runs)); /* of the one that may be innocent */
        QR_CHECK_INT(0, qr_world_i64(&scene.world, QR_EFFECTS "1 = 1"));
        atomic_store(&scene.refusals, refused < 3 ? QR_SCENE_ALWAYS : 0);
        qr_test_clock_advance(QR_JOB_BACKOFF_MS_MAX);
        qr_world_notify(&scene.world);
    }
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6 AND code = 'crashed_worker'", 2);
    QR_CHECK_INT(2, qr_world_i64(&scene.world, QR_EFFECTS "state = 6"));
    QR_CHECK_INT(3, qr_world_i64(&scene.world, QR_EFFECTS "1 = 1"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_runner_that_lost_its_lease_forgets_everything_and_goes_on_under_a_new_id) /* R3, FENCE-1, I9 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.options.owns_all = false;
    scene.script.waits = true;
    for (int i = 0; i < 8; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 2);
    const qr_uuid old_id = scene.runner->worker_id;
    QR_CHECK_INT(1, qr_world_declare_dead(&scene.world, true, (qr_uuid){0}));
    QR_CHECK(qr_world_free_jobs(&scene.world) >= 2);
    qr_scene_wait_for(&scene.script.was_told, 2);
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 8);
    QR_CHECK_INT(8, qr_world_i64(&scene.world, QR_EFFECTS "state = 5"));
    QR_CHECK_INT(8, qr_world_i64(&scene.world, QR_EFFECTS "1 = 1")); /* nothing of what the old id returned */
    QR_CHECK_INT(1, qr_scene_stats(&scene).leases_lost);
    {
        QR_HOLD(&scene.runner->lock);
        QR_CHECK(!qr_uuid_equal(old_id, scene.runner->worker_id));
    }
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* No job can be freed without the table of attempts. */
static qr_rc hide_history(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_exec(tx, "ALTER TABLE job_attempt RENAME TO job_attempt_elsewhere", QR_NO_VALS, NULL, err);
}

static qr_rc show_history(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_exec(tx, "ALTER TABLE job_attempt_elsewhere RENAME TO job_attempt", QR_NO_VALS, NULL, err);
}

QR_DB_TEST(the_jobs_of_the_dead_are_freed_in_the_end_when_that_fails_after_a_lost_lease) /* FENCE-4, I5, R3 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    qr_scene_start(&scene);
    const qr_uuid other = qr_world_worker(&scene.world); /* dies together with our lease */
    qr_world_add(&scene.world,
                 (struct qr_job_spec){.queue = QR_QUEUE_EXPAND, .base_id = qr_uuid_next(&scene.world.ids)});
    struct qr_job taken;
    struct qr_world_claim claim = {.worker_id = other, .queue = QR_QUEUE_EXPAND, .jobs = &taken, .limit = 1};
    QR_CHECK_INT(QR_OK, qr_world_try_claim(&scene.world, &claim)); /* of a queue that our runner does not serve */
    QR_CHECK_INT(1, claim.count);
    qr_world_write(&scene.world, hide_history, NULL);
    QR_CHECK_INT(2, qr_world_declare_dead(&scene.world, true, (qr_uuid){0}));
    qr_world_notify(&scene.world);
    while (qr_scene_stats(&scene).trouble.code == QR_CODE_NONE) {
        qr_world_pause_briefly();
    }
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE state = 4"));
    qr_world_write(&scene.world, show_history, NULL);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 3 AND crashes = 1", 1);
    QR_CHECK_INT(1, qr_scene_stats(&scene).leases_lost);
    QR_CHECK_INT(QR_LOST, qr_world_finish(&scene.world, &taken, QR_JOB_COMPLETED));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}
