/* delete: marks the roots and queues their cleanup. From the commit on everything below is hidden (DEL-1 … DEL-4). */
#include "base/failpoint.h"
#include "workflow/guard.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

struct delete_call {
    struct qr_selection_call selection;
    struct qr_delete_mark mark;
};

static qr_rc delete_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct delete_call *call = arg;
    struct qr_selection_answer *answer = call->selection.answer;
    struct qr_item *roots;
    size_t count;
    QR_CHANGE(change);
    QR_TRY(qr_selection_begin(&change, tx, &call->selection, &roots, &count, err));
    for (size_t i = 0; i < count; i++) {
        qr_selection_accept(answer, roots[i].id);
    }
    call->mark = (struct qr_delete_mark){0};
    if (count > 0) {
        QR_TRY(qr_mark_deleting(&change, call->selection.selection->base_id, roots, count, &call->mark, err));
    }
    answer->job_id = call->mark.job_id;
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("delete.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_delete(const struct qr_workflow *workflow, const struct qr_selection *selection,
                         struct qr_arena *arena, struct qr_selection_answer *ret_answer, qr_err *err)
{
    QR_TRY(qr_selection_answer_init(ret_answer, selection, arena, err));
    struct delete_call call = {
        .selection = {.workflow = workflow, .selection = selection, .answer = ret_answer, .is_delete = true}};
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, delete_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("delete.after_commit", NULL);
    if (call.mark.failure.code != QR_CODE_NONE) {
        return qr_fail(err, QR_CODE_ENQUEUE_FAILED, "it is deleted and hidden, but its cleanup begins later: %s",
                       call.mark.failure.msg);
    }
    return QR_OK;
}
