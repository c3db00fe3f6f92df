/* Secrets of keys, on libsodium. Stateless. */
#include "base/secret.h"

#include "base/base64.h"

#include <assert.h>
#include <sodium.h>
#include <strings.h>

static const char mark[] = "qk_";

/* A digit of base64url. */
static bool is_digit(char c)
{
    return c == '-' || c == '_' || (qr_base64_digit(c) >= 0 && c != '+' && c != '/');
}

static char digit_of(unsigned bits)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return digits[bits & 63];
}

void qr_secret_make(struct qr_rand *rand, struct qr_secret *ret_secret)
{
    unsigned char bytes[33] = {0}; /* the last stays 0: base64url takes three at a time */
    char digits[44];
    rand->fill(rand, bytes, 32);
    for (size_t i = 0; i < sizeof bytes; i += 3) {
        const unsigned three = (unsigned)bytes[i] << 16 | (unsigned)bytes[i + 1] << 8 | bytes[i + 2];
        for (size_t k = 0; k < 4; k++) {
            digits[i / 3 * 4 + k] = digit_of(three >> (18 - 6 * k));
        }
    }
    memcpy(ret_secret->text, mark, sizeof mark - 1);
    memcpy(ret_secret->text + sizeof mark - 1, digits, 43);
    ret_secret->text[QR_SECRET_TEXT_SIZE - 1] = '\0';
    sodium_memzero(bytes, sizeof bytes);
    sodium_memzero(digits, sizeof digits);
}

void qr_secret_wipe(struct qr_secret *secret)
{
    sodium_memzero(secret, sizeof *secret);
}

qr_str qr_secret_prefix(qr_str secret)
{
    return (qr_str){secret.ptr, QR_MIN(secret.len, (size_t)QR_SECRET_PREFIX_LEN)};
}

void qr_secret_hash(qr_str secret, unsigned char ret_hash[static QR_SECRET_HASH_BYTES])
{
    const int failed =
        crypto_generichash(ret_hash, QR_SECRET_HASH_BYTES, (const unsigned char *)secret.ptr, secret.len, NULL, 0);
    assert(!failed); /* only of a wrong length */
    (void)failed;
}

bool qr_secret_hash_equal(const unsigned char a[static QR_SECRET_HASH_BYTES],
                          const unsigned char b[static QR_SECRET_HASH_BYTES])
{
    return sodium_memcmp(a, b, QR_SECRET_HASH_BYTES) == 0;
}

bool qr_secret_of_header(const char *authorization, qr_str *ret_secret)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0) {
        return false;
    }
    const qr_str secret = qr_str_trim(qr_str_of(authorization + sizeof scheme - 1));
    if (secret.len != QR_SECRET_TEXT_SIZE - 1 || !qr_str_starts_with(secret, QR_STR("qk_"))) {
        return false;
    }
    for (size_t i = sizeof mark - 1; i < secret.len; i++) {
        if (!is_digit(secret.ptr[i])) {
            return false;
        }
    }
    *ret_secret = secret;
    return true;
}

void qr_secret_hide(char *text)
{
    enum { NAME_LEN_MAX = 16 }; /* so much may also be a name, or what is shown of a secret */
    for (char *at = strstr(text, mark); at; at = strstr(at, mark)) {
        at += sizeof mark - 1;
        size_t len = 0;
        while (is_digit(at[len])) {
            len++;
        }
        if (len > NAME_LEN_MAX) {
            memset(at, '*', len);
        }
        at += len;
    }
}
