/* Statements inside a transaction: prepared once a connection, values and results in PostgreSQL's binary form.
 *
 * A prepared statement is found by its SQL and the types of its values, because the type of a value decides how
 * PostgreSQL reads the statement. A NULL has no type: the place it stands in gives it one. */
#include "db/postgres.h"

#include "db/sql.h"

#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STATEMENTS_MAX = 512,      /* prepared on one connection; more than the program has, so rarely reached */
    TIMEOUT_RENEW_US = 100000, /* how wrong the server's idea of the time left may become */
    BINARY = 1,
};

/* The types we read and write, by their fixed numbers in the server's catalog. */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_NAME = 19,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_BPCHAR = 1042,
    OID_VARCHAR = 1043,
    OID_VOID = 2278,
    OID_UUID = 2950,
};

static struct postgres_conn *conn_of(struct qr_tx *tx)
{
    return QR_CONTAINER_OF(tx, struct postgres_conn, tx);
}

/* ---- time ---- */

qr_rc qr_postgres_set_timeout(struct postgres_conn *conn, qr_err *err)
{
    const int64_t now_us = qr_thread_mono_us();
    char sql[64];
    snprintf(sql, sizeof sql, "SET LOCAL statement_timeout = %lld",
             (long long)QR_MAX(1, (conn->deadline_us - now_us) / 1000));
    conn->timeout_set_us = now_us;
    return qr_postgres_command(conn, sql, err);
}

/* The deadline is the whole function's: each statement may take what those before it left. */
static qr_rc require_time(struct postgres_conn *conn, qr_err *err)
{
    const int64_t now_us = qr_thread_mono_us();
    if (now_us >= conn->deadline_us) {
        return qr_fail(err, conn->late_code, "a function on PostgreSQL at %s took longer than its deadline",
                       conn->where);
    }
    return now_us - conn->timeout_set_us < TIMEOUT_RENEW_US ? QR_OK : qr_postgres_set_timeout(conn, err);
}

/* ---- values ---- */

static qr_rc set_param(struct postgres_params *params, size_t i, const struct qr_val *val, qr_err *err)
{
    params->formats[i] = BINARY;
    switch (val->type) {
    case QR_VAL_NULL:
        params->types[i] = 0;
        params->values[i] = NULL;
        params->lengths[i] = 0;
        return QR_OK;
    case QR_VAL_I64:
        params->types[i] = OID_INT8;
        params->numbers[i] = htobe64((uint64_t)val->i64);
        break;
    case QR_VAL_F64:
        params->types[i] = OID_FLOAT8;
        memcpy(&params->numbers[i], &val->f64, sizeof val->f64);
        params->numbers[i] = htobe64(params->numbers[i]);
        break;
    case QR_VAL_TEXT:
    case QR_VAL_BLOB:
        if (val->str.len > INT_MAX) {
            return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "a value of %zu bytes is too large for PostgreSQL",
                           val->str.len);
        }
        params->types[i] = val->type == QR_VAL_TEXT ? OID_TEXT : OID_BYTEA;
        params->values[i] = val->str.ptr ? val->str.ptr : "";
        params->lengths[i] = (int)val->str.len;
        return QR_OK;
    }
    params->values[i] = (const char *)&params->numbers[i];
    params->lengths[i] = sizeof params->numbers[i];
    return QR_OK;
}

static qr_rc set_params(struct postgres_params *params, const struct qr_val *vals, size_t val_count, qr_err *err)
{
    if (val_count > POSTGRES_VALUES_MAX) {
        return qr_fail(err, QR_CODE_INTERNAL, "%zu values in one statement: at most %d fit", val_count,
                       (int)POSTGRES_VALUES_MAX);
    }
    for (size_t i = 0; i < val_count; i++) {
        QR_TRY(set_param(params, i, &vals[i], err));
    }
    return QR_OK;
}

/* ---- prepared statements ---- */

static void forget_statements(struct postgres_conn *conn)
{
    qr_map_done(&conn->statements);
    qr_map_init(&conn->statements, (uintptr_t)conn);
    conn->is_mark_prepared = false;
}

