/* What is known of embedding models, by fingerprint: the dimension of their vectors, learnt from the first answer, and
 * how fast they are. */
#pragma once

#include "db/db.h"

/* 0 = nothing was ever embedded by it. */
qr_rc qr_model_dimension(struct qr_tx *tx, const char *fingerprint, int *ret_dimension, qr_err *err);
/* With the vectors of an answer, in the same transaction. `dimension_mismatch` where it had another one before. */
qr_rc qr_model_note(struct qr_tx *tx, const char *fingerprint, int dimension, bool has_shortened, qr_err *err);
/* Whether some text was shortened for it: else nobody need look which. */
qr_rc qr_model_has_shortened(struct qr_tx *tx, const char *fingerprint, bool *ret_has, qr_err *err);
/* Its vectors are of this dimension from now on. Those of another are not found any more, and are replaced. */
qr_rc qr_model_set_dimension(struct qr_tx *tx, const char *fingerprint, int dimension, qr_err *err);
/* How many texts it embeds a minute, as it was measured last; 0 = not yet. Nothing is noted of a model without vectors. */
qr_rc qr_model_set_pace(struct qr_tx *tx, const char *fingerprint, int64_t texts_a_minute, qr_err *err);
qr_rc qr_model_pace(struct qr_tx *tx, const char *fingerprint, int64_t *ret_texts_a_minute, qr_err *err);
