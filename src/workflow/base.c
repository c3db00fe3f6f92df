/* Bases: making, deleting, restoring, failing (BASE-1, BASE-2, THING-2). */
#include "base/failpoint.h"
#include "workflow/guard.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

struct base_call {
    const struct qr_workflow *workflow;
    qr_uuid base_id, job_id;
    qr_str name, settings;
    const char *code, *message;
    bool confirmed;
    qr_err enqueue_failure;
};

/* ---- making ---- */

static qr_rc add_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct base_call *call = arg;
    QR_TRY(qr_base_add(tx, call->base_id, call->name, call->settings, err));
    QR_FAILPOINT("base.add.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_add_base(const struct qr_workflow *workflow, qr_str name, qr_str settings, qr_uuid *ret_id,
                           qr_err *err)
{
    struct base_call call = {
        .workflow = workflow, .base_id = qr_uuid_next(workflow->ids), .name = name, .settings = settings};
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, add_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("base.add.after_commit", NULL);
    *ret_id = call.base_id;
    return QR_OK;
}

/* ---- jobs of a base ---- */

qr_rc qr_enqueue_base_job(struct qr_tx *tx, struct qr_uuid_gen *ids, enum qr_job_type type, qr_uuid base_id,
                          qr_uuid *ret_job_id, qr_err *err)
{
    char key[64] = "base:";
    qr_uuid_format(base_id, key + 5);
    strcat(key, type == QR_JOB_DELETE_BASE ? ":delete" : type == QR_JOB_RESTORE_BASE ? ":restore" : ":build");
    bool existed;
    return qr_jobs_add_side(tx, ids, type, base_id, (qr_uuid){0}, 0, qr_str_of(key), (qr_str){0}, 0, ret_job_id,
                            &existed, err);
}

static qr_rc enqueue_delete_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_call *call = arg;
    return qr_enqueue_base_job(tx, call->workflow->ids, QR_JOB_DELETE_BASE, call->base_id, &call->job_id, err);
}

/* ---- deleting ---- */

static qr_rc delete_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_call *call = arg;
    struct qr_base *base;
    bool has_items;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->base_id, 1, err));
    QR_TRY(qr_guard_base_exists(&change, call->base_id, &base, err));
    QR_TRY(qr_base_has_items(tx, call->base_id, &has_items, err));
    if (has_items && !call->confirmed) {
        return qr_fail(err, QR_CODE_NOT_EMPTY, "the base %s is not empty", base->name);
    }
    QR_TRY(qr_base_set_status(tx, call->base_id, QR_BASE_DELETING, "", "", err));
    QR_TRY(qr_change_note(&change, call->base_id, (qr_uuid){0}, QR_EVENT_DELETED, 0, "", err));
    call->job_id = (qr_uuid){0};
    call->enqueue_failure = (qr_err){0};
    (void)qr_tx_nested(tx, enqueue_delete_base, call, &call->enqueue_failure); /* recovery queues it later */
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("base.delete.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_delete_base(const struct qr_workflow *workflow, qr_uuid base_id, bool confirmed, qr_uuid *ret_job_id,
                              qr_err *err)
{
    struct base_call call = {.workflow = workflow, .base_id = base_id, .confirmed = confirmed};
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, delete_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("base.delete.after_commit", NULL);
    *ret_job_id = call.job_id;
    if (call.enqueue_failure.code != QR_CODE_NONE) {
        return qr_fail(err, QR_CODE_ENQUEUE_FAILED, "the base is deleted and hidden, but its cleanup begins later: %s",
                       call.enqueue_failure.msg);
    }
    return QR_OK;
}

/* ---- failing and restoring ---- */

static qr_rc fail_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct base_call *call = arg;
    struct qr_base *base;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->base_id, 1, err));
    QR_TRY(qr_guard_base_exists(&change, call->base_id, &base, err));
    QR_TRY(qr_base_set_status(tx, call->base_id, QR_BASE_FAILED, call->code, call->message, err));
    QR_TRY(qr_change_note(&change, call->base_id, (qr_uuid){0}, QR_EVENT_BASE, 0, call->code, err));
    return qr_workflow_finish(&change, err);
}

qr_rc qr_workflow_fail_base(const struct qr_workflow *workflow, qr_uuid base_id, const char *code, const char *message,
                            qr_err *err)
{
    struct base_call call = {.workflow = workflow, .base_id = base_id, .code = code, .message = message};
    return qr_db_write(workflow->db, QR_DURABLE, fail_in_tx, &call, err);
}

static qr_rc restore_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_call *call = arg;
    struct qr_base *base;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->base_id, 1, err));
    QR_TRY(qr_guard_base_exists(&change, call->base_id, &base, err));
    if (base->status != QR_BASE_FAILED) {
        return qr_fail(err, QR_CODE_NOT_FAILED, "the base %s has not failed", base->name);
    }
    QR_TRY(qr_enqueue_base_job(tx, call->workflow->ids, QR_JOB_RESTORE_BASE, call->base_id, &call->job_id, err));
    QR_FAILPOINT("base.restore.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_restore_base(const struct qr_workflow *workflow, qr_uuid base_id, qr_uuid *ret_job_id, qr_err *err)
{
    struct base_call call = {.workflow = workflow, .base_id = base_id};
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, restore_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("base.restore.after_commit", NULL);
    *ret_job_id = call.job_id;
    return QR_OK;
}
