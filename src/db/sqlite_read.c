/* Reads: a pool of connections, each read over one snapshot with a deadline, and the long look of verify.
 *
 * Invariant: while `reopening` is set no connection is in use and none is handed out; the writer relies on it to close
 * and reopen the file. */
#include "db/sqlite.h"

enum { POOL_WAIT_EXTRA_MS = 1000 };

/* ---- the pool ---- */

/* Waits its turn; *ret_conn is NULL when a new connection is to be opened. */
static qr_rc take_turn(struct sqlite_db *db, struct sqlite_conn **ret_conn, qr_err *err)
{
    /* real time: a test clock that stands still must not make this wait for ever */
    const int64_t give_up_us = qr_thread_mono_us() + (db->read_deadline_ms + POOL_WAIT_EXTRA_MS) * 1000;
    QR_LOCKED(&db->lock);
    while (db->reopening || (!db->free_readers && db->readers_open >= db->readers_max)) {
        if (!qr_cond_wait_until_us(&db->reader_changed, &db->lock, give_up_us)) {
            return qr_fail(err, QR_CODE_TIMEOUT, "no read connection became free in %lld ms",
                           (long long)db->read_deadline_ms + POOL_WAIT_EXTRA_MS);
        }
    }
    *ret_conn = db->free_readers;
    if (*ret_conn) {
        db->free_readers = (*ret_conn)->next;
    } else {
        db->readers_open++;
    }
    db->readers_in_use++;
    return QR_OK;
}

/* conn NULL: the connection was closed, or never opened. */
static void end_turn(struct sqlite_db *db, struct sqlite_conn *conn)
{
    QR_LOCKED(&db->lock);
    db->readers_in_use--;
    if (conn) {
        conn->next = db->free_readers;
        db->free_readers = conn;
    } else {
        db->readers_open--;
    }
    if (db->reopening) {
        pthread_cond_broadcast(&db->reader_changed); /* the writer is among those who wait */
    } else {
        pthread_cond_signal(&db->reader_changed); /* one more can go on, no matter who */
    }
}

void qr_sqlite_readers_stop(struct sqlite_db *db)
{
    QR_LOCKED(&db->lock);
    db->reopening = true;
    while (db->readers_in_use > 0) {
        pthread_cond_wait(&db->reader_changed, &db->lock);
    }
    while (db->free_readers) {
        struct sqlite_conn *conn = db->free_readers;
        db->free_readers = conn->next;
        db->readers_open--;
        qr_sqlite_conn_close(conn);
    }
}

void qr_sqlite_readers_resume(struct sqlite_db *db)
{
    QR_LOCKED(&db->lock);
    db->reopening = false;
    pthread_cond_broadcast(&db->reader_changed);
    pthread_cond_broadcast(&db->checkpoint_changed);
}

/* ---- a read ---- */

/* Kept prepared, like all statements: reads are many and short. */
static qr_rc run_command(struct sqlite_conn *conn, const char *sql, qr_err *err)
{
    int64_t ignored;
    return qr_sqlite_exec(&conn->tx, sql, QR_NO_VALS, &ignored, err);
}

static qr_rc read_on(struct sqlite_db *db, struct sqlite_conn *conn, qr_tx_fn *fn, void *arg, qr_err *err)
{
    conn->deadline_mono_ms = 0; /* BEGIN itself is not read work */
    qr_tx_begin(&conn->tx, &qr_driver_sqlite, &db->base);
    QR_TRY(run_command(conn, "BEGIN", err));
    conn->deadline_mono_ms = qr_clock_mono_ms(conn->clock) + db->read_deadline_ms;
    const qr_rc rc = qr_tx_run(&conn->tx, fn, arg, err);
    conn->deadline_mono_ms = 0;
    /* an error may have ended the transaction already; there is nothing to lose in a read */
    if (!sqlite_conn_rolled_back(conn)) {
        (void)!run_command(conn, "ROLLBACK", NULL);
    }
    return rc;
}

