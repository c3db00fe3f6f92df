/* An answer that is sent in pieces (struct quire_pieces of quire.h), on libmicrohttpd.
 *
 * F1  Where there is a pool, threads that move bytes do not read pieces: the connection is suspended while the pool does, and for
 *     as long as there is nothing to send. Where there is none, the connection's own thread waits.
 * F2  In memory is one piece, and only until it is sent: a client that does not read costs no more than one that does.
 * F3  An answer without an end is nothing that is waited for: when the server stops it ends at once. How many there are is
 *     bounded, in all and for an address. */
#pragma once

#include "base/err.h"
#include "http/pool.h"

#include <microhttpd.h>
#include <pthread.h>
#include <quire/quire.h>

enum {
    QR_FEED_PIECE_BYTES = 64 << 10,
    QR_FEED_EVENT_BYTES = 4 << 10, /* of one without an end */
    QR_FEED_ADDRESS_SIZE = 64,
    QR_FEED_LAST_MS = 250,
};

struct qr_feed;

/* Those of one server. */
struct qr_feeds {
    struct qr_pool *pool;         /* F1; NULL = none */
    int endless_max, address_max; /* F3; 0 = any number */
    void (*on_move)(void *arg, struct MHD_Connection *connection,
                    size_t bytes); /* of an endless one: what is being sent, 0 = it waits;
                                                                                    NULL = nobody asks */
    void *arg;
    pthread_mutex_t lock; /* holds what follows */
    pthread_cond_t changed;
    struct qr_feed *first; /* the endless ones */
    int endless_count;
    bool is_ending; /* of the endless ones */
    bool is_closed; /* nothing is read any more */
};

void qr_feeds_init(struct qr_feeds *feeds);
void qr_feeds_done(struct qr_feeds *feeds);
/* F3: all that read have been told so when it returns; it waits QR_FEED_LAST_MS for the others. */
void qr_feeds_end(struct qr_feeds *feeds);
/* From now on none hands anything to the pool, and none waits: after qr_feeds_end, before the pool is freed. */
void qr_feeds_close(struct qr_feeds *feeds);

/* Takes the pieces, also where it fails: `rate_limited`, `unavailable`, `out_of_memory`. The response ends the feed; what is told of it
 * stays until it is released. */
qr_rc qr_feed_create(struct qr_feeds *feeds, struct MHD_Connection *connection, const char *address,
                     struct quire_pieces *pieces, struct qr_feed **ret_feed, struct MHD_Response **ret_response,
                     qr_err *err);
void qr_feed_release(struct qr_feed *feed); /* NULL is fine */
bool qr_feed_is_endless(const struct qr_feed *feed);
size_t qr_feed_sent_bytes(const struct qr_feed *feed);
/* Nobody is there any more: it ends, though there is nothing to send. */
void qr_feed_break(struct qr_feed *feed);
