/* The job table: the durable outbox. Each call is a part of a write or read function; jobs_find.h has the less usual ones.
 *
 * J1  A job that runs belongs to (worker, fence). Whatever writes about a running job names its fence; where that does not
 *     match, nothing is changed and the answer is QR_LOST. Every change of owner raises the fence (I2, I9).
 * J2  Of one idempotency key at most one job is open; of one serial key at most one is scheduled, queued or running. Both
 *     are unique indexes, so no race can break them.
 * J3  Who ends a job of a serial key promotes the next one in the same transaction.
 *
 * L1  The order of locks (PostgreSQL): the worker's row, then rows of bases in the order of their ids, then rows of jobs.
 *     Whoever waits for a job's row while it holds another's has locked the bases of both. Who frees the jobs of the dead
 *     locks no base: he takes just the rows that nobody holds. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"
#include "db/db.h"
#include "model/job.h"

enum {
    QR_JOB_TYPE_MAX = 64,       /* with its NUL */
    QR_JOB_ARGS_MAX = 64 << 10, /* they are written again with the row, and claimed by the hundred */
    QR_JOB_BYTES_MAX =
        4 << 20, /* of args in one transaction, about: a write is bounded (DB-7), and a row is written whole */
    QR_JOB_PRIORITY_MAX = 1000000,
    QR_JOB_TIME_LIMIT_MS_MAX = 7 * 86400000,
    QR_JOB_BATCH_MAX = 500,
    QR_JOB_HISTORY_MAX = 100, /* attempts that are kept: a job that is put off for days has thousands */
    QR_JOB_RESCUE_MAX = 100,  /* jobs of the dead in one step: each row is written, with its args */
    QR_JOB_PRUNE_MAX = 100,   /* jobs in one step, each with its history */
    QR_KEY_HASH_BYTES = 16,
};

/* ---- adding ---- */

struct qr_job_spec {
    enum qr_queue queue;
    const char *type;
    qr_uuid base_id; /* whose turn it takes; all zero = nobody's in particular */
    qr_uuid item_id; /* all zero = none */
    int64_t generation;
    int priority;           /* smaller first; from -QR_JOB_PRIORITY_MAX to that */
    int64_t run_at_ms;      /* 0 = now; at most QR_JOB_RUN_AT_MS_MAX from now counts */
    qr_str idempotency_key; /* empty = none */
    qr_str serial_key;      /* empty = none */
    qr_str args;            /* JSON, at most QR_JOB_ARGS_MAX; empty = {} */
    int64_t time_limit_ms;  /* of one attempt; 0 = none; at most QR_JOB_TIME_LIMIT_MS_MAX counts */
};

#define QR_JOB_RUN_AT_MS_MAX (INT64_C(3653) * 86400000) /* ten years */

/* Adds a job. Where an open one has the same idempotency key, that one is the answer and *ret_existed (may be NULL) is
 * true. Wakes the runners after the commit. `invalid_value` for a spec that is none; `payload_too_large`. */
qr_rc qr_jobs_add(struct qr_tx *tx, qr_uuid new_id, const struct qr_job_spec *spec, qr_uuid *ret_id, bool *ret_existed,
                  qr_err *err);

/* The channel that is notified when there may be work, and when a running job was taken from its worker. */
#define QR_JOBS_CHANNEL        "jobs"
#define QR_JOBS_CANCEL_CHANNEL "jobs_cancel"

/* ---- looking ---- */

/* An idempotency or serial key as it is stored: as a hash, because PostgreSQL's index rows end at 2.7 KB and a key names any
 * number of items. */
struct qr_job_key {
    bool is_set;
    unsigned char hash[QR_KEY_HASH_BYTES];
};

