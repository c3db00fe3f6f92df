/* What can be asked of an item without reading all of its row: for going through many. */
#pragma once

#include "store/items.h"

struct qr_item_facts {
    qr_uuid id;
    qr_str path; /* of ids */
    enum qr_item_type type;
    qr_str name, source;
    qr_str attributes; /* JSON object, empty = none */
};

struct qr_item_facts qr_item_facts_of(const struct qr_item *item);

/* Must not use the transaction; the texts are borrowed for the call. */
typedef qr_rc qr_item_facts_fn(void *arg, const struct qr_item_facts *facts, qr_err *err);

/* Calls `fn` with what is below the path (empty: everything of the base) and has a live generation, in the order of paths: the
 * next `limit` behind *cursor, which is moved on; an empty cursor is the beginning. */
qr_rc qr_items_facts(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, int limit, struct qr_item_cursor *cursor,
                     qr_item_facts_fn *fn, void *arg, size_t *ret_count, qr_err *err);
