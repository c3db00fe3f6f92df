/* Wake-ups between processes: one thread with a connection of its own that listens, and that tells the others.
 *
 * The writer does not NOTIFY in its transaction: that takes a lock of the whole server during COMMIT. It marks the
 * channel as dirty, and this thread tells at most every NOTIFY_PAUSE_US, many marks as one. Between processes a wake-up
 * is a hint, so a crash in between loses nothing that was promised.
 *
 * The thread sleeps in poll on its socket and on wake_fd; it never polls in the other sense. Lock order: `lock` is held
 * for the fields only, never while the server or a listener is talked to. */
#include "db/postgres.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    NOTIFY_PAUSE_US = 10000,
    CONNECT_US_MAX = 2000000, /* one attempt; closing waits for it */
    COMMAND_US_MAX = 5000000,
};

/* so that channels of other programs in the same database are not ours */
#define CHANNEL_PREFIX "quire_"

qr_rc qr_postgres_listen_init(struct qr_postgres_listen *listen, qr_err *err)
{
    listen->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (listen->wake_fd < 0) {
        return qr_fail_errno(err, errno, "cannot create an eventfd");
    }
    pthread_mutex_init(&listen->lock, NULL);
    qr_cond_init(&listen->changed);
    return QR_OK;
}

static void wake_thread(const struct qr_postgres_listen *listen)
{
    const uint64_t one = 1;
    const ssize_t written = write(listen->wake_fd, &one, sizeof one);
    (void)written; /* full: it is awake already */
}

void qr_postgres_listen_done(struct qr_postgres_listen *listen)
{
    pthread_mutex_lock(&listen->lock);
    listen->stopping = true;
    const bool is_running = listen->is_running;
    pthread_mutex_unlock(&listen->lock);
    if (is_running) {
        wake_thread(listen);
        pthread_join(listen->thread, NULL);
    }
    close(listen->wake_fd);
    pthread_cond_destroy(&listen->changed);
    pthread_mutex_destroy(&listen->lock);
}

/* ---- the set of channels ---- */

static size_t find_channel(const struct postgres_channels *set, const char *name)
{
    size_t i = 0;
    while (i < set->count && strcmp(set->names[i], name) != 0) {
        i++;
    }
    return i;
}

/* Its place in the set; POSTGRES_CHANNELS_MAX when that is full. */
static size_t add_channel(struct postgres_channels *set, const char *name)
{
    const size_t i = find_channel(set, name);
    if (i == set->count && set->count < POSTGRES_CHANNELS_MAX) {
        set->names[set->count++] = name;
    }
    return i;
}

/* One command for all of them: "LISTEN quire_a; LISTEN quire_b; " */
static qr_rc send_for_each(struct postgres_conn *conn, const char *verb, const struct postgres_channels *set)
{
    qr_buf_clear(&conn->scratch);
    for (size_t i = 0; i < set->count; i++) {
        qr_buf_printf(&conn->scratch, "%s " CHANNEL_PREFIX "%s; ", verb, set->names[i]);
    }
    QR_TRY(qr_buf_check(&conn->scratch, NULL));
    conn->deadline_us = qr_thread_mono_us() + COMMAND_US_MAX;
    return qr_postgres_command(conn, qr_buf_str(&conn->scratch).ptr, NULL);
}

/* ---- the thread ---- */

struct session {
    struct postgres_db *db;
    struct postgres_conn *conn;
    int64_t next_notify_us;
};

static bool is_stopping(struct qr_postgres_listen *listen)
{
    QR_LOCKED(&listen->lock);
    return listen->stopping;
}

/* A process that writes and ends at once still tells the others. */
static bool has_work(struct qr_postgres_listen *listen)
{
    QR_LOCKED(&listen->lock);
    return !listen->stopping || listen->dirty.count > 0;
}

static qr_rc listen_to_new(struct session *s)
{
    struct qr_postgres_listen *listen = &s->db->listen;
    struct postgres_channels new = {0};
    size_t wanted_count;
    {
        QR_LOCKED(&listen->lock);
        wanted_count = listen->wanted.count;
        for (size_t i = listen->heard_count; i < wanted_count; i++) {
            new.names[new.count++] = listen->wanted.names[i];
        }
    }
    if (new.count == 0) {
        return QR_OK;
    }
    QR_TRY(send_for_each(s->conn, "LISTEN", &new));
    QR_LOCKED(&listen->lock);
    listen->heard_count = wanted_count;
    pthread_cond_broadcast(&listen->changed);
    return QR_OK;
}

/* Tells what is due; *ret_due_us says when to come back, 0 = not before being woken. */
static qr_rc tell_dirty(struct session *s, int64_t *ret_due_us)
{
    struct qr_postgres_listen *listen = &s->db->listen;
    const int64_t now_us = qr_thread_mono_us();
    struct postgres_channels dirty;
    {
        QR_LOCKED(&listen->lock);
        dirty = listen->dirty;
        const bool may_wait = !listen->stopping && now_us < s->next_notify_us;
        *ret_due_us = dirty.count > 0 && may_wait ? s->next_notify_us : 0;
        if (dirty.count == 0 || *ret_due_us > 0) {
            return QR_OK;
        }
        listen->dirty.count = 0;
    }
    const qr_rc rc = send_for_each(s->conn, "NOTIFY", &dirty);
    s->next_notify_us = qr_thread_mono_us() + NOTIFY_PAUSE_US;
    if (rc != QR_OK) { /* with the next connection */
        QR_LOCKED(&listen->lock);
        for (size_t i = 0; i < dirty.count; i++) {
            add_channel(&listen->dirty, dirty.names[i]);
        }
    }
    return rc;
}

