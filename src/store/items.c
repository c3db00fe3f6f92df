/* Finding items, and questions about the tree. Lists: items_list.c; changes: change.c. */
#include "store/items.h"

#include "store/items_row.h"
#include "store/jobs_row.h"

static qr_rc find_one(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                      struct qr_arena *arena, bool *ret_found, struct qr_item *ret_item, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, vals, val_count, err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        QR_TRY(qr_rows_item(&rows, arena, ret_item, err));
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_item_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_item *ret_item,
                   qr_err *err)
{
    return find_one(tx, "SELECT " QR_ITEM_COLUMNS " FROM item WHERE id = ?1", QR_VALS(qr_val_uuid(&id)), arena,
                    ret_found, ret_item, err);
}

qr_rc qr_item_find_key(struct qr_tx *tx, qr_uuid parent_id, qr_str key, struct qr_arena *arena, bool *ret_found,
                       struct qr_item *ret_item, qr_err *err)
{
    return find_one(tx, "SELECT " QR_ITEM_COLUMNS " FROM item WHERE parent_id = ?1 AND key = ?2 AND status <> 8",
                    QR_VALS(qr_val_uuid(&parent_id), qr_val_blob(key.ptr, key.len)), arena, ret_found, ret_item, err);
}

qr_rc qr_item_find_root(struct qr_tx *tx, qr_uuid base_id, qr_str source, struct qr_arena *arena, bool *ret_found,
                        struct qr_item *ret_item, qr_err *err)
{
    unsigned char hash[QR_HASH_BYTES];
    qr_hash_128(source, hash);
    return find_one(tx,
                    "SELECT " QR_ITEM_COLUMNS " FROM item WHERE base_id = ?1 AND source_hash = ?2 AND "
                    "source_hash IS NOT NULL AND status <> 8 ORDER BY id LIMIT 1",
                    QR_VALS(qr_val_uuid(&base_id), qr_val_blob(hash, sizeof hash)), arena, ret_found, ret_item, err);
}

/* ---- by source ---- */

/* The folder above; false at the top. */
static bool go_up(qr_str *path)
{
    while (path->len > 1 && path->ptr[path->len - 1] != '/') {
        path->len--;
    }
    if (path->len <= 1) {
        return false;
    }
    path->len--;
    return true;
}

/* Down from a root that was added, by the names between. */
static qr_rc descend(struct qr_tx *tx, qr_str rest, struct qr_arena *arena, bool *ret_found, struct qr_item *item,
                     qr_err *err)
{
    while (*ret_found && rest.len) {
        const qr_str name = qr_str_split(&rest, '/');
        if (name.len) {
            QR_TRY(qr_item_find_key(tx, item->id, name, arena, ret_found, item, err));
        }
    }
    return QR_OK;
}

qr_rc qr_item_find_source(struct qr_tx *tx, qr_uuid base_id, qr_str source, struct qr_arena *arena, bool *ret_found,
                          struct qr_item *ret_item, qr_err *err)
{
    qr_str above = source;
    do {
        QR_TRY(qr_item_find_root(tx, base_id, above, arena, ret_found, ret_item, err));
        if (*ret_found) {
            const qr_str rest = {source.ptr + above.len, source.len - above.len};
            QR_TRY(descend(tx, rest, arena, ret_found, ret_item, err));
        }
    } while (!*ret_found && go_up(&above));
    return QR_OK;
}

qr_rc qr_item_find_prefix(struct qr_tx *tx, qr_uuid base_id, qr_str prefix, qr_uuid *ret_id, qr_err *err)
{
    /* "NOT <>": with "=" SQLite would go through all items of the base */
    return qr_find_by_prefix(tx, "SELECT id FROM item WHERE id >= ?1 AND id <= ?2 AND NOT base_id <> ?3 LIMIT 2",
                             &base_id, prefix, "item", ret_id, err);
}

/* ---- the way to the root ---- */

static qr_rc path_has(struct qr_tx *tx, qr_str path, const char *sql, bool *ret_has, qr_err *err)
{
    *ret_has = false;
    for (size_t at = 0; at + QR_UUID_BYTES <= path.len && !*ret_has; at += QR_UUID_BYTES) {
        int64_t ignored;
        QR_TRY(qr_tx_get_i64(tx, sql, QR_VALS(qr_val_blob(path.ptr + at, QR_UUID_BYTES)), ret_has, &ignored, err));
    }
    return QR_OK;
}

qr_rc qr_item_path_is_deleting(struct qr_tx *tx, qr_str path, bool *ret_is, qr_err *err)
{
    return path_has(tx, path, "SELECT 1 FROM item WHERE id = ?1 AND status = 8", ret_is, err);
}

qr_rc qr_item_path_is_disabled(struct qr_tx *tx, qr_str path, bool *ret_is, qr_err *err)
{
    return path_has(tx, path, "SELECT 1 FROM item WHERE id = ?1 AND enabled = 0", ret_is, err);
}

/* ---- history ---- */

qr_rc qr_item_note_generation(struct qr_tx *tx, qr_uuid item_id, int64_t generation, const char *reason, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(
        tx, "INSERT INTO item_generation (item_id, generation, at, reason) VALUES (?1, ?2, ?3, ?4)",
        QR_VALS(qr_val_uuid(&item_id), qr_val_i64(generation), qr_val_i64(now_ms), qr_val_text(qr_str_of(reason))),
        NULL, err);
}

qr_rc qr_item_generations(struct qr_tx *tx, qr_uuid item_id, struct qr_arena *arena,
                          struct qr_generation_note **ret_notes, size_t *ret_count, qr_err *err)
{
    enum { SHOWN_MAX = 100 };
    *ret_count = 0;
    *ret_notes = qr_arena_array(arena, SHOWN_MAX, sizeof(struct qr_generation_note));
    if (!*ret_notes) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an item's history");
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT generation, at, reason FROM item_generation WHERE item_id = ?1 "
                       "ORDER BY generation DESC LIMIT ?2",
                       QR_VALS(qr_val_uuid(&item_id), qr_val_i64(SHOWN_MAX)), err));
    while (qr_rows_next(&rows)) {
        struct qr_generation_note *note = &(*ret_notes)[(*ret_count)++];
        *note = (struct qr_generation_note){.generation = qr_rows_i64(&rows, 0),
                                            .at_ms = qr_rows_i64(&rows, 1),
                                            .reason = qr_arena_copy(arena, qr_rows_str(&rows, 2))};
        if (!note->reason) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an item's history");
        }
    }
    return qr_rows_end(&rows, err);
}
