/* Jobs that were put off because of their base, over every database. */
#include "store/jobs_held.h"

#include "store/ids.h"
#include "support/jobs_fixture.h"

struct call {
    qr_uuid base_id;
    int64_t count;
};

static qr_rc forward(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_jobs_forward_held(tx, call->base_id, &call->count, err);
}

static int64_t forward_base(struct qr_world *world, unsigned char base)
{
    struct call call = {.base_id.bytes[0] = base};
    qr_world_write(world, forward, &call);
    return call.count;
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

/* A job that is put off for a minute. */
static qr_uuid put_off(struct qr_world *world, enum qr_queue queue, unsigned char base, const char *code)
{
    struct qr_job_spec spec = {.queue = queue, .type = "work", .run_at_ms = QR_WORLD_BEGIN_MS + 60000};
    spec.base_id.bytes[0] = base;
    struct mark mark = {qr_world_add(world, spec), code};
    qr_world_write(world, set_code, &mark);
    return mark.id;
}

static void check_state(struct qr_world *world, enum qr_job_state state, qr_uuid id)
{
    QR_CHECK_INT(state, qr_world_state(world, id));
}

/* THING-2 */
QR_DB_TEST(jobs_of_a_base_that_is_whole_again_do_not_wait_for_their_time)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const qr_uuid held = put_off(&world, QR_QUEUE_EMBED, 1, "base_failed");
    const qr_uuid lost = put_off(&world, QR_QUEUE_CONVERT, 1, "index_lost");
    const qr_uuid other_base = put_off(&world, QR_QUEUE_EMBED, 2, "base_failed");
    const qr_uuid other_reason = put_off(&world, QR_QUEUE_EMBED, 1, "rate_limited");
    const qr_uuid no_reason = put_off(&world, QR_QUEUE_DELETE, 1, "");
    QR_CHECK_INT(2, forward_base(&world, 1));
    check_state(&world, QR_JOB_QUEUED, held);
    check_state(&world, QR_JOB_QUEUED, lost);
    QR_CHECK_INT(QR_WORLD_BEGIN_MS, qr_world_find(&world, held).run_at_ms);
    check_state(&world, QR_JOB_SCHEDULED, other_base);
    check_state(&world, QR_JOB_SCHEDULED, other_reason);
    check_state(&world, QR_JOB_SCHEDULED, no_reason);
    QR_CHECK_INT(0, forward_base(&world, 1));
    qr_world_close(&world);
}

static qr_rc set_all_codes(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE job SET code = 'base_failed'", QR_NO_VALS, NULL, err);
}

QR_DB_TEST(no_more_of_them_are_brought_forward_at_once_than_one_transaction_should_write)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    const struct qr_job_spec spec = {
        .queue = QR_QUEUE_EMBED, .type = "work", .run_at_ms = QR_WORLD_BEGIN_MS + 60000, .base_id.bytes[0] = 1};
    qr_world_add_many(&world, spec, QR_HELD_FORWARD_MAX + 3);
    qr_world_write(&world, set_all_codes, NULL);
    QR_CHECK_INT(QR_HELD_FORWARD_MAX, forward_base(&world, 1));
    QR_CHECK_INT(3, forward_base(&world, 1));
    qr_world_close(&world);
}
