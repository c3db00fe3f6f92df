/* A listening TCP socket. */
#pragma once

#include "base/err.h"

#include <netinet/in.h>

enum { QR_TCP_ADDRESS_SIZE = INET6_ADDRSTRLEN, QR_TCP_URL_SIZE = INET6_ADDRSTRLEN + 24 };

struct qr_tcp {
    int fd;
    bool is_loopback;
    char authority[QR_TCP_URL_SIZE]; /* "127.0.0.1:7700", with the real port */
};

/* `may_leave`: an address that others can reach is taken too; otherwise it is `forbidden`. On failure there is nothing to
 * release. */
qr_rc qr_tcp_listen(const char *address_and_port, bool may_leave, struct qr_tcp *ret_tcp, qr_err *err);
/* "192.0.2.7" of a peer; an IPv4 address that came in through IPv6 is written as IPv4. */
void qr_tcp_address(const struct sockaddr *address, char ret_text[static QR_TCP_ADDRESS_SIZE]);
