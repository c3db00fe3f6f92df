/* retry: another attempt of what failed, or of what is stuck beyond doubt (RETRY-1 … RETRY-4). Nothing takes over by itself:
 * only who asks gets it. */
#include "base/failpoint.h"
#include "workflow/guard.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

enum { QUEUED_STALE_MS = 10 * 60 * 1000, RUNNING_STALE_MS = 45 * 60 * 1000 };

/* ---- what is stale ---- */

static qr_rc has_live_lease(struct qr_change *change, const struct qr_stage_view *job, bool *ret_has, qr_err *err)
{
    const char *name;
    int64_t until_ms;
    QR_TRY(qr_worker_find(change->tx, job->worker_id, &change->arena, &name, &until_ms, err));
    *ret_has = until_ms >= change->now_ms;
    return QR_OK;
}

static qr_rc is_stale(struct qr_change *change, const struct qr_item *item, bool *ret_is, qr_err *err)
{
    struct qr_stage_view job;
    *ret_is = false;
    QR_TRY(qr_jobs_stage_view(change->tx, item->id, &change->arena, &job, err));
    if (!job.found) {
        return QR_OK; /* a container that is only rolled up; anything else recovery finds */
    }
    if (job.state == QR_JOB_RUNNING) {
        bool is_alive;
        QR_TRY(has_live_lease(change, &job, &is_alive, err));
        const bool is_old = change->now_ms - job.claimed_ms > RUNNING_STALE_MS;
        *ret_is = is_old && (!is_alive || change->now_ms - job.progress_ms > RUNNING_STALE_MS);
        return QR_OK;
    }
    int64_t paused_since_ms;
    QR_TRY(qr_queue_paused_since(change->tx, qr_job_type_info(job.type)->queue, &paused_since_ms, err));
    *ret_is = job.state == QR_JOB_QUEUED && paused_since_ms == 0 && change->now_ms - job.run_at_ms > QUEUED_STALE_MS;
    return QR_OK;
}

/* ---- one item ---- */

static qr_rc take_up(struct qr_change *change, struct qr_item *item, const char *reason, qr_err *err)
{
    QR_TRY(qr_raise_generation(change, item, reason, err));
    item->wanted = item->wanted ? item->wanted : QR_WANT_ALL;
    return qr_schedule_strictly(change, item, err);
}

static qr_rc retry_active(struct qr_change *change, struct qr_item *item, const char **ret_skipped, qr_err *err)
{
    bool stale;
    QR_TRY(is_stale(change, item, &stale, err));
    *ret_skipped = stale ? NULL : "already_in_progress";
    return stale ? take_up(change, item, "stale_takeover", err) : QR_OK;
}

qr_rc qr_retry_one(struct qr_change *change, struct qr_item *item, qr_uuid *ret_job_id, const char **ret_skipped,
                   qr_err *err)
{
    bool found;
    *ret_skipped = NULL;
    switch (item->status) {
    case QR_ITEM_COMPLETED:
        *ret_skipped = "already_indexed";
        return QR_OK;
    case QR_ITEM_IDLE:
        *ret_skipped = "not_failed";
        return QR_OK;
    case QR_ITEM_FAILED:
        break;
    default:
        QR_TRY(retry_active(change, item, ret_skipped, err));
        return qr_jobs_find_stage(change->tx, item->id, &found, ret_job_id, err);
    }
    if (item->is_container && !item->expand_code[0]) { /* RETRY-3: there may be many below, so a job does it */
        return qr_enqueue_roots(change, QR_JOB_REINDEX_SUBTREE, "retry", item->base_id, item, 1, &change->arena,
                                ret_job_id, err);
    }
    QR_TRY(take_up(change, item, "retry", err));
    return qr_jobs_find_stage(change->tx, item->id, &found, ret_job_id, err);
}

static qr_rc retry_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_selection_call *call = arg;
    struct qr_item *roots;
    size_t count;
    QR_CHANGE(change);
    QR_TRY(qr_selection_begin(&change, tx, call, &roots, &count, err));
    for (size_t i = 0; i < count; i++) {
        const char *skipped;
        QR_TRY(qr_retry_one(&change, &roots[i], &call->answer->job_id, &skipped, err));
        if (skipped) {
            qr_selection_skip(call->answer, roots[i].id, skipped);
        } else {
            qr_selection_accept(call->answer, roots[i].id);
        }
    }
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("retry.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_retry(const struct qr_workflow *workflow, const struct qr_selection *selection,
                        struct qr_arena *arena, struct qr_selection_answer *ret_answer, qr_err *err)
{
    QR_TRY(qr_selection_answer_init(ret_answer, selection, arena, err));
    struct qr_selection_call call = {.workflow = workflow, .selection = selection, .answer = ret_answer};
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, retry_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("retry.after_commit", NULL);
    return QR_OK;
}
