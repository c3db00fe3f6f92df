/* The server of a TCP port, on libmicrohttpd: few threads with epoll move bytes, a pool works (http/port.h, T1–T4). */
#include "http/port.h"

#include "base/mem.h"
#include "base/rand.h"
#include "base/thread.h"
#include "http/server.h"
#include "http/tcp.h"
#include "http/tls.h"
#include "http/visitors.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    LOOK_US = 500000,             /* how often it is looked for clients that are gone, while there are any */
    FEED_LOOK_US = 1000000,       /* the same of those that wait for events, of whom there may be many */
    FEED_KERNEL_BYTES = 64 << 10, /* that are sent to one of them and not read */
};

static const int64_t never_us = INT64_MAX;

/* A connection, for its deadline, which its own thread sets several times a request: without the lock, that all would meet at. */
struct link {
    struct link *next, *previous;
    int fd;
    _Atomic int64_t deadline_us;
    struct qr_feed *feed; /* without an end, that it is waiting for; NULL = none */
    char address[QR_TCP_ADDRESS_SIZE];
};

struct quire_port {
    struct qr_front front;
    struct qr_pool *pool;
    struct MHD_Daemon *daemon;
    struct qr_tls *tls;                /* NULL = plain HTTP */
    struct quire_port_options options; /* as it began; what can change (T4) is below, and in `front` */
    _Atomic int64_t request_ms, bytes_per_s_min;
    char url[sizeof "https://" + QR_TCP_URL_SIZE];
    pthread_t watcher;
    bool has_watcher;
    pthread_mutex_t lock; /* holds what follows */
    pthread_cond_t changed;
    struct link *links;
    struct qr_visitors visitors;
    _Atomic int64_t look_us; /* when the watcher looks again; only it sets that, to never before it looks at a link */
    int64_t feed_look_us;    /* at those that wait for events */
    bool is_closed;          /* who connects now is sent away */
    bool is_ending;
};

/* ---- deadlines (T2) ---- */

static void set_deadline(struct quire_port *port, struct link *link, int64_t deadline_us)
{
    link->deadline_us = deadline_us;
    if (deadline_us < port->look_us) { /* else the watcher comes in time, or has yet to look at this one */
        QR_LOCKED(&port->lock);
        pthread_cond_signal(&port->changed);
    }
}

static int64_t time_for_bytes_us(const struct quire_port *port, size_t bytes)
{
    return (int64_t)bytes * 1000000 / port->bytes_per_s_min;
}

static void give_time(struct quire_port *port, struct link *link, size_t bytes)
{
    set_deadline(port, link, qr_thread_mono_us() + port->request_ms * 1000 + time_for_bytes_us(port, bytes));
}

static void add_time(struct quire_port *port, struct link *link, size_t bytes)
{
    int64_t deadline_us = link->deadline_us;
    while (deadline_us != never_us && !atomic_compare_exchange_weak(&link->deadline_us, &deadline_us,
                                                                    deadline_us + time_for_bytes_us(port, bytes))) {
    }
}

static bool is_gone(const struct link *link)
{
    struct pollfd socket = {.fd = link->fd, .events = POLLRDHUP};
    return poll(&socket, 1, 0) == 1;
}

/* libmicrohttpd overlooks the end of a connection that comes together with its last bytes, because it waits for a change of
 * its socket that has been. This is one: what was received is read before the end is. */
static void remind_of_end(const struct link *link)
{
    if (is_gone(link)) {
        shutdown(link->fd, SHUT_RD);
    }
}

/* Nothing is sent to them for a while, and libmicrohttpd does not look at a connection that is suspended. */
static void look_at_feeds(struct quire_port *port, int64_t now_us)
{
    bool is_any = false;
    const bool is_time = now_us >= port->feed_look_us;
    for (struct link *link = port->links; link; link = link->next) {
        if (is_time && link->feed && link->deadline_us == never_us && is_gone(link)) {
            qr_feed_break(link->feed);
        }
        is_any = is_any || link->feed;
    }
    port->feed_look_us = !is_any ? never_us : is_time ? now_us + FEED_LOOK_US : port->feed_look_us;
    port->look_us = QR_MIN(port->look_us, port->feed_look_us);
}

/* libmicrohttpd finds the end of a connection that was shut down, and cleans up behind it. A link is taken off the list
 * before its socket is closed, so the number is still its own. */
