/* Keeps the write-ahead log within its limits (DB-7).
 *
 * The log grows with every commit. Above the soft limit a thread of its own copies it into the database file on a
 * connection of its own, while the writer writes on; the writer then starts over at the log's beginning as soon as nothing
 * in it is needed. Where the writer is faster, it does the short rest of the copying itself. At half of the hard limit it
 * stops and empties the log, waiting for the reads that still look into it; they have deadlines. If one holds on
 * nevertheless, writes are refused. The other half is room for one batch, whose values are counted; a function with more
 * than a quarter of the limit is refused. */
#include "base/sync.h"
#include "db/sqlite.h"

enum { FRAME_HEADER_BYTES = 24, LOG_HEADER_BYTES = 32, READER_GRACE_MS = 1000 };

static int64_t log_bytes(const struct sqlite_db *db)
{
    return LOG_HEADER_BYTES + db->wal_frames * (db->page_bytes + FRAME_HEADER_BYTES);
}

/* The rest is room for the batch that is written next. */
static int64_t full_bytes(const struct sqlite_db *db)
{
    return db->wal_hard_bytes / 2;
}

int64_t qr_sqlite_wal_batch_bytes(const struct sqlite_db *db)
{
    return db->wal_hard_bytes / 16; /* with the last function's own quarter at most, and pages are larger than values */
}

void qr_sqlite_wal_grew(struct sqlite_db *db)
{
    const int64_t bytes = log_bytes(db);
    QR_LOCKED(&db->lock);
    db->stats.wal_bytes = bytes;
    db->stats.wal_bytes_max = QR_MAX(db->stats.wal_bytes_max, bytes);
    if (bytes < db->wal_soft_bytes) {
        db->next_checkpoint_bytes = db->wal_soft_bytes; /* the log has started over */
    } else if (bytes >= db->next_checkpoint_bytes && !db->checkpoint_wanted && !db->single_thread) {
        /* the next round only when there is something to do: each costs a sync of the file */
        db->next_checkpoint_bytes = bytes + db->wal_soft_bytes / 2;
        db->checkpoint_wanted = true;
        pthread_cond_broadcast(&db->checkpoint_changed);
    }
}

static bool background_is_idle(struct sqlite_db *db)
{
    QR_LOCKED(&db->lock);
    return !db->checkpoint_running && !db->checkpoint_wanted;
}

static void set_log_is_full(struct sqlite_db *db, bool full)
{
    QR_LOCKED(&db->lock);
    db->log_is_full = full;
}

/* Not that somebody else was at it. */
static bool storage_failed(int sqlite_rc)
{
    const int primary = sqlite_rc & 0xFF;
    return primary != SQLITE_OK && primary != SQLITE_BUSY && primary != SQLITE_LOCKED;
}

static qr_rc empty_log(struct sqlite_db *db, qr_err *err)
{
    set_log_is_full(db, true);
    qr_sqlite_checkpoint_pause(db);
    sqlite3 *handle = db->writer->handle;
    sqlite3_busy_timeout(handle, (int)(db->read_deadline_ms + READER_GRACE_MS));
    const int rc = sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(handle, SQLITE_BUSY_TIMEOUT_MS);
    set_log_is_full(db, false);
    {
        QR_LOCKED(&db->lock);
        db->checkpoint_running = false;
        pthread_cond_broadcast(&db->checkpoint_changed);
    }
    if (rc == SQLITE_OK) {
        db->wal_frames = 0;
        qr_sqlite_wal_grew(db);
        return QR_OK;
    }
    if ((rc & 0xFF) == SQLITE_BUSY) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "the write-ahead log is full and a read has held it for over %lld ms",
                       (long long)db->read_deadline_ms);
    }
    return qr_sqlite_conn_fail(db->writer, rc, "emptying the write-ahead log", err);
}

qr_rc qr_sqlite_wal_make_room(struct sqlite_db *db, qr_err *err)
{
    const int64_t bytes = log_bytes(db);
    if (bytes >= full_bytes(db)) {
        return empty_log(db, err);
    }
    if (bytes < 2 * db->wal_soft_bytes) {
        db->next_help_bytes = 2 * db->wal_soft_bytes;
    } else if (bytes >= db->next_help_bytes && background_is_idle(db)) {
        /* the thread has copied nearly all of it: what is left is short, and after it the log starts over, unless a
         * read still looks into it; then there is no use in trying again at once */
        db->next_help_bytes = bytes + db->wal_soft_bytes;
        const int rc = sqlite3_wal_checkpoint_v2(db->writer->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        if (storage_failed(rc)) {
            return qr_sqlite_conn_fail(db->writer, rc, "copying the write-ahead log", err);
        }
    }
    return QR_OK;
}

void qr_sqlite_checkpoint_pause(struct sqlite_db *db)
{
    QR_LOCKED(&db->lock);
    while (db->checkpoint_running) {
        pthread_cond_wait(&db->checkpoint_changed, &db->lock);
    }
    db->checkpoint_running = true; /* by the writer */
}

/* True when there is work; false when the database closes. */
static bool wait_for_work(struct sqlite_db *db)
{
    QR_LOCKED(&db->lock);
    while (!db->stopping && (!db->checkpoint_wanted || db->checkpoint_running || db->reopening)) {
        pthread_cond_wait(&db->checkpoint_changed, &db->lock);
    }
    db->checkpoint_running = !db->stopping;
    return !db->stopping;
}

void *qr_sqlite_checkpoint_main(void *arg)
{
    struct sqlite_db *db = arg;
    if (db->is_background) {
        qr_thread_lower();
    }
    while (wait_for_work(db)) {
        /* opened for each round: a round moves megabytes, and nothing is left open when the file must be reopened */
        struct sqlite_conn *conn;
        int rc = SQLITE_OK;
        if (qr_sqlite_conn_open(&conn, db, SQLITE_ROLE_READER, NULL) == QR_OK) {
            rc = sqlite3_wal_checkpoint_v2(conn->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
            qr_sqlite_conn_close(conn);
        }
        QR_LOCKED(&db->lock);
        db->checkpoint_failed = db->checkpoint_failed || storage_failed(rc);
        db->checkpoint_running = false;
        db->checkpoint_wanted = false;
        pthread_cond_broadcast(&db->checkpoint_changed);
    }
    return NULL;
}
