/* Starting, stopping, and the loops of two of the threads that keep everything going; the third is in prepare.c. */
#include "job/runner_internal.h"

#include "base/mem.h"

enum {
    RETRY_MS_MIN = 100, /* after a round that the database refused */
    RETRY_MS_MAX = 5000,
    HAND_BACK_MS_MAX = 5000, /* the database may not answer: shutting down ends all the same */
    TROUBLE_MS_MAX = 300,    /* of a stop, while the owner's database refuses: the disk is full */
    RETURN_MS_MAX = 5000,    /* from being told to end until a thread is left behind */
    WAIT_MS_MAX = 86400000,  /* whatever is asked for */
};

int64_t qr_runner_mono_ms(const struct qr_runner *runner)
{
    return qr_clock_mono_ms(runner->options.clock);
}

int64_t qr_runner_mono_ms_after(const struct qr_runner *runner, int64_t wait_ms)
{
    return qr_runner_mono_ms(runner) + QR_MIN(QR_MAX(wait_ms, (int64_t)0), (int64_t)WAIT_MS_MAX);
}

void qr_runner_wake(struct qr_runner *runner)
{
    runner->is_woken = true;
    qr_signal_one(&runner->dispatcher_wake);
}

static void log_failure(const struct qr_runner *runner, const char *event, const qr_err *err)
{
    if (runner->options.log) {
        qr_log_err(runner->options.log, QR_LOG_WARN, event, err);
    }
}

/* ---- the heartbeat (R3) ---- */

static void heartbeat_main(void *arg)
{
    struct qr_runner *runner = arg;
    int64_t next_mono_ms = qr_runner_mono_ms(runner) + QR_WORKER_BEAT_MS;
    qr_mutex_lock(&runner->lock);
    while (!runner->closing) {
        if (qr_signal_wait_until(&runner->heartbeat_wake, &runner->lock, runner->options.clock, next_mono_ms)) {
            continue;
        }
        const qr_uuid worker_id = runner->worker_id;
        qr_mutex_unlock(&runner->lock);
        qr_err err = {0};
        const qr_rc rc = qr_dispatch_beat(runner, worker_id, &err);
        qr_mutex_lock(&runner->lock);
        next_mono_ms = qr_runner_mono_ms(runner) + (rc == QR_OK ? QR_WORKER_BEAT_MS : QR_WORKER_BEAT_MS / 10);
        if (rc == QR_LOST && qr_uuid_equal(worker_id, runner->worker_id)) {
            runner->lease_is_lost = true;
            qr_signal_one(&runner->dispatcher_wake);
        } else if (rc != QR_OK && rc != QR_LOST) {
            log_failure(runner, "heartbeat_failed", &err);
        }
    }
    runner->heartbeat_has_ended = true;
    qr_signal_all(&runner->thread_ended);
    qr_mutex_unlock(&runner->lock);
}

/* ---- the dispatcher ---- */

/* While it stops: what has not begun goes back at once, the rest when its time is up. */
static bool has_to_hand_back(const struct qr_runner *runner)
{
    if (runner->handing_back) {
        return runner->in_flight_count > qr_prepare_count(runner); /* those come once they are prepared */
    }
    for (enum qr_queue queue = 1; runner->stopping && queue < QR_QUEUE_END; queue++) {
        if (runner->ready[queue].first) {
            return true;
        }
    }
    return false;
}

static bool has_work(const struct qr_runner *runner)
{
    return runner->is_woken || runner->prepared.first || runner->look_for_lost || runner->lease_is_lost ||
           has_to_hand_back(runner);
}

/* Until when a round can wait for more to record and to claim; 0 = it cannot. */
static int64_t more_comes_until(const struct qr_runner *runner, int64_t last_mono_ms)
{
    const bool is_urgent = runner->look_for_lost || runner->lease_is_lost || runner->stopping;
    const bool can_wait = !is_urgent && runner->prepared.count < QR_ENOUGH && qr_slots_are_busy(runner);
    const int64_t until_mono_ms = last_mono_ms + QR_ROUND_MS;
    return can_wait && qr_runner_mono_ms(runner) < until_mono_ms ? until_mono_ms : 0;
}

static int64_t earlier(int64_t a_mono_ms, int64_t b_mono_ms)
{
    return !a_mono_ms || (b_mono_ms && b_mono_ms < a_mono_ms) ? b_mono_ms : a_mono_ms;
}

