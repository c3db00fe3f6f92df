/* The simulation of the job core: the product's own queue, runner and rescue, over coroutines, a virtual clock and faults.
 *
 * How one seed is repeated: sim/seeds.h.
 *
 * Each process has people who add, cancel, pause and prune, a rescuer, and a runner with its threads. */
#include "sim/oracle.h"
#include "sim/seeds.h"

#include "base/mem.h"

#include <string.h>
#include <time.h>

enum {
    RUNS = 150,      /* 10 s with the sanitizers on a machine of its own */
    STEPS_MIN = 200, /* with faults; the rest of a run drains */
    STEPS_MAX = 700,
    DRAIN_STEPS_MAX = 200000,
    DRAIN_MS_MAX = 4 * 3600 * 1000,
    RESCUE_MS = 30000,
};

/* ---- the plan: what effects are ---- */

static qr_rc write_effect(struct qr_tx *tx, const struct qr_job *job, bool is_final, qr_err *err)
{
    return qr_tx_exec(tx, "INSERT INTO effect (job, fence, is_final) VALUES (?1, ?2, ?3)",
                      QR_VALS(qr_val_i64(job->generation), qr_val_i64(job->fence), qr_val_i64(is_final)), NULL, err);
}

static qr_uuid subject_id(int subject)
{
    qr_uuid id = {0};
    char text[QR_UUID_BYTES + 1];
    if (subject) {
        snprintf(text, sizeof text, "subject %08d", subject);
        memcpy(id.bytes, text, sizeof id.bytes);
    }
    return id;
}

static qr_rc set_active(struct qr_tx *tx, int subject, bool active, int64_t *ret_changes, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE subject SET active = ?2 WHERE id = ?1 AND active <> ?2",
                      QR_VALS(qr_val_i64(subject), qr_val_i64(active)), ret_changes, err);
}

static qr_rc add_stage(struct qr_tx *tx, struct process *process, int subject, int number, int stage, qr_err *err)
{
    const struct qr_job_spec spec = {
        .queue = (enum qr_queue)(1 + subject % SIM_QUEUE_COUNT),
        .type = stage ? "second" : "first",
        .item_id = subject_id(subject),
        .generation = number,
        .serial_key = subject % 2 ? QR_STR("subjects") : QR_STR(""),
    };
    qr_uuid id;
    return qr_jobs_add(tx, qr_uuid_next(&process->ids), &spec, &id, NULL, err);
}

static qr_rc plan_part(struct qr_tx *tx, const struct qr_job *job, void *part QR_UNUSED, void *arg QR_UNUSED,
                       qr_err *err)
{
    return write_effect(tx, job, false, err);
}

/* Whatever end it is, the job stays open then, so that its subject has one (I1). Each time counts as an attempt, and those have a
 * limit that the oracle knows. */
static qr_rc refuse(const struct qr_job *job, enum qr_job_state state, qr_err *err)
{
    static const qr_code codes[] = {QR_CODE_UNAVAILABLE, QR_CODE_INTERNAL, QR_CODE_STALE};
    const bool is_crash = job->crashes >= QR_JOB_CRASHES_MAX;
    const bool refuses = world.faults && job->attempts + 1 < QR_JOB_ATTEMPTS_MAX && sim_chance(is_crash ? 500 : 30);
    return refuses && !qr_job_state_is_open(state)
               ? qr_fail(err, codes[sim_between(0, (int64_t)QR_COUNT(codes) - 1)], "the plan could not be carried out")
               : QR_OK;
}

/* The first stage of a subject is followed by the second; after any other end it rests (I1). */
static qr_rc follow(struct qr_tx *tx, const struct qr_job *job, enum qr_job_state state, qr_err *err)
{
    QR_TRY(write_effect(tx, job, !qr_job_state_is_open(state), err));
    const int subject = oracle_subject_of((int)job->generation);
    if (qr_job_state_is_open(state) || !subject) {
        return QR_OK;
    }
    QR_TRY(refuse(job, state, err));
    if (state == QR_JOB_COMPLETED && strcmp(job->type, "first") == 0) {
        const int number = oracle_new_job(subject);
        if (number) {
            return add_stage(tx, world_process(), subject, number, 1, err);
        }
    }
    return set_active(tx, subject, false, NULL, err);
}

static qr_rc plan_ended(struct qr_tx *tx, const struct qr_ended *ended, size_t count, void *arg QR_UNUSED, qr_err *err)
{
    for (size_t i = 0; i < count; i++) {
        QR_TRY(follow(tx, ended[i].job, ended[i].state, err));
    }
    return QR_OK;
}

/* ---- handlers ---- */

