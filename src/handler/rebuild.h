/* The stamp of a base's index store, and making the store anew from what is stored (RECOV-4, BASE-2). */
#pragma once

#include "handler/common.h"

/* Before chunks are written: a store that was never used gets its stamp. `index_lost` when the store is not the one that the
 * base knows: the job waits until it was rebuilt. */
qr_rc qr_index_require_own(struct qr_attempt *attempt, qr_err *err);
/* False also when it cannot be opened because it is damaged or foreign. */
qr_rc qr_index_is_own(struct qr_index_set *index, const struct qr_base *base, bool *ret_is_own, qr_err *err);

/* Drops the store and writes it again, from the stored texts of all items: what is live, and what is under way. Then it gets
 * a new stamp. *ret_without_text: completed leaves whose text is gone, in the run's arena; they must be read again. */
qr_rc qr_index_rebuild(struct qr_attempt *attempt, qr_uuid **ret_without_text, size_t *ret_count, qr_err *err);
