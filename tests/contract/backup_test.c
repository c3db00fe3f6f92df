/* Copies of a database, over each: a file is copied beside writes, a server's is left to the server's own tools. */
#include "api/router.h"
#include "support/db_fixture.h"

#include <unistd.h>

static const struct qr_migration MIGRATIONS[] = {
    {.name = "numbers", .sql = "CREATE TABLE number (id INTEGER PRIMARY KEY) STRICT;"}};

static qr_rc add_number(struct qr_tx *tx, void *arg, qr_err *err)
{
    const int64_t *id = arg;
    return qr_tx_exec(tx, "INSERT INTO number (id) VALUES (?1)", QR_VALS(qr_val_i64(*id)), NULL, err);
}

static qr_rc count_numbers(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_get_i64(tx, "SELECT count(*) FROM number", QR_NO_VALS, NULL, arg, err);
}

static int64_t count_in(struct qr_db *db)
{
    int64_t count = -1;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, count_numbers, &count, &err));
    return count;
}

struct copying {
    struct qr_db *db;
    const char *path;
    int64_t commit;
};

/* As backups do it: what the function itself has written is not committed, and not in the copy. */
static qr_rc add_and_copy(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct copying *copying = arg;
    int64_t id = 2;
    QR_TRY(add_number(tx, &id, err));
    (void)unlink(copying->path);
    return qr_db_copy(copying->db, copying->path, &copying->commit, err);
}

static int64_t count_in_copy(struct qr_test *t)
{
    struct qr_db_options options = qr_test_db_options(t, MIGRATIONS, QR_COUNT(MIGRATIONS));
    struct qr_db *copy;
    qr_err err;
    char url[300];
    snprintf(url, sizeof url, "sqlite:%s", qr_test_path(t, "copy.db"));
    options.url = url;
    QR_CHECK_RC(QR_OK, qr_db_open(&copy, &options, &err));
    QR_CHECK_RC(QR_OK, qr_db_verify(copy, &err));
    const int64_t count = count_in(copy);
    qr_db_close(copy);
    return count;
}

QR_DB_TEST(a_copy_holds_what_was_committed_and_nothing_else)
{
    struct qr_db *db = qr_test_db_open(t, MIGRATIONS, QR_COUNT(MIGRATIONS));
    struct copying copying = {.db = db, .path = qr_test_path(t, "copy.db")};
    int64_t id = 1, commit;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, add_number, &id, &err));
    if (qr_test_on_postgres(t)) {
        QR_CHECK_RC(QR_INVALID, qr_db_copy(db, copying.path, &commit, &err));
        qr_db_close(db);
        return;
    }
    QR_CHECK_RC(QR_OK, qr_db_last_commit(db, &commit, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, add_and_copy, &copying, &err));
    QR_CHECK_INT(commit, copying.commit);
    QR_CHECK_INT(2, count_in(db));
    QR_CHECK_INT(1, count_in_copy(t));
    QR_CHECK_RC(QR_OK, qr_db_last_commit(db, &commit, &err));
    QR_CHECK(commit != copying.commit);                                    /* it has changed since */
    QR_CHECK_RC(QR_CONFLICT, qr_db_copy(db, copying.path, &commit, &err)); /* in place of nothing */
    qr_db_close(db);
}

/* ---- the request ---- */

QR_DB_TEST(a_backup_is_made_of_files_only)
{
    const struct qr_config_flag settings[] = {
        {"test", QR_STR("data.dir"), qr_str_of(qr_test_path(t, "data"))},
        {"test", QR_STR("database.url"),
         qr_str_of(qr_test_on_postgres(t) ? qr_test_db_options(t, NULL, 0).url : "sqlite")},
    };
    const struct qr_instance_options options = {
        .settings = settings, .setting_count = QR_COUNT(settings), .program = "the test"};
    struct quire *quire;
    struct quire_response response;
    char body[300];
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_instance_open(&quire, &options, &err));
    snprintf(body, sizeof body, "{\"path\":\"%s\"}", qr_test_path(t, "copy"));
    quire_call(quire, "POST", "/api/v1/backup", body, &response);
    QR_CHECK_INT(qr_test_on_postgres(t) ? 422 : 201, response.status);
    QR_CHECK_HAS(qr_test_on_postgres(t) ? "pg_dump" : "\"bytes\"", response.body);
    quire_response_done(&response);
    QR_CHECK_INT(qr_test_on_postgres(t) ? -1 : 0, access(qr_test_path(t, "copy"), F_OK));
    qr_instance_close(quire);
}
