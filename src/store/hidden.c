/* Statements about what is hidden. */
#include "store/hidden.h"

#include "store/ids.h"
#include "store/items_row.h"

#include <assert.h>

qr_rc qr_base_vis_seq(struct qr_tx *tx, qr_uuid base_id, int64_t *ret_seq, qr_err *err)
{
    bool found;
    *ret_seq = 0;
    return qr_tx_get_i64(tx, "SELECT vis_seq FROM base WHERE id = ?1", QR_VALS(qr_val_uuid(&base_id)), &found, ret_seq,
                         err);
}

/* *ret_status: 0 = it hides nothing, or is gone. */
static qr_rc find_hiding(struct qr_tx *tx, const char *id, int64_t *ret_status, qr_err *err)
{
    bool found;
    *ret_status = 0;
    return qr_tx_get_i64(tx, "SELECT status FROM item WHERE id = ?1 AND (status = 8 OR enabled = 0)",
                         QR_VALS(qr_val_blob(id, QR_UUID_BYTES)), &found, ret_status, err);
}

qr_rc qr_item_hidden_by(struct qr_tx *tx, qr_str path, size_t *ret_len, bool *ret_is_deleting, qr_err *err)
{
    int64_t status = 0;
    *ret_len = 0;
    for (size_t at = 0; at + QR_UUID_BYTES <= path.len && status == 0; at += QR_UUID_BYTES) {
        QR_TRY(find_hiding(tx, path.ptr + at, &status, err));
        *ret_len = status ? at + QR_UUID_BYTES : 0;
    }
    *ret_is_deleting = status == QR_ITEM_DELETING;
    return QR_OK;
}

qr_rc qr_item_hides(struct qr_tx *tx, qr_uuid id, bool *ret_hides, qr_err *err)
{
    int64_t status;
    QR_TRY(find_hiding(tx, (const char *)id.bytes, &status, err));
    *ret_hides = status != 0;
    return QR_OK;
}

static qr_uuid last_of_path(qr_str path)
{
    qr_uuid id = {0};
    if (path.len >= QR_UUID_BYTES) {
        memcpy(id.bytes, path.ptr + path.len - QR_UUID_BYTES, QR_UUID_BYTES);
    }
    return id;
}

static qr_rc collect_below(struct qr_tx *tx, qr_uuid base_id, qr_str end, int limit, struct qr_item_cursor *cursor,
                           qr_uuid *ret_ids, size_t *ret_count, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT path FROM item WHERE base_id = ?1 AND path > ?2 AND path < ?3 ORDER BY path LIMIT ?4",
                       QR_VALS(qr_val_uuid(&base_id), qr_val_blob(cursor->path, cursor->path_len),
                               qr_val_blob(end.ptr, end.len), qr_val_i64(limit)),
                       err));
    *ret_count = 0;
    while (qr_rows_next(&rows)) {
        const qr_str path = qr_rows_str(&rows, 0);
        cursor->path_len = QR_MIN(path.len, sizeof cursor->path);
        memcpy(cursor->path, path.ptr, cursor->path_len);
        ret_ids[(*ret_count)++] = last_of_path(path);
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_ids_below(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, int limit, struct qr_item_cursor *cursor,
                   qr_uuid *ret_ids, size_t *ret_count, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    qr_str end;
    QR_TRY(qr_path_end(root_path, &arena, &end, err));
    if (cursor->path_len == 0) {
        assert(root_path.len <= sizeof cursor->path);
        memcpy(cursor->path, root_path.ptr, root_path.len);
        cursor->path_len = root_path.len;
    }
    return collect_below(tx, base_id, end, limit, cursor, ret_ids, ret_count, err);
}

qr_rc qr_ids_deleting(struct qr_tx *tx, qr_uuid base_id, int limit, qr_uuid *after, qr_uuid *ret_ids, size_t *ret_count,
                      bool *ret_more, qr_err *err)
{
    int looked_at = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT id, base_id FROM item WHERE status = 8 AND id > ?1 ORDER BY id LIMIT ?2",
                       QR_VALS(qr_val_uuid(after), qr_val_i64(limit)), err));
    *ret_count = 0;
    while (qr_rows_next(&rows)) {
        *after = qr_rows_uuid(&rows, 0);
        looked_at++;
        if (qr_uuid_equal(qr_rows_uuid(&rows, 1), base_id)) {
            ret_ids[(*ret_count)++] = *after;
        }
    }
    *ret_more = looked_at == limit;
    return qr_rows_end(&rows, err);
}
