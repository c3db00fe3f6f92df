/* The runner over every database: what becomes of an attempt, whatever its handler does. R1–R5 are those of job/runner.h.
 *
 * Effects are rows that the plan writes: one for each part and each end of an attempt, unique by (job, fence, kind). */
#include "job/runner_internal.h"
#include "support/jobs_fixture.h"

#include <semaphore.h>

enum { ALWAYS = -1 };

/* What a handler does, and what it saw. */
struct script {
    enum qr_outcome_kind kind; /* of the first `times` runs, ALWAYS = of all; then it completes */
    int times;
    qr_code code;
    int64_t delay_ms;
    bool waits;   /* for the gate, or until it is told to end */
    bool ignores; /* being told to end: waits for the semaphore alone */
    bool is_told; /* waits until it is told to end; then does what it does */
    bool reports; /* a part first */
    atomic_bool gate;
    sem_t unstick;
    atomic_int runs, running, running_max, was_told;
    atomic_int part_rc;
};

struct scene {
    struct qr_world world;
    struct qr_runner *runner;
    struct script script;
    atomic_int refusals; /* how often the plan says no, counted down; negative = always */
    qr_code refusal;
    atomic_int on_stuck_calls;
    struct qr_runner_options options;
    struct qr_handler handlers[2];
};

#define EFFECTS   "SELECT count(*) FROM effect WHERE "
#define COMPLETED "SELECT count(*) FROM job WHERE state = 5"

/* ---- the handler ---- */

static void wait_as_told(struct script *script, struct qr_job_run *run)
{
    if (script->ignores) {
        sem_wait(&script->unstick);
    }
    while ((script->waits && !atomic_load(&script->gate) && !qr_job_is_cancelled(run)) ||
           (script->is_told && !qr_job_is_cancelled(run))) {
        qr_world_pause_briefly();
    }
    atomic_fetch_add(&script->was_told, qr_job_is_cancelled(run));
}

static void work(struct qr_job_run *run, struct qr_outcome *outcome)
{
    struct script *script = run->arg;
    const int run_number = atomic_fetch_add(&script->runs, 1);
    const int running = atomic_fetch_add(&script->running, 1) + 1;
    atomic_store(&script->running_max, QR_MAX(running, atomic_load(&script->running_max)));
    wait_as_told(script, run);
    if (script->reports) {
        int part = 1;
        atomic_store(&script->part_rc, (int)qr_job_report_part(run, QR_DURABLE, &part, NULL));
    }
    if (script->times == ALWAYS || run_number < script->times) {
        outcome->kind = script->kind;
        outcome->delay_ms = script->delay_ms;
        if (script->code != QR_CODE_NONE) {
            qr_fail(&outcome->error, script->code, "as the test wants it");
        }
    }
    atomic_fetch_sub(&script->running, 1);
}

static void quick(struct qr_job_run *run QR_UNUSED, struct qr_outcome *outcome QR_UNUSED)
{
}

/* ---- the plan ---- */

static qr_rc write_effect(struct qr_tx *tx, const struct qr_job *job, const char *kind, enum qr_job_state state,
                          qr_err *err)
{
    return qr_tx_exec(tx, "INSERT INTO effect (job_id, fence, kind, state) VALUES (?1, ?2, ?3, ?4)",
                      QR_VALS(qr_val_blob(job->id.bytes, QR_UUID_BYTES), qr_val_i64(job->fence),
                              qr_val_text(qr_str_of(kind)), qr_val_i64(state)),
                      NULL, err);
}

static qr_rc plan_part(struct qr_tx *tx, const struct qr_job *job, void *part, void *arg QR_UNUSED, qr_err *err)
{
    QR_CHECK_INT(1, *(const int *)part);
    return write_effect(tx, job, "part", QR_JOB_RUNNING, err);
}

static qr_rc plan_ended(struct qr_tx *tx, const struct qr_job *job, enum qr_job_state state,
                        const struct qr_outcome *outcome QR_UNUSED, void *arg, qr_err *err)
{
    struct scene *scene = arg;
    QR_TRY(write_effect(tx, job, "ended", state, err));
    const int refusals = atomic_load(&scene->refusals);
    if (refusals != 0) {
        atomic_store(&scene->refusals, refusals > 0 ? refusals - 1 : refusals);
        return qr_fail(err, scene->refusal, "the plan says no");
    }
    return QR_OK;
}

