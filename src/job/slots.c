/* The threads that run handlers: how many there are, what they begin, and what becomes of those that do not return. */
#include "base/mem.h"
#include "job/runner_internal.h"

enum { AHEAD_MAX = 64 }; /* claimed ahead for a thread at most */

/* ---- running ---- */

static const struct qr_handler *find_handler(const struct qr_runner *runner, const char *type)
{
    for (size_t i = 0; i < runner->options.handler_count; i++) {
        if (strcmp(runner->options.handlers[i].type, type) == 0) {
            return &runner->options.handlers[i];
        }
    }
    return NULL;
}

/* What a handler says is foreign too: it may say nothing, or what there is not. */
static void check_outcome(struct task *task)
{
    struct qr_outcome *outcome = &task->outcome;
    qr_err *error = &outcome->error;
    error->msg[sizeof error->msg - 1] = '\0';
    if (error->code >= QR_CODE_COUNT) {
        qr_fail(error, QR_CODE_INTERNAL, "%s", error->msg);
    } else if (error->code != QR_CODE_NONE) {
        qr_fail(error, error->code, "%s", error->msg); /* as text that a database takes, however it was written */
    }
    if (outcome->kind > QR_OUTCOME_NONE && outcome->kind <= QR_OUTCOME_SNOOZED) {
        return;
    }
    outcome->kind = QR_OUTCOME_FAILED;
    if (atomic_load(&task->cancelled)) {
        qr_fail(error, QR_CODE_SHUTTING_DOWN, "the handler was told to end, and left");
    } else {
        qr_fail(error, QR_CODE_INTERNAL, "the handler of %s did not say what came of it", task->job.type);
    }
}

static void run_handler(struct task *task, const struct qr_handler *handler)
{
    task->outcome = (struct qr_outcome){0};
    if (!handler) {
        task->outcome.kind = QR_OUTCOME_SNOOZED; /* no failure: a newer worker may know it */
        task->outcome.delay_ms = QR_UNKNOWN_TYPE_MS;
        qr_fail(&task->outcome.error, QR_CODE_UNAVAILABLE, "this worker has no handler for jobs of type %s",
                task->job.type);
        return;
    }
    if (qr_task_is_given_up(task)) {
        task->outcome.kind = QR_OUTCOME_FAILED;
        qr_fail(&task->outcome.error, QR_CODE_CRASHED_WORKER,
                "the process died while it ran this job, too often to try again");
        return;
    }
    task->run.arg = handler->arg;
    handler->fn(&task->run, &task->outcome);
    check_outcome(task);
}

static void check_one_of_several(struct task *task)
{
    if (task->outcome.kind != QR_OUTCOME_ALONE || atomic_load(&task->cancelled)) {
        check_outcome(task);
    }
}

static void run_together(struct task *first, const struct qr_handler *handler)
{
    struct qr_job_run *runs[QR_TOGETHER_MAX] = {0};
    struct qr_outcome *outcomes[QR_TOGETHER_MAX] = {0};
    size_t count = 0;
    for (struct task *task = first; task; task = task->next) {
        task->outcome = (struct qr_outcome){0};
        task->run.arg = handler->arg;
        runs[count] = &task->run;
        outcomes[count++] = &task->outcome;
    }
    handler->many(runs, count, outcomes);
    for (struct task *task = first; task; task = task->next) {
        check_one_of_several(task);
    }
}

static bool takes_several(const struct qr_handler *handler)
{
    return handler && (handler->many || handler->stream);
}

static void begin_task(struct task *task)
{
    task->state = TASK_RUNNING;
    task->began_mono_ms = qr_runner_mono_ms(task->runner);
    task->progress_mono_ms = task->began_mono_ms - QR_PROGRESS_MS;
    const int64_t limit_ms =
        qr_task_is_given_up(task) ? 0 : QR_MIN(task->job.time_limit_ms, (int64_t)QR_JOB_TIME_LIMIT_MS_MAX);
    task->limit_mono_ms = limit_ms > 0 ? task->began_mono_ms + limit_ms : 0;
    const int64_t look_mono_ms = task->runner->look_mono_ms;
    if (task->limit_mono_ms && (!look_mono_ms || task->limit_mono_ms < look_mono_ms)) {
        qr_signal_one(&task->runner->dispatcher_wake); /* it has to watch this one */
    }
}

