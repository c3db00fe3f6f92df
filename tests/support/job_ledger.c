/* Owns the table of effects, the process that runs the jobs, and the comparison after it. */
#include "support/job_ledger.h"

#include "base/failpoint.h"
#include "base/thread.h"
#include "job/beat.h"
#include "job/runner.h"
#include "store/schema.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH = 25, /* jobs a transaction, and ids an acknowledgement */
    CHILD_FAILED = 1,
    LOOK_MS = 25, /* between two looks at how far it is */
    READ_DEADLINE_MS = 60000,
    MIGRATIONS_MAX = 32,
    TICKS_MIN = 12, /* slots that a process does before it ends by itself: a failpoint at the 8th is reached */
};

static struct qr_db_options db_options(const char *url)
{
    /* effects and ticks have no unique key: doing it twice must show */
    static const struct qr_migration effect = {
        "effect", "CREATE TABLE effect (job_id BLOB NOT NULL, fence INTEGER NOT NULL) STRICT;"
                  "CREATE INDEX effect_job ON effect (job_id);"
                  "CREATE TABLE tick (slot INTEGER NOT NULL) STRICT;"
                  "CREATE INDEX tick_slot ON tick (slot);"};
    static struct qr_migration migrations[MIGRATIONS_MAX];
    memcpy(migrations, qr_schema_migrations, qr_schema_migration_count * sizeof migrations[0]);
    migrations[qr_schema_migration_count] = effect;
    return (struct qr_db_options){
        .url = url,
        .migrations = migrations,
        .migration_count = qr_schema_migration_count + 1,
        .read_deadline_ms = READ_DEADLINE_MS,
    };
}

/* ---- the child ---- */

struct ack {
    struct job_ledger_state state;
    int64_t id_count; /* 0 = only the state */
    qr_uuid ids[BATCH];
};
_Static_assert(sizeof(struct ack) <= CHILD_ACK_BYTES_MAX, "an acknowledgement is one write");

/* The child's alone: it lives in one process with one plan. */
struct life {
    const struct job_ledger_plan *plan;
    const struct qr_clock *clock;
    struct qr_db *db;
    struct qr_uuid_gen ids;
    atomic_int ticks;
};

static void require(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        fprintf(stderr, "%s: %s\n", qr_code_info(err->code)->name, err->msg);
        _exit(CHILD_FAILED);
    }
}

static qr_rc add_batch(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct ack *ack = arg;
    for (int64_t i = 0; i < ack->id_count; i++) {
        qr_uuid id;
        QR_TRY(qr_jobs_add(tx, ack->ids[i], &(struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "effect"}, &id,
                           NULL, err));
    }
    return QR_OK;
}

static qr_rc load_state(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct job_ledger_state *state = arg;
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM job", QR_NO_VALS, NULL, &state->added, err));
    return qr_tx_get_i64(tx, "SELECT count(*) FROM effect", QR_NO_VALS, NULL, &state->done, err);
}

static void wait_us(int64_t us)
{
    const struct timespec delay = {us / 1000000, us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &delay, NULL);
}

/* Waits for a server that is away. */
static void look(struct life *life, struct job_ledger_state *ret_state)
{
    qr_err err = {0};
    qr_rc rc;
    while ((rc = qr_db_read(life->db, load_state, ret_state, &err)) == QR_UNAVAILABLE || rc == QR_TIMEOUT) {
        wait_us((int64_t)LOOK_MS * 1000);
    }
    require(rc, &err);
}

static void *add_missing(void *arg)
{
    struct life *life = arg;
    struct job_ledger_state state;
    qr_err err = {0};
    look(life, &state);
    while (state.added < life->plan->job_count) {
        struct ack ack = {.id_count = QR_MIN(life->plan->job_count - state.added, (int64_t)BATCH)};
        for (int64_t i = 0; i < ack.id_count; i++) {
            ack.ids[i] = qr_uuid_next(&life->ids);
        }
        const qr_rc rc = qr_db_write(life->db, QR_DURABLE, add_batch, &ack, &err);
        if (rc == QR_OK) {
            state.added += ack.id_count;
            child_ack(&ack, sizeof ack);
        } else if (rc == QR_UNAVAILABLE) { /* nothing was promised; perhaps it is there all the same */
            look(life, &state);
        } else {
            require(rc, &err);
        }
    }
    return NULL;
}