static void deliver(struct session *s)
{
    PGnotify *note;
    while ((note = PQnotifies(s->conn->pq))) {
        /* our own come back too: those listeners were woken at the commit */
        const bool is_ours = note->be_pid == PQbackendPID(s->conn->pq);
        if (!is_ours && qr_str_starts_with(qr_str_of(note->relname), QR_STR(CHANNEL_PREFIX))) {
            qr_db_wake(&s->db->base, note->relname + strlen(CHANNEL_PREFIX));
        }
        PQfreemem(note);
    }
}

/* Sleeps until woken, until the socket has something, or until due_us (0 = for ever). */
static void sleep_until(const struct qr_postgres_listen *listen, int socket, int64_t due_us)
{
    int timeout_ms = -1;
    if (due_us > 0) {
        timeout_ms = (int)QR_MAX(0, (due_us - qr_thread_mono_us() + 999) / 1000);
    }
    struct pollfd fds[] = {{.fd = listen->wake_fd, .events = POLLIN}, {.fd = socket, .events = POLLIN}};
    if (poll(fds, QR_COUNT(fds), timeout_ms) > 0 && fds[0].revents) {
        uint64_t woken;
        const ssize_t got = read(listen->wake_fd, &woken, sizeof woken);
        (void)got;
    }
}

/* Until the connection is lost or the database closes. */
static void serve(struct session *s)
{
    struct qr_postgres_listen *listen = &s->db->listen;
    while (has_work(listen)) {
        int64_t due_us;
        if (listen_to_new(s) != QR_OK || tell_dirty(s, &due_us) != QR_OK || !PQconsumeInput(s->conn->pq)) {
            return;
        }
        deliver(s);
        if (!is_stopping(listen)) {
            sleep_until(listen, PQsocket(s->conn->pq), due_us);
        }
    }
}

static void pause_before_retry(struct postgres_db *db, unsigned failures)
{
    const int64_t until_us = qr_thread_mono_us() + qr_postgres_connect_pause_us(db, failures);
    while (!is_stopping(&db->listen) && qr_thread_mono_us() < until_us) {
        sleep_until(&db->listen, -1, until_us);
    }
}

/* One connection, from its making to its end; false when it was of no use. */
static bool hold_session(struct postgres_db *db, unsigned sessions)
{
    struct session s = {.db = db};
    bool is_final;
    if (qr_postgres_connect(&s.conn, db, qr_thread_mono_us() + CONNECT_US_MAX, &is_final, NULL) != QR_OK) {
        return false;
    }
    {
        QR_LOCKED(&db->listen.lock);
        db->listen.heard_count = 0;
    }
    const bool is_listening = listen_to_new(&s) == QR_OK;
    if (is_listening) {
        if (sessions > 0) {
            qr_db_wake(&db->base, NULL); /* what was told in between was not heard */
        }
        serve(&s);
    }
    qr_postgres_disconnect(s.conn);
    return is_listening;
}

static void *listen_main(void *arg)
{
    struct postgres_db *db = arg;
    unsigned failures = 0, sessions = 0;
    while (has_work(&db->listen)) {
        const bool was_stopping = is_stopping(&db->listen);
        if (hold_session(db, sessions)) {
            sessions++;
            failures = 0;
        } else {
            pause_before_retry(db, failures++);
        }
        if (was_stopping) {
            break; /* it had its one attempt */
        }
    }
    return NULL;
}

/* ---- the callers' side ---- */

/* With the lock held. */
static qr_rc require_thread(struct postgres_db *db, qr_err *err)
{
    if (!db->listen.is_running) {
        QR_TRY(qr_thread_start(&db->listen.thread, "quire-listen", listen_main, db, err));
        db->listen.is_running = true;
    }
    return QR_OK;
}

qr_rc qr_postgres_listen(struct qr_db *base, const char *channel, qr_err *err)
{
    struct postgres_db *db = QR_CONTAINER_OF(base, struct postgres_db, base);
    struct qr_postgres_listen *listen = &db->listen;
    const int64_t deadline_us = qr_thread_mono_us() + db->write_deadline_ms * 1000;
    QR_LOCKED(&listen->lock);
    QR_TRY(require_thread(db, err));
    const size_t place = add_channel(&listen->wanted, channel);
    wake_thread(listen);
    /* from the answer on nothing is missed */
    while (listen->heard_count <= place) {
        if (!qr_cond_wait_until_us(&listen->changed, &listen->lock, deadline_us)) {
            return qr_fail(err, QR_CODE_UNAVAILABLE, "cannot listen at PostgreSQL at %s: is the server running?",
                           db->where);
        }
    }
    return QR_OK;
}

void qr_postgres_notify(struct postgres_db *db, const char *const *channels, size_t count)
{
    struct qr_postgres_listen *listen = &db->listen;
    QR_LOCKED(&listen->lock);
    if (require_thread(db, NULL) != QR_OK) {
        return;
    }
    const size_t before = listen->dirty.count;
    for (size_t i = 0; i < count; i++) {
        add_channel(&listen->dirty, channels[i]);
    }
    if (listen->dirty.count > before) {
        wake_thread(listen);
    }
}
