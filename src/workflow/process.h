/* Runs: the `process` request, its levels and gates (PROC-1 … PROC-6).
 *
 * P1  A run keeps at most WINDOW items at work and takes more as those come to rest, so that no transaction grows with the
 *     base.
 * P2  It takes idle items in the order of their depth. Those of depth N that still need to be read are taken only when nothing
 *     of the run at a smaller depth is at work: that is the level. With the manual gate it ends there.
 * P3  The run ends in the transaction in which its last item came to rest and nothing more fits. */
#pragma once

#include "model/job_type.h"
#include "store/runs.h"
#include "workflow/workflow.h"

struct qr_process {
    qr_uuid base_id;
    int64_t wanted; /* QR_WANT_*, not 0 */
    bool gate_is_manual;
};

qr_rc qr_workflow_process(const struct qr_workflow *workflow, const struct qr_process *process, struct qr_run *ret_run,
                          qr_err *err);
/* Its items at work become idle. `not_open` when it has ended. */
qr_rc qr_workflow_cancel_run(const struct qr_workflow *workflow, qr_uuid run_id, struct qr_run *ret_run, qr_err *err);

/* The end of every change in the workflow: runs whose items came to rest take more, or end; then qr_change_finish. */
qr_rc qr_workflow_finish(struct qr_change *change, qr_err *err);
/* Of the base's open runs, after a cleanup: items that were removed were theirs. */
qr_rc qr_runs_advance_after_cleanup(struct qr_change *change, qr_uuid base_id, qr_err *err);
/* Counts a stage of an item of a run: it was queued (total), is done or failed. */
qr_rc qr_run_stage_ended(struct qr_change *change, const struct qr_item *item, enum qr_job_type type, bool has_failed,
                         qr_err *err);
