/* The pool: at most conns_max connections, made when they are needed, the one used last used next.
 *
 * While the server cannot be reached one caller tries for all, at growing intervals with some chance in them, and the
 * others wait for it: a server that comes up again must not meet everybody at once. */
#include "db/postgres.h"

#include <time.h>

enum {
    CONNECT_PAUSE_MS_MIN = 50,
    CONNECT_PAUSE_MS_MAX = 1000,
    BACK_OFF_MS_MIN = 2,
    BACK_OFF_MS_MAX = 200,
    DOUBLINGS_MAX = 16,
};

/* ---- waiting a while ---- */

/* From half of the interval to the whole of it; the interval doubles with each step up to its limit. */
static int64_t pause_us(struct postgres_db *db, unsigned step, int64_t ms_min, int64_t ms_max)
{
    const int64_t ms = QR_MIN(ms_min << QR_MIN(step, (unsigned)DOUBLINGS_MAX), ms_max);
    return ms * 500 + (int64_t)qr_rand_below(db->rand, (uint64_t)ms * 500);
}

int64_t qr_postgres_connect_pause_us(struct postgres_db *db, unsigned failures)
{
    QR_LOCKED(&db->lock);
    return pause_us(db, failures, CONNECT_PAUSE_MS_MIN, CONNECT_PAUSE_MS_MAX);
}

bool qr_postgres_back_off(struct postgres_db *db, unsigned attempt, int64_t deadline_us)
{
    int64_t us;
    {
        QR_LOCKED(&db->lock);
        us = pause_us(db, attempt, BACK_OFF_MS_MIN, BACK_OFF_MS_MAX);
    }
    if (qr_thread_mono_us() + us >= deadline_us) {
        return false;
    }
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
    return true;
}

/* ---- taking ---- */

/* How many this thread has. One that has some asks for another inside of a transaction, as the guards of the index do, while all others
 * may be waiting for what it has locked there: one connection more than conns_max is for such threads. */
static _Thread_local int taken_here;

static int taken_max(const struct postgres_db *db)
{
    return db->conns_max + (taken_here > 0 ? 1 : 0);
}

/* Whoever asks may take one more: so there is an idle one, or there are fewer than there may be. */
static bool may_connect(const struct postgres_db *db, int64_t now_us)
{
    return db->conn_count <= db->conns_max &&
           (db->failures == 0 || (db->trying_count == 0 && now_us >= db->next_try_us));
}

static void note_failure(struct postgres_db *db, const qr_err *failure)
{
    const int64_t now_us = qr_thread_mono_us();
    db->conn_count--;
    db->failure = *failure;
    if (db->failures == 0 || now_us >= db->next_try_us) { /* else several tried at once: it counts as one failure */
        db->next_try_us = now_us + pause_us(db, db->failures, CONNECT_PAUSE_MS_MIN, CONNECT_PAUSE_MS_MAX);
        db->failures++;
    }
}

static void note_success(struct postgres_db *db)
{
    db->failures = 0;
    if (db->lost_count > 0) {
        db->lost_count--;
        db->stats.reopens++;
    }
}

/* Tries once, without the lock meanwhile. *ret_conn stays NULL when it failed but may work later. */
static qr_rc try_to_connect(struct postgres_db *db, int64_t deadline_us, struct postgres_conn **ret_conn, qr_err *err)
{
    qr_err failure = {0};
    bool is_final;
    db->conn_count++;
    db->trying_count++;
    pthread_mutex_unlock(&db->lock);
    const qr_rc rc = qr_postgres_connect(ret_conn, db, deadline_us, &is_final, &failure);
    pthread_mutex_lock(&db->lock);
    db->trying_count--;
    if (rc == QR_OK) {
        note_success(db);
    } else {
        note_failure(db, &failure);
    }
    pthread_cond_broadcast(&db->changed);
    if (rc != QR_OK && is_final) {
        if (err) {
            *err = failure;
        }
        return rc;
    }
    return QR_OK;
}

static qr_rc give_up(struct postgres_db *db, qr_err *err)
{
    if (db->failures == 0) {
        return qr_fail(err, QR_CODE_TIMEOUT, "all %d connections to PostgreSQL at %s stayed busy", db->conns_max,
                       db->where);
    }
    if (err) {
        *err = db->failure;
    }
    return db->failure.rc;
}

static qr_rc wait_for_turn(struct postgres_db *db, int64_t deadline_us, qr_err *err)
{
    while (db->taken_count >= taken_max(db)) {
        if (qr_thread_mono_us() >= deadline_us) {
            return give_up(db, err);
        }
        qr_cond_wait_until_us(&db->changed, &db->lock, deadline_us);
    }
    return QR_OK;
}

static qr_rc take_one(struct postgres_db *db, int64_t deadline_us, struct postgres_conn **ret_conn, qr_err *err)
{
    struct postgres_conn *conn = NULL;
    while (!conn) {
        const int64_t now_us = qr_thread_mono_us();
        if (db->idle) {
            conn = db->idle;
            db->idle = conn->next;
        } else if (now_us >= deadline_us) {
            return give_up(db, err);
        } else if (may_connect(db, now_us)) {
            QR_TRY(try_to_connect(db, deadline_us, &conn, err));
        } else {
            const bool may_try_later = db->conn_count <= db->conns_max && db->trying_count == 0;
            qr_cond_wait_until_us(&db->changed, &db->lock,
                                  may_try_later ? QR_MIN(deadline_us, db->next_try_us) : deadline_us);
        }
    }
    conn->next = NULL;
    *ret_conn = conn;
    return QR_OK;
}

qr_rc qr_postgres_take(struct postgres_db *db, int64_t deadline_us, struct postgres_conn **ret_conn, qr_err *err)
{
    QR_LOCKED(&db->lock);
    QR_TRY(wait_for_turn(db, deadline_us, err));
    db->taken_count++;
    const qr_rc rc = take_one(db, deadline_us, ret_conn, err);
    if (rc == QR_OK) {
        taken_here++;
    } else {
        db->taken_count--;
        pthread_cond_broadcast(&db->changed);
    }
    return rc;
}

/* ---- giving back ---- */

static void disconnect_all(struct postgres_conn *conn)
{
    while (conn) {
        struct postgres_conn *next = conn->next;
        qr_postgres_disconnect(conn);
        conn = next;
    }
}

/* Where one was lost the idle ones are suspect too: they would each cost somebody an attempt. */
static struct postgres_conn *drop_with_idle(struct postgres_db *db, struct postgres_conn *lost)
{
    lost->next = db->idle;
    db->idle = NULL;
    for (const struct postgres_conn *at = lost; at; at = at->next) {
        db->conn_count--;
        db->lost_count++;
    }
    return lost;
}

void qr_postgres_give(struct postgres_db *db, struct postgres_conn *conn)
{
    struct postgres_conn *dropped = NULL;
    {
        QR_LOCKED(&db->lock);
        db->taken_count--;
        taken_here--;
        if (conn->is_broken) {
            dropped = drop_with_idle(db, conn);
        } else {
            conn->next = db->idle;
            db->idle = conn;
        }
        pthread_cond_broadcast(&db->changed); /* not all who wait may take it */
    }
    disconnect_all(dropped);
}

void qr_postgres_close_idle(struct postgres_db *db)
{
    for (struct postgres_conn *conn = db->idle; conn; conn = conn->next) {
        qr_postgres_marks_forget(conn);
    }
    disconnect_all(db->idle);
    db->idle = NULL;
}
