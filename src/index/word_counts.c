/* A map that is emptied when it is full or too old. */
#include "index/word_counts.h"

enum {
    WORDS_MAX = 4096, /* about 400 KB */
    CHANGED_SHARE = 10,
};

bool qr_word_is_everywhere(const struct word_state *state, int64_t count)
{
    enum { EVERYWHERE_PERCENT = 60 };
    return count * 100 > state->rows * EVERYWHERE_PERCENT;
}

void qr_word_counts_init(struct word_counts *counts, uint64_t seed)
{
    *counts = (struct word_counts){0};
    qr_mutex_init(&counts->lock);
    qr_map_init(&counts->words, seed);
}

void qr_word_counts_done(struct word_counts *counts)
{
    qr_map_done(&counts->words);
    qr_mutex_done(&counts->lock);
}

static void forget(struct word_counts *counts)
{
    const uint64_t seed = counts->words.seed;
    qr_map_done(&counts->words);
    qr_map_init(&counts->words, seed);
}

/* Under the lock. */
static void forget_old(struct word_counts *counts, const struct word_state *state)
{
    const int64_t allowed = counts->rows / CHANGED_SHARE;
    const int64_t added = state->last_id - counts->last_id, gone = counts->rows - state->rows;
    if (added < 0 || added > allowed || gone > allowed) {
        forget(counts);
        counts->rows = state->rows;
        counts->last_id = state->last_id;
    }
}

bool qr_word_counts_find(struct word_counts *counts, const struct word_state *state, qr_str word, int64_t *ret_count)
{
    QR_HOLD(&counts->lock);
    forget_old(counts, state);
    const void *known = qr_map_find(&counts->words, word);
    if (known) {
        *ret_count = (int64_t)(uintptr_t)known - 1;
    }
    return known != NULL;
}

void qr_word_counts_put(struct word_counts *counts, const struct word_state *state, qr_str word, int64_t count)
{
    QR_HOLD(&counts->lock);
    forget_old(counts, state);
    if (counts->words.count >= WORDS_MAX) {
        forget(counts);
    }
    const bool is_known QR_UNUSED = qr_map_put(&counts->words, word, (void *)(uintptr_t)(count + 1));
}