/* A task that was tried before may be one that does not return, or that kills the process: nobody is blamed with it. */
static bool may_join(const struct task *task)
{
    const struct qr_job *job = &task->job;
    return !task->runs_alone && !job->is_suspect && job->attempts == 0 && job->crashes == 0;
}

/* The first that waits and, where its handler takes several, those behind it: a share, so that others have some too. Of as
 * many threads as half of all, since the rest waits for commits: the larger the share, the fewer of them. */
static struct task *begin_share(struct slot_thread *slot, const struct qr_handler **ret_handler)
{
    struct qr_runner *runner = slot->runner;
    struct task_list *ready = &runner->ready[slot->queue];
    const size_t shares = (size_t)QR_MAX(runner->options.slots[slot->queue] / 2, 1);
    size_t room = QR_MIN((ready->count + shares - 1) / shares, (size_t)QR_TOGETHER_MAX);
    struct task *first = qr_tasks_take_first(ready), *last = first;
    *ret_handler = find_handler(runner, first->job.type);
    begin_task(first);
    if (!takes_several(*ret_handler) || !may_join(first)) {
        return first;
    }
    for (; room > 1 && ready->first && may_join(ready->first); room--) {
        if (strcmp(ready->first->job.type, first->job.type) != 0) {
            break;
        }
        last->next = qr_tasks_take_first(ready);
        last = last->next;
        begin_task(last);
    }
    return first;
}

/* Whoever waits for more waits no longer. */
static void tell_that_less_waits(struct qr_runner *runner, bool was_busy)
{
    if (was_busy && !qr_slots_are_busy(runner)) {
        qr_signal_one(&runner->dispatcher_wake);
        qr_signal_one(&runner->preparer_wake);
    }
}

static struct task *begin_some(struct slot_thread *slot, const struct qr_handler **ret_handler)
{
    const bool was_busy = qr_slots_are_busy(slot->runner);
    struct task *first = begin_share(slot, ret_handler);
    tell_that_less_waits(slot->runner, was_busy);
    return first;
}

/* To be begun by itself, behind those that wait already. */
static void put_back(struct task *task)
{
    struct qr_runner *runner = task->runner;
    task->state = TASK_READY;
    task->runs_alone = true;
    qr_tasks_append(&runner->ready[task->job.queue], task);
    qr_signal_one(&runner->work[task->job.queue]);
}

static void end_task(struct task *task)
{
    struct qr_runner *runner = task->runner;
    if (task->state == TASK_ABANDONED) {
        qr_task_free(task);
        qr_runner_wake(runner); /* the thread is free again */
    } else if (task->outcome.kind == QR_OUTCOME_ALONE) {
        put_back(task);
    } else {
        qr_prepare_add(task);
    }
}

/* ---- one after the other ---- */

static void enlist(struct slot_thread *slot, struct task *task)
{
    task->before = NULL;
    task->next = slot->task;
    if (slot->task) {
        slot->task->before = task;
    }
    slot->task = task;
}

static void strike(struct slot_thread *slot, const struct task *task)
{
    *(task->before ? &task->before->next : &slot->task) = task->next;
    if (task->next) {
        task->next->before = task->before;
    }
}

/* One more that waits; NULL = there is none for it. */
static struct task *begin_more(struct slot_thread *slot)
{
    struct qr_runner *runner = slot->runner;
    struct task_list *ready = &runner->ready[slot->queue];
    const bool may_begin = !slot->is_replaced && !runner->stopping && !runner->closing && ready->first;
    if (!may_begin || !may_join(ready->first) || strcmp(ready->first->job.type, slot->streaming->type) != 0) {
        return NULL;
    }
    struct task *task = qr_tasks_take_first(ready);
    begin_task(task);
    enlist(slot, task);
    return task;
}

/* Those that were begun with the handler are its share: others may be waiting for the rest. */
static struct task *take_one(struct slot_thread *slot, bool takes_share)
{
    struct task *task = slot->not_given;
    if (takes_share && task) {
        slot->not_given = task->next;
    }
    return takes_share ? task : begin_more(slot);
}

static size_t take_from_stream(struct qr_job_stream *stream, size_t max, size_t room, struct qr_job_run **ret_runs,
                               struct qr_outcome **ret_outcomes)
{
    struct slot_thread *slot = (struct slot_thread *)stream;
    struct qr_runner *runner = slot->runner;
    QR_HOLD(&runner->lock);
    const bool takes_share = slot->not_given, was_busy = qr_slots_are_busy(runner);
    size_t count = 0;
    for (struct task *task; count < max && (task = take_one(slot, takes_share)); count++) {
        task->outcome = (struct qr_outcome){0};
        task->run.arg = slot->streaming->arg;
        ret_runs[count] = &task->run;
        ret_outcomes[count] = &task->outcome;
    }
    slot->room = room > count ? room - count : 0;
    if (slot->room > runner->ready[slot->queue].count && runner->has_more[slot->queue]) {
        qr_runner_wake(runner);
    }
    tell_that_less_waits(runner, was_busy);
    return count;
}

