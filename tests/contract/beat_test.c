/* The beat over every database: each slot once, however many beats, and whatever fails or jumps. */
#include "job/beat.h"
#include "job/runner.h"

#include "base/sync.h"
#include "store/schema.h"
#include "support/db_fixture.h"

enum { HOUR_MS = 3600000, MINUTE_MS = 60000 };
static const int64_t START_MS = INT64_C(1700000040000); /* a full minute */

/* ---- a database with a clock of ours ---- */

struct world {
    struct qr_db *db;
    const struct qr_clock *clock;
    struct qr_uuid_gen ids;
};

static const struct qr_migration MIGRATIONS_AND_EFFECTS = {
    "effects", "CREATE TABLE effect (id INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;"};

static struct world open_world(struct qr_test *t)
{
    static struct qr_migration migrations[64];
    QR_CHECK(qr_schema_migration_count < QR_COUNT(migrations));
    memcpy(migrations, qr_schema_migrations, qr_schema_migration_count * sizeof migrations[0]);
    migrations[qr_schema_migration_count] = MIGRATIONS_AND_EFFECTS;
    struct qr_db_options options = qr_test_db_options(t, migrations, qr_schema_migration_count + 1);
    struct world world = {.clock = qr_test_clock(START_MS)};
    options.clock = world.clock;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&world.db, &options, &err));
    qr_uuid_gen_init(&world.ids, world.clock, qr_rand_system());
    return world;
}

static void close_world(struct world *world)
{
    qr_db_close(world->db);
    qr_uuid_gen_done(&world->ids);
}

struct reading {
    const char *sql;
    int64_t value;
};

static qr_rc read_i64(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct reading *reading = arg;
    return qr_tx_get_i64(tx, reading->sql, QR_NO_VALS, NULL, &reading->value, err);
}

static int64_t value_of(struct world *world, const char *sql)
{
    qr_err err;
    struct reading reading = {sql, -1};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, read_i64, &reading, &err));
    return reading.value;
}

static qr_rc run_sql(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_exec(tx, arg, QR_NO_VALS, NULL, err);
}

static void change(struct world *world, char *sql)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(world->db, QR_RELAXED, run_sql, sql, &err));
}

/* ---- tasks ---- */

/* Each call leaves a row behind, so what is counted is what was committed. */
struct effect {
    bool fails;
    int more; /* that many further steps */
    int calls, looks;
    int64_t takes_ms; /* by the clock */
};

static qr_rc leave_effect(struct qr_tx *tx, void *arg, bool *ret_more, qr_err *err)
{
    struct effect *effect = arg;
    int64_t now_ms;
    effect->calls++;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    qr_test_clock_advance(effect->takes_ms);
    QR_TRY(qr_tx_exec(tx, "INSERT INTO effect (id, at) SELECT coalesce(max(id), 0) + 1, ?1 FROM effect",
                      QR_VALS(qr_val_i64(now_ms)), NULL, err));
    if (effect->more > 0) {
        effect->more--;
        *ret_more = true;
    }
    return effect->fails ? qr_fail(err, QR_CODE_UNAVAILABLE, "as the test wants it") : QR_OK;
}

static int64_t effects_of(struct world *world)
{
    return value_of(world, "SELECT count(*) FROM effect");
}

static struct qr_beat *create_beat(struct world *world, const struct qr_beat_task *task)
{
    qr_err err;
    struct qr_beat *beat;
    const struct qr_beat_options options = {
        .db = world->db, .clock = world->clock, .tasks = task, .task_count = task ? 1 : 0};
    QR_CHECK_RC(QR_OK, qr_beat_create(&beat, &options, &err));
    return beat;
}

/* ---- slots ---- */

QR_DB_TEST(a_slot_is_done_once_by_two_beats)
{
    struct world world = open_world(t);
    struct effect effect = {0};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect};
    struct qr_beat *one = create_beat(&world, &task), *two = create_beat(&world, &task);
    for (int slot = 1; slot <= 5; slot++) {
        qr_beat_round(one);
        qr_beat_round(two);
        qr_beat_round(one);
        QR_CHECK_INT(slot, effects_of(&world));
        qr_test_clock_advance(MINUTE_MS);
    }
    qr_beat_free(one);
    qr_beat_free(two);
    close_world(&world);
}

