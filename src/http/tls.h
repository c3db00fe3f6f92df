/* The certificate of a port, and its exchange while connections are served.
 *
 * C1  Each handshake has a copy of its own of what is in force at that moment: an exchange disturbs no connection, and nothing
 *     of an old key stays behind the last handshake that took it.
 * C2  What cannot be used is found out before it is used: a chain that is none, a key of another certificate, a key that
 *     everybody on the machine can read. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"

#include <gnutls/abstract.h>

enum { QR_TLS_FILE_BYTES_MAX = 1 << 20 }; /* of either file; a chain has some KB */

/* TLS 1.2 and 1.3. */
extern const char qr_tls_priorities[];

struct qr_tls_files {
    const char *certificate; /* PEM: the server's own, and behind it those that lead to a root */
    const char *key;         /* PEM, without a passphrase */
};

/* A certificate with its key, read and found good. */
struct qr_tls_identity {
    gnutls_x509_crt_t *chain;
    unsigned count; /* 0 = nothing */
    gnutls_x509_privkey_t key;
    int64_t expires_ms; /* wall time */
};

/* `invalid_value` by C2, and what reading a file fails with. On failure there is nothing to release. */
qr_rc qr_tls_identity_load(struct qr_tls_identity *identity, const struct qr_io *io, const struct qr_tls_files *files,
                           qr_err *err);
void qr_tls_identity_done(struct qr_tls_identity *identity);

struct qr_tls;

/* NULL = out of memory. Takes the identity. */
struct qr_tls *qr_tls_create(struct qr_tls_identity *identity);
void qr_tls_free(struct qr_tls *tls);
/* Handshakes that begin now have this one, which is taken. */
void qr_tls_use(struct qr_tls *tls, struct qr_tls_identity *identity);

/* For a connection that has just come. */
void qr_tls_begin(struct qr_tls *tls, gnutls_session_t session);
/* GnuTLS asks for a certificate: of sessions that have begun so. */
gnutls_certificate_retrieve_function3 qr_tls_retrieve;