/* ---- the scene ---- */

static void count_stuck(void *arg)
{
    struct scene *scene = arg;
    struct qr_runner_stats stats;
    qr_runner_stats(scene->runner, &stats); /* it may look at the runner */
    atomic_fetch_add(&scene->on_stuck_calls, 1);
}

static void open_scene(struct scene *scene, struct qr_test *t, const struct qr_clock *clock)
{
    memset(scene, 0, sizeof *scene);
    qr_world_open(&scene->world, t, clock);
    sem_init(&scene->script.unstick, 0, 0);
    scene->handlers[0] = (struct qr_handler){"work", work, &scene->script};
    scene->handlers[1] = (struct qr_handler){"quick", quick, NULL};
    scene->options = (struct qr_runner_options){
        .db = scene->world.db,
        .ids = &scene->world.ids,
        .clock = scene->world.clock,
        .rand = qr_rand_system(),
        .handlers = scene->handlers,
        .handler_count = QR_COUNT(scene->handlers),
        .plan = {plan_part, plan_ended, scene},
        .slots = {[QR_QUEUE_CONVERT] = 2, [QR_QUEUE_DELETE] = 1},
        .name = "test",
        .owns_all = true,
        .stuck_max = 8,
        .on_stuck = count_stuck,
        .on_stuck_arg = scene,
    };
}

static void start(struct scene *scene)
{
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_runner_start(&scene->runner, &scene->options, &err));
}

static void stop(struct scene *scene)
{
    QR_CHECK(qr_runner_stop(scene->runner, 60000));
}

static void close_scene(struct scene *scene)
{
    sem_destroy(&scene->script.unstick);
    qr_world_close(&scene->world);
}

static void wait_until_reached(atomic_int *counter, int value)
{
    while (atomic_load(counter) < value) {
        qr_world_pause_briefly();
    }
}

static struct qr_runner_stats stats_of(struct scene *scene)
{
    struct qr_runner_stats stats;
    qr_runner_stats(scene->runner, &stats);
    return stats;
}

static void wait_until_put_off(struct scene *scene)
{
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM job WHERE state = 2 AND run_at > %lld",
             (long long)qr_clock_wall_ms(scene->world.clock));
    qr_world_wait_for(&scene->world, sql, 1);
}

/* Moves the test's clock to where the one job is due that was put off. Returns how long that was. */
static int64_t go_to_next(struct scene *scene)
{
    const int64_t now_ms = qr_clock_wall_ms(scene->world.clock);
    wait_until_put_off(scene);
    const int64_t wait_ms = qr_world_i64(&scene->world, "SELECT run_at FROM job WHERE state = 2") - now_ms;
    qr_test_clock_advance(wait_ms);
    qr_world_notify(&scene->world);
    return wait_ms;
}

/* ---- every job once ---- */