static void note_time(struct qr_runner *runner, enum qr_queue queue, int64_t took_us)
{
    int64_t *average = &runner->average_us[queue];
    *average = (*average * 7 + took_us) / 8;
}

static void end_in_stream(struct qr_job_stream *stream, struct qr_job_run *run)
{
    struct slot_thread *slot = (struct slot_thread *)stream;
    struct task *task = (struct task *)run;
    struct qr_runner *runner = slot->runner;
    check_one_of_several(task);
    QR_HOLD(&runner->lock);
    strike(slot, task);
    if (task->state == TASK_RUNNING) { /* as if it had been one of a full share */
        note_time(runner, slot->queue, (qr_runner_mono_ms(runner) - task->began_mono_ms) * 1000 / QR_TOGETHER_MAX);
    }
    end_task(task);
}

/* With the lock held, which it gives up meanwhile. What the handler has not taken is left to be done alone. */
static void run_stream(struct slot_thread *slot, const struct qr_handler *handler)
{
    struct qr_runner *runner = slot->runner;
    slot->stream = (struct qr_job_stream){take_from_stream, end_in_stream};
    slot->streaming = handler;
    slot->not_given = slot->task;
    for (struct task *task = slot->task, *before = NULL; task; before = task, task = task->next) {
        task->before = before;
    }
    qr_mutex_unlock(&runner->lock);
    handler->stream(&slot->stream);
    qr_mutex_lock(&runner->lock);
    for (struct task *task = slot->not_given; task; task = task->next) {
        task->outcome = (struct qr_outcome){.kind = QR_OUTCOME_ALONE};
    }
    for (struct task *task = slot->task; task; task = task->next) {
        check_one_of_several(task);
    }
    slot->streaming = NULL;
    slot->not_given = NULL;
    slot->room = 0;
}

/* A few that are done together take about as long as many: were they counted as few, there would never be more. */
static void end_tasks(struct slot_thread *slot, bool are_several)
{
    struct qr_runner *runner = slot->runner;
    const int64_t took_us = (qr_runner_mono_ms(runner) - slot->task->began_mono_ms) * 1000;
    int64_t count = 0;
    struct task *task = slot->task;
    slot->task = NULL;
    while (task) {
        struct task *next = task->next;
        count += task->state == TASK_RUNNING;
        end_task(task);
        task = next;
    }
    if (count > 0) {
        note_time(runner, slot->queue, took_us / (are_several ? QR_MIN(count * 4, (int64_t)QR_TOGETHER_MAX) : count));
    }
}

static void slot_main(void *arg)
{
    struct slot_thread *slot = arg;
    struct qr_runner *runner = slot->runner;
    qr_thread_lower();
    qr_mutex_lock(&runner->lock);
    while (!slot->is_replaced && !runner->closing) {
        if (!runner->ready[slot->queue].first) {
            qr_signal_wait(&runner->work[slot->queue], &runner->lock);
            continue;
        }
        const struct qr_handler *handler;
        struct task *task = begin_some(slot, &handler);
        slot->task = task;
        if (handler && handler->stream && may_join(task)) {
            run_stream(slot, handler);
        } else {
            qr_mutex_unlock(&runner->lock);
            if (task->next) {
                run_together(task, handler);
            } else {
                run_handler(task, handler);
            }
            qr_mutex_lock(&runner->lock);
        }
        if (slot->task) {
            end_tasks(slot, takes_several(handler));
        }
    }
    runner->stuck_count -= slot->is_replaced;
    slot->has_ended = true;
    qr_signal_all(&runner->thread_ended);
    qr_mutex_unlock(&runner->lock);
}

qr_rc qr_slot_add_thread(struct qr_runner *runner, enum qr_queue queue, qr_err *err)
{
    struct slot_thread *slot = qr_alloc_zero(sizeof *slot);
    if (!slot) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a thread");
    }
    slot->runner = runner;
    slot->queue = queue;
    const qr_rc rc = qr_thread_spawn(&slot->thread, qr_queue_name(queue), slot_main, slot, err);
    if (rc != QR_OK) {
        qr_free(slot);
        return rc;
    }
    slot->next = runner->threads;
    runner->threads = slot;
    return QR_OK;
}

