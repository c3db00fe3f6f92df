/* The beat: periodic work, done once for each slot of time, however many beats there are.
 *
 * B1  A slot is taken by the transaction that does its work. So two beats cannot do it twice, and work that fails or dies
 *     leaves the slot free for the next try.
 * B2  The slot of now is floor(now / every) × every, by the database's time. Only that one is ever done: after an outage
 *     there is nothing to catch up with.
 * B3  A slot that was done is not done again when the clock goes back, for as long as its row is kept. Except that of a recovery
 *     task, which finds out itself what there is to do: dead workers are not left to themselves for hours.
 * B4  Work is done in bounded transactions. What is left when the process dies between two of them is found by the next
 *     slot, or by recovery at the next start: a task looks at what is there, not at what happened.
 * B5  Recovery at start has a budget of time. What is left goes on from there in the first round of the beat, whoever has the
 *     slot; so does what a failure broke off.
 *
 * Built in: the rescue of jobs whose worker's lease has run out (RECOV-2), the pruning of old jobs, and of old slots. */
#pragma once

#include "base/log.h"
#include "job/handler.h"

enum {
    QR_BEAT_TASKS_MAX = 32,
    QR_BEAT_EVERY_MS_MAX = 86400000,
    QR_BEAT_KEEP_SLOTS_MS = 2 * QR_BEAT_EVERY_MS_MAX, /* longer than any slot, so the one of now is never pruned */
    QR_BEAT_RESCUE_MS = 60000,
    QR_BEAT_KEEP_JOBS_MS = 7 * 86400000,
};
#define QR_BEAT_KEEP_JOBS_MS_MAX (INT64_C(36525) * 86400000) /* a century: more counts as that */

/* One bounded part of a task's work, inside a write function. The first of a slot runs in the transaction that takes the
 * slot; with *ret_more set it is called again in a transaction of its own. *ret_more is false before each call. */
typedef qr_rc qr_beat_fn(struct qr_tx *tx, void *arg, bool *ret_more, qr_err *err);
/* Before each of those transactions: what must not be done inside one. Bounded too, and without effect when it is repeated. How
 * long it takes nobody knows: no start waits for it. */
typedef qr_rc qr_beat_look_fn(void *arg, qr_err *err);

struct qr_beat_task {
    const char *name; /* a constant; the same in all processes that share the work */
    int64_t every_ms; /* 1 … QR_BEAT_EVERY_MS_MAX */
    qr_beat_fn *fn;
    void *arg;
    bool is_recovery;      /* qr_beat_run_recovery does it too, whatever the slot */
    qr_beat_look_fn *look; /* NULL = none */
};

struct qr_beat_options {
    struct qr_db *db;
    const struct qr_clock *clock; /* for waiting; which slot it is the database says */
    const struct qr_log *log;     /* NULL = silent */
    int64_t keep_jobs_ms;         /* how long jobs that ended are kept; 0 = QR_BEAT_KEEP_JOBS_MS */
    const struct qr_beat_task *tasks;
    size_t task_count; /* the owner's, besides those built in */
};

struct qr_beat;

/* `invalid_value` when a task's time or keep_jobs_ms is out of its range. */
qr_rc qr_beat_create(struct qr_beat **ret_beat, const struct qr_beat_options *options, qr_err *err);
/* Stops first, where needed. NULL is fine. */
void qr_beat_free(struct qr_beat *beat);

/* The runner of this process, which outlives the beat: its jobs are never taken for those of a dead worker. After the machine
 * was asleep its lease has run out, and it sees to that itself. Before qr_beat_start. */
void qr_beat_spare(struct qr_beat *beat, struct qr_runner *runner);

/* How many jobs of dead workers it has put back in line. From any thread. */
uint64_t qr_beat_rescued(const struct qr_beat *beat);

/* Does every recovery task, at start, before any job is claimed: to its end, or for as long as the budget lasts (B5). So a
 * recovery task must be right while jobs run, as it has to be every minute. Before qr_beat_start. */
enum { QR_BEAT_RECOVERY_MS = 300 }; /* a start is to take less than a second */
qr_rc qr_beat_run_recovery(struct qr_beat *beat, int64_t budget_ms, qr_err *err);

/* A thread that does what is due, and sleeps until the next slot. */
qr_rc qr_beat_start(struct qr_beat *beat, qr_err *err);
/* Ends the thread after the transaction that it is in. */
void qr_beat_stop(struct qr_beat *beat);

/* What the thread does: runs the tasks that are due, and returns when the next one will be (by the monotonic clock). A
 * failure is logged, and the task tried again soon. Not while the thread runs. */
int64_t qr_beat_round(struct qr_beat *beat);
