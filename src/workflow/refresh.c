/* refresh: queues a look at the source, changes no state (REFR-1). What follows from it decides plan.c. */
#include "workflow/refresh.h"

#include "base/failpoint.h"
#include "workflow/guard.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

#include <stdio.h>

qr_rc qr_enqueue_refresh(struct qr_change *change, const struct qr_item *item, qr_err *err)
{
    char id[QR_UUID_TEXT_SIZE], key[32 + QR_UUID_TEXT_SIZE];
    qr_uuid_format(item->id, id);
    /* by generation: the look of an older one is thrown away */
    snprintf(key, sizeof key, "refresh:%s:%lld", id, (long long)item->generation);
    qr_uuid ignored;
    bool existed;
    return qr_jobs_add_side(change->tx, change->ids, QR_JOB_REFRESH_SOURCE, item->base_id, item->id, item->generation,
                            qr_str_of(key), (qr_str){0}, 0, &ignored, &existed, err);
}

struct refresh_call {
    const struct qr_workflow *workflow;
    const struct qr_selection *selection;
    struct qr_arena *arena;
    struct qr_selection_answer *answer;
};

static qr_rc refresh_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct refresh_call *call = arg;
    struct qr_selection_answer *answer = call->answer;
    struct qr_base *base;
    struct qr_item *roots;
    size_t count;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->selection->base_id, 1, err));
    QR_TRY(qr_guard_base(&change, call->selection->base_id, &base, err));
    QR_TRY(qr_guard_roots(&change, call->selection, false, &change.arena, &roots, &count, err));
    answer->accepted_count = answer->skipped_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (roots[i].source.len == 0) {
            answer->skipped[answer->skipped_count++] = (struct qr_skipped){roots[i].id, "no_source"};
            continue;
        }
        QR_TRY(qr_enqueue_refresh(&change, &roots[i], err));
        answer->accepted[answer->accepted_count++] = roots[i].id;
    }
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("refresh.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_refresh(const struct qr_workflow *workflow, const struct qr_selection *selection,
                          struct qr_arena *arena, struct qr_selection_answer *ret_answer, qr_err *err)
{
    QR_TRY(qr_selection_answer_init(ret_answer, selection, arena, err));
    struct refresh_call call = {workflow, selection, arena, ret_answer};
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, refresh_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("refresh.after_commit", NULL);
    return QR_OK;
}
