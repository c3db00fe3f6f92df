/* What is done once, over every database. */
#include "store/idempotency.h"

#include "store/schema.h"
#include "support/db_fixture.h"

struct call {
    unsigned char key[QR_HASH_256_BYTES], request[QR_HASH_BYTES];
    int64_t now_ms;
    struct qr_arena *arena;
    enum qr_idempotency_state state;
    struct qr_idempotency_answer answer;
};

static qr_rc begin(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_idempotency_begin(tx, call->key, call->request, call->now_ms, call->arena, &call->state, &call->answer,
                                err);
}

static qr_rc end(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_idempotency_end(tx, ((struct call *)arg)->key, 202, QR_STR("{\"text\":\"caf\xc3\xa9\"}"), err);
}

static qr_rc forget(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_idempotency_forget(tx, ((struct call *)arg)->key, err);
}

static void check_begin(struct qr_db *db, struct call *call, enum qr_idempotency_state state)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, begin, call, &err));
    QR_CHECK_INT(state, call->state);
}

QR_DB_TEST(request_is_begun_once_and_answered_alike_for_a_day) /* HTTP-5 */
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_err err;
    qr_arena_init(&arena, 0);
    struct call call = {.key = {1, 0, 2}, .request = {3}, .now_ms = 1000, .arena = &arena};
    struct call other = call, mine = call;
    other.request[0] = 4;
    mine.key[0] = 9;
    check_begin(db, &call, QR_IDEMPOTENCY_NEW);
    check_begin(db, &call, QR_IDEMPOTENCY_PENDING);
    check_begin(db, &other, QR_IDEMPOTENCY_OTHER);
    check_begin(db, &mine, QR_IDEMPOTENCY_NEW);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, end, &call, &err));
    call.now_ms += QR_IDEMPOTENCY_KEPT_MS;
    check_begin(db, &call, QR_IDEMPOTENCY_DONE);
    QR_CHECK_INT(202, call.answer.status);
    QR_CHECK_TEXT("{\"text\":\"caf\xc3\xa9\"}", call.answer.body);
    check_begin(db, &other, QR_IDEMPOTENCY_OTHER);
    check_begin(db, &mine, QR_IDEMPOTENCY_PENDING);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, forget, &mine, &err));
    check_begin(db, &mine, QR_IDEMPOTENCY_NEW);
    call.now_ms++;
    check_begin(db, &call, QR_IDEMPOTENCY_NEW); /* a day is over */
    qr_db_close(db);
}
