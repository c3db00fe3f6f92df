/* A place where the text may be cut: between two visible characters. White space there belongs to no piece. */
#pragma once

#include "base/str.h"

/* How good a place is. What lies between two places of one strength is a unit that is cut only where it must be. */
enum qr_strength {
    QR_NO_PLACE,
    QR_AT_CHARACTER, /* as people see them */
    QR_AT_WORD,
    QR_AT_LINE,
    QR_AT_SENTENCE,
    QR_AT_UNIT_DEEPEST, /* items of lists, rows, entries, members: an enclosing one is stronger */
    QR_AT_UNIT = QR_AT_UNIT_DEEPEST + 15,
    QR_AT_BLOCK, /* paragraphs, code, tables */
    QR_AT_RULE,  /* a line drawn by the author */
    QR_AT_SECTION,
    QR_AT_BORDER, /* the separator that was asked for: always cut */
};

static inline enum qr_strength qr_at_unit(int depth)
{
    return (enum qr_strength)(QR_AT_UNIT - QR_MIN(depth, QR_AT_UNIT - QR_AT_UNIT_DEEPEST));
}

struct qr_place {
    size_t end;     /* behind the last visible character before it */
    size_t next;    /* where what follows begins, its indentation with it */
    size_t visible; /* and its first visible character */
    /* what all the text costs up to `end`, and up to `next` with the white space between them */
    int64_t end_quarters, next_quarters;
    int64_t end_line, next_line; /* from 1 */
    enum qr_strength strength;
    int level;     /* of the heading that what follows is under, of a section its own; 0 = none */
    bool is_prose; /* what follows has sentences */
};

/* Of what follows the place, so that among equals the choice depends on the text there alone. */
uint64_t qr_place_hash(qr_str text, size_t next, enum qr_strength strength);
