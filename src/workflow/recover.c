/* Recovery. Nothing here is needed while all goes well: entry points and plan write states together with their jobs. It
 * finds what a failing enqueue, a cleanup that failed or an older version left behind.
 *
 * Jobs may run while it has not come to the end, as they do every minute and in other processes:
 * R1  What is stranded stays as it is. It has no job, so none is claimed for it; a container or a run does not end while one of
 *     its items is active; what is deleting is hidden by its row alone.
 * R2  Who gets there first is right. A request, an expansion or a cleanup that takes up a stranded item gives it a job or
 *     removes it; each item is looked at once more under its base's lock, and left alone then.
 * R3  Nothing is passed over: a walk goes on behind the last row of the step before, by keys that never change, and what is
 *     stranded behind its back is found by the next walk. */
#include "workflow/recover.h"

#include "workflow/guard.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

enum { EVERY_MS = 60000, SWEEP_MS = 3600000, ROWS_A_STEP = 2000, BASES_A_STEP = 200 };

static int rows_a_step(const struct qr_recovery_state *state)
{
    return state->rows_a_step ? state->rows_a_step : ROWS_A_STEP;
}

/* ---- deleting roots whose cleanup has no open job (RECOV-1) ---- */

static qr_rc has_open_cleanup(struct qr_tx *tx, const struct qr_item *root, struct qr_arena *arena, bool *ret_has,
                              qr_err *err)
{
    struct qr_job job;
    QR_TRY(qr_jobs_find(tx, root->cleanup_job_id, arena, ret_has, &job, err)); /* all zero: its enqueue failed */
    *ret_has = *ret_has && qr_job_state_is_open(job.state);
    return QR_OK;
}

static qr_rc clean_up(struct qr_change *change, struct qr_item *root, qr_err *err)
{
    const struct qr_base *base = qr_change_base(change, root->base_id);
    if (!base || base->status == QR_BASE_DELETING) {
        return QR_OK; /* delete-base has it */
    }
    return qr_mark_deleting(change, root->base_id, root, 1, NULL, err);
}

static qr_rc recover_root(struct qr_tx *tx, const struct qr_recovery_state *state, qr_uuid id, qr_uuid base_id,
                          qr_err *err)
{
    struct qr_item root;
    bool found, has_job;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, state->workflow->ids, &base_id, 1, err));
    QR_TRY(qr_item_find(tx, id, &change.arena, &found, &root, err));
    if (found) {
        QR_TRY(has_open_cleanup(tx, &root, &change.arena, &has_job, err));
        if (!has_job) {
            QR_TRY(clean_up(&change, &root, err));
        }
    }
    return qr_workflow_finish(&change, err);
}

static qr_rc recover_deletes(struct qr_tx *tx, void *arg, bool *ret_more, qr_err *err)
{
    struct qr_recovery_state *state = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_item *roots;
    size_t count;
    QR_TRY(qr_items_deleting_roots(tx, state->root_cursor, rows_a_step(state), &arena, &roots, &count, err));
    for (size_t i = 0; i < count; i++) {
        bool has_job;
        QR_TRY(has_open_cleanup(tx, &roots[i], &arena, &has_job, err));
        if (!has_job) {
            QR_TRY(recover_root(tx, state, roots[i].id, roots[i].base_id, err));
        }
    }
    *ret_more = (int)count == rows_a_step(state);
    state->root_cursor = *ret_more ? roots[count - 1].id : (qr_uuid){0};
    return QR_OK;
}

/* ---- deleting bases: their job is unique by its key, so it is simply asked for ---- */

static qr_rc recover_bases(struct qr_tx *tx, void *arg, bool *ret_more, qr_err *err)
{
    struct qr_recovery_state *state = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    const int limit = QR_MIN(rows_a_step(state), (int)BASES_A_STEP); /* their rows are large */
    struct qr_base *bases;
    size_t count;
    QR_TRY(qr_bases_list(tx, state->base_cursor, limit, true, &arena, &bases, &count, err));
    for (size_t i = 0; i < count; i++) {
        qr_uuid ignored;
        if (bases[i].status == QR_BASE_DELETING) {
            QR_TRY(qr_enqueue_base_job(tx, state->workflow->ids, QR_JOB_DELETE_BASE, bases[i].id, &ignored, err));
        }
    }
    *ret_more = (int)count == limit;
    state->base_cursor = *ret_more ? bases[count - 1].id : (qr_uuid){0};
    return QR_OK;
}

