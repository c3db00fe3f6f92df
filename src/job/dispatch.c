/* The dispatcher's transactions: what ended is recorded, what is due is queued, more is claimed, all in one commit (R1).
 *
 * The round works on a list of tasks that the books cannot lose meanwhile: only the dispatcher takes tasks out of them. */
#include "base/failpoint.h"
#include "base/mem.h"
#include "job/record.h"
#include "store/jobs_find.h"

#include <stdlib.h>

enum {
    ROUND_CLAIM_MAX = 256,
    ROUND_BASES_MAX = QR_ENDED_MAX + QR_ENDED_MAX + ROUND_CLAIM_MAX,
    UNRECORDED_MAX = QR_ENDED_MAX, /* ended, but not recorded: then they count as if they held up their threads */
    LOCKED_MS = 50,                /* what is due but locked by somebody else is looked at again after that */
};

struct round {
    struct qr_runner *runner;
    qr_uuid worker_id;
    bool may_claim;

    struct qr_ending endings[QR_ENDED_MAX];
    size_t ending_count;
    struct qr_outcome stuck; /* of handlers that do not return (R4) */

    struct {
        struct task *task;
        int64_t done, total;
    } progress[QR_ENDED_MAX];
    size_t progress_count;

    const char *why_back;
    struct watched {
        struct task *task;
        bool hand_back; /* else: is it still ours? */
        bool is_gone;
    } watched[ROUND_CLAIM_MAX];
    size_t watched_count;
    size_t args_bytes; /* of all of these: a transaction is bounded (DB-7) */

    qr_uuid bases[ROUND_BASES_MAX]; /* of all jobs above whose rows are written, each once, in order (L1) */
    size_t base_count;

    size_t want[QR_QUEUE_END];
    bool going_back[QR_QUEUE_END]; /* what just goes back is for others: not claimed by the same round */
    bool is_paused[QR_QUEUE_END];
    bool nothing_in_flight, suspect_in_flight; /* once the endings are out of the way (R5) */
    struct qr_arena arena;
    struct qr_job claimed[ROUND_CLAIM_MAX];
    size_t claimed_count, claimed_bytes;
    qr_uuid ring[QR_QUEUE_END];
    int64_t next_due_ms; /* wall; 0 = none */
    int64_t now_ms;
    bool lease_is_lost, is_more_due, is_more_to_look_at, progress_was_lost;
    bool is_full;     /* it claimed as much as it can */
    bool is_in_doubt; /* the claims in it may be ours, but are not in memory: the answer was lost, or memory is short */
};

/* ---- the bases (L1) ---- */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(qr_uuid));
}

/* In order, each once. */
static size_t sort_bases(qr_uuid *bases, size_t count)
{
    size_t kept = 0;
    qsort(bases, count, sizeof bases[0], compare_ids);
    for (size_t i = 0; i < count; i++) {
        const bool is_wanted = !qr_uuid_is_zero(bases[i]) && (kept == 0 || !qr_uuid_equal(bases[i], bases[kept - 1]));
        bases[kept] = bases[i];
        kept += is_wanted;
    }
    return kept;
}

static void gather_bases(struct round *round)
{
    size_t count = 0;
    for (size_t i = 0; i < round->ending_count; i++) {
        round->bases[count++] = round->endings[i].task->job.base_id;
    }
    for (size_t i = 0; i < round->progress_count; i++) {
        round->bases[count++] = round->progress[i].task->job.base_id;
    }
    for (size_t i = 0; i < round->watched_count; i++) {
        if (round->watched[i].hand_back) {
            round->bases[count++] = round->watched[i].task->job.base_id;
        }
    }
    round->base_count = sort_bases(round->bases, count);
}

qr_rc qr_plan_lock(struct qr_tx *tx, const qr_uuid *base_ids, size_t count, const struct qr_plan *plan, qr_err *err)
{
    return plan->lock && count > 0 ? plan->lock(tx, base_ids, count, plan->arg, err) : QR_OK;
}

