/* The vector cache, over every database. */
#include "store/vectors.h"

#include "store/schema.h"
#include "support/db_fixture.h"

#include <float.h>

enum { DIMENSION = 5 };

struct call {
    unsigned char key[QR_VECTOR_KEY_BYTES];
    float vector[DIMENSION];
    int dimension;
    int64_t kept_bytes;
    bool found;
};

static qr_rc add(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_vector_add(tx, call->key, call->vector, call->dimension, call->kept_bytes, err);
}

static qr_rc find(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    struct qr_vector_found found;
    QR_TRY(qr_vector_use(tx, call->key, call->dimension, call->vector, &found, err));
    call->found = found.is_found;
    return QR_OK;
}

static struct call call_of(const char *fingerprint, const char *text)
{
    struct call call = {.dimension = DIMENSION};
    qr_vector_key(fingerprint, qr_str_of(text), call.key);
    return call;
}

static void add_vector(struct qr_db *db, const char *text, const float vector[static DIMENSION])
{
    qr_err err;
    struct call call = call_of("hash:1", text);
    memcpy(call.vector, vector, sizeof call.vector);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, add, &call, &err));
}

static bool is_found(struct qr_db *db, struct call *call)
{
    qr_err err;
    call->found = true;
    QR_CHECK_RC(QR_OK, qr_db_read(db, find, call, &err));
    return call->found;
}

static const float VECTOR[DIMENSION] = {0.5F, -0.25F, FLT_MIN, -FLT_MAX, 1.0F / 3};

static void check_vector(const struct call *call)
{
    for (int i = 0; i < DIMENSION; i++) {
        QR_CHECK(call->vector[i] == VECTOR[i]);
    }
}

QR_DB_TEST(a_vector_is_found_bit_by_bit_after_a_restart) /* PAID-1 */
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    struct call call = call_of("hash:1", "some text");
    QR_CHECK(!is_found(db, &call));
    add_vector(db, "some text", VECTOR);
    qr_db_close(db);
    db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    QR_CHECK(is_found(db, &call));
    check_vector(&call);
    qr_db_close(db);
}

QR_DB_TEST(another_fingerprint_text_or_dimension_is_another_vector) /* PAID-1 */
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    add_vector(db, "some text", VECTOR);
    struct call call = call_of("hash:2", "some text");
    QR_CHECK(!is_found(db, &call));
    call = call_of("hash:1", "some text "); /* exact */
    QR_CHECK(!is_found(db, &call));
    call = call_of("hash:1", "some text");
    call.dimension = DIMENSION - 1;
    QR_CHECK(!is_found(db, &call));
    qr_db_close(db);
}

QR_DB_TEST(a_vector_that_is_there_stays) /* PAID-1 */
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    static const float other[DIMENSION] = {1};
    add_vector(db, "some text", VECTOR);
    add_vector(db, "some text", other);
    struct call call = call_of("hash:1", "some text");
    QR_CHECK(is_found(db, &call));
    check_vector(&call);
    qr_db_close(db);
}

QR_DB_TEST(a_vector_is_replaced_by_one_of_another_dimension) /* EMB-6 */
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    struct call call = call_of("hash:1", "some text");
    qr_err err;
    add_vector(db, "some text", VECTOR);
    call.dimension = 2;
    call.vector[0] = 7;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, add, &call, &err));
    call.vector[0] = 0;
    QR_CHECK(is_found(db, &call));
    QR_CHECK(call.vector[0] == 7);
    qr_db_close(db);
}

static qr_rc look_for_shortened(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_vector_is_shortened(tx, call->key, &call->found, err);
}

QR_DB_TEST(that_its_text_was_shortened_is_kept_with_a_vector) /* EMB-3 */
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    struct call whole = call_of("hash:1", "whole"), cut = call_of("hash:1", "cut"), none = call_of("hash:1", "none");
    qr_err err;
    cut.kept_bytes = 100;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, add, &whole, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, add, &cut, &err));
    QR_CHECK_RC(QR_OK, qr_db_read(db, look_for_shortened, &whole, &err));
    QR_CHECK(!whole.found);
    QR_CHECK_RC(QR_OK, qr_db_read(db, look_for_shortened, &cut, &err));
    QR_CHECK(cut.found);
    QR_CHECK_RC(QR_OK, qr_db_read(db, look_for_shortened, &none, &err));
    QR_CHECK(!none.found);
    qr_db_close(db);
}

static qr_rc read_bytes(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT vector FROM vector_cache", QR_NO_VALS, err));
    QR_CHECK(qr_rows_next(&rows));
    const qr_str bytes = qr_rows_str(&rows, 0);
    call->found = bytes.len == DIMENSION * sizeof(float) && memcmp(bytes.ptr, "\x00\x00\x00\x3F", 4) == 0;
    return qr_rows_end(&rows, err);
}

QR_DB_TEST(vectors_are_stored_the_same_on_every_machine)
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    qr_err err;
    struct call call = {0};
    add_vector(db, "some text", VECTOR); /* begins with 0.5 = 0x3F000000 */
    QR_CHECK_RC(QR_OK, qr_db_read(db, read_bytes, &call, &err));
    QR_CHECK(call.found);
    qr_db_close(db);
}

QR_TEST(the_key_tells_fingerprint_and_text_apart_and_never_changes)
{
    const struct call a = call_of("ab", "c"), b = call_of("a", "bc"), empty = call_of("", "");
    QR_CHECK(memcmp(a.key, b.key, sizeof a.key) != 0);
    QR_CHECK(memcmp(a.key, a.key + 16, 16) != 0); /* two hashes, not one twice */
    char hex[2 * QR_VECTOR_KEY_BYTES + 1];
    for (size_t i = 0; i < QR_VECTOR_KEY_BYTES; i++) {
        snprintf(hex + 2 * i, 3, "%02x", empty.key[i]);
    }
    /* what is stored must be found by every later version */
    QR_CHECK_TEXT("7a3edd697cf3f9535310e30cce3262d6b172b054e82b16c6897789b58953edc3", hex);
}

static qr_rc count(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_vector_count_add(tx, arg, err);
}

static qr_rc load_count(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_vector_count_load(tx, arg, err);
}

QR_DB_TEST(hits_and_misses_are_summed_up)
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    struct qr_vector_count sum = {.hits = 77};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, load_count, &sum, &err));
    QR_CHECK_INT(0, sum.hits + sum.misses);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, count, &(struct qr_vector_count){3, 4}, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, count, &(struct qr_vector_count){10, 0}, &err));
    QR_CHECK_RC(QR_OK, qr_db_read(db, load_count, &sum, &err));
    QR_CHECK_INT(13, sum.hits);
    QR_CHECK_INT(4, sum.misses);
    qr_db_close(db);
}