static void run_handler(struct qr_job_run *run, struct qr_outcome *outcome)
{
    const struct life *life = run->arg;
    outcome->kind = QR_OUTCOME_COMPLETED;
    outcome->level = life->plan->level;
    if (life->plan->handler_us) {
        wait_us(life->plan->handler_us);
    }
}

/* The effect, in the transaction that ends the job. */
static qr_rc write_effect(struct qr_tx *tx, const struct qr_job *job, qr_err *err)
{
    return qr_tx_exec(tx, "INSERT INTO effect (job_id, fence) VALUES (?1, ?2)",
                      QR_VALS(qr_val_blob(job->id.bytes, QR_UUID_BYTES), qr_val_i64(job->fence)), NULL, err);
}

static qr_rc write_effects(struct qr_tx *tx, const struct qr_ended *ended, size_t count, void *arg QR_UNUSED,
                           qr_err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (ended[i].state == QR_JOB_COMPLETED) {
            QR_TRY(write_effect(tx, ended[i].job, err));
        }
    }
    return QR_OK;
}

static const struct qr_plan effect_plan = {.ended = write_effects};

/* One row for each slot, in the transaction that takes the slot (B1). */
static qr_rc tick(struct qr_tx *tx, void *arg, bool *ret_more QR_UNUSED, qr_err *err)
{
    struct life *life = arg;
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    atomic_fetch_add(&life->ticks, 1);
    return qr_tx_exec(tx, "INSERT INTO tick (slot) VALUES (?1)",
                      QR_VALS(qr_val_i64(now_ms - now_ms % life->plan->beat_ms)), NULL, err);
}

/* Rescues first where a process starts beside others. */
static struct qr_beat *start_beat(struct life *life)
{
    const struct qr_beat_task task = {"tick", life->plan->beat_ms, tick, life};
    const struct qr_beat_options options = {
        .db = life->db, .clock = life->clock, .tasks = &task, .task_count = life->plan->beat_ms ? 1 : 0};
    struct qr_beat *beat;
    qr_err err = {0};
    require(qr_beat_create(&beat, &options, &err), &err);
    if (life->plan->has_others) {
        require(qr_beat_run_recovery(beat, INT64_MAX, &err), &err);
    }
    if (life->plan->beat_ms) {
        require(qr_beat_start(beat, &err), &err);
    }
    return beat;
}

static struct qr_runner *start_runner(struct life *life, const struct qr_handler *handler)
{
    const struct qr_runner_options options = {
        .db = life->db,
        .ids = &life->ids,
        .clock = life->clock,
        .rand = qr_rand_system(),
        .handlers = handler,
        .handler_count = 1,
        .plan = effect_plan,
        .slots = {[QR_QUEUE_CONVERT] = life->plan->slots},
        .name = life->plan->name,
        .owns_all = !life->plan->has_others,
    };
    struct qr_runner *runner;
    qr_err err = {0};
    require(qr_runner_start(&runner, &options, &err), &err);
    return runner;
}

static void live(void *arg)
{
    struct life life = {.plan = arg};
    struct qr_db_options options = db_options(life.plan->url);
    const struct qr_handler handler = {"effect", run_handler, &life};
    qr_err err = {0};
    life.clock = life.plan->clock ? life.plan->clock : qr_clock_system();
    options.clock = life.plan->clock;
    require(qr_failpoints_set(life.plan->failpoint, &err), &err);
    require(qr_db_open(&life.db, &options, &err), &err);
    qr_uuid_gen_init(&life.ids, life.clock, qr_rand_system());
    struct qr_beat *beat = start_beat(&life);
    struct qr_runner *runner = start_runner(&life, &handler);
    pthread_t adder;
    require(qr_thread_start(&adder, "adder", add_missing, &life, &err), &err);
    struct ack ack = {0};
    while (ack.state.done < life.plan->job_count || (life.plan->beat_ms && atomic_load(&life.ticks) < TICKS_MIN)) {
        struct qr_runner_stats stats;
        wait_us((int64_t)LOOK_MS * 1000);
        look(&life, &ack.state);
        qr_runner_stats(runner, &stats);
        ack.state.running = stats.running;
        child_ack(&ack, sizeof ack);
    }
    pthread_join(adder, NULL);
    qr_runner_stop(runner, 1000);
    qr_beat_free(beat);
    qr_db_close(life.db);
    qr_uuid_gen_done(&life.ids);
}

