/* One SQLite connection: how it is set up, its prepared statements, values and rows, and what its errors mean.
 *
 * Invariant: a cached statement is used by at most one qr_rows at a time; who asks for it meanwhile gets one of its
 * own. */
#include "base/mem.h"
#include "db/sqlite.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum {
    STATEMENTS_MAX = 512,  /* texts are constants, so this is rarely reached; then those not in use are thrown away */
    PROGRESS_STEPS = 1000, /* of the virtual machine between two looks at the deadline: about 20 µs */
    WRITER_CACHE_KB = 8192,
    READER_CACHE_KB = 2048,
};

struct cached_statement {
    sqlite3_stmt *stmt;
    bool in_use, one_off;
};

static struct sqlite_conn *conn_of(struct qr_tx *tx)
{
    return QR_CONTAINER_OF(tx, struct sqlite_conn, tx);
}

/* ---- errors ---- */

static qr_code code_of(int extended_rc, int system_errno)
{
    const bool no_space = system_errno == ENOSPC || system_errno == EDQUOT;
    const bool no_files = system_errno == EMFILE || system_errno == ENFILE;
    switch (extended_rc) {
    case SQLITE_IOERR_NOMEM:
        return QR_CODE_OUT_OF_MEMORY;
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        return QR_CODE_ALREADY_EXISTS;
    default:
        break;
    }
    switch (extended_rc & 0xFF) {
    case SQLITE_FULL:
        return QR_CODE_DISK_FULL;
    case SQLITE_NOMEM:
        return QR_CODE_OUT_OF_MEMORY;
    case SQLITE_IOERR:
        return no_space ? QR_CODE_DISK_FULL : QR_CODE_IO_ERROR;
    case SQLITE_CANTOPEN:
        if (no_space || no_files) {
            return no_space ? QR_CODE_DISK_FULL : QR_CODE_UNAVAILABLE;
        }
        return system_errno == EACCES || system_errno == EROFS || system_errno == EPERM ? QR_CODE_DATA_READONLY
                                                                                        : QR_CODE_IO_ERROR;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return QR_CODE_DATA_READONLY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return QR_CODE_DATA_CORRUPT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return QR_CODE_UNAVAILABLE;
    case SQLITE_INTERRUPT:
        return QR_CODE_TIMEOUT;
    case SQLITE_TOOBIG:
        return QR_CODE_PAYLOAD_TOO_LARGE;
    default:
        return QR_CODE_INTERNAL;
    }
}

qr_rc qr_sqlite_conn_fail(struct sqlite_conn *conn, int sqlite_rc, const char *doing, qr_err *err)
{
    const int primary = sqlite_rc & 0xFF;
    const int system_errno = sqlite3_system_errno(conn->handle);
    const qr_code code = code_of(sqlite_rc, system_errno);
    if (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) {
        conn->seen_storage_error = code;
    }
    if (code == QR_CODE_TIMEOUT) {
        return qr_fail(err, code, "the read took longer than its deadline");
    }
    if (primary == SQLITE_CANTOPEN && (system_errno == EMFILE || system_errno == ENFILE)) {
        return qr_fail(err, code, "%s: too many files are open; `ulimit -n` says how many may be", doing);
    }
    return qr_fail(err, code, "%s: %s", doing, sqlite3_errmsg(conn->handle));
}

/* ---- opening ---- */

bool qr_sqlite_conn_is_late(const struct sqlite_conn *conn)
{
    return conn->deadline_mono_ms != 0 && qr_clock_mono_ms(conn->clock) > conn->deadline_mono_ms;
}

/* SQLite calls it while a statement runs; not 0 interrupts. */
static int past_deadline(void *arg)
{
    return qr_sqlite_conn_is_late(arg);
}

