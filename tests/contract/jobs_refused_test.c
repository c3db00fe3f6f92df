/* Jobs that were put off because an endpoint refuses, over every database. */
#include "store/jobs_refused.h"

#include "store/ids.h"
#include "support/jobs_fixture.h"

struct call {
    struct qr_refused_cursor at, next;
    bool has_more;
    int64_t count;
};

static qr_rc forward(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_jobs_forward_refused(tx, &call->at, &call->next, &call->has_more, &call->count, err);
}

static qr_rc try_some(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_jobs_try_refused(tx, arg, err);
}

struct mark {
    qr_uuid id;
    const char *code;
};

static qr_rc set_code(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct mark *mark = arg;
    return qr_tx_exec(tx, "UPDATE job SET code = ?2 WHERE id = ?1",
                      QR_VALS(qr_val_uuid(&mark->id), qr_val_text(qr_str_of(mark->code))), NULL, err);
}

static qr_rc set_all_codes(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE job SET code = 'endpoint_refused'", QR_NO_VALS, NULL, err);
}

/* A job that is put off for ten minutes. */
static qr_uuid put_off(struct qr_world *world, enum qr_queue queue, unsigned char base, const char *code)
{
    struct qr_job_spec spec = {.queue = queue, .type = "work", .run_at_ms = QR_WORLD_BEGIN_MS + 600000};
    spec.base_id.bytes[0] = base;
    struct mark mark = {qr_world_add(world, spec), code};
    qr_world_write(world, set_code, &mark);
    return mark.id;
}

/* Returns how many were brought forward. */
static int64_t forward_all(struct qr_world *world, int *ret_steps)
{
    struct call call = {.has_more = true};
    int64_t sum = 0;
    for (*ret_steps = 0; call.has_more; ++*ret_steps) {
        qr_world_write(world, forward, &call);
        call.at = call.next;
        sum += call.count;
    }
    return sum;
}

QR_DB_TEST(jobs_that_wait_for_an_endpoint_are_brought_forward_and_no_others) /* AGAIN-2 */
{
    struct qr_world world;
    int steps;
    qr_world_open(&world, t, NULL);
    const qr_uuid refused[] = {put_off(&world, QR_QUEUE_EMBED, 1, "endpoint_refused"),
                               put_off(&world, QR_QUEUE_ASSETS, 1, "endpoint_refused"),
                               put_off(&world, QR_QUEUE_CONVERT, 2, "endpoint_refused")};
    const qr_uuid limited = put_off(&world, QR_QUEUE_EMBED, 1, "rate_limited");
    const qr_uuid delete = put_off(&world, QR_QUEUE_DELETE, 1, "");
    QR_CHECK_INT(3, forward_all(&world, &steps));
    for (size_t i = 0; i < QR_COUNT(refused); i++) {
        const struct qr_job job = qr_world_find(&world, refused[i]);
        QR_CHECK_INT(QR_JOB_QUEUED, job.state);
        QR_CHECK(job.run_at_ms < QR_WORLD_BEGIN_MS + 600000); /* what is taken for stale counts from now on */
    }
    QR_CHECK_INT(QR_JOB_SCHEDULED, qr_world_state(&world, limited));
    QR_CHECK_INT(QR_JOB_SCHEDULED, qr_world_state(&world, delete));
    QR_CHECK_INT(0, forward_all(&world, &steps));
    qr_world_close(&world);
}

QR_DB_TEST(many_that_wait_are_brought_forward_in_bounded_steps)
{
    enum { MANY = 2 * QR_JOB_BATCH_MAX + 10 };
    struct qr_world world;
    int steps;
    qr_world_open(&world, t, NULL);
    struct qr_world_many many = {
        &world, {.queue = QR_QUEUE_EMBED, .type = "work", .run_at_ms = QR_WORLD_BEGIN_MS + 600000}, MANY};
    qr_world_write(&world, qr_world_add_many_in, &many);
    qr_world_write(&world, set_all_codes, NULL);
    struct call call = {0};
    qr_world_write(&world, forward, &call);
    QR_CHECK_INT(QR_JOB_BATCH_MAX, call.count);
    QR_CHECK(call.has_more);
    QR_CHECK_INT(MANY - QR_JOB_BATCH_MAX, forward_all(&world, &steps));
    QR_CHECK(steps >= 3);
    QR_CHECK_INT(MANY, qr_world_count(&world, QR_JOB_QUEUED));
    qr_world_close(&world);
}

QR_DB_TEST(one_job_of_each_base_and_queue_tries) /* AGAIN-2 */
{
    struct qr_world world;
    int64_t count;
    qr_world_open(&world, t, NULL);
    put_off(&world, QR_QUEUE_EMBED, 1, "rate_limited");
    const qr_uuid first = put_off(&world, QR_QUEUE_EMBED, 1, "endpoint_refused");
    const qr_uuid second = put_off(&world, QR_QUEUE_EMBED, 1, "endpoint_refused");
    const qr_uuid other = put_off(&world, QR_QUEUE_EMBED, 2, "endpoint_refused");
    const qr_uuid picture = put_off(&world, QR_QUEUE_ASSETS, 1, "endpoint_refused");
    qr_world_write(&world, try_some, &count);
    QR_CHECK_INT(3, count);
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&world, first));
    QR_CHECK_INT(QR_JOB_SCHEDULED, qr_world_state(&world, second));
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&world, other));
    QR_CHECK_INT(QR_JOB_QUEUED, qr_world_state(&world, picture));
    qr_world_close(&world);
}