/* ---- what we have ---- */

/* Tasks that are not ours any more, and those that we give up. */
static qr_rc settle_watched(struct qr_tx *tx, struct round *round, qr_err *err)
{
    const struct qr_job_release handed_back = {.outcome = "handed_back", .code = "", .message = round->why_back};
    for (size_t i = 0; i < round->watched_count; i++) {
        struct watched *watched = &round->watched[i];
        const struct qr_job *job = &watched->task->job;
        if (watched->hand_back) {
            const qr_rc rc = qr_jobs_release(tx, job->id, job->fence, &handed_back, err);
            if (rc != QR_OK && rc != QR_LOST) {
                return rc;
            }
            watched->is_gone = true;
            continue;
        }
        bool is_ours;
        QR_TRY(qr_jobs_is_held(tx, job->id, job->fence, round->worker_id, &is_ours, err));
        watched->is_gone = !is_ours;
    }
    return QR_OK;
}

/* ---- claiming ---- */

static qr_rc claim_queue(struct qr_tx *tx, struct round *round, enum qr_queue queue, bool suspects, size_t limit,
                         qr_err *err)
{
    if (round->claimed_bytes >= QR_JOB_BYTES_MAX) {
        return QR_OK;
    }
    struct qr_job_claim claim = {.worker_id = round->worker_id,
                                 .queue = queue,
                                 .suspects = suspects,
                                 .ring = &round->ring[queue],
                                 .arena = &round->arena,
                                 .jobs = round->claimed + round->claimed_count,
                                 .limit = QR_MIN(limit, ROUND_CLAIM_MAX - round->claimed_count)};
    if (claim.limit > 0) {
        QR_TRY(qr_jobs_claim(tx, &claim, err));
    }
    round->claimed_count += claim.count;
    round->claimed_bytes += claim.args_bytes;
    return QR_OK;
}

/* The queue of the suspect whose turn it is; 0 = of none. Deletes first: they wait for nothing but other suspects. */
static enum qr_queue next_suspect(const struct round *round, const struct qr_queue_offer *offers)
{
    for (enum qr_queue queue = QR_QUEUE_END - 1; queue > 0; queue--) {
        if (round->runner->options.slots[queue] > 0 && offers[queue].suspects) {
            return queue;
        }
    }
    return 0;
}

/* R5 */
static qr_rc claim(struct qr_tx *tx, struct round *round, qr_err *err)
{
    struct qr_queue_offer offers[QR_QUEUE_END];
    QR_TRY(qr_jobs_offered(tx, offers, err));
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        round->is_paused[queue] = offers[queue].is_paused;
    }
    const enum qr_queue suspect = next_suspect(round, offers);
    const bool is_its_turn = !round->suspect_in_flight && (suspect == QR_QUEUE_DELETE || round->nothing_in_flight);
    if (suspect && is_its_turn && round->want[suspect] > 0) {
        QR_TRY(claim_queue(tx, round, suspect, true, 1, err));
    }
    const size_t suspect_count = round->claimed_count;
    const bool has_suspect = suspect || round->suspect_in_flight;
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        if (offers[queue].any && (queue == QR_QUEUE_DELETE || !has_suspect)) {
            const size_t taken = queue == suspect ? suspect_count : 0;
            QR_TRY(claim_queue(tx, round, queue, false, round->want[queue] - taken, err));
        }
    }
    return QR_OK;
}

/* L1: the worker's row before all others. A lease that has ended is no error: what we have is settled under its fences. */
static qr_rc check_lease(struct qr_tx *tx, struct round *round, qr_err *err)
{
    const qr_rc rc = qr_worker_require_lease(tx, round->worker_id, err);
    round->lease_is_lost = rc == QR_LOST;
    return round->lease_is_lost ? QR_OK : rc;
}

