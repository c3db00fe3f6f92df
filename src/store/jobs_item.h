/* The jobs of items: an item has at most one open stage job, found by its key. */
#pragma once

#include "model/job_type.h"
#include "store/items.h"
#include "store/jobs.h"

/* Queues the next stage of the item, of its generation. `at_ms` 0 = now. */
qr_rc qr_jobs_add_stage(struct qr_tx *tx, struct qr_uuid_gen *ids, const struct qr_item *item, enum qr_job_type type,
                        int64_t at_ms, qr_uuid *ret_id, qr_err *err);
/* The open one. */
qr_rc qr_jobs_find_stage(struct qr_tx *tx, qr_uuid item_id, bool *ret_found, qr_uuid *ret_id, qr_err *err);
qr_rc qr_jobs_has_stage(struct qr_tx *tx, qr_uuid item_id, bool *ret_has, qr_err *err);
/* Where there is one: its holder can write nothing any more. */
qr_rc qr_jobs_cancel_stage(struct qr_tx *tx, qr_uuid item_id, const char *code, const char *message, qr_err *err);
/* Cancels all open jobs about the item but deletes. */
qr_rc qr_jobs_cancel_of_item(struct qr_tx *tx, qr_uuid item_id, const char *code, const char *message, qr_err *err);

/* Whether the job still runs under this fence; locks nothing. For writes to places that share no transaction with it. */
qr_rc qr_jobs_runs_under(struct qr_tx *tx, qr_uuid job_id, int64_t fence, bool *ret_is_held, qr_err *err);

/* A job about a base or several roots, unique by its key while it is open. */
qr_rc qr_jobs_add_side(struct qr_tx *tx, struct qr_uuid_gen *ids, enum qr_job_type type, qr_uuid base_id,
                       qr_uuid item_id, int64_t generation, qr_str key, qr_str args, int64_t at_ms, qr_uuid *ret_id,
                       bool *ret_existed, qr_err *err);

/* The job that an item of this list shows: open stage job of an active item. */
struct qr_stage_view {
    bool found;
    qr_uuid job_id;
    enum qr_job_type type;
    enum qr_job_state state;
    int64_t attempts, claimed_ms, run_at_ms, progress_done, progress_total, progress_ms;
    const char *code, *message; /* of the last failure */
    qr_uuid worker_id;
};
qr_rc qr_jobs_stage_view(struct qr_tx *tx, qr_uuid item_id, struct qr_arena *arena, struct qr_stage_view *ret_view,
                         qr_err *err);
