/* Inside what has no places of its own that help: a long line, code, a row, a sentence without an end. */
#pragma once

#include "chunk/place.h"

/* No more of what belongs to one character is kept together: 32 marks, or a large family. */
enum { QR_GRAPHEME_BYTES_MAX = 128 };

struct qr_cut_from {
    qr_str text;
    struct qr_place start;              /* what is cut begins at its `next` */
    int64_t quarters_min, quarters_max; /* of what is cut off; at least one character is, whatever it takes */
    uint64_t *work;                     /* counts the bytes that are looked at; may be NULL */
};

/* Between empty lines, then lines and sentences, then words, then characters. There is visible text beyond quarters_max. */
struct qr_place qr_cut_find(const struct qr_cut_from *from);

/* Where to begin so that the next piece repeats at most `quarters_max` of [start, end): at a sentence or a line, or else at
 * a word; `end` when there is no such place. *ret_quarters: what is repeated costs, with white space behind it. */
size_t qr_cut_overlap(const struct qr_cut_from *from, size_t end, int64_t *ret_quarters);
