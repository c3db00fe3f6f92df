/* How keys and jobs look in statements and rows. Private to src/store/. */
#pragma once

#include "base/hash.h"
#include "store/ids.h"
#include "store/jobs.h"

/* ---- keys ---- */

/* Of the empty text: none. */
struct qr_job_key qr_job_key_of(qr_str text);
/* The hash stays in the caller's memory. */
struct qr_val qr_val_key(const struct qr_job_key *key);
struct qr_job_key qr_rows_key(const struct qr_rows *rows, int column);

/* ---- jobs ---- */

#define QR_JOB_COLUMNS QR_JOB_COLUMNS_WITH("args")
/* With something else in place of the args, which may be long. */
#define QR_JOB_COLUMNS_WITH(args)                                                                                      \
    "id, queue, type, base_id, item_id, generation, state, priority, run_at, " args ", fence, attempts, crashes, "     \
    "time_limit, worker_id, progress_done, progress_total, code, message, created_at, claimed_at, finished_at, "       \
    "idempotency_key, serial_key, suspect, progress_at"

/* The job in the current row of QR_JOB_COLUMNS; texts are copied to the arena. */
qr_rc qr_rows_job(const struct qr_rows *rows, struct qr_arena *arena, struct qr_job *ret_job, qr_err *err);

/* ---- adding one (jobs.c) ---- */

struct qr_new_job {
    struct qr_job_spec spec; /* without its keys: they are below, as stored */
    qr_uuid id;
    struct qr_job_key idempotency_key, serial_key;
};

qr_rc qr_jobs_add_new(struct qr_tx *tx, const struct qr_new_job *job, qr_uuid *ret_id, bool *ret_existed, qr_err *err);
