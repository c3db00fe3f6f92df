/* What a driver provides behind db.h. Private to src/db/.
 *
 * db.c checks arguments, keeps the sticky error of a transaction and the nesting, runs migrations and dispatches; a
 * driver only talks to its database. Its handles begin with these structs. */
#pragma once

#include "db/db.h"

#include <pthread.h>
#include <stdatomic.h>

enum { QR_TX_CHANNELS_MAX = 8, QR_DB_LISTENERS_MAX = 16 };

struct qr_tx {
    const struct qr_driver *driver;
    struct qr_db *db;
    int depth;      /* of qr_tx_nested */
    qr_err failed;  /* sticky: rc != QR_OK after a statement failed at this depth */
    bool doomed;    /* the database has already rolled back everything: no nested function can be undone alone */
    int64_t now_ms; /* 0 = not asked for yet */
    const char *channels[QR_TX_CHANNELS_MAX]; /* to wake after the commit */
    size_t channel_count;
};

/* Makes the transaction fresh for another run of its function. */
void qr_tx_begin(struct qr_tx *tx, const struct qr_driver *driver, struct qr_db *db);

/* Runs fn and gives its verdict: an error it swallowed is still an error. */
qr_rc qr_tx_run(struct qr_tx *tx, qr_tx_fn *fn, void *arg, qr_err *err);

struct qr_listener {
    const char *channel;
    qr_listen_fn *fn;
    void *arg;
};

struct qr_db {
    const struct qr_driver *driver;
    const struct qr_clock *clock;  /* never NULL */
    bool clock_given;              /* by the options: rules over a server's time */
    pthread_mutex_t listener_lock; /* guards the listeners */
    struct qr_listener listeners[QR_DB_LISTENERS_MAX];
    size_t listener_count;
    _Atomic uint64_t version; /* qr_db_version; a driver that knows begins with 2 */
};

/* A driver calls these first and last on the struct its handle begins with. */
void qr_db_init(struct qr_db *db);
void qr_db_done(struct qr_db *db);

/* Around everything that may change what is stored. */
void qr_db_change_begins(struct qr_db *db);
void qr_db_change_ends(struct qr_db *db);

/* `schema_newer` or `data_corrupt` unless this program, which knows versions up to `known`, can work with it. */
qr_rc qr_db_check_version(int64_t version, int64_t known, qr_err *err);

/* Calls the listeners of a channel, NULL = of all. */
void qr_db_wake(struct qr_db *db, const char *channel);

struct qr_driver {
    const char *name;

    /* Connects, creates an empty database where there is none, refuses what is foreign or damaged. The options are
     * complete (defaults filled in). The returned struct begins with a qr_db whose fields db.c fills in. */
    qr_rc (*open)(struct qr_db **ret_db, const struct qr_db_options *options, qr_err *err);
    void (*close)(struct qr_db *db);
    qr_rc (*write)(struct qr_db *db, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err);
    qr_rc (*read)(struct qr_db *db, qr_tx_fn *fn, void *arg, qr_err *err);
    /* A listener was added: make sure that wake-ups from elsewhere arrive. May be NULL. */
    qr_rc (*listen)(struct qr_db *db, const char *channel, qr_err *err);
    void (*stats)(struct qr_db *db, struct qr_db_stats *ret_stats);
    qr_rc (*verify)(struct qr_db *db, qr_err *err);
    qr_rc (*copy)(struct qr_db *db, const char *path, int64_t *ret_commit, qr_err *err); /* NULL = it cannot */

    /* Inside a transaction. A failing one leaves the current depth unusable; db.c takes care of that. */
    qr_rc (*exec)(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count, int64_t *ret_changes,
                  qr_err *err);
    qr_rc (*script)(struct qr_tx *tx, const char *sql, qr_err *err);
    qr_rc (*savepoint)(struct qr_tx *tx, qr_err *err); /* named by tx->depth */
    qr_rc (*release)(struct qr_tx *tx, qr_err *err);
    qr_rc (*rollback_to)(struct qr_tx *tx, qr_err *err); /* and releases it */
    qr_rc (*now_ms)(struct qr_tx *tx, int64_t *ret_ms, qr_err *err);
    /* One writer at a time may change the schema. */
    qr_rc (*lock_schema)(struct qr_tx *tx, qr_err *err);
    qr_rc (*has_table)(struct qr_tx *tx, const char *table, bool *ret_has, qr_err *err);

    qr_rc (*query)(struct qr_tx *tx, struct qr_rows *rows, const char *sql, const struct qr_val *vals, size_t val_count,
                   qr_err *err);
    /* rc != QR_OK is an error; *ret_more says whether there is a row. */
    qr_rc (*rows_next)(struct qr_rows *rows, bool *ret_more, qr_err *err);
    void (*rows_close)(struct qr_rows *rows);
    bool (*rows_is_null)(const struct qr_rows *rows, int column);
    int64_t (*rows_i64)(const struct qr_rows *rows, int column);
    double (*rows_f64)(const struct qr_rows *rows, int column);
    qr_str (*rows_str)(const struct qr_rows *rows, int column);

    /* NULL = there is no full-text search that could. */
    qr_rc (*postings)(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                      const struct qr_postings *postings, qr_err *err);
};

extern const struct qr_driver qr_driver_sqlite;
extern const struct qr_driver qr_driver_postgres;