static qr_rc write_progress(struct qr_tx *tx, struct round *round, qr_err *err)
{
    for (size_t i = 0; i < round->progress_count; i++) {
        const struct qr_job *job = &round->progress[i].task->job;
        const qr_rc rc =
            qr_jobs_set_progress(tx, job->id, job->fence, round->progress[i].done, round->progress[i].total, err);
        if (rc != QR_OK && rc != QR_LOST) {
            return rc;
        }
        round->progress_was_lost = round->progress_was_lost || rc == QR_LOST;
    }
    return QR_OK;
}

/* The write function of a round; everything it says it says anew each time it runs. */
static qr_rc run_round(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct round *round = arg;
    round->claimed_count = round->claimed_bytes = 0;
    round->lease_is_lost = round->is_more_due = round->progress_was_lost = false;
    round->next_due_ms = 0;
    memcpy(round->ring, round->runner->ring, sizeof round->ring);
    qr_arena_reset(&round->arena);
    QR_TRY(qr_tx_now_ms(tx, &round->now_ms, err));
    if (round->may_claim) {
        QR_TRY(check_lease(tx, round, err));
    }
    QR_TRY(qr_plan_lock(tx, round->bases, round->base_count, &round->runner->options.plan, err));
    QR_TRY(qr_record_endings(tx, round->endings, round->ending_count, err));
    QR_TRY(settle_watched(tx, round, err));
    QR_TRY(write_progress(tx, round, err));
    if (round->may_claim && !round->lease_is_lost) {
        int64_t due_count;
        QR_TRY(qr_jobs_promote_due(tx, &due_count, &round->next_due_ms, err));
        round->is_more_due = due_count == QR_JOB_BATCH_MAX;
        QR_TRY(claim(tx, round, err));
    }
    return QR_OK;
}

/* ---- before and after, with the lock ---- */

/* What is in flight once the endings are out of the way. */
struct in_flight {
    int by_queue[QR_QUEUE_END];
    int unrecorded[QR_QUEUE_END]; /* of those, what has ended and waits for a later round */
    int suspects;
};

static void gather_ending(struct round *round, struct task *task, const struct qr_outcome *outcome,
                          struct in_flight *left)
{
    if (round->ending_count == QR_ENDED_MAX || round->args_bytes >= QR_JOB_BYTES_MAX) {
        round->is_more_to_look_at = true;
        left->unrecorded[task->job.queue]++;
    } else {
        round->args_bytes += strlen(task->job.args);
        round->endings[round->ending_count++] = (struct qr_ending){.task = task, .outcome = outcome};
        left->by_queue[task->job.queue]--;
        left->suspects -= task->job.is_suspect;
    }
}

static void gather_progress(struct round *round, struct task *task, int64_t now_mono_ms)
{
    struct qr_runner *runner = round->runner;
    const int64_t due_mono_ms = QR_MAX(task->progress_mono_ms + QR_PROGRESS_MS, (int64_t)1);
    if (now_mono_ms < due_mono_ms || round->progress_count == QR_ENDED_MAX || round->args_bytes >= QR_JOB_BYTES_MAX) {
        const int64_t other_mono_ms = runner->progress_due_mono_ms;
        runner->progress_due_mono_ms = other_mono_ms ? QR_MIN(other_mono_ms, due_mono_ms) : due_mono_ms;
        return;
    }
    round->args_bytes += strlen(task->job.args);
    round->progress[round->progress_count].task = task;
    round->progress[round->progress_count].done = task->progress_done;
    round->progress[round->progress_count++].total = task->progress_total;
    task->progress_is_new = false;
    task->progress_mono_ms = now_mono_ms;
}

