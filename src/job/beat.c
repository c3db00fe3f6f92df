/* Owns the times at which periodic tasks are due, and the thread that does them. The invariants are in beat.h. */
#include "job/beat.h"

#include "base/failpoint.h"
#include "base/mem.h"
#include "base/sync.h"
#include "job/runner.h"
#include "store/beats.h"

#include <assert.h>
#include <stdatomic.h>

enum {
    PRUNE_JOBS_MS = 600000,
    PRUNE_SLOTS_MS = 3600000,
    RETRY_MS_MIN = 1000, /* after a failure: doubling, up to the task's own interval */
    STEPS_MAX = 10000,   /* of one slot: a task that never ends must not keep the others from their turn */
};

struct entry {
    struct qr_beat_task task;
    int64_t due_mono_ms; /* 0 = at once */
    int64_t retry_ms;    /* 0 = the last try did not fail */
    bool has_rest;       /* of recovery (B5) */
};

/* Entries are used by whoever runs a round (the thread, once it is started); the lock guards the rest. */
struct qr_beat {
    struct qr_beat_options options;
    struct qr_runner *runner; /* of this process: it lives, whatever its lease says; NULL = none */
    struct entry entries[QR_BEAT_TASKS_MAX];
    size_t entry_count;
    int64_t freed_count;      /* by the step that runs */
    _Atomic uint64_t rescued; /* by all that were committed; read by any thread */

    struct qr_mutex lock;
    struct qr_signal wake;
    struct qr_thread thread;
    bool has_thread, is_stopping;
};

/* ---- the tasks that are built in ---- */

/* Both in one transaction: a worker that was declared dead and still has its jobs is what the next step begins with. */
static qr_rc rescue(struct qr_tx *tx, void *arg, bool *ret_more, qr_err *err)
{
    struct qr_beat *beat = arg;
    const qr_uuid spared = beat->runner ? qr_runner_worker_id(beat->runner) : (qr_uuid){0};
    int64_t dead_count, freed_count;
    QR_TRY(qr_workers_declare_dead(tx, false, spared, &dead_count, err));
    QR_TRY(qr_workers_free_jobs(tx, &freed_count, err));
    beat->freed_count = freed_count;
    *ret_more = freed_count > 0;
    return QR_OK;
}

static qr_rc prune_jobs(struct qr_tx *tx, void *arg, bool *ret_more, qr_err *err)
{
    const struct qr_beat *beat = arg;
    int64_t now_ms, count;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_jobs_prune(tx, now_ms - beat->options.keep_jobs_ms, &count, err));
    *ret_more = count == QR_JOB_PRUNE_MAX;
    return QR_OK;
}

static qr_rc prune_slots(struct qr_tx *tx, void *arg QR_UNUSED, bool *ret_more, qr_err *err)
{
    int64_t now_ms, count;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_beats_prune(tx, now_ms - QR_BEAT_KEEP_SLOTS_MS, &count, err));
    *ret_more = count == QR_BEAT_PRUNE_MAX;
    return QR_OK;
}

/* ---- doing one task ---- */

static bool is_stopping(struct qr_beat *beat)
{
    QR_HOLD(&beat->lock);
    return beat->is_stopping;
}

/* One transaction of a task. What it says it says anew each time it runs. */
struct step {
    const struct qr_beat_task *task;
    bool has_rest; /* of what was begun before: goes on whoever had the slot (B5) */
    bool more;
    bool took_slot; /* else somebody had done its work */
    int64_t now_ms, slot_ms;
};

static qr_rc run_step(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct step *step = arg;
    step->more = false;
    return step->task->fn(tx, step->task->arg, &step->more, err);
}

/* Also right before 1970: a test's clock may begin there. */
static int64_t slot_of(int64_t now_ms, int64_t every_ms)
{
    return now_ms - ((now_ms % every_ms) + every_ms) % every_ms;
}

/* B3: not even a recovery task is done twice for a slot, unless the slots tell nothing, because the clock was set back. Then
 * each beat does it in its own time until the clock has come to where it was. */
static qr_rc is_to_be_done(struct qr_tx *tx, struct step *step, bool *ret_is_to_be_done, qr_err *err)
{
    *ret_is_to_be_done = step->took_slot;
    return step->took_slot || !step->task->is_recovery
               ? QR_OK
               : qr_beats_is_ahead(tx, step->task->name, step->slot_ms, ret_is_to_be_done, err);
}

