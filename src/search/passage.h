/* Chunks that stand beside each other, as one piece of text to read. Pure, but for the arena. */
#pragma once

#include "index/index.h"

/* Chunks of one item and generation, in their order, without a gap; `count` of at least 1. Texts that overlap are joined
 * where they do; what was white space between two chunks becomes a line break, or an empty line. The ordinal and the
 * heading are those of the first. */
qr_rc qr_passage_join(const struct qr_chunk *chunks, size_t count, struct qr_arena *arena, struct qr_chunk *ret_passage,
                      qr_err *err);
