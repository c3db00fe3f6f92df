/* The score of rows by the words that they have: the formula and the numbers of FTS5's bm25(), word by word instead of row by
 * row. Pure.
 *
 * B1  After all words of a query, in its order, each row has the score that bm25() gives it, negated.
 * B2  The best come first, equal ones in the order of their ids, as FTS5 gives them. */
#pragma once

#include "base/err.h"

/* A row that has a word. */
struct bm25_posting {
    int64_t id;
    float frequency; /* of the word, weighted by its columns */
    uint32_t length; /* of the row, in words */
};

struct bm25_row {
    int64_t id;
    double score;
};

struct bm25 {
    double rows, average_length; /* of the whole store */
    struct bm25_row *found;      /* in the order of ids; from bm25_order on a heap */
    size_t count;
    struct bm25_row *spare; /* room for the next ones */
    size_t spare_capacity, capacity;
};

void qr_bm25_init(struct bm25 *bm25, int64_t rows, int64_t places);
void qr_bm25_done(struct bm25 *bm25);
/* The rows that have a word, in the order of their ids. False when out of memory. */
bool qr_bm25_add_word(struct bm25 *bm25, const struct bm25_posting *postings, size_t count) QR_MUST_USE;

/* No word may come any more. */
void qr_bm25_order(struct bm25 *bm25);
/* Takes the best one out; false when there is none left. */
bool qr_bm25_take_best(struct bm25 *bm25, struct bm25_row *ret_row);
