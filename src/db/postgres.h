/* The PostgreSQL driver's own header: connections, their pool, statements, the listening thread. Private to src/db/. */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/thread.h"
#include "db/driver.h"

#include <libpq-fe.h>

struct postgres_db;

/* ---- one connection (postgres_conn.c) ---- */

enum {
    POSTGRES_WHERE_SIZE = 200, /* "host:port/database" */
    POSTGRES_VALUES_MAX = 1024,
    POSTGRES_GRACE_US = 250000, /* the server ends a statement at its deadline; we hang up this much later */
};

/* The values of a statement in the form libpq wants them. */
struct postgres_params {
    const char *values[POSTGRES_VALUES_MAX];
    int lengths[POSTGRES_VALUES_MAX];
    int formats[POSTGRES_VALUES_MAX];
    Oid types[POSTGRES_VALUES_MAX];
    uint64_t numbers[POSTGRES_VALUES_MAX]; /* in network order */
};

struct postgres_conn {
    struct qr_tx tx; /* first: the driver's calls get a qr_tx and mean its connection */
    const struct postgres_db *db;
    PGconn *pq;
    struct qr_map statements; /* value types and SQL → number of the prepared statement */
    struct postgres_params params;
    struct qr_buf scratch;
    char where[POSTGRES_WHERE_SIZE];
    int64_t deadline_us;    /* of the function it runs */
    qr_code late_code;      /* what passing it is called: `timeout` in a read, else `unavailable` */
    int64_t timeout_set_us; /* when the server was last told how much time is left */
    bool is_broken;         /* lost, or in a state nobody knows: closed instead of used again */
    bool run_again;         /* the function failed through no fault of its own */
    bool plan_is_stale;     /* another process has changed a table under a prepared statement: worth one more run */
    bool is_mark_prepared;
    uint64_t mark_high;         /* its commit marks are (mark_high, 1), (mark_high, 2), … */
    uint64_t mark_low;          /* the last one used */
    uint64_t mark_low_kept;     /* those below were deleted */
    struct postgres_conn *next; /* in the pool */
};

/* One attempt. *ret_final: trying again would not help. */
qr_rc qr_postgres_connect(struct postgres_conn **ret_conn, struct postgres_db *db, int64_t deadline_us, bool *ret_final,
                          qr_err *err);
void qr_postgres_disconnect(struct postgres_conn *conn);

/* Waits for one of the poll events on the socket; false at the deadline. */
bool qr_postgres_wait(const PGconn *pq, short events, int64_t deadline_us);

/* Waits for all answers to what was sent and judges them: the first failure, else the last result, which the caller
 * clears. Hangs up when the deadline passes. */
qr_rc qr_postgres_answer(struct postgres_conn *conn, PGresult **ret_result, qr_err *err);

/* Runs SQL of PostgreSQL's own dialect, several statements in one round trip; results are text. */
qr_rc qr_postgres_ask(struct postgres_conn *conn, const char *sql, PGresult **ret_result, qr_err *err);
qr_rc qr_postgres_command(struct postgres_conn *conn, const char *sql, qr_err *err);

/* ---- failures (postgres_error.c) ---- */

/* The failure of a command. Also notes on the connection whether it is lost, and whether the function is to be run
 * again. */
qr_rc qr_postgres_fail(struct postgres_conn *conn, const PGresult *result, qr_err *err);
qr_rc qr_postgres_fail_lost(struct postgres_conn *conn, qr_err *err);
/* The failure of an attempt to connect. */
qr_rc qr_postgres_fail_connect(const struct postgres_conn *conn, bool *ret_final, qr_err *err);
qr_rc qr_postgres_fail_no_answer(const struct postgres_conn *conn, qr_err *err);

/* ---- the listening thread (postgres_listen.c) ---- */

enum { POSTGRES_CHANNELS_MAX = 32 };

struct postgres_channels {
    const char *names[POSTGRES_CHANNELS_MAX];
    size_t count;
};

