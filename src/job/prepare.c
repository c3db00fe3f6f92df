/* What has to come before the records of completed tasks, on a thread of its own: while the dispatcher records some, the next
 * are made ready. One after the other would leave the database idle while the index works, and the index while the database
 * does.
 *
 * P1  A task that ended and whose record relies on something is in `ended` until that is durable, then in `prepared`, from
 *     where the dispatcher records it; any other is in `prepared` at once, and waits for nobody.
 * P2  Only this thread takes tasks out of `ended`, and always the first: those that it works on stay there meanwhile, also when
 *     they are abandoned. */
#include "job/runner_internal.h"

static struct qr_ended completed(const struct task *task)
{
    return (struct qr_ended){&task->job, QR_JOB_COMPLETED, &task->outcome};
}

static bool relies_on_something(const struct task *task)
{
    const struct qr_plan *plan = &task->runner->options.plan;
    const struct qr_ended ended = completed(task);
    return task->outcome.kind == QR_OUTCOME_COMPLETED && plan->before && (!plan->relies || plan->relies(&ended));
}

static void add_prepared(struct task *task)
{
    task->state = TASK_PREPARED;
    qr_tasks_append(&task->runner->prepared, task);
    qr_signal_one(&task->runner->dispatcher_wake);
}

/* Its thread is free before its record is written: there must be something to begin. */
static void claim_more(struct qr_runner *runner, enum qr_queue queue)
{
    if (runner->has_more[queue] && runner->ready[queue].count < (size_t)runner->options.slots[queue]) {
        qr_runner_wake(runner);
    }
}

void qr_prepare_add(struct task *task)
{
    struct qr_runner *runner = task->runner;
    if (!relies_on_something(task)) {
        add_prepared(task);
        return;
    }
    task->state = TASK_ENDED;
    qr_tasks_append(&runner->ended, task);
    qr_signal_one(&runner->preparer_wake);
    claim_more(runner, task->job.queue);
}

/* Nobody knows how many of them would have been safe: all have failed. Their handlers were not too slow. */
static void fail_first(const struct qr_runner *runner, size_t count, const qr_err *error)
{
    struct task *task = runner->ended.first;
    for (size_t i = 0; i < count; i++, task = task->next) {
        task->outcome.kind = QR_OUTCOME_FAILED;
        task->outcome.error = *error;
        task->outcome.result = NULL;
        task->is_unprepared = true;
    }
}

static void hand_on_first(struct qr_runner *runner, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct task *task = qr_tasks_take_first(&runner->ended);
        if (task->state == TASK_ABANDONED) {
            qr_task_free(task);
        } else {
            add_prepared(task);
        }
    }
    qr_signal_one(&runner->dispatcher_wake);
}

/* With the lock held, which it gives up meanwhile. */
static void prepare_some(struct qr_runner *runner)
{
    const struct qr_plan *plan = &runner->options.plan;
    struct qr_ended told[QR_ENDED_MAX];
    size_t count = 0;
    for (const struct task *task = runner->ended.first; task && count < QR_ENDED_MAX; task = task->next) {
        told[count++] = completed(task);
    }
    qr_mutex_unlock(&runner->lock);
    qr_err err = {0};
    const qr_rc rc = plan->before(told, count, plan->arg, &err);
    qr_mutex_lock(&runner->lock);
    if (rc != QR_OK) {
        fail_first(runner, count, &err);
    }
    hand_on_first(runner, count);
}

int qr_prepare_count(const struct qr_runner *runner)
{
    int count = 0;
    for (const struct task *task = runner->ended.first; task; task = task->next) {
        count += task->state == TASK_ENDED;
    }
    return count;
}

/* Until when those that ended can wait for more; 0 = they cannot. */
static int64_t more_comes_until(const struct qr_runner *runner, int64_t last_mono_ms)
{
    const bool can_wait = !runner->stopping && runner->ended.count < QR_ENOUGH && qr_slots_are_busy(runner);
    const int64_t until_mono_ms = last_mono_ms + QR_PREPARE_MS;
    return can_wait && qr_runner_mono_ms(runner) < until_mono_ms ? until_mono_ms : 0;
}

void qr_preparer_main(void *arg)
{
    struct qr_runner *runner = arg;
    int64_t last_mono_ms = qr_runner_mono_ms(runner) - QR_PREPARE_MS;
    qr_mutex_lock(&runner->lock);
    while (!runner->closing) {
        const int64_t more_mono_ms = more_comes_until(runner, last_mono_ms);
        if (!runner->ended.first) {
            qr_signal_wait(&runner->preparer_wake, &runner->lock);
        } else if (more_mono_ms) {
            qr_signal_wait_until(&runner->preparer_wake, &runner->lock, runner->options.clock, more_mono_ms);
        } else {
            last_mono_ms = qr_runner_mono_ms(runner);
            prepare_some(runner);
        }
    }
    runner->preparer_has_ended = true;
    qr_signal_all(&runner->thread_ended);
    qr_mutex_unlock(&runner->lock);
}
