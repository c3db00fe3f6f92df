/* Who may write about a job, over every database: fences, leases, cancelling. J1–J3 are those of store/jobs.h. */
#include "support/jobs_fixture.h"

static const qr_uuid NOBODY = {0};

/* ---- the fence ---- */

QR_DB_TEST(two_workers_claim_different_jobs)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid first = qr_world_worker(&world), second = qr_world_worker(&world);
    qr_world_add_many(&world, (struct qr_job_spec){0}, 10);
    struct qr_job jobs[10];
    QR_CHECK_INT(6, qr_world_claim(&world, first, jobs, 6));
    QR_CHECK_INT(4, qr_world_claim(&world, second, jobs + 6, 6 - 2));
    for (size_t i = 0; i < QR_COUNT(jobs); i++) {
        for (size_t k = 0; k < i; k++) {
            QR_CHECK(!qr_uuid_equal(jobs[i].id, jobs[k].id));
        }
        QR_CHECK(qr_uuid_equal(i < 6 ? first : second, qr_world_find(&world, jobs[i].id).worker_id));
    }
    qr_world_close(&world);
}

static void check_lost(struct qr_world *world, const struct qr_job *old)
{
    const struct qr_job before = qr_world_find(world, old->id);
    QR_CHECK_INT(QR_LOST, qr_world_finish(world, old, QR_JOB_COMPLETED));
    QR_CHECK_INT(QR_LOST, qr_world_finish(world, old, QR_JOB_FAILED));
    QR_CHECK_INT(QR_LOST, qr_world_release(world, old, (struct qr_job_release){.counts_attempt = true}));
    QR_CHECK_INT(QR_LOST, qr_world_progress(world, old, 9, 9));
    QR_CHECK_INT(QR_LOST, qr_world_require_fence(world, old));
    const struct qr_job after = qr_world_find(world, old->id);
    QR_CHECK_INT(before.state, after.state);
    QR_CHECK_INT(before.fence, after.fence);
    QR_CHECK_INT(before.attempts, after.attempts);
    QR_CHECK_INT(before.progress_done, after.progress_done);
    QR_CHECK_INT(before.finished_ms, after.finished_ms);
}

QR_DB_TEST(a_write_with_an_old_fence_changes_nothing) /* FENCE-1, J1, I2 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    qr_world_add(&world, (struct qr_job_spec){0});
    const struct qr_job first = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_require_fence(&world, &first));
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &first, (struct qr_job_release){0}));
    check_lost(&world, &first); /* nobody's */
    const struct qr_job second = qr_world_claim_one(&world, worker);
    QR_CHECK(second.fence > first.fence);
    check_lost(&world, &first); /* another attempt's, even of the same worker */
    struct qr_job_attempt *attempts;
    QR_CHECK_INT(1, qr_world_attempts(&world, first.id, &attempts));
    QR_CHECK_INT(QR_OK, qr_world_finish(&world, &second, QR_JOB_COMPLETED));
    check_lost(&world, &first);
    check_lost(&world, &second); /* it ended: only once */
    qr_world_close(&world);
}

struct completion {
    const struct qr_job *jobs[40];
    size_t count;
    bool is_lost[40];
};

static qr_rc complete_all(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct completion *completion = arg;
    return qr_jobs_complete(tx, completion->jobs, completion->count, completion->is_lost, err);
}