struct qr_postgres_listen {
    int wake_fd; /* written to whenever something below changed */
    pthread_t thread;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    bool is_running, stopping;
    struct postgres_channels wanted;
    size_t heard_count;             /* of the wanted ones, the first so many are listened to */
    struct postgres_channels dirty; /* to be told to other processes */
};

qr_rc qr_postgres_listen_init(struct qr_postgres_listen *listen, qr_err *err);
void qr_postgres_listen_done(struct qr_postgres_listen *listen);
qr_rc qr_postgres_listen(struct qr_db *base, const char *channel, qr_err *err);
/* Tells other processes, soon. It is a hint: what cannot be told is forgotten. */
void qr_postgres_notify(struct postgres_db *db, const char *const *channels, size_t count);

/* ---- the database and its pool (postgres_pool.c) ---- */

enum { POSTGRES_OPTIONS_MAX = 96 };

struct postgres_db {
    struct qr_db base; /* first */

    /* set at open, never changed */
    PQconninfoOption *parsed_url; /* holds the password: never shown */
    const char *option_names[POSTGRES_OPTIONS_MAX], *option_values[POSTGRES_OPTIONS_MAX];
    char where[POSTGRES_WHERE_SIZE];
    int conns_max;
    int64_t read_deadline_ms, write_deadline_ms;

    struct qr_postgres_listen listen;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    struct qr_rand *rand;
    struct postgres_conn *idle; /* the one used last is first: the others may age in peace */
    int conn_count;             /* idle, in use, or being made */
    int taken_count;            /* in use, or being made */
    int lost_count;             /* not made anew yet */
    /* While connecting fails one caller tries for all, at growing intervals. */
    unsigned failures;
    int trying_count;
    int64_t next_try_us;
    qr_err failure; /* the last one */
    struct qr_db_stats stats;
};

/* Waits for a connection until the deadline: `unavailable` says why there is none. */
qr_rc qr_postgres_take(struct postgres_db *db, int64_t deadline_us, struct postgres_conn **ret_conn, qr_err *err);
void qr_postgres_give(struct postgres_db *db, struct postgres_conn *conn);
void qr_postgres_close_idle(struct postgres_db *db);

/* How long to wait after so many failures to connect. */
int64_t qr_postgres_connect_pause_us(struct postgres_db *db, unsigned failures);
/* Sleeps a random while that grows with each attempt, from 0; false when the deadline would pass. */
bool qr_postgres_back_off(struct postgres_db *db, unsigned attempt, int64_t deadline_us);

/* ---- writes (postgres_write.c) ---- */

qr_rc qr_postgres_write(struct qr_db *base, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err);
/* Creates the table of commit marks where it is missing, and throws away marks that nobody can ask for any more. */
qr_rc qr_postgres_marks_prepare(struct postgres_conn *conn, qr_err *err);
/* Deletes the connection's own. */
void qr_postgres_marks_forget(struct postgres_conn *conn);

/* ---- inside a transaction (postgres_stmt.c) ---- */

qr_rc qr_postgres_exec(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                       int64_t *ret_changes, qr_err *err);
qr_rc qr_postgres_script(struct qr_tx *tx, const char *sql, qr_err *err);
qr_rc qr_postgres_query(struct qr_tx *tx, struct qr_rows *rows, const char *sql, const struct qr_val *vals,
                        size_t val_count, qr_err *err);
qr_rc qr_postgres_rows_next(struct qr_rows *rows, bool *ret_more, qr_err *err);
void qr_postgres_rows_close(struct qr_rows *rows);
bool qr_postgres_rows_is_null(const struct qr_rows *rows, int column);
int64_t qr_postgres_rows_i64(const struct qr_rows *rows, int column);
double qr_postgres_rows_f64(const struct qr_rows *rows, int column);
qr_str qr_postgres_rows_str(const struct qr_rows *rows, int column);

/* Tells the server how much time the function has left. */
qr_rc qr_postgres_set_timeout(struct postgres_conn *conn, qr_err *err);

/* "QuireDDL" in ASCII: one key for everything that changes tables */
#define POSTGRES_SCHEMA_LOCK_SQL "SELECT pg_advisory_xact_lock(5869713629393470540)"