/* Nobody waits any more for what the thread does. */
static bool is_held_up(const struct slot_thread *slot)
{
    const struct task *task = slot->task;
    while (task && task->state == TASK_ABANDONED) {
        task = task->next;
    }
    return slot->task && !task;
}

/* Those that serve the queue; without those whose task is abandoned when they must be able to begin something. */
static int count_threads(const struct qr_runner *runner, enum qr_queue queue, bool only_free)
{
    int count = 0;
    for (const struct slot_thread *slot = runner->threads; slot; slot = slot->next) {
        count += slot->queue == queue && !slot->is_replaced && !(only_free && is_held_up(slot));
    }
    return count;
}

/* How long the queue's threads have been at what they do now; 0 when one of them is free. */
static int64_t busy_ms(const struct qr_runner *runner, enum qr_queue queue, int64_t now_mono_ms)
{
    int64_t shortest_ms = INT64_MAX;
    for (const struct slot_thread *slot = runner->threads; slot; slot = slot->next) {
        if (slot->queue == queue && !slot->is_replaced) {
            const bool takes_more = !slot->task || slot->room > 0;
            shortest_ms = QR_MIN(shortest_ms, takes_more ? 0 : now_mono_ms - slot->task->began_mono_ms);
        }
    }
    return shortest_ms == INT64_MAX ? 0 : shortest_ms;
}

/* Only what was claimed ahead: for as many as there are threads there will be one. */
static bool is_crowded(const struct qr_runner *runner, enum qr_queue queue)
{
    return runner->in_flight[queue] > count_threads(runner, queue, true);
}

bool qr_task_goes_back(const struct task *task, int64_t now_mono_ms)
{
    const struct qr_runner *runner = task->runner;
    const enum qr_queue queue = task->job.queue;
    return task->state == TASK_READY &&
           (runner->is_paused[queue] ||
            (now_mono_ms - task->claimed_mono_ms >= QR_READY_MS_MAX && is_crowded(runner, queue) &&
             busy_ms(runner, queue, now_mono_ms) >= QR_READY_MS_MAX));
}

/* When what waits in the queue has waited too long; 0 = nothing waits. */
static int64_t next_going_back_mono_ms(const struct qr_runner *runner, enum qr_queue queue, int64_t now_mono_ms)
{
    const struct task *first = runner->ready[queue].first;
    if (!first || runner->options.slots[queue] == 0 || !is_crowded(runner, queue)) {
        return 0;
    }
    const int64_t missing_ms = QR_READY_MS_MAX - busy_ms(runner, queue, now_mono_ms);
    return QR_MAX(first->claimed_mono_ms + QR_READY_MS_MAX, now_mono_ms + missing_ms);
}

/* Jobs that are done several together are short: threads come back for them soon. */
static bool has_short_ones(const struct qr_runner *runner, enum qr_queue queue)
{
    const struct task *first = runner->ready[queue].first;
    const struct qr_handler *handler = first ? find_handler(runner, first->job.type) : NULL;
    return takes_several(handler);
}

bool qr_slots_are_busy(const struct qr_runner *runner)
{
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        const int slots = runner->options.slots[queue];
        if (slots > 0 && runner->ready[queue].count >= (size_t)slots && has_short_ones(runner, queue)) {
            return true;
        }
    }
    return false;
}

/* For threads that will begin them now, however long they take: what waits for one that is busy would go back. */
static int count_begun_now(const struct qr_runner *runner, enum qr_queue queue)
{
    int count = 0;
    for (const struct slot_thread *slot = runner->threads; slot; slot = slot->next) {
        if (slot->queue == queue && !slot->is_replaced) {
            count += slot->streaming ? (int)slot->room : !slot->task ? runner->options.share_min[queue] : 0;
        }
    }
    return count;
}

size_t qr_slots_free(const struct qr_runner *runner, enum qr_queue queue, int in_flight)
{
    const int slots = count_threads(runner, queue, true);
    const int64_t now_us = busy_ms(runner, queue, qr_runner_mono_ms(runner)) * 1000; /* longer than the others took? */
    const int64_t average_us = QR_MAX(QR_MAX(runner->average_us[queue], now_us), (int64_t)QR_AHEAD_US / AHEAD_MAX);
    const int ahead = (int)QR_MIN(QR_MAX(QR_AHEAD_US / average_us, (int64_t)1), (int64_t)AHEAD_MAX);
    const int share = count_begun_now(runner, queue) - (int)runner->ready[queue].count;
    const int wanted = QR_MAX(slots * ahead - in_flight, share);
    return wanted > 0 ? (size_t)wanted : 0;
}

