/* Answers that do not say the same thing again and again. Pure, but for the arena. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct qr_diverse_text {
    qr_str text;
    double score; /* best first */
};

/* Chooses `wanted` of the texts: each next one by its score, less what it has in common with those chosen before.
 * `diversity` from 0 (the order stays) to 1 (only what is new counts). *ret_order: places in `texts`, of at most `wanted`
 * chosen. */
qr_rc qr_diverse(const struct qr_diverse_text *texts, size_t count, double diversity, size_t wanted,
                 struct qr_arena *arena, size_t **ret_order, size_t *ret_count, qr_err *err);
