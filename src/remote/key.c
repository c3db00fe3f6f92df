/* Reads keys and keeps them out of texts. */
#include "remote/key.h"

#include "base/fs.h"
#include "base/hash.h"

#include <stdlib.h>
#include <sys/stat.h>

enum {
    KEY_BYTES_MAX = 16384,
    LIKE_BYTES_MIN = 6, /* servers show the beginning of a key, and stars */
};

void qr_key_done(struct qr_key *key)
{
    if (key->text.data) {
        explicit_bzero(key->text.data, key->text.capacity);
    }
    qr_buf_done(&key->text);
}

static qr_rc read_text(struct qr_key *key, const char *env, const char *file, qr_err *err)
{
    const char *value = env[0] ? getenv(env) : NULL;
    qr_buf_init(&key->text, KEY_BYTES_MAX);
    if (value && *value) {
        qr_buf_add_text(&key->text, value);
        return qr_buf_check(&key->text, err);
    }
    if (!file[0]) {
        return qr_fail(err, QR_CODE_ENDPOINT_REFUSED, "the variable %s, from which its key comes, is not set", env);
    }
    struct stat st;
    if (stat(file, &st) == 0 && !S_ISREG(st.st_mode)) { /* to open a pipe would wait for its other end */
        return qr_fail(err, QR_CODE_ENDPOINT_REFUSED, "its key cannot be read: %s is no file", file);
    }
    if (qr_fs_read(qr_io_system(), file, KEY_BYTES_MAX, &key->text, err) != QR_OK) {
        if (!err) {
            return QR_UNAVAILABLE;
        }
        return qr_fail(err, QR_CODE_ENDPOINT_REFUSED, "its key cannot be read: %s", err->msg);
    }
    return QR_OK;
}

/* A line end in a header would begin another one. */
static bool is_printable(qr_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~') {
            return false;
        }
    }
    return true;
}

qr_rc qr_key_load(struct qr_key *key, const char *env, const char *file, qr_err *err)
{
    unsigned char hash[QR_HASH_BYTES];
    if (!env[0] && !file[0]) {
        return QR_OK;
    }
    QR_TRY(read_text(key, env, file, err));
    const qr_str trimmed = qr_str_trim(qr_buf_str(&key->text));
    if (trimmed.len == 0 || !is_printable(trimmed)) {
        return qr_fail(err, QR_CODE_ENDPOINT_REFUSED, "its key, from %s, %s", env[0] && getenv(env) ? env : file,
                       trimmed.len ? "has characters that no key has" : "is empty");
    }
    memmove(key->text.data, trimmed.ptr, trimmed.len);
    key->text.data[trimmed.len] = '\0';
    key->text.len = trimmed.len;
    qr_hash_128(trimmed, hash);
    memcpy(&key->mark, hash, sizeof key->mark);
    return QR_OK;
}

void qr_key_scrub(const struct qr_key *key, char *text)
{
    const size_t key_len = key->text.len, like_len = QR_MIN(key_len, (size_t)LIKE_BYTES_MIN);
    if (key_len == 0) {
        return;
    }
    for (char *at = text; *at; at++) {
        if (strncmp(at, key->text.data, like_len) != 0) {
            continue;
        }
        const size_t whole = strncmp(at, key->text.data, key_len) == 0 ? key_len : 0;
        const size_t word = strcspn(at, " \"'`,;()<>");
        const size_t len = QR_MAX(QR_MAX(whole, word), like_len);
        const size_t stars = QR_MIN(len, (size_t)3);
        memset(at, '*', stars);
        memmove(at + stars, at + len, strlen(at + len) + 1);
        at += stars - 1;
    }
}
