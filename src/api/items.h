/* How items look in answers. Private to the routes of src/api/items*.c. */
#pragma once

#include "api/jobs.h"
#include "api/lookup.h"

/* What its open stage job says is derived inside the same read. */
qr_rc qr_json_item(struct qr_tx *tx, const struct qr_item *item, struct qr_arena *arena, json_t **ret_json,
                   qr_err *err);
/* As qr_json_item shows it: `reading` and `embedding` are not stored. */
qr_rc qr_item_shown_status(struct qr_tx *tx, const struct qr_item *item, struct qr_arena *arena,
                           enum qr_item_status *ret_status, qr_err *err);

/* Adds, and answers with the items: {"items": […]}. */
qr_rc qr_add_and_answer(const struct qr_request *request, const struct qr_add *add, struct qr_arena *arena,
                        struct qr_reply *reply, qr_err *err);

/* Runs the read and answers with the body it made. */
struct qr_item_answer {
    const struct qr_request *request;
    struct qr_arena *arena; /* empty at the beginning of each run */
    json_t *body;           /* the function's; released before it is run again */
};
typedef qr_rc qr_item_answer_fn(struct qr_tx *tx, struct qr_item_answer *answer, const struct qr_base *base,
                                struct qr_item *item, qr_err *err);
qr_rc qr_answer_about_item(const struct qr_request *request, qr_item_answer_fn *fn, int status, struct qr_reply *reply,
                           qr_err *err);
