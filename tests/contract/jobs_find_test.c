/* Jobs as people ask for them, over every database. */
#include "store/jobs_find.h"

#include "store/schema.h"
#include "support/db_fixture.h"

struct world {
    struct qr_db *db;
    struct qr_uuid_gen ids;
};

static struct world open_world(struct qr_test *t)
{
    struct world world = {.db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count)};
    qr_uuid_gen_init(&world.ids, qr_clock_system(), qr_rand_system());
    return world;
}

static void close_world(struct world *world)
{
    qr_db_close(world->db);
    qr_uuid_gen_done(&world->ids);
}

/* One call of the store in a transaction of its own. */
struct call {
    struct world *world;
    struct qr_job_spec spec;
    qr_str prefix;
    qr_uuid id, ret_id;
    enum qr_job_state state;
    bool found;
    int64_t count;
};

static qr_rc add(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_jobs_add(tx, call->id, &call->spec, &call->ret_id, &call->found, err);
}

static qr_rc cancel(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_jobs_cancel(tx, call->id, "cancelled", "for the test", &call->state, err);
}

static qr_rc again(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_jobs_add_again(tx, call->id, qr_uuid_next(&call->world->ids), &call->ret_id, &call->found, err);
}

static qr_rc find_prefix(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_jobs_find_prefix(tx, call->prefix, &call->ret_id, err);
}

static qr_rc find_blocker(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_jobs_find_blocker(tx, call->id, &call->found, &call->ret_id, &call->state, err);
}

static qr_rc read_state(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_job job = {0};
    qr_arena_init(&arena, 0);
    QR_TRY(qr_jobs_find(tx, call->id, &arena, &call->found, &job, err));
    call->state = job.state;
    return QR_OK;
}

static qr_rc complete(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_tx_exec(tx, "UPDATE job SET state = 5, finished_at = 1 WHERE id = ?1",
                      QR_VALS(qr_val_blob(call->id.bytes, QR_UUID_BYTES)), NULL, err);
}

static qr_rc count_live(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_workers_count_live(tx, &call->count, err);
}

static qr_rc register_worker(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_worker_register(tx, call->id, "test", err);
}

static void write_call(struct call *call, qr_tx_fn *fn)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(call->world->db, QR_DURABLE, fn, call, &err));
}

static qr_uuid add_job(struct world *world, qr_uuid id, const char *idempotency_key, const char *serial_key)
{
    struct call call = {.world = world, .id = id};
    call.spec = (struct qr_job_spec){.queue = QR_QUEUE_CONVERT,
                                     .type = "test",
                                     .idempotency_key = qr_str_of(idempotency_key),
                                     .serial_key = qr_str_of(serial_key)};
    write_call(&call, add);
    return call.ret_id;
}

static enum qr_job_state state_of(struct world *world, qr_uuid id)
{
    qr_err err;
    struct call call = {.world = world, .id = id};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, read_state, &call, &err));
    QR_CHECK(call.found);
    return call.state;
}

static void end_job(struct world *world, qr_uuid id, qr_tx_fn *how)
{
    struct call call = {.world = world, .id = id};
    write_call(&call, how);
}

/* ---- by the beginning of an id ---- */

static void check_prefix(struct world *world, const char *prefix, qr_code code, const char *found)
{
    struct call call = {.world = world, .prefix = qr_str_of(prefix)};
    qr_err err = {0};
    qr_test_set_context("prefix %s", prefix);
    if (code == QR_CODE_NONE) {
        char text[QR_UUID_TEXT_SIZE];
        QR_CHECK_RC(QR_OK, qr_db_read(world->db, find_prefix, &call, &err));
        qr_uuid_format(call.ret_id, text);
        QR_CHECK_TEXT(found, text);
    } else {
        QR_CHECK_CODE(code, qr_db_read(world->db, find_prefix, &call, &err));
    }
    qr_test_set_context("%s", "");
}

