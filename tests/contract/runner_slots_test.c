/* The runner's slots over every database: suspects and deletes (R5, DEL-6), threads that do not return (R4), and what is due
 * but held by somebody else. */
#include "base/mem.h"
#include "base/thread.h"
#include "support/runner_fixture.h"

#include <stdlib.h>

/* ---- suspects and deletes ---- */

/* Jobs that were running when a process died. */
static qr_rc add_suspects_in(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_world_many *many = arg;
    for (int i = 0; i < many->count; i++) {
        qr_uuid id;
        QR_TRY(qr_jobs_add(tx, qr_uuid_next(&many->world->ids), &many->spec, &id, NULL, err));
        QR_TRY(qr_tx_exec(tx, "UPDATE job SET suspect = 1, crashes = 1 WHERE id = ?1",
                          QR_VALS(qr_val_blob(id.bytes, QR_UUID_BYTES)), NULL, err));
    }
    return QR_OK;
}

static void add_suspects(struct qr_scene *scene, enum qr_queue queue, int count)
{
    qr_world_write(&scene->world, add_suspects_in,
                   &(struct qr_world_many){&scene->world, {.queue = queue, .type = "work"}, count});
}

/* Each time its handler returns a little later: before, while and after the runner finds out. */
QR_DB_TEST(what_waits_behind_a_suspect_that_is_cancelled_is_claimed) /* R5 */
{
    enum { TIMES = 40 };
    const struct qr_job_filter running = {.state = QR_JOB_RUNNING, .limit = 2};
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.script.ignores = true;
    qr_scene_start(&scene);
    for (int i = 0; i < TIMES; i++) {
        struct qr_job *jobs;
        add_suspects(&scene, QR_QUEUE_CONVERT, 1);
        qr_scene_wait_for(&scene.script.runs, i + 1);
        qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"});
        QR_CHECK_INT(1, qr_world_list(&scene.world, running, &jobs));
        QR_CHECK_INT(QR_OK, qr_world_cancel(&scene.world, jobs[0].id, NULL)); /* nothing else wakes the runner */
        for (int64_t until_us = qr_thread_mono_us() + i * 20; qr_thread_mono_us() < until_us;) {
        }
        sem_post(&scene.script.unstick);
        qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state IN (3, 4)", 0);
        qr_scene_wait_until_returned(&scene); /* else the next suspect takes what was posted for this one */
    }
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_delete_does_not_wait_for_suspects_of_other_queues) /* DEL-6, R5 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.script.waits = true;
    add_suspects(&scene, QR_QUEUE_CONVERT, 3);
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 1); /* one of them, alone */
    qr_world_add(&scene.world, (struct qr_job_spec){.queue = QR_QUEUE_DELETE, .type = "quick"});
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"}); /* this one does */
    qr_world_add(&scene.world, (struct qr_job_spec){.queue = QR_QUEUE_DELETE, .type = "quick"});
    qr_world_wait_for(&scene.world, QR_COMPLETED, 2);
    QR_CHECK_INT(1, atomic_load(&scene.script.runs));
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE state = 3 AND type = 'quick'"));
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 6);
    QR_CHECK_INT(1, atomic_load(&scene.script.running_max));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_suspect_waits_for_other_work_but_not_for_deletes) /* DEL-6, R5 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.script.waits = true;
    qr_world_add(&scene.world, (struct qr_job_spec){.queue = QR_QUEUE_DELETE});
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 1); /* a delete that takes its time */
    add_suspects(&scene, QR_QUEUE_CONVERT, 1);
    qr_scene_wait_for(&scene.script.running, 2);
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 2);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_delete_that_is_a_suspect_goes_first) /* DEL-6, R5 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    scene.script.waits = true;
    qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 1); /* work of another queue */
    add_suspects(&scene, QR_QUEUE_CONVERT, 1);
    add_suspects(&scene, QR_QUEUE_DELETE, 1);
    qr_scene_wait_for(&scene.script.running, 2);
    QR_CHECK_INT(1, qr_world_i64(&scene.world, "SELECT count(*) FROM job WHERE state = 4 AND queue = 5"));
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 3);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* ---- threads ---- */

static atomic_bool has_no_threads;
static atomic_int refused_threads;

static void *alloc_unless_thread(size_t size_bytes)
{
    if (size_bytes == sizeof(struct slot_thread) && atomic_load(&has_no_threads)) {
        atomic_fetch_add(&refused_threads, 1);
        return NULL;
    }
    return malloc(size_bytes);
}

static int count_threads(struct qr_runner *runner)
{
    int count = 0;
    QR_HOLD(&runner->lock);
    for (const struct slot_thread *slot = runner->threads; slot; slot = slot->next) {
        count++;
    }
    return count;
}

