/* One connection: made with a deadline, talked to with a deadline. Nothing here waits without an end, whatever the
 * server or the network does, so libpq is used in its non-blocking form throughout. One thing is libpq's own and cannot be
 * bounded: the look-up of a host name; its limit is the system resolver's. */
#include "db/postgres.h"

#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CONNECT_TIMEOUT_S = 10,      /* where the url says nothing */
    SERVER_VERSION_MIN = 130000, /* pg_current_xact_id_if_assigned, gen_random_uuid */
    IDLE_IN_TX_MS_MAX = 10000,
};

bool qr_postgres_wait(const PGconn *pq, short events, int64_t deadline_us)
{
    for (;;) {
        const int64_t left_us = deadline_us - qr_thread_mono_us();
        if (left_us <= 0) {
            return false;
        }
        struct pollfd fd = {.fd = PQsocket(pq), .events = events};
        const int ready = poll(&fd, 1, (int)QR_MIN(left_us / 1000 + 1, 60000));
        if (ready > 0 || (ready < 0 && errno != EINTR)) {
            return true; /* libpq finds out what an error means */
        }
    }
}

/* ---- answers ---- */

static bool is_failure(const PGresult *result)
{
    const ExecStatusType status = PQresultStatus(result);
    return status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY;
}

static bool send_rest(struct postgres_conn *conn, int64_t deadline_us)
{
    for (;;) {
        const int unsent = PQflush(conn->pq);
        if (unsent <= 0) {
            return unsent == 0;
        }
        /* the server may want to be read from before it reads on */
        if (!qr_postgres_wait(conn->pq, POLLIN | POLLOUT, deadline_us) || !PQconsumeInput(conn->pq)) {
            return false;
        }
    }
}

static bool receive(struct postgres_conn *conn, int64_t deadline_us)
{
    while (PQisBusy(conn->pq)) {
        if (!qr_postgres_wait(conn->pq, POLLIN, deadline_us)) {
            return false;
        }
        if (!PQconsumeInput(conn->pq)) {
            return true; /* PQgetResult tells */
        }
    }
    return true;
}

/* Nothing more is expected of the connection: the answer may still come, but nobody waits for it. */
static qr_rc hang_up(struct postgres_conn *conn, PGresult *result, qr_err *err)
{
    PQclear(result);
    if (PQstatus(conn->pq) != CONNECTION_OK || qr_thread_mono_us() < conn->deadline_us) {
        return qr_postgres_fail_lost(conn, err);
    }
    qr_postgres_fail_lost(conn, NULL);
    if (conn->late_code == QR_CODE_UNAVAILABLE) {
        return qr_postgres_fail_no_answer(conn, err);
    }
    return qr_fail(err, conn->late_code, "PostgreSQL at %s took longer than the deadline", conn->where);
}

qr_rc qr_postgres_answer(struct postgres_conn *conn, PGresult **ret_result, qr_err *err)
{
    const int64_t deadline_us = conn->deadline_us + POSTGRES_GRACE_US;
    if (!send_rest(conn, deadline_us)) {
        return hang_up(conn, NULL, err);
    }
    PGresult *kept = NULL;
    for (;;) {
        if (!receive(conn, deadline_us)) {
            return hang_up(conn, kept, err);
        }
        PGresult *next = PQgetResult(conn->pq);
        if (!next) {
            break;
        }
        const ExecStatusType status = PQresultStatus(next);
        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
            PQclear(next);
            return hang_up(conn, kept, err); /* never asked for: there is no way back to a known state */
        }
        if (kept && is_failure(kept)) {
            PQclear(next);
        } else {
            PQclear(kept);
            kept = next;
        }
    }
    if (!kept || is_failure(kept)) {
        const qr_rc rc = qr_postgres_fail(conn, kept, err);
        PQclear(kept);
        return rc;
    }
    *ret_result = kept;
    return QR_OK;
}

qr_rc qr_postgres_ask(struct postgres_conn *conn, const char *sql, PGresult **ret_result, qr_err *err)
{
    if (!PQsendQuery(conn->pq, sql)) {
        return qr_postgres_fail_lost(conn, err);
    }
    return qr_postgres_answer(conn, ret_result, err);
}

qr_rc qr_postgres_command(struct postgres_conn *conn, const char *sql, qr_err *err)
{
    PGresult *result = NULL;
    QR_TRY(qr_postgres_ask(conn, sql, &result, err));
    PQclear(result);
    return QR_OK;
}

/* ---- connecting ---- */

static void ignore_notice(void *arg QR_UNUSED, const PGresult *notice QR_UNUSED)
{
}

static int64_t attempt_deadline_us(const struct postgres_db *db, int64_t deadline_us)
{
    int64_t timeout_s = CONNECT_TIMEOUT_S;
    for (int i = 0; db->option_names[i]; i++) {
        if (strcmp(db->option_names[i], "connect_timeout") == 0) {
            const long given_s = strtol(db->option_values[i], NULL, 10);
            timeout_s = given_s > 0 ? given_s : timeout_s;
        }
    }
    return QR_MIN(deadline_us, qr_thread_mono_us() + timeout_s * 1000000);
}

