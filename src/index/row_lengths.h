/* How many words each row of a store has, remembered: scoring needs it of every row that a query finds, and asking the database
 * costs more than everything else about the row. An id is never used twice and the words of a row never change (R1 of
 * rows_sqlite.c), so what is known stays true. Shared by all threads. */
#pragma once

#include "base/map.h"
#include "base/sync.h"

enum { LENGTHS_A_PAGE = 128 }; /* rows with ids one behind the other; they are read and remembered together */

struct row_lengths {
    struct qr_mutex lock;
    struct qr_map pages; /* number → struct lengths_page */
};

struct lengths_page {
    uint32_t of[LENGTHS_A_PAGE]; /* 0 = not known */
};

void qr_row_lengths_init(struct row_lengths *lengths, uint64_t seed);
void qr_row_lengths_done(struct row_lengths *lengths);

/* What is known of the page; false where nothing is. */
bool qr_row_lengths_find(struct row_lengths *lengths, int64_t number, struct lengths_page *ret_page);
/* Adds to what is known. */
void qr_row_lengths_put(struct row_lengths *lengths, int64_t number, const struct lengths_page *page);
