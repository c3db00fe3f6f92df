/* What runner.c (threads and memory), slots.c (the handlers' side), prepare.c (what comes before a record) and dispatch.c
 * (transactions) share. */
#pragma once

#include "base/sync.h"
#include "job/runner.h"

#include <stdatomic.h>

enum task_state {
    TASK_READY, /* claimed, waits for a thread */
    TASK_RUNNING,
    TASK_ENDED,     /* has an outcome, and what its record relies on is not durable yet (P1) */
    TASK_PREPARED,  /* has an outcome that is to be recorded */
    TASK_ABANDONED, /* fenced while its handler runs, or while it is prepared: what it returned is thrown away */
};

/* A claimed job in memory. The runner's lock guards all but what the handler alone uses (run, arena, outcome). */
struct task {
    struct qr_job_run run; /* first: handlers get this, and their calls find the rest */
    struct qr_runner *runner;
    struct qr_job job;
    struct qr_arena arena;
    enum task_state state;
    atomic_bool cancelled;
    struct qr_outcome outcome;
    int64_t progress_done, progress_total;
    bool progress_is_new;
    int64_t progress_mono_ms; /* when it was last written */
    bool needs_look;          /* it may have been taken from us */
    bool is_unprepared;       /* what its record relies on could not be made durable: that is what it failed with */
    bool is_stuck;            /* its handler does not return: recorded as its failure (R4) */
    int64_t claimed_mono_ms, began_mono_ms;
    int64_t limit_mono_ms; /* its time limit; 0 = none */
    int64_t stuck_mono_ms; /* when it counts as stuck; 0 = never */
    bool runs_alone;       /* never together with others */
    struct task *next;     /* in ready, ended or prepared, or that the same thread runs */
    struct task *before;   /* that the same thread runs, while its handler takes one after the other */
    struct task *newer, *older;
};

struct task_list {
    struct task *first, *last;
    size_t count;
};

struct slot_thread {
    struct qr_job_stream stream; /* first: handlers get this, and its functions find the rest */
    struct qr_runner *runner;
    enum qr_queue queue;
    struct qr_thread thread;
    struct task *task; /* that it runs: the first of those that were begun together */
    /* while a handler runs that takes one job after the other */
    const struct qr_handler *streaming;
    struct task *not_given; /* the first of those begun with it that it has not taken yet */
    size_t room;            /* so many more could it take */
    bool is_replaced;       /* its tasks were abandoned: it ends when the handler returns */
    bool has_ended;
    struct slot_thread *next;
};

struct qr_runner {
    struct qr_runner_options options;
    struct qr_thread dispatcher, heartbeat, preparer;
    bool has_dispatcher, has_heartbeat, has_preparer;

    struct qr_mutex lock; /* guards everything below */
    struct qr_signal dispatcher_wake, heartbeat_wake, preparer_wake, work[QR_QUEUE_END], thread_ended;
    qr_uuid worker_id;
    bool is_woken;                /* there may be work */
    bool look_for_lost;           /* a running job may have been taken from us */
    int64_t progress_due_mono_ms; /* when new progress is to be written; 0 = there is none */
    int64_t look_mono_ms;         /* until when the dispatcher sleeps if nobody wakes it; 0 = for ever */
    bool lease_is_lost;           /* then everything is handed back, before we register anew (R3) */
    bool has_dead_to_free;        /* we declared our predecessors dead; their jobs are not free yet */
    bool stopping;                /* claim nothing more */
    bool handing_back;            /* and give back what has not ended */
    bool closing;                 /* threads end */
    bool dispatcher_has_ended, heartbeat_has_ended, preparer_has_ended;
    bool is_paused[QR_QUEUE_END]; /* as the last round saw it: what has not begun goes back */
    bool has_more[QR_QUEUE_END];  /* the last round may have left some: it claimed no fewer than it wanted */

    struct task *newest;
    int in_flight[QR_QUEUE_END]; /* ready, running, ended or prepared */
    int in_flight_count;
    int suspects_in_flight; /* R5 */
    struct task_list ready[QR_QUEUE_END], ended, prepared;
    int64_t average_us[QR_QUEUE_END]; /* how long handlers take: short ones are claimed ahead */

    struct slot_thread *threads;
    int stuck_count;             /* threads whose handlers have not returned yet */
    bool is_told_of_stuck;       /* the owner knows that they are too many */
    int64_t add_threads_mono_ms; /* when to try again to replace them; 0 = all are there */
    struct qr_runner_stats stats;

    /* the dispatcher's alone */
    qr_uuid ring[QR_QUEUE_END];
    struct round *round;
};

