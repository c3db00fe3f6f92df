/* Listening on a TCP port (http/tcp.h). */
#include "http/tcp.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

/* "[::1]:7700" into "::1" and "7700"; false when there is no port. */
static bool split(const char *text, char *ret_host, size_t host_size, const char **ret_port)
{
    const char *colon = strrchr(text, ':');
    qr_str host = {text, colon ? (size_t)(colon - text) : 0};
    int64_t port;
    if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']') {
        host = (qr_str){host.ptr + 1, host.len - 2};
    } else if (memchr(host.ptr, ':', host.len)) {
        return false; /* ::1:7700 could be either */
    }
    if (!colon || host.len == 0 || host.len >= host_size || !qr_str_to_i64(qr_str_of(colon + 1), &port) || port < 0 ||
        port > 65535) {
        return false;
    }
    snprintf(ret_host, host_size, "%.*s", QR_STR_ARG(host));
    *ret_port = colon + 1;
    return true;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) == 127;
    }
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

void qr_tcp_address(const struct sockaddr *address, char ret_text[static QR_TCP_ADDRESS_SIZE])
{
    ret_text[0] = '\0';
    if (address->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, ret_text,
                  QR_TCP_ADDRESS_SIZE);
    } else if (address->sa_family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(six)) {
            inet_ntop(AF_INET, &six->s6_addr[12], ret_text, QR_TCP_ADDRESS_SIZE);
        } else {
            inet_ntop(AF_INET6, six, ret_text, QR_TCP_ADDRESS_SIZE);
        }
    }
}

static void write_authority(struct qr_tcp *tcp)
{
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    char host[QR_TCP_ADDRESS_SIZE];
    getsockname(tcp->fd, (struct sockaddr *)&bound, &size);
    qr_tcp_address((const struct sockaddr *)&bound, host);
    const unsigned port = bound.ss_family == AF_INET6
                              ? ntohs(((const struct sockaddr_in6 *)(const void *)&bound)->sin6_port)
                              : ntohs(((const struct sockaddr_in *)(const void *)&bound)->sin_port);
    snprintf(tcp->authority, sizeof tcp->authority, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

static qr_rc open_at(const struct addrinfo *at, const char *name, struct qr_tcp *tcp, qr_err *err)
{
    tcp->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (tcp->fd < 0) {
        return qr_fail_errno(err, errno, "cannot make a socket");
    }
    const int on = 1;
    (void)setsockopt(tcp->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* after a restart at once */
    if (bind(tcp->fd, at->ai_addr, at->ai_addrlen) != 0 || listen(tcp->fd, SOMAXCONN) != 0) {
        const int failed = errno;
        close(tcp->fd);
        tcp->fd = -1;
        return failed == EADDRINUSE
                   ? qr_fail(err, QR_CODE_UNAVAILABLE, "cannot listen on %s: something else does already", name)
                   : qr_fail_errno(err, failed, "cannot listen on %s", name);
    }
    tcp->is_loopback = is_loopback(at->ai_addr);
    write_authority(tcp);
    return QR_OK;
}

qr_rc qr_tcp_listen(const char *address_and_port, bool may_leave, struct qr_tcp *ret_tcp, qr_err *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char host[256];
    const char *port = NULL;
    if (!split(address_and_port, host, sizeof host, &port)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "%s is no address to listen on: write ADDRESS:PORT, as in 127.0.0.1:7700 or [::1]:7700",
                       address_and_port);
    }
    const int failed = getaddrinfo(host, port, &hints, &found);
    if (failed) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s is no address of this machine: %s", host, gai_strerror(failed));
    }
    struct qr_tcp tcp = {.fd = -1};
    const qr_rc rc =
        may_leave || is_loopback(found->ai_addr)
            ? open_at(found, address_and_port, &tcp, err)
            : qr_fail(err, QR_CODE_FORBIDDEN,
                      "others could reach %s, and there is no key yet: make one with `quire key create`, or listen on "
                      "127.0.0.1",
                      address_and_port);
    freeaddrinfo(found);
    if (rc == QR_OK) {
        *ret_tcp = tcp;
    }
    return rc;
}