static bool report_part(struct qr_job_run *run)
{
    qr_err err = {0};
    const qr_rc rc = qr_job_report_part(run, sim_chance(500) ? QR_DURABLE : QR_RELAXED, NULL, &err);
    if (rc == QR_OK) {
        totals.parts++;
        oracle_acknowledge_part((int)run->job->generation);
    }
    totals.lost += rc == QR_LOST;
    return rc == QR_OK;
}

static void work_politely(struct qr_job_run *run)
{
    const int64_t batches = sim_between(1, 20);
    for (int64_t i = 0; i < batches && !qr_job_is_cancelled(run); i++) {
        qr_job_progress(run, i, batches);
        sim_sleep(sim_between(0, 8000));
    }
}

static void fail_with(struct qr_outcome *outcome, qr_code code)
{
    outcome->kind = QR_OUTCOME_FAILED;
    qr_fail(&outcome->error, code, "as the simulation wants it");
    outcome->delay_ms = sim_chance(200) ? sim_between(0, 60000) : 0;
}

static void misbehave(struct qr_job_run *run, struct qr_outcome *outcome)
{
    if (run->job->crashes > 0 && sim_chance(600)) {
        sim_sleep(sim_between(10000, 200000)); /* its first owner may come back meanwhile */
    }
    switch (sim_between(0, 11)) {
    case 0:
        sim_sleep(sim_between(1000, 60000));
        return;
    case 1:
    case 2:
        work_politely(run);
        return;
    case 3:
        sim_sleep(sim_between(30000, 600000)); /* hears nothing */
        return;
    case 4:
    case 5:
        fail_with(outcome, QR_CODE_UNAVAILABLE);
        return;
    case 6:
        fail_with(outcome, QR_CODE_INVALID_VALUE);
        return;
    case 7:
        outcome->kind = QR_OUTCOME_SKIPPED;
        qr_fail(&outcome->error, QR_CODE_STALE, "no longer wanted");
        return;
    case 8:
        outcome->kind = QR_OUTCOME_SNOOZED;
        outcome->delay_ms = sim_between(0, 30000);
        return;
    default:
        return;
    }
}

/* Some fail whenever they are tried, also after the faults. */
static bool is_hopeless(const struct qr_job *job)
{
    return job->priority == 2 && job->generation % 5 == 0;
}

static void handle(struct qr_job_run *run, struct qr_outcome *outcome)
{
    QR_CHECK(run->job->crashes < QR_JOB_CRASHES_MAX); /* R6 */
    outcome->kind = QR_OUTCOME_COMPLETED;
    outcome->level = sim_chance(500) ? QR_DURABLE : QR_RELAXED;
    for (int64_t parts = sim_chance(300) ? sim_between(1, 3) : 0; parts > 0; parts--) {
        if (!report_part(run)) {
            fail_with(outcome, QR_CODE_UNAVAILABLE);
            return;
        }
        sim_sleep(sim_between(0, world.faults ? 40000 : 100));
    }
    sim_yield();
    if (is_hopeless(run->job)) {
        fail_with(outcome, QR_CODE_UNAVAILABLE);
    } else if (world.faults) {
        misbehave(run, outcome);
    }
    sim_yield();
    if (sim_chance(150) && !report_part(run) && outcome->kind == QR_OUTCOME_COMPLETED) {
        fail_with(outcome, QR_CODE_UNAVAILABLE);
    }
}

/* ---- people ---- */

struct adding {
    struct qr_job_spec spec;
    qr_uuid id;
    bool existed;
};

static qr_rc add_job(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct adding *adding = arg;
    return qr_jobs_add(tx, qr_uuid_next(&world_process()->ids), &adding->spec, &adding->id, &adding->existed, err);
}

static void add(struct process *process)
{
    static const char *const keys[] = {"", "", "a", "b", "c"};
    const int number = oracle_new_job(0);
    if (!number) {
        return;
    }
    struct adding adding = {
        .spec = {
            .queue = (enum qr_queue)sim_between(1, SIM_QUEUE_COUNT),
            .type = "any",
            .base_id = {.bytes = {(unsigned char)sim_between(0, 2)}},
            .generation = number,
            .priority = (int)sim_between(0, 2),
            .run_at_ms = sim_chance(200) ? qr_clock_wall_ms(sim_clock()) + sim_between(-1000, 60000) : 0,
            .idempotency_key = qr_str_of(keys[sim_between(0, QR_COUNT(keys) - 1)]),
            .serial_key = qr_str_of(keys[sim_between(0, QR_COUNT(keys) - 1)]),
            .time_limit_ms = sim_chance(250) ? sim_between(1000, 30000) : 0,
        }};
    qr_err err = {0};
    if (qr_db_write(process->db, sim_chance(800) ? QR_DURABLE : QR_RELAXED, add_job, &adding, &err) == QR_OK) {
        oracle_acknowledge(number, adding.id, adding.existed);
    }
}

