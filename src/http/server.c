/* The server of a data folder's socket, on libmicrohttpd: a thread accepts, and each connection has one of its own, so
 * that neither a long call nor a client that stays in the middle of its request holds up another. A request is taken
 * whole, handed to quire_call as it is (the path undecoded: that is the router's), and its answer sent as it comes back.
 *
 * S1  A request that has begun is answered also when the server stops meanwhile: `calling` counts those inside
 *     quire_call, `answering` those and the ones whose answer is still being sent. */
#include "http/server.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "http/listen.h"

#include <microhttpd.h>
#include <signal.h>
#include <unistd.h>

struct quire_server {
    struct quire *quire;
    struct MHD_Daemon *daemon;
    struct qr_listener listener;
    pthread_mutex_t lock; /* holds what follows */
    pthread_cond_t changed;
    bool is_stopping;
    unsigned calling, answering;
};

_Static_assert(QUIRE_SERVER_BODY_BYTES_MAX == 64 << 20, "a message says so");

/* Made when the request line has come, released when the answer is sent or the connection is gone. */
struct request {
    char *target; /* the path with its parameters, as sent */
    struct qr_buf body;
    bool has_begun;    /* the headers have come */
    bool is_too_large; /* the rest of the body is dropped */
    bool is_answering; /* counted there */
};

/* ---- requests ---- */

static void *begin_request(void *arg QR_UNUSED, const char *uri, struct MHD_Connection *connection QR_UNUSED)
{
    struct request *request = qr_alloc_zero(sizeof *request);
    if (!request) {
        return NULL;
    }
    qr_buf_init(&request->body, QUIRE_SERVER_BODY_BYTES_MAX);
    request->target = qr_copy_string(uri);
    return request;
}

static void end_request(void *arg, struct MHD_Connection *connection QR_UNUSED, void **request_at,
                        enum MHD_RequestTerminationCode why QR_UNUSED)
{
    struct quire_server *server = arg;
    struct request *request = *request_at;
    if (!request) {
        return;
    }
    if (request->is_answering) {
        QR_LOCKED(&server->lock);
        server->answering--;
        pthread_cond_signal(&server->changed);
    }
    qr_free(request->target);
    qr_buf_done(&request->body);
    qr_free(request);
    *request_at = NULL;
}

/* ---- answers ---- */

static void release_body(void *body)
{
    struct quire_response response = {.body = body};
    quire_response_done(&response);
}

/* Takes the response. */
static enum MHD_Result send_response(struct MHD_Connection *connection, int status, const char *content_type,
                                     struct MHD_Response *response)
{
    if (!response) {
        return MHD_NO; /* no memory even for that: the connection is closed */
    }
    enum MHD_Result result = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    if (result == MHD_YES) {
        result = MHD_queue_response(connection, (unsigned)status, response);
    }
    MHD_destroy_response(response);
    return result;
}

/* An error of the server's own; the router has its own way. */
static enum MHD_Result send_error(struct MHD_Connection *connection, qr_code code, const char *message)
{
    qr_err err;
    qr_fail(&err, code, "%s", message);
    QR_JSON *value = qr_json_error(&err, NULL);
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    if (!value || qr_json_write(value, &text, NULL) != QR_OK) {
        return MHD_NO;
    }
    return send_response(connection, qr_code_info(code)->http_status, "application/json",
                         MHD_create_response_from_buffer(text.len, text.data, MHD_RESPMEM_MUST_COPY));
}

/* ---- the call ---- */

/* False when the server stops. */
static bool begin_call(struct quire_server *server, struct request *request)
{
    QR_LOCKED(&server->lock);
    if (server->is_stopping) {
        return false;
    }
    request->is_answering = true;
    server->answering++;
    server->calling++;
    return true;
}

static void end_call(struct quire_server *server)
{
    QR_LOCKED(&server->lock);
    server->calling--;
    pthread_cond_signal(&server->changed);
}

static enum MHD_Result call(struct quire_server *server, struct MHD_Connection *connection, const char *method,
                            struct request *request)
{
    if (!begin_call(server, request)) {
        return send_error(connection, QR_CODE_SHUTTING_DOWN, "the process that owns the data folder is ending");
    }
    const qr_str body = qr_buf_str(&request->body);
    struct quire_response response;
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U); /* a long call is not an idle client */
    quire_call(server->quire, method, request->target, body.len ? body.ptr : NULL, &response);
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)QUIRE_SERVER_IDLE_S);
    struct MHD_Response *answer =
        MHD_create_response_from_buffer_with_free_callback(response.body_size, (char *)response.body, release_body);
    if (!answer) {
        quire_response_done(&response);
    }
    const enum MHD_Result result = send_response(connection, response.status, response.content_type, answer);
    end_call(server);
    return result;
}

