/* The client's side of TLS, over a socket that is connected. TLS 1.2 and 1.3; the server must be the one that was asked for. */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

struct qr_tls_client;

struct qr_tls_client_options {
    const char *host;       /* a name or an address, which the certificate must be of */
    const char *trust_file; /* PEM: who is trusted instead of whom the system trusts; NULL = the system's */
    unsigned timeout_ms;    /* of the handshake */
};

/* Shakes hands. `unavailable` when the server cannot be trusted or does not speak TLS. On failure there is nothing to close; the socket
 * stays the caller's, and is to be closed after this. */
qr_rc qr_tls_client_open(struct qr_tls_client **ret_client, int fd, const struct qr_tls_client_options *options,
                         qr_err *err);
void qr_tls_client_close(struct qr_tls_client *client); /* NULL is fine */

/* As send(2) and recv(2) of a socket that blocks. A server that ends without saying so has reset the connection. */
ssize_t qr_tls_client_send(struct qr_tls_client *client, const void *bytes, size_t size_bytes);
ssize_t qr_tls_client_recv(struct qr_tls_client *client, void *bytes, size_t size_bytes);
