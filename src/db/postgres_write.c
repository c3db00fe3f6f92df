/* Writes: a function in a transaction, run again until it is committed, refused, or out of time.
 *
 * P1  An answer is given after COMMIT was answered, or after nothing of the function can ever be committed.
 * P2  A function is run again only after a failure that is not its own: a serialization failure, a deadlock, a lost
 *     connection, a server that stops. Of its earlier run nothing remains.
 * P3  A connection that is lost during COMMIT leaves the outcome open. Each transaction therefore inserts a mark of its
 *     own together with COMMIT, in one message. To learn the outcome we insert the same mark ourselves, as void: if the
 *     transaction was committed its mark is there; if it still runs we wait for it; if it has not even read our COMMIT
 *     yet, it will fail on the mark, which is now taken. Whichever was first, exactly one of the two stands, for good.
 *
 * Why not pg_xact_status: after a crash PostgreSQL hands out transaction numbers again that never reached its log, and
 * would answer with the fate of somebody else's transaction.
 *
 * A transaction that changed nothing leaves no mark: run again it changes nothing again. */
#include "base/failpoint.h"
#include "db/postgres.h"

#include <inttypes.h>
#include <stdio.h>

enum { MARKS_KEPT_MAX = 256 };

#define MARK_FORMAT "%016" PRIx64 "%016" PRIx64

struct write {
    struct postgres_db *db;
    enum qr_db_level level;
    qr_tx_fn *fn;
    void *arg;
    int64_t deadline_us;
    unsigned runs;
    bool met_stale_plan;
    int64_t began_us;             /* the last one */
    uint64_t mark_high, mark_low; /* its mark */
};

enum verdict {
    COMMITTED,
    REFUSED, /* nothing was changed, and trying again would not help */
    AGAIN,   /* nothing was changed, and nobody is to blame */
    IN_DOUBT,
};

/* ---- marks (P3) ---- */

qr_rc qr_postgres_marks_prepare(struct postgres_conn *conn, qr_err *err)
{
    PGresult *result = NULL;
    QR_TRY(qr_postgres_ask(conn,
                           "SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'quire_commit' AND "
                           "relnamespace = current_schema()::regnamespace",
                           &result, err));
    const bool is_there = PQntuples(result) > 0;
    PQclear(result);
    if (!is_there) {
        return qr_postgres_command(conn,
                                   POSTGRES_SCHEMA_LOCK_SQL "; CREATE TABLE IF NOT EXISTS quire_commit ("
                                                            "id UUID PRIMARY KEY, "
                                                            "is_void BOOLEAN NOT NULL DEFAULT false, "
                                                            "made_at TIMESTAMPTZ NOT NULL DEFAULT now())",
                                   err);
    }
    /* left behind by processes that ended without closing; no write is tried for a day */
    return qr_postgres_command(conn, "DELETE FROM quire_commit WHERE made_at < now() - INTERVAL '1 day'", err);
}

void qr_postgres_marks_forget(struct postgres_conn *conn)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "SET synchronous_commit = off; "
             "DELETE FROM quire_commit WHERE id BETWEEN '" MARK_FORMAT "' AND '" MARK_FORMAT "'",
             conn->mark_high, conn->mark_low_kept, conn->mark_high, conn->mark_low);
    if (conn->mark_low > conn->mark_low_kept) {
        conn->deadline_us = qr_thread_mono_us() + 1000000;
        qr_postgres_command(conn, sql, NULL); /* else the next start does it */
    }
}

/* Asks whether the last run was committed; if it was not, it never will be. */
static qr_rc ask_outcome(struct postgres_conn *conn, const struct write *w, bool *ret_committed, qr_err *err)
{
    char sql[320];
    snprintf(sql, sizeof sql,
             "INSERT INTO quire_commit (id, is_void) VALUES ('" MARK_FORMAT "', true) ON CONFLICT DO NOTHING; "
             "SELECT is_void FROM quire_commit WHERE id = '" MARK_FORMAT "'",
             w->mark_high, w->mark_low, w->mark_high, w->mark_low);
    PGresult *result = NULL;
    QR_TRY(qr_postgres_ask(conn, sql, &result, err));
    *ret_committed = PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 'f';
    PQclear(result);
    return QR_OK;
}

