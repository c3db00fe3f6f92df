/* Work in this process: the runner with its handlers and plan, the beat with its recovery. */
#pragma once

#include "api/instance.h"

/* Recovery first, then jobs are run. Does nothing where it was started already. */
qr_rc qr_instance_start_work(struct quire *quire, qr_err *err);
/* Waits up to `grace_ms` for what runs; what has not ended by then is handed back. Does nothing where there is none. False: a handler
 * did not return, and still uses what is open. */
bool qr_instance_stop_work(struct quire *quire, int64_t grace_ms);
/* Jobs that ended here since the work was started, by queue; 0 where none is run. May be called while it is stopped. */
void qr_instance_ended_jobs(struct quire *quire, uint64_t ret_ended[static QR_QUEUE_END]);
/* Why jobs can neither begin nor end here now; no code = they can, or none is run. May be called while it is stopped. */
void qr_instance_trouble(struct quire *quire, qr_err *ret_trouble);
