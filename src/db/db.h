/* One database interface over SQLite and PostgreSQL.
 *
 * A write is a function: the driver runs it inside a transaction, possibly several times (after a serialization
 * failure, a rollback of the whole batch, a lost connection), and answers after the commit. So it must have no effect
 * but on its `tx` and on `arg`, and it must set what it returns through `arg` anew each time. Its caller waits, so
 * `arg` may live on the caller's stack. A read is the same over a snapshot.
 *
 * SQL is one text for both drivers; db/sql.h says how it is written. After a statement has failed, every further one in
 * the same function fails with the same error, on both drivers: leave the function. What may fail on its own goes into
 * qr_tx_nested. An error is never control flow: use ON CONFLICT, RETURNING and counts of changed rows. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/rand.h"
#include "base/str.h"

struct qr_db;
struct qr_tx;

/* ---- opening ---- */

/* One step of the schema. Versions count up from 1 without a gap; a step that was released never changes again. */
struct qr_migration {
    const char *name;
    const char *sql; /* several statements */
};

/* SQLite: what makes words of text for full-text search. In the schema it is FTS5's tokenizer `quire`. */
struct qr_db_tokenizer {
    /* One for each connection and table. */
    qr_rc (*create)(void **ret_self, qr_err *err);
    void (*free)(void *self);
    /* Calls `fn` with the words in order, `is_same_place` for one at the place of the one before. The same text must always
     * have the same words: to forget a text its words are made again. Ends with what `fn` returns where that is not QR_OK. */
    qr_rc (*tokenize)(void *self, qr_str text, bool is_query,
                      qr_rc (*fn)(void *arg, qr_str word, size_t start, size_t end, bool is_same_place), void *arg,
                      qr_err *err);
};

struct qr_db_options {
    /* "sqlite:PATH", or a libpq connection string ("postgresql://…" or "postgres://…") */
    const char *url;
    const struct qr_migration *migrations;
    size_t migration_count;
    const struct qr_clock *clock; /* NULL = the system's; on PostgreSQL a given one replaces the server's time */
    struct qr_rand *rand;         /* NULL = the system's */
    int readers_max;              /* SQLite: read connections; PostgreSQL: connections in all. 0 = default */
    int64_t read_deadline_ms;     /* a read function that takes longer is interrupted. 0 = default */
    int64_t write_deadline_ms;    /* PostgreSQL: how long a write is tried again before `unavailable`. 0 = default */
    int64_t wal_soft_bytes;       /* SQLite: background checkpoints begin. 0 = default */
    int64_t wal_hard_bytes;       /* SQLite: the writer empties the log itself. 0 = default */
    bool is_background;           /* SQLite: nobody waits for its writes, so that who answers somebody goes first */
    bool single_thread;           /* SQLite: writes run on the caller's thread, no thread is started: for simulations */
    const struct qr_db_tokenizer *tokenizer; /* SQLite; NULL = none */
    const char *vfs;                         /* SQLite: tests put their own file layer here */
    const struct qr_io *io;                  /* for files we read ourselves. NULL = the system's */
};

/* The defaults behind the zeros above; also the defaults of the configuration. */
enum {
    QR_DB_READERS = 4,
    QR_DB_READ_DEADLINE_MS = 5000,
    QR_DB_WRITE_DEADLINE_MS = 30000,
    QR_DB_WAL_SOFT_BYTES = 8 << 20,
    QR_DB_WAL_HARD_BYTES = 64 << 20,
};

/* Opens, creating what is missing, and brings the schema up to date. Refuses with `data_foreign`, `data_corrupt`,
 * `schema_newer`, `data_readonly`, `disk_full`, `io_error`, `timeout`, `unavailable` or `invalid_value`; the data is then as
 * it was, but for migrations that were completed before one failed. */
qr_rc qr_db_open(struct qr_db **ret_db, const struct qr_db_options *options, qr_err *err);

/* Waits for writes under way. No call may be running or follow. */
void qr_db_close(struct qr_db *db);

/* "sqlite" or "postgresql" */
const char *qr_db_driver_name(const struct qr_db *db);

/* ---- transactions ---- */