/* B1, B2 */
static qr_rc run_slot(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct step *step = arg;
    step->more = false;
    QR_TRY(qr_tx_now_ms(tx, &step->now_ms, err));
    step->slot_ms = slot_of(step->now_ms, step->task->every_ms);
    QR_TRY(qr_beats_take(tx, step->task->name, step->slot_ms, &step->took_slot, err));
    bool is_due;
    QR_TRY(is_to_be_done(tx, step, &is_due, err));
    if (!is_due) {
        step->more = step->has_rest;
        return QR_OK;
    }
    QR_TRY(run_step(tx, step, err));
    QR_FAILPOINT("beat.slot.before_commit", err);
    return QR_OK;
}

/* Nothing here is promised to anybody: what a power loss takes, slot and work together, is done again. */
static qr_rc write_step(struct qr_beat *beat, qr_tx_fn *fn, struct step *step, qr_err *err)
{
    if (step->task->look) {
        QR_TRY(step->task->look(step->task->arg, err));
    }
    beat->freed_count = 0;
    QR_TRY(qr_db_write(beat->options.db, QR_RELAXED, fn, step, err));
    atomic_fetch_add(&beat->rescued, (uint64_t)beat->freed_count);
    return QR_OK;
}

uint64_t qr_beat_rescued(const struct qr_beat *beat)
{
    return atomic_load(&beat->rescued);
}

static qr_rc run_rest(struct qr_beat *beat, struct step *step, qr_err *err)
{
    for (int i = 0; step->more && i < STEPS_MAX && !is_stopping(beat); i++) {
        QR_TRY(write_step(beat, run_step, step, err));
    }
    return QR_OK;
}

static void log_failure(const struct qr_beat *beat, const struct qr_beat_task *task, const qr_err *err)
{
    if (beat->options.log) {
        qr_log(beat->options.log, QR_LOG_WARN, "beat_failed", qr_field_text("task", task->name),
               qr_field_text("error", qr_code_info(err->code)->name), qr_field_text("message", err->msg));
    }
}

static void run_entry(struct qr_beat *beat, struct entry *entry)
{
    struct step step = {.task = &entry->task, .has_rest = entry->has_rest};
    qr_err err = {0};
    qr_rc rc = write_step(beat, run_slot, &step, &err);
    const bool slot_is_done = rc == QR_OK;
    if (slot_is_done) {
        if (step.took_slot) {
            (void)QR_FAILPOINT_RC("beat.slot.after_commit", NULL);
        }
        rc = run_rest(beat, &step, &err);
    }
    if (rc != QR_OK) {
        log_failure(beat, &entry->task, &err);
    }
    const int64_t now_mono_ms = qr_clock_mono_ms(beat->options.clock);
    if (slot_is_done) { /* what is left of its work is the next slot's (B4) */
        entry->retry_ms = 0;
        entry->has_rest = entry->task.is_recovery && (step.more || rc != QR_OK);
        entry->due_mono_ms = now_mono_ms + step.slot_ms + entry->task.every_ms - step.now_ms;
    } else {
        entry->retry_ms = QR_MIN(QR_MAX(entry->retry_ms * 2, (int64_t)RETRY_MS_MIN), entry->task.every_ms);
        entry->due_mono_ms = now_mono_ms + entry->retry_ms;
    }
}

int64_t qr_beat_round(struct qr_beat *beat)
{
    int64_t next_mono_ms = INT64_MAX;
    for (size_t i = 0; i < beat->entry_count && !is_stopping(beat); i++) {
        struct entry *entry = &beat->entries[i];
        if (entry->due_mono_ms == 0 || qr_clock_mono_ms(beat->options.clock) >= entry->due_mono_ms) {
            run_entry(beat, entry);
        }
        next_mono_ms = QR_MIN(next_mono_ms, entry->due_mono_ms);
    }
    return next_mono_ms;
}

