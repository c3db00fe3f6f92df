/* The group-commit writer: one thread owns the write connection and carries all waiting write functions in one
 * transaction. 64 callers that wait for one fdatasync each would wait for 64; together they wait for one.
 *
 * W1  An answer is given after the commit (DB-1) or after everything was rolled back (DB-2), never between.
 * W2  Each function runs in its own savepoint: its failure undoes it alone (DB-14).
 * W3  When SQLite rolled back the whole batch (disk full, out of memory, I/O), all its functions run again one by one.
 *     Nothing was answered yet, so nobody can tell.
 * W4  After an I/O error the file is closed and opened again, never retried in place: what the kernel dropped after a
 *     failed sync looks clean. Whether a commit that failed that way is in the log is then read from quire_commit, so
 *     the answer is the truth (DB-9).
 * W5  The batch's level is the strictest of its functions' and is set before BEGIN.
 * W6  No batch is begun, or goes on, that the log has no room for (DB-7). */
#include "base/failpoint.h"
#include "base/sync.h"
#include "db/sqlite.h"

#include <assert.h>
#include <stdio.h>

enum {
    BATCH_MAX = 512,
    BATCH_US_MAX = 20000, /* a batch takes no new function after this long: the next one is not kept waiting */
    GATHER_US_MAX = 150,  /* how long to wait for those who were just answered to come back with their next write */
    REOPEN_TRIES = 5,
    REOPEN_PAUSE_US = 20000,
};

struct batch {
    struct write_request *requests[BATCH_MAX];
    size_t count;
};

/* ---- the queue ---- */

/* Waits for the first function and, after a batch of several, a moment for as many as that one answered: they are on
 * their way. Without it batches alternate between one and all but one. */
static void wait_for_requests(struct sqlite_db *db, size_t last_count)
{
    while (db->queue_count == 0 && !db->stopping) {
        db->writer_wants = 1;
        pthread_cond_wait(&db->work, &db->lock);
    }
    const int64_t give_up_us = qr_thread_mono_us() + GATHER_US_MAX;
    while (last_count > 1 && db->queue_count < last_count && !db->stopping) {
        db->writer_wants = last_count;
        if (!qr_cond_wait_until_us(&db->work, &db->lock, give_up_us)) {
            break;
        }
    }
    db->writer_wants = 0;
}

/* False when the database closes and nothing waits. */
static bool take_batch(struct sqlite_db *db, struct batch *batch, size_t last_count)
{
    QR_LOCKED(&db->lock);
    wait_for_requests(db, last_count);
    batch->count = 0;
    while (db->queue && batch->count < BATCH_MAX) {
        struct write_request *request = db->queue;
        db->queue = request->next;
        db->queue_count--;
        batch->requests[batch->count++] = request;
    }
    if (!db->queue) {
        db->queue_end = &db->queue;
    }
    return batch->count > 0;
}

/* Puts what the batch had no time for back in front of the queue. */
static void give_back_rest(struct sqlite_db *db, struct batch *batch, size_t kept)
{
    QR_LOCKED(&db->lock);
    for (size_t i = batch->count; i > kept; i--) {
        struct write_request *request = batch->requests[i - 1];
        if (!db->queue) {
            db->queue_end = &request->next;
        }
        request->next = db->queue;
        db->queue = request;
        db->queue_count++;
    }
    batch->count = kept;
}

/* ---- answers ---- */

static void fail_request(struct write_request *request, const qr_err *failure)
{
    assert(failure->rc != QR_OK);
    request->rc = failure->rc;
    if (request->err) {
        *request->err = *failure;
    }
}

static void fail_batch(struct batch *batch, const qr_err *failure)
{
    for (size_t i = 0; i < batch->count; i++) {
        fail_request(batch->requests[i], failure);
    }
}

static void wake_listeners(struct sqlite_db *db, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct write_request *request = batch->requests[i];
        for (size_t k = 0; request->rc == QR_OK && k < request->channel_count; k++) {
            qr_db_wake(&db->base, request->channels[k]);
        }
    }
}

