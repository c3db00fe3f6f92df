/* The queue over every database: adding, waiting, being claimed, looking. J1–J3 are those of store/jobs.h. */
#include "support/jobs_fixture.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

static qr_uuid base_of(unsigned char number)
{
    return (qr_uuid){.bytes = {[0] = 7, [15] = number}};
}

/* ---- adding ---- */

static qr_rc add_and_fail(struct qr_tx *tx, void *arg, qr_err *err)
{
    QR_TRY(qr_world_add_many_in(tx, arg, err));
    return qr_fail(err, QR_CODE_BAD_REQUEST, "the caller changed its mind");
}

QR_DB_TEST(a_job_is_added_by_the_transaction_of_its_caller_or_not_at_all) /* I5 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    qr_err err = {0};
    struct qr_world_many many = {&world, {.queue = QR_QUEUE_CONVERT, .type = "work"}, 3};
    QR_CHECK_CODE(QR_CODE_BAD_REQUEST, qr_db_write(world.db, QR_DURABLE, add_and_fail, &many, &err));
    QR_CHECK_INT(0, qr_world_i64(&world, "SELECT count(*) FROM job"));
    QR_CHECK_RC(QR_OK, qr_db_write(world.db, QR_DURABLE, qr_world_add_many_in, &many, &err));
    QR_CHECK_INT(3, qr_world_count(&world, QR_JOB_QUEUED));
    qr_world_close(&world);
}

QR_DB_TEST(of_an_idempotency_key_one_job_is_open) /* J2 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    const struct qr_job_spec spec = {.idempotency_key = QR_STR("once")};
    bool existed;
    const qr_uuid first = qr_world_add_existed(&world, spec, &existed);
    QR_CHECK(!existed);
    QR_CHECK(qr_uuid_equal(first, qr_world_add_existed(&world, spec, &existed)) && existed);
    const struct qr_job job = qr_world_claim_one(&world, worker);
    QR_CHECK(qr_uuid_equal(first, qr_world_add_existed(&world, spec, &existed)) && existed);
    QR_CHECK_INT(QR_OK, qr_world_finish(&world, &job, QR_JOB_FAILED));
    /* AGAIN-4: what has ended stays so; another try is another job */
    const qr_uuid second = qr_world_add_existed(&world, spec, &existed);
    QR_CHECK(!existed && !qr_uuid_equal(first, second));
    QR_CHECK_INT(QR_JOB_FAILED, qr_world_state(&world, first));
    qr_world_close(&world);
}

QR_DB_TEST(an_open_job_of_the_idempotency_key_is_found_while_it_is_blocked_or_scheduled) /* J2 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    bool existed;
    qr_world_add(&world, (struct qr_job_spec){.serial_key = QR_STR("s")});
    const struct qr_job_spec blocked = {.serial_key = QR_STR("s"), .idempotency_key = QR_STR("b")};
    const qr_uuid id = qr_world_add(&world, blocked);
    QR_CHECK_INT(QR_JOB_BLOCKED, qr_world_state(&world, id));
    QR_CHECK(qr_uuid_equal(id, qr_world_add_existed(&world, blocked, &existed)) && existed);
    const struct qr_job_spec later = {.run_at_ms = QR_WORLD_BEGIN_MS + 5, .idempotency_key = QR_STR("l")};
    const qr_uuid scheduled = qr_world_add(&world, later);
    QR_CHECK_INT(QR_JOB_SCHEDULED, qr_world_state(&world, scheduled));
    QR_CHECK(qr_uuid_equal(scheduled, qr_world_add_existed(&world, later, &existed)) && existed);
    qr_world_close(&world);
}

QR_DB_TEST(keys_may_be_long)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    static char key[10240], other[10240];
    memset(key, 'k', sizeof key);
    memset(other, 'k', sizeof other);
    other[sizeof other - 1] = 'x';
    const qr_str long_key = {key, sizeof key}, other_key = {other, sizeof other};
    bool existed;
    qr_world_add(&world, (struct qr_job_spec){.idempotency_key = long_key, .serial_key = long_key});
    qr_world_add_existed(&world, (struct qr_job_spec){.idempotency_key = long_key}, &existed);
    QR_CHECK(existed);
    const qr_uuid blocked = qr_world_add(&world, (struct qr_job_spec){.serial_key = long_key});
    const qr_uuid free = qr_world_add(&world, (struct qr_job_spec){.serial_key = other_key});
    QR_CHECK_INT(QR_JOB_BLOCKED, qr_world_state(&world, blocked));
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&world, free));
    qr_world_close(&world);
}

/* ---- serial keys ---- */

