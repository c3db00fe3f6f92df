/* The SQLite driver's own header: connections, the group-commit writer, the pool of readers. Private to src/db/. */
#pragma once

#include "base/map.h"
#include "base/thread.h"
#include "db/driver.h"

#include <semaphore.h>
#include <sqlite3.h>

/* ---- one connection (sqlite_conn.c) ---- */

struct sqlite_conn {
    struct qr_tx tx; /* first: the driver's calls get a qr_tx and mean its connection */
    sqlite3 *handle;
    struct qr_map statements; /* SQL text → struct cached_statement */
    const struct qr_clock *clock;
    int64_t deadline_mono_ms;   /* statements are interrupted after it; 0 = never */
    int64_t bound_bytes;        /* texts and blobs that the current function has given to statements */
    int64_t bound_bytes_max;    /* that a function may give: the log must have room for it; 0 = any */
    qr_code seen_storage_error; /* the last I/O failure a statement met, for the writer to act on; else QR_CODE_NONE */
    const struct qr_postings *postings; /* while qr_tx_postings runs */
    struct sqlite_conn *next;           /* in the pool */
};

enum sqlite_role { SQLITE_ROLE_WRITER, SQLITE_ROLE_READER };

struct sqlite_db;

qr_rc qr_sqlite_conn_open(struct sqlite_conn **ret_conn, const struct sqlite_db *db, enum sqlite_role role,
                          qr_err *err);
void qr_sqlite_conn_close(struct sqlite_conn *conn);

/* Runs statements without values or rows; `doing` is what an error says was attempted. */
qr_rc qr_sqlite_conn_exec(struct sqlite_conn *conn, const char *sql, const char *doing, qr_err *err);
qr_rc qr_sqlite_conn_get_i64(struct sqlite_conn *conn, const char *sql, int64_t *ret_value, qr_err *err);

/* The failure that the connection's last call met. */
qr_rc qr_sqlite_conn_fail(struct sqlite_conn *conn, int sqlite_rc, const char *doing, qr_err *err);

/* Whether what runs on it has passed its deadline. */
bool qr_sqlite_conn_is_late(const struct sqlite_conn *conn);

/* Make the tokenizer known to FTS5 as `quire` (sqlite_tokenizer.c), and the function `postings` (sqlite_postings.c). The rc is
 * SQLite's. */
int qr_sqlite_find_fts5(sqlite3 *handle, fts5_api **ret_api);
int qr_sqlite_register_tokenizer(sqlite3 *handle, const struct qr_db_tokenizer *tokenizer);
int qr_sqlite_register_postings(struct sqlite_conn *conn);

/* True after SQLite itself has rolled everything back (disk full, I/O error, out of memory). */
static inline bool sqlite_conn_rolled_back(const struct sqlite_conn *conn)
{
    return sqlite3_get_autocommit(conn->handle) != 0;
}

/* ---- the database ---- */

struct write_request {
    enum qr_db_level level;
    qr_tx_fn *fn;
    void *arg;
    qr_err *err;
    qr_rc rc;
    sem_t answered;
    const char *channels[QR_TX_CHANNELS_MAX];
    size_t channel_count;
    struct write_request *next;
};

struct sqlite_db {
    struct qr_db base; /* first */

    /* set at open, never changed */
    char *path;
    char *vfs;
    const struct qr_clock *clock;
    const struct qr_io *io;
    int readers_max;
    int64_t read_deadline_ms;
    int64_t wal_soft_bytes, wal_hard_bytes;
    bool is_background;
    bool single_thread;
    const struct qr_db_tokenizer *tokenizer; /* may be NULL */
    int64_t schema_known;                    /* the newest version this program knows */
    pthread_t writer_thread, checkpoint_thread;

    /* the writer thread's alone */
    struct sqlite_conn *writer; /* NULL after a reopen failed */
    enum qr_db_level writer_level;
    int64_t commit_seq; /* of the last commit; stored in quire_commit with each */
    int64_t page_bytes;
    int64_t wal_frames;      /* in the log after the last commit */
    int64_t next_help_bytes; /* the log's size at which the writer helps with the checkpoint */

    pthread_mutex_t lock; /* guards everything below */

    struct write_request *queue, **queue_end;
    size_t queue_count;
    size_t writer_wants; /* the writer sleeps until that many wait; 0 = it is at work */
    pthread_cond_t work;
    bool stopping;

    struct sqlite_conn *free_readers;
    int readers_open, readers_in_use;
    bool reopening;   /* no read may begin */
    bool log_is_full; /* the hard limit is reached: long looks (verify) give way */
    pthread_cond_t reader_changed;

