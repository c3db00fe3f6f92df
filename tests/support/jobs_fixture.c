/* Owns the transactions around the calls of store/jobs.h. */
#include "support/jobs_fixture.h"

#include "store/schema.h"

#include <time.h>

/* ---- the world ---- */

static qr_rc create_effects(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_script(
        tx,
        "CREATE TABLE IF NOT EXISTS effect (job_id BLOB NOT NULL, fence INTEGER NOT NULL, kind TEXT NOT NULL, "
        "state INTEGER NOT NULL, PRIMARY KEY (job_id, fence, kind)) STRICT;",
        err);
}

void qr_world_open_at(struct qr_world *world, struct qr_db_options options, const struct qr_clock *clock)
{
    qr_err err = {0};
    qr_test_clock_advance(1000); /* 0 is no time */
    *world = (struct qr_world){.clock = clock ? clock : qr_test_clock(QR_WORLD_BEGIN_MS)};
    world->on_postgres = qr_str_starts_with(qr_str_of(options.url), QR_STR("postgres"));
    options.migrations = qr_schema_migrations;
    options.migration_count = qr_schema_migration_count;
    options.clock = world->clock;
    options.readers_max = 16; /* PostgreSQL: as many transactions at a time as the tests have threads */
    QR_CHECK_RC(QR_OK, qr_db_open(&world->db, &options, &err));
    qr_uuid_gen_init(&world->ids, world->clock, qr_rand_system());
    qr_arena_init(&world->arena, 0);
    qr_world_write(world, create_effects, NULL);
}

void qr_world_open(struct qr_world *world, struct qr_test *t, const struct qr_clock *clock)
{
    qr_world_open_at(world, qr_test_db_options(t, NULL, 0), clock);
}

void qr_world_share(struct qr_world *mine, const struct qr_world *world)
{
    *mine = (struct qr_world){.db = world->db, .clock = world->clock, .on_postgres = world->on_postgres};
    qr_uuid_gen_init(&mine->ids, mine->clock, qr_rand_system());
    qr_arena_init(&mine->arena, 0);
}

void qr_world_unshare(struct qr_world *mine)
{
    qr_uuid_gen_done(&mine->ids);
    qr_arena_done(&mine->arena);
}

void qr_world_close(struct qr_world *world)
{
    qr_db_close(world->db);
    qr_world_unshare(world);
}

void qr_world_write(struct qr_world *world, qr_tx_fn *fn, void *arg)
{
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_write(world->db, QR_RELAXED, fn, arg, &err));
}

static qr_rc try_write(struct qr_world *world, qr_tx_fn *fn, void *arg)
{
    return qr_db_write(world->db, QR_RELAXED, fn, arg, NULL);
}

struct number {
    const char *sql;
    int64_t value;
};

static qr_rc read_number(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct number *number = arg;
    return qr_tx_get_i64(tx, number->sql, QR_NO_VALS, NULL, &number->value, err);
}

int64_t qr_world_i64(struct qr_world *world, const char *sql)
{
    qr_err err = {0};
    struct number number = {.sql = sql, .value = -1};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, read_number, &number, &err));
    return number.value;
}

int64_t qr_world_count(struct qr_world *world, enum qr_job_state state)
{
    char sql[64];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM job WHERE state = %d", (int)state);
    return qr_world_i64(world, sql);
}

void qr_world_pause_briefly(void)
{
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

void qr_world_wait_for(struct qr_world *world, const char *sql, int64_t value)
{
    qr_test_set_context("waiting for %s", sql);
    while (qr_world_i64(world, sql) != value) {
        qr_world_pause_briefly();
    }
    qr_test_set_context("%s", "");
}

static qr_rc notify(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_notify(tx, QR_JOBS_CHANNEL, err);
}

void qr_world_notify(struct qr_world *world)
{
    qr_world_write(world, notify, NULL);
}

/* ---- jobs ---- */

struct adding {
    struct qr_job_spec spec;
    qr_uuid new_id, id;
    bool existed;
};

static qr_rc add(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct adding *adding = arg;
    return qr_jobs_add(tx, adding->new_id, &adding->spec, &adding->id, &adding->existed, err);
}

qr_uuid qr_world_add_existed(struct qr_world *world, struct qr_job_spec spec, bool *ret_existed)
{
    struct adding adding = {.spec = spec, .new_id = qr_uuid_next(&world->ids)};
    adding.spec.queue = spec.queue ? spec.queue : QR_QUEUE_CONVERT;
    adding.spec.type = spec.type ? spec.type : "work";
    qr_world_write(world, add, &adding);
    *ret_existed = adding.existed;
    return adding.id;
}

qr_uuid qr_world_add(struct qr_world *world, struct qr_job_spec spec)
{
    bool existed;
    return qr_world_add_existed(world, spec, &existed);
}

qr_rc qr_world_add_many_in(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_world_many *many = arg;
    for (int i = 0; i < many->count; i++) {
        qr_uuid id;
        QR_TRY(qr_jobs_add(tx, qr_uuid_next(&many->world->ids), &many->spec, &id, NULL, err));
    }
    return QR_OK;
}

void qr_world_add_many(struct qr_world *world, struct qr_job_spec spec, int count)
{
    spec.queue = QR_QUEUE_CONVERT;
    spec.type = spec.type ? spec.type : "work";
    qr_world_write(world, qr_world_add_many_in, &(struct qr_world_many){world, spec, count});
}

static qr_rc have_tried(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE job SET attempts = 1 WHERE id IN (SELECT id FROM job ORDER BY id LIMIT ?1)",
                      QR_VALS(qr_val_i64(*(int *)arg)), NULL, err);
}