static void *watch(void *arg)
{
    struct quire_port *port = arg;
    QR_LOCKED(&port->lock);
    while (!port->is_ending) {
        const int64_t now_us = qr_thread_mono_us();
        port->look_us = never_us;
        for (struct link *link = port->links; link; link = link->next) {
            int64_t deadline_us = link->deadline_us;
            if (deadline_us <= now_us && atomic_compare_exchange_strong(&link->deadline_us, &deadline_us, never_us)) {
                shutdown(link->fd, SHUT_RDWR);
                deadline_us = never_us;
            }
            if (deadline_us != never_us) {
                remind_of_end(link);
                port->look_us = QR_MIN(port->look_us, QR_MIN(deadline_us, now_us + LOOK_US));
            }
        }
        look_at_feeds(port, now_us);
        if (port->look_us == never_us) {
            pthread_cond_wait(&port->changed, &port->lock);
        } else {
            qr_cond_wait_until_us(&port->changed, &port->lock, port->look_us);
        }
    }
    return NULL;
}

static void stop_watcher(struct quire_port *port)
{
    if (!port->has_watcher) {
        return;
    }
    pthread_mutex_lock(&port->lock);
    port->is_ending = true;
    pthread_cond_signal(&port->changed);
    pthread_mutex_unlock(&port->lock);
    pthread_join(port->watcher, NULL);
}

/* ---- connections ---- */

static enum MHD_Result may_connect(void *arg, const struct sockaddr *address, socklen_t size QR_UNUSED)
{
    struct quire_port *port = arg;
    char text[QR_TCP_ADDRESS_SIZE];
    qr_tcp_address(address, text);
    QR_LOCKED(&port->lock);
    return !port->is_closed && qr_visitors_may_enter(&port->visitors, text) ? MHD_YES : MHD_NO;
}

static struct link *begin_link(struct quire_port *port, struct MHD_Connection *connection)
{
    const int64_t now_us = qr_thread_mono_us();
    struct link *link = qr_alloc_zero(sizeof *link);
    if (!link) {
        return NULL;
    }
    link->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    qr_tcp_address(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr, link->address);
    link->deadline_us = now_us + port->request_ms * 1000;
    QR_LOCKED(&port->lock);
    if (!qr_visitors_enter(&port->visitors, link->address, now_us)) {
        qr_free(link);
        return NULL;
    }
    link->next = port->links;
    if (link->next) {
        link->next->previous = link;
    }
    port->links = link;
    if (link->deadline_us < port->look_us) {
        pthread_cond_signal(&port->changed);
    }
    return link;
}

static void end_link(struct quire_port *port, struct link *link)
{
    QR_LOCKED(&port->lock);
    qr_visitors_leave(&port->visitors, link->address, qr_thread_mono_us());
    *(link->previous ? &link->previous->next : &port->links) = link->next;
    if (link->next) {
        link->next->previous = link->previous;
    }
    qr_free(link);
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **link_at,
                          enum MHD_ConnectionNotificationCode code)
{
    struct quire_port *port = arg;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        if (port->tls) {
            qr_tls_begin(port->tls,
                         MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session);
        }
        *link_at = begin_link(port, connection);
    } else if (*link_at) {
        end_link(port, *link_at);
        *link_at = NULL;
    }
}

static struct link *link_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* ---- requests ---- */

static void *begin_request(void *arg, const char *target, struct MHD_Connection *connection)
{
    struct quire_port *port = arg;
    struct qr_exchange *exchange = qr_exchange_create(&port->front, target, connection);
    if (exchange) {
        exchange->owner = port;
    }
    return exchange;
}

/* What the kernel holds for a client that does not read is bounded too; it would take megabytes for each. */
static void bound_kernel(const struct link *link)
{
    const int size_bytes = FEED_KERNEL_BYTES;
    (void)setsockopt(link->fd, SOL_SOCKET, SO_SNDBUF, &size_bytes, sizeof size_bytes);
}

static void set_feed(struct quire_port *port, struct link *link, struct qr_feed *feed)
{
    if (feed) {
        bound_kernel(link);
    }
    QR_LOCKED(&port->lock);
    link->feed = feed;
    if (feed && port->feed_look_us == never_us) {
        port->feed_look_us = qr_thread_mono_us() + FEED_LOOK_US;
        pthread_cond_signal(&port->changed);
    }
}

