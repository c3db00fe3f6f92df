/* The PostgreSQL driver: opening and closing, reads, what migrations need, and the table of functions.
 *
 * A read runs over one snapshot (REPEATABLE READ). Its deadline is kept by the server, statement by statement, and by
 * us should the server not answer. */
#include "db/postgres.h"

#include "base/mem.h"

#include <stdio.h>

enum { VERIFY_MS_MAX = 3600000, SCHEMA_MS_MAX = 3600000 };

static struct postgres_db *db_of(struct qr_db *base)
{
    return QR_CONTAINER_OF(base, struct postgres_db, base);
}

static struct postgres_conn *conn_of(struct qr_tx *tx)
{
    return QR_CONTAINER_OF(tx, struct postgres_conn, tx);
}

/* ---- the url ---- */

/* A password with unescaped characters slides into other parts, which are shown in messages (I10). */
static qr_rc check_part(const char *name, const char *value, qr_err *err)
{
    const bool is_shown = strcmp(name, "host") == 0 || strcmp(name, "hostaddr") == 0 || strcmp(name, "dbname") == 0 ||
                          strcmp(name, "user") == 0;
    const bool is_port = strcmp(name, "port") == 0;
    if ((is_shown && strchr(value, '@')) || (is_port && value[strspn(value, "0123456789,")])) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "the %s in the database url is not valid; in a password write %%40 for @ and %%2F for /",
                       is_port                       ? "port"
                       : strcmp(name, "dbname") == 0 ? "database name"
                                                     : name);
    }
    return QR_OK;
}

static void add_option(struct postgres_db *db, size_t *count, const char *name, const char *value)
{
    if (*count < POSTGRES_OPTIONS_MAX - 1) {
        db->option_names[*count] = name;
        db->option_values[(*count)++] = value;
    }
}

/* Ours first, because of two of a name the last one counts: what the url says goes over our defaults. */
static qr_rc parse_url(struct postgres_db *db, const char *url, qr_err *err)
{
    db->parsed_url = PQconninfoParse(url, NULL);
    if (!db->parsed_url) {
        /* libpq's own message quotes the url, password and all */
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "the database url is not valid: postgresql://user:password@host:port/database");
    }
    static const char *const DEFAULTS[][2] = {
        {"application_name", "quire"}, {"keepalives_idle", "30"},     {"keepalives_interval", "10"},
        {"keepalives_count", "3"},     {"tcp_user_timeout", "60000"},
    };
    size_t count = 0;
    for (size_t i = 0; i < QR_COUNT(DEFAULTS); i++) {
        add_option(db, &count, DEFAULTS[i][0], DEFAULTS[i][1]);
    }
    for (const PQconninfoOption *option = db->parsed_url; option->keyword; option++) {
        if (option->val) {
            QR_TRY(check_part(option->keyword, option->val, err));
            add_option(db, &count, option->keyword, option->val);
        }
    }
    add_option(db, &count, "client_encoding", "UTF8");
    return QR_OK;
}

/* ---- opening and closing ---- */

static void free_db(struct postgres_db *db)
{
    qr_postgres_close_idle(db);
    PQconninfoFree(db->parsed_url);
    pthread_cond_destroy(&db->changed);
    pthread_mutex_destroy(&db->lock);
    qr_db_done(&db->base);
    qr_free(db);
}

/* The first connection says whether there is a database to work with. */
static qr_rc first_contact(struct postgres_db *db, qr_err *err)
{
    const int64_t deadline_us = qr_thread_mono_us() + db->read_deadline_ms * 1000;
    struct postgres_conn *conn;
    QR_TRY(qr_postgres_take(db, deadline_us, &conn, err));
    snprintf(db->where, sizeof db->where, "%s", conn->where);
    conn->deadline_us = deadline_us;
    const qr_rc rc = qr_postgres_marks_prepare(conn, err);
    qr_postgres_give(db, conn);
    return rc;
}

static qr_rc postgres_open(struct qr_db **ret_db, const struct qr_db_options *options, qr_err *err)
{
    struct postgres_db *db = qr_alloc_zero(sizeof *db);
    if (!db) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "no memory for a database");
    }
    qr_db_init(&db->base);
    pthread_mutex_init(&db->lock, NULL);
    qr_cond_init(&db->changed);
    db->rand = options->rand;
    db->conns_max = options->readers_max;
    db->read_deadline_ms = options->read_deadline_ms;
    db->write_deadline_ms = options->write_deadline_ms;
    qr_rc rc = parse_url(db, options->url, err);
    rc = rc == QR_OK ? first_contact(db, err) : rc;
    rc = rc == QR_OK ? qr_postgres_listen_init(&db->listen, err) : rc;
    if (rc != QR_OK) {
        free_db(db);
        return rc;
    }
    *ret_db = &db->base;
    return QR_OK;
}