enum qr_db_level {
    QR_RELAXED, /* survives kill -9; the last moments may be lost at power loss: claims, heartbeats, progress */
    QR_DURABLE, /* survives power loss: everything promised or paid for */
};

typedef qr_rc qr_tx_fn(struct qr_tx *tx, void *arg, qr_err *err);

/* Returns after the commit. Any rc but QR_OK, the function's own included, means that nothing was changed; with one
 * exception that cannot be helped: where storage or server failed during the commit and did not come back in time, the
 * message says that the outcome is not known. */
qr_rc qr_db_write(struct qr_db *db, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err);

/* Runs over one snapshot; QR_TIMEOUT when it passes the read deadline. */
qr_rc qr_db_read(struct qr_db *db, qr_tx_fn *fn, void *arg, qr_err *err);

/* Runs `fn` so that its failure undoes only its own changes. Returns fn's rc. */
qr_rc qr_tx_nested(struct qr_tx *tx, qr_tx_fn *fn, void *arg, qr_err *err);

/* The time of the transaction: the same in all of it. */
qr_rc qr_tx_now_ms(struct qr_tx *tx, int64_t *ret_wall_ms, qr_err *err);

/* ---- statements ---- */

enum qr_val_type { QR_VAL_NULL, QR_VAL_I64, QR_VAL_F64, QR_VAL_TEXT, QR_VAL_BLOB };

struct qr_val {
    enum qr_val_type type;
    union {
        int64_t i64;
        double f64;
        qr_str str; /* text (UTF-8, no NUL) or bytes; borrowed for the call */
    };
};

static inline struct qr_val qr_val_i64(int64_t value)
{
    return (struct qr_val){.type = QR_VAL_I64, .i64 = value};
}
static inline struct qr_val qr_val_f64(double value)
{
    return (struct qr_val){.type = QR_VAL_F64, .f64 = value};
}
static inline struct qr_val qr_val_text(qr_str text)
{
    return (struct qr_val){.type = QR_VAL_TEXT, .str = text};
}
static inline struct qr_val qr_val_blob(const void *bytes, size_t size_bytes)
{
    return (struct qr_val){.type = QR_VAL_BLOB, .str = {bytes, size_bytes}};
}
static inline struct qr_val qr_val_null(void)
{
    return (struct qr_val){.type = QR_VAL_NULL};
}

/* The values of ?1, ?2, … as the two arguments that follow `sql` in the calls below. */
#define QR_VALS(...)                                                                                                   \
    (const struct qr_val[]){__VA_ARGS__}, sizeof((const struct qr_val[]){__VA_ARGS__}) / sizeof(struct qr_val)
#define QR_NO_VALS NULL, 0

/* Runs a statement without a result. `ret_changes` may be NULL. */
qr_rc qr_tx_exec(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count, int64_t *ret_changes,
                 qr_err *err);

/* Runs several statements without values: schema changes. */
qr_rc qr_tx_script(struct qr_tx *tx, const char *sql, qr_err *err);

/* The rows of a query. Declare with QR_ROWS so that leaving the scope early closes them:
 *
 *     QR_ROWS(rows);
 *     QR_TRY(qr_tx_query(tx, &rows, "SELECT …", QR_VALS(…), err));
 *     while (qr_rows_next(&rows)) { … qr_rows_i64(&rows, 0) … }
 *     QR_TRY(qr_rows_end(&rows, err));
 */
struct qr_rows {
    struct qr_tx *tx;
    void *handle; /* the driver's; NULL = closed */
    int row;
    int column_count;
};
#define QR_ROWS(name) QR_CLEANUP(qr_rows_close) struct qr_rows name = {0}

qr_rc qr_tx_query(struct qr_tx *tx, struct qr_rows *rows, const char *sql, const struct qr_val *vals, size_t val_count,
                  qr_err *err);
/* False at the end, or at an error that qr_rows_end then tells (and that the transaction would not commit over). */
bool qr_rows_next(struct qr_rows *rows);
qr_rc qr_rows_end(struct qr_rows *rows, qr_err *err);
void qr_rows_close(struct qr_rows *rows);

