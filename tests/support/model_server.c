/* The sockets of the model server: a thread a connection, requests of HTTP/1.1 with a Content-Length, kept connections. */
#include "support/model_server.h"

#include "base/mem.h"
#include "base/thread.h"
#include "support/model_answers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MINUTE_US = 60000000,
    SEEN_MAX = 1 << 16, /* requests of the last minute */
    REQUEST_BYTES_MAX = 64 << 20,
    STEPS_MAX = 64,
    KEY_BYTES_MAX = 128,
};

struct seen { /* a request that was let in */
    int64_t at_us, tokens;
};

struct connection {
    struct qr_model_server *server;
    int fd;
    struct connection *next;
};

struct qr_model_server {
    struct qr_model_options options;
    char key[KEY_BYTES_MAX];
    int listener, port;
    pthread_t thread;
    struct qr_model_tasks tasks;

    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t changed;
    bool is_stopping;
    struct connection *connections;
    struct qr_model_step steps[STEPS_MAX];
    size_t step_count;
    int64_t step_base; /* requests before the steps were set */
    struct qr_model_stats stats;
    int64_t in_flight;
    struct seen seen[SEEN_MAX];
    size_t seen_first, seen_count;
    int64_t seen_tokens;
    int64_t free_at_us; /* when it has done what it was asked for so far */
    struct qr_buf last_request;
};

/* ---- bytes ---- */

static bool send_all(int fd, qr_str bytes)
{
    while (bytes.len > 0) {
        const ssize_t sent = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes = (qr_str){bytes.ptr + sent, bytes.len - (size_t)sent};
    }
    return true;
}

static bool receive_more(int fd, struct qr_buf *in)
{
    enum { PIECE = 65536 };
    char *room = qr_buf_reserve(in, PIECE);
    const ssize_t got = room ? recv(fd, room, PIECE, 0) : -1;
    if (got > 0) {
        qr_buf_grown(in, (size_t)got);
    }
    return got > 0;
}

/* So that the other side sees a reset, not an end. */
static void set_reset(int fd)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

/* Until the time has passed, or the client is gone, or the server stops. */
static void wait_us(const struct connection *connection, int64_t us)
{
    struct pollfd poll_fd = {.fd = connection->fd, .events = POLLRDHUP};
    const int64_t until_us = qr_thread_mono_us() + us;
    int64_t left_us;
    while ((left_us = until_us - qr_thread_mono_us()) > 0) {
        const struct timespec timeout = {left_us / 1000000, left_us % 1000000 * 1000};
        if (ppoll(&poll_fd, 1, &timeout, NULL) > 0) {
            return;
        }
    }
}

/* ---- reading a request ---- */

static int64_t content_length(qr_str head)
{
    const char *at = strcasestr(head.ptr, "\r\nContent-Length:");
    return at && at < head.ptr + head.len ? atoll(at + 17) : 0;
}

