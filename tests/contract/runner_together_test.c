/* Jobs whose handler takes several at once: they are begun together, and each is still recorded by itself. */
#include "support/runner_fixture.h"

enum { JOBS = 300 };

/* What a handler of several does, and what it saw. */
struct together {
    struct qr_script *script;
    bool sends_back; /* every second one */
    bool waits;      /* for the gate of the script */
    atomic_int calls, most, ran_alone, had_been_tried;
};

static struct together together;

static void do_alone(struct qr_job_run *run QR_UNUSED, struct qr_outcome *outcome)
{
    atomic_fetch_add(&together.ran_alone, 1);
    outcome->kind = QR_OUTCOME_COMPLETED;
}

static void do_several(struct qr_job_run *const *runs, size_t count, struct qr_outcome *const *outcomes)
{
    atomic_store(&together.most, QR_MAX((int)count, atomic_load(&together.most)));
    atomic_fetch_add(&together.calls, 1);
    while (together.waits && !atomic_load(&together.script->gate)) {
        qr_world_pause_briefly();
    }
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_add(&together.had_been_tried, runs[i]->job->attempts > 0 || runs[i]->job->is_suspect);
        outcomes[i]->kind = together.sends_back && i % 2 ? QR_OUTCOME_ALONE : QR_OUTCOME_COMPLETED;
    }
}

static void open_scene(struct qr_scene *scene, struct qr_test *t)
{
    qr_scene_open(scene, t, qr_clock_system());
    together = (struct together){.script = &scene->script};
    scene->handlers[1] = (struct qr_handler){.type = "several", .fn = do_alone, .many = do_several};
    scene->options.slots[QR_QUEUE_CONVERT] = 1;
}

QR_DB_TEST(jobs_that_wait_together_are_begun_together_and_recorded_each) /* R1 */
{
    struct qr_scene scene;
    open_scene(&scene, t);
    qr_world_add_many(&scene.world, (struct qr_job_spec){.type = "several"}, JOBS);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS);
    qr_scene_stop(&scene);
    QR_CHECK(atomic_load(&together.most) > 1 && atomic_load(&together.most) <= QR_TOGETHER_MAX);
    QR_CHECK_INT(JOBS, qr_world_i64(&scene.world, QR_EFFECTS "kind = 'ended' AND state = 5"));
    qr_scene_close(&scene);
}

QR_DB_TEST(one_that_is_sent_back_runs_alone)
{
    struct qr_scene scene;
    open_scene(&scene, t);
    together.sends_back = true;
    qr_world_add_many(&scene.world, (struct qr_job_spec){.type = "several"}, JOBS);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS);
    qr_scene_stop(&scene);
    QR_CHECK(atomic_load(&together.ran_alone) > 1);
    QR_CHECK_INT(JOBS, qr_world_i64(&scene.world, QR_EFFECTS "kind = 'ended' AND state = 5"));
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM job_attempt")); /* it counts as one attempt */
    qr_scene_close(&scene);
}

QR_DB_TEST(one_that_was_tried_before_runs_alone) /* R4, R5: nobody is blamed with it */
{
    struct qr_scene scene;
    open_scene(&scene, t);
    qr_world_add_many(&scene.world, (struct qr_job_spec){.type = "several"}, JOBS);
    qr_world_have_tried(&scene.world, JOBS / 3);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS);
    qr_scene_stop(&scene);
    QR_CHECK_INT(0, atomic_load(&together.had_been_tried));
    QR_CHECK(atomic_load(&together.ran_alone) >= 100);
    qr_scene_close(&scene);
}

/* The gate is closed once several run together; then one of them is cancelled. */
QR_DB_TEST(one_that_is_cancelled_leaves_those_beside_it_alone) /* FENCE-3, R2 */
{
    const struct qr_job_filter running = {.state = QR_JOB_RUNNING, .limit = JOBS};
    struct qr_scene scene;
    open_scene(&scene, t);
    atomic_store(&scene.script.gate, true);
    together.waits = true;
    qr_world_add_many(&scene.world, (struct qr_job_spec){.type = "several"}, JOBS);
    qr_scene_start(&scene);
    qr_scene_wait_for(&together.most, 2);
    atomic_store(&scene.script.gate, false);
    const int calls = atomic_load(&together.calls);
    qr_scene_wait_for(&together.calls, calls + 1);
    struct qr_job *jobs;
    const size_t count = qr_world_list(&scene.world, running, &jobs);
    QR_CHECK(count > 1);
    QR_CHECK_INT(QR_OK, qr_world_cancel(&scene.world, jobs[count - 1].id, NULL)); /* the oldest: it runs */
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS - 1);
    qr_scene_stop(&scene);
    QR_CHECK_INT(JOBS - 1, qr_world_i64(&scene.world, QR_EFFECTS "kind = 'ended' AND state = 5"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE state = 8"));
    qr_scene_close(&scene);
}
