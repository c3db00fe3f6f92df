/* Where parts and ends of jobs arrive, and which file of the plan they go to. */
#include "workflow/plan.h"

#include "base/failpoint.h"
#include "workflow/models.h"
#include "workflow/plan_internal.h"
#include "workflow/process.h"

#include <stdlib.h>

static qr_rc lock(struct qr_tx *tx, const qr_uuid *sorted_base_ids, size_t count, void *arg QR_UNUSED, qr_err *err)
{
    return qr_bases_lock(tx, sorted_base_ids, count, err);
}

/* ---- parts ---- */

static qr_rc part_of(struct qr_change *change, const struct qr_job *job, void *part, qr_err *err)
{
    switch (qr_job_type_find(qr_str_of(job->type))) {
    case QR_JOB_PREPARE_ROOT:
        return qr_plan_expand_part(change, job, part, err);
    case QR_JOB_REINDEX_SUBTREE:
    case QR_JOB_RESTORE_BASE:
        return qr_plan_raise_part(change, job, part, err);
    case QR_JOB_BUILD_VECTORS:
        return qr_plan_switch_part(change, job, part, err);
    default:
        return qr_fail(err, QR_CODE_INTERNAL, "a %s reported a part, which it never does", job->type);
    }
}

static qr_rc part(struct qr_tx *tx, const struct qr_job *job, void *part, void *arg, qr_err *err)
{
    const struct qr_workflow *workflow = arg;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, workflow->ids, &job->base_id, 1, err));
    QR_TRY(part_of(&change, job, part, err));
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("plan.part.before_commit", err);
    return QR_OK;
}

/* ---- the end of a stage ---- */

/* AGAIN-5: of an item that still waits for it, a stage that declines is a failure like any other. */
static qr_rc fail_stage(struct qr_change *change, struct qr_item *item, const struct qr_ended *ended, qr_err *err)
{
    const qr_err *error = &ended->outcome->error;
    const bool has_declined = ended->state == QR_JOB_SKIPPED;
    const qr_code code = has_declined || error->code == QR_CODE_NONE ? QR_CODE_STAGE_SKIPPED : error->code;
    qr_set_failed(change, item, ended->job->type, qr_code_info(code)->name,
                  error->msg[0] ? error->msg : "the stage declined and did not say why");
    QR_TRY(qr_item_save(change, item, err));
    return qr_purge_at_rest(change, item, err);
}

static qr_rc stage_ended(struct qr_change *change, const struct qr_ended *ended, qr_err *err)
{
    struct qr_item item;
    qr_err why = {0};
    const qr_rc rc = qr_guard_result(change, ended->job, &change->arena, &item, &why);
    if (rc == QR_STALE || rc == QR_NOT_FOUND) {
        return QR_OK; /* I2: nobody waits for it any more */
    }
    if (rc != QR_OK) {
        *err = why;
        return rc;
    }
    QR_TRY(qr_run_stage_ended(change, &item, qr_job_type_find(qr_str_of(ended->job->type)),
                              ended->state != QR_JOB_COMPLETED, err));
    if (item.is_container) {
        return qr_plan_expand_ended(change, &item, ended, err);
    }
    if (ended->state == QR_JOB_COMPLETED && ended->outcome->result) {
        return qr_plan_stage_completed(change, &item, ended->outcome->result, err);
    }
    return fail_stage(change, &item, ended, err);
}

/* ---- ends ---- */

/* RECOV-4: an index that is not the base's own is rebuilt; whoever meets it first sees to it. */
static qr_rc mend_index(struct qr_change *change, const struct qr_ended *ended, qr_err *err)
{
    qr_uuid ignored;
    const qr_code code = ended->outcome->error.code;
    const bool is_lost = code == QR_CODE_INDEX_LOST || code == QR_CODE_DATA_CORRUPT || code == QR_CODE_DATA_FOREIGN;
    if (!is_lost || !qr_change_base(change, ended->job->base_id)) {
        return QR_OK;
    }
    return qr_enqueue_base_job(change->tx, change->ids, QR_JOB_RESTORE_BASE, ended->job->base_id, &ignored, err);
}

