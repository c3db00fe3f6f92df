/* The library's stand-in for tests of servers: says what it was asked, and waits at /wait. Defines what the servers call of the
 * public header, so a test that includes it has no library. With clients that speak plain HTTP to whatever they are connected
 * to. */
#pragma once

#include "base/mem.h"
#include "base/thread.h"
#include "http/response.h"
#include "support/test.h"

#include <errno.h>
#include <quire/quire.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the library ---- */

struct quire {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting;
    bool may_go;
    int streams; /* that are open */

    struct quire_pieces *pieces; /* all that are open */
    int published;               /* events */
    bool has_keys;
};

static struct quire library = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void wait_for_leave(struct quire *quire)
{
    QR_LOCKED(&quire->lock);
    quire->waiting++;
    pthread_cond_broadcast(&quire->changed);
    while (!quire->may_go) {
        pthread_cond_wait(&quire->changed, &quire->lock);
    }
}

static inline void wait_until_waiting(int count)
{
    QR_LOCKED(&library.lock);
    while (library.waiting < count) {
        pthread_cond_wait(&library.changed, &library.lock);
    }
}

static inline void give_leave(void)
{
    QR_LOCKED(&library.lock);
    library.may_go = true;
    pthread_cond_broadcast(&library.changed);
}

const char *quire_request_header(const struct quire_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (strcasecmp(request->headers[i].name, name) == 0) {
            return request->headers[i].value;
        }
    }
    return NULL;
}

static int answer_with(struct qr_buf *text, int status, struct quire_response *ret_response)
{
    *ret_response = (struct quire_response){.status = status, .content_type = "application/json"};
    ret_response->body = qr_buf_take(text, &ret_response->body_size);
    QR_CHECK(ret_response->body);
    return status;
}

static struct quire_pieces *open_pieces(const char *target);

int quire_request_call(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response)
{
    struct qr_buf text;
    qr_buf_init(&text, 0);
    if (strcmp(request->target, "/wait") == 0) {
        wait_for_leave(quire);
    }
    qr_buf_printf(&text, "%s %s ", request->method, request->target);
    if (strcmp(request->target, "/big") == 0) {
        qr_buf_printf(&text, "%0*d", 8 << 20, 0);
    }
    if (strcmp(request->target, "/who") == 0) {
        qr_buf_printf(&text, "owner %d from %s key %s id %s", request->is_local_owner,
                      request->remote_address ? request->remote_address : "-",
                      request->authorization ? request->authorization : "-", request->request_id);
    }
    if (request->body_size > 1000) {
        qr_buf_printf(&text, "%zu bytes", request->body_size);
    } else {
        qr_buf_add(&text, request->body ? (qr_str){request->body, request->body_size} : QR_STR("-"));
    }
    struct quire_pieces *pieces = request->takes_pieces ? open_pieces(request->target) : NULL;
    if (pieces) {
        qr_buf_clear(&text);
    }
    (void)answer_with(&text, strcmp(request->target, "/missing") == 0 ? 404 : 200, ret_response);
    ret_response->pieces = pieces;
    return ret_response->status;
}

void quire_response_done(struct quire_response *response)
{
    qr_free((char *)response->body);
    quire_pieces_free(response->pieces);
}

/* ---- answers in pieces: /pieces has 12 MB, /pieces/broken fewer than it says, /feed what is published, /feed/flood no end,
 * /feed/late publishes while it looks for the last time ---- */

enum { PIECES_BYTES = 12 << 20 };

struct quire_pieces {
    struct quire_pieces *next;
    bool is_feed, is_flood, is_broken, is_late;
    long long left;
    int seen;
    void (*wake)(void *arg);
    void *arg;
};

static struct quire_pieces *open_pieces(const char *target)
{
    if (strncmp(target, "/pieces", strlen("/pieces")) != 0 && strncmp(target, "/feed", strlen("/feed")) != 0) {
        return NULL;
    }
    struct quire_pieces *pieces = qr_alloc_zero(sizeof *pieces);
    QR_CHECK(pieces);
    *pieces = (struct quire_pieces){.is_feed = target[1] == 'f',
                                    .is_flood = strcmp(target, "/feed/flood") == 0,
                                    .is_late = strcmp(target, "/feed/late") == 0,
                                    .is_broken = strcmp(target, "/pieces/broken") == 0,
                                    .left = PIECES_BYTES};
    QR_LOCKED(&library.lock);
    pieces->next = library.pieces;
    library.pieces = pieces;
    pthread_cond_broadcast(&library.changed);
    return pieces;
}

long long quire_pieces_size(const struct quire_pieces *pieces)
{
    return pieces->is_feed ? -1 : PIECES_BYTES;
}

long quire_pieces_read(struct quire_pieces *pieces, char *bytes, size_t size)
{
    QR_LOCKED(&library.lock);
    if (pieces->is_feed && !pieces->is_flood) {
        if (pieces->seen < library.published) {
            return snprintf(bytes, size, "event %d\n", ++pieces->seen);
        }
        if (pieces->is_late && pieces->wake && pieces->seen == 0) {
            library.published++;
            pieces->wake(pieces->arg);
        }
        return 0;
    }
    if (pieces->is_broken && pieces->left < PIECES_BYTES / 2) {
        return QUIRE_PIECES_BROKEN;
    }
    const size_t len = pieces->is_flood ? size : QR_MIN(size, (size_t)pieces->left);
    memset(bytes, 'x', len);
    pieces->left -= (long long)len;
    return len ? (long)len : QUIRE_PIECES_END;
}

