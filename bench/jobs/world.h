/* A database with jobs, those who add them, and the runner that ends them. */
#pragma once

#include "job/runner.h"
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PRODUCERS_MAX = 64 };

struct world {
    const char *driver; /* begins the keys of the report */
    struct qr_db *db;
    struct qr_uuid_gen ids;
};

/* `vfs` and `connections` as in struct qr_db_options. */
void world_open(struct world *world, const char *driver, const char *url, const char *vfs, int connections);
void world_close(struct world *world);

void world_report(struct bench_report *to, const struct world *world, const char *key, double value, const char *unit,
                  const char *label);

/* ---- adding ---- */

struct adding {
    struct world *world;
    struct qr_job_spec spec;
    int count; /* in one transaction */
};

/* `type` is a handler's: "nothing" ends relaxed, "nothing-durably" durably, "note" tells a struct starts. */
struct qr_job_spec new_spec(const char *type);
/* A write function; `arg` is a struct adding. */
qr_rc add_jobs(struct qr_tx *tx, void *arg, qr_err *err);

struct producer {
    struct adding adding;
    int64_t until_us;
    int64_t pace_us; /* between two jobs; 0 = as fast as possible */
    bool says_when;  /* the arguments are the time of the call */
    struct bench_times times;
    pthread_t thread;
};

/* One that adds a job a call, each durable, for so long from now on. */
struct producer producer_for(struct world *world, const char *type, double seconds);
/* Runs `count` producers like the given one, and joins how long each accept took. */
void run_producers(const struct producer *like, int count, struct bench_times *ret_times);

/* ---- running ---- */

/* How long after the call that enqueued them jobs began. */
struct starts {
    pthread_mutex_t lock;
    struct bench_times times;
    int64_t last_us; /* when the last one began */
    atomic_llong count;
};

/* One runner at a time. `starts` may be NULL where no job is of type "note". */
struct qr_runner *start_runner(struct world *world, struct starts *starts);
void stop_runner(struct qr_runner *runner);
void wait_completed(struct qr_runner *runner, uint64_t count);