static qr_rc start_subject(struct qr_tx *tx, void *arg, qr_err *err)
{
    const int subject = *(int *)arg;
    int64_t changes;
    QR_TRY(set_active(tx, subject, true, &changes, err));
    const int number = changes ? oracle_new_job(subject) : 0;
    if (!number) {
        return changes ? set_active(tx, subject, false, NULL, err) : QR_OK;
    }
    return add_stage(tx, world_process(), subject, number, 0, err);
}

struct cancelling {
    int number;
    qr_uuid id;
    enum qr_job_state state;
    bool found;
};

static qr_rc cancel_job(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct cancelling *cancelling = arg;
    qr_err failure = {0};
    const qr_rc rc = qr_jobs_cancel(tx, cancelling->id, "cancelled", "by somebody", &cancelling->state, &failure);
    cancelling->found = rc == QR_OK;
    if (rc == QR_NOT_FOUND) {
        return QR_OK; /* pruned meanwhile */
    }
    if (rc != QR_OK) {
        *err = failure;
        return rc;
    }
    const int subject = oracle_subject_of(cancelling->number);
    return subject && qr_job_state_is_open(cancelling->state) ? set_active(tx, subject, false, NULL, err) : QR_OK;
}

static void cancel(struct process *process)
{
    struct cancelling cancelling = {0};
    cancelling.number = oracle_pick(&cancelling.id);
    if (cancelling.number && qr_db_write(process->db, QR_DURABLE, cancel_job, &cancelling, NULL) == QR_OK) {
        totals.cancels += cancelling.found && qr_job_state_is_open(cancelling.state);
    }
}

struct pausing {
    enum qr_queue queue;
    bool paused;
};

/* A queue that is not paused is not resumed: that would wake the runner, who must not need it. */
static qr_rc pause_queue(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct pausing *pausing = arg;
    int64_t since_ms;
    QR_TRY(qr_queue_paused_since(tx, pausing->queue, &since_ms, err));
    if (!pausing->paused && since_ms == 0) {
        return QR_OK;
    }
    return qr_queue_set_paused(tx, pausing->queue, pausing->paused, err);
}

static qr_rc prune(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    int64_t count;
    return qr_jobs_prune(tx, qr_clock_wall_ms(sim_clock()) - 20000, &count, err);
}

static void do_something(struct process *process)
{
    const int64_t what = sim_between(0, 99);
    if (what < 55) {
        add(process);
    } else if (what < 75) {
        int subject = (int)sim_between(1, SIM_SUBJECT_COUNT);
        qr_db_write(process->db, QR_DURABLE, start_subject, &subject, NULL);
    } else if (what < 90) {
        cancel(process);
    } else if (what < 96) {
        struct pausing pausing = {(enum qr_queue)sim_between(1, SIM_QUEUE_COUNT), sim_chance(400)};
        qr_db_write(process->db, QR_DURABLE, pause_queue, &pausing, NULL);
    } else {
        qr_db_write(process->db, QR_RELAXED, prune, NULL, NULL);
    }
}

static void resume_all(struct process *process)
{
    for (int queue = 1; queue <= SIM_QUEUE_COUNT && !process->is_ending; queue++) {
        struct pausing pausing = {(enum qr_queue)queue, false};
        qr_db_write(process->db, QR_DURABLE, pause_queue, &pausing, NULL);
    }
}

static void people(void *arg)
{
    struct process *process = arg;
    while (world.faults && !process->is_ending) {
        sim_sleep(sim_chance(700) ? sim_between(0, 300) : sim_between(0, 40000));
        if (world.faults && !process->is_ending) {
            do_something(process);
        }
    }
    resume_all(process);
}

/* ---- the rescuer ---- */

static qr_rc declare_dead(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    int64_t count;
    return qr_workers_declare_dead(tx, false, (qr_uuid){0}, &count, err);
}

static qr_rc free_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_workers_free_jobs(tx, arg, err);
}

static void rescuer(void *arg)
{
    struct process *process = arg;
    while (!process->is_ending) {
        sim_sleep(RESCUE_MS);
        int64_t count = 1;
        qr_rc rc = process->is_ending ? QR_LOST : qr_db_write(process->db, QR_DURABLE, declare_dead, NULL, NULL);
        while (rc == QR_OK && count > 0 && !process->is_ending) {
            rc = qr_db_write(process->db, QR_DURABLE, free_jobs, &count, NULL);
        }
    }
}

static void start_actors(struct process *process)
{
    sim_detach(sim_spawn(process->number, rescuer, process));
    sim_detach(sim_spawn(process->number, people, process));
    sim_detach(sim_spawn(process->number, people, process));
}

