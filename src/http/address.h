/* Where the process that owns a data folder listens: the socket's address, for the owner and for whoever comes second.
 */
#pragma once

#include "base/err.h"

#include <sys/socket.h>
#include <sys/un.h>

#define QR_SOCKET_NAME "quire.sock"

struct qr_socket_address {
    struct sockaddr_un un;
    int folder_fd; /* the address is good while it is open; -1 = not needed */
};

/* An address has room for some 100 bytes, a folder's path for 4,096: where it does not fit, the address leads through
 * the opened folder, and nobody has to change the current one. On failure there is nothing to release. */
qr_rc qr_socket_address_init(struct qr_socket_address *address, const char *folder, const char *name, qr_err *err);
void qr_socket_address_done(struct qr_socket_address *address);
