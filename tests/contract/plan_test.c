/* The plan over every database: when it is asked, what it is told, what its answers mean, and the order of locks (L1). */
#include "support/runner_fixture.h"

static qr_uuid base_of(unsigned char number)
{
    return (qr_uuid){.bytes = {[0] = 7, [15] = number}};
}

/* ---- L1 ---- */

enum { BASES = 3 };

static qr_rc make_bases(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(qr_tx_script(tx, "CREATE TABLE locked (id BLOB PRIMARY KEY) STRICT;", err));
    for (int i = 1; i <= BASES; i++) {
        const qr_uuid id = base_of((unsigned char)i);
        QR_TRY(
            qr_tx_exec(tx, "INSERT INTO locked VALUES (?1)", QR_VALS(qr_val_blob(id.bytes, QR_UUID_BYTES)), NULL, err));
    }
    return QR_OK;
}

static qr_rc lock_bases(struct qr_tx *tx, const qr_uuid *base_ids, size_t count, void *arg QR_UNUSED, qr_err *err)
{
    QR_CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        QR_CHECK(i == 0 || memcmp(base_ids[i - 1].bytes, base_ids[i].bytes, QR_UUID_BYTES) < 0);
        bool found;
        int64_t one;
        QR_TRY(qr_tx_get_i64(tx, "SELECT 1 FROM locked WHERE id = ?1 /*pg FOR UPDATE */",
                             QR_VALS(qr_val_blob(base_ids[i].bytes, QR_UUID_BYTES)), &found, &one, err));
        QR_CHECK(found);
    }
    return QR_OK;
}

/* As the workflow's plan will: it writes about the base. */
static qr_rc touch_base(struct qr_tx *tx, const struct qr_job *job, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE locked SET id = ?1 WHERE id = ?1",
                      QR_VALS(qr_val_blob(job->base_id.bytes, QR_UUID_BYTES)), NULL, err);
}

static qr_rc touch_part(struct qr_tx *tx, const struct qr_job *job, void *part QR_UNUSED, void *arg QR_UNUSED,
                        qr_err *err)
{
    return touch_base(tx, job, err);
}

static qr_rc touch_ended(struct qr_tx *tx, const struct qr_ended *ended, size_t count, void *arg QR_UNUSED, qr_err *err)
{
    for (size_t i = 0; i < count; i++) {
        QR_TRY(touch_base(tx, ended[i].job, err));
    }
    return QR_OK;
}

static void report_parts(struct qr_job_run *run, struct qr_outcome *outcome)
{
    outcome->kind = QR_OUTCOME_COMPLETED;
    for (int i = 0; i < 5 && !qr_job_is_cancelled(run); i++) {
        qr_job_progress(run, i, 5);
        (void)!qr_job_report_part(run, QR_RELAXED, &i, NULL);
    }
}

enum { CANCELLED_JOBS = 12 };

struct cancelling {
    qr_uuid base_id;
    qr_uuid ids[CANCELLED_JOBS];
};

/* As whoever changes items: the base, then its jobs, in an order that nobody knows. */
static qr_rc cancel_all(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct cancelling *cancelling = arg;
    QR_TRY(lock_bases(tx, &cancelling->base_id, 1, NULL, err));
    for (int i = 0; i < CANCELLED_JOBS; i++) {
        enum qr_job_state state;
        QR_TRY(qr_jobs_cancel(tx, cancelling->ids[(i * 7) % CANCELLED_JOBS], "cancelled", "by the test", &state, err));
    }
    return QR_OK;
}

static uint64_t reruns_of(struct qr_scene *scene)
{
    struct qr_db_stats stats;
    qr_db_stats(scene->world.db, &stats);
    return stats.reruns;
}

QR_DB_TEST(whoever_locks_a_base_and_cancels_its_jobs_meets_no_deadlock) /* L1 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, qr_clock_system());
    qr_world_write(&scene.world, make_bases, NULL);
    scene.handlers[0] = (struct qr_handler){"work", report_parts, NULL};
    scene.options.plan = (struct qr_plan){.lock = lock_bases, .part = touch_part, .ended = touch_ended};
    qr_scene_start(&scene);
    const uint64_t before = reruns_of(&scene);
    for (int round = 0; round < 60; round++) {
        struct cancelling cancelling = {.base_id = base_of((unsigned char)(1 + round % BASES))};
        for (int i = 0; i < CANCELLED_JOBS; i++) {
            cancelling.ids[i] =
                qr_world_add(&scene.world, (struct qr_job_spec){.base_id = cancelling.base_id,
                                                                .queue = i % 4 ? QR_QUEUE_CONVERT : QR_QUEUE_DELETE,
                                                                .type = i % 2 ? "quick" : "work"});
        }
        qr_world_write(&scene.world, cancel_all, &cancelling);
    }
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state IN " QR_JOB_OPEN_SQL, 0);
    QR_CHECK_INT(before, reruns_of(&scene));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

struct locks {
    int count;
    qr_uuid last;
};

static qr_rc note_lock(struct qr_tx *tx, const qr_uuid *base_ids, size_t count, void *arg, qr_err *err)
{
    struct locks *locks = arg;
    int64_t running;
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM job WHERE state = 4", QR_NO_VALS, NULL, &running, err));
    QR_CHECK(running > 0 && count == 1); /* nothing has been written about the jobs yet */
    locks->count++;
    locks->last = base_ids[0];
    return QR_OK;
}

