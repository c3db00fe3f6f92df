/* The tables of job states and queues, and how long a retry waits. */
#include "model/job.h"
#include "support/test.h"

QR_TEST(states_and_queues_have_names_that_find_them_again) /* JOB-3 */
{
    static const char *const states[] = {"blocked",   "scheduled", "queued",  "running",
                                         "completed", "failed",    "skipped", "cancelled"};
    for (size_t i = 0; i < QR_COUNT(states); i++) {
        const enum qr_job_state state = (enum qr_job_state)(i + 1); /* as they are stored */
        QR_CHECK_TEXT(states[i], qr_job_state_name(state));
        QR_CHECK_INT(state, qr_job_state_find(qr_str_of(states[i])));
        QR_CHECK_INT(state <= QR_JOB_RUNNING, qr_job_state_is_open(state));
    }
    QR_CHECK_INT(0, qr_job_state_find(QR_STR("Queued")));
    QR_CHECK_INT(0, qr_job_state_find(QR_STR("")));
    static const char *const queues[] = {"expand", "convert", "embed", "assets", "delete"};
    for (size_t i = 0; i < QR_COUNT(queues); i++) {
        const enum qr_queue queue = (enum qr_queue)(i + 1);
        QR_CHECK_TEXT(queues[i], qr_queue_name(queue));
        QR_CHECK_INT(queue, qr_queue_find(qr_str_of(queues[i])));
    }
    QR_CHECK_INT(QR_COUNT(queues), QR_QUEUE_END - 1);
    QR_CHECK_INT(0, qr_queue_find(QR_STR("deletes")));
}

QR_TEST(a_job_that_has_ended_stays_ended) /* AGAIN-4 */
{
    for (enum qr_job_state from = QR_JOB_BLOCKED; from <= QR_JOB_CANCELLED; from++) {
        for (enum qr_job_state to = QR_JOB_BLOCKED; to <= QR_JOB_CANCELLED; to++) {
            const bool may = qr_job_state_may_become(from, to);
            QR_CHECK(!may || qr_job_state_is_open(from));
            QR_CHECK(!may || from != to);
            QR_CHECK(to != QR_JOB_BLOCKED || !may); /* a job is blocked from its beginning or never */
        }
        QR_CHECK_INT(qr_job_state_is_open(from), qr_job_state_may_become(from, QR_JOB_CANCELLED));
        QR_CHECK_INT(from == QR_JOB_QUEUED, qr_job_state_may_become(from, QR_JOB_RUNNING));
        QR_CHECK_INT(from == QR_JOB_RUNNING, qr_job_state_may_become(from, QR_JOB_COMPLETED));
    }
}

QR_TEST(a_retry_waits_twice_as_long_each_time_half_of_it_by_chance) /* AGAIN-1 */
{
    struct qr_rand_seeded seeded;
    qr_rand_seeded_init(&seeded, 1);
    int64_t full_ms = QR_JOB_BACKOFF_MS_MIN;
    for (int64_t attempts = 1; attempts <= 40; attempts++) {
        int64_t least_ms = INT64_MAX, most_ms = 0;
        for (int i = 0; i < 200; i++) {
            const int64_t ms = qr_job_backoff_ms(attempts, 0, &seeded.rand);
            least_ms = QR_MIN(least_ms, ms);
            most_ms = QR_MAX(most_ms, ms);
        }
        QR_CHECK(least_ms >= full_ms / 2 && most_ms <= full_ms);
        QR_CHECK(most_ms - least_ms > full_ms / 4); /* not all at the same moment */
        full_ms = QR_MIN(full_ms * 2, (int64_t)QR_JOB_BACKOFF_MS_MAX);
    }
}

QR_TEST(failures_that_may_pass_are_tried_for_about_20_minutes) /* AGAIN-1 */
{
    enum { MINUTE_MS = 60000, TIMES = 200 };
    struct qr_rand_seeded seeded;
    qr_rand_seeded_init(&seeded, 3);
    int64_t sum_ms = 0;
    for (int i = 0; i < TIMES; i++) {
        for (int64_t attempts = 1; attempts < QR_JOB_ATTEMPTS_MAX; attempts++) {
            sum_ms += qr_job_backoff_ms(attempts, 0, &seeded.rand);
        }
    }
    QR_CHECK(sum_ms / TIMES > 15 * MINUTE_MS && sum_ms / TIMES < 25 * MINUTE_MS);
}

QR_TEST(a_retry_waits_at_least_as_long_as_was_asked_for) /* AGAIN-1 */
{
    struct qr_rand_seeded seeded;
    qr_rand_seeded_init(&seeded, 2);
    QR_CHECK_INT(3600000, qr_job_backoff_ms(1, 3600000, &seeded.rand));
    QR_CHECK(qr_job_backoff_ms(9, 1, &seeded.rand) >= QR_JOB_BACKOFF_MS_MAX / 4);
    QR_CHECK(qr_job_backoff_ms(INT64_MAX, 0, &seeded.rand) <= QR_JOB_BACKOFF_MS_MAX);
    QR_CHECK(qr_job_backoff_ms(0, -5, &seeded.rand) >= QR_JOB_BACKOFF_MS_MIN / 2);
}

QR_TEST(a_state_or_queue_that_there_is_not_has_a_name_and_no_future)
{
    static const int unknown[] = {INT32_MIN, -1, 0, QR_JOB_CANCELLED + 1, 99, INT32_MAX};
    for (size_t i = 0; i < QR_COUNT(unknown); i++) {
        const enum qr_job_state state = (enum qr_job_state)unknown[i];
        QR_CHECK_TEXT("unknown", qr_job_state_name(state));
        QR_CHECK_TEXT("unknown", qr_queue_name((enum qr_queue)unknown[i]));
        QR_CHECK(!qr_job_state_is_open(state));
        QR_CHECK(!qr_job_state_may_become(state, QR_JOB_QUEUED) && !qr_job_state_may_become(QR_JOB_QUEUED, state));
    }
}
