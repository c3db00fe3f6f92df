/* What PostgreSQL's failures mean to us: one table from SQLSTATE to our codes.
 *
 * Only the server's primary message is passed on; details may quote rows. Of the database url only host, port and
 * database name are shown (I10). */
#include "db/postgres.h"

#include <stdio.h>

/* The first row whose state is a prefix counts. */
static const struct meaning {
    const char *state;
    qr_code code;
    bool run_again;     /* the function is not to blame */
    bool connect_again; /* to connect later may work */
    const char *advice;
} MEANINGS[] = {
    {"08", QR_CODE_UNAVAILABLE, true, true, ""},
    {"22021", QR_CODE_INVALID_VALUE, false, false, ""},
    {"23505", QR_CODE_ALREADY_EXISTS, false, false, ""},
    {"25006", QR_CODE_DATA_READONLY, false, false, ": the database takes no writes from this user or at this host"},
    {"25P03", QR_CODE_UNAVAILABLE, true, true, ""}, /* idle in a transaction for too long */
    {"28", QR_CODE_UNAVAILABLE, false, false, ": check user and password of the database url"},
    {"3D000", QR_CODE_UNAVAILABLE, false, false, ": create the database, or correct its name in the database url"},
    {"3F000", QR_CODE_UNAVAILABLE, false, false, ": create the schema, or correct search_path in the database url"},
    {"40001", QR_CODE_INTERNAL, true, true, ""},
    {"40P01", QR_CODE_INTERNAL, true, true, ""},
    {"42P07", QR_CODE_DATA_FOREIGN, false, false, ": give Quire a schema or a database of its own"},
    {"42501", QR_CODE_FORBIDDEN, false, false, ": grant it to the user of the database url"},
    {"53100", QR_CODE_DISK_FULL, false, true, ""},
    {"53200", QR_CODE_OUT_OF_MEMORY, false, true, ""},
    {"53300", QR_CODE_UNAVAILABLE, false, true, ": raise max_connections of the server, or use fewer connections"},
    {"53", QR_CODE_UNAVAILABLE, false, true, ""},
    {"54", QR_CODE_PAYLOAD_TOO_LARGE, false, false, ""},
    {"57014", QR_CODE_TIMEOUT, false, true, ""},
    {"57P", QR_CODE_UNAVAILABLE, true, true, ": the server is being stopped or started"},
    {"58030", QR_CODE_IO_ERROR, false, true, ""},
    {"XX001", QR_CODE_DATA_CORRUPT, false, false, ""},
    {"XX002", QR_CODE_DATA_CORRUPT, false, false, ""},
    {"", QR_CODE_INTERNAL, false, false, ""},
};

static const struct meaning *meaning_of(const char *state)
{
    const struct meaning *at = MEANINGS;
    while (!qr_str_starts_with(qr_str_of(state), qr_str_of(at->state))) {
        at++;
    }
    return at;
}

/* ---- a command failed ---- */

qr_rc qr_postgres_fail_lost(struct postgres_conn *conn, qr_err *err)
{
    conn->is_broken = conn->run_again = conn->tx.doomed = true;
    return qr_fail(err, QR_CODE_UNAVAILABLE, "the connection to PostgreSQL at %s was lost", conn->where);
}

static bool ends_connection(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    return severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

qr_rc qr_postgres_fail(struct postgres_conn *conn, const PGresult *result, qr_err *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (!state || PQstatus(conn->pq) != CONNECTION_OK || ends_connection(result)) {
        return qr_postgres_fail_lost(conn, err); /* without a state it is libpq that failed, not the server */
    }
    const struct meaning *meaning = meaning_of(state);
    if (meaning->run_again) {
        /* a savepoint does not help: locks and snapshot are the whole transaction's */
        conn->run_again = conn->tx.doomed = true;
    }
    /* a table was changed under a prepared statement: this connection's are of no more use */
    if (strcmp(state, "0A000") == 0 || strcmp(state, "26000") == 0) {
        conn->is_broken = conn->plan_is_stale = true;
    }
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    return qr_fail(err, meaning->code, "PostgreSQL: %s (%s)%s", message ? message : "no message", state,
                   meaning->advice);
}

/* ---- connecting failed ---- */

static bool is_state(qr_str text)
{
    return text.len == 5 && strspn(text.ptr, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") >= 5;
}

/* libpq gives no fields here but a text: "… failed: FATAL:  28P01: password authentication failed for …\nLOCATION: …",
 * or "… failed: Connection refused\n\tIs the server running …?" One such line for each address it tried. */
static void parse_failure(const char *text, char ret_state[static 6], qr_str *ret_reason)
{
    static const char BEFORE_REASON[] = " failed: ";
    for (const char *next = text; (next = strstr(next, BEFORE_REASON));) {
        text = next += strlen(BEFORE_REASON);
    }
    qr_str reason = {text, strcspn(text, "\n")};
    ret_state[0] = '\0';
    const char *state = memmem(reason.ptr, reason.len, ":  ", 3);
    if (state && is_state((qr_str){state + 3, strcspn(state + 3, ":\n")})) {
        snprintf(ret_state, 6, "%.5s", state + 3);
        const char *message = state + 3 + strlen("28P01: ");
        reason = (qr_str){message, strcspn(message, "\n")};
    }
    *ret_reason = reason;
}

qr_rc qr_postgres_fail_connect(const struct postgres_conn *conn, bool *ret_final, qr_err *err)
{
    char state[6];
    qr_str reason;
    parse_failure(PQerrorMessage(conn->pq), state, &reason);
    if (PQconnectionNeedsPassword(conn->pq)) {
        snprintf(state, sizeof state, "28P01");
    }
    const struct meaning *meaning = meaning_of(state);
    *ret_final = state[0] && !meaning->connect_again;
    return qr_fail(err, QR_CODE_UNAVAILABLE, "cannot connect to PostgreSQL at %s: %.*s%s", conn->where,
                   QR_STR_ARG(reason),
                   state[0] ? meaning->advice : ": is the server running, and is the database url right?");
}

qr_rc qr_postgres_fail_no_answer(const struct postgres_conn *conn, qr_err *err)
{
    return qr_fail(err, QR_CODE_UNAVAILABLE, "PostgreSQL at %s does not answer: is the server overloaded or stopped?",
                   conn->where);
}
