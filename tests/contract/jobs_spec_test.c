/* What qr_jobs_add takes and what it refuses, over every database. */
#include "support/jobs_fixture.h"

struct adding {
    struct qr_world *world;
    struct qr_job_spec spec;
    qr_uuid id;
};

static qr_rc add(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct adding *adding = arg;
    return qr_jobs_add(tx, qr_uuid_next(&adding->world->ids), &adding->spec, &adding->id, NULL, err);
}

static qr_code code_of_add(struct qr_world *world, struct qr_job_spec spec)
{
    qr_err err = {0};
    struct adding adding = {world, spec, {{0}}};
    return qr_db_write(world->db, QR_RELAXED, add, &adding, &err) == QR_OK ? QR_CODE_NONE : err.code;
}

static struct qr_job_spec with_type(const char *type)
{
    return (struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = type};
}

QR_DB_TEST(a_job_whose_queue_or_type_there_cannot_be_is_refused)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    char type[QR_JOB_TYPE_MAX + 1];
    memset(type, 'x', sizeof type);
    type[QR_JOB_TYPE_MAX] = '\0';
    QR_CHECK_INT(QR_CODE_INVALID_VALUE, code_of_add(&world, with_type(type)));
    type[QR_JOB_TYPE_MAX - 1] = '\0';
    QR_CHECK_INT(QR_CODE_NONE, code_of_add(&world, with_type(type)));
    QR_CHECK_INT(QR_CODE_INVALID_VALUE, code_of_add(&world, with_type("")));
    QR_CHECK_INT(QR_CODE_INVALID_VALUE, code_of_add(&world, with_type(NULL)));
    QR_CHECK_INT(QR_CODE_INVALID_VALUE, code_of_add(&world, with_type("caf\xe9")));
    for (int queue = -1; queue <= QR_QUEUE_END; queue++) {
        const bool is_known = queue >= QR_QUEUE_EXPAND && queue < QR_QUEUE_END;
        const struct qr_job_spec spec = {.queue = (enum qr_queue)queue, .type = "work"};
        QR_CHECK_INT(is_known ? QR_CODE_NONE : QR_CODE_INVALID_VALUE, code_of_add(&world, spec));
    }
    qr_world_close(&world);
}

QR_DB_TEST(args_are_text_of_at_most_64_kb)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    static char args[QR_JOB_ARGS_MAX + 1];
    memset(args, 'x', sizeof args);
    args[0] = args[QR_JOB_ARGS_MAX - 1] = '"';
    struct qr_job_spec spec = with_type("work");
    spec.args = (qr_str){args, QR_JOB_ARGS_MAX + 1};
    QR_CHECK_INT(QR_CODE_PAYLOAD_TOO_LARGE, code_of_add(&world, spec));
    spec.args.len = QR_JOB_ARGS_MAX;
    QR_CHECK_INT(QR_CODE_NONE, code_of_add(&world, spec));
    spec.args = QR_STR("\"caf\xe9\"");
    QR_CHECK_INT(QR_CODE_INVALID_VALUE, code_of_add(&world, spec));
    spec.args = QR_STR("\"a\0b\"");
    QR_CHECK_INT(QR_CODE_INVALID_VALUE, code_of_add(&world, spec));
    qr_world_close(&world);
}

QR_DB_TEST(numbers_out_of_range_are_refused_or_clamped)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    struct qr_job_spec spec = with_type("work");
    spec.priority = QR_JOB_PRIORITY_MAX + 1;
    QR_CHECK_INT(QR_CODE_INVALID_VALUE, code_of_add(&world, spec));
    spec.priority = INT32_MIN;
    QR_CHECK_INT(QR_CODE_INVALID_VALUE, code_of_add(&world, spec));
    spec.priority = -QR_JOB_PRIORITY_MAX;
    QR_CHECK_INT(QR_CODE_NONE, code_of_add(&world, spec));
    spec.time_limit_ms = -1;
    QR_CHECK_INT(QR_CODE_INVALID_VALUE, code_of_add(&world, spec));
    spec.time_limit_ms = spec.run_at_ms = INT64_MAX;
    const struct qr_job job = qr_world_find(&world, qr_world_add(&world, spec));
    QR_CHECK_INT(QR_JOB_TIME_LIMIT_MS_MAX, job.time_limit_ms);
    QR_CHECK_INT(QR_WORLD_BEGIN_MS + QR_JOB_RUN_AT_MS_MAX, job.run_at_ms);
    qr_world_close(&world);
}

/* DB-7 */
QR_DB_TEST(many_jobs_with_the_largest_args_are_claimed_and_freed)
{
    enum { COUNT = 256 };
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    static char args[QR_JOB_ARGS_MAX];
    memset(args, 'x', sizeof args);
    args[0] = args[sizeof args - 1] = '"';
    for (int i = 0; i < COUNT; i++) {
        qr_world_add(&world, (struct qr_job_spec){.args = {args, sizeof args}});
    }
    static struct qr_job jobs[COUNT];
    const qr_uuid worker = qr_world_worker(&world);
    size_t claimed_count = 0;
    while (claimed_count < COUNT) {
        const size_t count = qr_world_claim(&world, worker, jobs, COUNT);
        QR_CHECK(count > 0);
        QR_CHECK_INT(QR_JOB_ARGS_MAX, strlen(jobs[count - 1].args));
        claimed_count += count;
    }
    QR_CHECK_INT(1, qr_world_declare_dead(&world, true, (qr_uuid){0})); /* and so is their rescue */
    while (qr_world_free_jobs(&world) > 0) {
    }
    QR_CHECK_INT(COUNT, qr_world_count(&world, QR_JOB_QUEUED));
    qr_world_close(&world);
}
