/* Embedding settings with a name, so that several bases can be given the same without typing them again. A base that is given
 * one has its settings from then on: a name is never looked up when something is embedded. Keys are not in them, only where
 * they are read from. */
#pragma once

#include "base/arena.h"
#include "db/db.h"

enum { QR_NAMED_MODELS_MAX = 200 }; /* they are listed whole */

struct qr_named_model {
    const char *name;
    const char *embedding; /* JSON, as the settings of a base have it */
    int64_t created_ms;
};

/* `already_exists`; `limit_exceeded`. */
qr_rc qr_named_model_add(struct qr_tx *tx, const char *name, const char *embedding, qr_err *err);
/* `not_found` */
qr_rc qr_named_model_find(struct qr_tx *tx, qr_str name, struct qr_arena *arena, struct qr_named_model *ret_model,
                          qr_err *err);
/* By name. */
qr_rc qr_named_models_list(struct qr_tx *tx, struct qr_arena *arena, struct qr_named_model **ret_models,
                           size_t *ret_count, qr_err *err);
qr_rc qr_named_model_remove(struct qr_tx *tx, const char *name, qr_err *err);
