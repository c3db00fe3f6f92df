/* Cancelling and retrying jobs by hand: what it means for the item (CANCEL-1, CANCEL-2). */
#include "base/failpoint.h"
#include "store/jobs_find.h"
#include "workflow/guard.h"
#include "workflow/plan_internal.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

#include <stdio.h>

struct job_call {
    const struct qr_workflow *workflow;
    struct qr_job job;
    enum qr_job_state state;
    qr_uuid new_job_id;
    bool existed;
    char args[128]; /* enough for those of an analysis, which alone are read */
};

static qr_rc find_job(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct job_call *call = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena; /* only ids and numbers are used */
    qr_arena_init(&arena, 0);
    const qr_uuid id = call->job.id;
    bool found;
    QR_TRY(qr_jobs_find(tx, id, &arena, &found, &call->job, err));
    call->job.code = call->job.message = "";
    snprintf(call->args, sizeof call->args, "%s", found ? call->job.args : "");
    call->job.args = call->args;
    return found ? QR_OK : qr_fail(err, QR_CODE_NOT_FOUND, "there is no such job");
}

/* ---- cancel ---- */

static qr_rc fail_item(struct qr_change *change, const struct qr_job *job, qr_err *err)
{
    struct qr_item item;
    qr_err ignored = {0};
    if (qr_guard_result(change, job, &change->arena, &item, &ignored) != QR_OK) {
        return QR_OK; /* it is not this job's any more */
    }
    qr_set_failed(change, &item, job->type, qr_code_info(QR_CODE_CANCELLED)->name, "its job was cancelled");
    QR_TRY(qr_item_save(change, &item, err));
    return item.is_container ? qr_item_roll_up_later(change, &item, err) : qr_purge_at_rest(change, &item, err);
}

/* An analysis that is called off has failed: its document must not wait for it. */
static qr_rc tell_plan(struct qr_change *change, const struct job_call *call, qr_err *err)
{
    if (qr_job_type_find(qr_str_of(call->job.type)) != QR_JOB_ANALYZE_ASSET) {
        return QR_OK;
    }
    struct qr_outcome outcome = {.kind = QR_OUTCOME_FAILED};
    qr_fail(&outcome.error, QR_CODE_CANCELLED, "its job was cancelled");
    return qr_plan_asset_ended(change, &(struct qr_ended){&call->job, QR_JOB_CANCELLED, &outcome}, err);
}

static qr_rc cancel_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct job_call *call = arg;
    struct qr_base *base;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->job.base_id, 1, err));
    if (!qr_uuid_is_zero(call->job.base_id)) {
        QR_TRY(qr_guard_base(&change, call->job.base_id, &base, err));
    }
    QR_TRY(qr_jobs_cancel(tx, call->job.id, "cancelled", "cancelled by request", &call->state, err));
    if (qr_job_state_is_open(call->state)) {
        QR_TRY(qr_job_type_is_stage(call->job.type) ? fail_item(&change, &call->job, err)
                                                    : tell_plan(&change, call, err));
    }
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("cancel.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_cancel_job(const struct qr_workflow *workflow, qr_uuid job_id, enum qr_job_state *ret_state,
                             qr_err *err)
{
    struct job_call call = {.workflow = workflow, .job = {.id = job_id}};
    QR_TRY(qr_db_read(workflow->db, find_job, &call, err));
    if (call.job.queue == QR_QUEUE_DELETE && qr_job_state_is_open(call.job.state)) {
        return qr_fail(err, QR_CODE_DELETING, "a cleanup is not cancelled: what it removes is deleted already");
    }
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, cancel_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("cancel.after_commit", NULL);
    *ret_state = call.state;
    return QR_OK;
}

/* ---- once more ---- */

static qr_rc retry_item_of(struct qr_change *change, struct job_call *call, qr_err *err)
{
    struct qr_base *base;
    struct qr_item item;
    QR_TRY(qr_guard_base(change, call->job.base_id, &base, err));
    QR_TRY(qr_guard_item(change, call->job.base_id, call->job.item_id, &change->arena, &item, err));
    const char *skipped;
    QR_TRY(qr_retry_one(change, &item, &call->new_job_id, &skipped, err));
    return skipped ? qr_fail(err, QR_CODE_NOT_FAILED, "the item is %s: only a failed one is tried again",
                             qr_item_status_name(item.status))
                   : QR_OK;
}

static qr_rc retry_stage(struct qr_tx *tx, struct job_call *call, qr_err *err)
{
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->job.base_id, 1, err));
    QR_TRY(retry_item_of(&change, call, err));
    return qr_workflow_finish(&change, err);
}

static qr_rc retry_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct job_call *call = arg;
    call->existed = false;
    if (qr_job_type_is_stage(call->job.type)) {
        QR_TRY(retry_stage(tx, call, err));
    } else {
        QR_TRY(qr_jobs_add_again(tx, call->job.id, qr_uuid_next(call->workflow->ids), &call->new_job_id, &call->existed,
                                 err));
    }
    QR_FAILPOINT("job.retry.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_retry_job(const struct qr_workflow *workflow, qr_uuid job_id, qr_uuid *ret_job_id, bool *ret_existed,
                            qr_err *err)
{
    struct job_call call = {.workflow = workflow, .job = {.id = job_id}};
    QR_TRY(qr_db_read(workflow->db, find_job, &call, err));
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, retry_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("job.retry.after_commit", NULL);
    *ret_job_id = call.new_job_id;
    *ret_existed = call.existed;
    return QR_OK;
}