static void answer(struct sqlite_db *db, struct batch *batch)
{
    {
        QR_LOCKED(&db->lock);
        db->stats.writes += batch->count;
    }
    wake_listeners(db, batch);
    for (size_t i = 0; i < batch->count; i++) {
        sem_post(&batch->requests[i]->answered); /* the request is gone after this */
    }
}

/* ---- closing and opening again (W4) ---- */

static qr_rc reopen(struct sqlite_db *db, qr_err *err)
{
    qr_sqlite_readers_stop(db);
    qr_sqlite_checkpoint_pause(db);
    qr_sqlite_conn_close(db->writer);
    db->writer = NULL;
    qr_rc rc = QR_OK;
    for (int tries = 0; tries < REOPEN_TRIES; tries++) {
        rc = qr_sqlite_writer_connect(db, false, err);
        if (rc == QR_OK) {
            break;
        }
        /* the queue only: a pause, not a wait for anything that is signalled here */
        QR_LOCKED(&db->lock);
        const int64_t until_us = qr_thread_mono_us() + REOPEN_PAUSE_US;
        while (!db->stopping && qr_cond_wait_until_us(&db->work, &db->lock, until_us)) {
        }
    }
    atomic_fetch_add(&db->base.version, 2); /* a commit that was in doubt may be there now; odd stays odd */
    {
        QR_LOCKED(&db->lock);
        db->stats.reopens++;
        db->checkpoint_running = false;
        db->checkpoint_failed = false;
    }
    qr_sqlite_readers_resume(db);
    return rc;
}

/* After a statement or BEGIN met bad storage: nothing was committed. */
static void reopen_if_storage_failed(struct sqlite_db *db)
{
    if (db->writer && db->writer->seen_storage_error != QR_CODE_NONE) {
        reopen(db, NULL); /* if that fails the next batch tries again and tells */
    }
}

/* ---- one transaction ---- */

static qr_rc set_level(struct sqlite_db *db, enum qr_db_level level, qr_err *err)
{
    if (db->writer_level == level) {
        return QR_OK;
    }
    const char *sql = level == QR_DURABLE ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
    QR_TRY(qr_sqlite_conn_exec(db->writer, sql, "setting the level of a commit", err));
    db->writer_level = level;
    return QR_OK;
}

static enum qr_db_level level_of(const struct batch *batch)
{
    enum qr_db_level level = QR_RELAXED;
    for (size_t i = 0; i < batch->count; i++) {
        level = QR_MAX(level, batch->requests[i]->level);
    }
    return level;
}

static bool any_succeeded(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->requests[i]->rc == QR_OK) {
            return true;
        }
    }
    return false;
}

static qr_rc run_command(struct sqlite_db *db, const char *sql, qr_err *err)
{
    int64_t changes;
    return qr_sqlite_exec(&db->writer->tx, sql, QR_NO_VALS, &changes, err);
}

static bool checkpoint_failed(struct sqlite_db *db)
{
    QR_LOCKED(&db->lock);
    return db->checkpoint_failed;
}

static qr_rc begin(struct sqlite_db *db, enum qr_db_level level, qr_err *err)
{
    /* an open transaction: its ROLLBACK failed, for want of memory */
    if (!db->writer || checkpoint_failed(db) || !sqlite_conn_rolled_back(db->writer)) {
        QR_TRY(reopen(db, err));
    }
    QR_TRY(qr_sqlite_wal_make_room(db, err));
    QR_TRY(set_level(db, level, err));
    return run_command(db, "BEGIN IMMEDIATE", err);
}

static void roll_back(struct sqlite_db *db)
{
    if (!sqlite_conn_rolled_back(db->writer)) {
        run_command(db, "ROLLBACK", NULL);
    }
}

