/* Jobs in a test: a database with the job tables, and every call of store/jobs.h as a transaction of its own.
 *
 * A call whose answer the test is about returns its rc; of all others a failure ends the test. */
#pragma once

#include "job/runner.h"
#include "support/db_fixture.h"

struct qr_world {
    struct qr_db *db;
    const struct qr_clock *clock;
    struct qr_uuid_gen ids;
    struct qr_arena arena; /* the texts of the jobs that calls return */
    bool on_postgres;
    qr_uuid looked_to; /* by the last qr_world_list */
};

enum { QR_WORLD_BEGIN_MS = 1000000000 }; /* what the test's clock says at first */

/* NULL = the clock of the test, which stands at QR_WORLD_BEGIN_MS. The tables of the job core, and
 * effect (job_id, fence, kind, state), in which (job_id, fence, kind) is unique. */
void qr_world_open(struct qr_world *world, struct qr_test *t, const struct qr_clock *clock);
/* The same over another database than the test's own: the url, and what else is not at its default. */
void qr_world_open_at(struct qr_world *world, struct qr_db_options options, const struct qr_clock *clock);
void qr_world_close(struct qr_world *world);
/* The same database, for another thread. */
void qr_world_share(struct qr_world *mine, const struct qr_world *world);
void qr_world_unshare(struct qr_world *mine);

void qr_world_write(struct qr_world *world, qr_tx_fn *fn, void *arg);
/* The number that a query without values gives. */
int64_t qr_world_i64(struct qr_world *world, const char *sql);
int64_t qr_world_count(struct qr_world *world, enum qr_job_state state);
/* Between two looks: two processors are shared by many threads. */
void qr_world_pause_briefly(void);
/* Reads until the query gives the number; the test's time limit ends it. */
void qr_world_wait_for(struct qr_world *world, const char *sql, int64_t value);
/* As a runner is woken: for one whose clock was moved. */
void qr_world_notify(struct qr_world *world);

/* ---- jobs ---- */

/* arg of qr_world_add_many_in: that many jobs of the kind. */
struct qr_world_many {
    struct qr_world *world;
    struct qr_job_spec spec;
    int count;
};
qr_tx_fn qr_world_add_many_in;

/* A job of queue convert and type "work" where the spec does not say otherwise. */
qr_uuid qr_world_add(struct qr_world *world, struct qr_job_spec spec);
qr_uuid qr_world_add_existed(struct qr_world *world, struct qr_job_spec spec, bool *ret_existed);
/* In one transaction. */
void qr_world_add_many(struct qr_world *world, struct qr_job_spec spec, int count);
/* So many, the oldest, have failed once. */
void qr_world_have_tried(struct qr_world *world, int count);
struct qr_job qr_world_find(struct qr_world *world, qr_uuid id);
enum qr_job_state qr_world_state(struct qr_world *world, qr_uuid id);
size_t qr_world_attempts(struct qr_world *world, qr_uuid id, struct qr_job_attempt **ret_attempts);

/* Of queue convert. */
size_t qr_world_claim(struct qr_world *world, qr_uuid worker_id, struct qr_job *ret_jobs, size_t limit);
struct qr_job qr_world_claim_one(struct qr_world *world, qr_uuid worker_id);
struct qr_job qr_world_claim_suspect(struct qr_world *world, qr_uuid worker_id);
struct qr_world_claim {
    qr_uuid worker_id;
    enum qr_queue queue;
    bool suspects;
    qr_uuid ring;
    struct qr_job *jobs;
    size_t limit, count;
};
qr_rc qr_world_try_claim(struct qr_world *world, struct qr_world_claim *claim);

qr_rc qr_world_finish(struct qr_world *world, const struct qr_job *job, enum qr_job_state state);
qr_rc qr_world_release(struct qr_world *world, const struct qr_job *job, struct qr_job_release release);
qr_rc qr_world_progress(struct qr_world *world, const struct qr_job *job, int64_t done, int64_t total);
qr_rc qr_world_require_fence(struct qr_world *world, const struct qr_job *job);
qr_rc qr_world_cancel(struct qr_world *world, qr_uuid id, enum qr_job_state *ret_state);
int64_t qr_world_promote_due(struct qr_world *world, int64_t *ret_next_ms);
int64_t qr_world_prune(struct qr_world *world, int64_t before_ms);
void qr_world_pause(struct qr_world *world, enum qr_queue queue, bool paused);
size_t qr_world_list(struct qr_world *world, struct qr_job_filter filter, struct qr_job **ret_jobs);

/* ---- workers ---- */

qr_uuid qr_world_worker(struct qr_world *world);
qr_rc qr_world_beat(struct qr_world *world, qr_uuid worker_id);
int64_t qr_world_declare_dead(struct qr_world *world, bool all, qr_uuid spare);
int64_t qr_world_free_jobs(struct qr_world *world);
