/* Jobs whose handler takes one after the other: each is recorded when it ends, whatever the others do. */
#include "support/runner_fixture.h"

enum { JOBS = 300, ROOM = 20, TAKEN_MAX = 8 };

/* What the handler does, and what it saw. */
struct streaming {
    struct qr_script *script;
    bool holds_first; /* until the gate of the script is open */
    bool takes_nothing;
    bool sends_back; /* every second one */
    atomic_int calls, under_way_max, held, ended, ran_alone, had_been_tried;
};

static struct streaming streaming;

static void do_alone(struct qr_job_run *run QR_UNUSED, struct qr_outcome *outcome)
{
    atomic_fetch_add(&streaming.ran_alone, 1);
    outcome->kind = QR_OUTCOME_COMPLETED;
}

static void end_one(struct qr_job_stream *stream, struct qr_job_run *run, struct qr_outcome *outcome)
{
    const bool is_second = atomic_fetch_add(&streaming.ended, 1) % 2;
    atomic_fetch_add(&streaming.had_been_tried, run->job->attempts > 0 || run->job->is_suspect);
    outcome->kind = streaming.sends_back && is_second ? QR_OUTCOME_ALONE : QR_OUTCOME_COMPLETED;
    stream->end(stream, run);
}

/* The first of all is held while others come and go. */
static void do_stream(struct qr_job_stream *stream)
{
    struct qr_job_run *runs[TAKEN_MAX], *held = NULL;
    struct qr_outcome *outcomes[TAKEN_MAX], *outcome_held = NULL;
    size_t count;
    atomic_fetch_add(&streaming.calls, 1);
    while (!streaming.takes_nothing && ((count = stream->take(stream, TAKEN_MAX, ROOM, runs, outcomes)) > 0 ||
                                        (held && !atomic_load(&streaming.script->gate)))) {
        for (size_t i = 0; i < count; i++) {
            if (streaming.holds_first && !held) {
                held = runs[i];
                outcome_held = outcomes[i];
                atomic_fetch_add(&streaming.held, 1);
            } else {
                end_one(stream, runs[i], outcomes[i]);
            }
        }
        if (count == 0) {
            qr_world_pause_briefly();
        }
        atomic_store(&streaming.under_way_max, QR_MAX((int)count, atomic_load(&streaming.under_way_max)));
    }
    if (held) {
        outcome_held->kind = QR_OUTCOME_COMPLETED; /* it ends when the handler returns */
    }
}

static void open_scene(struct qr_scene *scene, struct qr_test *t)
{
    qr_scene_open(scene, t, qr_clock_system());
    streaming = (struct streaming){.script = &scene->script};
    scene->handlers[1] = (struct qr_handler){.type = "one by one", .fn = do_alone, .stream = do_stream};
    scene->options.slots[QR_QUEUE_CONVERT] = 1;
}

/* All but the one that is held: while it is, they are claimed, begun, ended and recorded. */
QR_DB_TEST(jobs_of_a_stream_come_and_end_while_others_of_it_are_under_way) /* R1 */
{
    struct qr_scene scene;
    open_scene(&scene, t);
    streaming.holds_first = true;
    atomic_store(&scene.script.gate, false);
    qr_world_add_many(&scene.world, (struct qr_job_spec){.type = "one by one"}, JOBS);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS - 1);
    QR_CHECK_INT(1, atomic_load(&streaming.held));
    QR_CHECK_INT(1, atomic_load(&streaming.calls));
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS);
    qr_scene_stop(&scene);
    QR_CHECK(atomic_load(&streaming.under_way_max) > 1);
    QR_CHECK_INT(JOBS, qr_world_i64(&scene.world, QR_EFFECTS "kind = 'ended' AND state = 5"));
    qr_scene_close(&scene);
}

QR_DB_TEST(what_a_stream_does_not_take_runs_alone)
{
    struct qr_scene scene;
    open_scene(&scene, t);
    streaming.takes_nothing = true;
    qr_world_add_many(&scene.world, (struct qr_job_spec){.type = "one by one"}, JOBS);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS);
    qr_scene_stop(&scene);
    QR_CHECK_INT(JOBS, atomic_load(&streaming.ran_alone));
    QR_CHECK_INT(0, qr_world_i64(&scene.world, "SELECT count(*) FROM job_attempt")); /* it counts as one attempt */
    qr_scene_close(&scene);
}

QR_DB_TEST(one_that_a_stream_sends_back_runs_alone)
{
    struct qr_scene scene;
    open_scene(&scene, t);
    streaming.sends_back = true;
    qr_world_add_many(&scene.world, (struct qr_job_spec){.type = "one by one"}, JOBS);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS);
    qr_scene_stop(&scene);
    QR_CHECK(atomic_load(&streaming.ran_alone) > 1);
    QR_CHECK_INT(JOBS, qr_world_i64(&scene.world, QR_EFFECTS "kind = 'ended' AND state = 5"));
    qr_scene_close(&scene);
}

QR_DB_TEST(one_that_was_tried_before_is_in_no_stream) /* R4, R5: nobody is blamed with it */
{
    struct qr_scene scene;
    open_scene(&scene, t);
    qr_world_add_many(&scene.world, (struct qr_job_spec){.type = "one by one"}, JOBS);
    qr_world_have_tried(&scene.world, JOBS / 3);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS);
    qr_scene_stop(&scene);
    QR_CHECK_INT(0, atomic_load(&streaming.had_been_tried));
    QR_CHECK(atomic_load(&streaming.ran_alone) >= 100);
    qr_scene_close(&scene);
}

/* The one that is held is cancelled; what it says in the end is thrown away. */
QR_DB_TEST(one_of_a_stream_that_is_cancelled_leaves_the_others_alone) /* FENCE-3, R2 */
{
    const struct qr_job_filter running = {.state = QR_JOB_RUNNING, .limit = JOBS};
    struct qr_scene scene;
    open_scene(&scene, t);
    streaming.holds_first = true;
    atomic_store(&scene.script.gate, false);
    qr_world_add_many(&scene.world, (struct qr_job_spec){.type = "one by one"}, JOBS);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS - 1);
    struct qr_job *jobs;
    QR_CHECK_INT(1, qr_world_list(&scene.world, running, &jobs));
    QR_CHECK_INT(QR_OK, qr_world_cancel(&scene.world, jobs[0].id, NULL));
    atomic_store(&scene.script.gate, true);
    qr_scene_stop(&scene);
    QR_CHECK_INT(JOBS - 1, qr_world_i64(&scene.world, QR_EFFECTS "kind = 'ended' AND state = 5"));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE state = 8"));
    qr_scene_close(&scene);
}
