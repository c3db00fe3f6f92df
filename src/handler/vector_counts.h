/* How often the vector cache had what was looked for: counted in memory, and added to what is stored once a minute and at the end,
 * so that it costs no commit of its own while vectors are made. A process that dies loses a minute of it: they are figures for
 * people, nothing depends on them. */
#pragma once

#include "base/clock.h"
#include "store/vectors.h"

#include <stdatomic.h>

struct qr_vector_counts {         /* all zero at first */
    _Atomic int64_t hits, misses; /* not stored yet */
    _Atomic int64_t stored_mono_ms;
};

/* NULL = nobody counts. */
void qr_vector_counts_add(struct qr_vector_counts *counts, struct qr_db *db, const struct qr_clock *clock, size_t hits,
                          size_t misses);
/* Stores what is not stored yet. What cannot be written now is written later. */
void qr_vector_counts_store(struct qr_vector_counts *counts, struct qr_db *db);
