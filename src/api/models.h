/* Named models, for the routes of bases. */
#pragma once

#include "api/lookup.h"
#include "store/named_models.h"

/* Makes `embedding` of the settings that of the model with this name; `not_found`. */
qr_rc qr_model_put_into(struct qr_tx *tx, const char *name, struct qr_arena *arena, json_t *settings, qr_err *err);