/* One letter a value, then the SQL. */
static qr_rc build_key(struct postgres_conn *conn, const char *sql, const struct qr_val *vals, size_t val_count,
                       qr_err *err)
{
    static const char LETTERS[] = {
        [QR_VAL_NULL] = 'n', [QR_VAL_I64] = 'i', [QR_VAL_F64] = 'f', [QR_VAL_TEXT] = 't', [QR_VAL_BLOB] = 'b'};
    qr_buf_clear(&conn->scratch);
    for (size_t i = 0; i < val_count; i++) {
        qr_buf_add_char(&conn->scratch, LETTERS[vals[i].type]);
    }
    qr_buf_add_char(&conn->scratch, ' ');
    qr_buf_add_text(&conn->scratch, sql);
    return qr_buf_check(&conn->scratch, err);
}

static void format_name(char ret_name[static 16], uintptr_t number)
{
    snprintf(ret_name, 16, "q%u", (unsigned)number);
}

static qr_rc prepare_as(struct postgres_conn *conn, const char *name, const char *sql, size_t val_count, qr_err *err)
{
    struct qr_buf translated;
    qr_buf_init(&translated, 0);
    qr_sql_for_postgres(&translated, sql);
    qr_rc rc = qr_buf_check(&translated, err);
    if (rc == QR_OK &&
        !PQsendPrepare(conn->pq, name, qr_buf_str(&translated).ptr, (int)val_count, conn->params.types)) {
        rc = qr_postgres_fail_lost(conn, err);
    }
    qr_buf_done(&translated);
    QR_TRY(rc);
    PGresult *result = NULL;
    QR_TRY(qr_postgres_answer(conn, &result, err));
    PQclear(result);
    return QR_OK;
}

/* The name of the prepared statement, prepared now if need be. */
static qr_rc find_statement(struct postgres_conn *conn, const char *sql, const struct qr_val *vals, size_t val_count,
                            char ret_name[static 16], qr_err *err)
{
    QR_TRY(build_key(conn, sql, vals, val_count, err));
    const qr_str key = qr_buf_str(&conn->scratch);
    uintptr_t number = (uintptr_t)qr_map_find(&conn->statements, key);
    if (number == 0) {
        if (conn->statements.count >= STATEMENTS_MAX) {
            QR_TRY(qr_postgres_command(conn, "DEALLOCATE ALL", err));
            forget_statements(conn);
        }
        number = conn->statements.count + 1;
        format_name(ret_name, number);
        QR_TRY(prepare_as(conn, ret_name, sql, val_count, err));
        if (!qr_map_put(&conn->statements, key, (void *)number)) {
            conn->is_broken = true; /* the server knows a name that we do not */
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "no memory for a statement");
        }
    }
    format_name(ret_name, number);
    return QR_OK;
}

static qr_rc run(struct postgres_conn *conn, const char *sql, const struct qr_val *vals, size_t val_count,
                 PGresult **ret_result, qr_err *err)
{
    char name[16];
    QR_TRY(require_time(conn, err));
    QR_TRY(set_params(&conn->params, vals, val_count, err));
    QR_TRY(find_statement(conn, sql, vals, val_count, name, err));
    const struct postgres_params *params = &conn->params;
    if (!PQsendQueryPrepared(conn->pq, name, (int)val_count, params->values, params->lengths, params->formats,
                             BINARY)) {
        return qr_postgres_fail_lost(conn, err);
    }
    return qr_postgres_answer(conn, ret_result, err);
}

qr_rc qr_postgres_exec(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                       int64_t *ret_changes, qr_err *err)
{
    PGresult *result = NULL;
    QR_TRY(run(conn_of(tx), sql, vals, val_count, &result, err));
    const bool is_select = qr_str_starts_with(qr_str_of(PQcmdStatus(result)), QR_STR("SELECT"));
    *ret_changes = is_select ? 0 : strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return QR_OK;
}

qr_rc qr_postgres_script(struct qr_tx *tx, const char *sql, qr_err *err)
{
    struct postgres_conn *conn = conn_of(tx);
    QR_TRY(require_time(conn, err));
    qr_buf_clear(&conn->scratch);
    qr_sql_for_postgres(&conn->scratch, sql);
    QR_TRY(qr_buf_check(&conn->scratch, err));
    QR_TRY(qr_postgres_command(conn, qr_buf_str(&conn->scratch).ptr, err));
    if (PQtransactionStatus(conn->pq) != PQTRANS_INTRANS) {
        tx->doomed = true;
        return qr_fail(err, QR_CODE_INTERNAL, "a script ended the transaction that it runs in");
    }
    return QR_OK;
}

/* ---- rows ---- */

static const char *type_name(Oid type)
{
    switch (type) {
    case 114:
        return "json";
    case 1082:
        return "date";
    case 1114:
        return "timestamp";
    case 1184:
        return "timestamptz";
    case 1186:
        return "interval";
    case 1700:
        return "numeric";
    case 3802:
        return "jsonb";
    default:
        return NULL;
    }
}

