/* What a job type provides, and what it is given. A handler does one stage and returns what happened; it never decides what
 * follows (the plan does) and never calls upward. */
#pragma once

#include "base/arena.h"
#include "store/jobs.h"

struct qr_runner;

/* What a handler sees of its job. */
struct qr_job_run {
    const struct qr_job *job;
    struct qr_arena *arena; /* for what lives as long as the attempt */
    struct qr_db *db;
    const struct qr_clock *clock;
    struct qr_rand *rand;
    void *arg; /* of the handler's registration */
};

enum qr_outcome_kind {
    QR_OUTCOME_NONE, /* nothing was said: handed back when it was told to end, else a defect: failed with `internal` */
    QR_OUTCOME_COMPLETED,
    QR_OUTCOME_SKIPPED, /* no longer wanted; `error` says why */
    QR_OUTCOME_FAILED,  /* `error`; its policy decides whether it is tried again */
    QR_OUTCOME_SNOOZED, /* not now: wait `delay_ms`; no attempt is counted */
    QR_OUTCOME_ALONE,   /* of several begun together: nothing was done, it is to be begun by itself */
};

struct qr_outcome {
    enum qr_outcome_kind kind;
    qr_err error;
    int64_t delay_ms;       /* snooze; for a failure: not before (Retry-After) */
    enum qr_db_level level; /* how durable the record must be */
    void *result;           /* for the plan; in the run's arena */
};

typedef void qr_handler_fn(struct qr_job_run *run, struct qr_outcome *ret_outcome);

enum { QR_TOGETHER_MAX = 32 }; /* begun together: what they find is recorded when the last of them has ended */

/* Several jobs of the type, for less than one after the other costs; ret_outcomes[i] is that of runs[i]. None of them was
 * tried before: one that its thread does not return from, or that kills the process, is found when it runs by itself. */
typedef void qr_handler_many_fn(struct qr_job_run *const *runs, size_t count, struct qr_outcome *const *ret_outcomes);

/* Several jobs of the type that come one after the other and end one by one: for a handler that mostly waits, so that what it
 * waits for never runs dry. */
struct qr_job_stream {
    /* Gives up to `max` jobs, and how many: first those that were begun with the handler, from then on those that wait. `room`
     * of them could be under way besides those that are not ended yet: so many are claimed, for the next time. */
    size_t (*take)(struct qr_job_stream *stream, size_t max, size_t room, struct qr_job_run **ret_runs,
                   struct qr_outcome **ret_outcomes);
    /* Hands in one whose outcome is set, before the others; it is gone then. What was taken and not handed in ends when the
     * handler returns. */
    void (*end)(struct qr_job_stream *stream, struct qr_job_run *run);
};

/* As qr_handler_many_fn: none of them was tried before. Returns when nothing is left that it could take. */
typedef void qr_handler_stream_fn(struct qr_job_stream *stream);

struct qr_handler {
    const char *type;
    qr_handler_fn *fn;
    void *arg;
    qr_handler_many_fn *many;     /* NULL = there is nothing to gain */
    qr_handler_stream_fn *stream; /* instead of `many` */
};

/* ---- what a handler may call while it runs ---- */

/* True when the attempt is no longer wanted: cancelled, past its time limit, or the process is ending. Look between
 * batches, and return soon. What it then returns is recorded like any other outcome, unless the job was taken from this
 * worker; a failure of one that was told to end because its process is ending counts as no attempt. */
bool qr_job_is_cancelled(const struct qr_job_run *run);

/* Records a part of the result: the plan gets it inside a transaction in which the fence was found to match. QR_LOST: stop.
 * Returns after the commit. */
qr_rc qr_job_report_part(struct qr_job_run *run, enum qr_db_level level, void *part, qr_err *err);

/* Runs a write function in a transaction in which the fence was found to match. */
qr_rc qr_job_write(struct qr_job_run *run, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err);

/* For people who watch; written now and then, not each time. */
void qr_job_progress(struct qr_job_run *run, int64_t done, int64_t total);

/* ---- what decides ---- */

enum { QR_ENDED_MAX = 256 }; /* recorded together: the transaction stays short */

/* An attempt that ends. `state` is what the job becomes: an open one when it will be tried again. */
struct qr_ended {
    const struct qr_job *job;
    enum qr_job_state state;
    const struct qr_outcome *outcome;
};

typedef qr_rc qr_lock_bases_fn(struct qr_tx *tx, const qr_uuid *base_ids, size_t count, void *arg, qr_err *err);

/* What follows from the outcomes of handlers. Each may be NULL; all but `before` run inside a transaction, and like every
 * write function they may run again. */
struct qr_plan {
    /* L1: locks the rows of these bases, before any row of a job is touched. They are in the order of their ids, each once;
     * one that is gone is no error. */
    qr_lock_bases_fn *lock;
    /* Of an attempt that was completed: whether its record relies on something that `before` makes durable. Looks at nothing
     * but what it is given. NULL = each does. */
    bool (*relies)(const struct qr_ended *ended);
    /* Outside of any transaction, before such attempts are recorded, and while others are. An error is what each of them then
     * failed with. */
    qr_rc (*before)(const struct qr_ended *ended, size_t count, void *arg, qr_err *err);
    /* Records a part, where the fence was found to match. An error undoes it. */
    qr_rc (*part)(struct qr_tx *tx, const struct qr_job *job, void *part, void *arg, qr_err *err);
    /* Records what follows from attempts that ended, all that were recorded in this transaction together. An error undoes
     * their records; then each is tried on its own, and fails with the error it gets. No job ends without it: one whose failure
     * it refuses too is put off, and run again. */
    qr_rc (*ended)(struct qr_tx *tx, const struct qr_ended *ended, size_t count, void *arg, qr_err *err);
    void *arg;
};
