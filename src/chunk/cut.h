/* Where a piece that begins at a place should end. */
#pragma once

#include "base/str.h"
#include "model/markdown.h"

/* Costs are in quarters of a token, so that they add up without rounding. */
enum { QR_QUARTERS_PER_TOKEN = 4 };

/* A byte is a quarter, a character of CJK a whole token; white space is one quarter however long, and none at the ends. */
int64_t qr_quarters(qr_str text);

struct qr_cut_from {
    qr_str text;               /* no further than the piece may go */
    size_t start;              /* of what is new in the piece */
    int64_t quarters_max;      /* for it */
    int64_t code_quarters_max; /* fenced code up to this is never cut */
    struct qr_md_fence fence;  /* open at the start */
    int level;                 /* of the heading that the start is under; 0 = none */
};

struct qr_cut {
    size_t end;       /* behind the last visible character; equal to the start = there is none any more */
    size_t next;      /* where the rest begins */
    bool is_section;  /* the rest begins a section, or there is no rest */
    bool is_too_long; /* there was no place in time: it takes more than quarters_max */
};

/* Reads no further than the size allows and what white space there is. */
struct qr_cut qr_cut_find(const struct qr_cut_from *from);

/* Where to begin so that the next piece repeats at most `quarters_max` of [start, end): at a sentence, or else at a word;
 * `end` when there is no such place. */
size_t qr_cut_overlap(const struct qr_cut_from *from, size_t end, int64_t quarters_max);
