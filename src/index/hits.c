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

enum { LANES = 16 }; /* partial sums, so that the compiler may add several at once, and none waits for the one before */

static double multiply(const float *a, const float *b, size_t dimension)
{
    float sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= dimension; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            sums[lane] += a[i + lane] * b[i + lane];
        }
    }
    for (; i < dimension; i++) {
        sums[i % LANES] += a[i] * b[i];
    }
    double sum = 0;
    for (size_t lane = 0; lane < LANES; lane++) {
        sum += (double)sums[lane];
    }
    return sum;
}

double qr_vector_length(const float *vector, size_t dimension)
{
    return sqrt(multiply(vector, vector, dimension));
}

qr_rc qr_cosine_init(struct cosine *cosine, const float *vector, int dimension, qr_err *err)
{
    assert(dimension > 0);
    *cosine = (struct cosine){.vector = vector, .dimension = (size_t)dimension};
    cosine->other = qr_alloc_array((size_t)dimension, sizeof *cosine->other);
    if (!cosine->other) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a vector");
    }
    cosine->length = qr_vector_length(vector, cosine->dimension);
    return QR_OK;
}

void qr_cosine_done(struct cosine *cosine)
{
    qr_free(cosine->other);
}

double qr_cosine_of(const struct cosine *cosine, const float *vector, double length)
{
    const double product = multiply(cosine->vector, vector, cosine->dimension), lengths = cosine->length * length;
    return lengths > 0 && isfinite(lengths) && isfinite(product) ? product / lengths : 0;
}

double qr_cosine_with(const struct cosine *cosine, qr_str bytes)
{
    if (bytes.len != cosine->dimension * sizeof *cosine->other) {
        return 0; /* a damaged row */
    }
    memcpy(cosine->other, bytes.ptr, bytes.len);
    return qr_cosine_of(cosine, cosine->other, qr_vector_length(cosine->other, cosine->dimension));
}
