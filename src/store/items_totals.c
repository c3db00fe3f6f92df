/* What containers say of the leaves in them, summed up: each counts its children by status, containers among them, which are
 * taken out again. */
#include "store/ids.h"
#include "store/items_row.h"

qr_rc qr_items_totals(struct qr_tx *tx, const struct qr_item *container, struct qr_item_totals *ret_totals, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    qr_str end;
    QR_TRY(qr_path_end(container->path, &arena, &end, err));
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(
        tx, &rows,
        "SELECT CAST(sum(below) AS BIGINT), CAST(sum(n_completed - CASE WHEN status = 6 THEN below ELSE 0 END) AS "
        "BIGINT), "
        "CAST(sum(n_failed - CASE WHEN status = 7 THEN below ELSE 0 END) AS BIGINT), CAST(sum(n_active - CASE WHEN "
        "status IN (2, 3) THEN below ELSE 0 END) AS BIGINT), "
        "CAST(sum(n_idle - CASE WHEN status = 1 THEN below ELSE 0 END) AS BIGINT) FROM (SELECT CASE WHEN id = ?4 THEN "
        "0 ELSE 1 END AS below, "
        "status, n_completed, n_failed, n_active, n_idle FROM item WHERE base_id = ?1 AND path >= ?2 AND path < ?3 AND "
        "is_container = 1 AND status <> 8) AS part",
        QR_VALS(qr_val_uuid(&container->base_id), qr_val_blob(container->path.ptr, container->path.len),
                qr_val_blob(end.ptr, end.len), qr_val_uuid(&container->id)),
        err));
    *ret_totals = (struct qr_item_totals){0};
    if (qr_rows_next(&rows)) {
        *ret_totals = (struct qr_item_totals){
            .containers = qr_rows_i64(&rows, 0),
            .completed = qr_rows_i64(&rows, 1),
            .failed = qr_rows_i64(&rows, 2),
            .active = qr_rows_i64(&rows, 3),
            .idle = qr_rows_i64(&rows, 4),
        };
    }
    ret_totals->leaves = ret_totals->completed + ret_totals->failed + ret_totals->active + ret_totals->idle;
    return qr_rows_end(&rows, err);
}

/* Each has a partial index that holds just its rows. */
qr_rc qr_items_count(struct qr_tx *tx, int64_t limit, struct qr_item_counts *ret_counts, qr_err *err)
{
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM (SELECT 1 FROM item WHERE status = 1 LIMIT ?1) AS counted",
                         QR_VALS(qr_val_i64(limit)), NULL, &ret_counts->idle, err));
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM (SELECT 1 FROM item WHERE status IN (2, 3) LIMIT ?1) AS counted",
                         QR_VALS(qr_val_i64(limit)), NULL, &ret_counts->active, err));
    return qr_tx_get_i64(tx, "SELECT count(*) FROM (SELECT 1 FROM item WHERE status = 8 LIMIT ?1) AS counted",
                         QR_VALS(qr_val_i64(limit)), NULL, &ret_counts->deleting, err);
}

qr_rc qr_items_count_rest(struct qr_tx *tx, int64_t limit, struct qr_rest_counts *counts, qr_err *err)
{
    int64_t looked = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT id, status FROM item WHERE id > ?1 ORDER BY id LIMIT ?2",
                       QR_VALS(qr_val_uuid(&counts->after), qr_val_i64(limit)), err));
    while (qr_rows_next(&rows)) {
        const enum qr_item_status status = (enum qr_item_status)qr_rows_i64(&rows, 1);
        counts->after = qr_rows_uuid(&rows, 0);
        counts->completed += status == QR_ITEM_COMPLETED;
        counts->failed += status == QR_ITEM_FAILED;
        looked++;
    }
    if (looked < limit) {
        counts->after = (qr_uuid){0};
    }
    return qr_rows_end(&rows, err);
}