/* False at the end of the connection. What is behind the request stays in `in`. */
static bool read_request(int fd, struct qr_buf *in, struct qr_model_request *request)
{
    const char *end;
    while (!(end = in->len ? memmem(in->data, in->len, "\r\n\r\n", 4) : NULL)) {
        if (in->len > REQUEST_BYTES_MAX || !receive_more(fd, in)) {
            return false;
        }
        if (in->data[0] < 'A' || in->data[0] > 'Z') { /* TLS, to a server that has none */
            send_all(fd, QR_STR("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
            return false;
        }
    }
    const size_t head_len = (size_t)(end + 4 - in->data);
    const int64_t body_len = content_length((qr_str){in->data, head_len});
    if (body_len < 0 || body_len > REQUEST_BYTES_MAX) {
        return false;
    }
    while (in->len < head_len + (size_t)body_len) {
        if (!receive_more(fd, in)) {
            return false;
        }
    }
    *request = (struct qr_model_request){.head = {in->data, head_len}, .body = {in->data + head_len, (size_t)body_len}};
    return sscanf(in->data, "%7s %255s", request->method, request->path) == 2;
}

static void drop_request(struct qr_buf *in, const struct qr_model_request *request)
{
    const size_t used = request->head.len + request->body.len;
    memmove(in->data, in->data + used, in->len - used + 1);
    in->len -= used;
}

/* ---- limits ---- */

static void forget_old(struct qr_model_server *server, int64_t now_us)
{
    while (server->seen_count > 0 && server->seen[server->seen_first].at_us <= now_us - MINUTE_US) {
        server->seen_tokens -= server->seen[server->seen_first].tokens;
        server->seen_first = (server->seen_first + 1) % SEEN_MAX;
        server->seen_count--;
    }
}

static bool has_limits(const struct qr_model_options *options)
{
    return options->requests_a_minute || options->tokens_a_minute;
}

static void tell_limits(const struct qr_model_server *server, struct qr_model_answer *answer)
{
    const int64_t limit = server->options.requests_a_minute, used = (int64_t)server->seen_count;
    if (server->options.tells_limits && limit) {
        qr_buf_printf(&answer->headers,
                      "x-ratelimit-limit-requests: %lld\r\nx-ratelimit-remaining-requests: %lld\r\n"
                      "x-ratelimit-reset-requests: %lldms\r\n",
                      (long long)limit, (long long)QR_MAX(limit - used, (int64_t)0), (long long)(used * 60000 / limit));
    }
}

/* Whether it is within the limits of any minute; counts it then. With the lock held. */
static bool let_in(struct qr_model_server *server, int64_t tokens, struct qr_model_answer *answer)
{
    const struct qr_model_options *options = &server->options;
    const int64_t now_us = qr_thread_mono_us();
    forget_old(server, now_us);
    const bool is_over =
        (options->requests_a_minute && (int64_t)server->seen_count >= options->requests_a_minute) ||
        (options->tokens_a_minute && server->seen_count && server->seen_tokens + tokens > options->tokens_a_minute) ||
        (options->in_flight_max && server->in_flight > options->in_flight_max);
    if (!is_over && has_limits(options) && server->seen_count < SEEN_MAX) {
        server->seen[(server->seen_first + server->seen_count++) % SEEN_MAX] = (struct seen){now_us, tokens};
        server->seen_tokens += tokens;
    }
    tell_limits(server, answer);
    return !is_over;
}

/* ---- serving ---- */

static void choose_fault(struct qr_model_server *server, struct qr_model_request *request)
{
    const int64_t number = server->stats.requests - server->step_base;
    for (size_t i = 0; i < server->step_count; i++) {
        const struct qr_model_step *step = &server->steps[i];
        if (number >= step->from && (step->to == 0 || number <= step->to) &&
            (!step->path || strstr(request->path, step->path))) {
            request->fault = step->fault;
            request->fault_number = step->number;
            return;
        }
    }
}

static bool has_key(const struct qr_model_server *server, const struct qr_model_request *request)
{
    char line[KEY_BYTES_MAX + 32];
    if (!server->key[0]) {
        return true;
    }
    snprintf(line, sizeof line, "Authorization: Bearer %s\r\n", server->key);
    if (memmem(request->head.ptr, request->head.len, line, strlen(line))) {
        return true;
    }
    snprintf(line, sizeof line, "X-Api-Key: %s\r\n", server->key);
    return memmem(request->head.ptr, request->head.len, line, strlen(line)) != NULL;
}

static void note_request(struct qr_model_server *server, struct qr_model_request *request)
{
    QR_LOCKED(&server->lock);
    server->stats.requests++;
    server->in_flight++;
    server->stats.in_flight_max = QR_MAX(server->stats.in_flight_max, server->in_flight);
    qr_buf_clear(&server->last_request);
    qr_buf_add(&server->last_request, request->head);
    qr_buf_add(&server->last_request, request->body);
    choose_fault(server, request);
}

static void make_answer(struct qr_model_server *server, const struct qr_model_request *request,
                        struct qr_model_answer *answer)
{
    if (!has_key(server, request)) {
        qr_model_refuse(QR_FAULT_401, 0, request, answer);
    } else if (!qr_model_refuse(request->fault, request->fault_number, request, answer)) {
        qr_model_answer(&server->options, &server->tasks, request, answer);
    }
    QR_LOCKED(&server->lock);
    if (answer->status == 200 && !let_in(server, answer->tokens, answer)) {
        qr_buf_clear(&answer->body);
        qr_model_refuse(QR_FAULT_429, 0, request, answer);
        server->stats.limited++;
    }
}

/* As long as its capacity asks for. */
static void work(const struct connection *connection, const struct qr_model_answer *answer)
{
    struct qr_model_server *server = connection->server;
    int64_t wait = 0;
    {
        QR_LOCKED(&server->lock);
        if (answer->status == 200 && server->options.inputs_a_second) {
            const int64_t now_us = qr_thread_mono_us();
            server->free_at_us =
                QR_MAX(server->free_at_us, now_us) + answer->inputs * 1000000 / server->options.inputs_a_second;
            wait = server->free_at_us - now_us;
        }
    }
    wait_us(connection, wait);
}

static void write_huge(int fd, int64_t len)
{
    static const char piece[4096];
    for (int64_t sent = 0; sent < len; sent += (int64_t)sizeof piece) {
        if (!send_all(fd, (qr_str){piece, sizeof piece})) {
            return;
        }
    }
}

/* False: the connection is at its end. */
static bool write_answer(const struct connection *connection, const struct qr_model_request *request,
                         const struct qr_model_answer *answer)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    const enum qr_model_fault fault = request->fault;
    const int64_t len = fault == QR_FAULT_HUGE ? request->fault_number : (int64_t)answer->body.len;
    qr_buf_printf(&out, "HTTP/1.1 %d Answer\r\nContent-Type: %s\r\nContent-Length: %lld\r\n", answer->status,
                  answer->body.len && answer->body.data[0] == '<' ? "text/html" : "application/json", (long long)len);
    qr_buf_add(&out, qr_buf_str(&answer->headers));
    qr_buf_add_text(&out, "\r\n");
    if (fault == QR_FAULT_HUGE) {
        send_all(connection->fd, qr_buf_str(&out));
        write_huge(connection->fd, len);
        return true;
    }
    qr_str body = qr_buf_str(&answer->body);
    body.len = fault == QR_FAULT_TRUNCATED ? body.len / 2 : body.len;
    qr_buf_add(&out, body);
    return send_all(connection->fd, qr_buf_str(&out)) && fault != QR_FAULT_TRUNCATED;
}

/* Counted before the client can know of the answer, so that it finds its own request in the numbers. */
static void count_answer(struct qr_model_server *server, const struct qr_model_answer *answer)
{
    QR_LOCKED(&server->lock);
    server->in_flight--;
    if (answer->status == 200) {
        server->stats.answered++;
        server->stats.inputs += answer->inputs;
        server->stats.tokens += answer->tokens;
    }
}

/* False: the connection is at its end. */
static bool serve_one(const struct connection *connection, struct qr_model_request *request)
{
    struct qr_model_server *server = connection->server;
    QR_CLEANUP(qr_buf_done) struct qr_buf headers = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    struct qr_model_answer answer = {0};
    note_request(server, request);
    bool goes_on = false;
    switch (request->fault) {
    case QR_FAULT_HANG:
        wait_us(connection, INT64_C(600) * 1000000);
        break;
    case QR_FAULT_RESET:
        set_reset(connection->fd);
        break;
    case QR_FAULT_EOF:
        break;
    default:
        if (request->fault == QR_FAULT_SLOW) {
            wait_us(connection, request->fault_number * 1000);
        }
        make_answer(server, request, &answer);
        work(connection, &answer);
        goes_on = true;
        break;
    }
    headers = answer.headers;
    body = answer.body;
    count_answer(server, &answer);
    goes_on = goes_on && write_answer(connection, request, &answer);
    if (request->fault == QR_FAULT_IDLE_RESET) {
        set_reset(connection->fd);
        goes_on = false;
    }
    return goes_on;
}

/* ---- connections ---- */

static void close_connection(struct connection *connection)
{
    struct qr_model_server *server = connection->server;
    QR_LOCKED(&server->lock);
    struct connection **at = &server->connections;
    while (*at != connection) {
        at = &(*at)->next;
    }
    *at = connection->next;
    close(connection->fd);
    qr_free(connection);
    pthread_cond_broadcast(&server->changed);
}

static void *serve(void *arg)
{
    struct connection *connection = arg;
    struct qr_model_request request;
    struct qr_buf in = {0};
    while (read_request(connection->fd, &in, &request) && serve_one(connection, &request)) {
        drop_request(&in, &request);
    }
    qr_buf_done(&in);
    close_connection(connection);
    return NULL;
}

static void accept_one(struct qr_model_server *server, int fd)
{
    const int on = 1;
    pthread_t thread;
    qr_err err;
    struct connection *connection = qr_alloc_zero(sizeof *connection);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *connection = (struct connection){.server = server, .fd = fd};
    {
        QR_LOCKED(&server->lock);
        connection->next = server->connections;
        server->connections = connection;
        server->stats.connections++;
    }
    if (qr_thread_start(&thread, "model", serve, connection, &err) != QR_OK) {
        close_connection(connection);
        return;
    }
    pthread_detach(thread);
}

static void *accept_all(void *arg)
{
    struct qr_model_server *server = arg;
    int fd;
    while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 || errno == EINTR || errno == ECONNABORTED) {
        if (fd >= 0) {
            accept_one(server, fd);
        }
    }
    return NULL;
}

