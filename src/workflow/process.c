/* Runs. */
#include "workflow/process.h"

#include "base/failpoint.h"
#include "store/assets.h"
#include "workflow/guard.h"
#include "workflow/schedule.h"

enum { WINDOW = 256, LOW_WATER = 128, OPEN_RUNS_MAX = 64 };

/* ---- stages ---- */

static enum qr_run_stage stage_of(enum qr_job_type type)
{
    switch (type) {
    case QR_JOB_CHUNK_DOCUMENT:
        return QR_RUN_CHUNK;
    case QR_JOB_INDEX_CHUNKS:
        return QR_RUN_INDEX;
    case QR_JOB_ANALYZE_ASSET:
        return QR_RUN_ASSETS;
    default:
        return QR_RUN_PROCESS;
    }
}

qr_rc qr_run_stage_ended(struct qr_change *change, const struct qr_item *item, enum qr_job_type type, bool has_failed,
                         qr_err *err)
{
    if (qr_uuid_is_zero(item->run_id) || type == QR_JOB_CHECK_FILE_PROCESSING) {
        return QR_OK;
    }
    return qr_run_count_stage(change->tx, item->run_id, stage_of(type), 1, !has_failed, has_failed, err);
}

/* ---- what fits ---- */

static qr_rc start_item(struct qr_change *change, struct qr_run *run, struct qr_item *item, qr_err *err)
{
    bool is_deleting;
    QR_TRY(qr_item_is_deleting(change, item, &is_deleting, err));
    if (is_deleting) {
        return QR_OK;
    }
    item->wanted |= run->wanted;
    item->run_id = run->id;
    QR_TRY(qr_schedule_strictly(change, item, err));
    run->active++;
    return QR_OK;
}

/* Takes what needs this stage to work, as far as the window and the level go. P2: only what has not been read yet waits for
 * its level. *ret_next_level: the smallest depth that was held back; stays as it is when there is none. */
static qr_rc take_idle(struct qr_change *change, struct qr_run *run, int64_t needs, int64_t *ret_next_level,
                       qr_err *err)
{
    struct qr_item *items;
    size_t count = 0;
    if (!(run->wanted & needs) || run->active >= WINDOW) {
        return QR_OK;
    }
    QR_TRY(qr_items_idle(change->tx, run->base_id, needs, WINDOW, &change->arena, &items, &count, err));
    for (size_t i = 0; i < count && run->active < WINDOW; i++) {
        if (needs == QR_WANT_PROCESS && items[i].depth > run->level) {
            *ret_next_level = items[i].depth;
            break;
        }
        QR_TRY(start_item(change, run, &items[i], err));
    }
    return QR_OK;
}

static qr_rc fill_window(struct qr_change *change, struct qr_run *run, int64_t *ret_next_level, qr_err *err)
{
    static const int64_t stages[] = {QR_WANT_INDEX, QR_WANT_CHUNK, QR_WANT_PROCESS}; /* nearly done goes first */
    *ret_next_level = -1;
    for (size_t i = 0; i < QR_COUNT(stages); i++) {
        QR_TRY(take_idle(change, run, stages[i], ret_next_level, err));
    }
    return QR_OK;
}

static qr_rc finish_run(struct qr_change *change, struct qr_run *run, qr_err *err)
{
    run->status = run->failed > 0 ? QR_RUN_COMPLETED_WITH_ERRORS : QR_RUN_COMPLETED;
    QR_TRY(qr_change_note(change, run->base_id, run->id, QR_EVENT_RUN, 0, qr_run_status_name(run->status), err));
    return qr_run_set(change->tx, run, err);
}

/* Takes more to work, goes to the next level, or ends the run. */
static qr_rc advance(struct qr_change *change, struct qr_run *run, int64_t level_max, qr_err *err)
{
    for (;;) {
        int64_t next_level;
        QR_TRY(fill_window(change, run, &next_level, err));
        if (run->active > 0) {
            return qr_run_set(change->tx, run, err);
        }
        if (next_level < 0 || next_level > level_max) {
            return finish_run(change, run, err);
        }
        run->level = next_level;
    }
}

