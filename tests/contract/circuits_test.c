/* Word of endpoints that refuse to be asked, over every database. */
#include "store/circuits.h"

#include "store/schema.h"
#include "support/db_fixture.h"

struct call {
    struct qr_circuit_row row;
    struct qr_arena arena;
    bool found;
};

static qr_rc save(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_circuit_save(tx, &((struct call *)arg)->row, err);
}

static qr_rc take_away(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_circuit_remove(tx, ((struct call *)arg)->row.id, err);
}

static qr_rc find(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    unsigned char id[QR_HASH_BYTES];
    memcpy(id, call->row.id, sizeof id);
    return qr_circuit_find(tx, id, &call->arena, &call->found, &call->row, err);
}

static struct call call_of(unsigned char first_byte)
{
    struct call call = {.row = {.url = "https://models.example/v1",
                                .code = "endpoint_refused",
                                .message = "the key is wrong: caf\xc3\xa9",
                                .since_ms = 1000,
                                .next_try_ms = 31000}};
    call.row.id[0] = first_byte; /* zeroes behind it: bytes, no text */
    qr_arena_init(&call.arena, 0);
    return call;
}

static void look_up(struct qr_db *db, struct call *call)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, find, call, &err));
}

QR_DB_TEST(a_circuit_is_there_from_its_opening_to_its_end) /* AGAIN-2 */
{
    qr_err err;
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    struct call call = call_of(1), other = call_of(2);
    look_up(db, &call);
    QR_CHECK(!call.found);
    call.row = call_of(1).row;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, save, &call, &err));
    look_up(db, &call);
    QR_CHECK(call.found);
    QR_CHECK_TEXT("https://models.example/v1", call.row.url);
    QR_CHECK_TEXT("endpoint_refused", call.row.code);
    QR_CHECK_TEXT("the key is wrong: caf\xc3\xa9", call.row.message);
    QR_CHECK_INT(1000, call.row.since_ms);
    QR_CHECK_INT(31000, call.row.next_try_ms);
    look_up(db, &other);
    QR_CHECK(!other.found);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, take_away, &call, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, take_away, &call, &err)); /* nothing is fine too */
    look_up(db, &call);
    QR_CHECK(!call.found);
    qr_arena_done(&call.arena);
    qr_arena_done(&other.arena);
    qr_db_close(db);
}

QR_DB_TEST(a_circuit_that_stays_open_keeps_its_beginning)
{
    qr_err err;
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    struct call call = call_of(3);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, save, &call, &err));
    call.row.since_ms = 70000; /* of another process, which saw it later */
    call.row.next_try_ms = 130000;
    call.row.message = "the quota is used up";
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, save, &call, &err));
    look_up(db, &call);
    QR_CHECK_INT(1000, call.row.since_ms);
    QR_CHECK_INT(130000, call.row.next_try_ms);
    QR_CHECK_TEXT("the quota is used up", call.row.message);
    qr_arena_done(&call.arena);
    qr_db_close(db);
}
