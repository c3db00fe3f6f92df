/* Vectors of the stores in memory, one array a base and model, so that a search by vectors reads no rows. Shared by all threads;
 * private to src/index/. Files only: of PostgreSQL's tables other processes write, too.
 *
 * A1  Whoever changed rows of an item says so after the commit and before its caller is told (qr_vector_arrays_mark). A search
 *     reads anew what was marked before it began; so it knows whatever was acknowledged by then, and of what is being written
 *     it may know some, like a search that reads the rows.
 * A2  One thread reads for all who want the same array, and they wait for it: each reading for itself would take as long. What
 *     is marked while it reads stays marked.
 * A3  All arrays together, and whatever is read to get into one, take no more than `bytes_max`. Who needs more takes it from
 *     those that have not been used for the longest time, but for the last RECENT_USES searches: bases that are searched in turn
 *     and do not fit together would take it from each other all the time. Where there is no room the rows are read, as without
 *     arrays, and for the next RECENT_USES searches nobody tries.
 * A4  An array of which much has changed since anybody looked is forgotten: reading it all is faster. */
#pragma once

#include "base/sync.h"
#include "index/vector_content.h"

struct vector_array;

struct vector_arrays {
    size_t bytes_max; /* 0 = none is kept */
    struct qr_mutex lock;
    struct qr_signal changed;
    struct vector_array *first; /* a list */
    size_t bytes;               /* granted to all (A3) */
    uint64_t uses;
};

void qr_vector_arrays_init(struct vector_arrays *arrays, size_t bytes_max);
void qr_vector_arrays_done(struct vector_arrays *arrays);

/* The vectors of the item may have changed (A1); also of a write that failed: whether it was stored may not be known. */
void qr_vector_arrays_mark(struct vector_arrays *arrays, qr_uuid base_id, qr_uuid item_id);
/* Everything of the base may have. */
void qr_vector_arrays_forget(struct vector_arrays *arrays, qr_uuid base_id);

/* What is to be read from one snapshot, begun after this was asked for. */
struct vector_reading {
    struct qr_vector_space space;
    bool is_whole;                 /* all items, not only those: */
    struct qr_map items;           /* ids */
    struct vector_content content; /* to be filled; room may run out */
    bool is_out_of_room;           /* then the rest need not be read */
};
typedef qr_rc vector_read_fn(void *arg, struct vector_reading *reading, qr_err *err);

/* Offers all vectors of the base and model that may be shown. False: nothing was offered, the rows are to be read instead. */
struct vector_search {
    qr_uuid base_id;
    struct qr_vector_space space;
    const struct cosine *cosine;
    vector_read_fn *read;
    void *read_arg;
};
qr_rc qr_vector_arrays_search(struct vector_arrays *arrays, const struct vector_search *search, struct hits *hits,
                              bool *ret_is_done, qr_err *err);
