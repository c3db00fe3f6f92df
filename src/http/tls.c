/* Certificates by GnuTLS (http/tls.h, C1 and C2). */
#include "http/tls.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

const char qr_tls_priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE";

enum { KEY_ID_BYTES = 64 }; /* of a public key: its hash */

struct qr_tls {
    pthread_mutex_t lock; /* of the identity */
    struct qr_tls_identity identity;
};

/* ---- files ---- */

static qr_rc fail_file(const char *what, const char *path, int code, qr_err *err)
{
    return qr_fail(err, QR_CODE_INVALID_VALUE, "%s %s: %s", what, path, gnutls_strerror(code));
}

/* Whoever can read it can be this server. A group may: that is how a service gets at keys that are the machine's. */
static qr_rc check_who_reads(const struct qr_io *io, const char *path, qr_err *err)
{
    struct stat facts;
    const int fd = io->open(io, path, O_RDONLY, 0);
    if (fd < 0) {
        return QR_OK; /* reading it says why */
    }
    const int failed = io->fstat(io, fd, &facts);
    io->close(io, fd);
    if (failed || (facts.st_mode & (S_IROTH | S_IWOTH)) == 0) {
        return QR_OK;
    }
    return qr_fail(
        err, QR_CODE_INVALID_VALUE,
        "the TLS key %s can be read or written by everybody on this machine; `chmod o-rwx` it, or make a new one",
        path);
}

static gnutls_datum_t datum_of(const struct qr_buf *text)
{
    return (gnutls_datum_t){(unsigned char *)text->data, (unsigned)text->len};
}

static qr_rc load_chain(struct qr_tls_identity *identity, const struct qr_io *io, const char *path, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_TRY(qr_fs_read(io, path, QR_TLS_FILE_BYTES_MAX, &text, err));
    const gnutls_datum_t pem = datum_of(&text);
    const int code = gnutls_x509_crt_list_import2(&identity->chain, &identity->count, &pem, GNUTLS_X509_FMT_PEM,
                                                  GNUTLS_X509_CRT_LIST_SORT);
    if (code < 0) {
        identity->count = 0;
        identity->chain = NULL;
        return fail_file("the TLS certificate", path, code, err);
    }
    identity->expires_ms = (int64_t)gnutls_x509_crt_get_expiration_time(identity->chain[0]) * 1000;
    return QR_OK;
}

static qr_rc load_key(struct qr_tls_identity *identity, const struct qr_io *io, const char *path, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_TRY(check_who_reads(io, path, err));
    int code = gnutls_x509_privkey_init(&identity->key);
    if (code < 0) {
        identity->key = NULL;
        return fail_file("the TLS key", path, code, err);
    }
    const qr_rc rc = qr_fs_read(io, path, QR_TLS_FILE_BYTES_MAX, &text, err);
    if (rc == QR_OK) {
        const gnutls_datum_t pem = datum_of(&text);
        code = gnutls_x509_privkey_import2(identity->key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    }
    if (text.data) {
        explicit_bzero(text.data, text.len);
    }
    return rc != QR_OK ? rc : code < 0 ? fail_file("the TLS key", path, code, err) : QR_OK;
}

static bool belong_together(const struct qr_tls_identity *identity)
{
    unsigned char of_certificate[KEY_ID_BYTES], of_key[KEY_ID_BYTES];
    size_t certificate_len = sizeof of_certificate, key_len = sizeof of_key;
    return gnutls_x509_crt_get_key_id(identity->chain[0], 0, of_certificate, &certificate_len) == 0 &&
           gnutls_x509_privkey_get_key_id(identity->key, 0, of_key, &key_len) == 0 && certificate_len == key_len &&
           memcmp(of_certificate, of_key, key_len) == 0;
}

static qr_rc load(struct qr_tls_identity *identity, const struct qr_io *io, const struct qr_tls_files *files,
                  qr_err *err)
{
    QR_TRY(load_chain(identity, io, files->certificate, err));
    QR_TRY(load_key(identity, io, files->key, err));
    return belong_together(identity)
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "the TLS key %s is not the key of the certificate %s", files->key,
                         files->certificate);
}

