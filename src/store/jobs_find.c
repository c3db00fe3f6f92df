/* The statements behind store/jobs_find.h. None of them is repeated by a healthy runner. */
#include "store/jobs_find.h"

#include "store/jobs_row.h"

/* ---- by the beginning of an id ---- */

qr_rc qr_jobs_find_prefix(struct qr_tx *tx, qr_str prefix, qr_uuid *ret_id, qr_err *err)
{
    return qr_find_by_prefix(tx, "SELECT id FROM job WHERE id >= ?1 AND id <= ?2 ORDER BY id LIMIT 2", NULL, prefix,
                             "job", ret_id, err);
}

/* ---- who holds it ---- */

qr_rc qr_jobs_is_held(struct qr_tx *tx, qr_uuid id, int64_t fence, qr_uuid worker_id, bool *ret_is_held, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx, "SELECT fence FROM job WHERE id = ?1 AND state = 4 AND fence = ?2 AND worker_id = ?3",
                         QR_VALS(qr_val_uuid(&id), qr_val_i64(fence), qr_val_uuid(&worker_id)), ret_is_held, &ignored,
                         err);
}

/* ---- why it waits ---- */

qr_rc qr_jobs_find_blocker(struct qr_tx *tx, qr_uuid id, bool *ret_found, qr_uuid *ret_id, enum qr_job_state *ret_state,
                           qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id, state FROM job WHERE serial_key = (SELECT serial_key FROM job WHERE id = ?1) "
                       "AND serial_key IS NOT NULL AND state IN " QR_JOB_ACTIVE_SQL " AND id <> ?1",
                       QR_VALS(qr_val_uuid(&id)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        *ret_id = qr_rows_uuid(&rows, 0);
        *ret_state = (enum qr_job_state)qr_rows_i64(&rows, 1);
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_workers_count_live(struct qr_tx *tx, int64_t *ret_count, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_get_i64(tx, "SELECT count(*) FROM worker WHERE dead = 0 AND lease_until >= ?1",
                         QR_VALS(qr_val_i64(now_ms)), NULL, ret_count, err);
}

/* ---- once more ---- */

static qr_rc require_retryable(enum qr_job_state state, qr_err *err)
{
    if (qr_job_state_is_open(state)) {
        return qr_fail(err, QR_CODE_NOT_TERMINAL, "the job is %s: it has not ended yet", qr_job_state_name(state));
    }
    if (state != QR_JOB_FAILED && state != QR_JOB_CANCELLED) {
        return qr_fail(err, QR_CODE_NOT_FAILED, "the job is %s: only a failed or cancelled one is retried",
                       qr_job_state_name(state));
    }
    return QR_OK;
}

qr_rc qr_jobs_add_again(struct qr_tx *tx, qr_uuid id, qr_uuid new_id, qr_uuid *ret_id, bool *ret_existed, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_job job;
    bool found;
    QR_TRY(qr_jobs_find(tx, id, &arena, &found, &job, err));
    if (!found) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such job");
    }
    QR_TRY(require_retryable(job.state, err));
    const struct qr_new_job copy = {
        .spec = {.queue = job.queue,
                 .type = job.type,
                 .base_id = job.base_id,
                 .item_id = job.item_id,
                 .generation = job.generation,
                 .priority = (int)job.priority,
                 .args = qr_str_of(job.args),
                 .time_limit_ms = job.time_limit_ms},
        .id = new_id,
        .idempotency_key = job.idempotency_key,
        .serial_key = job.serial_key,
    };
    return qr_jobs_add_new(tx, &copy, ret_id, ret_existed, err);
}

qr_rc qr_jobs_oldest(struct qr_tx *tx, enum qr_queue queue, int64_t limit, int64_t *ret_queued_ms,
                     int64_t *ret_running_ms, qr_err *err)
{
    *ret_queued_ms = *ret_running_ms = 0;
    QR_TRY(qr_tx_get_i64(tx,
                         "SELECT coalesce(min(run_at), 0) FROM "
                         "(SELECT run_at FROM job WHERE state = 3 AND queue = ?1 LIMIT ?2) AS looked_at",
                         QR_VALS(qr_val_i64(queue), qr_val_i64(limit)), NULL, ret_queued_ms, err));
    return qr_tx_get_i64(tx,
                         "SELECT coalesce(min(claimed_at), 0) FROM "
                         "(SELECT claimed_at FROM job WHERE state = 4 AND queue = ?1 LIMIT ?2) AS looked_at",
                         QR_VALS(qr_val_i64(queue), qr_val_i64(limit)), NULL, ret_running_ms, err);
}
