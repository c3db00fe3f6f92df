/* purge: what is left of generations that are neither live nor wanted (RECOV-5, REIDX-6).
 *
 * The two are read under the base lock, in a durable write: whatever swap made them what they are is durable before a row of
 * the generation before it goes. Index rows go after that, and only of generations older than the wanted one, so that a
 * generation that begins meanwhile is safe. */
#include "base/failpoint.h"
#include "handler/common.h"
#include "handler/handlers.h"
#include "handler/sweep.h"
#include "store/assets.h"
#include "store/change.h"

struct purge {
    struct qr_attempt *attempt;
    struct qr_arena *arena;
    bool is_wanted;
    int64_t live_generation, wanted_generation;
    const char **files;
    size_t file_count;
};

static qr_rc purge_rows(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct purge *purge = arg;
    const struct qr_job *job = purge->attempt->run->job;
    struct qr_item item;
    bool found, is_deleting = false;
    QR_CHANGE(change);
    purge->is_wanted = false;
    purge->file_count = 0;
    QR_TRY(qr_change_begin(&change, tx, purge->attempt->context->ids, &job->base_id, 1, err));
    QR_TRY(qr_item_find(tx, job->item_id, &change.arena, &found, &item, err));
    if (found) {
        QR_TRY(qr_item_is_deleting(&change, &item, &is_deleting, err));
    }
    if (!found || is_deleting) {
        return QR_OK; /* everything of it goes, or has gone */
    }
    purge->is_wanted = true;
    purge->live_generation = item.live_generation;
    purge->wanted_generation = item.generation;
    QR_TRY(qr_artifacts_purge(tx, item.id, item.live_generation, item.generation, purge->arena, &purge->files,
                              &purge->file_count, err));
    QR_TRY(qr_assets_purge(tx, item.id, item.live_generation, item.generation, err));
    QR_FAILPOINT("purge.before_commit", err);
    return QR_OK;
}

static qr_rc purge_item(struct qr_attempt *attempt, qr_err *err)
{
    struct purge purge = {.attempt = attempt, .arena = attempt->run->arena};
    const struct qr_job *job = attempt->run->job;
    QR_TRY(qr_job_write(attempt->run, QR_DURABLE, purge_rows, &purge, err));
    if (!purge.is_wanted) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "the item is gone");
    }
    QR_FAILPOINT("purge.rows.done", err);
    qr_artifacts_unlink(attempt->context->artifacts, purge.files, purge.file_count);
    QR_TRY(qr_index_purge_item(attempt->context->index, job->base_id, job->item_id, purge.live_generation,
                               purge.wanted_generation, err));
    QR_FAILPOINT("purge.index_rows.done", err);
    return QR_OK;
}

void qr_handle_purge(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (qr_uuid_is_zero(run->job->item_id)) {
        qr_sweep(run, ret_outcome);
        return;
    }
    if (qr_attempt_begin_base(&attempt, run, QR_BIT(QR_BASE_READY), ret_outcome)) {
        qr_outcome_set(ret_outcome, purge_item(&attempt, &ret_outcome->error), NULL);
        ret_outcome->level = QR_RELAXED;
    }
}