    bool checkpoint_wanted, checkpoint_running;
    bool checkpoint_failed;        /* the storage did: the writer opens everything anew before it writes on (W4) */
    int64_t next_checkpoint_bytes; /* the log's size at which the next one is wanted */
    pthread_cond_t checkpoint_changed;

    struct qr_db_stats stats;
};

/* Stored in the file's header: what the file is. "Quir". */
#define SQLITE_APPLICATION_ID 0x51756972

/* How long to wait for a lock on the file. Only foreign programs can hold one: the instance lock keeps other Quires
 * out. */
enum { SQLITE_BUSY_TIMEOUT_MS = 5000 };

/* sqlite_read.c */
qr_rc qr_sqlite_read(struct qr_db *base, qr_tx_fn *fn, void *arg, qr_err *err);
qr_rc qr_sqlite_verify(struct qr_db *base, qr_err *err);
/* Runs `fn` on a connection of its own, without a deadline. A look that takes long holds back the log, and a reopening: when
 * either is due (qr_sqlite_must_give_way) its statements are interrupted. */
typedef qr_rc qr_sqlite_look_fn(struct sqlite_db *db, struct sqlite_conn *conn, void *arg, qr_err *err);
qr_rc qr_sqlite_long_look(struct sqlite_db *db, qr_sqlite_look_fn *fn, void *arg, qr_err *err);
bool qr_sqlite_must_give_way(struct sqlite_db *db);
/* sqlite_copy.c */
qr_rc qr_sqlite_copy(struct qr_db *base, const char *path, int64_t *ret_commit, qr_err *err);
/* Keeps reads out, waits for those under way (they have deadlines) and closes their connections. */
void qr_sqlite_readers_stop(struct sqlite_db *db);
void qr_sqlite_readers_resume(struct sqlite_db *db);

/* sqlite_writer.c */
qr_rc qr_sqlite_write(struct qr_db *base, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err);
void *qr_sqlite_writer_main(void *arg);

/* sqlite_wal.c: keeps the log within its limits */
void *qr_sqlite_checkpoint_main(void *arg);
/* The writer calls it before each batch; `unavailable` when the log is full and a read holds it. */
qr_rc qr_sqlite_wal_make_room(struct sqlite_db *db, qr_err *err);
/* How many bytes of values a batch may hold before it takes no further function. */
int64_t qr_sqlite_wal_batch_bytes(const struct sqlite_db *db);
/* The writer calls it after each commit. */
void qr_sqlite_wal_grew(struct sqlite_db *db);
/* Waits until no background checkpoint runs, and keeps new ones from starting until qr_sqlite_readers_resume. */
void qr_sqlite_checkpoint_pause(struct sqlite_db *db);

/* sqlite_open.c */
/* Opens the write connection. Only at the start may a file be made: one that goes missing later is a fault of the storage,
 * and a new one in its place would hide it. */
qr_rc qr_sqlite_writer_connect(struct sqlite_db *db, bool may_create, qr_err *err);

/* The functions of the driver table that run inside a transaction (sqlite_conn.c). */
qr_rc qr_sqlite_exec(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                     int64_t *ret_changes, qr_err *err);
qr_rc qr_sqlite_script(struct qr_tx *tx, const char *sql, qr_err *err);
qr_rc qr_sqlite_savepoint(struct qr_tx *tx, qr_err *err);
qr_rc qr_sqlite_release(struct qr_tx *tx, qr_err *err);
qr_rc qr_sqlite_rollback_to(struct qr_tx *tx, qr_err *err);
qr_rc qr_sqlite_now_ms(struct qr_tx *tx, int64_t *ret_ms, qr_err *err);
qr_rc qr_sqlite_lock_schema(struct qr_tx *tx, qr_err *err);
qr_rc qr_sqlite_has_table(struct qr_tx *tx, const char *table, bool *ret_has, qr_err *err);
qr_rc qr_sqlite_query(struct qr_tx *tx, struct qr_rows *rows, const char *sql, const struct qr_val *vals,
                      size_t val_count, qr_err *err);
qr_rc qr_sqlite_rows_next(struct qr_rows *rows, bool *ret_more, qr_err *err);
void qr_sqlite_rows_close(struct qr_rows *rows);
bool qr_sqlite_rows_is_null(const struct qr_rows *rows, int column);
int64_t qr_sqlite_rows_i64(const struct qr_rows *rows, int column);
double qr_sqlite_rows_f64(const struct qr_rows *rows, int column);
qr_str qr_sqlite_rows_str(const struct qr_rows *rows, int column);
/* sqlite_postings.c */
qr_rc qr_sqlite_postings(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                         const struct qr_postings *postings, qr_err *err);