static enum MHD_Result answer_whole(struct quire_server *server, struct MHD_Connection *connection, const char *method,
                                    struct request *request)
{
    const qr_str body = qr_buf_str(&request->body);
    if (request->is_too_large) {
        return send_error(connection, QR_CODE_PAYLOAD_TOO_LARGE,
                          "the body has more than 64 MB, which is the most that is taken");
    }
    if (!request->target || request->body.failed != QR_CODE_NONE) {
        return send_error(connection, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
    }
    if (memchr(body.ptr, '\0', body.len)) { /* would end it for quire_call */
        return send_error(connection, QR_CODE_BAD_REQUEST, "the body holds a NUL, which JSON never does");
    }
    return call(server, connection, method, request);
}

/* ---- what libmicrohttpd calls ---- */

static bool declares_too_large(struct MHD_Connection *connection)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t value;
    return length && (!qr_str_to_i64(qr_str_of(length), &value) || value > QUIRE_SERVER_BODY_BYTES_MAX);
}

static void take_body(struct request *request, const char *bytes, size_t size_bytes)
{
    if (request->is_too_large || size_bytes > QUIRE_SERVER_BODY_BYTES_MAX - request->body.len) {
        request->is_too_large = true;
        qr_buf_done(&request->body);
        return;
    }
    qr_buf_add(&request->body, (qr_str){bytes, size_bytes});
}

/* Called once with the headers, for each piece of the body, and once more at its end. An answer at the first call is
 * sent at once, and the body not read. */
/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *decoded_path QR_UNUSED,
                                  const char *method, const char *version QR_UNUSED, const char *bytes,
                                  size_t *size_bytes, void **request_at)
{
    struct quire_server *server = arg;
    struct request *request = *request_at;
    if (!request) {
        return MHD_NO; /* no memory */
    }
    if (!request->has_begun) {
        request->has_begun = true;
        request->is_too_large = declares_too_large(connection);
        return request->is_too_large ? answer_whole(server, connection, method, request) : MHD_YES;
    }
    if (*size_bytes) {
        take_body(request, bytes, *size_bytes);
        *size_bytes = 0;
        return MHD_YES;
    }
    return answer_whole(server, connection, method, request);
}

/* ---- start and stop ---- */

static struct MHD_Daemon *start_daemon(struct quire_server *server)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* its threads inherit it: signals belong to the main thread */
    /* clang-format off */
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, server->listener.fd,
        MHD_OPTION_URI_LOG_CALLBACK, begin_request, server,
        MHD_OPTION_NOTIFY_COMPLETED, end_request, server,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)QUIRE_SERVER_HEAD_BYTES_MAX,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)QUIRE_SERVER_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)QUIRE_SERVER_IDLE_S,
        MHD_OPTION_END);
    /* clang-format on */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

static void free_server(struct quire_server *server)
{
    qr_listener_done(&server->listener);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    qr_free(server);
}

qr_rc quire_server_start(struct quire *quire, const char *data_dir, struct quire_server **ret_server, qr_err *err)
{
    struct quire_server *server = qr_alloc_zero(sizeof *server);
    if (!server) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while starting the server");
    }
    server->quire = quire;
    pthread_mutex_init(&server->lock, NULL);
    qr_cond_init(&server->changed);
    qr_rc rc = qr_listener_open(&server->listener, data_dir, err);
    if (rc == QR_OK) {
        server->daemon = start_daemon(server);
        server->listener.fd = -1; /* the daemon's, which closes it; also where it cannot start a thread */
        if (!server->daemon) {
            rc = qr_fail(err, QR_CODE_UNAVAILABLE, "cannot start the server of %s", server->listener.path.data);
            qr_listener_hide(&server->listener);
        }
    }
    if (rc != QR_OK) {
        free_server(server);
        return rc;
    }
    *ret_server = server;
    return QR_OK;
}

/* S1. A call cannot be broken off, and waits for nothing that we hold; a client that does not read its answer could
 * wait for ever. */
static void wait_for_answers(struct quire_server *server)
{
    QR_LOCKED(&server->lock);
    server->is_stopping = true;
    while (server->calling) {
        pthread_cond_wait(&server->changed, &server->lock);
    }
    const int64_t deadline_us = qr_thread_mono_us() + (int64_t)QUIRE_SERVER_LAST_ANSWERS_MS * 1000;
    while (server->answering && qr_cond_wait_until_us(&server->changed, &server->lock, deadline_us)) {
    }
}

void quire_server_stop(struct quire_server *server)
{
    if (!server) {
        return;
    }
    qr_listener_hide(&server->listener);
    wait_for_answers(server);
    MHD_stop_daemon(server->daemon); /* breaks the connections that are left, and waits for their threads */
    free_server(server);
}
