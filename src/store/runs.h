/* Runs: one for each `process` request. A run counts its items at work, so that its end and the end of a level are known
 * without looking at items. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"
#include "db/db.h"

/* Stored as these numbers: never renumber. */
enum qr_run_status {
    QR_RUN_RUNNING = 1,
    QR_RUN_COMPLETED = 2,
    QR_RUN_COMPLETED_WITH_ERRORS = 3,
    QR_RUN_CANCELLED = 4,
};
const char *qr_run_status_name(enum qr_run_status status);

enum qr_run_stage { QR_RUN_PROCESS, QR_RUN_CHUNK, QR_RUN_ASSETS, QR_RUN_INDEX, QR_RUN_STAGES };
const char *qr_run_stage_name(enum qr_run_stage stage);

struct qr_run {
    qr_uuid id, base_id;
    int64_t wanted; /* QR_WANT_* */
    enum qr_run_status status;
    int64_t level; /* the depth that is being worked on */
    bool gate_is_manual;
    int64_t active, failed; /* items at work now; that failed */
    int64_t created_ms, finished_ms;
    struct {
        int64_t total, done, failed;
    } stages[QR_RUN_STAGES];
};

qr_rc qr_run_add(struct qr_tx *tx, const struct qr_run *run, qr_err *err);
qr_rc qr_run_find(struct qr_tx *tx, qr_uuid id, bool *ret_found, struct qr_run *ret_run, qr_err *err);
/* Newest first, below `before` (all zero = from the newest). */
qr_rc qr_runs_list(struct qr_tx *tx, qr_uuid base_id, qr_uuid before, int limit, struct qr_arena *arena,
                   struct qr_run **ret_runs, size_t *ret_count, qr_err *err);
qr_rc qr_run_add_counts(struct qr_tx *tx, qr_uuid id, int64_t active, int64_t failed, qr_err *err);
/* Asks the run for more stages. */
qr_rc qr_run_want(struct qr_tx *tx, qr_uuid id, int64_t wanted, qr_err *err);
/* Level, status and, unless it is running, the time of its end. */
qr_rc qr_run_set(struct qr_tx *tx, const struct qr_run *run, qr_err *err);
qr_rc qr_run_count_stage(struct qr_tx *tx, qr_uuid id, enum qr_run_stage stage, int64_t total, int64_t done,
                         int64_t failed, qr_err *err);
/* Those of the base that are running; at most `limit`. */
qr_rc qr_runs_open(struct qr_tx *tx, qr_uuid base_id, int limit, qr_uuid *ret_ids, size_t *ret_count, qr_err *err);