/* Runs one function in its savepoint (W2). False when the whole batch is lost. */
static bool run_request(struct sqlite_db *db, struct write_request *request)
{
    struct qr_tx *tx = &db->writer->tx;
    qr_err failure = {0};
    if (run_command(db, "SAVEPOINT request", &failure) != QR_OK) {
        fail_request(request, &failure);
        return false;
    }
    qr_tx_begin(tx, &qr_driver_sqlite, &db->base);
    db->writer->bound_bytes = 0;
    request->rc = qr_tx_run(tx, request->fn, request->arg, request->err ? request->err : &failure);
    memcpy(request->channels, tx->channels, sizeof tx->channels);
    request->channel_count = tx->channel_count;
    if (tx->doomed || sqlite_conn_rolled_back(db->writer)) {
        return false;
    }
    if ((request->rc != QR_OK && run_command(db, "ROLLBACK TO request", &failure) != QR_OK) ||
        run_command(db, "RELEASE request", &failure) != QR_OK) {
        fail_request(request, &failure);
        return false;
    }
    return true;
}

/* Runs the functions; stops early when time is up, or the room in the log (W6). False when the whole batch is lost. */
static bool run_requests(struct sqlite_db *db, struct batch *batch, int64_t began_us)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (i > 0 && (qr_thread_mono_us() - began_us > BATCH_US_MAX || bytes > qr_sqlite_wal_batch_bytes(db))) {
            give_back_rest(db, batch, i);
            break;
        }
        if (!run_request(db, batch->requests[i])) {
            return false;
        }
        bytes += db->writer->bound_bytes;
    }
    return true;
}

/* Leaves a mark in the transaction by which a commit in doubt is recognised later (W4). */
static qr_rc mark_commit(struct sqlite_db *db, qr_err *err)
{
    int64_t changes;
    return qr_sqlite_exec(&db->writer->tx, "UPDATE quire_commit SET seq = ?1 WHERE id = 1",
                          QR_VALS(qr_val_i64(db->commit_seq + 1)), &changes, err);
}

static void count_commit(struct sqlite_db *db, int64_t began_us)
{
    const int64_t took_us = qr_thread_mono_us() - began_us;
    QR_LOCKED(&db->lock);
    db->stats.commits++;
    db->stats.longest_write_us = QR_MAX(db->stats.longest_write_us, took_us);
}

/* A commit failed with an I/O error: it may or may not be in the log. Opening again settles it; qr_sqlite_writer_connect
 * has then read the last mark and made what is there durable. */
static qr_rc settle_doubt(struct sqlite_db *db, int64_t doubtful_seq, qr_err *err)
{
    qr_err failure = *err;
    qr_err reopen_failure;
    if (reopen(db, &reopen_failure) != QR_OK) {
        return qr_fail(err, QR_CODE_IO_ERROR,
                       "%s; whether it was stored is not known until the storage answers again (%s)", failure.msg,
                       reopen_failure.msg);
    }
    return db->commit_seq == doubtful_seq ? QR_OK : failure.rc;
}

static qr_rc commit_marked(struct sqlite_db *db, int64_t began_us, qr_err *err)
{
    const qr_rc rc = run_command(db, "COMMIT", err);
    if (rc != QR_OK) {
        if (db->writer->seen_storage_error != QR_CODE_NONE) {
            return settle_doubt(db, db->commit_seq + 1, err);
        }
        roll_back(db);
        return rc;
    }
    db->commit_seq++;
    count_commit(db, began_us);
    qr_sqlite_wal_grew(db);
    (void)QR_FAILPOINT_RC("db.write.after_commit", NULL); /* to die or to wait here; an error would come too late */
    return QR_OK;
}

static qr_rc commit(struct sqlite_db *db, int64_t began_us, qr_err *err)
{
    qr_rc rc = mark_commit(db, err);
    if (rc == QR_OK) {
        rc = QR_FAILPOINT_RC("db.write.before_commit", err);
    }
    if (rc != QR_OK) {
        roll_back(db);
        return rc;
    }
    qr_db_change_begins(&db->base);
    rc = commit_marked(db, began_us, err);
    qr_db_change_ends(&db->base);
    return rc;
}