static void gather_task(struct round *round, struct task *task, struct in_flight *left, int64_t now_mono_ms)
{
    const struct qr_runner *runner = round->runner;
    if (task->state == TASK_ENDED || task->state == TASK_PREPARED) {
        return;
    }
    if (task->is_stuck) {
        gather_ending(round, task, &round->stuck, left);
        return;
    }
    const bool hand_back = runner->handing_back || runner->lease_is_lost ||
                           (runner->stopping && task->state == TASK_READY) || qr_task_goes_back(task, now_mono_ms);
    if ((task->needs_look || hand_back) && round->watched_count < ROUND_CLAIM_MAX &&
        round->args_bytes < QR_JOB_BYTES_MAX) {
        round->watched[round->watched_count++] = (struct watched){.task = task, .hand_back = hand_back};
        task->needs_look = false;
        if (hand_back) {
            qr_task_hold(task);
            round->args_bytes += strlen(task->job.args);
            left->by_queue[task->job.queue]--;
            left->suspects -= task->job.is_suspect;
            round->going_back[task->job.queue] = true;
        }
    } else {
        round->is_more_to_look_at = round->is_more_to_look_at || task->needs_look || hand_back;
    }
    if (task->progress_is_new) {
        gather_progress(round, task, now_mono_ms);
    }
}

/* What keeps threads from beginning something: not what has ended, unless recording it falls far behind. */
static int at_work(const struct in_flight *left, enum qr_queue queue)
{
    const int unrecorded = left->unrecorded[queue];
    return left->by_queue[queue] - (unrecorded < UNRECORDED_MAX ? unrecorded : 0);
}

static void gather(struct round *round)
{
    struct qr_runner *runner = round->runner;
    const int64_t now_mono_ms = qr_runner_mono_ms(runner);
    round->worker_id = runner->worker_id;
    round->may_claim = !runner->stopping && !runner->lease_is_lost;
    round->why_back = runner->lease_is_lost ? "the worker's lease had ended"
                      : runner->stopping    ? "the process was ending"
                                            : "claimed, but not begun: its queue was paused, or all threads busy";
    round->stuck.kind = QR_OUTCOME_FAILED;
    qr_fail(&round->stuck.error, QR_CODE_TIMEOUT, "the job went on although it was told to end");
    for (struct task *task = runner->newest; task && runner->look_for_lost; task = task->older) {
        task->needs_look = true;
    }
    runner->look_for_lost = runner->is_woken = false;
    runner->progress_due_mono_ms = 0;
    struct in_flight left = {.suspects = runner->suspects_in_flight};
    memcpy(left.by_queue, runner->in_flight, sizeof left.by_queue);
    for (struct task *task = runner->prepared.first; task; task = task->next) {
        gather_ending(round, task, &task->outcome, &left);
    }
    for (const struct task *task = runner->ended.first; task; task = task->next) {
        left.unrecorded[task->job.queue] += task->state == TASK_ENDED;
    }
    for (struct task *task = runner->newest; task; task = task->older) {
        gather_task(round, task, &left, now_mono_ms);
    }
    round->nothing_in_flight = true;
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        round->want[queue] = round->going_back[queue] ? 0 : qr_slots_free(runner, queue, at_work(&left, queue));
        round->nothing_in_flight = round->nothing_in_flight && (queue == QR_QUEUE_DELETE || left.by_queue[queue] == 0);
    }
    round->suspect_in_flight = left.suspects > 0;
}

/* Where the database is a server it can crash without us. What it then forgot we would still remember: jobs that we took for
 * ended would run for ever under our lease, and a claim that it forgot could be given out again under the same fence. */
static enum qr_db_level level_min(const struct round *round)
{
    const bool is_server = strcmp(qr_db_driver_name(round->runner->options.db), "sqlite") != 0;
    return is_server ? QR_DURABLE : QR_RELAXED;
}

static enum qr_db_level level_of(const struct round *round)
{
    enum qr_db_level level = level_min(round);
    for (size_t i = 0; i < round->ending_count; i++) {
        level = QR_MAX(level, round->endings[i].outcome->level);
    }
    return level;
}