static qr_rc check_columns(const PGresult *result, qr_err *err)
{
    static const Oid READABLE[] = {OID_BOOL,   OID_BYTEA,  OID_NAME,   OID_INT8,    OID_INT2, OID_INT4, OID_TEXT,
                                   OID_FLOAT4, OID_FLOAT8, OID_BPCHAR, OID_VARCHAR, OID_VOID, OID_UUID};
    for (int column = 0; column < PQnfields(result); column++) {
        const Oid type = PQftype(result, column);
        size_t i = 0;
        while (i < QR_COUNT(READABLE) && READABLE[i] != type) {
            i++;
        }
        if (i == QR_COUNT(READABLE)) {
            const char *name = type_name(type);
            return qr_fail(err, QR_CODE_INTERNAL, "column %d (%s) has type %s (%u): cast it", column,
                           PQfname(result, column), name ? name : "unknown", type);
        }
    }
    return QR_OK;
}

qr_rc qr_postgres_query(struct qr_tx *tx, struct qr_rows *rows, const char *sql, const struct qr_val *vals,
                        size_t val_count, qr_err *err)
{
    PGresult *result = NULL;
    QR_TRY(run(conn_of(tx), sql, vals, val_count, &result, err));
    const qr_rc rc = check_columns(result, err);
    if (rc != QR_OK) {
        PQclear(result);
        return rc;
    }
    rows->handle = result;
    rows->row = -1;
    rows->column_count = PQnfields(result);
    return QR_OK;
}

qr_rc qr_postgres_rows_next(struct qr_rows *rows, bool *ret_more, qr_err *err QR_UNUSED)
{
    *ret_more = ++rows->row < PQntuples(rows->handle);
    return QR_OK;
}

void qr_postgres_rows_close(struct qr_rows *rows)
{
    PQclear(rows->handle);
}

bool qr_postgres_rows_is_null(const struct qr_rows *rows, int column)
{
    return PQgetisnull(rows->handle, rows->row, column);
}

/* An unsigned number of the value's own width. */
static uint64_t read_bits(const struct qr_rows *rows, int column)
{
    const unsigned char *bytes = (const unsigned char *)PQgetvalue(rows->handle, rows->row, column);
    const int len = PQgetlength(rows->handle, rows->row, column);
    uint64_t bits = 0;
    for (int i = 0; i < len && i < 8; i++) {
        bits = bits << 8 | bytes[i];
    }
    return bits;
}

/* The value of a float4 or float8 column. */
static double read_float(const struct qr_rows *rows, int column)
{
    union {
        uint64_t bits;
        uint32_t narrow_bits;
        double value;
        float narrow_value;
    } number = {.bits = read_bits(rows, column)};
    if (PQftype(rows->handle, column) == OID_FLOAT8) {
        return number.value;
    }
    const uint32_t narrow_bits = (uint32_t)number.bits;
    number.narrow_bits = narrow_bits;
    return number.narrow_value;
}

int64_t qr_postgres_rows_i64(const struct qr_rows *rows, int column)
{
    const uint64_t bits = read_bits(rows, column); /* 0 for NULL */
    switch (PQftype(rows->handle, column)) {
    case OID_BOOL:
    case OID_INT8:
        return (int64_t)bits;
    case OID_INT2:
        return (int16_t)bits;
    case OID_INT4:
        return (int32_t)bits;
    case OID_FLOAT4:
    case OID_FLOAT8: {
        const double value = read_float(rows, column);
        return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : 0;
    }
    default:
        return 0;
    }
}

double qr_postgres_rows_f64(const struct qr_rows *rows, int column)
{
    const Oid type = PQftype(rows->handle, column);
    return type == OID_FLOAT4 || type == OID_FLOAT8 ? read_float(rows, column)
                                                    : (double)qr_postgres_rows_i64(rows, column);
}

qr_str qr_postgres_rows_str(const struct qr_rows *rows, int column)
{
    switch (PQftype(rows->handle, column)) {
    case OID_TEXT:
    case OID_VARCHAR:
    case OID_BPCHAR:
    case OID_NAME:
    case OID_BYTEA:
    case OID_UUID:
        return (qr_str){PQgetvalue(rows->handle, rows->row, column),
                        (size_t)PQgetlength(rows->handle, rows->row, column)};
    default:
        return QR_STR("");
    }
}
