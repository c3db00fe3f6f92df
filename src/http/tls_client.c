/* A client's TLS by GnuTLS (http/tls_client.h). */
#include "http/tls_client.h"

#include "base/mem.h"
#include "http/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

struct qr_tls_client {
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

static qr_rc fail(int code, qr_err *err)
{
    return qr_fail(err, code == GNUTLS_E_MEMORY_ERROR ? QR_CODE_OUT_OF_MEMORY : QR_CODE_UNAVAILABLE, "TLS: %s",
                   gnutls_strerror(code));
}

static qr_rc load_trust(struct qr_tls_client *client, const char *file, qr_err *err)
{
    int code = gnutls_certificate_allocate_credentials(&client->credentials);
    if (code < 0) {
        client->credentials = NULL;
        return fail(code, err);
    }
    code = file ? gnutls_certificate_set_x509_trust_file(client->credentials, file, GNUTLS_X509_FMT_PEM)
                : gnutls_certificate_set_x509_system_trust(client->credentials);
    return code >= 0 ? QR_OK
                     : qr_fail(err, QR_CODE_UNAVAILABLE, "the certificates that are trusted cannot be read%s%s: %s",
                               file ? " from " : "", file ? file : "", gnutls_strerror(code));
}

static bool is_address(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

static qr_rc prepare(struct qr_tls_client *client, int fd, const struct qr_tls_client_options *options, qr_err *err)
{
    QR_TRY(load_trust(client, options->trust_file, err));
    int code = gnutls_init(&client->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
    if (code < 0) {
        client->session = NULL;
        return fail(code, err);
    }
    code = gnutls_priority_set_direct(client->session, qr_tls_priorities, NULL);
    if (code == 0) {
        code = gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->credentials);
    }
    if (code == 0 && !is_address(options->host)) { /* an address is no name to choose a certificate by */
        code = gnutls_server_name_set(client->session, GNUTLS_NAME_DNS, options->host, strlen(options->host));
    }
    gnutls_session_set_verify_cert(client->session, options->host, 0);
    gnutls_transport_set_int(client->session, fd);
    gnutls_handshake_set_timeout(client->session, options->timeout_ms);
    return code == 0 ? QR_OK : fail(code, err);
}

static qr_rc fail_trust(const struct qr_tls_client *client, const char *host, qr_err *err)
{
    gnutls_datum_t why = {0};
    const unsigned status = gnutls_session_get_verify_cert_status(client->session);
    (void)gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &why, 0);
    const qr_rc rc = qr_fail(err, QR_CODE_UNAVAILABLE, "the server is not known to be %s: %s", host,
                             why.data ? (const char *)why.data : "its certificate is not trusted");
    gnutls_free(why.data);
    return rc;
}

static qr_rc shake_hands(struct qr_tls_client *client, const char *host, qr_err *err)
{
    int code;
    do {
        code = gnutls_handshake(client->session);
    } while (code < 0 && !gnutls_error_is_fatal(code));
    if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
        return fail_trust(client, host, err);
    }
    return code == 0 ? QR_OK : fail(code, err);
}

qr_rc qr_tls_client_open(struct qr_tls_client **ret_client, int fd, const struct qr_tls_client_options *options,
                         qr_err *err)
{
    struct qr_tls_client *client = qr_alloc_zero(sizeof *client);
    if (!client) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the connection");
    }
    qr_rc rc = prepare(client, fd, options, err);
    if (rc == QR_OK) {
        rc = shake_hands(client, options->host, err);
    }
    if (rc != QR_OK) {
        qr_tls_client_close(client);
        return rc;
    }
    *ret_client = client;
    return QR_OK;
}

void qr_tls_client_close(struct qr_tls_client *client)
{
    if (!client) {
        return;
    }
    if (client->session) {
        gnutls_deinit(client->session);
    }
    if (client->credentials) {
        gnutls_certificate_free_credentials(client->credentials);
    }
    qr_free(client);
}

/* The code of GnuTLS as errno; 0 = once more. Whatever breaks the connection: nothing that comes behind it can be believed. */
static int errno_of(ssize_t code)
{
    return gnutls_error_is_fatal((int)code) ? ECONNRESET : 0;
}

ssize_t qr_tls_client_send(struct qr_tls_client *client, const void *bytes, size_t size_bytes)
{
    ssize_t sent;
    do {
        sent = gnutls_record_send(client->session, bytes, size_bytes);
        errno = sent < 0 ? errno_of(sent) : 0;
    } while (sent < 0 && errno == 0);
    return sent < 0 ? -1 : sent;
}

ssize_t qr_tls_client_recv(struct qr_tls_client *client, void *bytes, size_t size_bytes)
{
    ssize_t got;
    do {
        got = gnutls_record_recv(client->session, bytes, size_bytes);
        errno = got < 0 ? errno_of(got) : 0;
    } while (got < 0 && errno == 0);
    return got < 0 ? -1 : got;
}