QR_DB_TEST(nothing_is_due_before_the_next_slot)
{
    struct world world = open_world(t);
    struct effect effect = {0};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect};
    qr_test_clock_advance(20000); /* into the slot */
    struct qr_beat *beat = create_beat(&world, &task);
    const int64_t next_ms = qr_beat_round(beat);
    QR_CHECK_INT(40000, next_ms - qr_clock_mono_ms(world.clock));
    qr_test_clock_advance(39999);
    QR_CHECK_INT(next_ms, qr_beat_round(beat));
    QR_CHECK_INT(1, effect.calls);
    qr_test_clock_advance(1);
    qr_beat_round(beat);
    QR_CHECK_INT(2, effects_of(&world));
    qr_beat_free(beat);
    close_world(&world);
}

struct racer {
    struct world *world;
    struct qr_thread thread;
    struct qr_beat *beat;
};

static void race(void *arg)
{
    struct racer *racer = arg;
    qr_beat_round(racer->beat);
}

/* The count of calls is not looked at here: a write function may run more than once. */
static qr_rc leave_effect_racing(struct qr_tx *tx, void *arg QR_UNUSED, bool *ret_more, qr_err *err)
{
    struct effect effect = {0};
    return leave_effect(tx, &effect, ret_more, err);
}

QR_DB_TEST(a_slot_is_done_once_by_many_threads)
{
    enum { THREADS = 8, SLOTS = 10 };
    struct world world = open_world(t);
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect_racing, NULL};
    struct racer racers[THREADS];
    qr_err err;
    for (int i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.world = &world, .beat = create_beat(&world, &task)};
    }
    for (int slot = 1; slot <= SLOTS; slot++) {
        for (int i = 0; i < THREADS; i++) {
            QR_CHECK_RC(QR_OK, qr_thread_spawn(&racers[i].thread, "racer", race, &racers[i], &err));
        }
        for (int i = 0; i < THREADS; i++) {
            qr_thread_join(&racers[i].thread);
        }
        QR_CHECK_INT(slot, effects_of(&world));
        qr_test_clock_advance(MINUTE_MS);
    }
    for (int i = 0; i < THREADS; i++) {
        qr_beat_free(racers[i].beat);
    }
    close_world(&world);
}

QR_DB_TEST(a_slot_whose_work_fails_is_free_for_the_next_try)
{
    struct world world = open_world(t);
    struct effect effect = {.fails = true};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect};
    struct qr_beat *beat = create_beat(&world, &task), *other = create_beat(&world, &task);
    const int64_t retry_ms = qr_beat_round(beat) - qr_clock_mono_ms(world.clock);
    QR_CHECK(retry_ms > 0 && retry_ms < MINUTE_MS);
    QR_CHECK_INT(0, effects_of(&world));
    QR_CHECK_INT(0, value_of(&world, "SELECT count(*) FROM beat_slot WHERE name = 'minute'"));
    effect.fails = false;
    qr_beat_round(other);
    QR_CHECK_INT(1, effects_of(&world));
    qr_test_clock_advance(retry_ms);
    qr_beat_round(beat);
    QR_CHECK_INT(1, effects_of(&world));
    qr_beat_free(beat);
    qr_beat_free(other);
    close_world(&world);
}

QR_DB_TEST(a_task_that_fails_is_tried_less_and_less_often)
{
    struct world world = open_world(t);
    struct effect effect = {.fails = true};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect};
    struct qr_beat *beat = create_beat(&world, &task);
    for (int64_t wait_ms = 1000; wait_ms <= 32000; wait_ms *= 2) {
        const int64_t next_ms = qr_beat_round(beat);
        QR_CHECK(next_ms - qr_clock_mono_ms(world.clock) <= wait_ms);
        const int calls = effect.calls;
        qr_test_clock_advance(wait_ms - 1);
        qr_beat_round(beat);
        QR_CHECK_INT(calls, effect.calls);
        qr_test_clock_advance(1);
    }
    qr_beat_free(beat);
    close_world(&world);
}

QR_DB_TEST(work_goes_on_in_further_transactions_until_nothing_is_left)
{
    struct world world = open_world(t);
    struct effect effect = {.more = 4};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect};
    struct qr_beat *beat = create_beat(&world, &task);
    qr_beat_round(beat);
    QR_CHECK_INT(5, effects_of(&world));
    QR_CHECK_INT(1, value_of(&world, "SELECT count(*) FROM beat_slot WHERE name = 'minute'"));
    qr_beat_free(beat);
    close_world(&world);
}

