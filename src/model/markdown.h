/* The little that we know of Markdown while we read plain text: headings, fenced code, and what is white space. Pure. */
#pragma once

#include "base/str.h"

/* The bytes of the white space character that the text begins with, 0 when it begins otherwise. Valid UTF-8. */
size_t qr_space_len(qr_str text);
bool qr_is_blank(qr_str text);

/* Fenced code that is open: begins with `len` or more of the character. All zero = none is. */
struct qr_md_fence {
    char mark;
    size_t len;
};

enum qr_md_kind { QR_MD_TEXT, QR_MD_HEADING, QR_MD_FENCE };

struct qr_md_line {
    enum qr_md_kind kind;
    int level;    /* of a heading, 1–6 */
    qr_str title; /* of a heading, without its marks; may be empty */
};

/* Longer lines need not be given whole: no fence has such a line, and headings are cut. */
enum { QR_MD_LINE_BYTES_MAX = 1024 };

/* What a line is, given without its end, and whether code is open behind it. */
struct qr_md_line qr_md_take_line(struct qr_md_fence *fence, qr_str line);
