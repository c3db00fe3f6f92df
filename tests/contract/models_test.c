/* What is known of embedding models, over every database. */
#include "store/models.h"

#include "store/schema.h"
#include "support/db_fixture.h"

struct call {
    const char *fingerprint;
    int dimension;
    bool has_shortened;
};

static qr_rc note(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_model_note(tx, call->fingerprint, call->dimension, call->has_shortened, err);
}

static qr_rc set_dimension(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_model_set_dimension(tx, call->fingerprint, call->dimension, err);
}

static qr_rc look(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    QR_TRY(qr_model_dimension(tx, call->fingerprint, &call->dimension, err));
    return qr_model_has_shortened(tx, call->fingerprint, &call->has_shortened, err);
}

static void check(struct qr_db *db, const char *fingerprint, int dimension, bool has_shortened)
{
    struct call call = {fingerprint, -1, !has_shortened};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, look, &call, &err));
    QR_CHECK_INT(dimension, call.dimension);
    QR_CHECK_INT(has_shortened, call.has_shortened);
}

QR_DB_TEST(a_dimension_is_learnt_once_and_another_is_refused) /* EMB-6 */
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    qr_err err;
    check(db, "m", 0, false);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, note, &(struct call){"m", 384, false}, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, note, &(struct call){"m", 384, false}, &err));
    QR_CHECK_CODE(QR_CODE_DIMENSION_MISMATCH, qr_db_write(db, QR_DURABLE, note, &(struct call){"m", 8, false}, &err));
    QR_CHECK_HAS("8 dimensions now, and 384 before", err.msg);
    check(db, "m", 384, false);
    check(db, "other", 0, false);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, set_dimension, &(struct call){"m", 8, false}, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, note, &(struct call){"m", 8, false}, &err));
    check(db, "m", 8, false);
    qr_db_close(db);
}

QR_DB_TEST(that_something_was_shortened_is_not_forgotten) /* EMB-3 */
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, note, &(struct call){"m", 8, false}, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, note, &(struct call){"m", 8, true}, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, note, &(struct call){"m", 8, false}, &err));
    check(db, "m", 8, true);
    qr_db_close(db);
}

static qr_rc set_pace(struct qr_tx *tx, void *arg, qr_err *err)
{
    const int64_t *texts_a_minute = arg;
    return qr_model_set_pace(tx, "m", *texts_a_minute, err);
}

static qr_rc load_pace(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_model_pace(tx, "m", arg, err);
}

QR_DB_TEST(the_pace_of_a_model_is_the_last_one_noted)
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    qr_err err;
    int64_t pace = -1;
    QR_CHECK_RC(QR_OK, qr_db_read(db, load_pace, &pace, &err));
    QR_CHECK_INT(0, pace); /* nothing is known of it */
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, note, &(struct call){"m", 8, false}, &err));
    QR_CHECK_RC(QR_OK, qr_db_read(db, load_pace, &pace, &err));
    QR_CHECK_INT(0, pace);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, set_pace, &(int64_t){600}, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, set_pace, &(int64_t){1200}, &err));
    QR_CHECK_RC(QR_OK, qr_db_read(db, load_pace, &pace, &err));
    QR_CHECK_INT(1200, pace);
    qr_db_close(db);
}
