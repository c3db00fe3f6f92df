/* The runner: claims jobs, runs their handlers on threads, records what happened.
 *
 * R1  One thread, the dispatcher, records outcomes and claims more in one transaction. A job is in memory only while its row
 *     says that it runs under this worker's fence. What a record relies on another thread makes durable before (P1).
 * R2  Every record names the fence. Where it does not match, the outcome is thrown away (I2).
 * R3  The lease is renewed by a thread that does nothing else. When it is lost, what this worker holds goes back in line, as
 *     far as nobody has freed it yet, and it goes on under a new id. That is no crash: the process lives.
 * R4  A handler cannot be killed. One that does not return in time is fenced, its slot gets a new thread, and the old thread
 *     ends when it returns. Too many of them: the owner is told to restart the process.
 * R5  Jobs that were running when a process died (suspects) run one at a time, and while one waits or runs nothing else is
 *     claimed: so the one that kills its process is found, and the others are not blamed with it. Except deletes, which wait
 *     behind no other queue (DEL-6): they are claimed all the same, and one that is itself a suspect goes before the
 *     others without waiting for what is in flight.
 * R6  One that was there when QR_JOB_CRASHES_MAX processes died is not run any more, but fails with `crashed_worker` once it is
 *     claimed, and is recorded like any other: while the plan cannot be told, it is put off, and its item has a job (I1). */
#pragma once

#include "base/log.h"
#include "job/handler.h"
#include "model/job_type.h"

enum { QR_RUNNER_SLOTS_MAX = 64 };

struct qr_runner_options {
    struct qr_db *db;
    struct qr_uuid_gen *ids;
    const struct qr_clock *clock;
    struct qr_rand *rand;
    const struct qr_log *log; /* NULL = silent */
    const struct qr_handler *handlers;
    size_t handler_count;
    struct qr_plan plan;
    int slots[QR_QUEUE_END]; /* handlers at a time, by queue; 0 = this runner does not serve it */
    int share_min
        [QR_QUEUE_END]; /* so many are claimed for a thread that is idle, however long they take: of handlers that
                                  * take several and mostly wait */
    const char *name;   /* how people see this worker: "host, pid 123" */
    bool owns_all;      /* no other worker can be alive: their jobs are free at once */
    int64_t poll_ms;    /* look for work that often without being woken; 0 = never */
    int stuck_max;      /* handlers that do not return, before on_stuck is called, once */
    void (*on_stuck)(void *arg);
    void *on_stuck_arg;
};

qr_rc qr_runner_start(struct qr_runner **ret_runner, const struct qr_runner_options *options, qr_err *err);

/* Claims nothing more, waits up to `grace_ms` for handlers, hands back what has not ended by then, and frees the runner. Takes
 * a few seconds longer than that at most, also when the database does not answer; a second or so altogether where it refuses
 * its owner, as on a full disk. Threads that do not return are left behind, with the runner and what it uses; true when there
 * were none. */
bool qr_runner_stop(struct qr_runner *runner, int64_t grace_ms);

/* As which it is registered now. */
qr_uuid qr_runner_worker_id(struct qr_runner *runner);

/* What became of attempts of one type, as far as it is recorded. */
struct qr_type_stats {
    uint64_t completed, failed, retried, snoozed, skipped;
    uint64_t timed;       /* attempts whose time is in the sum: those that were begun */
    uint64_t duration_ms; /* from the beginning of the handler until it is recorded */
};

struct qr_runner_stats {
    uint64_t claimed, completed, failed, retried, snoozed, skipped, lost, stuck, leases_lost;
    uint64_t rescued; /* jobs of dead workers that were put back in line at the start; see also the beat's */
    uint64_t ended[QR_QUEUE_END];                /* by queue: those that do not come again */
    struct qr_type_stats types[QR_JOB_TYPE_END]; /* 0 = types that are not known here */
    int running;
    qr_err
        trouble; /* why the last round of the dispatcher failed, so that nothing begins or ends; no code = it did not */
};
void qr_runner_stats(struct qr_runner *runner, struct qr_runner_stats *ret_stats);
