/* What a person typed, as a query of the database's text search. Pure.
 *
 * Only words reach the query, each in quotes: runs of ASCII letters and digits and of whole characters beyond ASCII.
 * Everything else, quotes, operators, NUL and broken UTF-8 included, parts words. So no syntax can get through. */
#pragma once

#include "base/buf.h"

/* Enough for a pasted paragraph; each further word makes a query slower and adds little. */
enum { QR_WORDS_MAX = 64, QR_WORD_BYTES_MAX = 256 };

/* Appends `"word" OR "word"`, in the words' order, each once; nothing where there is no word. */
void qr_words_for_fts5(struct qr_buf *out, qr_str typed);
/* Appends `'word' | 'word'`. */
void qr_words_for_tsquery(struct qr_buf *out, qr_str typed);