static void write_nothing(struct qr_job_run *run, struct qr_outcome *outcome)
{
    outcome->kind = QR_OUTCOME_COMPLETED;
    QR_CHECK_INT(QR_OK, qr_job_report_part(run, QR_RELAXED, NULL, NULL));
}

QR_DB_TEST(a_base_is_locked_before_anything_is_written_about_its_job) /* L1 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    struct locks locks = {0};
    scene.handlers[0] = (struct qr_handler){"work", write_nothing, NULL};
    scene.options.plan = (struct qr_plan){.lock = note_lock, .arg = &locks};
    qr_world_add(&scene.world, (struct qr_job_spec){.base_id = base_of(9)});
    qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"}); /* of no base */
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 2);
    qr_scene_stop(&scene);
    QR_CHECK_INT(2, locks.count); /* the part, and the end */
    QR_CHECK(qr_uuid_equal(base_of(9), locks.last));
    qr_scene_close(&scene);
}

QR_DB_TEST(the_jobs_of_the_dead_are_freed_without_waiting_for_their_bases) /* L1, FENCE-4 */
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    struct locks locks = {0};
    struct qr_job taken[4];
    scene.options.plan = (struct qr_plan){.lock = note_lock, .arg = &locks};
    scene.options.slots[QR_QUEUE_CONVERT] = 0;
    for (unsigned char i = 1; i <= 2; i++) {
        qr_world_add_many(&scene.world, (struct qr_job_spec){.base_id = base_of(i)}, 2);
    }
    QR_CHECK_INT(4, qr_world_claim(&scene.world, qr_world_worker(&scene.world), taken, 4));
    qr_scene_start(&scene);
    QR_CHECK_INT(4, qr_world_count(&scene.world, QR_JOB_QUEUED));
    QR_CHECK_INT(0, locks.count);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* ---- before ---- */

struct before {
    struct qr_world *world;
    atomic_int calls, told;
    atomic_int failures; /* counted down */
};

static qr_rc add_nothing(struct qr_tx *tx QR_UNUSED, void *arg QR_UNUSED, qr_err *err QR_UNUSED)
{
    return QR_OK;
}

static qr_rc make_ready(const struct qr_ended *ended, size_t count, void *arg, qr_err *err)
{
    struct before *before = arg;
    QR_CHECK_INT(QR_OK, qr_db_write(before->world->db, QR_RELAXED, add_nothing, NULL, err)); /* in no transaction */
    atomic_fetch_add(&before->calls, 1);
    for (size_t i = 0; i < count; i++) {
        QR_CHECK_INT(QR_JOB_COMPLETED, ended[i].state);
        QR_CHECK_INT(QR_OUTCOME_COMPLETED, ended[i].outcome->kind);
        atomic_fetch_add(&before->told, 1);
    }
    if (atomic_load(&before->failures) > 0) {
        atomic_fetch_sub(&before->failures, 1);
        return qr_fail(err, QR_CODE_UNAVAILABLE, "it could not be made durable");
    }
    return QR_OK;
}

QR_DB_TEST(what_the_records_rely_on_is_made_ready_before_them)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    struct before before = {.world = &scene.world};
    scene.options.plan = (struct qr_plan){.before = make_ready, .arg = &before};
    qr_world_add_many(&scene.world, (struct qr_job_spec){0}, 20);
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 20);
    qr_scene_stop(&scene);
    QR_CHECK_INT(20, atomic_load(&before.told));
    qr_scene_close(&scene);
}