/* ---- after every change ---- */

static qr_rc advance_runs(struct qr_change *change, qr_err *err)
{
    if (!change->first_run_delta && !change->first_delta) {
        return QR_OK;
    }
    QR_TRY(qr_change_roll_up(change, err)); /* containers that leave `preparing` */
    for (struct qr_run_delta *delta = change->first_run_delta; delta; delta = delta->next) {
        struct qr_run run;
        bool found;
        QR_TRY(qr_run_find(change->tx, delta->run_id, &found, &run, err));
        if (!found || run.status != QR_RUN_RUNNING) {
            continue;
        }
        run.active += delta->active;
        run.failed += delta->failed;
        if (run.active <= LOW_WATER) {
            QR_TRY(advance(change, &run, run.gate_is_manual ? run.level : INT64_MAX, err));
        }
    }
    return QR_OK;
}

qr_rc qr_workflow_finish(struct qr_change *change, qr_err *err)
{
    QR_TRY(advance_runs(change, err));
    return qr_change_finish(change, err);
}

qr_rc qr_runs_advance_after_cleanup(struct qr_change *change, qr_uuid base_id, qr_err *err)
{
    qr_uuid open[OPEN_RUNS_MAX];
    size_t open_count;
    QR_TRY(qr_runs_open(change->tx, base_id, OPEN_RUNS_MAX, open, &open_count, err));
    for (size_t i = 0; i < open_count; i++) {
        struct qr_run run;
        bool found;
        QR_TRY(qr_run_find(change->tx, open[i], &found, &run, err));
        if (found && run.active == 0) {
            QR_TRY(advance(change, &run, run.gate_is_manual ? run.level : INT64_MAX, err));
        }
    }
    return QR_OK;
}

/* ---- process ---- */

struct process_call {
    const struct qr_workflow *workflow;
    const struct qr_process *process;
    qr_uuid run_id;
    struct qr_run run;
};

/* PROC-4: what other runs have at work, or will take, goes as far as this one asks too. *ret_level_max: the level that they
 * work on; this run does not go beyond it, for its level is not done (PROC-5). */
static qr_rc join_open_runs(struct qr_change *change, const struct qr_run *run, int64_t *ret_level_max, qr_err *err)
{
    qr_uuid open[OPEN_RUNS_MAX];
    size_t open_count;
    *ret_level_max = INT64_MAX;
    QR_TRY(qr_runs_open(change->tx, run->base_id, OPEN_RUNS_MAX, open, &open_count, err));
    for (size_t i = 0; i < open_count; i++) {
        struct qr_run other;
        struct qr_item *items;
        size_t count;
        bool found;
        QR_TRY(qr_run_find(change->tx, open[i], &found, &other, err));
        QR_TRY(qr_run_want(change->tx, open[i], run->wanted, err));
        *ret_level_max = found ? QR_MIN(*ret_level_max, other.level) : *ret_level_max;
        QR_TRY(qr_items_of_run(change->tx, open[i], (qr_uuid){0}, WINDOW, &change->arena, &items, &count, err));
        for (size_t j = 0; j < count; j++) {
            if ((items[j].wanted | run->wanted) != items[j].wanted) {
                items[j].wanted |= run->wanted;
                QR_TRY(qr_item_save(change, &items[j], err));
            }
        }
    }
    return QR_OK;
}

/* Side work: it is not waited for. */
static qr_rc start_assets(struct qr_change *change, const struct qr_run *run, qr_err *err)
{
    if (!(run->wanted & QR_WANT_ASSETS)) {
        return QR_OK;
    }
    struct qr_asset *assets;
    size_t count;
    QR_TRY(qr_assets_pending(change->tx, run->base_id, WINDOW, &change->arena, &assets, &count, err));
    for (size_t i = 0; i < count; i++) {
        const struct qr_item item = {
            .id = assets[i].item_id, .base_id = run->base_id, .generation = assets[i].generation};
        QR_TRY(qr_asset_enqueue(change->tx, change->ids, &item, assets[i].id, err));
        QR_TRY(qr_run_count_stage(change->tx, run->id, QR_RUN_ASSETS, 1, 0, 0, err));
    }
    return QR_OK;
}

