/* In how many rows of a store words occur, remembered: counting a frequent one again for each query would cost as much as it
 * saves. Private to src/index/. Shared by threads.
 *
 * What it says may be a little old: it forgets everything once a tenth of the rows is new or gone. */
#pragma once

#include "base/map.h"
#include "base/sync.h"

struct word_counts {
    struct qr_mutex lock;
    struct qr_map words; /* → the count plus one, as a pointer */
    int64_t rows, last_id;
};

/* How the store was when a count was made, or is asked for. */
struct word_state {
    int64_t rows;
    int64_t last_id; /* grows with each new row */
};

/* Clearly more than half of the rows have it: a count may be a tenth old (F1 of rows_sqlite_search.c). */
bool qr_word_is_everywhere(const struct word_state *state, int64_t count);

void qr_word_counts_init(struct word_counts *counts, uint64_t seed);
void qr_word_counts_done(struct word_counts *counts);

/* False: not known. */
bool qr_word_counts_find(struct word_counts *counts, const struct word_state *state, qr_str word, int64_t *ret_count);
/* What memory has no room for is not remembered. */
void qr_word_counts_put(struct word_counts *counts, const struct word_state *state, qr_str word, int64_t count);