static void pass_time(struct qr_scene *scene, int64_t ms)
{
    qr_test_clock_advance(ms);
    qr_world_notify(&scene->world);
    QR_CHECK_INT(QR_OK, qr_world_beat(&scene->world, scene->runner->worker_id)); /* its own thread sleeps real time */
    qr_world_pause_briefly();
}

QR_DB_TEST(a_thread_that_cannot_be_replaced_at_once_is_replaced_later) /* R4 */
{
    static const struct qr_mem_hooks hooks = {alloc_unless_thread, realloc, free};
    struct qr_scene scene;
    qr_mem_set_hooks(&hooks);
    atomic_store(&refused_threads, 0);
    qr_scene_open(&scene, t, NULL);
    scene.options.slots[QR_QUEUE_CONVERT] = 1;
    scene.script.ignores = true;
    qr_world_add(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000});
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, 1);
    atomic_store(&has_no_threads, true);
    while (atomic_load(&refused_threads) < 2) {
        pass_time(&scene, 500);
    }
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick", .priority = -1});
    pass_time(&scene, 500);
    QR_CHECK_INT(0, qr_world_count(&scene.world, QR_JOB_COMPLETED));
    atomic_store(&has_no_threads, false);
    while (qr_world_count(&scene.world, QR_JOB_COMPLETED) == 0) {
        pass_time(&scene, 500);
    }
    QR_CHECK_INT(1, qr_scene_stats(&scene).stuck);
    for (int i = 0; i < 16; i++) {
        sem_post(&scene.script.unstick);
    }
    while (count_threads(scene.runner) > 2) { /* the old one has ended, and is gone */
        pass_time(&scene, 500);
    }
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
    qr_mem_set_hooks(NULL);
}

QR_DB_TEST(the_owner_is_told_once_of_too_many_stuck_handlers) /* R4 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    scene.options.stuck_max = 1;
    scene.script.ignores = true;
    qr_world_add_many(&scene.world, (struct qr_job_spec){.time_limit_ms = 1000}, 2);
    qr_scene_start(&scene);
    while (atomic_load(&scene.on_stuck_calls) == 0) {
        pass_time(&scene, 500);
    }
    qr_world_add(&scene.world, (struct qr_job_spec){.queue = QR_QUEUE_DELETE, .type = "quick"}); /* rounds pass */
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    pass_time(&scene, 10);
    QR_CHECK_INT(1, atomic_load(&scene.on_stuck_calls));
    for (int i = 0; i < 16; i++) {
        sem_post(&scene.script.unstick);
    }
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* ---- due, but held ---- */

enum { LOCKED_MS = 50 }; /* how far apart the runner's looks at it are, at the least */

struct holding {
    struct qr_scene *scene;
    sem_t holds, is_told; /* is_told: the runner was woken, and that is not counted */
    int64_t writes, looked_at_ms;
};

static qr_rc hold_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct holding *holding = arg;
    int64_t ignored;
    QR_TRY(qr_tx_get_i64(tx, "SELECT fence FROM job /*pg FOR UPDATE */", QR_NO_VALS, NULL, &ignored, err));
    qr_test_clock_advance(1000); /* now it is due */
    sem_post(&holding->holds);
    sem_wait(&holding->is_told);
    const int64_t began_us = qr_thread_mono_us();
    holding->writes = (int64_t)qr_scene_writes_in_a_while(holding->scene);
    holding->looked_at_ms = (qr_thread_mono_us() - began_us) / 1000;
    return QR_OK;
}

static void *hold(void *arg)
{
    struct holding *holding = arg;
    struct qr_world mine;
    qr_world_share(&mine, &holding->scene->world);
    qr_world_write(&mine, hold_jobs, holding);
    qr_world_unshare(&mine);
    return NULL;
}

QR_DB_TEST(a_runner_does_not_spin_while_somebody_holds_what_is_due)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    struct holding holding = {.scene = &scene};
    sem_init(&holding.holds, 0, 0);
    sem_init(&holding.is_told, 0, 0);
    qr_world_add(&scene.world, (struct qr_job_spec){.run_at_ms = QR_WORLD_BEGIN_MS + 1000});
    qr_scene_start(&scene);
    pthread_t thread;
    QR_CHECK_INT(0, pthread_create(&thread, NULL, hold, &holding));
    sem_wait(&holding.holds);
    if (scene.world.on_postgres) { /* SQLite has one writer at a time anyway */
        qr_world_notify(&scene.world);
    }
    sem_post(&holding.is_told);
    QR_CHECK_INT(0, pthread_join(thread, NULL));
    /* one for being woken, which may come late, one at the beginning, and then one each time */
    QR_CHECK(holding.writes <= 2 + holding.looked_at_ms / LOCKED_MS);
    while (qr_world_count(&scene.world, QR_JOB_COMPLETED) == 0) {
        pass_time(&scene, 50);
    }
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}