/* ---- the server ---- */

/* It is used by programs too, so it cannot end a test as a check does. */
QR_NORETURN static void fail(const char *why)
{
    fprintf(stderr, "the model server cannot be started: %s\n", why);
    abort();
}

static void open_listener(struct qr_model_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)server->options.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    const int on = 1;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (server->listener < 0 || bind(server->listener, (struct sockaddr *)&address, len) != 0 ||
        listen(server->listener, 128) != 0 || getsockname(server->listener, (struct sockaddr *)&address, &len) != 0) {
        fail(strerror(errno));
    }
    server->port = ntohs(address.sin_port);
}

struct qr_model_server *qr_model_server_start(const struct qr_model_options *options)
{
    struct qr_model_server *server = qr_alloc_zero(sizeof *server);
    qr_err err;
    server->options = *options;
    snprintf(server->key, sizeof server->key, "%s", options->key ? options->key : "");
    pthread_mutex_init(&server->lock, NULL);
    qr_cond_init(&server->changed);
    qr_mutex_init(&server->tasks.lock);
    qr_model_server_set_steps(server, options->steps, options->step_count);
    open_listener(server);
    if (qr_thread_start(&server->thread, "models", accept_all, server, &err) != QR_OK) {
        fail(err.msg);
    }
    return server;
}

