/* Text to chunks: verbatim slices of the canonical text, never inside a character, nothing but white space lost. First
 * form: paragraphs and headings of Markdown, packed to a size. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct qr_split_options {
    int64_t size_tokens;    /* aimed at; 0 = 400 */
    int64_t overlap_tokens; /* repeated from the chunk before; 0 = none */
    qr_str separator;       /* empty = structure; else split at this text first */
};

struct qr_piece {
    int64_t start, end;           /* bytes */
    int64_t line_start, line_end; /* from 1 */
    qr_str heading;               /* "A > B", in the arena; empty = none */
    int64_t token_count;
};

/* `text` is valid UTF-8. Without anything but white space there are no pieces. */
qr_rc qr_split(qr_str text, const struct qr_split_options *options, struct qr_arena *arena,
               struct qr_piece **ret_pieces, size_t *ret_count, qr_err *err);

/* Four bytes of alphabetic text or one CJK character. */
int64_t qr_token_count(qr_str text);