static void time_ending(struct qr_type_stats *type, const struct task *task)
{
    if (task->began_mono_ms) {
        type->timed++;
        type->duration_ms += (uint64_t)QR_MAX(qr_runner_mono_ms(task->runner) - task->began_mono_ms, INT64_C(0));
    }
}

static void count_ending(struct qr_runner_stats *stats, const struct qr_ending *ending)
{
    if (ending->is_lost) {
        stats->lost++;
        return;
    }
    struct qr_type_stats *type = &stats->types[qr_job_type_find(qr_str_of(ending->task->job.type))];
    stats->ended[ending->task->job.queue] += !qr_job_state_is_open(ending->state);
    time_ending(type, ending->task);
    switch (ending->state) {
    case QR_JOB_COMPLETED:
        stats->completed++;
        type->completed++;
        break;
    case QR_JOB_FAILED:
        stats->failed++;
        type->failed++;
        break;
    case QR_JOB_SKIPPED:
        stats->skipped++;
        type->skipped++;
        break;
    default:
        stats->snoozed += ending->outcome->kind == QR_OUTCOME_SNOOZED;
        type->snoozed += ending->outcome->kind == QR_OUTCOME_SNOOZED;
        stats->retried += ending->outcome->kind != QR_OUTCOME_SNOOZED;
        type->retried += ending->outcome->kind != QR_OUTCOME_SNOOZED;
    }
}

/* Those that there is no memory for stay in the round, as in doubt. */
static void add_claimed(struct round *round)
{
    struct qr_runner *runner = round->runner;
    size_t left_count = 0;
    for (size_t i = 0; i < round->claimed_count; i++) {
        runner->stats.claimed++;
        if (!qr_task_add(runner, &round->claimed[i])) {
            round->claimed[left_count++] = round->claimed[i];
        }
    }
    round->is_full = round->claimed_count == ROUND_CLAIM_MAX || round->claimed_bytes >= QR_JOB_BYTES_MAX;
    round->claimed_count = left_count;
    round->is_in_doubt = left_count > 0;
}

/* Before what was claimed is taken. */
static void note_what_is_left(const struct round *round)
{
    size_t claimed[QR_QUEUE_END] = {0};
    for (size_t i = 0; i < round->claimed_count; i++) {
        claimed[round->claimed[i].queue]++;
    }
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        round->runner->has_more[queue] = claimed[queue] == round->want[queue];
    }
}

static bool has_ready(const struct qr_runner *runner, enum qr_queue queue)
{
    return runner->ready[queue].first != NULL;
}

static void apply(struct round *round)
{
    struct qr_runner *runner = round->runner;
    for (size_t i = 0; i < round->ending_count; i++) {
        count_ending(&runner->stats, &round->endings[i]);
        qr_task_forget(round->endings[i].task);
    }
    for (size_t i = 0; i < round->watched_count; i++) {
        if (round->watched[i].is_gone) {
            runner->stats.lost += !round->watched[i].hand_back;
            qr_task_forget(round->watched[i].task);
            runner->is_woken = true; /* the claims of this round counted it as in flight, or its queue as left alone */
        }
    }
    memcpy(runner->ring, round->ring, sizeof runner->ring);
    note_what_is_left(round);
    add_claimed(round);
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END && round->may_claim && !round->lease_is_lost; queue++) {
        runner->is_paused[queue] = round->is_paused[queue];
        runner->is_woken = runner->is_woken || (round->is_paused[queue] && has_ready(runner, queue));
    }
    runner->lease_is_lost = runner->lease_is_lost || round->lease_is_lost;
    runner->look_for_lost = runner->look_for_lost || round->progress_was_lost;
    runner->is_woken = runner->is_woken || round->is_more_due || round->is_more_to_look_at || round->is_full;
}

