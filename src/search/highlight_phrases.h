/* Where the phrases of a query stand in a passage: there their small words are marked, too, which would be noise anywhere else.
 * Private to highlight.c. */
#pragma once

#include "search/highlight.h"

enum { PHRASES_MAX = 8, PHRASE_PLACES_MAX = 64 }; /* of more, or of longer ones, the small words are not marked */

struct phrase_word {
    qr_str text;
    size_t place;
};

/* A phrase of small and other words. */
struct qr_phrase {
    struct phrase_word *words; /* in the arena; several at a place are forms of one */
    size_t count, capacity, place_count;
};

/* Reads those of the clauses; `ret_phrases` has room for PHRASES_MAX. */
qr_rc qr_phrases_read(struct qr_tokenizer *tokenizer, const struct qr_query *query, qr_languages languages,
                      struct qr_arena *arena, struct qr_phrase *ret_phrases, size_t *ret_count, qr_err *err);

/* Of a passage, whose tokens are given one after the other. */
struct phrase_marking {
    const struct qr_phrase *phrases;
    size_t phrase_count;
    uint64_t reached[PHRASES_MAX];             /* bit n: the last n + 1 places are the beginning of the phrase */
    uint64_t fitting[PHRASES_MAX];             /* bit n: the last place fits the phrase's n-th */
    struct qr_range recent[PHRASE_PLACES_MAX]; /* the last places, by their number */
    size_t place_count;
    struct qr_range ranges[QR_HIGHLIGHTS_MAX]; /* in no order */
    size_t count;
};
void qr_phrases_take_token(struct phrase_marking *marking, const struct qr_token *token);
void qr_phrases_end(struct phrase_marking *marking);
