/* reindex: refused unless everything selected is at rest; changes nothing itself, but queues the job that does
 * (REIDX-1, REIDX-2). */
#include "base/failpoint.h"
#include "workflow/guard.h"
#include "workflow/schedule.h"

enum { COUNTED_MAX = 1000, ESTIMATED_MAX = 100000 };

struct reindex_call {
    struct qr_selection_call selection;
    bool dry_run;
    struct qr_status_counts *counts;
    struct qr_reindex_estimate *estimate;
};

static qr_rc require_at_rest(struct qr_change *change, const struct reindex_call *call, const struct qr_item *roots,
                             size_t count, qr_err *err)
{
    *call->counts = (struct qr_status_counts){0};
    for (size_t i = 0; i < count && call->counts->total < COUNTED_MAX; i++) {
        struct qr_status_counts of_root;
        QR_TRY(qr_items_count_open(change->tx, roots[i].base_id, roots[i].path, COUNTED_MAX, &of_root, err));
        for (size_t status = 0; status < QR_COUNT(of_root.of); status++) {
            call->counts->of[status] += of_root.of[status];
        }
        call->counts->total += of_root.total;
    }
    if (call->counts->total > 0) {
        return qr_fail(err, QR_CODE_NOT_TERMINAL, "%lld%s items are not at rest yet", (long long)call->counts->total,
                       call->counts->total >= COUNTED_MAX ? " or more" : "");
    }
    return QR_OK;
}

/* What there is now, which is what will be embedded unless the sources changed. */
static qr_rc estimate(struct qr_change *change, const struct reindex_call *call, const struct qr_item *roots,
                      size_t count, qr_err *err)
{
    *call->estimate = (struct qr_reindex_estimate){0};
    for (size_t i = 0; i < count; i++) {
        struct qr_reindex_estimate of_root;
        QR_TRY(qr_items_sum_subtree(change->tx, roots[i].base_id, roots[i].path, ESTIMATED_MAX, &of_root.item_count,
                                    &of_root.chunk_count, &of_root.token_count, err));
        call->estimate->item_count += of_root.item_count;
        call->estimate->chunk_count += of_root.chunk_count;
        call->estimate->token_count += of_root.token_count;
    }
    return QR_OK;
}

static qr_rc reindex_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct reindex_call *call = arg;
    struct qr_selection_answer *answer = call->selection.answer;
    struct qr_item *roots;
    size_t count;
    QR_CHANGE(change);
    QR_TRY(qr_selection_begin(&change, tx, &call->selection, &roots, &count, err));
    QR_TRY(require_at_rest(&change, call, roots, count, err));
    QR_TRY(estimate(&change, call, roots, call->dry_run ? count : 0, err));
    for (size_t i = 0; i < count; i++) {
        qr_selection_accept(answer, roots[i].id);
    }
    if (count > 0 && !call->dry_run) {
        QR_TRY(qr_enqueue_roots(&change, QR_JOB_REINDEX_SUBTREE, "reindex", call->selection.selection->base_id, roots,
                                count, &change.arena, &answer->job_id, err));
    }
    QR_FAILPOINT("reindex.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_reindex(const struct qr_workflow *workflow, const struct qr_selection *selection, bool dry_run,
                          struct qr_arena *arena, struct qr_selection_answer *ret_answer,
                          struct qr_status_counts *ret_counts, struct qr_reindex_estimate *ret_estimate, qr_err *err)
{
    QR_TRY(qr_selection_answer_init(ret_answer, selection, arena, err));
    struct reindex_call call = {
        .selection = {.workflow = workflow, .selection = selection, .answer = ret_answer},
        .dry_run = dry_run,
        .counts = ret_counts,
        .estimate = ret_estimate,
    };
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, reindex_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("reindex.after_commit", NULL);
    return QR_OK;
}
