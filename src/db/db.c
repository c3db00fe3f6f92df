/* What both drivers share: the choice of the driver, checked arguments, the sticky error of a transaction, nesting,
 * migrations, wake-ups.
 *
 * Invariant: after a statement failed, tx->failed is set until the innermost nested function (or the transaction) has
 * been undone; no statement reaches the driver meanwhile. So a half-done function can neither go on nor be committed.
 */
#include "db/db.h"

#include "base/thread.h"
#include "db/driver.h"

#include <assert.h>

/* ---- transactions ---- */

void qr_tx_begin(struct qr_tx *tx, const struct qr_driver *driver, struct qr_db *db)
{
    *tx = (struct qr_tx){.driver = driver, .db = db};
}

/* Passes on the error that made the transaction unusable, if any. */
static qr_rc require_usable(const struct qr_tx *tx, qr_err *err)
{
    if (tx->failed.rc != QR_OK && err) {
        *err = tx->failed;
    }
    return tx->failed.rc;
}

static qr_rc remember_failure(struct qr_tx *tx, const qr_err *failure, qr_err *err)
{
    if (tx->failed.rc == QR_OK) {
        tx->failed = *failure;
    }
    return require_usable(tx, err);
}

qr_rc qr_tx_run(struct qr_tx *tx, qr_tx_fn *fn, void *arg, qr_err *err)
{
    const qr_rc rc = fn(tx, arg, err);
    return rc != QR_OK ? rc : require_usable(tx, err);
}

static qr_rc undo_nested(struct qr_tx *tx, qr_rc rc, qr_err *err)
{
    if (tx->doomed) {
        assert(tx->failed.rc != QR_OK); /* nothing is left to return to: the whole transaction has this failure */
        return rc;
    }
    qr_err failure = {0};
    if (tx->driver->rollback_to(tx, &failure) != QR_OK) {
        tx->doomed = true;
        tx->failed = failure;
        return require_usable(tx, err);
    }
    tx->failed = (qr_err){0};
    return rc;
}

qr_rc qr_tx_nested(struct qr_tx *tx, qr_tx_fn *fn, void *arg, qr_err *err)
{
    qr_err failure = {0};
    QR_TRY(require_usable(tx, err));
    tx->depth++;
    if (tx->driver->savepoint(tx, &failure) != QR_OK) {
        tx->depth--;
        return remember_failure(tx, &failure, err);
    }
    qr_rc rc = qr_tx_run(tx, fn, arg, err ? err : &failure);
    if (rc != QR_OK) {
        rc = undo_nested(tx, rc, err ? err : &failure);
    } else if (tx->driver->release(tx, &failure) != QR_OK) {
        rc = remember_failure(tx, &failure, err);
    }
    tx->depth--;
    return rc;
}

qr_rc qr_tx_now_ms(struct qr_tx *tx, int64_t *ret_wall_ms, qr_err *err)
{
    QR_TRY(require_usable(tx, err));
    if (tx->now_ms == 0) {
        qr_err failure = {0};
        int64_t now_ms;
        if (tx->driver->now_ms(tx, &now_ms, &failure) != QR_OK) {
            return remember_failure(tx, &failure, err);
        }
        tx->now_ms = now_ms;
    }
    *ret_wall_ms = tx->now_ms;
    return QR_OK;
}

/* ---- statements ---- */

/* PostgreSQL takes neither of these; SQLite would. */
static qr_rc check_values(const struct qr_val *vals, size_t val_count, qr_err *err)
{
    for (size_t i = 0; i < val_count; i++) {
        if (vals[i].type != QR_VAL_TEXT || vals[i].str.len == 0) {
            continue;
        }
        if (memchr(vals[i].str.ptr, '\0', vals[i].str.len)) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "text with a NUL character cannot be stored");
        }
        if (!qr_utf8_valid(vals[i].str)) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "text that is not valid UTF-8 cannot be stored");
        }
    }
    return QR_OK;
}

qr_rc qr_tx_exec(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count, int64_t *ret_changes,
                 qr_err *err)
{
    QR_TRY(require_usable(tx, err));
    qr_err failure = {0};
    int64_t changes;
    if (check_values(vals, val_count, &failure) != QR_OK ||
        tx->driver->exec(tx, sql, vals, val_count, &changes, &failure) != QR_OK) {
        return remember_failure(tx, &failure, err);
    }
    if (ret_changes) {
        *ret_changes = changes;
    }
    return QR_OK;
}