static void postgres_close(struct qr_db *base)
{
    struct postgres_db *db = db_of(base);
    qr_postgres_listen_done(&db->listen);
    free_db(db);
}

/* ---- reads ---- */

static qr_rc begin_read(struct postgres_conn *conn, struct postgres_db *db, int64_t deadline_us, qr_err *err)
{
    char sql[128];
    const int64_t now_us = qr_thread_mono_us();
    snprintf(sql, sizeof sql, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = %lld",
             (long long)QR_MAX(1, (deadline_us - now_us) / 1000));
    qr_tx_begin(&conn->tx, &qr_driver_postgres, &db->base);
    conn->deadline_us = deadline_us;
    conn->timeout_set_us = now_us;
    conn->late_code = QR_CODE_TIMEOUT;
    conn->run_again = false;
    return qr_postgres_command(conn, sql, err);
}

/* *ret_again: it failed through no fault of its own; *ret_stale: once more is worth it. */
static qr_rc read_once(struct postgres_db *db, int64_t deadline_us, qr_tx_fn *fn, void *arg, bool *ret_again,
                       bool *ret_stale, qr_err *err)
{
    struct postgres_conn *conn;
    *ret_again = *ret_stale = false;
    QR_TRY(qr_postgres_take(db, deadline_us, &conn, err));
    qr_rc rc = begin_read(conn, db, deadline_us, err);
    if (rc == QR_OK) {
        rc = qr_tx_run(&conn->tx, fn, arg, err);
    }
    *ret_again = conn->run_again;
    *ret_stale = conn->plan_is_stale;
    if (!conn->is_broken) {
        conn->deadline_us = qr_thread_mono_us() + 1000000;
        qr_postgres_command(conn, "ROLLBACK", NULL);
    }
    qr_postgres_give(db, conn);
    return rc;
}

static qr_rc read_until(struct postgres_db *db, int64_t deadline_us, qr_tx_fn *fn, void *arg, qr_err *err)
{
    bool is_to_run_again, plan_is_stale;
    qr_rc rc = read_once(db, deadline_us, fn, arg, &is_to_run_again, &plan_is_stale, err);
    is_to_run_again = is_to_run_again || plan_is_stale;
    for (unsigned attempt = 0; is_to_run_again && qr_postgres_back_off(db, attempt, deadline_us); attempt++) {
        rc = read_once(db, deadline_us, fn, arg, &is_to_run_again, &plan_is_stale, err);
    }
    return rc;
}

static qr_rc postgres_read(struct qr_db *base, qr_tx_fn *fn, void *arg, qr_err *err)
{
    struct postgres_db *db = db_of(base);
    const qr_rc rc = read_until(db, qr_thread_mono_us() + db->read_deadline_ms * 1000, fn, arg, err);
    if (rc == QR_TIMEOUT) {
        QR_LOCKED(&db->lock);
        db->stats.read_timeouts++;
    }
    return rc;
}

static void postgres_stats(struct qr_db *base, struct qr_db_stats *ret_stats)
{
    struct postgres_db *db = db_of(base);
    QR_LOCKED(&db->lock);
    *ret_stats = db->stats;
}

/* ---- verify ---- */

/* Reading a table makes the server look at each of its pages. */
static qr_rc read_tables(struct qr_tx *tx, qr_err *err)
{
    QR_ROWS(tables);
    QR_TRY(qr_tx_query(tx, &tables,
                       "SELECT quote_ident(relname) FROM pg_catalog.pg_class "
                       "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY relname",
                       QR_NO_VALS, err));
    while (qr_rows_next(&tables)) {
        char sql[256];
        int64_t count;
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %.*s", QR_STR_ARG(qr_rows_str(&tables, 0)));
        QR_TRY(qr_tx_get_i64(tx, sql, QR_NO_VALS, NULL, &count, err));
    }
    return qr_rows_end(&tables, err);
}

static qr_rc check_indexes(struct qr_tx *tx, qr_str amcheck_schema, qr_err *err)
{
    QR_ROWS(indexes);
    QR_TRY(qr_tx_query(tx, &indexes,
                       "SELECT CAST(CAST(c.oid AS regclass) AS TEXT) FROM pg_catalog.pg_class c "
                       "JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid AND i.indisvalid "
                       "JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'btree' "
                       "WHERE c.relnamespace = current_schema()::regnamespace ORDER BY c.relname",
                       QR_NO_VALS, err));
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT %.*s.bt_index_check(CAST(?1 AS regclass))", QR_STR_ARG(amcheck_schema));
    while (qr_rows_next(&indexes)) {
        QR_TRY(qr_tx_exec(tx, sql, QR_VALS(qr_val_text(qr_rows_str(&indexes, 0))), NULL, err));
    }
    return qr_rows_end(&indexes, err);
}

