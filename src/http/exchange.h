/* A request and its answer on libmicrohttpd, whatever the threads: what the socket and the port share.
 *
 * S1  A request that has begun is answered also when the server stops meanwhile: `calling` counts those inside the
 *     library, `answering` those and the ones whose answer is still being sent.
 * S2  What bodies hold in memory is bounded, however many come at once.
 * S3  Files are handed on as they come, a piece at a time: while one is being written no other is taken.
 * S4  Of a stranger's body no more than a piece is kept: it could fill the room that S2 has for all. */
#pragma once

#include "base/buf.h"
#include "base/log.h"
#include "http/feed.h"
#include "http/guard.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    QR_EXCHANGE_HEADERS_MAX = 100,
    QR_EXCHANGE_ID_SIZE = 65,
    QR_EXCHANGE_BUFFERED_BYTES_MAX = 512 << 20, /* of all bodies under way (S2) */
    QR_EXCHANGE_PIECE_BYTES = 256 << 10,        /* of a stream, that is handed on at once (S3); of a stranger (S4) */
    QR_EXCHANGE_GZIP_BYTES_MIN = 1024,          /* smaller answers are sent as they are */
};

/* How a request is answered: quire_request_call, or what stands before it. */
typedef int qr_request_fn(struct quire *quire, const struct quire_request *request,
                          struct quire_response *ret_response);

/* What all exchanges of one server share. */
struct qr_front {
    struct quire *quire;
    qr_request_fn *call;
    qr_request_fn *recall;        /* an answer that is at hand; 0 = there is none. NULL = there never is one */
    const struct qr_log *log;     /* a line a request; NULL = none */
    bool is_local_owner;          /* whoever reaches it may do everything */
    atomic_size_t body_bytes_max; /* of requests that begin now */
    struct qr_feeds feeds;        /* answers in pieces */
    uint64_t boot;                /* begins the ids of requests */
    atomic_ullong sequence;
    pthread_mutex_t lock; /* holds what follows */
    pthread_cond_t changed;
    struct qr_guard_hosts hosts; /* not looked at where it is the owner */
    bool is_stopping;
    unsigned calling, answering;
    size_t buffered_bytes;
};

void qr_front_init(struct qr_front *front);
void qr_front_done(struct qr_front *front);
/* S1: from now on requests are refused with `shutting_down`, and answers without an end are ended; returns when the requests inside
 * the library have come back, and the answers are sent or `last_answers_ms` are over: a client that does not read could wait for
 * ever. */
void qr_front_drain(struct qr_front *front, int64_t last_answers_ms);

/* Made when the request line has come, released when the answer is sent or the connection is gone. */
struct qr_exchange {
    struct qr_front *front;
    struct MHD_Connection *connection;
    struct qr_pool_work work; /* for whoever runs the call elsewhere */
    void *owner;              /* the same */
    struct quire_request request;
    struct quire_header headers[QR_EXCHANGE_HEADERS_MAX];
    char *target;         /* as sent */
    uintptr_t target_end; /* where it ended in the bytes that came: only to be compared */
    char id[QR_EXCHANGE_ID_SIZE];
    struct qr_buf body;
    size_t body_bytes_max;
    qr_err refusal;              /* of the body; code NONE = none, otherwise what still comes is dropped */
    struct quire_stream *stream; /* where the body goes; NULL = not open */
    struct quire_response response;
    struct qr_feed *feed; /* by which it is sent in pieces; NULL = it is not */
    int64_t began_us;
    size_t sent_bytes;
    int status;
    bool has_begun;    /* the headers have come */
    bool is_head;      /* only the headers of the answer are asked for */
    bool is_stream;    /* the body is files (S3) */
    bool is_known;     /* it was asked who sends the body (S4) */
    bool is_called;    /* the whole request was handed over: for whoever does that */
    bool has_response; /* to be sent */
    bool is_counted;   /* among those that are answered */
    bool is_gzip;      /* the response's body */
    bool wants_gzip;
    bool must_close; /* the connection, behind the answer */
};

/* NULL = out of memory. */
struct qr_exchange *qr_exchange_create(struct qr_front *front, const char *target, struct MHD_Connection *connection);
void qr_exchange_free(struct qr_exchange *exchange);

/* The headers have come. Anything but QR_OK is a refusal, to be sent by qr_exchange_refuse without reading on. */
qr_rc qr_exchange_begin(struct qr_exchange *exchange, const char *method, const char *version,
                        const char *remote_address, qr_err *err);
/* A piece of the body. What cannot be taken is refused at its end: before, nothing can be answered. */
void qr_exchange_take(struct qr_exchange *exchange, const char *bytes, size_t size_bytes);
/* Whether so much has come that it is to be handed on (S3), or asked whose it is (S4), before more is taken: then it is counted
 * as under way, and qr_exchange_write is to be called, from any thread. */
bool qr_exchange_has_piece(struct qr_exchange *exchange);
void qr_exchange_write(struct qr_exchange *exchange);
/* The body is whole: the request is counted as under way. */
qr_rc qr_exchange_end_body(struct qr_exchange *exchange, qr_err *err);
/* Whether the answer is at hand, after qr_exchange_end_body: then it is to be sent instead of a call. Waits for nothing. */
bool qr_exchange_recall(struct qr_exchange *exchange);
/* Calls the library; from any thread, once, after qr_exchange_end_body. */
void qr_exchange_call(struct qr_exchange *exchange);

/* Both from the connection's thread. MHD_NO: the connection is to be closed. */
enum MHD_Result qr_exchange_send(struct qr_exchange *exchange);
enum MHD_Result qr_exchange_refuse(struct qr_exchange *exchange, const qr_err *err);