QR_DB_TEST(of_many_that_are_completed_together_those_with_an_old_fence_stay) /* FENCE-1, J1, I2 */
{
    struct qr_world world;
    struct qr_job jobs[40];
    struct completion completion = {.count = QR_COUNT(jobs)};
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    for (size_t i = 0; i < QR_COUNT(jobs); i++) {
        qr_world_add(&world, (struct qr_job_spec){0});
        jobs[i] = qr_world_claim_one(&world, worker);
        completion.jobs[i] = &jobs[i];
    }
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &jobs[3], (struct qr_job_release){0})); /* nobody's */
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &jobs[20], (struct qr_job_release){0}));
    const struct qr_job again = qr_world_claim_one(&world, worker); /* another attempt's */
    QR_CHECK_INT(QR_OK, qr_world_finish(&world, &jobs[39], QR_JOB_COMPLETED));
    qr_world_write(&world, complete_all, &completion);
    for (size_t i = 0; i < QR_COUNT(jobs); i++) {
        QR_CHECK(completion.is_lost[i] == (i == 3 || i == 20 || i == 39));
    }
    QR_CHECK_INT(38, qr_world_i64(&world, "SELECT count(*) FROM job WHERE state = 5 AND finished_at > 0"));
    QR_CHECK_INT(QR_OK, qr_world_require_fence(&world, &again));
    qr_world_close(&world);
}

QR_DB_TEST(cancelling_ends_an_open_job_in_every_state) /* FENCE-3 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    qr_world_add(&world, (struct qr_job_spec){.serial_key = QR_STR("s")});
    const struct qr_job running = qr_world_claim_one(&world, worker);
    const qr_uuid ids[] = {
        [QR_JOB_BLOCKED] = qr_world_add(&world, (struct qr_job_spec){.serial_key = QR_STR("s")}),
        [QR_JOB_SCHEDULED] = qr_world_add(&world, (struct qr_job_spec){.run_at_ms = QR_WORLD_BEGIN_MS + 1}),
        [QR_JOB_QUEUED] = qr_world_add(&world, (struct qr_job_spec){0}),
        [QR_JOB_RUNNING] = running.id,
    };
    for (enum qr_job_state state = QR_JOB_BLOCKED; state <= QR_JOB_RUNNING; state++) {
        enum qr_job_state was;
        QR_CHECK_INT(QR_OK, qr_world_cancel(&world, ids[state], &was));
        QR_CHECK_INT(state, was);
        QR_CHECK_INT(QR_JOB_CANCELLED, qr_world_state(&world, ids[state]));
        QR_CHECK_INT(QR_OK, qr_world_cancel(&world, ids[state], &was)); /* again: nothing */
        QR_CHECK_INT(QR_JOB_CANCELLED, was);
    }
    check_lost(&world, &running);
    QR_CHECK_TEXT("cancelled", qr_world_find(&world, running.id).code);
    QR_CHECK_INT(QR_NOT_FOUND, qr_world_cancel(&world, worker, NULL));
    qr_world_close(&world);
}

QR_DB_TEST(the_history_tells_every_attempt_before_the_last)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    const qr_uuid id = qr_world_add(&world, (struct qr_job_spec){0});
    struct qr_job job = qr_world_claim_one(&world, worker);
    qr_test_clock_advance(10);
    const struct qr_job_release retry = {
        .outcome = "retried", .code = "timeout", .message = "too slow", .counts_attempt = true};
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &job, retry));
    qr_test_clock_advance(5);
    const int64_t first_fence = job.fence;
    job = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(1, job.attempts);
    QR_CHECK_TEXT("timeout", job.code);
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &job, (struct qr_job_release){.outcome = "snoozed"}));
    struct qr_job_attempt *attempts;
    QR_CHECK_INT(2, qr_world_attempts(&world, id, &attempts)); /* the newest first */
    QR_CHECK_TEXT("snoozed", attempts[0].outcome);
    QR_CHECK_INT(QR_WORLD_BEGIN_MS + 15, attempts[0].claimed_ms);
    QR_CHECK_TEXT("retried", attempts[1].outcome);
    QR_CHECK_TEXT("timeout", attempts[1].code);
    QR_CHECK_TEXT("too slow", attempts[1].message);
    QR_CHECK_INT(first_fence, attempts[1].fence);
    QR_CHECK_INT(QR_WORLD_BEGIN_MS, attempts[1].claimed_ms);
    QR_CHECK_INT(QR_WORLD_BEGIN_MS + 10, attempts[1].ended_ms);
    QR_CHECK(qr_uuid_equal(worker, attempts[1].worker_id));
    QR_CHECK_INT(1, qr_world_find(&world, id).attempts); /* a snooze is none */
    qr_world_close(&world);
}

