/* See vector_counts.h. */
#include "handler/vector_counts.h"

enum { STORE_EVERY_MS = 60000 };

static qr_rc add_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_vector_count_add(tx, arg, err);
}

/* Who takes a number writes it: two threads at once store no hit twice. */
void qr_vector_counts_store(struct qr_vector_counts *counts, struct qr_db *db)
{
    struct qr_vector_count taken = {.hits = atomic_exchange(&counts->hits, 0),
                                    .misses = atomic_exchange(&counts->misses, 0)};
    if (taken.hits == 0 && taken.misses == 0) {
        return;
    }
    if (qr_db_write(db, QR_RELAXED, add_in_tx, &taken, NULL) != QR_OK) {
        atomic_fetch_add(&counts->hits, taken.hits);
        atomic_fetch_add(&counts->misses, taken.misses);
    }
}

void qr_vector_counts_add(struct qr_vector_counts *counts, struct qr_db *db, const struct qr_clock *clock, size_t hits,
                          size_t misses)
{
    if (!counts) {
        return;
    }
    const int64_t now_ms = qr_clock_mono_ms(clock);
    int64_t stored_ms = atomic_load(&counts->stored_mono_ms);
    atomic_fetch_add(&counts->hits, (int64_t)hits);
    atomic_fetch_add(&counts->misses, (int64_t)misses);
    if (stored_ms == 0) {
        atomic_compare_exchange_strong(&counts->stored_mono_ms, &stored_ms, now_ms);
    } else if (now_ms - stored_ms >= STORE_EVERY_MS &&
               atomic_compare_exchange_strong(&counts->stored_mono_ms, &stored_ms, now_ms)) {
        qr_vector_counts_store(counts, db); /* only whoever moved the time */
    }
}
