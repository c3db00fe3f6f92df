/* Models with a name, over every database. */
#include "store/named_models.h"

#include "store/schema.h"
#include "support/db_fixture.h"

struct call {
    const char *name, *embedding;
    struct qr_arena *arena;
    struct qr_named_model model, *models;
    size_t count;
};

static qr_rc add(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_named_model_add(tx, call->name, call->embedding, err);
}

static qr_rc find(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_named_model_find(tx, qr_str_of(call->name), call->arena, &call->model, err);
}

static qr_rc list(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_named_models_list(tx, call->arena, &call->models, &call->count, err);
}

static qr_rc remove_one(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_named_model_remove(tx, call->name, err);
}

QR_DB_TEST(a_model_is_found_and_listed_by_its_name_until_it_is_removed)
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_err err;
    qr_arena_init(&arena, 0);
    struct call small = {.name = "small", .embedding = "{\"model\":\"s\"}", .arena = &arena};
    struct call large = {.name = "large", .embedding = "{\"model\":\"l\"}", .arena = &arena};
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, add, &small, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, add, &large, &err));
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, qr_db_write(db, QR_DURABLE, add, &small, &err));
    QR_CHECK_RC(QR_OK, qr_db_read(db, find, &small, &err));
    QR_CHECK_TEXT("{\"model\":\"s\"}", small.model.embedding);
    QR_CHECK(small.model.created_ms > 0);
    QR_CHECK_RC(QR_OK, qr_db_read(db, list, &small, &err));
    QR_CHECK_INT(2, small.count);
    QR_CHECK_TEXT("large", small.models[0].name);
    QR_CHECK_TEXT("small", small.models[1].name);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, remove_one, &small, &err));
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_db_read(db, find, &small, &err));
    QR_CHECK_RC(QR_OK, qr_db_read(db, find, &large, &err));
    qr_db_close(db);
}

static qr_rc add_many(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    for (int i = 0; i < QR_NAMED_MODELS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "model %d", i);
        QR_TRY(qr_named_model_add(tx, name, "{}", err));
    }
    return QR_OK;
}

QR_DB_TEST(there_are_no_more_models_than_a_list_shows)
{
    struct qr_db *db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
    struct call one_more = {.name = "one more", .embedding = "{}"};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, add_many, NULL, &err));
    QR_CHECK_CODE(QR_CODE_LIMIT_EXCEEDED, qr_db_write(db, QR_DURABLE, add, &one_more, &err));
    qr_db_close(db);
}