/* THING-2: its model does not fit what it has; only a restore mends that. */
static qr_rc fail_base(struct qr_change *change, const struct qr_ended *ended, qr_err *err)
{
    const qr_err *error = &ended->outcome->error;
    const struct qr_base *base = qr_change_base(change, ended->job->base_id);
    if (error->code != QR_CODE_DIMENSION_MISMATCH || !base || base->status != QR_BASE_READY) {
        return QR_OK;
    }
    const char *code = qr_code_info(error->code)->name;
    QR_TRY(qr_base_set_status(change->tx, base->id, QR_BASE_FAILED, code, error->msg, err));
    return qr_change_note(change, base->id, (qr_uuid){0}, QR_EVENT_BASE, 0, code, err);
}

/* RECOV-5: what a purge that failed leaves behind nobody else looks for. */
static qr_rc purge_again(struct qr_change *change, const struct qr_job *job, qr_err *err)
{
    struct qr_item item;
    bool found, is_deleting = false;
    QR_TRY(qr_item_find(change->tx, job->item_id, &change->arena, &found, &item, err));
    if (found) {
        QR_TRY(qr_item_is_deleting(change, &item, &is_deleting, err));
    }
    return found && !is_deleting ? qr_enqueue_purge(change, &item, err) : QR_OK;
}

static qr_rc one_ended(struct qr_change *change, const struct qr_ended *ended, qr_err *err)
{
    const enum qr_job_type type = qr_job_type_find(qr_str_of(ended->job->type));
    if (type == QR_JOB_BUILD_VECTORS || qr_job_type_is_stage(ended->job->type)) {
        QR_TRY(mend_index(change, ended, err));
    }
    if (qr_job_type_is_stage(ended->job->type)) {
        QR_TRY(fail_base(change, ended, err));
    }
    if (!type || qr_job_state_is_open(ended->state)) {
        return QR_OK; /* it will be tried again: nothing has happened yet */
    }
    if (qr_job_type_info(type)->is_stage) {
        return stage_ended(change, ended, err);
    }
    switch (type) {
    case QR_JOB_REFRESH_SOURCE:
        return qr_plan_refresh_ended(change, ended, err);
    case QR_JOB_ANALYZE_ASSET:
        return qr_plan_asset_ended(change, ended, err);
    case QR_JOB_RESTORE_BASE:
        return qr_plan_restore_ended(change, ended, err);
    case QR_JOB_PURGE:
        return ended->state == QR_JOB_FAILED ? purge_again(change, ended->job, err) : QR_OK;
    case QR_JOB_DELETE_SUBTREE:
        return qr_runs_advance_after_cleanup(change, ended->job->base_id, err);
    default:
        return QR_OK; /* a cleanup that failed leaves `deleting`, which recovery finds (DEL-7) */
    }
}

/* The bases of a round, each once: usually very few. */
static size_t collect_bases(const struct qr_ended *ended, size_t count, qr_uuid *ret_ids)
{
    size_t id_count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < id_count && !qr_uuid_equal(ret_ids[at], ended[i].job->base_id)) {
            at++;
        }
        if (at == id_count) {
            ret_ids[id_count++] = ended[i].job->base_id;
        }
    }
    return id_count;
}

enum { TOGETHER_MAX = 128 };

static qr_rc some_ended(struct qr_tx *tx, const struct qr_ended *ended, size_t count,
                        const struct qr_workflow *workflow, qr_err *err)
{
    qr_uuid base_ids[TOGETHER_MAX] = {0};
    const size_t base_count = collect_bases(ended, count, base_ids);
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, workflow->ids, base_ids, base_count, err));
    for (size_t i = 0; i < count; i++) {
        QR_TRY(one_ended(&change, &ended[i], err));
    }
    return qr_workflow_finish(&change, err);
}

/* The rows of all their bases are locked already, so several changes in one transaction cannot wait for each other. */
static qr_rc ended(struct qr_tx *tx, const struct qr_ended *ended, size_t count, void *arg, qr_err *err)
{
    for (size_t from = 0; from < count; from += TOGETHER_MAX) {
        QR_TRY(some_ended(tx, ended + from, QR_MIN(count - from, (size_t)TOGETHER_MAX), arg, err));
    }
    return QR_OK;
}

struct qr_plan qr_workflow_plan(const struct qr_workflow *workflow)
{
    return (struct qr_plan){.lock = lock, .part = part, .ended = ended, .arg = (void *)workflow};
}