struct qr_job {
    qr_uuid id;
    enum qr_queue queue;
    char type[QR_JOB_TYPE_MAX];
    qr_uuid base_id, item_id;
    int64_t generation;
    enum qr_job_state state;
    int64_t priority, run_at_ms;
    const char *args; /* in the arena */
    int64_t fence;
    int64_t attempts, crashes; /* attempts that failed, and processes that died while they ran it */
    int64_t time_limit_ms;     /* of one attempt, 0 = none */
    qr_uuid worker_id;         /* of the running or last attempt */
    int64_t progress_done, progress_total;
    int64_t progress_ms;        /* when it was last reported; 0 = never */
    const char *code, *message; /* of the last failure, or why it waits or was skipped; "" = none */
    int64_t created_ms, claimed_ms, finished_ms;
    struct qr_job_key idempotency_key, serial_key;
    bool is_suspect; /* it was running when a process died, and has not come through an attempt since */
};

qr_rc qr_jobs_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_job *ret_job,
                   qr_err *err);

/* An attempt before the current or last one, which the job itself describes. */
struct qr_job_attempt {
    int64_t fence, claimed_ms, ended_ms;
    qr_uuid worker_id;
    const char *outcome, *code, *message; /* outcome: retried, crashed, snoozed, handed_back, timed_out */
};
qr_rc qr_jobs_attempts(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, struct qr_job_attempt **ret_attempts,
                       size_t *ret_count, qr_err *err);

struct qr_job_filter {
    enum qr_job_state state;  /* 0 = any */
    enum qr_queue queue;      /* 0 = any */
    const char *type;         /* NULL = any */
    qr_uuid base_id, item_id; /* all zero = any */
    qr_uuid after;            /* newest first, below this id; all zero = from the newest */
    int limit;
};
/* Without their args, which are "". Looks at a bounded number of jobs, so there may be more though the list is not full:
 * *ret_looked_to is then where to go on, else it is all zero. */
qr_rc qr_jobs_list(struct qr_tx *tx, const struct qr_job_filter *filter, struct qr_arena *arena,
                   struct qr_job **ret_jobs, size_t *ret_count, qr_uuid *ret_looked_to, qr_err *err);

/* How many are open, by queue and state. Counts at most `limit` of each: never a scan of a million rows. */
qr_rc qr_jobs_count(struct qr_tx *tx, enum qr_queue queue, enum qr_job_state state, int64_t limit, int64_t *ret_count,
                    qr_err *err);

/* ---- running ---- */

struct qr_job_claim {
    qr_uuid worker_id;
    enum qr_queue queue;
    bool suspects; /* jobs that were running when a process died: claimed apart from the others */
    qr_uuid *ring; /* the base served last; moves on */
    struct qr_arena *arena;
    struct qr_job *jobs; /* room for `limit` */
    size_t limit;
    size_t count; /* how many there are in the end */
    size_t args_bytes;
};

/* Claims queued jobs of the queue for the worker, fair between bases; fewer than `limit` when their args are large. Each gets a new fence. Before it, in the same
 * transaction: qr_worker_require_lease, and qr_jobs_offered, which knows the pauses. */
qr_rc qr_jobs_claim(struct qr_tx *tx, struct qr_job_claim *claim, qr_err *err);

/* What could be claimed of a queue; nothing while it is paused. */
struct qr_queue_offer {
    bool any, suspects;
    bool is_paused;
};
qr_rc qr_jobs_offered(struct qr_tx *tx, struct qr_queue_offer ret_offers[static QR_QUEUE_END], qr_err *err);

/* Makes scheduled jobs that are due queued, at most QR_JOB_BATCH_MAX; *ret_next_ms is when the next one is due, 0 = none. */
qr_rc qr_jobs_promote_due(struct qr_tx *tx, int64_t *ret_count, int64_t *ret_next_ms, qr_err *err);

/* QR_LOST unless the job still runs under this fence. Locks the job until the transaction ends. */
qr_rc qr_jobs_require_fence(struct qr_tx *tx, qr_uuid id, int64_t fence, qr_err *err);