QR_DB_TEST(what_could_not_be_made_ready_is_the_failure_of_the_attempt)
{
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    struct before before = {.world = &scene.world};
    atomic_store(&before.failures, 1);
    scene.options.plan.before = make_ready;
    scene.options.plan.part = NULL;
    scene.options.plan.ended = NULL;
    scene.options.plan.arg = &before;
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 2 AND code = 'unavailable'", 1);
    QR_CHECK_TEXT("it could not be made durable", qr_world_find(&scene.world, id).message);
    QR_CHECK_INT(1, qr_world_find(&scene.world, id).attempts);
    qr_scene_go_to_next(&scene);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK_INT(2, atomic_load(&before.calls));
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* Jobs of type "work" rely on what is made ready; that waits for the gate. */
struct slow_before {
    atomic_bool gate;
    atomic_int begun;
};

static bool is_work(const struct qr_ended *ended)
{
    return strcmp(ended->job->type, "work") == 0;
}

static qr_rc wait_for_gate(const struct qr_ended *ended, size_t count, void *arg, qr_err *err QR_UNUSED)
{
    struct slow_before *before = arg;
    for (size_t i = 0; i < count; i++) {
        QR_CHECK(is_work(&ended[i]));
    }
    atomic_fetch_add(&before->begun, 1);
    while (!atomic_load(&before->gate)) {
        qr_world_pause_briefly();
    }
    return QR_OK;
}

static void open_with_slow_before(struct qr_scene *scene, struct qr_test *t, struct slow_before *before)
{
    qr_scene_open(scene, t, NULL);
    *before = (struct slow_before){0};
    scene->options.plan = (struct qr_plan){.relies = is_work, .before = wait_for_gate, .arg = before};
}

QR_DB_TEST(what_relies_on_nothing_is_recorded_while_others_are_made_ready) /* P1 */
{
    struct qr_scene scene;
    struct slow_before before;
    open_with_slow_before(&scene, t, &before);
    const qr_uuid first = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_scene_wait_for(&before.begun, 1);
    const qr_uuid other = qr_world_add(&scene.world, (struct qr_job_spec){.type = "quick"});
    qr_world_wait_for(&scene.world, QR_COMPLETED, 1);
    QR_CHECK_INT(QR_JOB_COMPLETED, qr_world_state(&scene.world, other));
    QR_CHECK_INT(QR_JOB_RUNNING, qr_world_state(&scene.world, first));
    atomic_store(&before.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, 2);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(threads_go_on_while_what_they_ended_is_made_ready) /* P1, P2 */
{
    enum { JOBS = 10 };
    struct qr_scene scene;
    struct slow_before before;
    open_with_slow_before(&scene, t, &before);
    qr_world_add_many(&scene.world, (struct qr_job_spec){0}, JOBS);
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.runs, JOBS);
    QR_CHECK_INT(0, qr_world_i64(&scene.world, QR_COMPLETED));
    atomic_store(&before.gate, true);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS);
    qr_scene_stop(&scene);
    QR_CHECK_INT(JOBS, atomic_load(&scene.script.runs));
    qr_scene_close(&scene);
}

static void *open_gate(void *arg)
{
    struct slow_before *before = arg;
    qr_world_pause_briefly();
    atomic_store(&before->gate, true);
    return NULL;
}

QR_DB_TEST(what_is_being_made_ready_when_the_runner_stops_is_recorded)
{
    struct qr_scene scene;
    struct slow_before before;
    pthread_t opener;
    open_with_slow_before(&scene, t, &before);
    const qr_uuid id = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_scene_wait_for(&before.begun, 1);
    QR_CHECK_INT(0, pthread_create(&opener, NULL, open_gate, &before));
    qr_scene_stop(&scene);
    pthread_join(opener, NULL);
    QR_CHECK_INT(QR_JOB_COMPLETED, qr_world_state(&scene.world, id));
    QR_CHECK_INT(0, qr_world_find(&scene.world, id).attempts);
    qr_scene_close(&scene);
}

/* ---- ended ---- */

struct told {
    struct qr_script *script;
    qr_uuid refused;
    atomic_int count_max;
};

/* Keeps the first round until all that run have ended: the next one has several. */
static qr_rc wait_for_all(const struct qr_ended *ended QR_UNUSED, size_t count QR_UNUSED, void *arg,
                          qr_err *err QR_UNUSED)
{
    const struct told *told = arg;
    for (int i = 0; i < 20 || atomic_load(&told->script->running) > 0; i++) {
        qr_world_pause_briefly();
    }
    return QR_OK;
}

static qr_rc refuse_one(struct qr_tx *tx QR_UNUSED, const struct qr_ended *ended, size_t count, void *arg, qr_err *err)
{
    struct told *told = arg;
    bool has_refused = false;
    for (size_t i = 0; i < count; i++) {
        has_refused = has_refused || qr_uuid_equal(told->refused, ended[i].job->id);
    }
    atomic_store(&told->count_max, QR_MAX(atomic_load(&told->count_max), (int)count));
    return has_refused ? qr_fail(err, QR_CODE_INVALID_VALUE, "not this one") : QR_OK;
}

