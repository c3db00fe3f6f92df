/* The jobs of items. */
#include "store/jobs_item.h"

#include "store/jobs_row.h"

#include <assert.h>
#include <stdio.h>

/* The item's id itself, where other keys are hashes: ids grow with time, so that jobs that are added, claimed and ended
 * together are neighbours in the index of keys. */
static struct qr_job_key stage_key(qr_uuid item_id)
{
    struct qr_job_key key = {.is_set = true};
    static_assert((int)sizeof key.hash == (int)QR_UUID_BYTES, "an id fits where a hash does");
    memcpy(key.hash, item_id.bytes, sizeof key.hash);
    return key;
}

/* Breadth first: what is nearer to the root goes first. */
static int priority_of(const struct qr_item *item)
{
    return (int)item->depth;
}

qr_rc qr_jobs_add_stage(struct qr_tx *tx, struct qr_uuid_gen *ids, const struct qr_item *item, enum qr_job_type type,
                        int64_t at_ms, qr_uuid *ret_id, qr_err *err)
{
    const struct qr_job_type_info *info = qr_job_type_info(type);
    const struct qr_new_job job = {
        .spec = {.queue = info->queue,
                 .type = info->name,
                 .base_id = item->base_id,
                 .item_id = item->id,
                 .generation = item->generation,
                 .priority = priority_of(item),
                 .run_at_ms = at_ms,
                 .time_limit_ms = info->time_limit_ms},
        .id = qr_uuid_next(ids),
        .idempotency_key = stage_key(item->id),
    };
    bool existed;
    QR_TRY(qr_jobs_add_new(tx, &job, ret_id, &existed, err));
    if (existed) {
        return qr_fail(err, QR_CODE_INTERNAL, "an item got a second stage job while the first one was open");
    }
    return QR_OK;
}

qr_rc qr_jobs_find_stage(struct qr_tx *tx, qr_uuid item_id, bool *ret_found, qr_uuid *ret_id, qr_err *err)
{
    const struct qr_job_key key = stage_key(item_id);
    const struct qr_val val = qr_val_key(&key);
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id FROM job WHERE idempotency_key = ?1 AND idempotency_key IS NOT NULL "
                       "AND state IN " QR_JOB_OPEN_SQL,
                       &val, 1, err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        *ret_id = qr_rows_uuid(&rows, 0);
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_jobs_has_stage(struct qr_tx *tx, qr_uuid item_id, bool *ret_has, qr_err *err)
{
    qr_uuid ignored;
    return qr_jobs_find_stage(tx, item_id, ret_has, &ignored, err);
}

qr_rc qr_jobs_cancel_stage(struct qr_tx *tx, qr_uuid item_id, const char *code, const char *message, qr_err *err)
{
    bool found;
    qr_uuid id;
    enum qr_job_state before;
    QR_TRY(qr_jobs_find_stage(tx, item_id, &found, &id, err));
    return found ? qr_jobs_cancel(tx, id, code, message, &before, err) : QR_OK;
}

qr_rc qr_jobs_cancel_of_item(struct qr_tx *tx, qr_uuid item_id, const char *code, const char *message, qr_err *err)
{
    enum { OPEN_MAX = 64 }; /* one stage, and side jobs that are unique by kind or asset: the rest in the next call */
    qr_uuid ids[OPEN_MAX];
    size_t count = 0;
    {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows,
                           "SELECT id FROM job WHERE item_id = ?1 AND item_id IS NOT NULL AND state IN " QR_JOB_OPEN_SQL
                           " AND queue <> 5 LIMIT ?2",
                           QR_VALS(qr_val_uuid(&item_id), qr_val_i64(OPEN_MAX)), err));
        while (qr_rows_next(&rows)) {
            ids[count++] = qr_rows_uuid(&rows, 0);
        }
        QR_TRY(qr_rows_end(&rows, err));
    }
    for (size_t i = 0; i < count; i++) {
        enum qr_job_state before;
        QR_TRY(qr_jobs_cancel(tx, ids[i], code, message, &before, err));
    }
    return count == OPEN_MAX ? qr_jobs_cancel_of_item(tx, item_id, code, message, err) : QR_OK;
}

qr_rc qr_jobs_runs_under(struct qr_tx *tx, qr_uuid job_id, int64_t fence, bool *ret_is_held, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx, "SELECT 1 FROM job WHERE id = ?1 AND fence = ?2 AND state = 4",
                         QR_VALS(qr_val_uuid(&job_id), qr_val_i64(fence)), ret_is_held, &ignored, err);
}

qr_rc qr_jobs_add_side(struct qr_tx *tx, struct qr_uuid_gen *ids, enum qr_job_type type, qr_uuid base_id,
                       qr_uuid item_id, int64_t generation, qr_str key, qr_str args, int64_t at_ms, qr_uuid *ret_id,
                       bool *ret_existed, qr_err *err)
{
    const struct qr_job_type_info *info = qr_job_type_info(type);
    return qr_jobs_add(
        tx, qr_uuid_next(ids),
        &(struct qr_job_spec){.queue = info->queue,
                              .type = info->name,
                              .base_id = base_id,
                              .item_id = item_id,
                              .generation = generation,
                              .priority = type == QR_JOB_PURGE, /* behind deletes, whose queue it shares */
                              .run_at_ms = at_ms,
                              .idempotency_key = key,
                              .args = args,
                              .time_limit_ms = info->time_limit_ms},
        ret_id, ret_existed, err);
}

qr_rc qr_jobs_stage_view(struct qr_tx *tx, qr_uuid item_id, struct qr_arena *arena, struct qr_stage_view *ret_view,
                         qr_err *err)
{
    *ret_view = (struct qr_stage_view){0};
    qr_uuid id;
    QR_TRY(qr_jobs_find_stage(tx, item_id, &ret_view->found, &id, err));
    if (!ret_view->found) {
        return QR_OK;
    }
    struct qr_job job;
    QR_TRY(qr_jobs_find(tx, id, arena, &ret_view->found, &job, err));
    *ret_view = (struct qr_stage_view){
        .found = true,
        .job_id = id,
        .type = qr_job_type_find(qr_str_of(job.type)),
        .state = job.state,
        .attempts = job.attempts,
        .claimed_ms = job.claimed_ms,
        .run_at_ms = job.run_at_ms,
        .progress_done = job.progress_done,
        .progress_total = job.progress_total,
        .progress_ms = job.progress_ms,
        .code = job.code,
        .message = job.message,
        .worker_id = job.worker_id,
    };
    return QR_OK;
}
