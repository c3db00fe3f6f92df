/* Owns the handler that follows a script and the plan that writes effects. */
#include "support/runner_fixture.h"

/* ---- the handler ---- */

static void wait_as_told(struct qr_script *script, struct qr_job_run *run)
{
    if (script->ignores) {
        while (sem_wait(&script->unstick) != 0) { /* a signal */
        }
    }
    while ((script->waits && !atomic_load(&script->gate) && !qr_job_is_cancelled(run)) ||
           (script->is_told && !qr_job_is_cancelled(run))) {
        qr_world_pause_briefly();
    }
    atomic_fetch_add(&script->was_told, qr_job_is_cancelled(run));
}

static void work(struct qr_job_run *run, struct qr_outcome *outcome)
{
    struct qr_script *script = run->arg;
    const int run_number = atomic_fetch_add(&script->runs, 1);
    const int running = atomic_fetch_add(&script->running, 1) + 1;
    atomic_store(&script->running_max, QR_MAX(running, atomic_load(&script->running_max)));
    wait_as_told(script, run);
    outcome->kind = QR_OUTCOME_COMPLETED;
    if (script->reports) {
        int part = 1;
        atomic_store(&script->part_rc, (int)qr_job_report_part(run, QR_DURABLE, &part, NULL));
    }
    if (script->times == QR_SCENE_ALWAYS || run_number < script->times) {
        outcome->kind = script->kind;
        outcome->delay_ms = script->delay_ms;
        if (script->code != QR_CODE_NONE) {
            qr_fail(&outcome->error, script->code, "as the test wants it");
        }
    }
    atomic_fetch_sub(&script->running, 1);
}

static void quick(struct qr_job_run *run QR_UNUSED, struct qr_outcome *outcome)
{
    outcome->kind = QR_OUTCOME_COMPLETED;
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

static qr_rc plan_ended(struct qr_tx *tx, const struct qr_ended *ended, size_t count, void *arg, qr_err *err)
{
    struct qr_scene *scene = arg;
    for (size_t i = 0; i < count; i++) {
        QR_TRY(write_effect(tx, ended[i].job, "ended", ended[i].state, err));
    }
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
    struct qr_scene *scene = arg;
    struct qr_runner_stats stats;
    qr_runner_stats(scene->runner, &stats); /* it may look at the runner */
    atomic_fetch_add(&scene->on_stuck_calls, 1);
}

void qr_scene_open_at(struct qr_scene *scene, struct qr_db_options options, const struct qr_clock *clock)
{
    memset(scene, 0, sizeof *scene);
    qr_world_open_at(&scene->world, options, clock);
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
        .plan = {.part = plan_part, .ended = plan_ended, .arg = scene},
        .slots = {[QR_QUEUE_CONVERT] = 2, [QR_QUEUE_DELETE] = 1},
        .name = "test",
        .owns_all = true,
        .stuck_max = 8,
        .on_stuck = count_stuck,
        .on_stuck_arg = scene,
    };
}

void qr_scene_open(struct qr_scene *scene, struct qr_test *t, const struct qr_clock *clock)
{
    qr_scene_open_at(scene, qr_test_db_options(t, NULL, 0), clock);
}

void qr_scene_start(struct qr_scene *scene)
{
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_runner_start(&scene->runner, &scene->options, &err));
}

void qr_scene_stop(struct qr_scene *scene)
{
    QR_CHECK(qr_runner_stop(scene->runner, 60000));
}

void qr_scene_close(struct qr_scene *scene)
{
    sem_destroy(&scene->script.unstick);
    qr_world_close(&scene->world);
}

void qr_scene_wait_for(atomic_int *counter, int value)
{
    while (atomic_load(counter) < value) {
        qr_world_pause_briefly();
    }
}

void qr_scene_wait_until_returned(struct qr_scene *scene)
{
    while (atomic_load(&scene->script.running) > 0) {
        qr_world_pause_briefly();
    }
}

struct qr_runner_stats qr_scene_stats(struct qr_scene *scene)
{
    struct qr_runner_stats stats;
    qr_runner_stats(scene->runner, &stats);
    return stats;
}

void qr_scene_wait_until_put_off(struct qr_scene *scene)
{
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM job WHERE state = 2 AND run_at > %lld",
             (long long)qr_clock_wall_ms(scene->world.clock));
    qr_world_wait_for(&scene->world, sql, 1);
}

int64_t qr_scene_go_to_next(struct qr_scene *scene)
{
    const int64_t now_ms = qr_clock_wall_ms(scene->world.clock);
    qr_scene_wait_until_put_off(scene);
    const int64_t wait_ms = qr_world_i64(&scene->world, "SELECT run_at FROM job WHERE state = 2") - now_ms;
    qr_test_clock_advance(wait_ms);
    qr_world_notify(&scene->world);
    return wait_ms;
}

static uint64_t writes_of(struct qr_scene *scene)
{
    struct qr_db_stats stats;
    qr_db_stats(scene->world.db, &stats);
    return stats.writes;
}

uint64_t qr_scene_writes_in_a_while(struct qr_scene *scene)
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