QR_DB_TEST(every_job_runs_once_and_is_told_to_the_plan_once) /* JOB-1, R1 */
{
    struct scene scene;
    open_scene(&scene, t, qr_clock_system());
    for (int i = 0; i < 150; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    start(&scene);
    for (int i = 0; i < 50; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    qr_world_wait_for(&scene.world, COMPLETED, 200);
    QR_CHECK_INT(200, atomic_load(&scene.script.runs));
    QR_CHECK_INT(200, qr_world_i64(&scene.world, EFFECTS "state = 5"));
    stop(&scene);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM worker"));
    close_scene(&scene);
}

static void *add_one(void *arg)
{
    struct qr_world mine;
    qr_world_share(&mine, arg);
    qr_world_add(&mine, (struct qr_job_spec){0});
    qr_world_unshare(&mine);
    return NULL;
}

QR_DB_TEST(a_job_starts_without_polling)
{
    struct scene scene;
    open_scene(&scene, t, qr_clock_system());
    start(&scene);
    for (int i = 1; i <= 3; i++) {
        pthread_t thread;
        QR_CHECK_INT(0, pthread_create(&thread, NULL, add_one, &scene.world));
        QR_CHECK_INT(0, pthread_join(thread, NULL));
        qr_world_wait_for(&scene.world, COMPLETED, i);
    }
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(a_delete_does_not_wait_behind_other_work)
{
    struct scene scene;
    open_scene(&scene, t, qr_clock_system());
    scene.script.waits = true;
    for (int i = 0; i < 20; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    start(&scene);
    wait_until_reached(&scene.script.running, 2);
    qr_world_add(&scene.world, (struct qr_job_spec){.queue = QR_QUEUE_DELETE, .type = "quick"});
    qr_world_wait_for(&scene.world, COMPLETED, 1);
    QR_CHECK_INT(2, atomic_load(&scene.script.runs));
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, COMPLETED, 21);
    QR_CHECK_INT(2, atomic_load(&scene.script.running_max)); /* a queue has its own concurrency */
    stop(&scene);
    close_scene(&scene);
}

static uint64_t writes_of(struct scene *scene)
{
    struct qr_db_stats stats;
    qr_db_stats(scene->world.db, &stats);
    return stats.writes;
}

/* What the runner writes in a while in which nothing happens. */
static uint64_t writes_in_a_while(struct scene *scene)
{
    for (int i = 0; i < 20; i++) {
        qr_world_pause_briefly(); /* it may be about to go to sleep */
    }
    const uint64_t before = writes_of(scene);
    for (int i = 0; i < 50; i++) {
        qr_world_pause_briefly();
    }
    return writes_of(scene) - before;
}

QR_DB_TEST(a_runner_without_anything_to_do_writes_nothing)
{
    struct scene scene;
    open_scene(&scene, t, qr_clock_system());
    scene.script.waits = true;
    qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 600000});
    qr_world_add(&scene.world, (struct qr_job_spec){.run_at_ms = qr_clock_wall_ms(qr_clock_system()) + 600000});
    start(&scene);
    wait_until_reached(&scene.script.running, 1);
    QR_CHECK(writes_in_a_while(&scene) <= 2);
    atomic_store(&scene.script.gate, true);
    stop(&scene);
    close_scene(&scene);
}

/* ---- failing ---- */

QR_DB_TEST(what_may_pass_is_tried_again_with_back_off_a_bounded_number_of_times) /* AGAIN-1 */
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_UNAVAILABLE;
    scene.script.times = ALWAYS;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    int64_t full_ms = QR_JOB_BACKOFF_MS_MIN;
    for (int attempt = 1; attempt < QR_JOB_ATTEMPTS_MAX; attempt++) {
        const int64_t wait_ms = go_to_next(&scene);
        QR_CHECK(wait_ms >= full_ms / 2 && wait_ms <= full_ms);
        full_ms *= 2;
    }
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6", 1);
    QR_CHECK_INT(QR_JOB_ATTEMPTS_MAX, atomic_load(&scene.script.runs));
    QR_CHECK_TEXT("unavailable", qr_world_find(&scene.world, id).code);
    struct qr_job_attempt *attempts;
    QR_CHECK_INT(QR_JOB_ATTEMPTS_MAX - 1, qr_world_attempts(&scene.world, id, &attempts));
    QR_CHECK_TEXT("retried", attempts[0].outcome);
    QR_CHECK_INT(QR_JOB_ATTEMPTS_MAX - 1, qr_world_i64(&scene.world, EFFECTS "state = 2"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, EFFECTS "state = 6"));
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(a_retry_waits_as_long_as_the_other_side_asked) /* AGAIN-1 */
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_UNAVAILABLE;
    scene.script.times = 1;
    scene.script.delay_ms = 600000;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    QR_CHECK_INT(600000, go_to_next(&scene)); /* and the lease, which ends meanwhile, is taken anew (R3) */
    qr_world_wait_for(&scene.world, COMPLETED, 1);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT attempts FROM job"));
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(what_cannot_pass_is_not_tried_again) /* AGAIN-1, AGAIN-4 */
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_INVALID_VALUE;
    scene.script.times = ALWAYS;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "unheard-of"});
    start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6", 2);
    QR_CHECK_INT(1, atomic_load(&scene.script.runs));
    QR_CHECK_INT(2, qr_world_i64(&scene.world, EFFECTS "state = 6"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE code = 'internal'"));
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(a_snooze_counts_no_attempt)
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_SNOOZED;
    scene.script.times = 12; /* more often than attempts are allowed */
    scene.script.delay_ms = 5000;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    for (int i = 0; i < 12; i++) {
        QR_CHECK_INT(5000, go_to_next(&scene));
    }
    qr_world_wait_for(&scene.world, COMPLETED, 1);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT attempts FROM job"));
    QR_CHECK_INT(12, stats_of(&scene).snoozed);
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(a_job_that_is_no_longer_wanted_ends_skipped) /* GEN-1 */
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_SKIPPED;
    scene.script.code = QR_CODE_STALE;
    scene.script.times = 1;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 7 AND code = 'stale_generation'", 1);
    scene.script.kind = QR_OUTCOME_FAILED; /* by the policy of the code */
    scene.script.times = ALWAYS;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 7 AND code = 'stale_generation'", 2);
    QR_CHECK_INT(2, qr_world_i64(&scene.world, EFFECTS "state = 7"));
    stop(&scene);
    close_scene(&scene);
}

/* ---- the plan ---- */

QR_DB_TEST(a_part_and_the_end_reach_the_plan_under_the_fence) /* JOB-1, I2 */
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.script.reports = true;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    qr_world_wait_for(&scene.world, COMPLETED, 1);
    QR_CHECK_INT(QR_OK, atomic_load(&scene.script.part_rc));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, EFFECTS "kind = 'part' AND fence = (SELECT fence FROM job)"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, EFFECTS "kind = 'ended' AND fence = (SELECT fence FROM job)"));
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(a_plan_that_fails_undoes_the_record_and_is_the_failure_of_the_job) /* JOB-1 */
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.refusal = QR_CODE_UNAVAILABLE;
    atomic_store(&scene.refusals, 1);
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 2", 1);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, EFFECTS "state = 5"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, EFFECTS "state = 2")); /* it was told of the failure instead */
    QR_CHECK_INT(1, qr_world_find(&scene.world, id).attempts);
    QR_CHECK_TEXT("the plan says no", qr_world_find(&scene.world, id).message);
    go_to_next(&scene);
    qr_world_wait_for(&scene.world, COMPLETED, 1);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, EFFECTS "state = 5"));
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(a_plan_that_always_fails_holds_up_nobody)
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.refusal = QR_CODE_INTERNAL;
    atomic_store(&scene.refusals, -1);
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6 AND code = 'internal'", 1);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, EFFECTS "1 = 1"));
    atomic_store(&scene.refusals, 0);
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_world_wait_for(&scene.world, COMPLETED, 1);
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(a_job_does_not_end_behind_the_back_of_a_plan_that_may_succeed_later)
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_UNAVAILABLE;
    scene.script.times = ALWAYS;
    scene.refusal = QR_CODE_DISK_FULL;
    atomic_store(&scene.refusals, -1);
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    for (int i = 0; i < QR_JOB_ATTEMPTS_MAX + 1; i++) {
        go_to_next(&scene);
    }
    wait_until_put_off(&scene);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, EFFECTS "1 = 1"));
    atomic_store(&scene.refusals, 0);
    go_to_next(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 6", 1);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, EFFECTS "state = 6"));
    stop(&scene);
    close_scene(&scene);
}