void qr_world_have_tried(struct qr_world *world, int count)
{
    qr_world_write(world, have_tried, &count);
}

struct looking {
    struct qr_world *world;
    qr_uuid id;
    bool found;
    struct qr_job job;
    struct qr_job_attempt *attempts;
    struct qr_job_filter filter;
    struct qr_job *jobs;
    size_t count;
};

static qr_rc find(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct looking *looking = arg;
    return qr_jobs_find(tx, looking->id, &looking->world->arena, &looking->found, &looking->job, err);
}

struct qr_job qr_world_find(struct qr_world *world, qr_uuid id)
{
    qr_err err = {0};
    struct looking looking = {.world = world, .id = id};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, find, &looking, &err));
    QR_CHECK(looking.found);
    return looking.job;
}

enum qr_job_state qr_world_state(struct qr_world *world, qr_uuid id)
{
    return qr_world_find(world, id).state;
}

static qr_rc load_attempts(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct looking *looking = arg;
    return qr_jobs_attempts(tx, looking->id, &looking->world->arena, &looking->attempts, &looking->count, err);
}

size_t qr_world_attempts(struct qr_world *world, qr_uuid id, struct qr_job_attempt **ret_attempts)
{
    qr_err err = {0};
    struct looking looking = {.world = world, .id = id};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, load_attempts, &looking, &err));
    *ret_attempts = looking.attempts;
    return looking.count;
}

static qr_rc list(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct looking *looking = arg;
    return qr_jobs_list(tx, &looking->filter, &looking->world->arena, &looking->jobs, &looking->count, &looking->id,
                        err);
}

size_t qr_world_list(struct qr_world *world, struct qr_job_filter filter, struct qr_job **ret_jobs)
{
    qr_err err = {0};
    struct looking looking = {.world = world, .filter = filter};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, list, &looking, &err));
    world->looked_to = looking.id;
    *ret_jobs = looking.jobs;
    return looking.count;
}

/* ---- claiming ---- */

struct claiming {
    struct qr_world_claim *claim;
    qr_uuid ring; /* moves on anew each time the function runs */
    struct qr_arena *arena;
};

static qr_rc claim_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct claiming *claiming = arg;
    struct qr_world_claim *claim = claiming->claim;
    claiming->ring = claim->ring;
    struct qr_job_claim call = {.worker_id = claim->worker_id,
                                .queue = claim->queue,
                                .suspects = claim->suspects,
                                .ring = &claiming->ring,
                                .arena = claiming->arena,
                                .jobs = claim->jobs,
                                .limit = claim->limit};
    struct qr_queue_offer offers[QR_QUEUE_END];
    QR_TRY(qr_worker_require_lease(tx, claim->worker_id, err));
    QR_TRY(qr_jobs_offered(tx, offers, err));
    if (offers[claim->queue].any) {
        QR_TRY(qr_jobs_claim(tx, &call, err));
    }
    claim->count = call.count;
    return QR_OK;
}

qr_rc qr_world_try_claim(struct qr_world *world, struct qr_world_claim *claim)
{
    struct claiming claiming = {.claim = claim, .arena = &world->arena};
    QR_TRY(try_write(world, claim_jobs, &claiming));
    claim->ring = claiming.ring;
    return QR_OK;
}

size_t qr_world_claim(struct qr_world *world, qr_uuid worker_id, struct qr_job *ret_jobs, size_t limit)
{
    qr_err err;
    struct qr_world_claim claim = {.worker_id = worker_id, .queue = QR_QUEUE_CONVERT, .jobs = ret_jobs, .limit = limit};
    QR_CHECK_RC(QR_OK, qr_world_try_claim(world, &claim));
    return claim.count;
}

struct qr_job qr_world_claim_one(struct qr_world *world, qr_uuid worker_id)
{
    struct qr_job job;
    QR_CHECK_INT(1, qr_world_claim(world, worker_id, &job, 1));
    return job;
}

struct qr_job qr_world_claim_suspect(struct qr_world *world, qr_uuid worker_id)
{
    qr_err err;
    struct qr_job job;
    struct qr_world_claim claim = {
        .worker_id = worker_id, .queue = QR_QUEUE_CONVERT, .suspects = true, .jobs = &job, .limit = 1};
    QR_CHECK_RC(QR_OK, qr_world_try_claim(world, &claim));
    QR_CHECK_INT(1, claim.count);
    return job;
}