/* ---- leases ---- */

QR_DB_TEST(a_lease_lasts_as_long_as_it_is_renewed) /* FENCE-2 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    qr_world_add_many(&world, (struct qr_job_spec){0}, 3);
    qr_test_clock_advance(QR_WORKER_LEASE_MS);
    QR_CHECK_INT(0, qr_world_declare_dead(&world, false, NOBODY));
    QR_CHECK_INT(QR_OK, qr_world_beat(&world, worker));
    qr_test_clock_advance(QR_WORKER_LEASE_MS);
    qr_world_claim_one(&world, worker);
    qr_test_clock_advance(1);
    struct qr_job job;
    struct qr_world_claim claim = {.worker_id = worker, .queue = QR_QUEUE_CONVERT, .jobs = &job, .limit = 1};
    QR_CHECK_INT(QR_LOST, qr_world_try_claim(&world, &claim));
    QR_CHECK_INT(QR_LOST, qr_world_beat(&world, worker)); /* too late, though nobody has noticed */
    QR_CHECK_INT(1, qr_world_declare_dead(&world, false, NOBODY));
    QR_CHECK_INT(QR_LOST, qr_world_beat(&world, worker));
    qr_world_close(&world);
}

QR_DB_TEST(a_worker_declared_dead_can_neither_renew_nor_claim_nor_write) /* FENCE-1, FENCE-4, RECOV-2, I9 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid dead = qr_world_worker(&world), alive = qr_world_worker(&world);
    qr_world_add_many(&world, (struct qr_job_spec){0}, 2);
    const struct qr_job taken = qr_world_claim_one(&world, dead), kept = qr_world_claim_one(&world, alive);
    QR_CHECK_INT(1, qr_world_declare_dead(&world, true, alive));
    QR_CHECK_INT(QR_LOST, qr_world_beat(&world, dead));
    struct qr_job job;
    struct qr_world_claim claim = {.worker_id = dead, .queue = QR_QUEUE_CONVERT, .jobs = &job, .limit = 1};
    QR_CHECK_INT(QR_LOST, qr_world_try_claim(&world, &claim));
    QR_CHECK_INT(1, qr_world_free_jobs(&world));
    check_lost(&world, &taken);
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&world, taken.id));
    QR_CHECK_INT(QR_OK, qr_world_require_fence(&world, &kept));
    QR_CHECK_INT(1, qr_world_i64(&world, "SELECT count(*) FROM worker")); /* the dead one is forgotten */
    QR_CHECK_INT(0, qr_world_free_jobs(&world));
    qr_world_close(&world);
}

QR_DB_TEST(however_often_its_process_dies_a_job_goes_back_in_line_and_does_not_end) /* I1, R6 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid id = qr_world_add(&world, (struct qr_job_spec){.serial_key = QR_STR("s")});
    const qr_uuid next = qr_world_add(&world, (struct qr_job_spec){.serial_key = QR_STR("s")});
    enum { DEATHS = QR_JOB_CRASHES_MAX + 2 }; /* the last two of those who were about to say that it failed */
    for (int deaths = 1; deaths <= DEATHS; deaths++) {
        const qr_uuid worker = qr_world_worker(&world);
        const struct qr_job taken =
            deaths == 1 ? qr_world_claim_one(&world, worker) : qr_world_claim_suspect(&world, worker);
        QR_CHECK(qr_uuid_equal(id, taken.id));
        qr_world_declare_dead(&world, true, NOBODY);
        QR_CHECK_INT(1, qr_world_free_jobs(&world));
        const struct qr_job job = qr_world_find(&world, id);
        QR_CHECK_INT(QR_JOB_QUEUED, job.state);
        QR_CHECK(job.is_suspect);
        QR_CHECK_INT(QR_MIN(deaths, (int)QR_JOB_CRASHES_MAX), job.crashes);
        QR_CHECK_INT(0, job.attempts);
    }
    QR_CHECK_INT(QR_JOB_BLOCKED, qr_world_state(&world, next)); /* J2 */
    struct qr_job_attempt *attempts;
    QR_CHECK_INT(DEATHS, qr_world_attempts(&world, id, &attempts));
    for (int i = 0; i < DEATHS; i++) {
        QR_CHECK_TEXT("crashed", attempts[i].outcome);
    }
    qr_world_close(&world);
}

