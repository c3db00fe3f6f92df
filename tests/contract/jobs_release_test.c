/* What becomes of a job that ends or goes back in line, over every database: delays, history, counts. */
#include "support/jobs_fixture.h"

QR_DB_TEST(a_delay_is_never_negative_nor_longer_than_a_day) /* AGAIN-1 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    const qr_uuid id = qr_world_add(&world, (struct qr_job_spec){0});
    struct qr_job job = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &job, (struct qr_job_release){.delay_ms = INT64_MIN}));
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&world, id));
    QR_CHECK_INT(QR_WORLD_BEGIN_MS, qr_world_find(&world, id).run_at_ms);
    job = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &job, (struct qr_job_release){.delay_ms = INT64_MAX}));
    QR_CHECK_INT(QR_JOB_SCHEDULED, qr_world_state(&world, id));
    QR_CHECK_INT((int64_t)QR_WORLD_BEGIN_MS + QR_JOB_DELAY_MS_MAX, qr_world_find(&world, id).run_at_ms);
    qr_world_close(&world);
}

QR_DB_TEST(the_history_of_a_job_is_its_last_attempts)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    enum { TRIES = QR_JOB_HISTORY_MAX + 20 };
    const qr_uuid worker = qr_world_worker(&world);
    const qr_uuid id = qr_world_add(&world, (struct qr_job_spec){0});
    for (int i = 1; i <= TRIES; i++) {
        const struct qr_job job = qr_world_claim_one(&world, worker);
        char message[16];
        snprintf(message, sizeof message, "%d", i);
        QR_CHECK_INT(QR_OK, qr_world_release(&world, &job, (struct qr_job_release){.message = message}));
        const int64_t kept = qr_world_i64(&world, "SELECT count(*) FROM job_attempt");
        QR_CHECK_INT(QR_MIN(i, (int)QR_JOB_HISTORY_MAX), kept);
    }
    struct qr_job_attempt *attempts;
    QR_CHECK_INT(QR_JOB_HISTORY_MAX, qr_world_attempts(&world, id, &attempts));
    QR_CHECK_TEXT("120", attempts[0].message);
    QR_CHECK_TEXT("21", attempts[QR_JOB_HISTORY_MAX - 1].message);
    qr_world_close(&world);
}

QR_DB_TEST(every_attempt_that_failed_is_counted_also_the_last)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    const qr_uuid failed = qr_world_add(&world, (struct qr_job_spec){0});
    struct qr_job job = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &job, (struct qr_job_release){.counts_attempt = true}));
    job = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_finish(&world, &job, QR_JOB_FAILED));
    QR_CHECK_INT(2, qr_world_find(&world, failed).attempts);
    const qr_uuid completed = qr_world_add(&world, (struct qr_job_spec){0});
    job = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_finish(&world, &job, QR_JOB_COMPLETED));
    QR_CHECK_INT(0, qr_world_find(&world, completed).attempts);
    qr_world_close(&world);
}

static qr_rc fail_as_crashed(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_job_end end = {.state = QR_JOB_FAILED, .code = "crashed_worker", .message = "", .is_crash = true};
    return qr_jobs_finish(tx, arg, &end, err);
}

QR_DB_TEST(a_job_that_crashed_too_often_has_crashes_and_no_failed_attempt) /* AGAIN-3 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid id = qr_world_add(&world, (struct qr_job_spec){0});
    for (int crashes = 1; crashes <= QR_JOB_CRASHES_MAX; crashes++) {
        const qr_uuid worker = qr_world_worker(&world);
        (void)(crashes == 1 ? qr_world_claim_one(&world, worker) : qr_world_claim_suspect(&world, worker));
        qr_world_declare_dead(&world, true, (qr_uuid){0});
        QR_CHECK_INT(1, qr_world_free_jobs(&world));
    }
    struct qr_job job = qr_world_claim_suspect(&world, qr_world_worker(&world));
    qr_world_write(&world, fail_as_crashed, &job);
    job = qr_world_find(&world, id);
    QR_CHECK_INT(QR_JOB_FAILED, job.state);
    QR_CHECK_INT(QR_JOB_CRASHES_MAX, job.crashes);
    QR_CHECK_INT(0, job.attempts);
    qr_world_close(&world);
}
