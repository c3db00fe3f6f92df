/* delete-base: owns all cleanup of a base that is deleting (BASE-1). Its index store goes as a whole; then items in batches,
 * what else belongs to the base, and its row last: until then recovery finds it. */
#include "base/failpoint.h"
#include "handler/cleanup.h"
#include "handler/handlers.h"
#include "store/cleanup.h"

enum { JOBS_A_STEP = 200, ROWS_A_STEP = 2000 };

struct base_step {
    const struct qr_attempt *attempt;
    struct qr_arena *arena;
    struct qr_item *items;
    size_t count;
    int64_t removed;
};

static qr_rc cancel_some(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_step *step = arg;
    return qr_jobs_cancel_of_base(tx, step->attempt->base.id, "deleting", "the base is being deleted", JOBS_A_STEP,
                                  &step->count, err);
}

static qr_rc cancel_jobs(struct qr_attempt *attempt, qr_err *err)
{
    struct base_step step = {.attempt = attempt};
    do {
        QR_TRY(qr_attempt_go_on(attempt, err));
        QR_TRY(qr_job_write(attempt->run, QR_RELAXED, cancel_some, &step, err));
    } while (step.count > 0);
    QR_FAILPOINT("base.delete.cancel.done", err);
    return QR_OK;
}

static qr_rc next_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_step *step = arg;
    return qr_items_of_base(tx, step->attempt->base.id, (qr_str){0}, QR_CLEANUP_WINDOW, step->arena, &step->items,
                            &step->count, err);
}

static qr_rc remove_items(struct qr_attempt *attempt, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    int64_t done = 0;
    for (;;) {
        struct base_step step = {.attempt = attempt, .arena = &arena};
        qr_arena_reset(&arena);
        QR_TRY(qr_db_read(attempt->run->db, next_items, &step, err));
        if (step.count == 0) {
            return QR_OK;
        }
        QR_TRY(qr_cleanup_items(attempt, step.items, step.count, false, err));
        done += (int64_t)step.count;
        qr_job_progress(attempt->run, done, 0);
    }
}

static qr_rc clear_some(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_step *step = arg;
    return qr_base_clear(tx, step->attempt->base.id, ROWS_A_STEP, &step->removed, err);
}

static qr_rc remove_row(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct base_step *step = arg;
    QR_TRY(qr_base_remove(tx, step->attempt->base.id, err));
    QR_FAILPOINT("base.delete.row.before_commit", err);
    return QR_OK;
}

static qr_rc remove_rest(struct qr_attempt *attempt, qr_err *err)
{
    struct base_step step = {.attempt = attempt};
    do {
        QR_TRY(qr_attempt_go_on(attempt, err));
        QR_TRY(qr_job_write(attempt->run, QR_RELAXED, clear_some, &step, err));
    } while (step.removed > 0);
    return qr_job_write(attempt->run, QR_DURABLE, remove_row, &step, err);
}

static qr_rc delete_base(struct qr_attempt *attempt, qr_err *err)
{
    QR_TRY(cancel_jobs(attempt, err));
    QR_TRY(qr_index_drop(attempt->context->index, attempt->base.id, err));
    QR_FAILPOINT("base.delete.index.done", err);
    QR_TRY(remove_items(attempt, err));
    /* once more before the row goes: a handler that had not noticed yet may have opened the store, which makes it */
    QR_TRY(qr_index_retire(attempt->context->index, attempt->base.id, err));
    return remove_rest(attempt, err);
}

void qr_handle_delete_base(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    const uint32_t allowed = QR_BIT(QR_BASE_DELETING);
    if (!qr_attempt_begin_base(&attempt, run, allowed | QR_BIT(QR_BASE_FAILED), ret_outcome)) {
        return;
    }
    if (attempt.base.status != QR_BASE_DELETING) {
        qr_outcome_set(ret_outcome, qr_fail(&ret_outcome->error, QR_CODE_STALE, "the base is not being deleted"), NULL);
        return;
    }
    (void)!qr_settings_parse_text(attempt.base.settings, run->arena, &attempt.settings, NULL);
    qr_outcome_set(ret_outcome, delete_base(&attempt, &ret_outcome->error), NULL);
}
