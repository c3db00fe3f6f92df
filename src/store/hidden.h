/* What search must not show: statements about what is deleting or not enabled, and everything below it. */
#pragma once

#include "store/items.h"

/* 0 when there is no such base. */
qr_rc qr_base_vis_seq(struct qr_tx *tx, qr_uuid base_id, int64_t *ret_seq, qr_err *err);

/* The topmost of the item's ancestors, or itself, that is deleting or not enabled: it is where *ret_len bytes of the path
 * end; 0 = none of them is. */
qr_rc qr_item_hidden_by(struct qr_tx *tx, qr_str path, size_t *ret_len, bool *ret_is_deleting, qr_err *err);
/* Whether the item itself is deleting or not enabled. False of one that is gone. */
qr_rc qr_item_hides(struct qr_tx *tx, qr_uuid id, bool *ret_hides, qr_err *err);

/* Ids of what is below the path, the next `limit` behind *cursor, which is moved on; an empty cursor is the beginning. Looks
 * at an index only. */
qr_rc qr_ids_below(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, int limit, struct qr_item_cursor *cursor,
                   qr_uuid *ret_ids, size_t *ret_count, qr_err *err);
/* Ids of items of the base that are marked as deleting themselves: the next `limit` looked at above *after, of all bases,
 * which is moved on; *ret_more: there may be more. */
qr_rc qr_ids_deleting(struct qr_tx *tx, qr_uuid base_id, int limit, qr_uuid *after, qr_uuid *ret_ids, size_t *ret_count,
                      bool *ret_more, qr_err *err);
