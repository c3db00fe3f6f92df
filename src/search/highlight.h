/* Where the words of a query stand in a passage. */
#pragma once

#include "base/arena.h"
#include "text/query.h"
#include "text/tokens.h"

/* Bytes of a text. */
struct qr_range {
    size_t start, end;
};

struct qr_phrase;

/* The tokens that a query looks for, each once. */
struct qr_wanted {
    qr_str *tokens; /* in the arena, sorted */
    size_t count, capacity;
    qr_str *marks; /* those that are worth marking, sorted: without small words, unless there is nothing else */
    size_t mark_count;
    struct qr_phrase *phrases; /* where one stands, its small words are marked, too */
    size_t phrase_count;
};
/* Of the clauses that are about words and do not exclude them. `languages` as of the search. */
qr_rc qr_wanted_read(struct qr_tokenizer *tokenizer, const struct qr_query *query, qr_languages languages,
                     struct qr_arena *arena, struct qr_wanted *ret_wanted, qr_err *err);

enum { QR_HIGHLIGHTS_MAX = 200 }; /* of a passage */

/* In the order of the text, not touching one another. */
qr_rc qr_highlight(struct qr_tokenizer *tokenizer, qr_str text, const struct qr_wanted *wanted, struct qr_arena *arena,
                   struct qr_range **ret_ranges, size_t *ret_count, qr_err *err);
