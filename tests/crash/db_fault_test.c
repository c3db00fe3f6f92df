/* Every allocation of ours, of SQLite and of jansson, and every I/O call of ours, failed once while a database is
 * opened, migrated, written, read and closed. Each write is there if and only if it was answered so. */
#include "db/db.h"

#include "support/fault.h"
#include "support/fault_vfs.h"
#include "support/test.h"

#include <unistd.h>

static const struct qr_migration MIGRATIONS[] = {
    {"row", "CREATE TABLE row (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"},
    {"twin", "CREATE TABLE twin (id INTEGER PRIMARY KEY REFERENCES row (id)) STRICT"},
};

enum { WRITES = 3 };

static struct qr_db *open_db(struct qr_test *t, const struct qr_io *io, qr_err *err)
{
    char url[256];
    snprintf(url, sizeof url, "sqlite:%s", qr_test_path(t, "quire.db"));
    const struct qr_db_options options = {
        .url = url, .migrations = MIGRATIONS, .migration_count = QR_COUNT(MIGRATIONS), .io = io, .vfs = "fault"};
    struct qr_db *db = NULL;
    return qr_db_open(&db, &options, err) == QR_OK ? db : NULL;
}

static qr_rc insert_row(struct qr_tx *tx, void *arg, qr_err *err)
{
    const int64_t id = *(int64_t *)arg;
    QR_TRY(qr_tx_exec(tx, "INSERT INTO row (id, name) VALUES (?1, ?2)",
                      QR_VALS(qr_val_i64(id), qr_val_text(QR_STR("a name"))), NULL, err));
    return qr_tx_exec(tx, "INSERT INTO twin (id) VALUES (?1)", QR_VALS(qr_val_i64(id)), NULL, err);
}

static qr_rc insert_in_nested(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_nested(tx, insert_row, arg, err);
}

/* arg: a bit for each row that is there with its twin; a row without one is never seen */
static qr_rc read_rows(struct qr_tx *tx, void *arg, qr_err *err)
{
    unsigned bits = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT row.id, twin.id FROM row LEFT JOIN twin ON twin.id = row.id ORDER BY row.id",
                       QR_NO_VALS, err));
    while (qr_rows_next(&rows)) {
        QR_CHECK(!qr_rows_is_null(&rows, 1));
        bits |= 1U << qr_rows_i64(&rows, 0);
    }
    *(unsigned *)arg = bits;
    return qr_rows_end(&rows, err);
}

static qr_rc insert_and_refuse(struct qr_tx *tx, void *arg, qr_err *err)
{
    QR_TRY(insert_row(tx, arg, err));
    return qr_fail(err, QR_CODE_BAD_REQUEST, "refused");
}

static void remove_files(struct qr_test *t)
{
    unlink(qr_test_path(t, "quire.db"));
    unlink(qr_test_path(t, "quire.db-wal"));
    unlink(qr_test_path(t, "quire.db-shm"));
    unlink(qr_test_path(t, "quire.db-journal"));
}

/* What was answered must be what is there, for this handle, for the next one, and sound. */
static void check_state(struct qr_test *t, struct qr_db *db, unsigned acknowledged)
{
    qr_err err = {0};
    unsigned present = 99;
    if (db) {
        QR_CHECK_RC(QR_OK, qr_db_read(db, read_rows, &present, &err));
        QR_CHECK_INT(acknowledged, present);
        qr_db_close(db);
    }
    db = open_db(t, NULL, &err);
    if (!db) {
        QR_FAIL("cannot open again: %s", err.msg);
    }
    QR_CHECK_RC(QR_OK, qr_db_read(db, read_rows, &present, &err));
    QR_CHECK_INT(acknowledged, present);
    QR_CHECK_RC(QR_OK, qr_db_verify(db, &err));
    qr_db_close(db);
}

static void use_database(void *arg)
{
    struct qr_test *t = arg;
    qr_err err = {0};
    remove_files(t);
    unsigned acknowledged = 0;
    struct qr_db *db = open_db(t, qr_fault_io(), &err);
    for (int64_t id = 0; db && id < WRITES; id++) {
        const enum qr_db_level level = id == 1 ? QR_RELAXED : QR_DURABLE;
        if (qr_db_write(db, level, id == 2 ? insert_in_nested : insert_row, &id, &err) == QR_OK) {
            acknowledged |= 1U << id;
        }
        unsigned ignored;
        qr_db_read(db, read_rows, &ignored, &err);
        int64_t refused_id = 9;
        QR_CHECK(qr_db_write(db, QR_DURABLE, insert_and_refuse, &refused_id, &err) != QR_OK);
    }
    qr_fault_disarm();
    int64_t id = WRITES;
    if (db && qr_db_write(db, QR_DURABLE, insert_row, &id, &err) != QR_OK) {
        QR_FAIL("the failure outlived its cause: %s", err.msg);
    }
    check_state(t, db, db ? acknowledged | 1U << id : acknowledged);
}

QR_TEST_WITH_TIMEOUT(a_failing_allocation_anywhere_loses_nothing_and_leaks_nothing, 300) /* DB-2 DB-1 */
{
    qr_fault_memory_install();
    fault_vfs_register();
    fault_vfs_set_sync((struct fault_sync){.skip = true});
    qr_fault_sweep(QR_FAULT_MEMORY, use_database, t);
}

QR_TEST(a_failing_file_call_of_ours_loses_nothing) /* DB-2 */
{
    qr_fault_memory_install();
    fault_vfs_register();
    fault_vfs_set_sync((struct fault_sync){.skip = true});
    qr_fault_sweep(QR_FAULT_IO_EIO, use_database, t);
    qr_fault_sweep(QR_FAULT_IO_ENOSPC, use_database, t);
}

static void use_database_unnoticed(void *arg)
{
    struct qr_test *t = arg;
    qr_err err = {0};
    qr_db_close(open_db(t, NULL, &err)); /* so that there is something to be read short */
    struct qr_db *db = open_db(t, qr_fault_io(), &err);
    if (!db) {
        QR_FAIL("noticed: %s", err.msg);
    }
    qr_db_close(db);
}

QR_TEST(an_interrupted_or_short_file_call_of_ours_is_not_noticed)
{
    qr_fault_memory_install();
    fault_vfs_register();
    fault_vfs_set_sync((struct fault_sync){.skip = true});
    qr_fault_sweep(QR_FAULT_IO_EINTR, use_database_unnoticed, t);
    qr_fault_sweep(QR_FAULT_IO_SHORT, use_database_unnoticed, t);
}