/* When to look without being woken, 0 = never. After a failure nothing is tried before `next_mono_ms`. */
static int64_t next_look(const struct qr_runner *runner, int64_t next_mono_ms, int64_t retry_ms)
{
    if (retry_ms) {
        return next_mono_ms;
    }
    return earlier(earlier(next_mono_ms, runner->progress_due_mono_ms), qr_slots_next_check_mono_ms(runner));
}

/* What is being prepared is recorded after that: nothing else is to be done meanwhile. */
static bool holds_nothing(struct qr_runner *runner)
{
    QR_HOLD(&runner->lock);
    while (runner->in_flight_count > 0 && runner->in_flight_count == qr_prepare_count(runner) && !runner->closing) {
        qr_signal_wait(&runner->dispatcher_wake, &runner->lock);
    }
    return runner->in_flight_count == 0 && !qr_dispatch_is_in_doubt(runner);
}

/* R3: as long as nobody has taken them from us, our jobs go back as what they are: not begun, or not ended. Whoever finds them
 * under a dead worker takes them for what killed it, and we are alive. */
static qr_rc start_over(struct qr_runner *runner, qr_err *err)
{
    {
        QR_HOLD(&runner->lock);
        for (struct task *task = runner->newest; task; task = task->older) {
            atomic_store(&task->cancelled, true);
        }
    }
    while (!holds_nothing(runner)) {
        int64_t ignored_mono_ms;
        QR_TRY(qr_dispatch_round(runner, &ignored_mono_ms, err));
    }
    QR_TRY(qr_dispatch_register(runner, err));
    QR_HOLD(&runner->lock);
    runner->stats.leases_lost++;
    runner->is_woken = true;
    return QR_OK;
}

static qr_rc step(struct qr_runner *runner, bool lease_is_lost, bool has_dead_to_free, int64_t *ret_next_mono_ms,
                  qr_err *err)
{
    if (lease_is_lost) {
        QR_TRY(start_over(runner, err));
    }
    if (lease_is_lost ? runner->options.owns_all : has_dead_to_free) {
        QR_TRY(qr_dispatch_free_dead(runner, err));
    }
    return qr_dispatch_round(runner, ret_next_mono_ms, err);
}

/* True when there are too many (R4); once. */
static bool check_stuck(struct qr_runner *runner)
{
    qr_slots_check_time(runner);
    const struct qr_runner_options *options = &runner->options;
    const bool is_told = runner->is_told_of_stuck;
    runner->is_told_of_stuck = is_told || (options->stuck_max && runner->stuck_count > options->stuck_max);
    return options->on_stuck && !is_told && runner->is_told_of_stuck;
}

static void dispatcher_main(void *arg)
{
    struct qr_runner *runner = arg;
    int64_t next_mono_ms = 0, retry_ms = 0, last_mono_ms = qr_runner_mono_ms(runner) - QR_ROUND_MS;
    bool was_stopping = false;
    qr_mutex_lock(&runner->lock);
    while (!runner->closing &&
           !(runner->stopping && runner->in_flight_count == 0 && !qr_dispatch_is_in_doubt(runner))) {
        const int64_t more_mono_ms = retry_ms ? 0 : more_comes_until(runner, last_mono_ms);
        const int64_t look_mono_ms = earlier(next_look(runner, next_mono_ms, retry_ms), more_mono_ms);
        const bool is_time = (look_mono_ms && qr_runner_mono_ms(runner) >= look_mono_ms) ||
                             (runner->stopping && !was_stopping); /* once more before the end, whatever was refused */
        runner->look_mono_ms = look_mono_ms;
        if (!is_time && (retry_ms || more_mono_ms || !has_work(runner))) {
            if (look_mono_ms) {
                qr_signal_wait_until(&runner->dispatcher_wake, &runner->lock, runner->options.clock, look_mono_ms);
            } else {
                qr_signal_wait(&runner->dispatcher_wake, &runner->lock);
            }
            continue;
        }
        was_stopping = runner->stopping;
        last_mono_ms = qr_runner_mono_ms(runner);
        const bool too_many_stuck = check_stuck(runner);
        const bool lease_is_lost = runner->lease_is_lost, has_dead_to_free = runner->has_dead_to_free;
        struct slot_thread *ended = qr_slots_take_ended(runner);
        qr_mutex_unlock(&runner->lock);
        qr_slots_free_ended(ended);
        if (too_many_stuck) {
            runner->options.on_stuck(runner->options.on_stuck_arg);
        }
        qr_err err = {0};
        const qr_rc rc = step(runner, lease_is_lost, has_dead_to_free, &next_mono_ms, &err);
        qr_mutex_lock(&runner->lock);
        runner->stats.trouble = rc != QR_OK ? err : (qr_err){0};
        if (rc == QR_OK) {
            retry_ms = 0;
        } else {
            log_failure(runner, "dispatch_failed", &err);
            retry_ms = QR_MIN(QR_MAX(retry_ms * 2, (int64_t)RETRY_MS_MIN), (int64_t)RETRY_MS_MAX);
            next_mono_ms = qr_runner_mono_ms(runner) + retry_ms;
            qr_signal_all(&runner->thread_ended); /* whoever stops the runner looks whether that is in vain */
        }
    }
    qr_mutex_unlock(&runner->lock);
    (void)!qr_dispatch_unregister(runner, NULL); /* here: who stops the runner does not wait for the database */
    qr_mutex_lock(&runner->lock);
    runner->dispatcher_has_ended = true;
    qr_signal_all(&runner->thread_ended);
    qr_mutex_unlock(&runner->lock);
}