/* The first level: the smallest depth at which something fits. */
static qr_rc process_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct process_call *call = arg;
    struct qr_run *run = &call->run;
    struct qr_base *base;
    bool found;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->process->base_id, 1, err));
    QR_TRY(qr_guard_base(&change, call->process->base_id, &base, err));
    *run = (struct qr_run){.id = call->run_id,
                           .base_id = call->process->base_id,
                           .wanted = call->process->wanted,
                           .status = QR_RUN_RUNNING,
                           .level = -1,
                           .gate_is_manual = call->process->gate_is_manual};
    int64_t level_max;
    QR_TRY(join_open_runs(&change, run, &level_max, err));
    QR_TRY(qr_run_add(tx, run, err));
    QR_TRY(start_assets(&change, run, err));
    QR_TRY(advance(&change, run, level_max, err));
    QR_TRY(qr_change_finish(&change, err));
    QR_FAILPOINT("process.before_commit", err);
    return qr_run_find(tx, call->run_id, &found, run, err);
}

qr_rc qr_workflow_process(const struct qr_workflow *workflow, const struct qr_process *process, struct qr_run *ret_run,
                          qr_err *err)
{
    struct process_call call = {.workflow = workflow, .process = process, .run_id = qr_uuid_next(workflow->ids)};
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, process_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("process.after_commit", NULL);
    *ret_run = call.run;
    return QR_OK;
}

/* ---- cancel ---- */

static qr_rc find_run(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct process_call *call = arg;
    bool found;
    QR_TRY(qr_run_find(tx, call->run_id, &found, &call->run, err));
    return found ? QR_OK : qr_fail(err, QR_CODE_NOT_FOUND, "there is no such run");
}

static qr_rc rest_items(struct qr_change *change, const struct qr_run *run, qr_err *err)
{
    struct qr_item *items;
    size_t count;
    QR_TRY(qr_items_of_run(change->tx, run->id, (qr_uuid){0}, 2 * WINDOW, &change->arena, &items, &count, err));
    for (size_t i = 0; i < count; i++) {
        QR_TRY(qr_jobs_cancel_stage(change->tx, items[i].id, "cancelled", "its run was cancelled", err));
        items[i].status = QR_ITEM_IDLE;
        items[i].run_id = (qr_uuid){0};
        items[i].wanted = 0;
        QR_TRY(qr_item_save(change, &items[i], err));
        QR_TRY(qr_purge_at_rest(change, &items[i], err));
    }
    return QR_OK;
}

static qr_rc cancel_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct process_call *call = arg;
    const qr_uuid base_id = call->run.base_id;
    struct qr_base *base;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &base_id, 1, err));
    QR_TRY(find_run(tx, call, err));
    QR_TRY(qr_guard_base(&change, base_id, &base, err));
    if (call->run.status != QR_RUN_RUNNING) {
        return qr_fail(err, QR_CODE_NOT_OPEN, "the run has ended: it is %s", qr_run_status_name(call->run.status));
    }
    call->run.status = QR_RUN_CANCELLED;
    QR_TRY(qr_run_set(tx, &call->run, err));
    QR_TRY(rest_items(&change, &call->run, err));
    QR_TRY(qr_change_note(&change, base_id, call->run_id, QR_EVENT_RUN, 0, "cancelled", err));
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("run.cancel.before_commit", err);
    return find_run(tx, call, err);
}

qr_rc qr_workflow_cancel_run(const struct qr_workflow *workflow, qr_uuid run_id, struct qr_run *ret_run, qr_err *err)
{
    struct process_call call = {.workflow = workflow, .run_id = run_id};
    QR_TRY(qr_db_read(workflow->db, find_run, &call, err));
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, cancel_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("run.cancel.after_commit", NULL);
    *ret_run = call.run;
    return QR_OK;
}