enum {
    QR_STUCK_GRACE_MS = 30000,  /* from being told to end until a handler counts as stuck */
    QR_PROGRESS_MS = 500,       /* progress is written at most that often */
    QR_ADD_THREADS_MS = 1000,   /* after a thread could not be made */
    QR_UNKNOWN_TYPE_MS = 60000, /* a job without a handler is looked at again that often */
    QR_READY_MS_MAX = 200,      /* claimed ahead, and all threads are busy: then it goes back to those that are not */
    QR_AHEAD_US = 60000,        /* claimed ahead for a thread: as many as are done in that time */
    QR_ROUND_MS = 10,           /* while threads have enough to do, rounds begin that far apart */
    QR_PREPARE_MS = 25,         /* the same for what comes before a record, which gains more from being done for many */
    QR_ENOUGH = 128,            /* or when that many wait for it */
};

int64_t qr_runner_mono_ms(const struct qr_runner *runner);
/* That long from now, whatever was asked for. */
int64_t qr_runner_mono_ms_after(const struct qr_runner *runner, int64_t wait_ms);
void qr_runner_wake(struct qr_runner *runner);

/* tasks.c; with the lock held */
void qr_tasks_append(struct task_list *list, struct task *task);
struct task *qr_tasks_take_first(struct task_list *list); /* there must be one */
void qr_task_free(struct task *task);                     /* that is in no book */
/* R6: no handler runs for it. */
bool qr_task_is_given_up(const struct task *task);
struct task *qr_task_add(struct qr_runner *runner, const struct qr_job *job);
/* Takes it out of the books; frees it, unless its handler still runs or it is being prepared. */
void qr_task_forget(struct task *task);
/* Keeps a ready task from being begun, while it is handed back; and lets it be begun after all. */
void qr_task_hold(struct task *task);
void qr_task_unhold(struct task *task);

/* slots.c; with the lock held where nothing else is said */
qr_rc qr_slot_add_thread(struct qr_runner *runner, enum qr_queue queue, qr_err *err);
/* A ready task that is to go back, because its queue is paused or because it has waited too long for a busy thread. */
bool qr_task_goes_back(const struct task *task, int64_t now_mono_ms);
/* Tells running handlers whose time is up to end, and replaces the threads of those that do not. */
void qr_slots_check_time(struct qr_runner *runner);
/* When that has to be looked at next; 0 = there is none to watch. */
int64_t qr_slots_next_check_mono_ms(const struct qr_runner *runner);
/* The threads that were replaced and have ended; to be freed without the lock. */
struct slot_thread *qr_slots_take_ended(struct qr_runner *runner);
void qr_slots_free_ended(struct slot_thread *ended);
/* Threads have enough short jobs to do: nobody is kept waiting when what they ended is recorded a little later, together with
 * more. */
bool qr_slots_are_busy(const struct qr_runner *runner);
/* How many more to claim for the queue, when `in_flight` are there already. */
size_t qr_slots_free(const struct qr_runner *runner, enum qr_queue queue, int in_flight);

/* prepare.c; with the lock held: takes a task whose handler has returned. */
void qr_prepare_add(struct task *task);
/* How many in the books wait for that. */
int qr_prepare_count(const struct qr_runner *runner);
void qr_preparer_main(void *arg); /* the thread */

/* dispatch.c: one transaction of the dispatcher. *ret_next_mono_ms: come back then at the latest, 0 = when woken. */
qr_rc qr_dispatch_round(struct qr_runner *runner, int64_t *ret_next_mono_ms, qr_err *err);
/* True when what the last round claimed may be ours although it is not in memory. */
bool qr_dispatch_is_in_doubt(const struct qr_runner *runner);
/* Registers this worker under a new id; where it owns all, its predecessors are dead from then on (has_dead_to_free). */
qr_rc qr_dispatch_register(struct qr_runner *runner, qr_err *err);
qr_rc qr_dispatch_unregister(struct qr_runner *runner, qr_err *err);
/* Renews the lease; QR_LOST when it has ended. */
qr_rc qr_dispatch_beat(struct qr_runner *runner, qr_uuid worker_id, qr_err *err);
/* Frees the jobs of workers that were declared dead, in small steps. An error: some are left. */
qr_rc qr_dispatch_free_dead(struct qr_runner *runner, qr_err *err);
/* L1; nothing where the plan locks nothing. */
qr_rc qr_plan_lock(struct qr_tx *tx, const qr_uuid *base_ids, size_t count, const struct qr_plan *plan, qr_err *err);
struct round *qr_dispatch_round_create(void);
void qr_dispatch_round_free(struct round *round);