static qr_rc set_up(struct sqlite_conn *conn, const struct sqlite_db *db, enum sqlite_role role, qr_err *err)
{
    sqlite3_extended_result_codes(conn->handle, 1);
    sqlite3_busy_timeout(conn->handle, SQLITE_BUSY_TIMEOUT_MS);
    sqlite3_db_config(conn->handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL); /* "word" is a name, as on PostgreSQL */
    sqlite3_db_config(conn->handle, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(conn->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(conn->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    /* closing copies nothing: SQLite trusts what earlier checkpoints copied, and after a failed sync only the log as a
     * whole can be trusted (W4). An orderly close of a sound database lifts it. */
    sqlite3_db_config(conn->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    char cache[64];
    snprintf(cache, sizeof cache, "PRAGMA cache_size = -%d",
             role == SQLITE_ROLE_WRITER ? WRITER_CACHE_KB : READER_CACHE_KB);
    QR_TRY(qr_sqlite_conn_exec(conn, cache, "setting up a connection", err));
    QR_TRY(qr_sqlite_conn_exec(conn, "PRAGMA case_sensitive_like = ON", "setting up a connection", err));
    QR_TRY(qr_sqlite_conn_exec(conn, "PRAGMA foreign_keys = ON", "setting up a connection", err));
    QR_TRY(qr_sqlite_conn_exec(conn, "PRAGMA temp_store = MEMORY", "setting up a connection", err));
    /* sqlite_wal.c decides when; a commit must not be slowed by a checkpoint */
    QR_TRY(qr_sqlite_conn_exec(conn, "PRAGMA wal_autocheckpoint = 0", "setting up a connection", err));
    if (role == SQLITE_ROLE_READER) {
        sqlite3_progress_handler(conn->handle, PROGRESS_STEPS, past_deadline, conn);
        QR_TRY(qr_sqlite_conn_exec(conn, "PRAGMA query_only = ON", "setting up a connection", err));
    }
    int rc = db->tokenizer ? qr_sqlite_register_tokenizer(conn->handle, db->tokenizer) : SQLITE_OK;
    rc = db->tokenizer && rc == SQLITE_OK ? qr_sqlite_register_postings(conn) : rc;
    return rc == SQLITE_OK ? QR_OK : qr_sqlite_conn_fail(conn, rc, "setting up full-text search", err);
}

qr_rc qr_sqlite_conn_open(struct sqlite_conn **ret_conn, const struct sqlite_db *db, enum sqlite_role role, qr_err *err)
{
    struct sqlite_conn *conn = qr_alloc_zero(sizeof *conn);
    if (!conn) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a database connection");
    }
    conn->clock = db->clock;
    qr_map_init(&conn->statements, 0); /* keys are our own constants: nobody can choose them to collide */
    const int create = role == SQLITE_ROLE_WRITER ? SQLITE_OPEN_CREATE : 0;
    const int flags = SQLITE_OPEN_READWRITE | create | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    const int opened = sqlite3_open_v2(db->path, &conn->handle, flags, db->vfs);
    qr_rc rc;
    if (!conn->handle) {
        rc = qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a database connection");
    } else if (opened != SQLITE_OK) {
        rc = qr_sqlite_conn_fail(conn, sqlite3_extended_errcode(conn->handle), db->path, err);
    } else if (sqlite3_db_readonly(conn->handle, "main") == 1) {
        rc = qr_fail(err, QR_CODE_DATA_READONLY, "%s cannot be written", db->path);
    } else {
        rc = set_up(conn, db, role, err);
    }
    if (rc != QR_OK) {
        qr_sqlite_conn_close(conn);
        return rc;
    }
    *ret_conn = conn;
    return QR_OK;
}

static void forget_statements(struct sqlite_conn *conn)
{
    size_t cursor = 0;
    qr_str sql;
    void *value;
    while (qr_map_next(&conn->statements, &cursor, &sql, &value)) {
        struct cached_statement *cached = value;
        if (cached->in_use) {
            cached->one_off = true; /* whoever uses it now ends it */
        } else {
            sqlite3_finalize(cached->stmt);
            qr_free(cached);
        }
    }
    qr_map_done(&conn->statements);
}

void qr_sqlite_conn_close(struct sqlite_conn *conn)
{
    if (conn) {
        forget_statements(conn);
        sqlite3_close_v2(conn->handle);
        qr_free(conn);
    }
}

/* ---- statements ---- */

static qr_rc prepare(struct sqlite_conn *conn, const char *sql, struct cached_statement **ret_cached, qr_err *err)
{
    struct cached_statement *cached = qr_alloc_zero(sizeof *cached);
    if (!cached) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a statement");
    }
    const int rc = sqlite3_prepare_v3(conn->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &cached->stmt, NULL);
    if (rc != SQLITE_OK) {
        qr_free(cached);
        return qr_sqlite_conn_fail(conn, rc, "preparing a statement", err);
    }
    *ret_cached = cached;
    return QR_OK;
}

/* The prepared statement for this text, marked as in use until give_back. */
static qr_rc borrow(struct sqlite_conn *conn, const char *sql, struct cached_statement **ret_cached, qr_err *err)
{
    const qr_str key = qr_str_of(sql);
    struct cached_statement *cached = qr_map_find(&conn->statements, key);
    if (!cached || cached->in_use) {
        const bool one_off = cached != NULL;
        QR_TRY(prepare(conn, sql, &cached, err));
        if (conn->statements.count >= STATEMENTS_MAX) {
            forget_statements(conn);
        }
        /* a statement that cannot be remembered still works, once */
        cached->one_off = one_off || !qr_map_put(&conn->statements, key, cached);
    }
    cached->in_use = true;
    *ret_cached = cached;
    return QR_OK;
}

static void give_back(struct cached_statement *cached)
{
    if (cached->one_off) {
        sqlite3_finalize(cached->stmt);
        qr_free(cached);
        return;
    }
    sqlite3_reset(cached->stmt);
    sqlite3_clear_bindings(cached->stmt);
    cached->in_use = false;
}

/* Borrowed memory may be bound as static: the value outlives the statement's run, which ends within the call (exec), or
 * is copied (query). */
static int bind(sqlite3_stmt *stmt, int index, const struct qr_val *val, sqlite3_destructor_type lifetime)
{
    switch (val->type) {
    case QR_VAL_I64:
        return sqlite3_bind_int64(stmt, index, val->i64);
    case QR_VAL_F64:
        return sqlite3_bind_double(stmt, index, val->f64);
    case QR_VAL_TEXT:
        return sqlite3_bind_text64(stmt, index, val->str.len ? val->str.ptr : "", val->str.len, lifetime, SQLITE_UTF8);
    case QR_VAL_BLOB:
        return val->str.len ? sqlite3_bind_blob64(stmt, index, val->str.ptr, val->str.len, lifetime)
                            : sqlite3_bind_zeroblob(stmt, index, 0);
    case QR_VAL_NULL:
        break;
    }
    return sqlite3_bind_null(stmt, index);
}

static qr_rc require_room(const struct sqlite_conn *conn, qr_err *err)
{
    if (conn->bound_bytes_max && conn->bound_bytes > conn->bound_bytes_max) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE,
                       "a write of over %lld bytes at once, a quarter of the log's limit",
                       (long long)conn->bound_bytes_max);
    }
    return QR_OK;
}

