/* Search: finds the chunks of a base that fit what a person typed, among those that may be shown now. First form: by
 * words. */
#pragma once

#include "index/index.h"
#include "store/bases.h"
#include "store/items.h"

enum { QR_SEARCH_TOP_K_MAX = 100 };

struct qr_search {
    struct qr_db *db;
    struct qr_index_set *index;
    qr_uuid base_id;
    qr_str query;
    int top_k; /* 1 to QR_SEARCH_TOP_K_MAX */
};

struct qr_search_hit {
    double score;
    const struct qr_item *item;
    struct qr_chunk_row row;
};

/* The best first. Everything lives in the arena. What is shown is decided in one read of the
 * main database (S1). */
qr_rc qr_search_text(const struct qr_search *search, struct qr_arena *arena, struct qr_search_hit **ret_hits,
                     size_t *ret_count, qr_err *err);
