/* What the endpoints in the shapes of others share. They translate: what they need they ask of the API's own routes, as whoever
 * asked them, so roles and errors are decided in one place. Private to api/compat*.c. */
#pragma once

#include "api/router.h"

/* A request to another route, of the same caller. A refusal becomes the error that it names. */
qr_rc qr_compat_ask(const struct qr_request *request, const char *method, const char *target, const json_t *body,
                    json_t **ret_answer, qr_err *err);

enum { QR_COMPAT_HITS_MAX = 100 }; /* of a search */

/* What a search of theirs asks for. */
struct qr_compat_search {
    const char *base;  /* id or name */
    const char *query; /* may be NULL: refused */
    size_t top_k;
    double score_min; /* of scores from 0 to 1 */
    /* Whether an item may be shown, by its attributes; NULL = all may. Those that may not make room for others, among the best
     * QR_COMPAT_HITS_MAX. */
    bool (*fits)(const void *arg, const json_t *attributes);
    const void *arg;
};

/* Hits of the API, each with `shown_score`, from 0 to 1, and the item's `attributes`. */
qr_rc qr_compat_search(const struct qr_request *request, const struct qr_compat_search *search, json_t **ret_hits,
                       qr_err *err);

enum qr_compat_operator {
    QR_OP_EQ,
    QR_OP_NE,
    QR_OP_GT,
    QR_OP_GE,
    QR_OP_LT,
    QR_OP_LE,
    QR_OP_IN,
    QR_OP_NOT_IN,
    QR_OP_CONTAINS,
    QR_OP_NOT_CONTAINS,
    QR_OP_STARTS,
    QR_OP_ENDS,
    QR_OP_EMPTY,
    QR_OP_NOT_EMPTY,
    QR_OP_COUNT,
};
/* Whether an attribute (NULL = there is none) fits. Numbers are compared as numbers, also where one of the two is written as a
 * text; otherwise texts are, by their bytes, so that dates in the order of ISO 8601 are in order. */
bool qr_compat_fits(enum qr_compat_operator op, const json_t *attribute, const json_t *value);
