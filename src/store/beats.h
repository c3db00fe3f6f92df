/* Which slots of periodic work are done. To be run inside a write function. */
#pragma once

#include "db/db.h"

enum { QR_BEAT_PRUNE_MAX = 500 };

/* Takes the slot; *ret_taken is false when it was taken before. Two transactions cannot both take it: the second waits for
 * the end of the first. */
qr_rc qr_beats_take(struct qr_tx *tx, const char *name, int64_t slot_ms, bool *ret_taken, qr_err *err);
/* Whether a later slot was taken already: the clock has been set back. */
qr_rc qr_beats_is_ahead(struct qr_tx *tx, const char *name, int64_t slot_ms, bool *ret_is_ahead, qr_err *err);

/* Forgets slots before the time: at most QR_BEAT_PRUNE_MAX. */
qr_rc qr_beats_prune(struct qr_tx *tx, int64_t before_ms, int64_t *ret_count, qr_err *err);
