/* The server of a data folder's socket, on libmicrohttpd: a thread accepts, and each connection has one of its own, so
 * that neither a long call nor a client that stays in the middle of its request holds up another. Requests and answers
 * are http/exchange.h. */
#include "http/server.h"

#include "base/mem.h"
#include "http/exchange.h"
#include "http/listen.h"

#include <signal.h>
#include <unistd.h>

struct quire_server {
    struct qr_front front;
    struct MHD_Daemon *daemon;
    struct qr_listener listener;
};

/* ---- what libmicrohttpd calls ---- */

static void *begin_request(void *arg, const char *target, struct MHD_Connection *connection)
{
    struct quire_server *server = arg;
    return qr_exchange_create(&server->front, target, connection);
}

static void end_request(void *arg QR_UNUSED, struct MHD_Connection *connection QR_UNUSED, void **exchange_at,
                        enum MHD_RequestTerminationCode why QR_UNUSED)
{
    if (*exchange_at) {
        qr_exchange_free(*exchange_at);
        *exchange_at = NULL;
    }
}

static enum MHD_Result answer(struct qr_exchange *exchange)
{
    qr_err err;
    if (qr_exchange_end_body(exchange, &err) != QR_OK) {
        return qr_exchange_refuse(exchange, &err);
    }
    struct MHD_Connection *connection = exchange->connection;
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U); /* a long call is not an idle client */
    qr_exchange_call(exchange);
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)QUIRE_SERVER_IDLE_S);
    return qr_exchange_send(exchange);
}

/* Called once with the headers, for each piece of the body, and once more at its end. An answer at the first call is
 * sent at once, and the body not read. */
/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's */
static enum MHD_Result on_request(void *arg QR_UNUSED, struct MHD_Connection *connection QR_UNUSED,
                                  const char *decoded_path QR_UNUSED, const char *method, const char *version,
                                  const char *bytes, size_t *size_bytes, void **exchange_at)
{
    struct qr_exchange *exchange = *exchange_at;
    qr_err err;
    if (!exchange) {
        return MHD_NO; /* no memory */
    }
    if (!exchange->has_begun) {
        return qr_exchange_begin(exchange, method, version, NULL, &err) == QR_OK ? MHD_YES
                                                                                 : qr_exchange_refuse(exchange, &err);
    }
    if (*size_bytes == 0) {
        return answer(exchange);
    }
    qr_exchange_take(exchange, bytes, *size_bytes);
    if (qr_exchange_has_piece(exchange)) {
        qr_exchange_write(exchange);
    }
    *size_bytes = 0;
    return MHD_YES;
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
    qr_front_done(&server->front);
    qr_free(server);
}

qr_rc quire_server_start(struct quire *quire, const char *data_dir, struct quire_server **ret_server, qr_err *err)
{
    struct quire_server *server = qr_alloc_zero(sizeof *server);
    if (!server) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while starting the server");
    }
    server->front = (struct qr_front){.quire = quire,
                                      .call = quire_request_call,
                                      .is_local_owner = true,
                                      .body_bytes_max = QUIRE_SERVER_BODY_BYTES_MAX,
                                      .feeds.endless_max = QUIRE_SERVER_STREAMS_MAX};
    qr_front_init(&server->front);
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

void quire_server_stop(struct quire_server *server)
{
    if (!server) {
        return;
    }
    qr_listener_hide(&server->listener);
    qr_front_drain(&server->front, QUIRE_SERVER_LAST_ANSWERS_MS);
    qr_feeds_close(&server->front.feeds);
    MHD_stop_daemon(server->daemon); /* breaks the connections that are left, and waits for their threads */
    free_server(server);
}
