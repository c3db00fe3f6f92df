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
/* Whether jobs are run here. */
bool qr_instance_is_working(struct quire *quire);
/* What the runner has done since it was started, all zero where there is none; and how many jobs of dead workers were put back in
 * line. May be called while it is stopped. */
struct qr_runner_stats;
void qr_instance_job_stats(struct quire *quire, struct qr_runner_stats *ret_stats);
/* Why jobs can neither begin nor end here now; no code = they can, or none is run. May be called while it is stopped. */
void qr_instance_trouble(struct quire *quire, qr_err *ret_trouble);