static qr_rc bind_all(struct sqlite_conn *conn, sqlite3_stmt *stmt, const struct qr_val *vals, size_t val_count,
                      sqlite3_destructor_type lifetime, qr_err *err)
{
    if ((size_t)sqlite3_bind_parameter_count(stmt) != val_count) {
        return qr_fail(err, QR_CODE_INTERNAL, "a statement takes %d values and was given %zu",
                       sqlite3_bind_parameter_count(stmt), val_count);
    }
    for (size_t i = 0; i < val_count; i++) {
        conn->bound_bytes += vals[i].type == QR_VAL_TEXT || vals[i].type == QR_VAL_BLOB ? (int64_t)vals[i].str.len : 0;
        const int rc = bind(stmt, (int)i + 1, &vals[i], lifetime);
        if (rc != SQLITE_OK) {
            return qr_sqlite_conn_fail(conn, rc, "binding a value", err);
        }
    }
    return require_room(conn, err);
}

/* A failing statement may have rolled back everything; then nothing above it can be undone alone. */
static qr_rc statement_failed(struct sqlite_conn *conn, int sqlite_rc, qr_err *err)
{
    const qr_rc rc = qr_sqlite_conn_fail(conn, sqlite_rc, "running a statement", err);
    if (sqlite_conn_rolled_back(conn)) {
        conn->tx.doomed = true;
    }
    return rc;
}

static qr_rc require_time(struct sqlite_conn *conn, qr_err *err)
{
    if (qr_sqlite_conn_is_late(conn)) {
        return qr_fail(err, QR_CODE_TIMEOUT, "the read took longer than its deadline");
    }
    return QR_OK;
}

qr_rc qr_sqlite_exec(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                     int64_t *ret_changes, qr_err *err)
{
    struct sqlite_conn *conn = conn_of(tx);
    struct cached_statement *cached;
    QR_TRY(require_time(conn, err));
    QR_TRY(borrow(conn, sql, &cached, err));
    qr_rc rc = bind_all(conn, cached->stmt, vals, val_count, SQLITE_STATIC, err);
    if (rc == QR_OK) {
        const int64_t before = sqlite3_total_changes64(conn->handle);
        int stepped;
        do {
            stepped = sqlite3_step(cached->stmt);
        } while (stepped == SQLITE_ROW);
        if (stepped == SQLITE_DONE) {
            /* changes() alone would repeat the count of an earlier statement when this one is not a change */
            const bool changed = sqlite3_total_changes64(conn->handle) != before;
            *ret_changes = changed ? sqlite3_changes64(conn->handle) : 0;
        } else {
            rc = statement_failed(conn, stepped, err);
        }
    }
    give_back(cached);
    return rc;
}