static void on_jobs(void *arg, const char *channel)
{
    struct qr_runner *runner = arg;
    QR_HOLD(&runner->lock);
    runner->look_for_lost = runner->look_for_lost || strcmp(channel, QR_JOBS_CANCEL_CHANNEL) == 0;
    qr_runner_wake(runner);
}

/* ---- starting and stopping ---- */

static void init(struct qr_runner *runner)
{
    qr_mutex_init(&runner->lock);
    qr_signal_init(&runner->dispatcher_wake);
    qr_signal_init(&runner->heartbeat_wake);
    qr_signal_init(&runner->preparer_wake);
    qr_signal_init(&runner->thread_ended);
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        qr_signal_init(&runner->work[queue]);
        runner->average_us[queue] = QR_AHEAD_US; /* nothing is claimed ahead before handlers are known to be short */
    }
}

static void free_runner(struct qr_runner *runner)
{
    while (runner->newest) { /* the database did not answer: whoever finds our lease ended frees their jobs */
        qr_task_forget(runner->newest);
    }
    while (runner->ended.first) {
        qr_task_free(qr_tasks_take_first(&runner->ended));
    }
    qr_dispatch_round_free(runner->round);
    qr_signal_done(&runner->dispatcher_wake);
    qr_signal_done(&runner->heartbeat_wake);
    qr_signal_done(&runner->preparer_wake);
    qr_signal_done(&runner->thread_ended);
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        qr_signal_done(&runner->work[queue]);
    }
    qr_mutex_done(&runner->lock);
    qr_free(runner);
}

static bool all_have_ended(const struct qr_runner *runner)
{
    if ((runner->has_dispatcher && !runner->dispatcher_has_ended) ||
        (runner->has_heartbeat && !runner->heartbeat_has_ended) ||
        (runner->has_preparer && !runner->preparer_has_ended)) {
        return false;
    }
    for (const struct slot_thread *slot = runner->threads; slot; slot = slot->next) {
        if (!slot->has_ended) {
            return false;
        }
    }
    return true;
}

/* False: it waits for a database that does not answer, and is left behind. */
static bool end_thread(struct qr_runner *runner, struct qr_thread *thread, const bool *has_ended)
{
    bool is_over;
    {
        QR_HOLD(&runner->lock);
        is_over = *has_ended;
    }
    if (is_over) {
        qr_thread_join(thread);
    } else {
        qr_thread_leave(thread);
    }
    return is_over;
}

static void tell_threads_to_end(struct qr_runner *runner)
{
    const int64_t deadline_mono_ms = qr_runner_mono_ms(runner) + RETURN_MS_MAX;
    QR_HOLD(&runner->lock);
    runner->closing = true;
    qr_signal_all(&runner->dispatcher_wake);
    qr_signal_all(&runner->heartbeat_wake);
    qr_signal_all(&runner->preparer_wake);
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        qr_signal_all(&runner->work[queue]);
    }
    while (!all_have_ended(runner) &&
           qr_signal_wait_until(&runner->thread_ended, &runner->lock, runner->options.clock, deadline_mono_ms)) {
    }
}

/* True when all threads have ended, and are joined. */
static bool end_threads(struct qr_runner *runner)
{
    bool all = true;
    tell_threads_to_end(runner);
    while (runner->threads) {
        struct slot_thread *slot = runner->threads;
        runner->threads = slot->next;
        bool is_busy;
        {
            QR_HOLD(&runner->lock);
            is_busy = !slot->has_ended; /* its handler does not return: nobody can wait for that */
        }
        if (is_busy) {
            qr_thread_leave(&slot->thread);
            all = false;
        } else {
            qr_thread_join(&slot->thread);
            qr_free(slot);
        }
    }
    return all;
}