/* One attempt at the whole batch. *ret_lost: it was rolled back although no function is to blame alone. */
static qr_rc try_batch(struct sqlite_db *db, struct batch *batch, bool *ret_lost, qr_err *err)
{
    *ret_lost = false;
    const int64_t began_us = qr_thread_mono_us();
    qr_rc rc = begin(db, level_of(batch), err);
    if (rc != QR_OK) {
        return rc;
    }
    if (!run_requests(db, batch, began_us)) {
        roll_back(db);
        *ret_lost = true;
        return QR_OK;
    }
    if (!any_succeeded(batch)) {
        roll_back(db);
        return QR_OK;
    }
    rc = commit(db, began_us, err);
    *ret_lost = rc == QR_FULL; /* what is too much together may fit one by one */
    return rc;
}

/* W3: each function for itself. One that is lost again is to blame itself, and has its own error. */
static void run_one_by_one(struct sqlite_db *db, struct batch *batch)
{
    {
        QR_LOCKED(&db->lock);
        db->stats.reruns += batch->count;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct batch single = {.requests = {batch->requests[i]}, .count = 1};
        qr_err failure = {0};
        bool lost;
        reopen_if_storage_failed(db);
        if (try_batch(db, &single, &lost, &failure) != QR_OK) {
            fail_request(batch->requests[i], &failure);
        } else if (lost && batch->requests[i]->rc == QR_OK) {
            /* the function swallowed the error that cost it its transaction */
            qr_fail(&failure, QR_CODE_IO_ERROR, "the transaction was rolled back by the database");
            fail_request(batch->requests[i], &failure);
        }
    }
}

static void run_batch(struct sqlite_db *db, struct batch *batch)
{
    qr_err failure = {0};
    bool lost;
    const qr_rc rc = try_batch(db, batch, &lost, &failure);
    if (lost) {
        run_one_by_one(db, batch);
    } else if (rc != QR_OK) {
        fail_batch(batch, &failure);
    }
    reopen_if_storage_failed(db);
}

/* The writer's work without its thread. */
static void write_here(struct sqlite_db *db, struct write_request *request)
{
    struct batch batch = {.requests = {request}, .count = 1};
    run_batch(db, &batch);
    wake_listeners(db, &batch);
    QR_LOCKED(&db->lock);
    db->stats.writes++;
}

qr_rc qr_sqlite_write(struct qr_db *base, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err)
{
    struct sqlite_db *db = QR_CONTAINER_OF(base, struct sqlite_db, base);
    struct write_request request = {.level = level, .fn = fn, .arg = arg, .err = err};
    if (db->single_thread) {
        write_here(db, &request);
        return request.rc;
    }
    /* a write inside a write function would wait for itself */
    assert(!pthread_equal(pthread_self(), db->writer_thread));
    sem_init(&request.answered, 0, 0);
    pthread_mutex_lock(&db->lock);
    *db->queue_end = &request;
    db->queue_end = &request.next;
    db->queue_count++;
    if (db->writer_wants && db->queue_count >= db->writer_wants) {
        db->writer_wants = 0;
        pthread_cond_signal(&db->work);
    }
    pthread_mutex_unlock(&db->lock);
    while (sem_wait(&request.answered) != 0) {
        /* interrupted by a signal */
    }
    sem_destroy(&request.answered);
    return request.rc;
}

void *qr_sqlite_writer_main(void *arg)
{
    struct sqlite_db *db = arg;
    struct batch batch;
    size_t last_count = 0;
    if (db->is_background) {
        qr_thread_lower();
    }
    while (take_batch(db, &batch, last_count)) {
        run_batch(db, &batch);
        last_count = batch.count;
        answer(db, &batch);
    }
    return NULL;
}
