/* Between pieces that come when they come, and libmicrohttpd, which asks when it can send (http/feed.h). */
#include "http/feed.h"

#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum state {
    TAKEN,   /* all that was read is sent: libmicrohttpd asks for more */
    READING, /* by the pool; the connection is suspended, as while it is WAITING */
    WAITING, /* for the library to wake it */
    READY,   /* there are bytes to be sent */
    ENDED,
    BROKEN,
};

struct qr_feed {
    struct qr_feeds *feeds;
    struct MHD_Connection *connection;
    struct quire_pieces *pieces; /* until the response is gone */
    atomic_int holders; /* the response and the request: which of them goes first is libmicrohttpd's to choose */
    struct qr_pool_work work;
    bool is_endless;
    char address[QR_FEED_ADDRESS_SIZE];
    struct qr_feed *next, *previous; /* of the endless ones */
    enum state state;                /* feeds->lock holds it, and is_awake */
    bool is_awake;                   /* the library has called since pieces were last read */
    /* of the thread whose turn it is: the pool's while it reads, then the connection's */
    char *bytes;
    size_t len, taken, sent_bytes;
};

/* ---- all ---- */

void qr_feeds_init(struct qr_feeds *feeds)
{
    pthread_mutex_init(&feeds->lock, NULL);
    qr_cond_init(&feeds->changed);
}

void qr_feeds_done(struct qr_feeds *feeds)
{
    pthread_cond_destroy(&feeds->changed);
    pthread_mutex_destroy(&feeds->lock);
}

static bool must_end(const struct qr_feed *feed)
{
    return feed->feeds->is_closed || (feed->is_endless && feed->feeds->is_ending);
}

/* With the lock held. */
static void wake_with_lock(struct qr_feed *feed)
{
    feed->is_awake = true;
    if (feed->state == WAITING && !feed->feeds->is_closed) {
        feed->state = READING;
        qr_pool_add(feed->feeds->pool, &feed->work);
    }
    pthread_cond_broadcast(&feed->feeds->changed); /* of one that waits on its own thread */
}

void qr_feeds_end(struct qr_feeds *feeds)
{
    const int64_t deadline_us = qr_thread_mono_us() + QR_FEED_LAST_MS * 1000;
    QR_LOCKED(&feeds->lock);
    feeds->is_ending = true;
    for (struct qr_feed *feed = feeds->first; feed; feed = feed->next) {
        wake_with_lock(feed);
    }
    while (feeds->endless_count && qr_cond_wait_until_us(&feeds->changed, &feeds->lock, deadline_us)) {
    }
}

void qr_feeds_close(struct qr_feeds *feeds)
{
    QR_LOCKED(&feeds->lock);
    feeds->is_ending = true;
    feeds->is_closed = true;
    pthread_cond_broadcast(&feeds->changed);
}

/* ---- the library's side ---- */

static void on_wake(void *arg)
{
    struct qr_feed *feed = arg;
    QR_LOCKED(&feed->feeds->lock);
    wake_with_lock(feed);
}

void qr_feed_break(struct qr_feed *feed)
{
    QR_LOCKED(&feed->feeds->lock);
    if (feed->state == WAITING) {
        feed->state = BROKEN;
        MHD_resume_connection(feed->connection);
    }
}

static void begin_read(struct qr_feed *feed)
{
    QR_LOCKED(&feed->feeds->lock);
    feed->is_awake = false;
}

static long read_piece(struct qr_feed *feed)
{
    begin_read(feed);
    const size_t size = feed->is_endless ? QR_FEED_EVENT_BYTES : QR_FEED_PIECE_BYTES;
    feed->bytes = feed->bytes ? feed->bytes : qr_alloc(size);
    return feed->bytes ? quire_pieces_read(feed->pieces, feed->bytes, size) : QUIRE_PIECES_BROKEN;
}

/* F2; where the next one is sure to come, its place is kept. */
static void forget_piece(struct qr_feed *feed)
{
    if (feed->is_endless) {
        qr_free(feed->bytes);
        feed->bytes = NULL;
    }
    feed->len = feed->taken = 0;
}