QR_DB_TEST(a_serial_key_promotes_by_priority_then_age_whoever_ends) /* SERIAL-1, J3 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    const struct qr_job_spec spec = {.serial_key = QR_STR("one at a time"), .priority = 5};
    const struct qr_job_spec urgent = {.serial_key = QR_STR("one at a time"), .priority = 1};
    const qr_uuid expected[] = {
        [0] = qr_world_add(&world, spec), [2] = qr_world_add(&world, spec),   [3] = qr_world_add(&world, spec),
        [4] = qr_world_add(&world, spec), [1] = qr_world_add(&world, urgent),
    };
    for (size_t i = 0; i < QR_COUNT(expected); i++) {
        QR_CHECK_INT(QR_COUNT(expected) - 1 - i, qr_world_count(&world, QR_JOB_BLOCKED));
        const struct qr_job job = qr_world_claim_one(&world, worker);
        QR_CHECK(qr_uuid_equal(expected[i], job.id));
        struct qr_job none;
        QR_CHECK_INT(0, qr_world_claim(&world, worker, &none, 1));
        if (i == 1) {
            QR_CHECK_INT(QR_OK, qr_world_cancel(&world, job.id, NULL));
        } else {
            QR_CHECK_INT(QR_OK, qr_world_finish(&world, &job, i == 2 ? QR_JOB_FAILED : QR_JOB_COMPLETED));
        }
    }
    QR_CHECK_INT(0, qr_world_i64(&world, "SELECT count(*) FROM job WHERE state IN " QR_JOB_OPEN_SQL));
    qr_world_close(&world);
}

QR_DB_TEST(a_released_job_keeps_its_serial_key) /* SERIAL-1 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    const struct qr_job_spec spec = {.serial_key = QR_STR("s")};
    qr_world_add(&world, spec);
    const qr_uuid second = qr_world_add(&world, spec);
    const struct qr_job job = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &job, (struct qr_job_release){.delay_ms = 1000}));
    QR_CHECK_INT(QR_JOB_BLOCKED, qr_world_state(&world, second));
    QR_CHECK_INT(QR_OK, qr_world_cancel(&world, job.id, NULL)); /* while it is scheduled */
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&world, second));
    qr_world_close(&world);
}

QR_DB_TEST(a_cancelled_blocked_job_promotes_nobody) /* SERIAL-1, FENCE-3 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    const struct qr_job_spec spec = {.serial_key = QR_STR("s")};
    qr_world_add(&world, spec);
    const qr_uuid second = qr_world_add(&world, spec), third = qr_world_add(&world, spec);
    const struct qr_job job = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_cancel(&world, second, NULL));
    QR_CHECK_INT(QR_JOB_BLOCKED, qr_world_state(&world, third));
    QR_CHECK_INT(QR_OK, qr_world_finish(&world, &job, QR_JOB_COMPLETED));
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&world, third));
    qr_world_close(&world);
}

QR_DB_TEST(a_promoted_job_whose_time_has_not_come_is_scheduled) /* SERIAL-1 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    qr_world_add(&world, (struct qr_job_spec){.serial_key = QR_STR("s")});
    const qr_uuid later =
        qr_world_add(&world, (struct qr_job_spec){.serial_key = QR_STR("s"), .run_at_ms = QR_WORLD_BEGIN_MS + 10});
    QR_CHECK_INT(QR_JOB_BLOCKED, qr_world_state(&world, later));
    const struct qr_job job = qr_world_claim_one(&world, worker);
    QR_CHECK_INT(QR_OK, qr_world_finish(&world, &job, QR_JOB_COMPLETED));
    QR_CHECK_INT(QR_JOB_SCHEDULED, qr_world_state(&world, later));
    qr_world_close(&world);
}

enum { RACERS = 8, RACE_ROUNDS = 25, RACE_KEYS = 3 };

struct race {
    struct qr_world *world;
    atomic_int holders[RACE_KEYS]; /* by the test's own count, not by the database's */
};