void quire_pieces_on_wake(struct quire_pieces *pieces, void (*wake)(void *arg), void *arg)
{
    QR_LOCKED(&library.lock);
    pieces->wake = wake;
    pieces->arg = arg;
}

void quire_pieces_free(struct quire_pieces *pieces)
{
    if (pieces) {
        QR_LOCKED(&library.lock);
        struct quire_pieces **at = &library.pieces;
        while (*at != pieces) {
            at = &(*at)->next;
        }
        *at = pieces->next;
        pthread_cond_broadcast(&library.changed);
        qr_free(pieces);
    }
}

/* Wakes as the library does: with its lock held. */
static inline void publish(void)
{
    QR_LOCKED(&library.lock);
    library.published++;
    for (struct quire_pieces *pieces = library.pieces; pieces; pieces = pieces->next) {
        if (pieces->wake) {
            pieces->wake(pieces->arg);
        }
    }
}

static inline void wait_for_pieces(int count)
{
    QR_LOCKED(&library.lock);
    for (;;) {
        int open = 0;
        for (const struct quire_pieces *pieces = library.pieces; pieces; pieces = pieces->next) {
            open++;
        }
        if (open == count) {
            return;
        }
        pthread_cond_wait(&library.changed, &library.lock);
    }
}

int quire_request_is_strange(struct quire *quire, const struct quire_request *request)
{
    return quire->has_keys && !request->authorization;
}

/* ---- streams: /stream counts what comes, /stream/refused does not open ---- */

struct quire_stream {
    size_t size, pieces;
};

int quire_stream_is_for(const struct quire_request *request)
{
    return strncmp(request->target, "/stream", strlen("/stream")) == 0;
}

int quire_stream_open(struct quire *quire, const struct quire_request *request, struct quire_stream **ret_stream,
                      struct quire_response *ret_response)
{
    if (strcmp(request->target, "/stream/refused") == 0) {
        struct qr_buf text;
        qr_buf_init(&text, 0);
        qr_buf_add_text(&text, "refused");
        return answer_with(&text, 403, ret_response);
    }
    *ret_stream = qr_alloc_zero(sizeof **ret_stream);
    QR_CHECK(*ret_stream);
    QR_LOCKED(&quire->lock);
    quire->streams++;
    return 0;
}

int quire_stream_write(struct quire_stream *stream, const char *bytes QR_UNUSED, size_t size)
{
    stream->size += size;
    stream->pieces++;
    return 0;
}

void quire_stream_cancel(struct quire_stream *stream)
{
    if (stream) {
        QR_LOCKED(&library.lock);
        library.streams--;
        pthread_cond_broadcast(&library.changed);
        qr_free(stream);
    }
}

int quire_stream_end(struct quire_stream *stream, struct quire_response *ret_response)
{
    struct qr_buf text;
    qr_buf_init(&text, 0);
    qr_buf_printf(&text, "%zu bytes in %s", stream->size, stream->pieces > 1 ? "pieces" : "one piece");
    quire_stream_cancel(stream);
    return answer_with(&text, 202, ret_response);
}

/* ---- clients ---- */

/* False when the server has closed. */
static inline bool send_bytes(int fd, qr_str bytes)
{
    while (bytes.len) {
        const ssize_t sent = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent < 0) {
            QR_CHECK(errno == EPIPE || errno == ECONNRESET);
            return false;
        }
        bytes = (qr_str){bytes.ptr + sent, bytes.len - (size_t)sent};
    }
    return true;
}

/* The next answer; false when the server closed without a whole one. */
static inline bool receive(int fd, struct qr_http_response *ret_response)
{
    char chunk[4096];
    qr_http_response_init(ret_response, 16 << 20);
    while (ret_response->part != QR_HTTP_COMPLETE) {
        const ssize_t got = recv(fd, chunk, sizeof chunk, 0);
        qr_err err = {0};
        if (got <= 0) {
            return qr_http_response_end(ret_response, &err) == QR_OK;
        }
        QR_CHECK_RC(QR_OK, qr_http_response_add(ret_response, (qr_str){chunk, (size_t)got}, &err));
    }
    return true;
}

static inline void check_answer(int fd, int status, const char *has)
{
    struct qr_http_response response;
    QR_CHECK(receive(fd, &response));
    QR_CHECK_INT(status, response.status);
    QR_CHECK_HAS(has, qr_buf_str(&response.body).ptr);
    qr_http_response_done(&response);
}

#define HEADERS " HTTP/1.1\r\nHost: localhost\r\n"

static inline void send_body(int fd, size_t size_bytes)
{
    static char zeros[1 << 20];
    memset(zeros, '0', sizeof zeros);
    while (size_bytes) {
        const size_t len = QR_MIN(size_bytes, sizeof zeros);
        if (!send_bytes(fd, (qr_str){zeros, len})) {
            return;
        }
        size_bytes -= len;
    }
}