QR_DB_TEST(after_an_outage_only_the_slot_of_now_is_done)
{
    struct world world = open_world(t);
    struct effect effect = {0};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect};
    struct qr_beat *beat = create_beat(&world, &task);
    qr_beat_round(beat);
    qr_test_clock_advance(24 * HOUR_MS);
    qr_beat_round(beat);
    qr_beat_round(beat);
    QR_CHECK_INT(2, effects_of(&world));
    qr_beat_free(beat);
    close_world(&world);
}

QR_DB_TEST(a_clock_that_goes_back_repeats_no_slot)
{
    struct world world = open_world(t);
    struct effect effect = {0};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect};
    struct qr_beat *beat = create_beat(&world, &task);
    for (int i = 0; i < 5; i++) {
        qr_beat_round(beat);
        qr_test_clock_advance(MINUTE_MS);
    }
    qr_test_clock_jump(-5 * MINUTE_MS);
    for (int i = 0; i < 5; i++) {
        const int64_t next_ms = qr_beat_round(beat);
        QR_CHECK(next_ms - qr_clock_mono_ms(world.clock) <= MINUTE_MS);
        QR_CHECK_INT(5, effects_of(&world));
        qr_test_clock_advance(MINUTE_MS);
    }
    qr_beat_round(beat);
    QR_CHECK_INT(6, effects_of(&world));
    qr_beat_free(beat);
    close_world(&world);
}

QR_DB_TEST(a_clock_that_goes_ahead_and_back_stops_nothing)
{
    struct world world = open_world(t);
    struct effect effect = {0};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect};
    struct qr_beat *beat = create_beat(&world, &task);
    qr_beat_round(beat);
    qr_test_clock_jump(24 * HOUR_MS);
    qr_test_clock_advance(MINUTE_MS);
    qr_beat_round(beat);
    QR_CHECK_INT(2, effects_of(&world));
    qr_test_clock_jump(-24 * HOUR_MS);
    for (int slot = 3; slot < 6; slot++) {
        qr_test_clock_advance(MINUTE_MS);
        qr_beat_round(beat);
        QR_CHECK_INT(slot, effects_of(&world));
    }
    qr_beat_free(beat);
    close_world(&world);
}

/* ---- recovery ---- */

QR_DB_TEST(recovery_runs_whatever_the_slot_and_to_its_end)
{
    struct world world = open_world(t);
    struct effect effect = {.more = 2};
    struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect, .is_recovery = true};
    struct qr_beat *beat = create_beat(&world, &task);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(beat, INT64_MAX, &err));
    QR_CHECK_INT(3, effects_of(&world));
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(beat, INT64_MAX, &err));
    QR_CHECK_INT(4, effects_of(&world));
    QR_CHECK_INT(0, value_of(&world, "SELECT count(*) FROM beat_slot"));
    effect.fails = true;
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_beat_run_recovery(beat, INT64_MAX, &err));
    qr_beat_free(beat);
    close_world(&world);
}

/* B5 */
QR_DB_TEST(recovery_ends_with_its_budget_and_the_beat_goes_on_whoever_has_the_slot)
{
    struct world world = open_world(t);
    struct effect others = {0}, effect = {.more = 9, .takes_ms = 100};
    const struct qr_beat_task others_task = {"minute", MINUTE_MS, leave_effect, &others, .is_recovery = true};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect, .is_recovery = true};
    struct qr_beat *other = create_beat(&world, &others_task), *beat = create_beat(&world, &task);
    qr_err err;
    qr_beat_round(other);
    QR_CHECK_INT(1, others.calls);
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(beat, 300, &err));
    QR_CHECK_INT(3, effect.calls);
    qr_beat_round(beat);
    QR_CHECK_INT(10, effect.calls); /* neither from the beginning nor once more */
    QR_CHECK_INT(11, effects_of(&world));
    qr_beat_round(beat);
    QR_CHECK_INT(10, effect.calls);
    qr_beat_free(beat);
    qr_beat_free(other);
    close_world(&world);
}