static qr_rc start_threads(struct qr_runner *runner, qr_err *err)
{
    QR_HOLD(&runner->lock);
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        for (int i = 0; i < runner->options.slots[queue]; i++) {
            QR_TRY(qr_slot_add_thread(runner, queue, err));
        }
    }
    QR_TRY(qr_thread_spawn(&runner->heartbeat, "quire-beat", heartbeat_main, runner, err));
    runner->has_heartbeat = true;
    if (runner->options.plan.before) {
        QR_TRY(qr_thread_spawn(&runner->preparer, "quire-prepare", qr_preparer_main, runner, err));
        runner->has_preparer = true;
    }
    QR_TRY(qr_thread_spawn(&runner->dispatcher, "quire-dispatch", dispatcher_main, runner, err));
    runner->has_dispatcher = true;
    return QR_OK;
}

qr_rc qr_runner_start(struct qr_runner **ret_runner, const struct qr_runner_options *options, qr_err *err)
{
    struct qr_runner *runner = qr_alloc_zero(sizeof *runner);
    if (!runner) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the job runner");
    }
    runner->options = *options;
    init(runner);
    runner->is_woken = true;
    runner->round = qr_dispatch_round_create();
    qr_rc rc = runner->round ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the job runner");
    rc = rc == QR_OK ? qr_dispatch_register(runner, err) : rc;
    rc = rc == QR_OK && options->owns_all ? qr_dispatch_free_dead(runner, err) : rc;
    rc = rc == QR_OK ? qr_db_listen(options->db, QR_JOBS_CHANNEL, on_jobs, runner, err) : rc;
    rc = rc == QR_OK ? qr_db_listen(options->db, QR_JOBS_CANCEL_CHANNEL, on_jobs, runner, err) : rc;
    rc = rc == QR_OK ? start_threads(runner, err) : rc;
    if (rc != QR_OK) {
        qr_runner_stop(runner, 0);
        return rc;
    }
    *ret_runner = runner;
    return QR_OK;
}

/* Where the one who owns the database is refused by it, nothing comes of waiting: what is left is freed at once by whoever opens
 * it next (FENCE-4). */
static void wait_ended(struct qr_runner *runner, int64_t wait_ms, int64_t stop_mono_ms)
{
    const int64_t deadline_mono_ms = qr_runner_mono_ms_after(runner, wait_ms);
    for (bool has_time = true; has_time && !runner->dispatcher_has_ended;) {
        const bool is_in_vain =
            runner->options.owns_all && runner->stats.trouble.code != QR_CODE_NONE && !qr_dispatch_is_in_doubt(runner);
        has_time = qr_signal_wait_until(&runner->thread_ended, &runner->lock, runner->options.clock,
                                        is_in_vain ? QR_MIN(deadline_mono_ms, stop_mono_ms + TROUBLE_MS_MAX)
                                                   : deadline_mono_ms);
    }
}

bool qr_runner_stop(struct qr_runner *runner, int64_t grace_ms)
{
    const int64_t stop_mono_ms = qr_runner_mono_ms(runner);
    if (runner->has_dispatcher) {
        QR_HOLD(&runner->lock);
        runner->stopping = true;
        qr_runner_wake(runner);
        wait_ended(runner, grace_ms, stop_mono_ms);
        runner->handing_back = true;
        for (struct task *task = runner->newest; task; task = task->older) {
            atomic_store(&task->cancelled, true);
        }
        qr_runner_wake(runner);
        wait_ended(runner, HAND_BACK_MS_MAX, stop_mono_ms);
    }
    qr_db_unlisten(runner->options.db, runner);
    bool all_ended = end_threads(runner);
    if (runner->has_dispatcher) {
        all_ended = end_thread(runner, &runner->dispatcher, &runner->dispatcher_has_ended) && all_ended;
    } else {
        (void)!qr_dispatch_unregister(runner, NULL);
    }
    if (runner->has_heartbeat) {
        all_ended = end_thread(runner, &runner->heartbeat, &runner->heartbeat_has_ended) && all_ended;
    }
    if (runner->has_preparer) {
        all_ended = end_thread(runner, &runner->preparer, &runner->preparer_has_ended) && all_ended;
    }
    if (all_ended) {
        free_runner(runner);
    }
    return all_ended;
}

qr_uuid qr_runner_worker_id(struct qr_runner *runner)
{
    QR_HOLD(&runner->lock);
    return runner->worker_id;
}

void qr_runner_stats(struct qr_runner *runner, struct qr_runner_stats *ret_stats)
{
    QR_HOLD(&runner->lock);
    *ret_stats = runner->stats;
    ret_stats->running = runner->in_flight_count;
}