qr_rc qr_tx_script(struct qr_tx *tx, const char *sql, qr_err *err)
{
    QR_TRY(require_usable(tx, err));
    qr_err failure = {0};
    if (tx->driver->script(tx, sql, &failure) != QR_OK) {
        return remember_failure(tx, &failure, err);
    }
    return QR_OK;
}

qr_rc qr_tx_query(struct qr_tx *tx, struct qr_rows *rows, const char *sql, const struct qr_val *vals, size_t val_count,
                  qr_err *err)
{
    assert(!rows->handle);
    QR_TRY(require_usable(tx, err));
    *rows = (struct qr_rows){.tx = tx, .row = -1};
    qr_err failure = {0};
    if (check_values(vals, val_count, &failure) != QR_OK ||
        tx->driver->query(tx, rows, sql, vals, val_count, &failure) != QR_OK) {
        return remember_failure(tx, &failure, err);
    }
    return QR_OK;
}

bool qr_rows_next(struct qr_rows *rows)
{
    struct qr_tx *tx = rows->tx;
    if (!rows->handle || tx->failed.rc != QR_OK) {
        return false;
    }
    bool more = false;
    qr_err failure = {0};
    if (tx->driver->rows_next(rows, &more, &failure) != QR_OK) {
        remember_failure(tx, &failure, NULL);
        more = false;
    }
    if (!more) {
        qr_rows_close(rows);
    }
    return more;
}

qr_rc qr_rows_end(struct qr_rows *rows, qr_err *err)
{
    qr_rows_close(rows);
    return rows->tx ? require_usable(rows->tx, err) : QR_OK;
}

void qr_rows_close(struct qr_rows *rows)
{
    if (rows->handle) {
        rows->tx->driver->rows_close(rows);
        rows->handle = NULL;
    }
}

bool qr_rows_is_null(const struct qr_rows *rows, int column)
{
    assert(rows->handle && column >= 0 && column < rows->column_count);
    return rows->tx->driver->rows_is_null(rows, column);
}

int64_t qr_rows_i64(const struct qr_rows *rows, int column)
{
    assert(rows->handle && column >= 0 && column < rows->column_count);
    return rows->tx->driver->rows_i64(rows, column);
}

double qr_rows_f64(const struct qr_rows *rows, int column)
{
    assert(rows->handle && column >= 0 && column < rows->column_count);
    return rows->tx->driver->rows_f64(rows, column);
}

qr_str qr_rows_str(const struct qr_rows *rows, int column)
{
    assert(rows->handle && column >= 0 && column < rows->column_count);
    return rows->tx->driver->rows_str(rows, column);
}

qr_rc qr_tx_get_i64(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count, bool *ret_found,
                    int64_t *ret_value, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, vals, val_count, err));
    const bool found = qr_rows_next(&rows);
    const int64_t value = found ? qr_rows_i64(&rows, 0) : 0;
    QR_TRY(qr_rows_end(&rows, err));
    if (ret_found) {
        *ret_found = found;
    }
    if (found) {
        *ret_value = value;
    }
    return QR_OK;
}

qr_rc qr_tx_postings(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                     const struct qr_postings *postings, qr_err *err)
{
    assert(tx->driver->postings);
    return tx->driver->postings(tx, sql, vals, val_count, postings, err);
}

/* ---- wake-ups ---- */

qr_rc qr_tx_notify(struct qr_tx *tx, const char *channel, qr_err *err)
{
    QR_TRY(require_usable(tx, err));
    for (size_t i = 0; i < tx->channel_count; i++) {
        if (strcmp(tx->channels[i], channel) == 0) {
            return QR_OK;
        }
    }
    assert(tx->channel_count < QR_TX_CHANNELS_MAX);
    tx->channels[tx->channel_count++] = channel;
    return QR_OK;
}