/* B5: with no time at all, and a step that fails */
QR_DB_TEST(what_is_left_of_recovery_is_not_forgotten_when_a_step_fails)
{
    struct world world = open_world(t);
    struct effect others = {0}, effect = {.more = 3, .fails = true};
    const struct qr_beat_task others_task = {"minute", MINUTE_MS, leave_effect, &others, .is_recovery = true};
    const struct qr_beat_task task = {"minute", MINUTE_MS, leave_effect, &effect, .is_recovery = true};
    struct qr_beat *other = create_beat(&world, &others_task), *beat = create_beat(&world, &task);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(beat, 0, &err));
    QR_CHECK_INT(0, effect.calls);
    qr_beat_round(other);
    qr_beat_round(beat); /* its slot is taken; its first step fails */
    effect.fails = false;
    effect.calls = 0;
    qr_test_clock_advance(MINUTE_MS);
    qr_beat_round(other);
    qr_beat_round(beat);
    QR_CHECK_INT(3, effect.calls);
    qr_beat_free(beat);
    qr_beat_free(other);
    close_world(&world);
}

static qr_rc look_around(void *arg, qr_err *err)
{
    struct effect *effect = arg;
    QR_CHECK_INT(effect->calls, effect->looks);
    effect->looks++;
    return effect->fails ? qr_fail(err, QR_CODE_UNAVAILABLE, "as the test wants it") : QR_OK;
}

QR_DB_TEST(a_task_looks_before_each_transaction_and_no_start_waits_for_it)
{
    struct world world = open_world(t);
    struct effect effect = {.more = 2};
    const struct qr_beat_task task = {"minute", MINUTE_MS,           leave_effect,
                                      &effect,  .is_recovery = true, .look = look_around};
    struct qr_beat *beat = create_beat(&world, &task);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(beat, INT64_MAX, &err));
    QR_CHECK_INT(0, effect.looks);
    qr_beat_round(beat);
    QR_CHECK_INT(3, effect.calls);
    QR_CHECK_INT(3, effect.looks);
    effect.fails = true;
    qr_test_clock_advance(MINUTE_MS);
    qr_beat_round(beat);
    QR_CHECK_INT(3, effect.calls); /* what it was to look at it did not see */
    qr_beat_free(beat);
    close_world(&world);
}

/* ---- rescue ---- */

enum { HELD_JOBS = 3 };

struct hold {
    struct world *world;
    qr_uuid worker;
};

static qr_rc hold_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct hold *hold = arg;
    QR_TRY(qr_worker_register(tx, hold->worker, "a test", err));
    for (int i = 0; i < HELD_JOBS; i++) {
        qr_uuid id, ring = {0};
        struct qr_job job;
        QR_CLEANUP(qr_arena_done) struct qr_arena arena;
        qr_arena_init(&arena, 0);
        QR_TRY(qr_jobs_add(tx, qr_uuid_next(&hold->world->ids),
                           &(struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "test"}, &id, NULL, err));
        struct qr_job_claim claim = {.worker_id = hold->worker,
                                     .queue = QR_QUEUE_CONVERT,
                                     .ring = &ring,
                                     .arena = &arena,
                                     .jobs = &job,
                                     .limit = 1};
        QR_TRY(qr_jobs_claim(tx, &claim, err));
        QR_CHECK_INT(1, claim.count);
    }
    return QR_OK;
}

/* A worker that runs HELD_JOBS jobs. */
static qr_uuid add_worker(struct world *world)
{
    qr_err err;
    struct hold hold = {world, qr_uuid_next(&world->ids)};
    QR_CHECK_RC(QR_OK, qr_db_write(world->db, QR_RELAXED, hold_jobs, &hold, &err));
    return hold.worker;
}

QR_DB_TEST(the_jobs_of_a_worker_whose_lease_ran_out_are_freed_and_no_others)
{
    struct world world = open_world(t);
    add_worker(&world);
    qr_test_clock_advance(QR_WORKER_LEASE_MS);
    add_worker(&world);
    struct qr_beat *beat = create_beat(&world, NULL);
    qr_beat_round(beat);
    QR_CHECK_INT(2 * HELD_JOBS, value_of(&world, "SELECT count(*) FROM job WHERE state = 4"));
    qr_test_clock_advance(MINUTE_MS); /* now the first is past its lease */
    qr_beat_round(beat);
    QR_CHECK_INT(HELD_JOBS, value_of(&world, "SELECT count(*) FROM job WHERE state = 4"));
    QR_CHECK_INT(HELD_JOBS, value_of(&world, "SELECT count(*) FROM job WHERE state = 3 AND crashes = 1 AND fence = 2"));
    QR_CHECK_INT(1, value_of(&world, "SELECT count(*) FROM worker"));
    qr_beat_free(beat);
    close_world(&world);
}

