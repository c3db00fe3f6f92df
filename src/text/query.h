/* What a person typed into a search, taken apart. Pure, but for the arena.
 *
 *     words            any of them may occur; the more and the rarer, the better
 *     "two words"      these words in this order must occur
 *     -word  -"…"      must not occur
 *     title:word       must occur in the title; heading: in a heading
 *     path:docs/ap*    the source or its end fits the pattern; type:note the item is of the type
 *
 * There is no wrong query: a quote that is not closed, a minus before a space and a colon behind a word that is no field
 * are text like any other. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum qr_query_field {
    QR_FIELD_ANY,
    QR_FIELD_TITLE,
    QR_FIELD_HEADING,
    QR_FIELD_PATH, /* these two are about the item, not its words */
    QR_FIELD_TYPE,
};

struct qr_clause {
    qr_str text; /* of the query; never empty */
    enum qr_query_field field;
    bool is_phrase;
    bool is_excluded;
};

enum { QR_QUERY_CLAUSES_MAX = 256 };

struct qr_query {
    struct qr_clause *clauses;
    size_t count;
    bool was_cut; /* there were more than QR_QUERY_CLAUSES_MAX */
};

/* The clauses point into `typed`. */
qr_rc qr_query_parse(qr_str typed, struct qr_arena *arena, struct qr_query *ret_query, qr_err *err);

/* Whether the clause must be fulfilled by every hit. */
static inline bool qr_clause_is_required(const struct qr_clause *clause)
{
    return !clause->is_excluded && (clause->is_phrase || clause->field != QR_FIELD_ANY);
}
static inline bool qr_clause_is_about_item(const struct qr_clause *clause)
{
    return clause->field == QR_FIELD_PATH || clause->field == QR_FIELD_TYPE;
}