struct racer {
    struct race *race;
    unsigned number;
};

static void end_raced_job(struct qr_world *world, struct race *race, const struct qr_job *job, unsigned how)
{
    const int key = (int)job->priority;
    QR_CHECK_INT(0, atomic_fetch_add(&race->holders[key], 1)); /* I9 */
    sched_yield();
    atomic_fetch_sub(&race->holders[key], 1);
    if (how % 4 == 0) {
        QR_CHECK_INT(QR_OK, qr_world_cancel(world, job->id, NULL));
    } else {
        QR_CHECK_INT(QR_OK, qr_world_finish(world, job, how % 4 == 1 ? QR_JOB_FAILED : QR_JOB_COMPLETED));
    }
}

/* Of one that runs the holder would have to know. */
static qr_rc cancel_if_blocked(struct qr_tx *tx, void *arg, qr_err *err)
{
    const qr_uuid *id = arg;
    bool found;
    int64_t ignored;
    QR_TRY(qr_tx_get_i64(tx, "SELECT fence FROM job WHERE id = ?1 AND state = 1 /*pg FOR UPDATE */",
                         QR_VALS(qr_val_blob(id->bytes, QR_UUID_BYTES)), &found, &ignored, err));
    enum qr_job_state state;
    return found ? qr_jobs_cancel(tx, *id, "cancelled", "by the test", &state, err) : QR_OK;
}

static void *race_on(void *arg)
{
    const struct racer *racer = arg;
    struct qr_world world;
    qr_world_share(&world, racer->race->world);
    const qr_uuid worker = qr_world_worker(&world);
    const qr_str keys[RACE_KEYS] = {QR_STR("a"), QR_STR("b"), QR_STR("c")};
    for (unsigned i = 0; i < RACE_ROUNDS; i++) {
        const unsigned key = (i + racer->number) % RACE_KEYS;
        /* the priority tells the test which key it is */
        const qr_uuid id = qr_world_add(&world, (struct qr_job_spec){.serial_key = keys[key], .priority = (int)key});
        if (i % 7 == 3) {
            qr_world_write(&world, cancel_if_blocked, (void *)&id);
        }
        struct qr_job job;
        if (qr_world_claim(&world, worker, &job, 1) == 1) {
            end_raced_job(&world, racer->race, &job, i + racer->number);
        }
    }
    qr_world_unshare(&world);
    return NULL;
}

QR_DB_TEST(under_a_race_a_serial_key_has_one_active_job_and_none_stays_blocked) /* SERIAL-1, J2, J3, I9 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    struct race race = {.world = &world};
    struct racer racers[RACERS];
    pthread_t threads[RACERS];
    for (unsigned i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){&race, i};
        QR_CHECK_INT(0, pthread_create(&threads[i], NULL, race_on, &racers[i]));
    }
    for (unsigned i = 0; i < RACERS; i++) {
        QR_CHECK_INT(0, pthread_join(threads[i], NULL));
    }
    QR_CHECK_INT(RACERS * RACE_ROUNDS, qr_world_i64(&world, "SELECT count(*) FROM job"));
    const qr_uuid worker = qr_world_worker(&world);
    struct qr_job jobs[RACE_KEYS];
    for (size_t count; (count = qr_world_claim(&world, worker, jobs, RACE_KEYS)) > 0;) {
        for (size_t i = 0; i < count; i++) {
            QR_CHECK_INT(QR_OK, qr_world_finish(&world, &jobs[i], QR_JOB_COMPLETED));
        }
    }
    QR_CHECK_INT(0, qr_world_i64(&world, "SELECT count(*) FROM job WHERE state IN " QR_JOB_OPEN_SQL));
    qr_world_close(&world);
}

/* ---- waiting ---- */

