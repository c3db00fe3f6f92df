/* Maximal marginal relevance. Likeness is the share of words that two texts have in common. */
#include "search/diverse.h"

#include "base/hash.h"
#include "text/unicode.h"

#include <stdlib.h>

enum { WORDS_MAX = 400 }; /* of a text: enough to know it again */

struct words {
    uint64_t *hashes; /* sorted, each once */
    size_t count;
};

static int compare_hashes(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool read_words(qr_str text, struct qr_arena *arena, struct words *ret_words)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf folded = {0};
    ret_words->hashes = qr_arena_array(arena, WORDS_MAX, sizeof ret_words->hashes[0]);
    ret_words->count = 0;
    qr_str word;
    while (ret_words->hashes && ret_words->count < WORDS_MAX && (word = qr_word_next(&text, NULL)).len) {
        qr_buf_clear(&folded);
        qr_fold(&folded, word);
        unsigned char hash[QR_HASH_BYTES];
        qr_hash_128(qr_buf_str(&folded), hash);
        memcpy(&ret_words->hashes[ret_words->count++], hash, sizeof ret_words->hashes[0]);
    }
    if (!ret_words->hashes || folded.failed != QR_CODE_NONE) {
        return false;
    }
    qsort(ret_words->hashes, ret_words->count, sizeof ret_words->hashes[0], compare_hashes);
    size_t unique = 0;
    for (size_t i = 0; i < ret_words->count; i++) {
        if (i == 0 || ret_words->hashes[i] != ret_words->hashes[unique - 1]) {
            ret_words->hashes[unique++] = ret_words->hashes[i];
        }
    }
    ret_words->count = unique;
    return true;
}

static double likeness(const struct words *a, const struct words *b)
{
    size_t common = 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const uint64_t x = a->hashes[i], y = b->hashes[j];
        common += x == y;
        i += x <= y;
        j += y <= x;
    }
    const size_t all = a->count + b->count - common;
    return all ? (double)common / (double)all : 1;
}

struct choosing {
    const struct qr_diverse_text *texts;
    size_t count;
    double diversity, best, spread;
    struct words *words;
    double *nearest; /* how like the likest of those chosen it is; below 0 = chosen */
};

static size_t best_of_rest(const struct choosing *choosing)
{
    size_t best = SIZE_MAX;
    double best_value = 0;
    for (size_t i = 0; i < choosing->count; i++) {
        const double relevance =
            choosing->spread > 0 ? (choosing->texts[i].score - choosing->best) / choosing->spread : 0;
        const double value = (1 - choosing->diversity) * (1 + relevance) - choosing->diversity * choosing->nearest[i];
        if (choosing->nearest[i] >= 0 && (best == SIZE_MAX || value > best_value)) {
            best = i;
            best_value = value;
        }
    }
    return best;
}

static void choose(struct choosing *choosing, size_t chosen)
{
    choosing->nearest[chosen] = -1;
    for (size_t i = 0; i < choosing->count; i++) {
        if (choosing->nearest[i] >= 0) {
            choosing->nearest[i] =
                QR_MAX(choosing->nearest[i], likeness(&choosing->words[i], &choosing->words[chosen]));
        }
    }
}

qr_rc qr_diverse(const struct qr_diverse_text *texts, size_t count, double diversity, size_t wanted,
                 struct qr_arena *arena, size_t **ret_order, size_t *ret_count, qr_err *err)
{
    struct choosing choosing = {
        .texts = texts,
        .count = count,
        .diversity = diversity,
        .best = count ? texts[0].score : 0,
        .spread = count ? texts[0].score - texts[count - 1].score : 0,
        .words = qr_arena_array(arena, count + 1, sizeof *choosing.words),
        .nearest = qr_arena_array(arena, count + 1, sizeof *choosing.nearest),
    };
    size_t *order = qr_arena_array(arena, wanted + 1, sizeof *order);
    bool ok = choosing.words && choosing.nearest && order;
    for (size_t i = 0; ok && i < count; i++) {
        ok = read_words(texts[i].text, arena, &choosing.words[i]);
    }
    if (!ok) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
    }
    *ret_count = 0;
    while (*ret_count < QR_MIN(wanted, count)) {
        order[*ret_count] = best_of_rest(&choosing);
        choose(&choosing, order[(*ret_count)++]);
    }
    *ret_order = order;
    return QR_OK;
}
