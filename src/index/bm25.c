/* Scores are summed up by merging the rows of each word into those found before: both are in the order of their ids. */
#include "index/bm25.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

/* Those of FTS5. */
static const double k1 = 1.2, b = 0.75, idf_min = 1e-6;

void qr_bm25_init(struct bm25 *bm25, int64_t rows, int64_t places)
{
    *bm25 = (struct bm25){.rows = (double)rows, .average_length = rows ? (double)places / (double)rows : 0};
}

void qr_bm25_done(struct bm25 *bm25)
{
    qr_free(bm25->found);
    qr_free(bm25->spare);
}

/* ---- words ---- */

static double idf_of(double rows, double count)
{
    const double idf = log((rows - count + 0.5) / (count + 0.5));
    return idf > 0 ? idf : idf_min;
}

static double score_of(const struct bm25 *bm25, const struct bm25_posting *posting, double idf)
{
    const double frequency = (double)posting->frequency;
    const double length = (double)posting->length;
    return idf * ((frequency * (k1 + 1.0)) / (frequency + k1 * (1 - b + b * length / bm25->average_length)));
}

static bool make_room(struct bm25 *bm25, size_t count)
{
    if (count <= bm25->spare_capacity) {
        return true;
    }
    struct bm25_row *spare = count <= SIZE_MAX / sizeof *spare ? qr_resize(bm25->spare, count * sizeof *spare) : NULL;
    if (!spare) {
        return false;
    }
    bm25->spare = spare;
    bm25->spare_capacity = count;
    return true;
}

static void swap_rooms(struct bm25 *bm25, size_t count)
{
    struct bm25_row *rows = bm25->found;
    const size_t capacity = bm25->capacity;
    bm25->found = bm25->spare;
    bm25->capacity = bm25->spare_capacity;
    bm25->count = count;
    bm25->spare = rows;
    bm25->spare_capacity = capacity;
}

bool qr_bm25_add_word(struct bm25 *bm25, const struct bm25_posting *postings, size_t count)
{
    const double idf = idf_of(bm25->rows, (double)count);
    if (count == 0) {
        return true;
    }
    if (!make_room(bm25, bm25->count + count)) {
        return false;
    }
    const struct bm25_row *before = bm25->found, *before_end = before + bm25->count;
    const struct bm25_posting *end = postings + count;
    struct bm25_row *out = bm25->spare;
    while (postings < end) {
        while (before < before_end && before->id < postings->id) {
            *out++ = *before++;
        }
        *out = (struct bm25_row){.id = postings->id};
        if (before < before_end && before->id == postings->id) {
            out->score = before++->score;
        }
        out++->score += score_of(bm25, postings++, idf);
    }
    while (before < before_end) {
        *out++ = *before++;
    }
    swap_rooms(bm25, (size_t)(out - bm25->spare));
    return true;
}

/* ---- the order ---- */

static bool is_better(const struct bm25_row *a, const struct bm25_row *other)
{
    return a->score != other->score ? a->score > other->score : a->id < other->id;
}

static void sift_down(struct bm25_row *heap, size_t count, size_t at)
{
    const struct bm25_row row = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && is_better(&heap[child + 1], &heap[child]);
        if (!is_better(&heap[child], &row)) {
            break;
        }
        heap[at] = heap[child];
    }
    heap[at] = row;
}

void qr_bm25_order(struct bm25 *bm25)
{
    for (size_t at = bm25->count / 2; at > 0; at--) {
        sift_down(bm25->found, bm25->count, at - 1);
    }
}

bool qr_bm25_take_best(struct bm25 *bm25, struct bm25_row *ret_row)
{
    if (bm25->count == 0) {
        return false;
    }
    *ret_row = bm25->found[0];
    bm25->found[0] = bm25->found[--bm25->count];
    if (bm25->count > 1) {
        sift_down(bm25->found, bm25->count, 0);
    }
    return true;
}