QR_DB_TEST(a_clock_that_goes_back_keeps_no_dead_worker_alive) /* RECOV-2 */
{
    struct world world = open_world(t);
    struct qr_beat *beat = create_beat(&world, NULL);
    for (int i = 0; i < 10; i++) { /* the slots to come are done already, when the clock goes back */
        qr_beat_round(beat);
        qr_test_clock_advance(MINUTE_MS);
    }
    add_worker(&world);
    qr_test_clock_jump(-10 * MINUTE_MS);
    for (int i = 0; i < 2; i++) {
        qr_test_clock_advance(MINUTE_MS);
        qr_beat_round(beat);
        QR_CHECK_INT(HELD_JOBS, value_of(&world, "SELECT count(*) FROM job WHERE state = 4"));
    }
    for (int i = 0; i < 2; i++) { /* a lease after the first look, and the look behind it */
        qr_test_clock_advance(MINUTE_MS);
        qr_beat_round(beat);
    }
    QR_CHECK_INT(0, value_of(&world, "SELECT count(*) FROM job WHERE state = 4"));
    qr_beat_free(beat);
    close_world(&world);
}

QR_DB_TEST(the_runner_of_the_process_itself_is_not_taken_for_dead) /* R3 */
{
    struct world world = open_world(t);
    qr_err err;
    struct qr_runner *runner;
    const struct qr_runner_options options = {
        .db = world.db, .ids = &world.ids, .clock = world.clock, .rand = qr_rand_system(), .name = "mine"};
    QR_CHECK_RC(QR_OK, qr_runner_start(&runner, &options, &err));
    add_worker(&world);
    qr_test_clock_advance(QR_WORKER_LEASE_MS + 1);
    struct qr_beat *beat = create_beat(&world, NULL);
    qr_beat_spare(beat, runner);
    qr_beat_round(beat);
    QR_CHECK(value_of(&world, "SELECT count(*) FROM worker WHERE name = 'mine' AND dead = 0") >= 1);
    qr_beat_free(beat);
    QR_CHECK(qr_runner_stop(runner, 0));
    close_world(&world);
}

QR_DB_TEST(times_that_cannot_be_are_refused)
{
    struct world world = open_world(t);
    static const int64_t wrong[] = {0, -1, INT64_MIN, INT64_MAX, (int64_t)QR_BEAT_EVERY_MS_MAX + 1};
    qr_err err;
    struct qr_beat *beat;
    for (size_t i = 0; i < QR_COUNT(wrong); i++) {
        const struct qr_beat_task task = {"wrong", wrong[i], leave_effect, NULL};
        const struct qr_beat_options options = {.db = world.db, .clock = world.clock, .tasks = &task, .task_count = 1};
        QR_CHECK_INT(QR_INVALID, qr_beat_create(&beat, &options, &err));
    }
    struct qr_beat_options options = {.db = world.db, .clock = world.clock, .keep_jobs_ms = INT64_MIN};
    QR_CHECK_INT(QR_INVALID, qr_beat_create(&beat, &options, &err));
    options.keep_jobs_ms = INT64_MAX;
    QR_CHECK_RC(QR_OK, qr_beat_create(&beat, &options, &err));
    qr_beat_round(beat);
    qr_beat_free(beat);
    close_world(&world);
}

QR_DB_TEST(a_job_that_crashed_too_often_is_freed_like_the_others_and_left_to_its_runner) /* RECOV-2, R6, I1 */
{
    struct world world = open_world(t);
    add_worker(&world);
    change(&world, (char[]){"UPDATE job SET crashes = 2"});
    add_worker(&world);
    qr_test_clock_advance(QR_WORKER_LEASE_MS + 1);
    qr_err err;
    struct qr_beat *beat = create_beat(&world, NULL);
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(beat, INT64_MAX, &err));
    QR_CHECK_INT(2 * HELD_JOBS, value_of(&world, "SELECT count(*) FROM job WHERE state = 3 AND suspect = 1"));
    QR_CHECK_INT(HELD_JOBS, value_of(&world, "SELECT count(*) FROM job WHERE crashes = 3"));
    qr_beat_free(beat);
    close_world(&world);
}