QR_DB_TEST(jobs_are_claimed_by_priority_then_age)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    const int priorities[] = {3, 1, 2, 1, -4};
    const size_t order[] = {4, 1, 3, 2, 0};
    qr_uuid ids[QR_COUNT(priorities)];
    for (size_t i = 0; i < QR_COUNT(priorities); i++) {
        ids[i] = qr_world_add(&world, (struct qr_job_spec){.priority = priorities[i]});
    }
    struct qr_job jobs[QR_COUNT(priorities)];
    QR_CHECK_INT(2, qr_world_claim(&world, worker, jobs, 2));
    QR_CHECK_INT(3, qr_world_claim(&world, worker, jobs + 2, 3));
    for (size_t i = 0; i < QR_COUNT(order); i++) {
        QR_CHECK(qr_uuid_equal(ids[order[i]], jobs[i].id));
    }
    qr_world_close(&world);
}

QR_DB_TEST(a_delayed_job_is_scheduled_until_it_is_due) /* JOB-3 */
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    const qr_uuid id = qr_world_add(&world, (struct qr_job_spec){.run_at_ms = QR_WORLD_BEGIN_MS + 1000});
    qr_world_add(&world, (struct qr_job_spec){.run_at_ms = QR_WORLD_BEGIN_MS + 3000});
    struct qr_job job;
    int64_t next_ms;
    QR_CHECK_INT(0, qr_world_promote_due(&world, &next_ms));
    QR_CHECK_INT(QR_WORLD_BEGIN_MS + 1000, next_ms);
    qr_test_clock_advance(999);
    QR_CHECK_INT(0, qr_world_promote_due(&world, &next_ms));
    QR_CHECK_INT(0, qr_world_claim(&world, worker, &job, 1));
    qr_test_clock_advance(1);
    QR_CHECK_INT(1, qr_world_promote_due(&world, &next_ms));
    QR_CHECK_INT(QR_WORLD_BEGIN_MS + 3000, next_ms);
    QR_CHECK_INT(1, qr_world_claim(&world, worker, &job, 1));
    QR_CHECK(qr_uuid_equal(id, job.id));
    qr_world_close(&world);
}

QR_DB_TEST(due_jobs_are_queued_in_steps)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    qr_world_add_many(&world, (struct qr_job_spec){.run_at_ms = QR_WORLD_BEGIN_MS + 1}, QR_JOB_BATCH_MAX + 10);
    qr_test_clock_advance(1);
    int64_t next_ms;
    QR_CHECK_INT(QR_JOB_BATCH_MAX, qr_world_promote_due(&world, &next_ms));
    QR_CHECK_INT(QR_WORLD_BEGIN_MS + 1, next_ms);
    QR_CHECK_INT(10, qr_world_promote_due(&world, &next_ms));
    QR_CHECK_INT(0, next_ms);
    qr_world_close(&world);
}

QR_DB_TEST(a_paused_queue_gives_nothing_until_it_is_resumed)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    qr_world_add(&world, (struct qr_job_spec){0});
    qr_world_add(&world, (struct qr_job_spec){.queue = QR_QUEUE_EMBED});
    qr_world_pause(&world, QR_QUEUE_CONVERT, true);
    qr_world_pause(&world, QR_QUEUE_CONVERT, true);
    struct qr_job job;
    QR_CHECK_INT(0, qr_world_claim(&world, worker, &job, 1));
    struct qr_world_claim embed = {.worker_id = worker, .queue = QR_QUEUE_EMBED, .jobs = &job, .limit = 1};
    QR_CHECK_INT(QR_OK, qr_world_try_claim(&world, &embed));
    QR_CHECK_INT(1, embed.count);
    qr_world_pause(&world, QR_QUEUE_CONVERT, false);
    QR_CHECK_INT(1, qr_world_claim(&world, worker, &job, 1));
    qr_world_close(&world);
}

QR_DB_TEST(a_base_with_many_jobs_does_not_hold_up_the_others)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    qr_world_add_many(&world, (struct qr_job_spec){.base_id = base_of(1)}, 1000);
    for (unsigned char base = 2; base <= 4; base++) {
        qr_world_add_many(&world, (struct qr_job_spec){.base_id = base_of(base)}, 3);
    }
    struct qr_job jobs[8];
    struct qr_world_claim claim = {.worker_id = worker, .queue = QR_QUEUE_CONVERT, .jobs = jobs, .limit = 8};
    int of_base[5] = {0};
    for (int round = 0; round < 2; round++) {
        QR_CHECK_INT(QR_OK, qr_world_try_claim(&world, &claim));
        QR_CHECK_INT(8, claim.count);
        for (size_t i = 0; i < claim.count; i++) {
            of_base[jobs[i].base_id.bytes[15]]++;
        }
    }
    for (int base = 2; base <= 4; base++) {
        QR_CHECK_INT(3, of_base[base]);
    }
    QR_CHECK_INT(7, of_base[1]); /* and nothing is left idle for the sake of fairness */
    qr_world_close(&world);
}