static void describe(struct postgres_conn *conn)
{
    const char *host = PQhost(conn->pq), *port = PQport(conn->pq), *name = PQdb(conn->pq);
    snprintf(conn->where, sizeof conn->where, "%s:%s/%s", host ? host : "", port ? port : "", name ? name : "");
}

static qr_rc establish(struct postgres_conn *conn, int64_t deadline_us, bool *ret_final, qr_err *err)
{
    PGconn *pq = conn->pq;
    describe(conn);
    if (PQstatus(pq) == CONNECTION_BAD) {
        return qr_postgres_fail_connect(conn, ret_final, err);
    }
    PQsetNoticeReceiver(pq, ignore_notice, NULL);
    PQsetErrorVerbosity(pq, PQERRORS_VERBOSE); /* else the reason comes without its SQLSTATE */
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED) {
            return qr_postgres_fail_connect(conn, ret_final, err);
        }
        if (!qr_postgres_wait(pq, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_us)) {
            return qr_postgres_fail_no_answer(conn, err);
        }
        state = PQconnectPoll(pq);
        describe(conn); /* of several hosts it may be at the next one */
    }
    return QR_OK;
}

static qr_rc check_server(const struct postgres_conn *conn, qr_err *err)
{
    const PGconn *pq = conn->pq;
    if (PQserverVersion(pq) < SERVER_VERSION_MIN) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "PostgreSQL at %s has version %d, at least %d is needed", conn->where,
                       PQserverVersion(pq) / 10000, SERVER_VERSION_MIN / 10000);
    }
    const char *encoding = PQparameterStatus(pq, "server_encoding");
    if (!encoding || strcmp(encoding, "UTF8") != 0) {
        return qr_fail(err, QR_CODE_DATA_FOREIGN,
                       "the database at %s stores text as %s: create one with ENCODING 'UTF8'", conn->where,
                       encoding ? encoding : "something unknown");
    }
    return QR_OK;
}

/* What every session relies on, whatever server and user are configured to. The session that lost us in a transaction
 * ends soon enough for us to learn its outcome before the write's deadline. */
static qr_rc set_up_session(struct postgres_conn *conn, qr_err *err)
{
    char sql[640];
    const int64_t idle_ms = QR_MIN(IDLE_IN_TX_MS_MAX, QR_MAX(1000, conn->db->write_deadline_ms / 2));
    snprintf(
        sql, sizeof sql,
        "SET standard_conforming_strings = on; SET TimeZone = 'UTC'; "
        "SET default_transaction_isolation = 'read committed'; "
        "SET idle_in_transaction_session_timeout = %lld; SET statement_timeout = %lld; "
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; "
        "SELECT gen_random_uuid()",
        (long long)idle_ms, (long long)conn->db->write_deadline_ms);
    PGresult *result = NULL;
    QR_TRY(qr_postgres_ask(conn, sql, &result, err));
    /* 60 of a UUID's random bits in front, as "xxxxxxxx-xxxx-4xxx": unlike our own randomness never a test's */
    char digits[17] = {0};
    const char *uuid = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
    for (size_t used = 0; *uuid && used < 16; uuid++) {
        if (*uuid != '-') {
            digits[used++] = *uuid;
        }
    }
    conn->mark_high = strtoull(digits, NULL, 16);
    PQclear(result);
    return QR_OK;
}

static qr_rc start_session(struct postgres_conn *conn, int64_t deadline_us, bool *ret_final, qr_err *err)
{
    QR_TRY(establish(conn, deadline_us, ret_final, err));
    *ret_final = true;
    QR_TRY(check_server(conn, err));
    *ret_final = false;
    if (PQsetnonblocking(conn->pq, 1) != 0) {
        return qr_postgres_fail_lost(conn, err);
    }
    conn->deadline_us = deadline_us;
    return set_up_session(conn, err);
}

qr_rc qr_postgres_connect(struct postgres_conn **ret_conn, struct postgres_db *db, int64_t deadline_us, bool *ret_final,
                          qr_err *err)
{
    *ret_final = false;
    struct postgres_conn *conn = qr_alloc_zero(sizeof *conn);
    PGconn *pq = conn ? PQconnectStartParams(db->option_names, db->option_values, 0) : NULL;
    if (!pq) {
        qr_free(conn);
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "no memory for a connection");
    }
    conn->db = db;
    conn->pq = pq;
    conn->late_code = QR_CODE_UNAVAILABLE;
    qr_map_init(&conn->statements, (uintptr_t)conn);
    qr_buf_init(&conn->scratch, 0);
    const qr_rc rc = start_session(conn, attempt_deadline_us(db, deadline_us), ret_final, err);
    if (rc != QR_OK) {
        qr_postgres_disconnect(conn);
        return rc;
    }
    *ret_conn = conn;
    return QR_OK;
}

void qr_postgres_disconnect(struct postgres_conn *conn)
{
    PQfinish(conn->pq);
    qr_map_done(&conn->statements);
    qr_buf_done(&conn->scratch);
    qr_free(conn);
}
