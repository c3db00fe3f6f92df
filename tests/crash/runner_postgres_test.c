/* A runner whose PostgreSQL server stands still, or does not say whether it has committed. R1–R5 are those of job/runner.h. */
#include "base/thread.h"
#include "support/postgres_proxy.h"
#include "support/runner_fixture.h"

/* The runner's side is slow to give up, so that what ends the wait is the runner itself. */
enum { NEVER_MS = 600000, SOON_MS = 500, GRACE_MS = 500, STOP_MS_MAX = GRACE_MS + 10000, SLACK_MS = 30000 };

__attribute__((constructor)) static void use_server(void)
{
    qr_db_test_use_server();
}

static bool threads_have_ended(struct qr_runner *runner)
{
    QR_HOLD(&runner->lock);
    bool all = runner->dispatcher_has_ended && runner->heartbeat_has_ended;
    for (const struct slot_thread *slot = runner->threads; slot; slot = slot->next) {
        all = all && slot->has_ended;
    }
    return all;
}

/* ---- a server that stands still ---- */

QR_TEST_WITH_TIMEOUT(stopping_takes_no_longer_than_promised_when_the_server_stands_still, 180) /* FENCE-1, I5 */
{
    static struct qr_runner *left_behind; /* with its runner: what it uses must stay */
    struct qr_pg pg = {0};
    struct qr_scene scene;
    qr_db_test_server(); /* skips where there is none */
    qr_pg_start(&pg, NULL);
    qr_scene_open_at(&scene, (struct qr_db_options){.url = qr_pg_url(&pg, "still"), .write_deadline_ms = NEVER_MS},
                     qr_clock_system());
    scene.script.waits = true;
    scene.script.kind = QR_OUTCOME_FAILED;
    scene.script.code = QR_CODE_CANCELLED;
    scene.script.times = 2;
    qr_world_add_many(&scene.world, (struct qr_job_spec){0}, 3);
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 2);
    left_behind = scene.runner;

    qr_pg_freeze(&pg);
    const int64_t began_us = qr_thread_mono_us();
    const bool all_ended = qr_runner_stop(scene.runner, GRACE_MS);
    const int64_t took_ms = (qr_thread_mono_us() - began_us) / 1000;
    qr_pg_thaw(&pg);
    QR_CHECK(!all_ended);
    QR_CHECK(took_ms >= GRACE_MS && took_ms < STOP_MS_MAX + SLACK_MS);
    QR_CHECK_INT(0, atomic_load(&scene.script.running)); /* the handlers were told */

    while (!threads_have_ended(left_behind)) { /* now that they get an answer */
        qr_world_pause_briefly();
    }
    atomic_store(&scene.script.gate, true);
    qr_scene_start(&scene); /* whatever the first one could not hand back is rescued by the next */
    qr_world_wait_for(&scene.world, QR_COMPLETED, 3);
    QR_CHECK_INT(3, qr_world_i64(&scene.world, QR_EFFECTS "state = 5"));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
    qr_pg_remove(&pg);
}

/* ---- a server whose answer is lost ---- */

struct stopping {
    struct qr_runner *runner;
    atomic_int is_over;
};

static void *stop(void *arg)
{
    struct stopping *stopping = arg;
    QR_CHECK(qr_runner_stop(stopping->runner, 60000));
    atomic_store(&stopping->is_over, 1);
    return NULL;
}

static bool is_in_doubt(struct qr_runner *runner)
{
    QR_HOLD(&runner->lock);
    return qr_dispatch_is_in_doubt(runner);
}

/* What the lost commit claimed is in nobody's memory: it must be given back before its worker leaves. */
QR_TEST_WITH_TIMEOUT(a_runner_does_not_leave_before_it_knows_what_it_has_claimed, 120) /* R1, I5 */
{
    struct qr_pg *pg = qr_db_test_server(), through = {0};
    struct qr_pg_proxy proxy;
    struct qr_scene scene;
    struct qr_world direct;
    qr_pg_proxy_start(&proxy, pg, t->dir);
    snprintf(through.dir, sizeof through.dir, "%s", proxy.dir);
    qr_world_open_at(&direct, (struct qr_db_options){.url = qr_pg_url(pg, "lost")}, qr_clock_system());
    qr_scene_open_at(&scene, (struct qr_db_options){.url = qr_pg_url(&through, "lost"), .write_deadline_ms = SOON_MS},
                     qr_clock_system());
    qr_scene_start(&scene);

    while (qr_scene_writes_in_a_while(&scene) > 0) { /* the next commit is the claim */
    }
    qr_pg_proxy_set(&proxy, QR_PG_CUT_FOR_GOOD);
    const qr_uuid id = qr_world_add(&direct, (struct qr_job_spec){0});
    qr_world_wait_for(&direct, "SELECT count(*) FROM job WHERE state = 4", 1); /* as the server knows */
    while (!is_in_doubt(scene.runner)) {
        qr_world_pause_briefly();
    }
    struct stopping stopping = {.runner = scene.runner};
    pthread_t thread;
    QR_CHECK_INT(0, pthread_create(&thread, NULL, stop, &stopping));
    const long refused = qr_pg_proxy_refused(&proxy);
    while (!atomic_load(&stopping.is_over) && qr_pg_proxy_refused(&proxy) < refused + 3) { /* it keeps asking */
        qr_world_pause_briefly();
    }
    QR_CHECK_INT(0, atomic_load(&stopping.is_over));
    qr_pg_proxy_set(&proxy, QR_PG_PASS);
    QR_CHECK_INT(0, pthread_join(thread, NULL));

    const struct qr_job job = qr_world_find(&direct, id);
    QR_CHECK_INT(QR_JOB_QUEUED, job.state);
    QR_CHECK_INT(0, job.attempts + job.crashes);
    QR_CHECK_INT(0, atomic_load(&scene.script.runs));
    QR_CHECK_INT(0, qr_world_i64(&direct, "SELECT count(*) FROM worker"));
    qr_world_close(&direct);
    qr_scene_close(&scene);
    qr_pg_proxy_stop(&proxy);
}
