/* The job core over every database: queue, runner, leases. */
#include "job/runner.h"

#include "store/schema.h"
#include "support/db_fixture.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

struct world {
    struct qr_db *db;
    struct qr_uuid_gen ids;
    atomic_int runs;
};

static struct world open_world(struct qr_test *t)
{
    struct world world = {.db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count)};
    qr_uuid_gen_init(&world.ids, qr_clock_system(), qr_rand_system());
    return world;
}

static void close_world(struct world *world)
{
    qr_db_close(world->db);
    qr_uuid_gen_done(&world->ids);
}

struct adding {
    struct world *world;
    struct qr_job_spec spec;
    qr_uuid id;
    bool existed;
};

static qr_rc add_job(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct adding *adding = arg;
    return qr_jobs_add(tx, qr_uuid_next(&adding->world->ids), &adding->spec, &adding->id, &adding->existed, err);
}

static qr_uuid add(struct world *world, struct qr_job_spec spec)
{
    qr_err err = {0};
    struct adding adding = {.world = world, .spec = spec};
    QR_CHECK_RC(QR_OK, qr_db_write(world->db, QR_DURABLE, add_job, &adding, &err));
    return adding.id;
}

struct counting {
    enum qr_job_state state;
    int64_t count;
};

static qr_rc count_state(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct counting *counting = arg;
    return qr_tx_get_i64(tx, "SELECT count(*) FROM job WHERE state = ?1", QR_VALS(qr_val_i64(counting->state)), NULL,
                         &counting->count, err);
}

static int64_t count_of(struct world *world, enum qr_job_state state)
{
    qr_err err = {0};
    struct counting counting = {.state = state};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, count_state, &counting, &err));
    return counting.count;
}

static void count_run(struct qr_job_run *run, struct qr_outcome *outcome QR_UNUSED)
{
    atomic_fetch_add((atomic_int *)run->arg, 1);
}

static struct qr_runner *start_runner(struct world *world, const struct qr_handler *handlers, size_t count)
{
    qr_err err = {0};
    struct qr_runner *runner;
    static struct qr_log log;
    log = (struct qr_log){.fd = STDERR_FILENO, .level_min = QR_LOG_WARN, .clock = qr_clock_system()};
    const struct qr_runner_options options = {
        .db = world->db,
        .log = &log,
        .ids = &world->ids,
        .clock = qr_clock_system(),
        .rand = qr_rand_system(),
        .handlers = handlers,
        .handler_count = count,
        .slots = {[QR_QUEUE_CONVERT] = 2, [QR_QUEUE_DELETE] = 1},
        .name = "test",
        .owns_all = true,
    };
    QR_CHECK_RC(QR_OK, qr_runner_start(&runner, &options, &err));
    return runner;
}

static void wait_for(struct world *world, enum qr_job_state state, int64_t count)
{
    while (count_of(world, state) != count) { /* the test's own time limit ends it */
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
}

QR_DB_TEST(every_job_runs_once)
{
    struct world world = open_world(t);
    const struct qr_handler handlers[] = {{"count", count_run, &world.runs}};
    for (int i = 0; i < 150; i++) {
        add(&world, (struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "count"});
    }
    struct qr_runner *runner = start_runner(&world, handlers, 1);
    for (int i = 0; i < 50; i++) {
        add(&world, (struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "count"});
    }
    wait_for(&world, QR_JOB_COMPLETED, 200);
    QR_CHECK_INT(200, atomic_load(&world.runs));
    QR_CHECK(qr_runner_stop(runner, 1000));
    close_world(&world);
}