struct holding {
    struct qr_world *world;
    qr_uuid base_id;
    sem_t holds, may_end;
};

static qr_rc hold_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct holding *holding = arg;
    int64_t ignored;
    QR_TRY(qr_tx_get_i64(tx, "SELECT fence FROM job WHERE base_id = ?1 /*pg FOR UPDATE */",
                         QR_VALS(qr_val_blob(holding->base_id.bytes, QR_UUID_BYTES)), NULL, &ignored, err));
    sem_post(&holding->holds);
    sem_wait(&holding->may_end);
    return QR_OK;
}

static void *hold(void *arg)
{
    const struct holding *holding = arg;
    qr_world_write(holding->world, hold_base, arg);
    return NULL;
}

QR_DB_TEST(a_base_at_which_another_worker_is_does_not_hold_up_the_others)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    struct holding holding = {.world = &world, .base_id = base_of(1)};
    sem_init(&holding.holds, 0, 0);
    sem_init(&holding.may_end, 0, world.on_postgres ? 0 : 1); /* SQLite has one writer at a time anyway */
    qr_world_add_many(&world, (struct qr_job_spec){.base_id = holding.base_id}, 1);
    qr_world_add_many(&world, (struct qr_job_spec){.base_id = base_of(2)}, 3);
    pthread_t thread;
    QR_CHECK_INT(0, pthread_create(&thread, NULL, hold, &holding));
    sem_wait(&holding.holds);
    struct qr_job jobs[8];
    QR_CHECK_INT(world.on_postgres ? 3 : 4, qr_world_claim(&world, worker, jobs, 8));
    sem_post(&holding.may_end);
    QR_CHECK_INT(0, pthread_join(thread, NULL));
    qr_world_close(&world);
}

QR_DB_TEST(bases_take_turns_also_one_job_at_a_time)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    for (unsigned char base = 1; base <= 3; base++) {
        qr_world_add_many(&world, (struct qr_job_spec){.base_id = base_of(base)}, 2);
    }
    struct qr_job job;
    struct qr_world_claim claim = {.worker_id = worker, .queue = QR_QUEUE_CONVERT, .jobs = &job, .limit = 1};
    for (int i = 0; i < 6; i++) {
        QR_CHECK_INT(QR_OK, qr_world_try_claim(&world, &claim));
        QR_CHECK_INT(1, claim.count);
        QR_CHECK_INT(i % 3 + 1, job.base_id.bytes[15]);
    }
    qr_world_close(&world);
}

/* ---- looking, pruning ---- */

QR_DB_TEST(old_jobs_are_pruned_in_steps_with_their_history)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world);
    enum { JOBS = QR_JOB_PRUNE_MAX + 5 };
    qr_world_add_many(&world, (struct qr_job_spec){0}, JOBS);
    static struct qr_job jobs[JOBS];
    QR_CHECK_INT(JOBS, qr_world_claim(&world, worker, jobs, JOBS));
    QR_CHECK_INT(QR_OK, qr_world_release(&world, &jobs[0], (struct qr_job_release){0}));
    jobs[0] = qr_world_claim_one(&world, worker);
    for (size_t i = 0; i < JOBS; i++) {
        qr_test_clock_advance(i == JOBS - 1 ? 1000 : 0);
        QR_CHECK_INT(QR_OK, qr_world_finish(&world, &jobs[i], QR_JOB_COMPLETED));
    }
    const qr_uuid open = qr_world_add(&world, (struct qr_job_spec){0});
    QR_CHECK_INT(0, qr_world_prune(&world, QR_WORLD_BEGIN_MS));
    QR_CHECK_INT(QR_JOB_PRUNE_MAX, qr_world_prune(&world, QR_WORLD_BEGIN_MS + 1));
    QR_CHECK_INT(4, qr_world_prune(&world, QR_WORLD_BEGIN_MS + 1));
    QR_CHECK_INT(0, qr_world_i64(&world, "SELECT count(*) FROM job_attempt"));
    QR_CHECK_INT(1, qr_world_prune(&world, QR_WORLD_BEGIN_MS + 5000));
    QR_CHECK_INT(0, qr_world_prune(&world, INT64_MAX));
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&world, open));
    qr_world_close(&world);
}