/* ---- ending ---- */

struct ending {
    const struct qr_job *job;
    enum qr_job_state state;
    const struct qr_job_release *release;
    int64_t done, total, count, next_ms, before_ms;
    qr_uuid id;
    enum qr_queue queue;
    bool paused;
};

static qr_rc finish(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct ending *ending = arg;
    return qr_jobs_finish(tx, ending->job, &(struct qr_job_end){.state = ending->state, .code = "", .message = ""},
                          err);
}

qr_rc qr_world_finish(struct qr_world *world, const struct qr_job *job, enum qr_job_state state)
{
    return try_write(world, finish, &(struct ending){.job = job, .state = state});
}

static qr_rc release_job(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct ending *ending = arg;
    return qr_jobs_release(tx, ending->job->id, ending->job->fence, ending->release, err);
}

qr_rc qr_world_release(struct qr_world *world, const struct qr_job *job, struct qr_job_release release)
{
    release.outcome = release.outcome ? release.outcome : "retried";
    release.code = release.code ? release.code : "";
    release.message = release.message ? release.message : "";
    return try_write(world, release_job, &(struct ending){.job = job, .release = &release});
}

static qr_rc set_progress(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct ending *ending = arg;
    return qr_jobs_set_progress(tx, ending->job->id, ending->job->fence, ending->done, ending->total, err);
}

qr_rc qr_world_progress(struct qr_world *world, const struct qr_job *job, int64_t done, int64_t total)
{
    return try_write(world, set_progress, &(struct ending){.job = job, .done = done, .total = total});
}

static qr_rc require_fence(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct ending *ending = arg;
    return qr_jobs_require_fence(tx, ending->job->id, ending->job->fence, err);
}

qr_rc qr_world_require_fence(struct qr_world *world, const struct qr_job *job)
{
    return try_write(world, require_fence, &(struct ending){.job = job});
}

static qr_rc cancel(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct ending *ending = arg;
    return qr_jobs_cancel(tx, ending->id, "cancelled", "by the test", &ending->state, err);
}

qr_rc qr_world_cancel(struct qr_world *world, qr_uuid id, enum qr_job_state *ret_state)
{
    struct ending ending = {.id = id};
    QR_TRY(try_write(world, cancel, &ending));
    if (ret_state) {
        *ret_state = ending.state;
    }
    return QR_OK;
}

static qr_rc promote_due(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct ending *ending = arg;
    return qr_jobs_promote_due(tx, &ending->count, &ending->next_ms, err);
}

int64_t qr_world_promote_due(struct qr_world *world, int64_t *ret_next_ms)
{
    struct ending ending = {0};
    qr_world_write(world, promote_due, &ending);
    *ret_next_ms = ending.next_ms;
    return ending.count;
}

static qr_rc prune(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct ending *ending = arg;
    return qr_jobs_prune(tx, ending->before_ms, &ending->count, err);
}

int64_t qr_world_prune(struct qr_world *world, int64_t before_ms)
{
    struct ending ending = {.before_ms = before_ms};
    qr_world_write(world, prune, &ending);
    return ending.count;
}

static qr_rc set_paused(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct ending *ending = arg;
    return qr_queue_set_paused(tx, ending->queue, ending->paused, err);
}

void qr_world_pause(struct qr_world *world, enum qr_queue queue, bool paused)
{
    qr_world_write(world, set_paused, &(struct ending){.queue = queue, .paused = paused});
}

/* ---- workers ---- */

struct worker_call {
    qr_uuid id;
    bool all;
    int64_t count;
};

static qr_rc register_worker(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct worker_call *call = arg;
    return qr_worker_register(tx, call->id, "test", err);
}

qr_uuid qr_world_worker(struct qr_world *world)
{
    struct worker_call call = {.id = qr_uuid_next(&world->ids)};
    qr_world_write(world, register_worker, &call);
    return call.id;
}

static qr_rc beat(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct worker_call *call = arg;
    return qr_worker_beat(tx, call->id, err);
}

qr_rc qr_world_beat(struct qr_world *world, qr_uuid worker_id)
{
    return try_write(world, beat, &(struct worker_call){.id = worker_id});
}

static qr_rc declare_dead(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct worker_call *call = arg;
    return qr_workers_declare_dead(tx, call->all, call->id, &call->count, err);
}

int64_t qr_world_declare_dead(struct qr_world *world, bool all, qr_uuid spare)
{
    struct worker_call call = {.all = all, .id = spare};
    qr_world_write(world, declare_dead, &call);
    return call.count;
}

static qr_rc free_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct worker_call *call = arg;
    return qr_workers_free_jobs(tx, &call->count, err);
}

int64_t qr_world_free_jobs(struct qr_world *world)
{
    struct worker_call call = {0};
    qr_world_write(world, free_jobs, &call);
    return call.count;
}