QR_DB_TEST(one_that_the_plan_refuses_does_not_undo_the_others_of_its_round)
{
    enum { JOBS = 8 };
    struct qr_scene scene;
    qr_scene_open(&scene, t, NULL);
    struct told told = {.script = &scene.script};
    scene.options.slots[QR_QUEUE_CONVERT] = JOBS;
    scene.options.plan = (struct qr_plan){.before = wait_for_all, .ended = refuse_one, .arg = &told};
    scene.script.waits = true;
    qr_world_add_many(&scene.world, (struct qr_job_spec){0}, JOBS - 1);
    told.refused = qr_world_add(&scene.world, (struct qr_job_spec){0});
    qr_scene_start(&scene);
    qr_scene_wait_for(&scene.script.running, JOBS);
    atomic_store(&scene.script.gate, true);
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state = 2 AND code = 'invalid_value'", 1);
    qr_world_wait_for(&scene.world, QR_COMPLETED, JOBS - 1);
    QR_CHECK_INT(QR_JOB_SCHEDULED, qr_world_state(&scene.world, told.refused)); /* I1 */
    QR_CHECK(atomic_load(&told.count_max) > 1);
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

/* By the job's generation. */
static const qr_code refusals[] = {QR_CODE_UNAVAILABLE, QR_CODE_INTERNAL, QR_CODE_DATA_CORRUPT, QR_CODE_STALE,
                                   QR_CODE_LOST};

struct refusing {
    atomic_bool goes_on; /* it refuses nothing any more */
    atomic_int told[QR_COUNT(refusals)];
};

static qr_rc refuse_or_count(struct qr_tx *tx QR_UNUSED, const struct qr_ended *ended, size_t count, void *arg,
                             qr_err *err)
{
    struct refusing *refusing = arg;
    if (!atomic_load(&refusing->goes_on)) {
        return qr_fail(err, refusals[ended[0].job->generation], "the plan says no");
    }
    for (size_t i = 0; i < count; i++) {
        atomic_store(&refusing->told[ended[i].job->generation], (int)ended[i].state);
    }
    return QR_OK;
}

/* The item of a job waits for it until the plan was told: whatever the plan says, also that it is lost, the job is there. */
static void check_that_jobs_stay(struct qr_test *t, enum qr_outcome_kind kind, enum qr_job_state end)
{
    struct qr_scene scene;
    struct refusing refusing = {0};
    qr_scene_open(&scene, t, NULL);
    scene.options.plan = (struct qr_plan){.ended = refuse_or_count, .arg = &refusing};
    scene.script.kind = kind;
    scene.script.code = kind == QR_OUTCOME_COMPLETED ? QR_CODE_NONE : QR_CODE_CORRUPT;
    scene.script.times = QR_SCENE_ALWAYS;
    for (size_t i = 0; i < QR_COUNT(refusals); i++) {
        qr_world_add(&scene.world, (struct qr_job_spec){.generation = (int64_t)i});
    }
    qr_scene_start(&scene);
    for (int refused = 1; refused <= QR_JOB_ATTEMPTS_MAX + 1; refused++) {
        char sql[96];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM job WHERE state = 2 AND attempts = %d", refused);
        qr_world_wait_for(&scene.world, sql, QR_COUNT(refusals));
        atomic_store(&refusing.goes_on, refused > QR_JOB_ATTEMPTS_MAX);
        qr_test_clock_advance(QR_JOB_BACKOFF_MS_MAX);
        qr_world_notify(&scene.world);
    }
    qr_world_wait_for(&scene.world, "SELECT count(*) FROM job WHERE state IN " QR_JOB_OPEN_SQL, 0);
    for (size_t i = 0; i < QR_COUNT(refusals); i++) {
        QR_CHECK_INT(end, atomic_load(&refusing.told[i]));
    }
    qr_scene_stop(&scene);
    qr_scene_close(&scene);
}

QR_DB_TEST(a_job_that_has_completed_ends_only_when_the_plan_was_told) /* I1, AGAIN-6 */
{
    check_that_jobs_stay(t, QR_OUTCOME_COMPLETED, QR_JOB_COMPLETED);
}

QR_DB_TEST(a_job_that_has_failed_ends_only_when_the_plan_was_told) /* I1, AGAIN-6 */
{
    check_that_jobs_stay(t, QR_OUTCOME_FAILED, QR_JOB_FAILED);
}
