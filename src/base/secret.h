/* Secrets of keys: "qk_" and 32 random bytes in base64url. Whoever has one may do what its key may, so it is shown once and
 * only its hash is kept. The first characters are no secret: by them a key is told from others. */
#pragma once

#include "base/err.h"
#include "base/rand.h"
#include "base/str.h"

enum {
    QR_SECRET_TEXT_SIZE = sizeof "qk_" + 43,     /* with its NUL */
    QR_SECRET_PREFIX_LEN = sizeof "qk_" - 1 + 8, /* leaves 208 bits that nobody is shown */
    QR_SECRET_HASH_BYTES = 32,
};

struct qr_secret {
    char text[QR_SECRET_TEXT_SIZE];
};

void qr_secret_make(struct qr_rand *rand, struct qr_secret *ret_secret);
/* Overwrites it, which the compiler cannot leave out. */
void qr_secret_wipe(struct qr_secret *secret);

/* The part of it by which it is found. */
qr_str qr_secret_prefix(qr_str secret);

/* BLAKE2b-256 of the text. */
void qr_secret_hash(qr_str secret, unsigned char ret_hash[static QR_SECRET_HASH_BYTES]);
/* Takes the same time wherever they differ. */
bool qr_secret_hash_equal(const unsigned char a[static QR_SECRET_HASH_BYTES],
                          const unsigned char b[static QR_SECRET_HASH_BYTES]);

/* The secret of a header "Bearer qk_…". False: there is none in it that could be one. */
bool qr_secret_of_header(const char *authorization, qr_str *ret_secret);

/* Hides what may be a secret of ours in a text that is to be logged or shown: "qk_" stays, what follows becomes '*'
 * where it is longer than the part that may be shown. */
void qr_secret_hide(char *text);
