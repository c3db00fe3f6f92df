/* Jobs that were put off because their endpoint refuses to be asked (AGAIN-2): brought forward when it does no more.
 *
 * A job does not say which endpoint it waits for. One that is brought forward for another's sake is told `endpoint_refused` again
 * without a request, and put off as before. */
#pragma once

#include "store/jobs.h"

struct qr_refused_cursor { /* all zero = from the beginning */
    int queue_index;
    qr_uuid after;
};

/* Makes them queued, in a bounded step: looks at up to QR_JOB_BATCH_MAX jobs that are put off. *ret_next is where to go on;
 * *ret_more is false where nothing is left. Wakes the runners after the commit. */
qr_rc qr_jobs_forward_refused(struct qr_tx *tx, const struct qr_refused_cursor *at, struct qr_refused_cursor *ret_next,
                              bool *ret_more, int64_t *ret_count, qr_err *err);

enum { QR_REFUSED_TRIES_MAX = 64, QR_REFUSED_LOOKED_AT_MAX = 5000 };
/* Only the first one of each base and queue, which tries: looks at up to QR_REFUSED_LOOKED_AT_MAX of a queue. */
qr_rc qr_jobs_try_refused(struct qr_tx *tx, int64_t *ret_count, qr_err *err);