/* Ends a running job. */
struct qr_job_end {
    enum qr_job_state state;    /* COMPLETED, FAILED, SKIPPED or CANCELLED */
    const char *code, *message; /* "" = none */
    bool is_crash;              /* FAILED, but no attempt of its own: its processes died, which was counted then */
};
qr_rc qr_jobs_finish(struct qr_tx *tx, const struct qr_job *job, const struct qr_job_end *end, qr_err *err);
/* The same for many at once that were completed, without a code, and that have no serial key: a row of this table has many
 * indexes, and a statement opens them all. ret_is_lost[i]: it is not this worker's any more, and was not changed. */
qr_rc qr_jobs_complete(struct qr_tx *tx, const struct qr_job *const *jobs, size_t count, bool *ret_is_lost,
                       qr_err *err);

/* Takes a running job from its worker and puts it back in line. */
struct qr_job_release {
    const char *outcome; /* of the attempt that ends, for the history */
    const char *code, *message;
    int64_t delay_ms; /* 0 = queued at once; at most QR_JOB_DELAY_MS_MAX counts */
    bool counts_attempt, counts_crash;
    bool clears_suspicion; /* its handler ran and the process lives */
};
qr_rc qr_jobs_release(struct qr_tx *tx, qr_uuid id, int64_t fence, const struct qr_job_release *release, qr_err *err);

qr_rc qr_jobs_set_progress(struct qr_tx *tx, qr_uuid id, int64_t fence, int64_t done, int64_t total, qr_err *err);

/* Cancels an open job, whoever holds it; *ret_state is its state before. `not_found` when there is none; nothing when it
 * is not open any more. */
qr_rc qr_jobs_cancel(struct qr_tx *tx, qr_uuid id, const char *code, const char *message, enum qr_job_state *ret_state,
                     qr_err *err);

/* Deletes jobs that ended before the time, with their history: at most QR_JOB_PRUNE_MAX. */
qr_rc qr_jobs_prune(struct qr_tx *tx, int64_t before_ms, int64_t *ret_count, qr_err *err);

/* ---- queues ---- */

qr_rc qr_queue_set_paused(struct qr_tx *tx, enum qr_queue queue, bool paused, qr_err *err);
/* *ret_since_ms = 0: not paused. */
qr_rc qr_queue_paused_since(struct qr_tx *tx, enum qr_queue queue, int64_t *ret_since_ms, qr_err *err);

/* ---- workers: processes that run jobs ---- */

enum { QR_WORKER_LEASE_MS = 120000, QR_WORKER_BEAT_MS = 30000 };

qr_rc qr_worker_register(struct qr_tx *tx, qr_uuid id, const char *name, qr_err *err);
/* Renews the lease; QR_LOST when it was declared dead, or too late. */
qr_rc qr_worker_beat(struct qr_tx *tx, qr_uuid id, qr_err *err);
/* QR_LOST unless the worker may still claim. Keeps it from being declared dead until the transaction ends. */
qr_rc qr_worker_require_lease(struct qr_tx *tx, qr_uuid id, qr_err *err);
/* After its last job has ended. */
qr_rc qr_worker_unregister(struct qr_tx *tx, qr_uuid id, qr_err *err);

/* Declares workers dead: those whose lease has run out, or all but `spare` (a predecessor in a folder that we own alone).
 * From then on they can claim nothing, and write nothing about the jobs that qr_workers_free_jobs frees. Neither is done to
 * `spare`, which may be all zero; a lease that ends later than a renewal could make it is shortened to that. */
qr_rc qr_workers_declare_dead(struct qr_tx *tx, bool all, qr_uuid spare, int64_t *ret_count, qr_err *err);
/* Frees the jobs of dead workers, at most QR_JOB_RESCUE_MAX: they go back in line as suspects, with one crash more. None ends
 * here, however often that was: its runner ends it (R6). Forgets dead workers without jobs. *ret_count 0: nothing is left, but
 * what others have locked just now. */
qr_rc qr_workers_free_jobs(struct qr_tx *tx, int64_t *ret_count, qr_err *err);

/* The name of a worker ("host, pid 123"), "" when it is gone; and when its lease ends. */
qr_rc qr_worker_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, const char **ret_name, int64_t *ret_until_ms,
                     qr_err *err);