/* ---- being told to end ---- */

QR_DB_TEST(a_cancelled_handler_is_told_and_its_outcome_thrown_away) /* FENCE-1, FENCE-3, R2, I2 */
{
    struct scene scene;
    open_scene(&scene, t, qr_clock_system());
    scene.script.is_told = scene.script.reports = true;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    wait_until_reached(&scene.script.running, 1);
    QR_CHECK_INT(QR_OK, qr_world_cancel(&scene.world, id, NULL));
    wait_until_reached(&scene.script.was_told, 1);
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"}); /* the runner goes on */
    qr_world_wait_for(&scene.world, COMPLETED, 1);
    stop(&scene);
    QR_CHECK_INT(QR_LOST, atomic_load(&scene.script.part_rc));
    QR_CHECK_INT(QR_JOB_CANCELLED, qr_world_state(&scene.world, id));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, EFFECTS "1 = 1")); /* of the quick one */
    close_scene(&scene);
}

QR_DB_TEST(a_job_past_its_time_limit_is_told_to_end_and_tried_again) /* FENCE-2, AGAIN-1 */
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.script.is_told = true;
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_CANCELLED;
    scene.script.times = ALWAYS;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000});
    start(&scene);
    wait_until_reached(&scene.script.running, 1);
    qr_test_clock_advance(999);
    qr_world_notify(&scene.world);
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"}); /* a round has passed when it is done */
    qr_world_wait_for(&scene.world, COMPLETED, 1);
    QR_CHECK_INT(0, atomic_load(&scene.script.was_told));
    qr_test_clock_advance(1);
    qr_world_notify(&scene.world);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 2 AND code = 'timeout'", 1);
    struct qr_job_attempt *attempts;
    QR_CHECK_INT(1, qr_world_attempts(&scene.world, id, &attempts));
    QR_CHECK_TEXT("timed_out", attempts[0].outcome);
    QR_CHECK_INT(1, qr_world_find(&scene.world, id).attempts);
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(a_handler_that_does_not_return_is_fenced_and_its_thread_replaced) /* R4, FENCE-1 */
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.options.slots[QR_QUEUE_CONVERT] = 1;
    scene.script.ignores = true;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000});
    start(&scene);
    wait_until_reached(&scene.script.running, 1);
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"});
    while (stats_of(&scene).stuck == 0) {
        qr_test_clock_advance(500);
        qr_world_notify(&scene.world);
        QR_CHECK_INT(QR_OK, qr_world_beat(&scene.world, scene.runner->worker_id)); /* its own thread sleeps real time */
    }
    qr_world_wait_for(&scene.world, COMPLETED, 1); /* the quick one, on the new thread */
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job_attempt WHERE outcome = 'timed_out'", 1);
    QR_CHECK_TEXT("timeout", qr_world_find(&scene.world, id).code);
    QR_CHECK_INT(1, atomic_load(&scene.script.running));
    sem_post(&scene.script.unstick); /* what it returns at last is thrown away */
    sem_post(&scene.script.unstick);
    stop(&scene);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, EFFECTS "state = 5 AND fence = 1 AND kind = 'ended' AND "
                                                       "job_id = (SELECT job_id FROM job_attempt)"));
    close_scene(&scene);
}

