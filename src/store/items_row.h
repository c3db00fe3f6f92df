/* How items look in rows. Private to src/store/. */
#pragma once

#include "store/items.h"

#define QR_ITEM_COLUMNS                                                                                                \
    "id, base_id, parent_id, depth, path, type, is_container, name, key, source, mime, size_bytes, mtime_ns, "         \
    "content_hash, status, generation, live_generation, text_generation, chunk_generation, expanded_generation, "      \
    "force_generation, seen_generation, n_completed, n_failed, n_active, n_idle, expand_code, error_stage, "           \
    "error_code, error_message, error_generation, error_at, warnings, enabled, attributes, options, chunk_count, "     \
    "token_count, wanted, run_id, ticket, ticket_at, created_at, updated_at, indexed_at, "                             \
    "cleanup_job_id, kept_generation, made_of, no_links"

/* The item in the current row of QR_ITEM_COLUMNS; texts are copied to the arena. */
qr_rc qr_rows_item(const struct qr_rows *rows, struct qr_arena *arena, struct qr_item *ret_item, qr_err *err);

/* A list of items that grows while rows are read. */
struct qr_item_list {
    struct qr_arena *arena;
    struct qr_item *items;
    size_t count, capacity;
};
qr_rc qr_item_list_add(struct qr_item_list *list, const struct qr_rows *rows, qr_err *err);

/* The smallest bytes that are greater than every path below this one; in the arena. */
qr_rc qr_path_end(qr_str path, struct qr_arena *arena, qr_str *ret_end, qr_err *err);

/* ---- items_sort.c: lists in an order other than the tree's ---- */

/* Begins the rows of the filter's order, behind filter->after; at most `limit`. Of a large folder there may be others among
 * them. */
qr_rc qr_items_query_sorted(struct qr_tx *tx, const struct qr_item_filter *filter, int limit, struct qr_rows *rows,
                            qr_err *err);
/* What `after` is to be, to go on behind this item; in the arena. NULL when out of memory. */
const char *qr_item_sort_place(const struct qr_item_filter *filter, const struct qr_item *item, struct qr_arena *arena,
                               size_t *ret_len);