/* ---- the parent ---- */

void job_ledger_start(struct child *child, struct job_ledger_plan *plan)
{
    child_start(child, live, plan);
}

bool job_ledger_listen(struct child *child, struct job_ledger *ledger, struct job_ledger_state *ret_state)
{
    struct ack ack;
    if (!child_next_ack(child, &ack, sizeof ack)) {
        return false;
    }
    for (int64_t i = 0; i < ack.id_count && ledger->count < JOB_LEDGER_JOBS_MAX; i++) {
        ledger->ids[ledger->count++] = ack.ids[i];
    }
    if (ack.id_count == 0) {
        *ret_state = ack.state;
    }
    return true;
}

struct judging {
    const struct job_ledger *ledger;
    struct job_ledger_verdict verdict;
};

static qr_rc count_missing(struct qr_tx *tx, const struct job_ledger *ledger, int64_t *ret_missing, qr_err *err)
{
    *ret_missing = 0;
    for (size_t i = 0; i < ledger->count; i++) {
        bool found;
        int64_t ignored;
        QR_TRY(qr_tx_get_i64(tx, "SELECT fence FROM job WHERE id = ?1",
                             QR_VALS(qr_val_blob(ledger->ids[i].bytes, QR_UUID_BYTES)), &found, &ignored, err));
        *ret_missing += found ? 0 : 1;
    }
    return QR_OK;
}

static qr_rc judge(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct judging *judging = arg;
    struct job_ledger_verdict *verdict = &judging->verdict;
    int64_t missing, without_effect, slots_not_once, ticks_without_slot;
    QR_TRY(count_missing(tx, judging->ledger, &missing, err));
    const struct {
        const char *sql;
        int64_t *ret_count;
    } counts[] = {
        {"SELECT count(*) FROM job", &verdict->jobs},
        {"SELECT count(*) FROM job WHERE state = 5", &verdict->completed},
        {"SELECT count(*) FROM job WHERE NOT EXISTS (SELECT 1 FROM effect WHERE job_id = job.id)", &without_effect},
        {"SELECT count(*) FROM (SELECT job_id FROM effect GROUP BY job_id HAVING count(*) > 1) AS twice",
         &verdict->twice},
        {"SELECT count(*) FROM job_attempt WHERE outcome = 'crashed'", &verdict->interrupted},
        {"SELECT count(*) FROM beat_slot WHERE name = 'tick'", &verdict->slots},
        {"SELECT count(*) FROM beat_slot WHERE name = 'tick' AND (SELECT count(*) FROM tick WHERE tick.slot = "
         "beat_slot.slot) <> 1",
         &slots_not_once},
        {"SELECT count(*) FROM tick WHERE slot NOT IN (SELECT slot FROM beat_slot WHERE name = 'tick')",
         &ticks_without_slot},
    };
    for (size_t i = 0; i < QR_COUNT(counts); i++) {
        QR_TRY(qr_tx_get_i64(tx, counts[i].sql, QR_NO_VALS, NULL, counts[i].ret_count, err));
    }
    verdict->lost = missing + without_effect;
    verdict->slots_wrong = slots_not_once + ticks_without_slot;
    return QR_OK;
}

qr_rc job_ledger_judge(const char *url, const struct job_ledger *ledger, struct job_ledger_verdict *ret_verdict,
                       qr_err *err)
{
    const struct qr_db_options options = db_options(url);
    struct judging judging = {.ledger = ledger};
    struct qr_db *db;
    QR_TRY(qr_db_open(&db, &options, err));
    qr_rc rc = qr_db_verify(db, err);
    rc = rc == QR_OK ? qr_db_read(db, judge, &judging, err) : rc;
    qr_db_close(db);
    QR_TRY(rc);
    *ret_verdict = judging.verdict;
    return QR_OK;
}
