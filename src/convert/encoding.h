/* Bytes to canonical text: which encoding it is, and the text in UTF-8. Private to convert. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct qr_decoded {
    char *text; /* in the arena; a NUL behind it */
    size_t len;
    const char *charset;
    bool is_guessed; /* by its statistics: it may be wrong */
    bool is_mixed;   /* UTF-8 with lines that are not, or UTF-16 or UTF-32 with parts that are no characters */
};

/* `unsupported_type` for what is not text. `declared`: the name of an encoding that the content itself gives, empty = it
 * gives none; a wrong one does no harm. */
qr_rc qr_decode(qr_str bytes, qr_str declared, struct qr_arena *arena, struct qr_decoded *ret, qr_err *err);

/* What HTML, XML, or an editor's line in a source file say about the encoding, near the beginning; empty = nothing. */
qr_str qr_charset_declared(qr_str bytes);

/* ---- charset.c: encodings other than Unicode ---- */

/* The name that iconv knows for a name as it occurs in files, NULL for those that we do not read so. */
const char *qr_charset_find(qr_str name);
/* All that there are, one by one; NULL at the end. quire-reader has iconv load them while it still may. */
const char *qr_charset_at(size_t index);
/* Appends the text in UTF-8; what cannot be read becomes U+FFFD and is counted in *ret_bad. False when out of memory or
 * iconv does not have the encoding (then out->failed is not set). */
struct qr_buf;
bool qr_charset_convert(const char *charset, qr_str bytes, struct qr_buf *out, size_t *ret_bad);

/* ---- charset_guess.c ---- */

/* The most likely encoding of bytes that are not UTF-8, NULL when none gives plausible text. */
qr_rc qr_charset_guess(qr_str bytes, const char **ret_charset, qr_err *err);
/* How odd text is, in thousandths of its characters beyond ASCII: 0 for what people write, hundreds for text that was
 * read in a wrong encoding. */
unsigned qr_text_oddness(qr_str text);