/* T2: of an answer without an end, each piece has its time, and waiting for the next one has none. */
static void on_move(void *arg, struct MHD_Connection *connection, size_t bytes)
{
    struct link *link = link_of(connection);
    if (bytes) {
        give_time(arg, link, bytes);
    } else {
        set_deadline(arg, link, never_us);
    }
}

static void end_request(void *arg, struct MHD_Connection *connection, void **exchange_at,
                        enum MHD_RequestTerminationCode why QR_UNUSED)
{
    struct link *link = link_of(connection);
    if (link && link->feed) {
        set_feed(arg, link, NULL);
    }
    if (*exchange_at) {
        qr_exchange_free(*exchange_at);
        *exchange_at = NULL;
    }
    if (link) {
        give_time(arg, link, 0); /* for the next one */
    }
}

static qr_rc check_rate(struct quire_port *port, const struct link *link, qr_err *err)
{
    QR_LOCKED(&port->lock);
    return qr_visitors_ask(&port->visitors, link->address, qr_thread_mono_us()) == 0
               ? QR_OK
               : qr_fail(err, QR_CODE_RATE_LIMITED, "more than %lld requests a second come from %s",
                         (long long)port->visitors.requests_per_s, link->address);
}

static enum MHD_Result begin(struct quire_port *port, struct link *link, struct qr_exchange *exchange,
                             const char *method, const char *version)
{
    qr_err err;
    give_time(port, link, 0); /* for the body */
    qr_rc rc = qr_exchange_begin(exchange, method, version, link->address, &err);
    if (rc == QR_OK) {
        rc = check_rate(port, link, &err);
    }
    return rc == QR_OK ? MHD_YES : qr_exchange_refuse(exchange, &err);
}

static struct qr_exchange *exchange_of(struct qr_pool_work *work)
{
    return (struct qr_exchange *)((char *)work - offsetof(struct qr_exchange, work));
}

static void run_call(struct qr_pool_work *work)
{
    struct qr_exchange *exchange = exchange_of(work);
    struct MHD_Connection *connection = exchange->connection;
    qr_exchange_call(exchange);
    MHD_resume_connection(connection); /* from here on the exchange is the other thread's */
}

static void run_write(struct qr_pool_work *work)
{
    struct qr_exchange *exchange = exchange_of(work);
    struct MHD_Connection *connection = exchange->connection;
    qr_exchange_write(exchange);
    MHD_resume_connection(connection);
}

/* A piece of the body. What is refused already gets no more time. */
static void take(struct quire_port *port, struct link *link, struct qr_exchange *exchange, const char *bytes,
                 size_t size_bytes)
{
    qr_exchange_take(exchange, bytes, size_bytes);
    if (exchange->refusal.code == QR_CODE_NONE && !exchange->has_response) {
        add_time(port, link, size_bytes);
    }
    if (qr_exchange_has_piece(exchange)) {
        exchange->work.run = run_write;
        MHD_suspend_connection(exchange->connection);
        qr_pool_add(port->pool, &exchange->work);
    }
}

/* Needs nothing but this process, and must not wait for threads that may all be waiting for somebody else. */
static bool asks_for_life(const struct qr_exchange *exchange)
{
    return strcmp(exchange->target, "/healthz") == 0 && exchange->body.len == 0;
}

static enum MHD_Result send_answer(struct quire_port *port, struct link *link, struct qr_exchange *exchange)
{
    const struct quire_response *response = &exchange->response;
    const long long size = response->pieces ? quire_pieces_size(response->pieces) : (long long)response->body_size;
    give_time(port, link, (size_t)QR_MAX(size, 0LL));
    const enum MHD_Result result = qr_exchange_send(exchange);
    if (exchange->feed && qr_feed_is_endless(exchange->feed)) {
        set_feed(port, link, exchange->feed);
    }
    return result;
}

/* T1 */
static enum MHD_Result hand_over(struct quire_port *port, struct link *link, struct qr_exchange *exchange)
{
    qr_err err;
    if (qr_exchange_end_body(exchange, &err) != QR_OK) {
        return qr_exchange_refuse(exchange, &err);
    }
    exchange->is_called = true;
    if (asks_for_life(exchange)) {
        qr_exchange_call(exchange);
        return send_answer(port, link, exchange);
    }
    if (qr_exchange_recall(exchange)) {
        return send_answer(port, link, exchange);
    }
    set_deadline(port, link, never_us);
    exchange->work.run = run_call;
    MHD_suspend_connection(exchange->connection);
    qr_pool_add(port->pool, &exchange->work);
    return MHD_YES;
}

