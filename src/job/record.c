#include "job/record.h"

#include "base/failpoint.h"

/* What the job becomes after this outcome. */
static enum qr_job_state state_after(const struct qr_job *job, const struct qr_outcome *outcome, bool cancelled)
{
    switch (outcome->kind) {
    case QR_OUTCOME_COMPLETED:
        return QR_JOB_COMPLETED;
    case QR_OUTCOME_SKIPPED:
        return QR_JOB_SKIPPED;
    case QR_OUTCOME_SNOOZED:
        return QR_JOB_SCHEDULED;
    case QR_OUTCOME_FAILED:
    case QR_OUTCOME_NONE:
    case QR_OUTCOME_ALONE:
        break;
    }
    if (cancelled) {
        return QR_JOB_QUEUED; /* it was told to end: not its failure */
    }
    switch (qr_code_info(outcome->error.code)->policy) {
    case QR_POLICY_SKIP:
        return QR_JOB_SKIPPED;
    case QR_POLICY_RETRY:
    case QR_POLICY_WAIT: /* of a handler that did not put it off itself */
        return job->attempts + 1 < QR_JOB_ATTEMPTS_MAX ? QR_JOB_SCHEDULED : QR_JOB_FAILED;
    case QR_POLICY_FAIL:
        break;
    }
    return QR_JOB_FAILED;
}

static struct qr_job_release release_for(const struct qr_ending *ending)
{
    const struct task *task = ending->task;
    const struct qr_outcome *outcome = ending->outcome;
    const struct qr_code_info *info = qr_code_info(outcome->error.code);
    struct qr_job_release release = {.code = outcome->error.code == QR_CODE_NONE ? "" : info->name,
                                     .message = outcome->error.msg,
                                     .clears_suspicion = true};
    if (outcome->kind == QR_OUTCOME_SNOOZED) {
        release.outcome = "snoozed";
        release.delay_ms = QR_MAX(outcome->delay_ms, (int64_t)1);
    } else if (ending->state == QR_JOB_QUEUED) {
        release.outcome = "handed_back";
    } else {
        release.outcome = ending->is_too_late ? "timed_out" : "retried";
        release.delay_ms = qr_job_backoff_ms(task->job.attempts + 1, outcome->delay_ms, task->runner->options.rand);
        release.counts_attempt = true;
    }
    return release;
}

static void set_state(struct qr_ending *ending)
{
    const struct task *task = ending->task;
    ending->state = state_after(&task->job, ending->outcome, atomic_load(&task->cancelled) && !ending->is_too_late);
    if (ending->without_plan && !qr_job_state_is_open(ending->state)) {
        ending->state = QR_JOB_SCHEDULED; /* I1, however often and for whatever reason: nobody has told its item */
    }
}

/* Past its time limit a task that did not make it failed because it was too slow, whatever it says. */
static void judge(struct qr_ending *ending)
{
    struct task *task = ending->task;
    const bool has_failed = ending->outcome->kind == QR_OUTCOME_FAILED && !task->is_unprepared;
    ending->is_too_late = has_failed && task->limit_mono_ms && qr_runner_mono_ms(task->runner) >= task->limit_mono_ms;
    if (ending->is_too_late && ending->outcome == &task->outcome) {
        qr_fail(&task->outcome.error, QR_CODE_TIMEOUT, "the job took longer than its limit of %lld ms",
                (long long)task->job.time_limit_ms);
    }
    set_state(ending);
}

/* What was reported last is seen although the time to write it had not come. */
static qr_rc write_last_progress(struct qr_tx *tx, const struct qr_ending *ending, qr_err *err)
{
    const struct task *task = ending->task;
    if (ending->outcome != &task->outcome || !task->progress_is_new) {
        return QR_OK; /* a stuck handler may be writing just now */
    }
    return qr_jobs_set_progress(tx, task->job.id, task->job.fence, task->progress_done, task->progress_total, err);
}

/* Where the fence does not match, this changes nothing. */
static qr_rc settle(struct qr_tx *tx, const struct qr_ending *ending, qr_err *err)
{
    const struct qr_job *job = &ending->task->job;
    const struct qr_outcome *outcome = ending->outcome;
    QR_TRY(write_last_progress(tx, ending, err));
    if (qr_job_state_is_open(ending->state)) {
        const struct qr_job_release release = release_for(ending);
        return qr_jobs_release(tx, job->id, job->fence, &release, err);
    }
    const struct qr_job_end end = {
        .state = ending->state,
        .code = outcome->error.code == QR_CODE_NONE ? "" : qr_code_info(outcome->error.code)->name,
        .message = outcome->error.msg,
        .is_crash = qr_task_is_given_up(ending->task)};
    return qr_jobs_finish(tx, job, &end, err);
}

