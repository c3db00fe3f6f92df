/* What the cleanups of items and bases take away, in steps of bounded size. */
#pragma once

#include "store/items.h"

/* All items of a base, in the order of their paths backward, so that children come before their parents; below `before`
 * (empty = from the end). */
qr_rc qr_items_of_base(struct qr_tx *tx, qr_uuid base_id, qr_str before, int limit, struct qr_arena *arena,
                       struct qr_item **ret_items, size_t *ret_count, qr_err *err);
/* Cancels open jobs of a base but deletes, at most `limit`; *ret_count 0: there is none left. */
qr_rc qr_jobs_cancel_of_base(struct qr_tx *tx, qr_uuid base_id, const char *code, const char *message, int limit,
                             size_t *ret_count, qr_err *err);
/* Removes events and runs, at most about `limit` of each; *ret_count 0: nothing is left. */
qr_rc qr_base_clear(struct qr_tx *tx, qr_uuid base_id, int limit, int64_t *ret_count, qr_err *err);