QR_DB_TEST(too_many_stuck_handlers_are_told_to_the_owner) /* R4 */
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    scene.options.stuck_max = 1;
    scene.script.ignores = true;
    qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000});
    qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000});
    start(&scene);
    while (atomic_load(&scene.on_stuck_calls) == 0) {
        qr_test_clock_advance(500);
        qr_world_notify(&scene.world);
        QR_CHECK_INT(QR_OK, qr_world_beat(&scene.world, scene.runner->worker_id));
    }
    for (int i = 0; i < 16; i++) {
        sem_post(&scene.script.unstick);
    }
    stop(&scene);
    close_scene(&scene);
}

/* ---- progress ---- */

struct reporter {
    atomic_int said, may_say;
};

static void report(struct qr_job_run *run, struct qr_outcome *outcome QR_UNUSED)
{
    struct reporter *reporter = run->arg;
    int at = 0;
    for (int until = 0; at < 1001;) {
        until = atomic_load(&reporter->may_say);
        while (at < until) {
            qr_job_progress(run, ++at, 1001);
        }
        atomic_store(&reporter->said, at);
        qr_world_pause_briefly();
    }
}

QR_DB_TEST(progress_is_written_now_and_then_and_at_the_end)
{
    struct scene scene;
    open_scene(&scene, t, NULL);
    struct reporter reporter = {0};
    scene.handlers[0] = (struct qr_handler){"work", report, &reporter};
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    start(&scene);
    atomic_store(&reporter.may_say, 1);
    qr_world_wait_for(&scene.world, "SELECT progress_done FROM job", 1);
    atomic_store(&reporter.may_say, 1000);
    wait_until_reached(&reporter.said, 1000);
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"}); /* a round passes */
    qr_world_wait_for(&scene.world, COMPLETED, 1);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT progress_done FROM job WHERE type = 'work'"));
    qr_test_clock_advance(QR_PROGRESS_MS);
    qr_world_notify(&scene.world);
    qr_world_wait_for(&scene.world, "SELECT progress_done FROM job WHERE type = 'work'", 1000);
    atomic_store(&reporter.may_say, 1001);
    qr_world_wait_for(&scene.world, COMPLETED, 2);
    QR_CHECK_INT(1001, qr_world_i64(&scene.world, "SELECT progress_done FROM job WHERE type = 'work'"));
    stop(&scene);
    close_scene(&scene);
}

/* ---- ending and beginning ---- */