qr_rc qr_db_listen(struct qr_db *db, const char *channel, qr_listen_fn *fn, void *arg, qr_err *err)
{
    if (db->driver->listen) {
        QR_TRY(db->driver->listen(db, channel, err));
    }
    QR_LOCKED(&db->listener_lock);
    assert(db->listener_count < QR_DB_LISTENERS_MAX);
    db->listeners[db->listener_count++] = (struct qr_listener){channel, fn, arg};
    return QR_OK;
}

void qr_db_unlisten(struct qr_db *db, const void *arg)
{
    QR_LOCKED(&db->listener_lock);
    size_t kept = 0;
    for (size_t i = 0; i < db->listener_count; i++) {
        if (db->listeners[i].arg != arg) {
            db->listeners[kept++] = db->listeners[i];
        }
    }
    db->listener_count = kept;
}

/* Listeners are called with the lock held: so qr_db_unlisten knows that none runs any more. */
void qr_db_wake(struct qr_db *db, const char *channel)
{
    QR_LOCKED(&db->listener_lock);
    for (size_t i = 0; i < db->listener_count; i++) {
        const struct qr_listener *listener = &db->listeners[i];
        if (!channel || strcmp(listener->channel, channel) == 0) {
            listener->fn(listener->arg, listener->channel);
        }
    }
}

/* ---- migrations ---- */

struct migration_state {
    const struct qr_migration *migrations;
    int64_t known;   /* how many this program has */
    int64_t version; /* how many the database has */
};

static qr_rc read_version(struct qr_tx *tx, void *arg, qr_err *err)
{
    int64_t *version = arg;
    *version = 0;
    bool has_table;
    QR_TRY(tx->driver->has_table(tx, "quire_schema", &has_table, err));
    if (!has_table) {
        return QR_OK;
    }
    return qr_tx_get_i64(tx, "SELECT coalesce(max(version), 0) FROM quire_schema", QR_NO_VALS, NULL, version, err);
}

qr_rc qr_db_check_version(int64_t version, int64_t known, qr_err *err)
{
    if (version < 0) {
        return qr_fail(err, QR_CODE_DATA_CORRUPT, "the database has schema version %lld", (long long)version);
    }
    if (version > known) {
        return qr_fail(err, QR_CODE_SCHEMA_NEWER,
                       "the database has schema version %lld, this program knows versions up to %lld",
                       (long long)version, (long long)known);
    }
    return QR_OK;
}

/* One step, in a transaction of its own; the version is read again under the schema lock because another process may
 * have been faster. */
static qr_rc migrate_one(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct migration_state *state = arg;
    QR_TRY(tx->driver->lock_schema(tx, err));
    QR_TRY(qr_tx_script(tx,
                        "CREATE TABLE IF NOT EXISTS quire_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                        "applied_at INTEGER NOT NULL) STRICT",
                        err));
    QR_TRY(read_version(tx, &state->version, err));
    QR_TRY(qr_db_check_version(state->version, state->known, err));
    if (state->version == state->known) {
        return QR_OK;
    }
    const struct qr_migration *step = &state->migrations[state->version];
    int64_t now_ms = 0;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    const qr_rc rc = qr_tx_script(tx, step->sql, err);
    if (rc != QR_OK) {
        qr_err_prefix(err, "migration %lld (%s)", (long long)state->version + 1, step->name);
        return rc;
    }
    QR_TRY(qr_tx_exec(tx, "INSERT INTO quire_schema (version, name, applied_at) VALUES (?1, ?2, ?3)",
                      QR_VALS(qr_val_i64(state->version + 1), qr_val_text(qr_str_of(step->name)), qr_val_i64(now_ms)),
                      NULL, err));
    state->version++;
    return QR_OK;
}

static qr_rc migrate(struct qr_db *db, const struct qr_db_options *options, qr_err *err)
{
    struct migration_state state = {options->migrations, (int64_t)options->migration_count, 0};
    QR_TRY(qr_db_read(db, read_version, &state.version, err));
    QR_TRY(qr_db_check_version(state.version, state.known, err));
    while (state.version < state.known) {
        QR_TRY(qr_db_write(db, QR_DURABLE, migrate_one, &state, err));
    }
    return QR_OK;
}

/* ---- the handle ---- */

void qr_db_init(struct qr_db *db)
{
    pthread_mutex_init(&db->listener_lock, NULL);
}