/* Nothing of the round has happened: what it took note of is to be done still. */
static void take_back(struct round *round)
{
    for (size_t i = 0; i < round->watched_count; i++) {
        round->watched[i].task->needs_look = !round->watched[i].hand_back;
        if (round->watched[i].hand_back) {
            qr_task_unhold(round->watched[i].task);
        }
    }
    for (size_t i = 0; i < round->progress_count; i++) {
        round->progress[i].task->progress_is_new = true;
    }
    round->runner->is_woken = true;
}

static int64_t next_look_mono_ms(const struct round *round)
{
    const struct qr_runner *runner = round->runner;
    const int64_t now_mono_ms = qr_runner_mono_ms(runner);
    int64_t next = runner->options.poll_ms > 0 ? qr_runner_mono_ms_after(runner, runner->options.poll_ms) : INT64_MAX;
    if (round->next_due_ms) {
        const int64_t wait_ms = round->next_due_ms - round->now_ms;
        next = QR_MIN(next, now_mono_ms + (wait_ms > 0 ? wait_ms : LOCKED_MS));
    }
    return next == INT64_MAX ? 0 : next;
}

static qr_rc release_claims(struct qr_tx *tx, void *arg, qr_err *err)
{
    static const struct qr_job_release never_begun = {
        .outcome = "handed_back", .code = "", .message = "claimed, but never begun"};
    struct round *round = arg;
    for (size_t i = 0; i < round->claimed_count; i++) {
        round->bases[i] = round->claimed[i].base_id;
    }
    round->base_count = sort_bases(round->bases, round->claimed_count);
    QR_TRY(qr_plan_lock(tx, round->bases, round->base_count, &round->runner->options.plan, err));
    for (size_t i = 0; i < round->claimed_count; i++) {
        const struct qr_job *job = &round->claimed[i];
        bool is_ours;
        QR_TRY(qr_jobs_is_held(tx, job->id, job->fence, round->worker_id, &is_ours, err));
        const qr_rc rc = is_ours ? qr_jobs_release(tx, job->id, job->fence, &never_begun, err) : QR_OK;
        if (rc != QR_OK && rc != QR_LOST) {
            return rc;
        }
    }
    return QR_OK;
}

/* R1: what the failed round may have claimed is in nobody's memory, and our lease would keep it for ever. */
static qr_rc settle_doubt(struct round *round, qr_err *err)
{
    if (round->is_in_doubt) {
        QR_TRY(qr_db_write(round->runner->options.db, level_min(round), release_claims, round, err));
        round->is_in_doubt = false;
    }
    return QR_OK;
}

qr_rc qr_dispatch_round(struct qr_runner *runner, int64_t *ret_next_mono_ms, qr_err *err)
{
    struct round *round = runner->round;
    QR_TRY(settle_doubt(round, err));
    const struct qr_arena arena = round->arena;
    *round = (struct round){.runner = runner, .arena = arena};
    {
        QR_HOLD(&runner->lock);
        gather(round);
    }
    gather_bases(round);
    qr_judge_endings(round->endings, round->ending_count);
    const qr_rc rc = qr_db_write(runner->options.db, level_of(round), run_round, round, err);
    QR_HOLD(&runner->lock);
    if (rc == QR_OK) {
        (void)QR_FAILPOINT_RC("jobs.complete.after_commit", NULL);
        apply(round);
    } else {
        round->is_in_doubt = round->claimed_count > 0;
        take_back(round);
    }
    *ret_next_mono_ms = next_look_mono_ms(round);
    return rc == QR_OK && round->is_in_doubt
               ? qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for %zu claimed jobs", round->claimed_count)
               : rc;
}

bool qr_dispatch_is_in_doubt(const struct qr_runner *runner)
{
    return runner->round->is_in_doubt;
}

struct round *qr_dispatch_round_create(void)
{
    struct round *round = qr_alloc_zero(sizeof *round);
    if (round) {
        qr_arena_init(&round->arena, 0);
    }
    return round;
}

void qr_dispatch_round_free(struct round *round)
{
    if (round) {
        qr_arena_done(&round->arena);
        qr_free(round);
    }
}