/* Called once with the headers, for each piece of the body, at its end, and once more when it was worked on. */
/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *decoded_path QR_UNUSED,
                                  const char *method, const char *version, const char *bytes, size_t *size_bytes,
                                  void **exchange_at)
{
    struct quire_port *port = arg;
    struct qr_exchange *exchange = *exchange_at;
    struct link *link = link_of(connection);
    if (!exchange || !link) {
        return MHD_NO; /* no memory */
    }
    if (!exchange->has_begun) {
        return begin(port, link, exchange, method, version);
    }
    if (*size_bytes) {
        take(port, link, exchange, bytes, *size_bytes);
        *size_bytes = 0;
        return MHD_YES;
    }
    if (exchange->is_called) {
        return send_answer(port, link, exchange);
    }
    return hand_over(port, link, exchange);
}

/* ---- start and stop ---- */

static struct MHD_Daemon *start_daemon(struct quire_port *port, int fd)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* its threads inherit it: signals belong to the main thread */
    /* clang-format off */
    struct MHD_Daemon *daemon = MHD_start_daemon(
        QUIRE_PORT_MHD_FLAGS | (port->tls ? MHD_USE_TLS : 0), 0, may_connect, port, on_request, port,
        MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)QUIRE_PORT_IO_THREADS,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, begin_request, port,
        MHD_OPTION_NOTIFY_COMPLETED, end_request, port,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, port,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)QUIRE_SERVER_HEAD_BYTES_MAX,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)port->options.connections_max,
        MHD_OPTION_CONNECTION_TIMEOUT, 0U,
        port->tls ? MHD_OPTION_HTTPS_PRIORITIES : MHD_OPTION_END, qr_tls_priorities,
        MHD_OPTION_HTTPS_CERT_CALLBACK2, qr_tls_retrieve,
        MHD_OPTION_END);
    /* clang-format on */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

static qr_rc load_identity(const struct quire_port_options *options, struct qr_tls_identity *ret_identity, qr_err *err)
{
    const struct qr_tls_files files = {options->tls_certificate, options->tls_key};
    return qr_tls_identity_load(ret_identity, qr_io_system(), &files, err);
}

/* Somebody has to get a new one in time, and nobody looks at the files. */
static void tell_of_certificate(const struct qr_log *log, const char *file, int64_t expires_ms)
{
    const bool is_expired = expires_ms <= qr_clock_wall_ms(qr_clock_system());
    char until[QR_TIME_TEXT_SIZE];
    qr_time_format(expires_ms, until);
    if (log) {
        qr_log(log, is_expired ? QR_LOG_WARN : QR_LOG_INFO, is_expired ? "certificate_expired" : "certificate_in_force",
               qr_field_text("file", file), qr_field_text("until", until));
    }
}

static qr_rc start_tls(struct quire_port *port, qr_err *err)
{
    struct qr_tls_identity identity;
    if (!port->options.tls_certificate) {
        return QR_OK;
    }
    if (MHD_is_feature_supported(MHD_FEATURE_HTTPS_CERT_CALLBACK2) != MHD_YES) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "this libmicrohttpd was built without TLS");
    }
    QR_TRY(load_identity(&port->options, &identity, err));
    tell_of_certificate(port->options.log, port->options.tls_certificate, identity.expires_ms);
    port->tls = qr_tls_create(&identity);
    if (!port->tls) {
        qr_tls_identity_done(&identity);
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the certificate");
    }
    return QR_OK;
}

static void free_port(struct quire_port *port)
{
    qr_feeds_close(&port->front.feeds);
    qr_pool_free(port->pool);
    if (port->daemon) {
        MHD_stop_daemon(port->daemon); /* breaks the connections that are left */
    }
    stop_watcher(port);
    qr_visitors_done(&port->visitors);
    pthread_cond_destroy(&port->changed);
    pthread_mutex_destroy(&port->lock);
    qr_tls_free(port->tls);
    qr_free((char *)port->front.hosts.names);
    qr_front_done(&port->front);
    qr_free(port);
}

