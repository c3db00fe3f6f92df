/* Requests that are to be done once, however often they are sent: a row a key, for a day.
 *
 * K1  The row is there before the request does anything, and durable: what is found pending is under way, or its process
 *     ended and nobody knows how far it came. It is never begun a second time.
 * K2  Only what was done is remembered: a request that was refused leaves its key free. */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "db/db.h"

enum { QR_IDEMPOTENCY_KEPT_MS = 24 * 60 * 60 * 1000 };

enum qr_idempotency_state {
    QR_IDEMPOTENCY_NEW,     /* begun by this call */
    QR_IDEMPOTENCY_PENDING, /* K1 */
    QR_IDEMPOTENCY_OTHER,   /* the key was sent with another request */
    QR_IDEMPOTENCY_DONE,
};

struct qr_idempotency_answer {
    int status;
    const char *body; /* JSON, in the arena */
};

/* Inside a durable write. `key` tells apart whose key it is too. Forgets some that are older than a day. */
qr_rc qr_idempotency_begin(struct qr_tx *tx, const unsigned char key[static QR_HASH_256_BYTES],
                           const unsigned char request[static QR_HASH_BYTES], int64_t now_ms, struct qr_arena *arena,
                           enum qr_idempotency_state *ret_state, struct qr_idempotency_answer *ret_answer, qr_err *err);
qr_rc qr_idempotency_end(struct qr_tx *tx, const unsigned char key[static QR_HASH_256_BYTES], int status, qr_str body,
                         qr_err *err);
qr_rc qr_idempotency_forget(struct qr_tx *tx, const unsigned char key[static QR_HASH_256_BYTES], qr_err *err);
