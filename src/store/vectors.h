/* The vector cache (PAID-1): by fingerprint and exact text, across bases, reindexing and restarts. */
#pragma once

#include "base/str.h"
#include "db/db.h"

enum { QR_VECTOR_KEY_BYTES = 32 };

/* 256 bits of fingerprint and text. */
void qr_vector_key(const char *fingerprint, qr_str text, unsigned char ret_key[static QR_VECTOR_KEY_BYTES]);
/* Copies `dimension` floats; not found also where the stored one has another dimension. */
qr_rc qr_vector_find(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], int dimension,
                     float *ret_vector, bool *ret_found, qr_err *err);
/* An existing one stays. */
qr_rc qr_vector_add(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], const float *vector,
                    int dimension, qr_err *err);