qr_rc qr_sqlite_read(struct qr_db *base, qr_tx_fn *fn, void *arg, qr_err *err)
{
    struct sqlite_db *db = QR_CONTAINER_OF(base, struct sqlite_db, base);
    struct sqlite_conn *conn;
    QR_TRY(take_turn(db, &conn, err));
    qr_rc rc = conn ? QR_OK : qr_sqlite_conn_open(&conn, db, SQLITE_ROLE_READER, err);
    if (rc == QR_OK) {
        rc = read_on(db, conn, fn, arg, err);
        /* a connection that met bad storage, or that is still inside something, is not used again */
        if (conn->seen_storage_error != QR_CODE_NONE || !sqlite_conn_rolled_back(conn)) {
            qr_sqlite_conn_close(conn);
            conn = NULL;
        }
    } else {
        conn = NULL;
    }
    if (rc == QR_TIMEOUT) {
        QR_LOCKED(&db->lock);
        db->stats.read_timeouts++;
    }
    end_turn(db, conn);
    return rc;
}

/* ---- long looks ---- */

bool qr_sqlite_must_give_way(struct sqlite_db *db)
{
    QR_LOCKED(&db->lock);
    return db->log_is_full || db->reopening;
}

static int must_give_way(void *arg)
{
    return qr_sqlite_must_give_way(arg);
}

qr_rc qr_sqlite_long_look(struct sqlite_db *db, qr_sqlite_look_fn *fn, void *arg, qr_err *err)
{
    enum { PROGRESS_STEPS = 10000 };
    struct sqlite_conn *conn;
    QR_TRY(take_turn(db, &conn, err));
    if (conn) { /* a connection of its own: it takes long, and its handler differs */
        qr_sqlite_conn_close(conn);
    }
    qr_rc rc = qr_sqlite_conn_open(&conn, db, SQLITE_ROLE_READER, err);
    if (rc == QR_OK) {
        sqlite3_progress_handler(conn->handle, PROGRESS_STEPS, must_give_way, db);
        rc = fn(db, conn, arg, err);
        qr_sqlite_conn_close(conn);
    }
    end_turn(db, NULL);
    return rc;
}

/* ---- verify ---- */

static qr_rc look_through(struct sqlite_conn *conn, const char *pragma, qr_err *err)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(conn->handle, pragma, -1, &stmt, NULL);
    qr_rc result = QR_OK;
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            const char *finding = (const char *)sqlite3_column_text(stmt, 0);
            if (!finding || strcmp(finding, "ok") != 0) {
                result = qr_fail(err, QR_CODE_DATA_CORRUPT, "%s: %s", pragma, finding ? finding : "a finding");
            }
            rc = SQLITE_OK;
        }
    }
    if (rc == SQLITE_INTERRUPT) {
        result = qr_fail(err, QR_CODE_UNAVAILABLE, "too much is being written for a look at the whole database");
    } else if (rc != SQLITE_OK && rc != SQLITE_DONE) {
        result = qr_sqlite_conn_fail(conn, rc, pragma, err);
    }
    sqlite3_finalize(stmt);
    return result;
}

static qr_rc verify_on(struct sqlite_db *db QR_UNUSED, struct sqlite_conn *conn, void *arg QR_UNUSED, qr_err *err)
{
    qr_rc rc = look_through(conn, "PRAGMA integrity_check(1)", err);
    if (rc == QR_CORRUPT) {
        rc = look_through(conn, "PRAGMA integrity_check(1)", err); /* want of memory looks like damage, once */
    }
    return rc == QR_OK ? look_through(conn, "PRAGMA foreign_key_check", err) : rc;
}

qr_rc qr_sqlite_verify(struct qr_db *base, qr_err *err)
{
    return qr_sqlite_long_look(QR_CONTAINER_OF(base, struct sqlite_db, base), verify_on, NULL, err);
}
