/* Less usual questions about jobs, mostly those of people: by the beginning of an id, why one waits, and once more. */
#pragma once

#include "store/jobs.h"

/* The job whose id, as text, begins like this. `not_found` when there is none or it cannot be the beginning of an id,
 * `invalid_value` when there are several. */
qr_rc qr_jobs_find_prefix(struct qr_tx *tx, qr_str prefix, qr_uuid *ret_id, qr_err *err);

/* Whether the job runs under this fence and this worker, without locking it. To a worker that does not know whether its claim
 * was committed the fence alone would not tell: whoever claims after a claim that was undone gets the same one. */
qr_rc qr_jobs_is_held(struct qr_tx *tx, qr_uuid id, int64_t fence, qr_uuid worker_id, bool *ret_is_held, qr_err *err);

/* The job that a blocked one waits for: the active one of its serial key. */
qr_rc qr_jobs_find_blocker(struct qr_tx *tx, qr_uuid id, bool *ret_found, qr_uuid *ret_id, enum qr_job_state *ret_state,
                           qr_err *err);

/* Adds a job like one that failed or was cancelled, with its keys, due now. Where an open one has the same idempotency
 * key, that one is the answer and *ret_existed is true. `not_found`; `not_terminal` while it is open; `not_failed` when it
 * ended otherwise. */
qr_rc qr_jobs_add_again(struct qr_tx *tx, qr_uuid id, qr_uuid new_id, qr_uuid *ret_id, bool *ret_existed, qr_err *err);

/* How many workers hold a valid lease. */
qr_rc qr_workers_count_live(struct qr_tx *tx, int64_t *ret_count, qr_err *err);

/* Since when (wall clock) the job that could begin first waits, and the one that was begun first runs; 0 = there is none. Looks at
 * no more than `limit` of each, so that a long queue costs no more than a short one: then it may be an older one. */
qr_rc qr_jobs_oldest(struct qr_tx *tx, enum qr_queue queue, int64_t limit, int64_t *ret_queued_ms,
                     int64_t *ret_running_ms, qr_err *err);
