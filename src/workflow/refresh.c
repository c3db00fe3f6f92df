/* refresh: queues a look at the source, changes no state (REFR-1). What follows from it decides plan_side.c. */
#include "base/failpoint.h"
#include "workflow/guard.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

static qr_rc refresh_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_selection_call *call = arg;
    struct qr_item *roots;
    size_t count;
    QR_CHANGE(change);
    QR_TRY(qr_selection_begin(&change, tx, call, &roots, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (roots[i].source.len == 0) {
            qr_selection_skip(call->answer, roots[i].id, "no_source");
            continue;
        }
        QR_TRY(qr_enqueue_refresh(&change, &roots[i], err));
        qr_selection_accept(call->answer, roots[i].id);
    }
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("refresh.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_refresh(const struct qr_workflow *workflow, const struct qr_selection *selection,
                          struct qr_arena *arena, struct qr_selection_answer *ret_answer, qr_err *err)
{
    QR_TRY(qr_selection_answer_init(ret_answer, selection, arena, err));
    struct qr_selection_call call = {.workflow = workflow, .selection = selection, .answer = ret_answer};
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, refresh_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("refresh.after_commit", NULL);
    return QR_OK;
}
