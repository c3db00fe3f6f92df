/* The best hits of a scan: the caller's filter, cosines, and the `limit` best in the caller's array. Pure but for the
 * filter. */
#pragma once

#include "index/index.h"

struct hits {
    struct qr_index_hit *hits; /* the caller's; room for `limit` */
    size_t limit, count;
    qr_index_filter_fn *filter; /* may be NULL */
    void *filter_arg;
    /* the last answer: chunks of one item mostly come one after the other */
    qr_uuid asked_item;
    int64_t asked_generation;
    bool was_asked, answer;
};

void qr_hits_init(struct hits *hits, struct qr_index_hit *room, int limit, qr_index_filter_fn *filter, void *arg);
/* Whether the filter lets it through. */
bool qr_hits_may_show(struct hits *hits, qr_uuid item_id, int64_t generation);
static inline bool qr_hits_is_full(const struct hits *hits)
{
    return hits->count == hits->limit;
}

/* For scans in the order of rank: behind those before it. There must be room. */
void qr_hits_append(struct hits *hits, const struct qr_index_hit *hit);

/* For scans in any order: keeps it while it is among the best. Until qr_hits_sort the array is a heap. */
void qr_hits_offer(struct hits *hits, const struct qr_index_hit *hit);
/* Best first; equal scores in the order of (item, generation, ordinal). */
void qr_hits_sort(struct hits *hits);

/* A vector that many are compared with. */
struct cosine {
    const float *vector;
    size_t dimension;
    double length;
    float *other; /* room for one, aligned */
};
qr_rc qr_cosine_init(struct cosine *cosine, const float *vector, int dimension, qr_err *err);
void qr_cosine_done(struct cosine *cosine);
/* With the vector in `bytes`, `dimension` floats in memory order; 0 where it is none or has no direction. */
double qr_cosine_with(const struct cosine *cosine, qr_str bytes);
/* The same of floats whose length is known: to the last bit. */
double qr_cosine_of(const struct cosine *cosine, const float *vector, double length);
double qr_vector_length(const float *vector, size_t dimension);