QR_DB_TEST(jobs_are_listed_newest_first_by_filter_and_page)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid worker = qr_world_worker(&world), base = base_of(1), item = base_of(9);
    const struct qr_job_spec specs[] = {
        {0},
        {.type = "other"},
        {.queue = QR_QUEUE_DELETE},
        {.base_id = base},
        {.item_id = item, .base_id = base},
        {.run_at_ms = QR_WORLD_BEGIN_MS + 1},
    };
    qr_uuid ids[QR_COUNT(specs)];
    for (size_t i = 0; i < QR_COUNT(specs); i++) {
        ids[i] = qr_world_add(&world, specs[i]);
    }
    struct qr_job *jobs;
    QR_CHECK_INT(6, qr_world_list(&world, (struct qr_job_filter){.limit = 10}, &jobs));
    for (size_t i = 0; i < 6; i++) {
        QR_CHECK(qr_uuid_equal(ids[5 - i], jobs[i].id));
    }
    QR_CHECK_INT(2, qr_world_list(&world, (struct qr_job_filter){.limit = 2, .after = ids[3]}, &jobs));
    QR_CHECK(qr_uuid_equal(ids[2], jobs[0].id) && qr_uuid_equal(ids[1], jobs[1].id));
    QR_CHECK_INT(1, qr_world_list(&world, (struct qr_job_filter){.limit = 9, .type = "other"}, &jobs));
    QR_CHECK_INT(1, qr_world_list(&world, (struct qr_job_filter){.limit = 9, .queue = QR_QUEUE_DELETE}, &jobs));
    QR_CHECK_INT(2, qr_world_list(&world, (struct qr_job_filter){.limit = 9, .base_id = base}, &jobs));
    QR_CHECK_INT(1, qr_world_list(&world, (struct qr_job_filter){.limit = 9, .base_id = base, .item_id = item}, &jobs));
    QR_CHECK_INT(1, qr_world_list(&world, (struct qr_job_filter){.limit = 9, .state = QR_JOB_SCHEDULED}, &jobs));
    QR_CHECK(qr_uuid_equal(ids[5], jobs[0].id));
    qr_world_claim_one(&world, worker);
    QR_CHECK_INT(1, qr_world_list(&world, (struct qr_job_filter){.limit = 9, .state = QR_JOB_RUNNING}, &jobs));
    qr_world_close(&world);
}

QR_DB_TEST(a_job_is_as_it_was_added)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid base = base_of(1), item = base_of(2);
    const qr_uuid id = qr_world_add(&world, (struct qr_job_spec){.queue = QR_QUEUE_EMBED,
                                                                 .type = "index-chunks",
                                                                 .base_id = base,
                                                                 .item_id = item,
                                                                 .generation = 7,
                                                                 .priority = -2,
                                                                 .args = QR_STR("{\"a\": \"\\u00e4\"}"),
                                                                 .serial_key = QR_STR("s"),
                                                                 .time_limit_ms = 5000});
    const struct qr_job job = qr_world_find(&world, id);
    QR_CHECK_TEXT("index-chunks", job.type);
    QR_CHECK_INT(QR_QUEUE_EMBED, job.queue);
    QR_CHECK(qr_uuid_equal(base, job.base_id) && qr_uuid_equal(item, job.item_id) && job.serial_key.is_set);
    QR_CHECK_INT(7, job.generation);
    QR_CHECK_INT(-2, job.priority);
    QR_CHECK_INT(5000, job.time_limit_ms);
    QR_CHECK_INT(QR_WORLD_BEGIN_MS, job.run_at_ms);
    QR_CHECK_INT(QR_WORLD_BEGIN_MS, job.created_ms);
    QR_CHECK_TEXT("{\"a\": \"\\u00e4\"}", job.args);
    qr_world_close(&world);
}