/* With the lock held: what was read decides how it goes on. False: it is to be read once more. */
static bool settle(struct qr_feed *feed, long got)
{
    if (got > 0) {
        feed->len = (size_t)got;
        feed->state = READY;
    } else if (got < 0 || must_end(feed)) {
        feed->state = got == QUIRE_PIECES_BROKEN ? BROKEN : ENDED;
    } else if (feed->is_awake) {
        return false;
    } else {
        forget_piece(feed);
        feed->state = WAITING;
    }
    return true;
}

/* On a thread of the pool. What waits now may be read by the next thread already, or be gone: it is not touched any more. */
static void run_read(struct qr_pool_work *work)
{
    struct qr_feed *feed = (struct qr_feed *)((char *)work - offsetof(struct qr_feed, work));
    struct MHD_Connection *connection = feed->connection;
    bool is_settled = false, waits = false;
    while (!is_settled) {
        const long got = read_piece(feed);
        QR_LOCKED(&feed->feeds->lock);
        is_settled = settle(feed, got);
        waits = feed->state == WAITING;
        if (is_settled && !waits) {
            MHD_resume_connection(connection);
        }
    }
}

/* ---- libmicrohttpd's side ---- */

static void tell_move(const struct qr_feed *feed, size_t bytes)
{
    if (feed->is_endless && feed->feeds->on_move) {
        feed->feeds->on_move(feed->feeds->arg, feed->connection, bytes);
    }
}

static ssize_t give(struct qr_feed *feed, char *out, size_t size_max)
{
    const size_t len = QR_MIN(size_max, feed->len - feed->taken);
    memcpy(out, feed->bytes + feed->taken, len);
    feed->taken += len;
    feed->sent_bytes += len;
    if (feed->taken == feed->len) {
        forget_piece(feed);
    }
    return (ssize_t)len;
}

/* F1. The connection is suspended before the pool may resume it. */
static ssize_t ask_pool(struct qr_feed *feed)
{
    tell_move(feed, 0);
    QR_LOCKED(&feed->feeds->lock);
    if (must_end(feed)) {
        return feed->is_endless ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
    }
    feed->state = READING;
    MHD_suspend_connection(feed->connection);
    qr_pool_add(feed->feeds->pool, &feed->work);
    return 0;
}

static enum state state_of(struct qr_feed *feed)
{
    QR_LOCKED(&feed->feeds->lock);
    if (feed->state == READY && feed->taken == feed->len) {
        feed->state = TAKEN;
    }
    return feed->state;
}

static ssize_t on_room(void *arg, uint64_t sent_bytes QR_UNUSED, char *out, size_t size_max)
{
    struct qr_feed *feed = arg;
    switch (state_of(feed)) {
    case READY:
        tell_move(feed, feed->len - feed->taken);
        return give(feed, out, size_max);
    case ENDED:
        return MHD_CONTENT_READER_END_OF_STREAM;
    case BROKEN:
        return MHD_CONTENT_READER_END_WITH_ERROR;
    case TAKEN:
    case READING:
    case WAITING:
        break;
    }
    return ask_pool(feed);
}

/* The same where the thread is the connection's own. */
static ssize_t on_room_alone(void *arg, uint64_t sent_bytes QR_UNUSED, char *out, size_t size_max)
{
    struct qr_feed *feed = arg;
    for (;;) {
        begin_read(feed);
        const long got = quire_pieces_read(feed->pieces, out, size_max);
        if (got != 0) {
            feed->sent_bytes += got > 0 ? (size_t)got : 0;
            return got > 0                   ? got
                   : got == QUIRE_PIECES_END ? MHD_CONTENT_READER_END_OF_STREAM
                                             : MHD_CONTENT_READER_END_WITH_ERROR;
        }
        QR_LOCKED(&feed->feeds->lock);
        while (!feed->is_awake && !must_end(feed)) {
            pthread_cond_wait(&feed->feeds->changed, &feed->feeds->lock);
        }
        if (must_end(feed)) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
    }
}