/* Indexes are checked where the administrator has installed amcheck and lets us use it. */
static qr_rc look_through(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(read_tables(tx, err));
    QR_ROWS(amcheck);
    QR_TRY(qr_tx_query(tx, &amcheck,
                       "SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension e "
                       "JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace "
                       "JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid AND p.proname = 'bt_index_check' "
                       "WHERE e.extname = 'amcheck' AND has_function_privilege(p.oid, 'EXECUTE') LIMIT 1",
                       QR_NO_VALS, err));
    if (qr_rows_next(&amcheck)) {
        QR_TRY(check_indexes(tx, qr_rows_str(&amcheck, 0), err));
    }
    return qr_rows_end(&amcheck, err);
}

static qr_rc postgres_verify(struct qr_db *base, qr_err *err)
{
    return read_until(db_of(base), qr_thread_mono_us() + VERIFY_MS_MAX * INT64_C(1000), look_through, NULL, err);
}

/* ---- inside a transaction ---- */

static qr_rc postgres_savepoint(struct qr_tx *tx, qr_err *err)
{
    char sql[64];
    snprintf(sql, sizeof sql, "SAVEPOINT depth_%d", tx->depth);
    return qr_postgres_command(conn_of(tx), sql, err);
}

static qr_rc postgres_release(struct qr_tx *tx, qr_err *err)
{
    char sql[64];
    snprintf(sql, sizeof sql, "RELEASE SAVEPOINT depth_%d", tx->depth);
    return qr_postgres_command(conn_of(tx), sql, err);
}

static qr_rc postgres_rollback_to(struct qr_tx *tx, qr_err *err)
{
    char sql[96];
    snprintf(sql, sizeof sql, "ROLLBACK TO SAVEPOINT depth_%d; RELEASE SAVEPOINT depth_%d", tx->depth, tx->depth);
    return qr_postgres_command(conn_of(tx), sql, err);
}

/* The server's clock, so that processes on several hosts agree. Not the transaction's start: whoever waited for a lock
 * must see a later time than whoever held it. */
static qr_rc postgres_now_ms(struct qr_tx *tx, int64_t *ret_ms, qr_err *err)
{
    if (tx->db->clock_given) {
        *ret_ms = qr_clock_wall_ms(tx->db->clock);
        return QR_OK;
    }
    return qr_tx_get_i64(tx, "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)", QR_NO_VALS,
                         NULL, ret_ms, err);
}

/* From here on the transaction has another deadline: to change tables with much in them takes its time. */
static qr_rc postgres_lock_schema(struct qr_tx *tx, qr_err *err)
{
    conn_of(tx)->deadline_us = qr_thread_mono_us() + SCHEMA_MS_MAX * INT64_C(1000);
    QR_TRY(qr_postgres_set_timeout(conn_of(tx), err));
    return qr_postgres_command(conn_of(tx), POSTGRES_SCHEMA_LOCK_SQL, err);
}

static qr_rc postgres_has_table(struct qr_tx *tx, const char *table, bool *ret_has, qr_err *err)
{
    int64_t count = 0;
    QR_TRY(qr_tx_get_i64(tx,
                         "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = ?1 AND relkind IN ('r', 'p') "
                         "AND relnamespace = current_schema()::regnamespace",
                         QR_VALS(qr_val_text(qr_str_of(table))), NULL, &count, err));
    *ret_has = count > 0;
    return QR_OK;
}

const struct qr_driver qr_driver_postgres = {
    .name = "postgresql",
    .open = postgres_open,
    .close = postgres_close,
    .write = qr_postgres_write,
    .read = postgres_read,
    .listen = qr_postgres_listen,
    .stats = postgres_stats,
    .verify = postgres_verify,
    .exec = qr_postgres_exec,
    .script = qr_postgres_script,
    .savepoint = postgres_savepoint,
    .release = postgres_release,
    .rollback_to = postgres_rollback_to,
    .now_ms = postgres_now_ms,
    .lock_schema = postgres_lock_schema,
    .has_table = postgres_has_table,
    .query = qr_postgres_query,
    .rows_next = qr_postgres_rows_next,
    .rows_close = qr_postgres_rows_close,
    .rows_is_null = qr_postgres_rows_is_null,
    .rows_i64 = qr_postgres_rows_i64,
    .rows_f64 = qr_postgres_rows_f64,
    .rows_str = qr_postgres_rows_str,
};