QR_DB_TEST(the_jobs_of_the_dead_are_freed_whatever_their_bases) /* RECOV-2 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    for (unsigned char base = 0; base < 3; base++) {
        qr_world_add(&world, (struct qr_job_spec){.base_id = {.bytes = {base}}});
    }
    struct qr_job jobs[3];
    QR_CHECK_INT(3, qr_world_claim(&world, qr_world_worker(&world), jobs, 3));
    qr_world_declare_dead(&world, true, NOBODY);
    QR_CHECK_INT(3, qr_world_free_jobs(&world));
    QR_CHECK_INT(3, qr_world_count(&world, QR_JOB_QUEUED));
    qr_world_close(&world);
}

QR_DB_TEST(suspects_are_claimed_apart_until_they_come_through_an_attempt)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid id = qr_world_add(&world, (struct qr_job_spec){0});
    qr_world_claim_one(&world, qr_world_worker(&world));
    qr_world_declare_dead(&world, true, NOBODY);
    QR_CHECK_INT(1, qr_world_free_jobs(&world));
    const qr_uuid other = qr_world_add(&world, (struct qr_job_spec){0});
    const qr_uuid worker = qr_world_worker(&world);
    struct qr_job jobs[2];
    QR_CHECK_INT(1, qr_world_claim(&world, worker, jobs, 2));
    QR_CHECK(qr_uuid_equal(other, jobs[0].id));
    struct qr_job suspect = qr_world_claim_suspect(&world, worker);
    QR_CHECK(suspect.is_suspect);
    /* handed back before it ran: it is one still */
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &suspect, (struct qr_job_release){.outcome = "handed_back"}));
    QR_CHECK_INT(0, qr_world_claim(&world, worker, jobs, 2));
    suspect = qr_world_claim_suspect(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &suspect, (struct qr_job_release){.clears_suspicion = true}));
    QR_CHECK_INT(1, qr_world_claim(&world, worker, jobs, 2));
    QR_CHECK(qr_uuid_equal(id, jobs[0].id) && !jobs[0].is_suspect);
    QR_CHECK_INT(1, jobs[0].crashes);
    qr_world_close(&world);
}

QR_DB_TEST(the_jobs_of_the_dead_are_freed_in_steps) /* RECOV-2 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    enum { JOBS = QR_JOB_RESCUE_MAX + 20 };
    qr_world_add_many(&world, (struct qr_job_spec){0}, JOBS);
    static struct qr_job jobs[JOBS];
    QR_CHECK_INT(JOBS, qr_world_claim(&world, worker, jobs, JOBS));
    qr_world_declare_dead(&world, true, NOBODY);
    QR_CHECK_INT(QR_JOB_RESCUE_MAX, qr_world_free_jobs(&world));
    QR_CHECK_INT(1, qr_world_i64(&world, "SELECT count(*) FROM worker")); /* it has jobs still */
    QR_CHECK_INT(20, qr_world_free_jobs(&world));
    QR_CHECK_INT(0, qr_world_i64(&world, "SELECT count(*) FROM worker"));
    QR_CHECK_INT(JOBS, qr_world_count(&world, QR_JOB_QUEUED));
    qr_world_close(&world);
}