/* ---- life ---- */

static void leave(struct qr_feed *feed)
{
    QR_LOCKED(&feed->feeds->lock);
    *(feed->previous ? &feed->previous->next : &feed->feeds->first) = feed->next;
    if (feed->next) {
        feed->next->previous = feed->previous;
    }
    feed->feeds->endless_count--;
    pthread_cond_broadcast(&feed->feeds->changed);
}

void qr_feed_release(struct qr_feed *feed)
{
    if (feed && atomic_fetch_sub(&feed->holders, 1) == 1) {
        qr_free(feed->bytes);
        qr_free(feed);
    }
}

/* Of the response. */
static void end_feed(void *arg)
{
    struct qr_feed *feed = arg;
    quire_pieces_free(feed->pieces); /* nobody wakes it from here on */
    feed->pieces = NULL;
    if (feed->is_endless) {
        leave(feed);
    }
    qr_feed_release(feed);
}

static int count_of_address(const struct qr_feeds *feeds, const char *address)
{
    int count = 0;
    for (const struct qr_feed *feed = feeds->first; feed; feed = feed->next) {
        count += strcmp(feed->address, address) == 0;
    }
    return count;
}

/* F3 */
static qr_rc enter(struct qr_feed *feed, qr_err *err)
{
    struct qr_feeds *feeds = feed->feeds;
    QR_LOCKED(&feeds->lock);
    if (feeds->endless_max && feeds->endless_count >= feeds->endless_max) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "%d clients follow events already, which is the most that are served",
                       feeds->endless_count);
    }
    if (feeds->address_max && count_of_address(feeds, feed->address) >= feeds->address_max) {
        return qr_fail(err, QR_CODE_RATE_LIMITED, "%d clients follow events from %s already", feeds->address_max,
                       feed->address);
    }
    feed->next = feeds->first;
    if (feed->next) {
        feed->next->previous = feed;
    }
    feeds->first = feed;
    feeds->endless_count++;
    return QR_OK;
}

static struct MHD_Response *respond(struct qr_feed *feed)
{
    const long long size = quire_pieces_size(feed->pieces);
    return MHD_create_response_from_callback(size < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)size,
                                             feed->is_endless ? QR_FEED_EVENT_BYTES : QR_FEED_PIECE_BYTES,
                                             feed->feeds->pool ? on_room : on_room_alone, feed, end_feed);
}

qr_rc qr_feed_create(struct qr_feeds *feeds, struct MHD_Connection *connection, const char *address,
                     struct quire_pieces *pieces, struct qr_feed **ret_feed, struct MHD_Response **ret_response,
                     qr_err *err)
{
    struct qr_feed *feed = qr_alloc_zero(sizeof *feed);
    if (!feed) {
        quire_pieces_free(pieces);
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer");
    }
    *feed = (struct qr_feed){.feeds = feeds, .connection = connection, .pieces = pieces, .work.run = run_read};
    atomic_init(&feed->holders, 1);
    snprintf(feed->address, sizeof feed->address, "%s", address ? address : "");
    if (quire_pieces_size(pieces) < 0) {
        feed->is_endless = true;
        const qr_rc rc = enter(feed, err);
        if (rc != QR_OK) {
            feed->is_endless = false; /* it is not in the list */
            end_feed(feed);
            return rc;
        }
    }
    quire_pieces_on_wake(pieces, on_wake, feed);
    *ret_response = respond(feed);
    if (!*ret_response) {
        end_feed(feed);
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer");
    }
    atomic_fetch_add(&feed->holders, 1);
    *ret_feed = feed;
    return QR_OK;
}

bool qr_feed_is_endless(const struct qr_feed *feed)
{
    return feed->is_endless;
}

size_t qr_feed_sent_bytes(const struct qr_feed *feed)
{
    return feed->sent_bytes;
}
