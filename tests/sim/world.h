/* The processes of a run: each has its own database handle, runner and memory, and can die, freeze and start again at any
 * moment. */
#pragma once

#include "job/runner.h"
#include "sim/sched.h"
#include "support/test.h"

enum { SIM_QUEUE_COUNT = 2, SIM_SUBJECT_COUNT = 4 };

struct process {
    int number;
    int incarnation; /* of all processes together: each start has its own */
    bool is_up;
    struct qr_db *db;
    struct qr_uuid_gen ids;
    bool has_ids;
    struct qr_runner *runner;    /* NULL while it starts or ends */
    void *parts;                 /* of world.open_parts */
    bool is_ending, has_stopped; /* in order, with all its threads */
};

struct totals {
    uint64_t runs, steps, commits, failed_commits, lost_answers, crashes, zombies, rescues, lost, cancels;
    uint64_t lost_wakeups, shutdowns, jobs, parts, virtual_s;
};

struct world {
    struct qr_test *t;
    int run; /* of this test: names the file */
    char path[256];
    bool owns_all; /* one process that owns the folder; else several */
    bool faults;   /* things go wrong; off while the run drains */
    int process_count;
    struct process processes[SIM_PROCESSES_MAX]; /* from 1 on */
    int incarnations;
    const struct qr_handler *handlers;
    size_t handler_count;
    struct qr_plan plan;
    void (*start_actors)(struct process *process); /* what else runs in a process */
    int alone_per_mille; /* runs with one process that owns the folder; the others have 2 to processes_max */
    int processes_max;
    /* More that a process consists of, each NULL where there is nothing: opened before the runner starts, which may be told
     * something else then; what runs beside it; closed in order after the runner, whether or not its handlers all ended. */
    qr_rc (*open_parts)(struct process *process, struct qr_runner_options *options, qr_err *err);
    qr_rc (*start_parts)(struct process *process, qr_err *err);
    void (*stop_parts)(struct process *process);
    void (*close_parts)(struct process *process);

    /* the last commit, for the oracle */
    bool is_dirty;
    int committer; /* incarnation */
    int64_t commit_wall_ms;
};

extern struct world world;
extern struct totals totals;

/* Once a test; then once a run. */
void world_prepare(struct qr_test *t);
void world_begin(uint64_t seed);
void world_end(void);

/* Starts the process, in a coroutine. */
void world_start(struct process *process);
/* kill -9 */
void world_crash(struct process *process);
/* It stands still, mostly until just after its jobs were given to others. */
void world_freeze(struct process *process);
/* An orderly end, in a coroutine; the process starts again later. */
void world_shut_down(struct process *process, int64_t grace_ms);
/* Drops what died by itself; without faults, starts what is down. Called after every step. */
void world_tend(int died);
struct process *world_process(void);
/* For files besides the database: syncs nothing. */
const struct qr_io *world_io(void);
