/* The order in which everything about an item goes (I7). Main database and index store share no transaction, so that a crash
 * between two steps must leave rows that are still `deleting`, hidden and found again, never something that nothing points
 * to:
 *
 *   1 its jobs are cancelled: from here on nobody can write index rows for it
 *   2 its index rows go, and their going is made durable
 *   3 artifact rows and item rows go in one transaction
 *   4 the files go; those that a crash leaves are swept */
#include "handler/cleanup.h"

#include "base/failpoint.h"
#include "store/change.h"
#include "store/jobs_item.h"

enum { ITEMS_A_STEP = 32 }; /* in one transaction: others wait for it, and FTS5 forgets few rows as cheaply as many */

struct step {
    struct qr_attempt *attempt;
    const struct qr_item *items;
    size_t count;
    struct qr_arena *arena; /* of the names of files */
    const char **files;
    size_t file_count;
};

/* ---- 1 ---- */

static qr_rc cancel_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct step *step = arg;
    for (size_t i = 0; i < step->count; i++) {
        QR_TRY(qr_jobs_cancel_of_item(tx, step->items[i].id, "deleting", "the item is being deleted", err));
    }
    return QR_OK;
}

/* Best effort: nobody waits for what it makes of them. */
static void cancel_tickets(const struct step *step)
{
    struct qr_attempt *attempt = step->attempt;
    for (size_t i = 0; i < step->count; i++) {
        if (step->items[i].ticket[0] && attempt->settings.file_processor.kind) {
            qr_attempt_cancel_ticket(attempt, &step->items[i]);
        }
    }
}

/* ---- 2 ---- */

static qr_rc index_step(struct step *step, qr_err *err)
{
    qr_uuid ids[ITEMS_A_STEP];
    for (size_t i = 0; i < step->count; i++) {
        ids[i] = step->items[i].id;
    }
    QR_TRY(qr_index_delete_items(step->attempt->context->index, step->attempt->base.id, ids, step->count, err));
    QR_FAILPOINT("delete.index_rows.done", err);
    return QR_OK;
}

/* ---- 3 ---- */

static qr_rc remove_rows(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct step *step = arg;
    qr_uuid ids[ITEMS_A_STEP];
    QR_CHANGE(change);
    qr_arena_reset(step->arena);
    QR_TRY(qr_change_begin(&change, tx, step->attempt->context->ids, &step->attempt->base.id, 1, err));
    for (size_t i = 0; i < step->count; i++) {
        ids[i] = step->items[i].id;
        QR_TRY(qr_item_remove(&change, &step->items[i], err));
    }
    QR_TRY(qr_artifacts_remove(tx, ids, step->count, step->arena, &step->files, &step->file_count, err));
    QR_TRY(qr_change_finish(&change, err));
    QR_FAILPOINT("delete.rows.before_commit", err);
    return QR_OK;
}

/* ---- all of it ---- */

static qr_rc cancel_step(struct step *step, qr_err *err)
{
    QR_TRY(qr_job_write(step->attempt->run, QR_RELAXED, cancel_jobs, step, err));
    QR_FAILPOINT("delete.cancel.done", err);
    cancel_tickets(step);
    return QR_OK;
}

static qr_rc remove_step(struct step *step, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    step->arena = &arena; /* cppcheck-suppress autoVariables ; nobody looks at it afterwards */
    QR_TRY(qr_job_write(step->attempt->run, QR_DURABLE, remove_rows, step, err));
    QR_FAILPOINT("delete.rows.done", err);
    qr_artifacts_unlink(step->attempt->context->artifacts, step->files, step->file_count);
    QR_FAILPOINT("delete.files.done", err);
    return QR_OK;
}

typedef qr_rc step_fn(struct step *step, qr_err *err);

static qr_rc for_each_step(struct qr_attempt *attempt, const struct qr_item *items, size_t count, step_fn *fn,
                           qr_err *err)
{
    for (size_t at = 0; at < count; at += ITEMS_A_STEP) {
        struct step step = {.attempt = attempt, .items = items + at, .count = QR_MIN(count - at, (size_t)ITEMS_A_STEP)};
        QR_TRY(qr_attempt_go_on(attempt, err));
        QR_TRY(fn(&step, err));
    }
    return QR_OK;
}

/* DEL-1: a damaged store keeps no delete from its end. It is made anew from the items that are left. */
static qr_rc remove_index_rows(struct qr_attempt *attempt, const struct qr_item *items, size_t count, qr_err *err)
{
    qr_rc rc = for_each_step(attempt, items, count, index_step, err);
    if (rc == QR_OK) {
        rc = qr_index_sync(attempt->context->index, attempt->base.id, err);
    }
    return rc == QR_CORRUPT ? QR_OK : rc;
}

qr_rc qr_cleanup_items(struct qr_attempt *attempt, const struct qr_item *items, size_t count, bool has_index,
                       qr_err *err)
{
    QR_TRY(for_each_step(attempt, items, count, cancel_step, err));
    if (has_index) {
        QR_TRY(remove_index_rows(attempt, items, count, err));
    }
    return for_each_step(attempt, items, count, remove_step, err);
}