static enum verdict settle_doubt(struct write *w, qr_err *err)
{
    qr_err failure = {0};
    struct postgres_conn *conn;
    for (unsigned attempt = 0; qr_postgres_take(w->db, w->deadline_us, &conn, &failure) == QR_OK; attempt++) {
        conn->deadline_us = w->deadline_us;
        conn->late_code = QR_CODE_UNAVAILABLE;
        bool is_committed;
        const qr_rc rc = ask_outcome(conn, w, &is_committed, &failure);
        qr_postgres_give(w->db, conn);
        if (rc == QR_OK) {
            return is_committed ? COMMITTED : AGAIN;
        }
        if (!qr_postgres_back_off(w->db, attempt, w->deadline_us)) {
            break;
        }
    }
    qr_fail(err, QR_CODE_UNAVAILABLE,
            "PostgreSQL was lost during a commit; whether it is stored could not be learnt: %s", failure.msg);
    return REFUSED;
}

/* ---- one run ---- */

static qr_rc begin(struct postgres_conn *conn, const struct write *w, qr_err *err)
{
    qr_tx_begin(&conn->tx, &qr_driver_postgres, &w->db->base);
    conn->deadline_us = w->deadline_us;
    conn->timeout_set_us = w->began_us; /* the session's own is the write deadline */
    conn->late_code = QR_CODE_UNAVAILABLE;
    conn->run_again = false;
    return qr_postgres_command(conn, w->level == QR_RELAXED ? "BEGIN; SET LOCAL synchronous_commit = off" : "BEGIN",
                               err);
}

static void roll_back(struct postgres_conn *conn)
{
    if (!conn->is_broken) {
        conn->deadline_us = qr_thread_mono_us() + 1000000;
        qr_postgres_command(conn, "ROLLBACK", NULL);
    }
}

/* The mark, now and then the removal of old ones, and COMMIT. */
static qr_rc build_commit(struct postgres_conn *conn, qr_err *err)
{
    struct qr_buf *sql = &conn->scratch;
    const uint64_t high = conn->mark_high, low = ++conn->mark_low;
    qr_buf_clear(sql);
    if (!conn->is_mark_prepared) {
        qr_buf_add_text(sql, "PREPARE mark (uuid) AS INSERT INTO quire_commit (id) "
                             "SELECT $1 WHERE pg_current_xact_id_if_assigned() IS NOT NULL; ");
    }
    qr_buf_printf(sql, "EXECUTE mark ('" MARK_FORMAT "'); ", high, low);
    if (low - conn->mark_low_kept > MARKS_KEPT_MAX) {
        qr_buf_printf(sql, "DELETE FROM quire_commit WHERE id BETWEEN '" MARK_FORMAT "' AND '" MARK_FORMAT "'; ", high,
                      conn->mark_low_kept, high, low - 1);
    }
    qr_buf_add_text(sql, "COMMIT");
    return qr_buf_check(sql, err);
}

static enum verdict commit(struct postgres_conn *conn, struct write *w, qr_err *err)
{
    if (build_commit(conn, err) != QR_OK) {
        return REFUSED;
    }
    conn->is_mark_prepared = true; /* a rollback does not undo it */
    w->mark_high = conn->mark_high;
    w->mark_low = conn->mark_low;
    PGresult *result = NULL;
    const qr_rc rc = qr_postgres_ask(conn, conn->scratch.data, &result, err);
    /* PostgreSQL answers the COMMIT of a transaction that had failed with ROLLBACK */
    const bool is_committed = rc == QR_OK && strcmp(PQcmdStatus(result), "COMMIT") == 0;
    PQclear(result);
    if (rc == QR_OK && QR_FAILPOINT_RC("db.write.after_commit", err) != QR_OK) {
        conn->is_broken = true; /* as if the answer had been lost */
    }
    if (conn->is_broken) {
        return IN_DOUBT;
    }
    if (is_committed) {
        if (conn->mark_low - conn->mark_low_kept > MARKS_KEPT_MAX) {
            conn->mark_low_kept = conn->mark_low; /* the older ones were deleted with it */
        }
        return COMMITTED;
    }
    if (rc == QR_OK) {
        qr_fail(err, QR_CODE_INTERNAL, "PostgreSQL rolled back instead of committing");
    }
    return conn->run_again ? AGAIN : REFUSED;
}

