/* The vector cache (PAID-1): by fingerprint and exact text, across bases, reindexing and restarts.
 *
 * Each entry has a row about its use: when it was used last, what it takes, and which round of pruning found it in use
 * (store/vector_rounds.h). Who changes both rows of an entry begins with this one: so nobody waits in a circle. */
#pragma once

#include "base/str.h"
#include "db/db.h"

enum {
    QR_VECTOR_KEY_BYTES = 32,
    QR_VECTOR_ENTRY_BYTES = 128,         /* what an entry takes besides its vector, about; also in the schema */
    QR_VECTOR_TOUCH_MS = 60 * 60 * 1000, /* a use is written down when the last one is so long ago */
};

/* 256 bits of fingerprint and text. */
void qr_vector_key(const char *fingerprint, qr_str text, unsigned char ret_key[static QR_VECTOR_KEY_BYTES]);
struct qr_vector_found {
    bool is_found;
    bool is_to_be_touched; /* before it is used */
    bool is_in_round;      /* durably, then: a round of pruning is under way */
    int64_t kept_bytes;    /* as below */
};
/* Copies `dimension` floats; not found also where the stored one has another dimension. */
qr_rc qr_vector_use(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], int dimension,
                    float *ret_vector, struct qr_vector_found *ret_found, qr_err *err);
/* Writes down that it is used now. One that was evicted since it was found is there again. */
qr_rc qr_vector_touch(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], const float *vector,
                      int dimension, int64_t kept_bytes, qr_err *err);
/* Counts as a use. An existing one stays, unless it is of another dimension. kept_bytes: the vector is of so much of the text, which had to be
 * shortened; 0 = of all. */
qr_rc qr_vector_add(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], const float *vector,
                    int dimension, int64_t kept_bytes, qr_err *err);
qr_rc qr_vector_exists(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], bool *ret_exists,
                       qr_err *err);
/* Whether there is one, of a text that had to be shortened. */
qr_rc qr_vector_is_shortened(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES],
                             bool *ret_is_shortened, qr_err *err);

/* ---- how often it had what was looked for ---- */

struct qr_vector_count {
    int64_t hits, misses;
};
/* Locks its row until the transaction ends: the last thing that a transaction does. */
qr_rc qr_vector_count_add(struct qr_tx *tx, const struct qr_vector_count *count, qr_err *err);
qr_rc qr_vector_count_load(struct qr_tx *tx, struct qr_vector_count *ret_count, qr_err *err);