qr_rc qr_tls_identity_load(struct qr_tls_identity *identity, const struct qr_io *io, const struct qr_tls_files *files,
                           qr_err *err)
{
    *identity = (struct qr_tls_identity){0};
    const qr_rc rc = load(identity, io, files, err);
    if (rc != QR_OK) {
        qr_tls_identity_done(identity);
    }
    return rc;
}

void qr_tls_identity_done(struct qr_tls_identity *identity)
{
    for (unsigned i = 0; i < identity->count; i++) {
        gnutls_x509_crt_deinit(identity->chain[i]);
    }
    gnutls_free(identity->chain);
    if (identity->key) {
        gnutls_x509_privkey_deinit(identity->key); /* overwrites it */
    }
    *identity = (struct qr_tls_identity){0};
}

/* ---- in force ---- */

struct qr_tls *qr_tls_create(struct qr_tls_identity *identity)
{
    struct qr_tls *tls = qr_alloc_zero(sizeof *tls);
    if (tls) {
        pthread_mutex_init(&tls->lock, NULL);
        qr_tls_use(tls, identity);
    }
    return tls;
}

void qr_tls_free(struct qr_tls *tls)
{
    if (tls) {
        qr_tls_identity_done(&tls->identity);
        pthread_mutex_destroy(&tls->lock);
        qr_free(tls);
    }
}

void qr_tls_use(struct qr_tls *tls, struct qr_tls_identity *identity)
{
    QR_LOCKED(&tls->lock);
    qr_tls_identity_done(&tls->identity);
    tls->identity = *identity;
    *identity = (struct qr_tls_identity){0};
}

/* libmicrohttpd keeps its connection here, for keys that are agreed on beforehand, which we do not have. */
void qr_tls_begin(struct qr_tls *tls, gnutls_session_t session)
{
    gnutls_session_set_ptr(session, tls);
}

/* ---- handshakes (C1) ---- */

/* NULL = out of memory. With GnuTLS's own memory, since it frees it. */
static gnutls_pcert_st *copy_chain(const struct qr_tls_identity *identity)
{
    gnutls_pcert_st *chain = gnutls_calloc(identity->count, sizeof *chain);
    for (unsigned i = 0; chain && i < identity->count; i++) {
        if (gnutls_pcert_import_x509(&chain[i], identity->chain[i], 0) < 0) {
            while (i-- > 0) {
                gnutls_pcert_deinit(&chain[i]);
            }
            gnutls_free(chain);
            return NULL;
        }
    }
    return chain;
}

static gnutls_privkey_t copy_key(const struct qr_tls_identity *identity)
{
    gnutls_privkey_t key;
    if (gnutls_privkey_init(&key) < 0) {
        return NULL;
    }
    if (gnutls_privkey_import_x509(key, identity->key, GNUTLS_PRIVKEY_IMPORT_COPY) < 0) {
        gnutls_privkey_deinit(key);
        return NULL;
    }
    return key;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are GnuTLS's */
int qr_tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *wanted QR_UNUSED,
                    gnutls_pcert_st **ret_chain, unsigned *ret_count, gnutls_ocsp_data_st **ret_ocsp,
                    unsigned *ret_ocsp_count, gnutls_privkey_t *ret_key, unsigned *ret_flags)
{
    struct qr_tls *tls = gnutls_session_get_ptr(session);
    QR_LOCKED(&tls->lock);
    gnutls_privkey_t key = copy_key(&tls->identity);
    gnutls_pcert_st *chain = key ? copy_chain(&tls->identity) : NULL;
    if (!chain) {
        if (key) {
            gnutls_privkey_deinit(key);
        }
        return -1;
    }
    *ret_chain = chain;
    *ret_count = tls->identity.count;
    *ret_ocsp = NULL;
    *ret_ocsp_count = 0;
    *ret_key = key;
    *ret_flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return 0;
}