/* Column values; text and bytes are borrowed until the next row. NULL reads as 0, 0.0 and the empty string. */
bool qr_rows_is_null(const struct qr_rows *rows, int column);
int64_t qr_rows_i64(const struct qr_rows *rows, int column);
double qr_rows_f64(const struct qr_rows *rows, int column);
qr_str qr_rows_str(const struct qr_rows *rows, int column);

/* The first column of the first row; *ret_found (may be NULL) says whether there was one, else *ret_value stays. */
qr_rc qr_tx_get_i64(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count, bool *ret_found,
                    int64_t *ret_value, qr_err *err);

/* SQLite's full-text search: where the phrases of a query occur, phrase by phrase, the rows of each in the order of their ids.
 * `fn` gets each row of a phrase, with the sum of its columns' weights (1 where there is none) over all places; false: it is
 * out of memory. It must not use the transaction. */
struct qr_postings {
    const double *weights;
    size_t weight_count;
    bool (*fn)(void *arg, int phrase, int64_t row_id, double frequency);
    void *arg;
};
/* `sql` is "SELECT postings(TABLE) FROM TABLE WHERE TABLE MATCH ?1 LIMIT 1". Where no row matches, `fn` is not called. */
qr_rc qr_tx_postings(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                     const struct qr_postings *postings, qr_err *err);

/* ---- wake-ups ---- */

/* After this transaction's commit, listeners of the channel are called: in this process at once, in others by
 * PostgreSQL's NOTIFY. Many notifications may arrive as one; after a lost connection one arrives without cause. It is a
 * hint: whoever needs certainty also looks from time to time. `channel` is a string constant of [a-z_]. */
qr_rc qr_tx_notify(struct qr_tx *tx, const char *channel, qr_err *err);

typedef void qr_listen_fn(void *arg, const char *channel);
/* `fn` runs on the driver's thread: it must only pass the wake-up on. Register before the first write. */
qr_rc qr_db_listen(struct qr_db *db, const char *channel, qr_listen_fn *fn, void *arg, qr_err *err);

/* Ends all listening with this `arg`. When it returns, none of its functions runs or will. Not from inside one. */
void qr_db_unlisten(struct qr_db *db, const void *arg);

/* ---- looking inside ---- */

struct qr_db_stats {
    uint64_t writes;  /* write functions answered */
    uint64_t commits; /* transactions that carried them */
    uint64_t reruns;  /* functions run again after a rollback that was not their own */
    uint64_t reopens; /* SQLite: after an I/O error; PostgreSQL: connections made anew */
    uint64_t read_timeouts;
    int64_t longest_write_us; /* from BEGIN to the end of COMMIT */
    int64_t wal_bytes;        /* SQLite: the log's size now and at its largest */
    int64_t wal_bytes_max;
};
void qr_db_stats(struct qr_db *db, struct qr_db_stats *ret_stats);

/* Looks through the whole database for damage; `data_corrupt` names the first finding. May take long. */
qr_rc qr_db_verify(struct qr_db *db, qr_err *err);

/* SQLite: copies the database as it is at one moment to `path`, where nothing may be yet, by a reader: writes go on. The bytes are
 * synced, the folder's entry is not. *ret_commit is the number of the last commit in the copy. A failure may leave a part of the
 * file. `unavailable` when so much is written meanwhile that the log has to be emptied; `invalid_value` on PostgreSQL. */
qr_rc qr_db_copy(struct qr_db *db, const char *path, int64_t *ret_commit, qr_err *err);
/* SQLite: the number of the last commit. As long as it is the same nothing has changed. */
qr_rc qr_db_last_commit(struct qr_db *db, int64_t *ret_commit, qr_err *err);

/* SQLite: another number after every commit, and an odd one while there is one; what was read at an even one is what is stored
 * as long as it is the same. Counts only what this process writes. Waits for nothing. 0 = not known: on PostgreSQL others
 * write too. */
uint64_t qr_db_version(const struct qr_db *db);

/* The schema version in force. */
qr_rc qr_db_schema_version(struct qr_db *db, int64_t *ret_version, qr_err *err);
