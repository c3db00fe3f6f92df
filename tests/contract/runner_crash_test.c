/* What a runner makes of jobs that were there when processes died too often (R6, AGAIN-3). */
#include "support/runner_fixture.h"

static qr_rc crash_too_often(struct qr_tx *tx, void *arg, qr_err *err)
{
    const qr_uuid *id = arg;
    return qr_tx_exec(tx, "UPDATE job SET crashes = ?2, suspect = 1 WHERE id = ?1",
                      QR_VALS(qr_val_blob(id->bytes, QR_UUID_BYTES), qr_val_i64(QR_JOB_CRASHES_MAX)), NULL, err);
}

/* As the rescue leaves it. */
static qr_uuid add_crashed(struct qr_scene *scene, struct qr_job_spec spec)
{
    qr_uuid id = qr_world_add(&scene->world, spec);
    qr_world_write(&scene->world, crash_too_often, &id);
    return id;
}

#define FAILED "SELECT count(*) FROM job WHERE state = 6"

QR_DB_TEST(a_job_that_crashed_too_often_fails_without_being_run_and_the_plan_is_told) /* AGAIN-3, R6 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    const qr_uuid id = add_crashed(&scene, (struct qr_job_spec){.serial_key = QR_STR("s")});
    const qr_uuid next = qr_world_add(&scene.world, (struct qr_job_spec){.serial_key = QR_STR("s")});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    const struct qr_job job = qr_world_find(&scene.world, id);
    QR_CHECK_INT(QR_JOB_FAILED, job.state);
    QR_CHECK_TEXT("crashed_worker", job.code);
    QR_CHECK_INT(QR_JOB_CRASHES_MAX, job.crashes);
    QR_CHECK_INT(0, job.attempts);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, QR_EFFECTS "state = 6"));
    QR_CHECK_INT(QR_JOB_COMPLETED, qr_world_state(&scene.world, next)); /* J3 */
    QR_CHECK_INT(1, atomic_load(&scene.script.runs));                   /* of the next one */
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(one_that_crashes_once_more_is_given_up_by_the_next_process) /* AGAIN-3, FENCE-4 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    for (int crashes = 0; crashes < QR_JOB_CRASHES_MAX - 1; crashes++) {
        const qr_uuid worker = qr_world_worker(&scene.world);
        (void)(crashes == 0 ? qr_world_claim_one(&scene.world, worker) : qr_world_claim_suspect(&scene.world, worker));
        qr_world_declare_dead(&scene.world, true, (qr_uuid){0});
        QR_CHECK_INT(1, qr_world_free_jobs(&scene.world));
    }
    qr_world_claim_suspect(&scene.world, qr_world_worker(&scene.world)); /* of a predecessor that died of it */
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, FAILED, 1);
    QR_CHECK_INT(QR_JOB_CRASHES_MAX, qr_world_find(&scene.world, id).crashes);
    QR_CHECK_INT(0, qr_world_find(&scene.world, id).attempts);
    QR_CHECK_INT(0, atomic_load(&scene.script.runs));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(how_long_it_takes_to_say_so_is_no_failure_of_the_job)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    const qr_uuid id = add_crashed(&scene, (struct qr_job_spec){.time_limit_ms = 1000});
    scene.refusal = QR_CODE_UNAVAILABLE;
    atomic_store(&scene.refusals, 1);
    qr_scene_start(&scene);
    qr_scene_go_to_next(&scene);
    qr_world_wait_for(&scene.world, FAILED, 1);
    QR_CHECK_TEXT("crashed_worker", qr_world_find(&scene.world, id).code);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM job_attempt WHERE outcome = 'timed_out'"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(one_whose_type_nobody_knows_waits_for_somebody_who_does)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    const qr_uuid id = add_crashed(&scene, (struct qr_job_spec){.type = "of tomorrow"});
    qr_scene_start(&scene);
    qr_scene_wait_until_put_off(&scene);
    QR_CHECK_TEXT("unavailable", qr_world_find(&scene.world, id).code);
    QR_CHECK_INT(0, qr_world_find(&scene.world, id).attempts);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(one_of_a_paused_queue_waits_and_one_that_was_cancelled_stays_so)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    const qr_uuid waits = add_crashed(&scene, (struct qr_job_spec){0});
    const qr_uuid unwanted = add_crashed(&scene, (struct qr_job_spec){0});
    qr_world_pause(&scene.world, QR_QUEUE_CONVERT, true);
    QR_CHECK_INT(QR_OK, qr_world_cancel(&scene.world, unwanted, NULL));
    qr_world_add(&scene.world, (struct qr_job_spec){.queue = QR_QUEUE_DELETE, .type = "quick"});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1); /* so it has looked */
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&scene.world, waits));
    qr_world_pause(&scene.world, QR_QUEUE_CONVERT, false);
    qr_world_wait_for(&scene.world, FAILED, 1);
    QR_CHECK_INT(QR_JOB_FAILED, qr_world_state(&scene.world, waits));
    QR_CHECK_INT(QR_JOB_CANCELLED, qr_world_state(&scene.world, unwanted));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

static atomic_int many_calls;

static void take_many(struct qr_job_run *const *runs QR_UNUSED, size_t count, struct qr_outcome *const *ret_outcomes)
{
    atomic_fetch_add(&many_calls, (int)count);
    for (size_t i = 0; i < count; i++) {
        ret_outcomes[i]->kind = QR_OUTCOME_COMPLETED;
    }
}

QR_DB_TEST(
    it_is_never_begun_together_with_others) /* R6: also once it is no suspect any more, because the plan refused */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.handlers[0].many = take_many;
    scene.options.slots[QR_QUEUE_CONVERT] = 1;
    scene.refusal = QR_CODE_UNAVAILABLE;
    atomic_store(&scene.refusals, 1);
    add_crashed(&scene, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_scene_wait_until_put_off(&scene);
    qr_world_pause(&scene.world, QR_QUEUE_CONVERT, true);
    qr_world_add_many(&scene.world, (struct qr_job_spec){0}, 8);
    qr_test_clock_advance(QR_JOB_BACKOFF_MS_MAX);
    qr_world_pause(&scene.world, QR_QUEUE_CONVERT, false);
    qr_world_wait_for(&scene.world, FAILED, 1);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 8);
    QR_CHECK_INT(8, atomic_load(&many_calls) + atomic_load(&scene.script.runs));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}
