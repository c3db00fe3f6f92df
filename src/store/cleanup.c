/* Statements of the cleanups. */
#include "store/cleanup.h"

#include "store/ids.h"
#include "store/items_row.h"
#include "store/jobs.h"

enum { CANCELLED_MAX = 200 };

qr_rc qr_items_of_base(struct qr_tx *tx, qr_uuid base_id, qr_str before, int limit, struct qr_arena *arena,
                       struct qr_item **ret_items, size_t *ret_count, qr_err *err)
{
    struct qr_item_list list = {.arena = arena};
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT " QR_ITEM_COLUMNS " FROM item WHERE base_id = ?1 AND (?2 = 0 OR path < ?3) "
                       "ORDER BY path DESC LIMIT ?4",
                       QR_VALS(qr_val_uuid(&base_id), qr_val_i64(before.len > 0),
                               qr_val_blob(before.ptr ? before.ptr : "", before.len), qr_val_i64(limit)),
                       err));
    while (qr_rows_next(&rows)) {
        QR_TRY(qr_item_list_add(&list, &rows, err));
    }
    *ret_items = list.items;
    *ret_count = list.count;
    return qr_rows_end(&rows, err);
}

/* One for each state, since each has an index of its own; queue 5 are the deletes. */
static const char *const open_statements[] = {
    "SELECT id FROM job WHERE state = 3 AND queue IN (1, 2, 3, 4) AND suspect IN (0, 1) AND base_id = ?1 LIMIT ?2",
    "SELECT id FROM job WHERE state = 4 AND base_id = ?1 AND queue <> 5 LIMIT ?2",
    "SELECT id FROM job WHERE state = 2 AND base_id = ?1 AND queue IN (1, 2, 3, 4) LIMIT ?2",
    "SELECT id FROM job WHERE state = 1 AND base_id = ?1 AND queue IN (1, 2, 3, 4) LIMIT ?2",
};

qr_rc qr_jobs_cancel_of_base(struct qr_tx *tx, qr_uuid base_id, const char *code, const char *message, int limit,
                             size_t *ret_count, qr_err *err)
{
    qr_uuid ids[CANCELLED_MAX];
    const size_t max = (size_t)QR_MIN(limit, (int)CANCELLED_MAX);
    size_t count = 0;
    for (size_t i = 0; i < QR_COUNT(open_statements) && count < max; i++) {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows, open_statements[i],
                           QR_VALS(qr_val_uuid(&base_id), qr_val_i64((int64_t)(max - count))), err));
        while (qr_rows_next(&rows)) {
            ids[count++] = qr_rows_uuid(&rows, 0);
        }
        QR_TRY(qr_rows_end(&rows, err));
    }
    for (size_t i = 0; i < count; i++) {
        enum qr_job_state before;
        QR_TRY(qr_jobs_cancel(tx, ids[i], code, message, &before, err));
    }
    *ret_count = count;
    return QR_OK;
}

static const char *const clear_statements[] = {
    "DELETE FROM event WHERE base_id = ?1 AND seq IN (SELECT seq FROM event WHERE base_id = ?1 LIMIT ?2)",
    "DELETE FROM run_stage WHERE run_id IN (SELECT id FROM run WHERE base_id = ?1 ORDER BY id LIMIT ?2)",
    "DELETE FROM run WHERE id IN (SELECT id FROM run WHERE base_id = ?1 ORDER BY id LIMIT ?2)",
};

qr_rc qr_base_clear(struct qr_tx *tx, qr_uuid base_id, int limit, int64_t *ret_count, qr_err *err)
{
    *ret_count = 0;
    for (size_t i = 0; i < QR_COUNT(clear_statements); i++) {
        int64_t removed;
        QR_TRY(qr_tx_exec(tx, clear_statements[i], QR_VALS(qr_val_uuid(&base_id), qr_val_i64(limit)), &removed, err));
        *ret_count += removed;
    }
    return QR_OK;
}
