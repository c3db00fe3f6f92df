/* Servers before the stand-in for the library, and connections to them. */
#pragma once

#include "http/address.h"
#include "http/port.h"
#include "http/server.h"
#include "support/stand_in.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>

static const struct quire_port_options usual_port = {
    .listen = "127.0.0.1:0",
    .hosts = "",
    .threads = 4,
    .connections_max = 1024,
    .request_ms = 60000,
    .bytes_per_s_min = 1024,
    .body_bytes_max = 1 << 20,
    .last_answers_ms = 2000,
};

static inline struct quire_port *start_port(const struct quire_port_options *options)
{
    struct quire_port *port;
    qr_err err;
    QR_CHECK_RC(QR_OK, quire_port_start(&library, options, &port, &err));
    return port;
}

static inline struct quire_server *start_server(const char *folder)
{
    struct quire_server *server;
    qr_err err;
    QR_CHECK_RC(QR_OK, quire_server_start(&library, folder, &server, &err));
    return server;
}

static inline struct sockaddr_in address_of_port(const struct quire_port *port)
{
    const char *colon = strrchr(quire_port_url(port), ':');
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* -1 = nobody listens. */
static inline int try_connect(const struct sockaddr *address, socklen_t size)
{
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    QR_CHECK(fd >= 0);
    if (connect(fd, address, size) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static inline int try_connect_port(const struct quire_port *port)
{
    const struct sockaddr_in address = address_of_port(port);
    return try_connect((const struct sockaddr *)&address, sizeof address);
}

static inline int connect_port(const struct quire_port *port)
{
    const int fd = try_connect_port(port);
    QR_CHECK(fd >= 0);
    return fd;
}

static inline int try_connect_socket(const char *folder)
{
    struct qr_socket_address address;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_socket_address_init(&address, folder, QR_SOCKET_NAME, &err));
    const int fd = try_connect((const struct sockaddr *)&address.un, sizeof address.un);
    qr_socket_address_done(&address);
    return fd;
}

static inline int connect_socket(const char *folder)
{
    const int fd = try_connect_socket(folder);
    QR_CHECK(fd >= 0);
    return fd;
}

/* For many clients: both ends of every connection are in this process. */
static inline void allow_files(rlim_t count)
{
    struct rlimit limit;
    QR_CHECK_INT(0, getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = QR_MAX(limit.rlim_cur, count);
    QR_CHECK_INT(0, setrlimit(RLIMIT_NOFILE, &limit));
}

/* Asks over and over: the next moment a server that stops refuses. */
static inline void wait_until_refused(int fd)
{
    for (bool is_stopping = false; !is_stopping;) {
        struct qr_http_response response;
        send_bytes(fd, QR_STR("GET /a" HEADERS "\r\n"));
        QR_CHECK(receive(fd, &response));
        is_stopping = response.status == 503;
        QR_CHECK(!is_stopping || strstr(response.body.data, "shutting_down"));
        qr_http_response_done(&response);
    }
}