/* ---- pruning ---- */

static qr_rc add_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct world *world = arg;
    for (int i = 0; i < 2 * QR_JOB_BATCH_MAX + 100; i++) {
        qr_uuid id;
        QR_TRY(qr_jobs_add(tx, qr_uuid_next(&world->ids),
                           &(struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "test"}, &id, NULL, err));
    }
    return QR_OK;
}

QR_DB_TEST(jobs_that_ended_long_ago_are_pruned_all_of_them_and_no_others)
{
    struct world world = open_world(t);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(world.db, QR_RELAXED, add_jobs, &world, &err));
    change(&world, (char[]){"UPDATE job SET state = 5, finished_at = created_at"});
    qr_test_clock_advance(QR_BEAT_KEEP_JOBS_MS);
    add_worker(&world); /* runs, and is not older than anything */
    struct qr_beat *beat = create_beat(&world, NULL);
    qr_beat_round(beat);
    QR_CHECK_INT(2 * QR_JOB_BATCH_MAX + 100 + HELD_JOBS, value_of(&world, "SELECT count(*) FROM job"));
    qr_test_clock_advance(HOUR_MS);
    qr_beat_round(beat);
    QR_CHECK_INT(HELD_JOBS, value_of(&world, "SELECT count(*) FROM job"));
    qr_beat_free(beat);
    close_world(&world);
}

QR_DB_TEST(old_slots_are_pruned_and_those_of_now_are_not)
{
    struct world world = open_world(t);
    struct effect effect = {0};
    const struct qr_beat_task task = {"day", QR_BEAT_EVERY_MS_MAX, leave_effect, &effect};
    struct qr_beat *beat = create_beat(&world, &task);
    for (int hour = 0; hour < 24 * 6; hour++) {
        qr_beat_round(beat);
        qr_beat_round(beat);
        qr_test_clock_advance(HOUR_MS);
    }
    QR_CHECK(effects_of(&world) == 6 || effects_of(&world) == 7);
    QR_CHECK(value_of(&world, "SELECT count(*) FROM beat_slot") <= 3 * (2 * 24 + 2) + 3);
    QR_CHECK(value_of(&world, "SELECT count(*) FROM beat_slot WHERE name = 'day'") <= 3);
    qr_beat_free(beat);
    close_world(&world);
}

/* ---- the thread ---- */

struct counter {
    struct qr_mutex lock;
    struct qr_signal called;
    int calls;
};

static qr_rc count_call(struct qr_tx *tx QR_UNUSED, void *arg, bool *ret_more QR_UNUSED, qr_err *err QR_UNUSED)
{
    struct counter *counter = arg;
    QR_HOLD(&counter->lock);
    counter->calls++;
    qr_signal_all(&counter->called);
    return QR_OK;
}

QR_DB_TEST(the_thread_does_slot_after_slot_and_stops_when_told)
{
    struct world world = open_world(t);
    struct counter counter = {0};
    qr_mutex_init(&counter.lock);
    qr_signal_init(&counter.called);
    const struct qr_beat_task task = {"often", 10, count_call, &counter};
    struct qr_beat *beat = create_beat(&world, &task);
    for (int start = 0; start < 2; start++) { /* it can be started again */
        qr_err err;
        QR_CHECK_RC(QR_OK, qr_beat_start(beat, &err));
        for (int i = 0; i < 3; i++) {
            QR_HOLD(&counter.lock);
            const int before = counter.calls;
            while (counter.calls == before) { /* a slot may pass while the thread still writes */
                qr_test_clock_advance(10);
                qr_signal_wait_until(&counter.called, &counter.lock, qr_clock_system(),
                                     qr_clock_mono_ms(qr_clock_system()) + 10);
            }
        }
        qr_beat_stop(beat);
        const int calls = counter.calls;
        qr_test_clock_advance(HOUR_MS);
        QR_CHECK_INT(calls, counter.calls);
    }
    qr_beat_free(beat);
    qr_signal_done(&counter.called);
    qr_mutex_done(&counter.lock);
    close_world(&world);
}