QR_DB_TEST(a_runner_that_stops_hands_back_and_the_next_one_completes_the_rest) /* FENCE-1, I5 */
{
    struct scene scene;
    open_scene(&scene, t, qr_clock_system());
    scene.script.waits = true;
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_CANCELLED;
    scene.script.times = 2; /* the two that are told to end */
    for (int i = 0; i < 20; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    start(&scene);
    wait_until_reached(&scene.script.running, 2);
    QR_CHECK(qr_runner_stop(scene.runner, 0));
    QR_CHECK_INT(20, qr_world_count(&scene.world, QR_JOB_QUEUED));
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE attempts + crashes > 0"));
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM worker"));
    atomic_store(&scene.script.gate, true);
    start(&scene);
    qr_world_wait_for(&scene.world, COMPLETED, 20);
    QR_CHECK_INT(20, qr_world_i64(&scene.world, EFFECTS "state = 5"));
    stop(&scene);
    close_scene(&scene);
}

static void *stop_in_time(void *arg)
{
    struct scene *scene = arg;
    stop(scene);
    return NULL;
}

QR_DB_TEST(a_runner_that_stops_lets_handlers_finish_and_begins_nothing_new)
{
    struct scene scene;
    open_scene(&scene, t, qr_clock_system());
    scene.script.waits = true;
    for (int i = 0; i < 6; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    start(&scene);
    wait_until_reached(&scene.script.running, 2);
    pthread_t thread;
    QR_CHECK_INT(0, pthread_create(&thread, NULL, stop_in_time, &scene));
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 4", 2); /* claimed ahead: handed back */
    for (bool stopping = false; !stopping; qr_world_pause_briefly()) {
        QR_HOLD(&scene.runner->lock);
        stopping = scene.runner->stopping;
    }
    QR_CHECK(writes_in_a_while(&scene) <= 2); /* it waits, and does not look all the time */
    atomic_store(&scene.script.gate, true);
    QR_CHECK_INT(0, pthread_join(thread, NULL));
    QR_CHECK_INT(2, qr_world_count(&scene.world, QR_JOB_COMPLETED));
    QR_CHECK_INT(4, qr_world_count(&scene.world, QR_JOB_QUEUED));
    QR_CHECK_INT(2, atomic_load(&scene.script.runs));
    close_scene(&scene);
}

QR_DB_TEST(the_jobs_of_a_dead_predecessor_run_at_once_and_one_at_a_time) /* FENCE-4, AGAIN-3, R5 */
{
    struct scene scene;
    open_scene(&scene, t, qr_clock_system());
    const qr_uuid predecessor = qr_world_worker(&scene.world);
    for (int i = 0; i < 6; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    struct qr_job taken[6];
    QR_CHECK_INT(6, qr_world_claim(&scene.world, predecessor, taken, 6));
    start(&scene);
    qr_world_wait_for(&scene.world, COMPLETED, 6);
    QR_CHECK_INT(1, atomic_load(&scene.script.running_max));
    QR_CHECK_INT(6, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE crashes = 1"));
    QR_CHECK_INT(6, qr_world_i64(&scene.world, EFFECTS "state = 5"));
    QR_CHECK_INT(QR_LOST, qr_world_finish(&scene.world, &taken[0], QR_JOB_COMPLETED));
    stop(&scene);
    close_scene(&scene);
}

QR_DB_TEST(a_runner_that_lost_its_lease_forgets_everything_and_goes_on_under_a_new_id) /* R3, FENCE-1, I9 */
{
    struct scene scene;
    open_scene(&scene, t, qr_clock_system());
    scene.options.owns_all = false;
    scene.script.waits = true;
    for (int i = 0; i < 8; i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){0});
    }
    start(&scene);
    wait_until_reached(&scene.script.running, 2);
    const qr_uuid old_id = scene.runner->worker_id;
    QR_CHECK_INT(1, qr_world_declare_dead(&scene.world, true, (qr_uuid){0}));
    QR_CHECK(qr_world_free_jobs(&scene.world, NULL, NULL) >= 2);
    wait_until_reached(&scene.script.was_told, 2);
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, COMPLETED, 8);
    QR_CHECK_INT(8, qr_world_i64(&scene.world, EFFECTS "state = 5"));
    QR_CHECK_INT(8, qr_world_i64(&scene.world, EFFECTS "1 = 1")); /* nothing of what the old id returned */
    QR_CHECK_INT(1, stats_of(&scene).leases_lost);
    {
        QR_HOLD(&scene.runner->lock);
        QR_CHECK(!qr_uuid_equal(old_id, scene.runner->worker_id));
    }
    stop(&scene);
    close_scene(&scene);
}