void qr_model_server_stop(struct qr_model_server *server)
{
    if (!server) {
        return;
    }
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
    pthread_mutex_lock(&server->lock);
    for (struct connection *connection = server->connections; connection; connection = connection->next) {
        shutdown(connection->fd, SHUT_RDWR);
    }
    while (server->connections) {
        pthread_cond_wait(&server->changed, &server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    for (int i = 0; i < server->tasks.count; i++) {
        qr_free(server->tasks.all[i].text);
    }
    qr_mutex_done(&server->tasks.lock);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    qr_buf_done(&server->last_request);
    qr_free(server);
}

const char *qr_model_server_url(const struct qr_model_server *server, const char *path)
{
    static char urls[8][256];
    static int next;
    char *url = urls[next++ % 8];
    snprintf(url, sizeof urls[0], "http://127.0.0.1:%d%s", server->port, path);
    return url;
}

int qr_model_server_port(const struct qr_model_server *server)
{
    return server->port;
}

void qr_model_server_set_steps(struct qr_model_server *server, const struct qr_model_step *steps, size_t count)
{
    QR_LOCKED(&server->lock);
    server->step_count = QR_MIN(count, (size_t)STEPS_MAX);
    if (server->step_count > 0) {
        memcpy(server->steps, steps, server->step_count * sizeof *steps);
    }
    server->step_base = server->stats.requests;
}

void qr_model_server_stats(struct qr_model_server *server, struct qr_model_stats *ret_stats)
{
    QR_LOCKED(&server->lock);
    *ret_stats = server->stats;
}

char *qr_model_server_last_request(struct qr_model_server *server)
{
    QR_LOCKED(&server->lock);
    return qr_copy_string(server->last_request.data ? server->last_request.data : "");
}
