/* Goes through the items of a subtree. */
#include "store/items_facts.h"

#include "store/ids.h"
#include "store/items_row.h"

#include <assert.h>

struct qr_item_facts qr_item_facts_of(const struct qr_item *item)
{
    return (struct qr_item_facts){.id = item->id,
                                  .path = item->path,
                                  .type = item->type,
                                  .name = qr_str_of(item->name),
                                  .source = item->source,
                                  .attributes = qr_str_of(item->attributes)};
}

static qr_rc visit(struct qr_tx *tx, qr_uuid base_id, qr_str end, int limit, struct qr_item_cursor *cursor,
                   qr_item_facts_fn *fn, void *arg, size_t *ret_count, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id, path, type, name, source, attributes FROM item WHERE base_id = ?1 AND path > ?2 AND "
                       "path < ?3 AND live_generation > 0 ORDER BY path LIMIT ?4",
                       QR_VALS(qr_val_uuid(&base_id), qr_val_blob(cursor->path, cursor->path_len),
                               qr_val_blob(end.ptr, end.len), qr_val_i64(limit)),
                       err));
    *ret_count = 0;
    while (qr_rows_next(&rows)) {
        const struct qr_item_facts facts = {.id = qr_rows_uuid(&rows, 0),
                                            .path = qr_rows_str(&rows, 1),
                                            .type = (enum qr_item_type)qr_rows_i64(&rows, 2),
                                            .name = qr_rows_str(&rows, 3),
                                            .source = qr_rows_str(&rows, 4),
                                            .attributes = qr_rows_str(&rows, 5)};
        cursor->path_len = QR_MIN(facts.path.len, sizeof cursor->path);
        memcpy(cursor->path, facts.path.ptr, cursor->path_len);
        QR_TRY(fn(arg, &facts, err));
        ++*ret_count;
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_items_facts(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, int limit, struct qr_item_cursor *cursor,
                     qr_item_facts_fn *fn, void *arg, size_t *ret_count, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    qr_str end = QR_STR("\xff"); /* behind every path: ids are UUIDv7 */
    if (root_path.len) {
        QR_TRY(qr_path_end(root_path, &arena, &end, err));
    }
    if (cursor->path_len == 0 && root_path.len) {
        assert(root_path.len <= sizeof cursor->path);
        memcpy(cursor->path, root_path.ptr, root_path.len);
        cursor->path_len = root_path.len;
    }
    return visit(tx, base_id, end, limit, cursor, fn, arg, ret_count, err);
}
