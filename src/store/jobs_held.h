/* Jobs that were put off because of their base (THING-2): it had failed, or its index was lost. Brought forward when it is whole
 * again. */
#pragma once

#include "store/jobs.h"

enum { QR_HELD_LOOKED_AT_MAX = 5000, QR_HELD_FORWARD_MAX = 500 };

/* Makes them queued, in a bounded step: of each queue it looks at up to QR_HELD_LOOKED_AT_MAX jobs that are put off, and brings
 * up to QR_HELD_FORWARD_MAX forward; the others come back by themselves within a minute. Wakes the runners after the
 * commit. */
qr_rc qr_jobs_forward_held(struct qr_tx *tx, qr_uuid base_id, int64_t *ret_count, qr_err *err);
