/* Keeps the best hits of a scan. */
#include "index/hits.h"

#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

void qr_hits_init(struct hits *hits, struct qr_index_hit *room, int limit, qr_index_filter_fn *filter, void *arg)
{
    *hits = (struct hits){.hits = room, .limit = limit > 0 ? (size_t)limit : 0, .filter = filter, .filter_arg = arg};
}

bool qr_hits_may_show(struct hits *hits, qr_uuid item_id, int64_t generation)
{
    if (!hits->filter) {
        return true;
    }
    if (!hits->was_asked || hits->asked_generation != generation || !qr_uuid_equal(hits->asked_item, item_id)) {
        hits->answer = hits->filter(hits->filter_arg, item_id, generation);
        hits->asked_item = item_id;
        hits->asked_generation = generation;
        hits->was_asked = true;
    }
    return hits->answer;
}

void qr_hits_append(struct hits *hits, const struct qr_index_hit *hit)
{
    assert(hits->count < hits->limit);
    hits->hits[hits->count++] = *hit;
}

/* ---- the heap: the worst is on top ---- */

static int compare_i64(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

int qr_index_hit_compare(const void *a_ptr, const void *b_ptr)
{
    const struct qr_index_hit *a = a_ptr, *b = b_ptr;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    const int by_item = memcmp(a->item_id.bytes, b->item_id.bytes, QR_UUID_BYTES);
    if (by_item != 0) {
        return by_item;
    }
    const int by_generation = compare_i64(a->generation, b->generation);
    return by_generation ? by_generation : compare_i64(a->ordinal, b->ordinal);
}

static void swap(struct qr_index_hit *a, struct qr_index_hit *b)
{
    const struct qr_index_hit kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_up(struct qr_index_hit *heap, size_t at)
{
    while (at > 0 && qr_index_hit_compare(&heap[at], &heap[(at - 1) / 2]) > 0) {
        swap(&heap[at], &heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct qr_index_hit *heap, size_t count)
{
    for (size_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && qr_index_hit_compare(&heap[child + 1], &heap[child]) > 0) {
            child++;
        }
        if (qr_index_hit_compare(&heap[child], &heap[at]) <= 0) {
            return;
        }
        swap(&heap[child], &heap[at]);
    }
}

void qr_hits_offer(struct hits *hits, const struct qr_index_hit *hit)
{
    if (hits->count < hits->limit) {
        hits->hits[hits->count] = *hit;
        sift_up(hits->hits, hits->count++);
    } else if (hits->limit > 0 && qr_index_hit_compare(hit, &hits->hits[0]) < 0) {
        hits->hits[0] = *hit;
        sift_down(hits->hits, hits->count);
    }
}

void qr_hits_sort(struct hits *hits)
{
    if (hits->count > 1) {
        qsort(hits->hits, hits->count, sizeof *hits->hits, qr_index_hit_compare);
    }
}

/* ---- cosines ---- */

enum { LANES = 8 }; /* partial sums, so that the compiler may add several at once */

/* The product of both, and of `b` with itself. */
static void multiply(const float *a, const float *b, size_t dimension, double *ret_ab, double *ret_bb)
{
    float ab[LANES] = {0}, bb[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= dimension; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            ab[lane] += a[i + lane] * b[i + lane];
            bb[lane] += b[i + lane] * b[i + lane];
        }
    }
    for (; i < dimension; i++) {
        ab[i % LANES] += a[i] * b[i];
        bb[i % LANES] += b[i] * b[i];
    }
    *ret_ab = *ret_bb = 0;
    for (size_t lane = 0; lane < LANES; lane++) {
        *ret_ab += (double)ab[lane];
        *ret_bb += (double)bb[lane];
    }
}

qr_rc qr_cosine_init(struct cosine *cosine, const float *vector, int dimension, qr_err *err)
{
    assert(dimension > 0);
    *cosine = (struct cosine){.vector = vector, .dimension = (size_t)dimension};
    cosine->other = qr_alloc_array((size_t)dimension, sizeof *cosine->other);
    if (!cosine->other) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a vector");
    }
    double ab, bb;
    multiply(vector, vector, cosine->dimension, &ab, &bb);
    cosine->length = sqrt(bb);
    return QR_OK;
}

void qr_cosine_done(struct cosine *cosine)
{
    qr_free(cosine->other);
}

double qr_cosine_with(const struct cosine *cosine, qr_str bytes)
{
    if (bytes.len != cosine->dimension * sizeof *cosine->other) {
        return 0; /* a damaged row */
    }
    memcpy(cosine->other, bytes.ptr, bytes.len);
    double ab, bb;
    multiply(cosine->vector, cosine->other, cosine->dimension, &ab, &bb);
    const double length = cosine->length * sqrt(bb);
    return length > 0 && isfinite(length) && isfinite(ab) ? ab / length : 0;
}
