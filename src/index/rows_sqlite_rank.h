/* The best rows of a SQLite store with any of some words. Private to src/index/. */
#pragma once

#include "index/hits.h"
#include "index/row_lengths.h"
#include "index/rows.h"
#include "index/word_counts.h"

struct rows_rank {
    const qr_str *words; /* of index/words.h, with their other forms; each once */
    size_t word_count;
    bool leaves_out;         /* words that occur nearly everywhere (F1 of rows_sqlite_search.c) */
    struct word_state state; /* of the whole store */
    int64_t places;          /* words in it */
    struct word_counts *counts;
    struct row_lengths *lengths;
};

/* Fills the hits, best first: the order and the scores of FTS5's bm25(). */
qr_rc qr_rows_sqlite_rank(struct qr_tx *tx, const struct rows_rank *rank, struct hits *hits, size_t *ret_left_out,
                          qr_err *err);

/* A number as SQLite and FTS5 write it, taken from the beginning of the bytes. */
int64_t qr_rows_sqlite_take_number(qr_str *bytes);