qr_rc qr_beat_run_recovery(struct qr_beat *beat, int64_t budget_ms, qr_err *err)
{
    const int64_t began_ms = qr_clock_mono_ms(beat->options.clock);
    for (size_t i = 0; i < beat->entry_count; i++) {
        struct entry *entry = &beat->entries[i];
        struct step step = {.task = &entry->task, .more = entry->task.is_recovery};
        while (step.more && !entry->task.look && !is_stopping(beat) &&
               qr_clock_mono_ms(beat->options.clock) - began_ms < budget_ms) {
            QR_TRY(write_step(beat, run_step, &step, err));
        }
        entry->has_rest = step.more;
    }
    return QR_OK;
}

/* ---- the thread ---- */

static void beat_main(void *arg)
{
    struct qr_beat *beat = arg;
    qr_mutex_lock(&beat->lock);
    while (!beat->is_stopping) {
        qr_mutex_unlock(&beat->lock);
        const int64_t next_mono_ms = qr_beat_round(beat);
        qr_mutex_lock(&beat->lock);
        while (!beat->is_stopping &&
               qr_signal_wait_until(&beat->wake, &beat->lock, beat->options.clock, next_mono_ms)) {
        }
    }
    qr_mutex_unlock(&beat->lock);
}

qr_rc qr_beat_start(struct qr_beat *beat, qr_err *err)
{
    assert(!beat->has_thread);
    QR_TRY(qr_thread_spawn(&beat->thread, "quire-clock", beat_main, beat, err));
    beat->has_thread = true;
    return QR_OK;
}

void qr_beat_stop(struct qr_beat *beat)
{
    if (!beat->has_thread) {
        return;
    }
    {
        QR_HOLD(&beat->lock);
        beat->is_stopping = true;
        qr_signal_all(&beat->wake);
    }
    qr_thread_join(&beat->thread);
    beat->has_thread = beat->is_stopping = false;
}

/* ---- making it ---- */

static void add_task(struct qr_beat *beat, const struct qr_beat_task *task)
{
    beat->entries[beat->entry_count++] = (struct entry){.task = *task};
}

static qr_rc check_options(const struct qr_beat_options *options, qr_err *err)
{
    if (options->keep_jobs_ms < 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "jobs that ended cannot be kept for less than no time");
    }
    for (size_t i = 0; i < options->task_count; i++) {
        const struct qr_beat_task *task = &options->tasks[i];
        if (task->every_ms < 1 || task->every_ms > QR_BEAT_EVERY_MS_MAX) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "the task %s of the beat is due every 1 to %d ms, not %lld",
                           task->name, QR_BEAT_EVERY_MS_MAX, (long long)task->every_ms);
        }
    }
    return QR_OK;
}

qr_rc qr_beat_create(struct qr_beat **ret_beat, const struct qr_beat_options *options, qr_err *err)
{
    QR_TRY(check_options(options, err));
    struct qr_beat *beat = qr_alloc_zero(sizeof *beat);
    if (!beat) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the beat");
    }
    const struct qr_beat_task built_in[] = {
        {"rescue", QR_BEAT_RESCUE_MS, rescue, beat, .is_recovery = true},
        {"prune-jobs", PRUNE_JOBS_MS, prune_jobs, beat},
        {"prune-slots", PRUNE_SLOTS_MS, prune_slots, beat},
    };
    assert(options->task_count <= QR_BEAT_TASKS_MAX - QR_COUNT(built_in));
    beat->options = *options;
    beat->options.keep_jobs_ms =
        options->keep_jobs_ms ? QR_MIN(options->keep_jobs_ms, QR_BEAT_KEEP_JOBS_MS_MAX) : QR_BEAT_KEEP_JOBS_MS;
    for (size_t i = 0; i < QR_COUNT(built_in); i++) {
        add_task(beat, &built_in[i]);
    }
    for (size_t i = 0; i < options->task_count; i++) {
        add_task(beat, &options->tasks[i]);
    }
    qr_mutex_init(&beat->lock);
    qr_signal_init(&beat->wake);
    *ret_beat = beat;
    return QR_OK;
}

void qr_beat_spare(struct qr_beat *beat, struct qr_runner *runner)
{
    assert(!beat->has_thread);
    beat->runner = runner;
}

void qr_beat_free(struct qr_beat *beat)
{
    if (beat) {
        qr_beat_stop(beat);
        qr_signal_done(&beat->wake);
        qr_mutex_done(&beat->lock);
        qr_free(beat);
    }
}