/* ---- after the faults: where nobody polls, every wake-up counts ---- */

enum { AT_ONCE_MS = 10000 };

static void expect_end(int number, const char *what)
{
    for (int64_t waited_ms = 0; oracle_is_open(number); waited_ms += 100) {
        if (waited_ms >= AT_ONCE_MS) {
            QR_FAIL("nobody was woken for a job that %s", what);
        }
        sim_sleep(100);
    }
}

static int add_quietly(struct process *process, struct qr_job_spec spec, qr_uuid *ret_id)
{
    spec.generation = oracle_new_job(0);
    if (spec.generation == 0) {
        return 0;
    }
    qr_err err = {0};
    struct adding adding = {.spec = spec};
    QR_CHECK_RC(QR_OK, qr_db_write(process->db, QR_DURABLE, add_job, &adding, &err));
    oracle_acknowledge((int)spec.generation, adding.id, adding.existed);
    *ret_id = adding.id;
    return (int)spec.generation;
}

static bool is_quiet_over;

static void be_quiet(void *arg)
{
    struct process *process = arg;
    struct qr_job_spec spec = {.queue = QR_QUEUE_EXPAND, .type = "any"};
    qr_uuid id;
    while (!process->runner) {
        sim_sleep(100);
    }
    resume_all(process);
    sim_sleep(AT_ONCE_MS);
    expect_end(add_quietly(process, spec, &id), "was added");
    spec.run_at_ms = qr_clock_wall_ms(sim_clock()) + 5000;
    expect_end(add_quietly(process, spec, &id), "is due");
    spec.serial_key = QR_STR("quiet");
    spec.run_at_ms = qr_clock_wall_ms(sim_clock()) + 3600000;
    struct cancelling cancelling = {.number = add_quietly(process, spec, &cancelling.id)};
    spec.run_at_ms = 0;
    const int blocked = add_quietly(process, spec, &id);
    sim_sleep(AT_ONCE_MS);
    if (cancelling.number) {
        qr_err err = {0};
        QR_CHECK_RC(QR_OK, qr_db_write(process->db, QR_DURABLE, cancel_job, &cancelling, &err));
    }
    expect_end(blocked, "was promoted");
    is_quiet_over = true;
}

/* ---- a run ---- */

static void run(uint64_t seed)
{
    world_begin(seed);
    oracle_begin();
    totals.runs++;
    const int64_t began_ms = sim_now_ms();
    const int steps = (int)sim_between(STEPS_MIN, STEPS_MAX);
    for (int i = 0; i < steps; i++) {
        seeds_step(seed, i, oracle_check);
        if (sim_chance(8)) {
            seeds_disturb(35, 40);
        }
    }
    world.faults = false;
    const int64_t calm_ms = sim_now_ms();
    int drain_steps = 0;
    while (oracle_open_count() > 0 && drain_steps < DRAIN_STEPS_MAX && sim_now_ms() < calm_ms + DRAIN_MS_MAX) {
        seeds_step(seed, steps + drain_steps++, oracle_check);
    }
    oracle_check_drained();
    is_quiet_over = !world.owns_all;
    struct process *process = &world.processes[1];
    for (bool has_begun = false; !is_quiet_over;) {
        if (!has_begun && process->runner && !process->is_ending) { /* else it would end with the process */
            sim_detach(sim_spawn(1, be_quiet, process));
            has_begun = true;
        }
        seeds_step(seed, steps + drain_steps++, oracle_check);
    }
    totals.virtual_s += (uint64_t)(sim_now_ms() - began_ms) / 1000;
    oracle_end();
    world_end();
}

static void print_totals(void)
{
    seeds_print_totals();
    printf("%llu jobs, %llu parts, %llu rescues, %llu lost fences, %llu cancels\n", (unsigned long long)totals.jobs,
           (unsigned long long)totals.parts, (unsigned long long)totals.rescues, (unsigned long long)totals.lost,
           (unsigned long long)totals.cancels);
}

/* I1 I2 I5 I9 */
QR_TEST_WITH_TIMEOUT(jobs_survive_crashes_zombies_and_failing_commits, 120)
{
    static const struct qr_handler handlers[] = {
        {"any", handle, NULL}, {"first", handle, NULL}, {"second", handle, NULL}};
    world.handlers = handlers;
    world.handler_count = QR_COUNT(handlers);
    world.plan = (struct qr_plan){.part = plan_part, .ended = plan_ended};
    world.start_actors = start_actors;
    world.alone_per_mille = 350;
    world.processes_max = 3;
    world_prepare(t);
    seeds_run(RUNS, run);
    print_totals();
}
