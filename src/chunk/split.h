/* Text to chunks: verbatim slices of the canonical text, cut where its structure says, then at sentences, words and
 * characters; nothing but white space is lost. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Where nothing else is said; chosen by evaluation. */
enum { QR_SPLIT_SIZE_TOKENS = 400, QR_SPLIT_OVERLAP_TOKENS = 0 };

struct qr_split_options {
    const char *mime;       /* how the text is structured, as convert/convert.h names it; NULL = text/markdown */
    int64_t size_tokens;    /* no chunk has more; most have a third to all of it. 0 = QR_SPLIT_SIZE_TOKENS */
    int64_t overlap_tokens; /* repeated from the chunk before, at most; 0 = none */
    qr_str separator;       /* empty = structure; else split at this text first */
    uint64_t *work;         /* if not NULL, counts the bytes that are looked at, again each time */
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