/* ---- time (R4) ---- */

struct slot_thread *qr_slots_take_ended(struct qr_runner *runner)
{
    struct slot_thread *ended = NULL;
    for (struct slot_thread **link = &runner->threads; *link;) {
        struct slot_thread *slot = *link;
        if (slot->has_ended) {
            *link = slot->next;
            slot->next = ended;
            ended = slot;
        } else {
            link = &slot->next;
        }
    }
    return ended;
}

void qr_slots_free_ended(struct slot_thread *ended)
{
    while (ended) {
        struct slot_thread *slot = ended;
        ended = slot->next;
        qr_thread_join(&slot->thread);
        qr_free(slot);
    }
}

/* As many as there should be; where the system gives none, again later. */
static void add_missing(struct qr_runner *runner, int64_t now_ms)
{
    runner->add_threads_mono_ms = 0;
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        for (int count = count_threads(runner, queue, false); count < runner->options.slots[queue]; count++) {
            if (qr_slot_add_thread(runner, queue, NULL) != QR_OK) {
                runner->add_threads_mono_ms = now_ms + QR_ADD_THREADS_MS;
                return;
            }
        }
    }
}

static void give_up(struct slot_thread *slot)
{
    slot->is_replaced = true;
    for (struct task *task = slot->task; task; task = task->next) {
        task->is_stuck = true;
    }
    slot->runner->stuck_count++;
    slot->runner->stats.stuck++;
}

/* Tells those whose time is up to end. True when all that the thread runs together should have ended long ago. */
static bool is_stuck(struct slot_thread *slot, int64_t now_ms)
{
    bool is_stuck = true;
    for (struct task *task = slot->task; task; task = task->next) {
        if (task->limit_mono_ms && now_ms >= task->limit_mono_ms) {
            atomic_store(&task->cancelled, true);
        }
        if (atomic_load(&task->cancelled) && task->stuck_mono_ms == 0) {
            task->stuck_mono_ms = now_ms + QR_STUCK_GRACE_MS;
        }
        is_stuck = is_stuck && task->stuck_mono_ms && now_ms >= task->stuck_mono_ms;
    }
    return is_stuck;
}

void qr_slots_check_time(struct qr_runner *runner)
{
    const int64_t now_ms = qr_runner_mono_ms(runner);
    for (struct slot_thread *slot = runner->threads; slot; slot = slot->next) {
        if (slot->task && !slot->is_replaced && is_stuck(slot, now_ms)) {
            give_up(slot);
        }
    }
    add_missing(runner, now_ms);
}

/* When the thread is to be looked at; INT64_MAX = never. */
static int64_t slot_next_check_mono_ms(const struct slot_thread *slot)
{
    int64_t next = INT64_MAX, stuck_mono_ms = 0;
    bool all_cancelled = true;
    for (const struct task *task = slot->task; task; task = task->next) {
        if (!atomic_load(&task->cancelled)) {
            all_cancelled = false;
            next = task->limit_mono_ms ? QR_MIN(next, task->limit_mono_ms) : next;
        } else if (task->stuck_mono_ms == 0) {
            next = 1;
        } else {
            stuck_mono_ms = QR_MAX(stuck_mono_ms, task->stuck_mono_ms);
        }
    }
    return all_cancelled && stuck_mono_ms ? QR_MIN(next, stuck_mono_ms) : next;
}

int64_t qr_slots_next_check_mono_ms(const struct qr_runner *runner)
{
    const int64_t now_mono_ms = qr_runner_mono_ms(runner);
    int64_t next = runner->add_threads_mono_ms ? runner->add_threads_mono_ms : INT64_MAX;
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        const int64_t back_mono_ms = next_going_back_mono_ms(runner, queue, now_mono_ms);
        next = back_mono_ms ? QR_MIN(next, back_mono_ms) : next;
    }
    for (const struct slot_thread *slot = runner->threads; slot; slot = slot->next) {
        if (slot->task && !slot->is_replaced) {
            next = QR_MIN(next, slot_next_check_mono_ms(slot));
        }
    }
    return next == INT64_MAX ? 0 : next;
}