qr_rc qr_sqlite_script(struct qr_tx *tx, const char *sql, qr_err *err)
{
    struct sqlite_conn *conn = conn_of(tx);
    const int rc = sqlite3_exec(conn->handle, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? QR_OK : statement_failed(conn, rc, err);
}

qr_rc qr_sqlite_conn_exec(struct sqlite_conn *conn, const char *sql, const char *doing, qr_err *err)
{
    const int rc = sqlite3_exec(conn->handle, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? QR_OK : qr_sqlite_conn_fail(conn, rc, doing, err);
}

qr_rc qr_sqlite_conn_get_i64(struct sqlite_conn *conn, const char *sql, int64_t *ret_value, qr_err *err)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(conn->handle, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            *ret_value = sqlite3_column_int64(stmt, 0);
            sqlite3_finalize(stmt);
            return QR_OK;
        }
    }
    const qr_rc failed = rc == SQLITE_DONE ? qr_fail(err, QR_CODE_DATA_CORRUPT, "%s: no row", sql)
                                           : qr_sqlite_conn_fail(conn, rc, sql, err);
    sqlite3_finalize(stmt);
    return failed;
}

/* ---- rows ---- */

static sqlite3_stmt *stmt_of(const struct qr_rows *rows)
{
    return ((struct cached_statement *)rows->handle)->stmt;
}

qr_rc qr_sqlite_query(struct qr_tx *tx, struct qr_rows *rows, const char *sql, const struct qr_val *vals,
                      size_t val_count, qr_err *err)
{
    struct sqlite_conn *conn = conn_of(tx);
    struct cached_statement *cached;
    QR_TRY(require_time(conn, err));
    QR_TRY(borrow(conn, sql, &cached, err));
    const qr_rc rc = bind_all(conn, cached->stmt, vals, val_count, SQLITE_TRANSIENT, err);
    if (rc != QR_OK) {
        give_back(cached);
        return rc;
    }
    rows->handle = cached;
    rows->column_count = sqlite3_column_count(cached->stmt);
    return QR_OK;
}

qr_rc qr_sqlite_rows_next(struct qr_rows *rows, bool *ret_more, qr_err *err)
{
    const int rc = sqlite3_step(stmt_of(rows));
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return statement_failed(conn_of(rows->tx), rc, err);
    }
    rows->row++;
    *ret_more = rc == SQLITE_ROW;
    return QR_OK;
}

void qr_sqlite_rows_close(struct qr_rows *rows)
{
    give_back(rows->handle);
}

bool qr_sqlite_rows_is_null(const struct qr_rows *rows, int column)
{
    return sqlite3_column_type(stmt_of(rows), column) == SQLITE_NULL;
}

int64_t qr_sqlite_rows_i64(const struct qr_rows *rows, int column)
{
    return sqlite3_column_int64(stmt_of(rows), column);
}

double qr_sqlite_rows_f64(const struct qr_rows *rows, int column)
{
    return sqlite3_column_double(stmt_of(rows), column);
}

qr_str qr_sqlite_rows_str(const struct qr_rows *rows, int column)
{
    sqlite3_stmt *stmt = stmt_of(rows);
    /* as blob: no conversion, and the length is in bytes whatever the type */
    const void *bytes = sqlite3_column_blob(stmt, column);
    const int len = sqlite3_column_bytes(stmt, column);
    return (qr_str){bytes ? bytes : "", bytes ? (size_t)len : 0};
}

/* ---- nesting, time, schema ---- */

static qr_rc savepoint_command(struct qr_tx *tx, const char *command, qr_err *err)
{
    char sql[64];
    snprintf(sql, sizeof sql, "%s nested_%d", command, tx->depth);
    int64_t changes;
    return qr_sqlite_exec(tx, sql, QR_NO_VALS, &changes, err);
}

qr_rc qr_sqlite_savepoint(struct qr_tx *tx, qr_err *err)
{
    return savepoint_command(tx, "SAVEPOINT", err);
}

qr_rc qr_sqlite_release(struct qr_tx *tx, qr_err *err)
{
    return savepoint_command(tx, "RELEASE", err);
}

qr_rc qr_sqlite_rollback_to(struct qr_tx *tx, qr_err *err)
{
    QR_TRY(savepoint_command(tx, "ROLLBACK TO", err));
    return savepoint_command(tx, "RELEASE", err);
}

qr_rc qr_sqlite_now_ms(struct qr_tx *tx, int64_t *ret_ms, qr_err *err QR_UNUSED)
{
    *ret_ms = qr_clock_wall_ms(conn_of(tx)->clock);
    return QR_OK;
}

qr_rc qr_sqlite_lock_schema(struct qr_tx *tx QR_UNUSED, qr_err *err QR_UNUSED)
{
    return QR_OK; /* there is one writer, and one process */
}

qr_rc qr_sqlite_has_table(struct qr_tx *tx, const char *table, bool *ret_has, qr_err *err)
{
    int64_t count = 0;
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1",
                         QR_VALS(qr_val_text(qr_str_of(table))), NULL, &count, err));
    *ret_has = count > 0;
    return QR_OK;
}