void qr_db_done(struct qr_db *db)
{
    pthread_mutex_destroy(&db->listener_lock);
}

static const struct qr_driver *find_driver(const char *url)
{
    if (qr_str_starts_with(qr_str_of(url), QR_STR("sqlite:"))) {
        return &qr_driver_sqlite;
    }
    if (qr_str_starts_with(qr_str_of(url), QR_STR("postgresql://")) ||
        qr_str_starts_with(qr_str_of(url), QR_STR("postgres://"))) {
        return &qr_driver_postgres;
    }
    return NULL;
}

static void fill_defaults(struct qr_db_options *options)
{
#define DEFAULT(field, value) options->field = options->field ? options->field : (value)
    DEFAULT(clock, qr_clock_system());
    DEFAULT(rand, qr_rand_system());
    DEFAULT(io, qr_io_system());
    DEFAULT(readers_max, QR_DB_READERS);
    DEFAULT(read_deadline_ms, QR_DB_READ_DEADLINE_MS);
    DEFAULT(write_deadline_ms, QR_DB_WRITE_DEADLINE_MS);
    DEFAULT(wal_soft_bytes, QR_DB_WAL_SOFT_BYTES);
    DEFAULT(wal_hard_bytes, QR_DB_WAL_HARD_BYTES);
#undef DEFAULT
}

qr_rc qr_db_open(struct qr_db **ret_db, const struct qr_db_options *options, qr_err *err)
{
    const struct qr_driver *driver = find_driver(options->url);
    if (!driver) {
        /* the text itself is not repeated: it may hold a password (I10) */
        return qr_fail(err, QR_CODE_INVALID_VALUE, "a database url begins with sqlite: or postgresql://");
    }
    struct qr_db_options full = *options;
    fill_defaults(&full);
    struct qr_db *db;
    QR_TRY(driver->open(&db, &full, err));
    db->driver = driver;
    db->clock = full.clock;
    db->clock_given = options->clock != NULL;
    const qr_rc rc = migrate(db, &full, err);
    if (rc != QR_OK) {
        qr_db_close(db);
        return rc;
    }
    *ret_db = db;
    return QR_OK;
}

void qr_db_close(struct qr_db *db)
{
    if (db) {
        db->driver->close(db);
    }
}

const char *qr_db_driver_name(const struct qr_db *db)
{
    return db->driver->name;
}

qr_rc qr_db_write(struct qr_db *db, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err)
{
    return db->driver->write(db, level, fn, arg, err);
}

qr_rc qr_db_read(struct qr_db *db, qr_tx_fn *fn, void *arg, qr_err *err)
{
    return db->driver->read(db, fn, arg, err);
}

void qr_db_stats(struct qr_db *db, struct qr_db_stats *ret_stats)
{
    db->driver->stats(db, ret_stats);
}

qr_rc qr_db_verify(struct qr_db *db, qr_err *err)
{
    return db->driver->verify(db, err);
}

qr_rc qr_db_copy(struct qr_db *db, const char *path, int64_t *ret_commit, qr_err *err)
{
    return db->driver->copy ? db->driver->copy(db, path, ret_commit, err)
                            : qr_fail(err, QR_CODE_INVALID_VALUE, "a database on a server is not copied from here");
}

static qr_rc read_commit(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_get_i64(tx, "SELECT seq FROM quire_commit WHERE id = 1", QR_NO_VALS, NULL, arg, err);
}

qr_rc qr_db_last_commit(struct qr_db *db, int64_t *ret_commit, qr_err *err)
{
    return qr_db_read(db, read_commit, ret_commit, err);
}

uint64_t qr_db_version(const struct qr_db *db)
{
    return atomic_load(&db->version);
}

void qr_db_change_begins(struct qr_db *db)
{
    const uint64_t before = atomic_fetch_add(&db->version, 1);
    assert(before % 2 == 0);
}

void qr_db_change_ends(struct qr_db *db)
{
    const uint64_t before = atomic_fetch_add(&db->version, 1);
    assert(before % 2 == 1);
}

qr_rc qr_db_schema_version(struct qr_db *db, int64_t *ret_version, qr_err *err)
{
    return qr_db_read(db, read_version, ret_version, err);
}