QR_DB_TEST(job_is_found_by_a_beginning_that_no_other_has)
{
    static const char one[] = "01938b2f-7a10-7abc-8def-000000000001", two[] = "01938b2f-7a10-7abc-8def-0000000000f1",
                      three[] = "01938b2f-7a1f-7abc-8def-000000000001";
    struct world world = open_world(t);
    const char *const texts[] = {one, two, three};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        qr_uuid id;
        QR_CHECK(qr_uuid_parse(qr_str_of(texts[i]), &id));
        add_job(&world, id, "", "");
    }
    check_prefix(&world, one, QR_CODE_NONE, one);
    check_prefix(&world, "01938b2f-7a1f", QR_CODE_NONE, three);
    check_prefix(&world, "01938B2F-7A1F-", QR_CODE_NONE, three);
    check_prefix(&world, "01938b2f-7a10-7abc-8def-0000000000f", QR_CODE_NONE, two);
    check_prefix(&world, "01938b2f-7a10-7abc-8def-00000000000", QR_CODE_NONE, one);
    check_prefix(&world, "0", QR_CODE_INVALID_VALUE, NULL);
    check_prefix(&world, "01938b2f-7a1", QR_CODE_INVALID_VALUE, NULL);
    check_prefix(&world, "01938b2f-7a2", QR_CODE_NOT_FOUND, NULL);
    check_prefix(&world, "01938b2f7", QR_CODE_NOT_FOUND, NULL);
    check_prefix(&world, "", QR_CODE_NOT_FOUND, NULL);
    check_prefix(&world, "01938b2f-7a10-7abc-8def-0000000000011", QR_CODE_NOT_FOUND, NULL);
    check_prefix(&world, "0x", QR_CODE_NOT_FOUND, NULL);
    close_world(&world);
}

/* ---- why it waits ---- */

QR_DB_TEST(blocker_is_the_active_job_of_the_serial_key)
{
    struct world world = open_world(t);
    qr_err err;
    const qr_uuid first = add_job(&world, qr_uuid_next(&world.ids), "", "key");
    struct call call = {.world = &world, .id = add_job(&world, qr_uuid_next(&world.ids), "", "key")};
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, find_blocker, &call, &err));
    QR_CHECK(call.found && qr_uuid_equal(call.ret_id, first));
    QR_CHECK_INT(QR_JOB_QUEUED, call.state);

    call.id = first;
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, find_blocker, &call, &err));
    QR_CHECK(!call.found);
    call.id = add_job(&world, qr_uuid_next(&world.ids), "", "");
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, find_blocker, &call, &err));
    QR_CHECK(!call.found);
    close_world(&world);
}

QR_DB_TEST(worker_with_a_lease_counts_as_live)
{
    struct world world = open_world(t);
    qr_err err;
    struct call call = {.world = &world, .id = qr_uuid_next(&world.ids), .count = -1};
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, count_live, &call, &err));
    QR_CHECK_INT(0, call.count);
    write_call(&call, register_worker);
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, count_live, &call, &err));
    QR_CHECK_INT(1, call.count);
    close_world(&world);
}

/* ---- once more ---- */

static void check_again_refused(struct world *world, qr_uuid id, qr_code code)
{
    struct call call = {.world = world, .id = id};
    qr_err err;
    QR_CHECK_CODE(code, qr_db_write(world->db, QR_DURABLE, again, &call, &err));
}

QR_DB_TEST(only_what_failed_or_was_cancelled_is_added_again)
{
    struct world world = open_world(t);
    struct call call = {.world = &world, .id = add_job(&world, qr_uuid_next(&world.ids), "", "")};
    check_again_refused(&world, call.id, QR_CODE_NOT_TERMINAL);
    check_again_refused(&world, qr_uuid_next(&world.ids), QR_CODE_NOT_FOUND);
    end_job(&world, call.id, cancel);
    write_call(&call, again);
    QR_CHECK(!call.found && !qr_uuid_equal(call.ret_id, call.id));
    QR_CHECK_INT(QR_JOB_QUEUED, state_of(&world, call.ret_id));
    QR_CHECK_INT(QR_JOB_CANCELLED, state_of(&world, call.id));
    end_job(&world, call.ret_id, complete);
    check_again_refused(&world, call.ret_id, QR_CODE_NOT_FAILED);
    close_world(&world);
}

QR_DB_TEST(job_added_again_keeps_its_keys) /* J2 */
{
    struct world world = open_world(t);
    struct call call = {.world = &world, .id = add_job(&world, qr_uuid_next(&world.ids), "idempotent", "serial")};
    end_job(&world, call.id, cancel);
    const qr_uuid other = add_job(&world, qr_uuid_next(&world.ids), "", "serial");
    write_call(&call, again);
    QR_CHECK(!call.found);
    QR_CHECK_INT(QR_JOB_QUEUED, state_of(&world, other));
    QR_CHECK_INT(QR_JOB_BLOCKED, state_of(&world, call.ret_id));
    const qr_uuid added = call.ret_id;
    write_call(&call, again); /* an open one of the key is the answer */
    QR_CHECK(call.found && qr_uuid_equal(call.ret_id, added));
    end_job(&world, other, cancel);
    QR_CHECK_INT(QR_JOB_QUEUED, state_of(&world, added)); /* J3 */
    close_world(&world);
}