static enum verdict run_on(struct postgres_conn *conn, struct write *w, qr_err *err)
{
    w->began_us = qr_thread_mono_us();
    if (begin(conn, w, err) != QR_OK) {
        return conn->run_again ? AGAIN : REFUSED;
    }
    w->runs++;
    qr_rc rc = qr_tx_run(&conn->tx, w->fn, w->arg, err);
    if (conn->run_again || (conn->plan_is_stale && !w->met_stale_plan)) {
        w->met_stale_plan = conn->plan_is_stale;
        return AGAIN; /* whatever the function made of it */
    }
    if (rc == QR_OK) {
        rc = QR_FAILPOINT_RC("db.write.before_commit", err);
    }
    if (rc == QR_OK && qr_thread_mono_us() >= conn->deadline_us) {
        rc =
            qr_fail(err, QR_CODE_UNAVAILABLE, "a write to PostgreSQL at %s took longer than its deadline", conn->where);
    }
    if (rc != QR_OK) {
        err->rc = rc; /* a function may leave the rest of it empty */
        return REFUSED;
    }
    return commit(conn, w, err);
}

static void wake(struct postgres_db *db, const struct qr_tx *tx)
{
    for (size_t i = 0; i < tx->channel_count; i++) {
        qr_db_wake(&db->base, tx->channels[i]);
    }
    if (tx->channel_count > 0) {
        qr_postgres_notify(db, tx->channels, tx->channel_count);
    }
}

static enum verdict try_once(struct write *w, qr_err *err)
{
    struct postgres_conn *conn;
    *err = (qr_err){0};
    if (qr_postgres_take(w->db, w->deadline_us, &conn, err) != QR_OK) {
        if (err->code == QR_CODE_TIMEOUT) {
            qr_fail(err, QR_CODE_UNAVAILABLE, "%s", err->msg); /* a write's word for it */
        }
        return REFUSED; /* it has waited until the deadline */
    }
    enum verdict verdict = run_on(conn, w, err);
    if (verdict == REFUSED || verdict == AGAIN) {
        roll_back(conn);
    }
    const struct qr_tx tx = conn->tx; /* the channels outlive the connection */
    qr_postgres_give(w->db, conn);
    if (verdict == IN_DOUBT) {
        verdict = settle_doubt(w, err);
    }
    if (verdict == COMMITTED) {
        wake(w->db, &tx);
    }
    return verdict;
}

/* ---- all runs ---- */

static void count(const struct write *w, enum verdict verdict)
{
    const int64_t took_us = qr_thread_mono_us() - w->began_us;
    QR_LOCKED(&w->db->lock);
    struct qr_db_stats *stats = &w->db->stats;
    stats->writes++;
    stats->reruns += w->runs > 1 ? w->runs - 1 : 0;
    if (verdict == COMMITTED) {
        stats->commits++;
        stats->longest_write_us = QR_MAX(stats->longest_write_us, took_us);
    }
}

qr_rc qr_postgres_write(struct qr_db *base, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err)
{
    struct postgres_db *db = QR_CONTAINER_OF(base, struct postgres_db, base);
    struct write w = {.db = db, .level = level, .fn = fn, .arg = arg};
    w.deadline_us = qr_thread_mono_us() + db->write_deadline_ms * 1000;
    qr_err failure = {0};
    enum verdict verdict = try_once(&w, &failure);
    for (unsigned attempt = 0; verdict == AGAIN; attempt++) {
        if (!qr_postgres_back_off(db, attempt, w.deadline_us)) {
            qr_fail(&failure, QR_CODE_UNAVAILABLE, "tried for %lld ms, then gave up: %s",
                    (long long)db->write_deadline_ms, failure.msg);
            break;
        }
        verdict = try_once(&w, &failure);
    }
    count(&w, verdict);
    if (verdict == COMMITTED) {
        return QR_OK;
    }
    if (err) {
        *err = failure;
    }
    return failure.rc;
}