static void init_port(struct quire_port *port, struct quire *quire, const struct quire_port_options *options)
{
    port->options = *options;
    port->request_ms = options->request_ms;
    port->bytes_per_s_min = options->bytes_per_s_min;
    port->look_us = port->feed_look_us = never_us;
    port->front = (struct qr_front){.quire = quire,
                                    .call = options->call ? options->call : quire_request_call,
                                    .recall = options->recall,
                                    .log = options->log,
                                    .hosts = {.names = qr_copy_string(options->hosts)},
                                    .body_bytes_max = options->body_bytes_max};
    port->front.feeds = (struct qr_feeds){.endless_max = options->streams_max,
                                          .address_max = options->address_streams_max,
                                          .on_move = on_move,
                                          .arg = port};
    qr_front_init(&port->front);
    pthread_mutex_init(&port->lock, NULL);
    qr_cond_init(&port->changed);
    qr_visitors_init(&port->visitors, qr_rand_u64(qr_rand_system()), options->address_connections_max,
                     options->address_requests_per_s);
}

static qr_rc start_threads(struct quire_port *port, qr_err *err)
{
    struct qr_tcp tcp;
    if (!port->front.hosts.names) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while starting the server");
    }
    QR_TRY(start_tls(port, err));
    QR_TRY(qr_pool_create(&port->pool, port->options.threads, err));
    port->front.feeds.pool = port->pool;
    QR_TRY(qr_thread_start(&port->watcher, "quire-deadline", watch, port, err));
    port->has_watcher = true;
    QR_TRY(qr_tcp_listen(port->options.listen, port->options.has_keys, &tcp, err));
    port->front.hosts.is_loopback = tcp.is_loopback;
    snprintf(port->url, sizeof port->url, "%s://%s", port->tls ? "https" : "http", tcp.authority);
    port->daemon = start_daemon(port, tcp.fd); /* which closes it, also where it cannot start a thread */
    return port->daemon ? QR_OK : qr_fail(err, QR_CODE_UNAVAILABLE, "cannot start the server of %s", port->url);
}

qr_rc quire_port_start(struct quire *quire, const struct quire_port_options *options, struct quire_port **ret_port,
                       qr_err *err)
{
    struct quire_port *port = qr_alloc_zero(sizeof *port);
    if (!port) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while starting the server");
    }
    init_port(port, quire, options);
    const qr_rc rc = start_threads(port, err);
    if (rc != QR_OK) {
        free_port(port);
        return rc;
    }
    *ret_port = port;
    return QR_OK;
}

/* ---- what can change while it serves (T4) ---- */

/* Takes the names. */
static void use_front_options(struct qr_front *front, char *hosts, size_t body_bytes_max)
{
    QR_LOCKED(&front->lock);
    qr_free((char *)front->hosts.names);
    front->hosts.names = hosts;
    front->body_bytes_max = body_bytes_max;
}

static void use_port_options(struct quire_port *port, const struct quire_port_options *options)
{
    port->request_ms = options->request_ms;
    port->bytes_per_s_min = options->bytes_per_s_min;
    QR_LOCKED(&port->lock);
    port->visitors.connections_max = options->address_connections_max;
    port->visitors.requests_per_s = options->address_requests_per_s;
}

qr_rc quire_port_reload(struct quire_port *port, const struct quire_port_options *options, qr_err *err)
{
    const bool has_certificate = port->tls && options->tls_certificate;
    struct qr_tls_identity identity;
    if (has_certificate) {
        QR_TRY(load_identity(options, &identity, err));
    }
    char *hosts = qr_copy_string(options->hosts);
    if (!hosts) {
        if (has_certificate) {
            qr_tls_identity_done(&identity);
        }
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while taking new settings");
    }
    if (has_certificate) { /* from here on nothing fails */
        tell_of_certificate(port->options.log, options->tls_certificate, identity.expires_ms);
        qr_tls_use(port->tls, &identity);
    }
    use_front_options(&port->front, hosts, options->body_bytes_max);
    use_port_options(port, options);
    return QR_OK;
}

const char *quire_port_url(const struct quire_port *port)
{
    return port->url;
}

/* MHD_quiesce_daemon would be the way, but its epoll threads race with it for the listening socket, and who loses ends
 * the process. */
static void close_doors(struct quire_port *port)
{
    QR_LOCKED(&port->lock);
    port->is_closed = true;
}

void quire_port_stop(struct quire_port *port)
{
    if (!port) {
        return;
    }
    close_doors(port);
    qr_front_drain(&port->front, port->options.last_answers_ms);
    free_port(port);
}