/* ---- active items without a job (RECOV-3) ---- */

static qr_rc resume_or_abandon(struct qr_change *change, struct qr_item *item, qr_err *err)
{
    struct qr_settings settings;
    bool is_deleting;
    QR_TRY(qr_item_is_deleting(change, item, &is_deleting, err));
    if (is_deleting) {
        return QR_OK;
    }
    QR_TRY(qr_base_settings(qr_change_base(change, item->base_id), &change->arena, &settings, err));
    if (settings.recovery == QR_RECOVERY_RESUME) {
        return qr_schedule_item(change, item, err);
    }
    qr_set_failed(change, item, "recovery", qr_code_info(QR_CODE_INTERRUPTED)->name,
                  "the process ended while it was worked on");
    QR_TRY(qr_item_save(change, item, err));
    return item->is_container ? qr_item_roll_up_later(change, item, err) : qr_purge_at_rest(change, item, err);
}

/* The look was before the lock: it is made again. */
static qr_rc recover_item(struct qr_tx *tx, const struct qr_recovery_state *state, qr_uuid id, qr_uuid base_id,
                          qr_err *err)
{
    struct qr_item item;
    bool found, has_job = true;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, state->workflow->ids, &base_id, 1, err));
    QR_TRY(qr_item_find(tx, id, &change.arena, &found, &item, err));
    if (found && qr_item_is_at_work(item.is_container, item.status)) {
        QR_TRY(qr_jobs_has_stage(tx, id, &has_job, err));
    }
    if (!has_job) {
        QR_TRY(resume_or_abandon(&change, &item, err));
    }
    return qr_workflow_finish(&change, err);
}

static qr_rc recover_items(struct qr_tx *tx, void *arg, bool *ret_more, qr_err *err)
{
    struct qr_recovery_state *state = arg;
    struct qr_item_cursor cursor = state->cursor; /* the function may run again */
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_item *items;
    size_t count;
    QR_TRY(qr_items_without_job(tx, &cursor, rows_a_step(state), &arena, &items, &count, err));
    for (size_t i = 0; i < count; i++) {
        QR_TRY(recover_item(tx, state, items[i].id, items[i].base_id, err));
    }
    *ret_more = cursor.path_len > 0;
    state->cursor = cursor;
    return QR_OK;
}

/* ---- what belongs to nobody (RECOV-5): files cannot be looked for inside a transaction, so a job does it ---- */

static qr_rc ask_for_sweep(struct qr_tx *tx, void *arg, bool *ret_more QR_UNUSED, qr_err *err)
{
    const struct qr_recovery_state *state = arg;
    qr_uuid ignored;
    bool existed;
    return qr_jobs_add_side(tx, state->workflow->ids, QR_JOB_PURGE, (qr_uuid){0}, (qr_uuid){0}, 0, QR_STR("sweep"),
                            (qr_str){0}, 0, &ignored, &existed, err);
}

void qr_recovery_tasks(struct qr_recovery_state *state, struct qr_beat_task ret_tasks[static QR_RECOVERY_TASKS])
{
    ret_tasks[0] = (struct qr_beat_task){"recover-deletes", EVERY_MS, recover_deletes, state, .is_recovery = true};
    ret_tasks[1] = (struct qr_beat_task){"recover-bases", EVERY_MS, recover_bases, state, .is_recovery = true};
    ret_tasks[2] = (struct qr_beat_task){"recover-items", EVERY_MS, recover_items, state, .is_recovery = true};
    ret_tasks[3] = (struct qr_beat_task){"sweep", SWEEP_MS, ask_for_sweep, state};
}