/* Endings that are recorded together. */
struct together {
    struct qr_ending *endings;
    size_t count;
};

static const struct qr_plan *plan_of(const struct together *together)
{
    return &together->endings[0].task->runner->options.plan;
}

/* Nothing but its state is to be written, and no other job waits for it. */
static bool is_plain(const struct qr_ending *ending)
{
    const struct task *task = ending->task;
    return ending->state == QR_JOB_COMPLETED && ending->outcome->error.code == QR_CODE_NONE &&
           !ending->outcome->error.msg[0] && !task->job.serial_key.is_set && !task->progress_is_new;
}

/* J1 of many at once. */
static qr_rc settle_plain(struct qr_tx *tx, const struct together *together, qr_err *err)
{
    const struct qr_job *jobs[QR_ENDED_MAX];
    bool is_lost[QR_ENDED_MAX];
    size_t count = 0;
    for (size_t i = 0; i < together->count; i++) {
        if (is_plain(&together->endings[i])) {
            jobs[count++] = &together->endings[i].task->job;
        }
    }
    QR_TRY(qr_jobs_complete(tx, jobs, count, is_lost, err));
    count = 0;
    for (size_t i = 0; i < together->count; i++) {
        if (is_plain(&together->endings[i])) {
            together->endings[i].is_lost = is_lost[count++];
        }
    }
    return QR_OK;
}

static qr_rc settle_one(struct qr_tx *tx, struct qr_ending *ending, qr_err *err)
{
    const qr_rc rc = settle(tx, ending, err);
    ending->is_lost = rc == QR_LOST;
    return ending->is_lost ? QR_OK : rc;
}

/* The jobs' own rows first: there the fence is checked (J1), and a stale outcome must not reach the plan (R2). */
static qr_rc record(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct together *together = arg;
    const struct qr_plan *plan = plan_of(together);
    struct qr_ended told[QR_ENDED_MAX];
    size_t told_count = 0;
    const bool has_several = together->count > 1;
    QR_TRY(has_several ? settle_plain(tx, together, err) : QR_OK);
    for (size_t i = 0; i < together->count; i++) {
        struct qr_ending *ending = &together->endings[i];
        if (!has_several || !is_plain(ending)) {
            QR_TRY(settle_one(tx, ending, err));
        }
        if (!ending->is_lost && !ending->without_plan) {
            told[told_count++] = (struct qr_ended){&ending->task->job, ending->state, ending->outcome};
        }
    }
    if (plan->ended && told_count > 0) {
        QR_TRY(plan->ended(tx, told, told_count, plan->arg, err));
    }
    QR_FAILPOINT("jobs.complete.before_commit", err);
    return QR_OK;
}

static qr_rc record_as(struct qr_tx *tx, struct qr_ending *ending, const struct qr_outcome *outcome, bool without_plan,
                       qr_err *err)
{
    ending->outcome = outcome;
    ending->without_plan = without_plan;
    set_state(ending);
    return qr_tx_nested(tx, record, &(struct together){ending, 1}, err);
}

/* An outcome whose plan cannot be carried out is the job's failure, and tried again like any other. Where the plan refuses
 * even that, the attempt is recorded without it, so that one job does not hold up the others, and the job is put off: it ends
 * only together with what the plan makes of its end. */
static qr_rc record_alone(struct qr_tx *tx, struct qr_ending *ending, qr_err *err)
{
    struct qr_outcome refused = {.kind = QR_OUTCOME_FAILED, .level = ending->outcome->level};
    const struct qr_outcome *said = ending->outcome;
    qr_rc rc = record_as(tx, ending, said, false, &refused.error);
    if (rc != QR_OK && said->kind != QR_OUTCOME_FAILED) {
        qr_err again = {0};
        rc = record_as(tx, ending, &refused, false, &again);
    }
    if (rc != QR_OK) {
        rc = record_as(tx, ending, &refused, true, err);
    }
    ending->outcome = said; /* the function may run again, and must then see what it saw first */
    return rc;
}

void qr_judge_endings(struct qr_ending *endings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        judge(&endings[i]);
    }
}

/* Together first: a savepoint for each would cost more than the record itself. If one fails, each on its own. */
qr_rc qr_record_endings(struct qr_tx *tx, struct qr_ending *endings, size_t count, qr_err *err)
{
    qr_err ignored = {0};
    for (size_t i = 0; i < count; i++) {
        endings[i].without_plan = false;
        set_state(&endings[i]);
    }
    if (count > 1 && qr_tx_nested(tx, record, &(struct together){endings, count}, &ignored) == QR_OK) {
        return QR_OK;
    }
    for (size_t i = 0; i < count; i++) {
        QR_TRY(record_alone(tx, &endings[i], err)); /* the database is in trouble: the whole round is tried again */
    }
    return QR_OK;
}
