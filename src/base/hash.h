/* Hashes of bytes: fast, the same on every machine and in every version, not secret. */
#pragma once

#include "base/str.h"

enum { QR_HASH_BYTES = 16 };

/* 128 bits, so that two different keys are never taken for one. */
void qr_hash_128(qr_str text, unsigned char ret_hash[static QR_HASH_BYTES]);

enum { QR_HASH_256_BYTES = 2 * QR_HASH_BYTES };

/* 256 bits of two texts, told apart from any other two: two hashes with different seeds over `a`, a NUL and `b`, where `a`
 * holds no NUL. */
void qr_hash_256(qr_str a, qr_str b, unsigned char ret_hash[static QR_HASH_256_BYTES]);

/* The same 128 bits of what comes in pieces. NULL = out of memory. */
struct qr_hash_stream;
struct qr_hash_stream *qr_hash_stream_create(void);
void qr_hash_stream_free(struct qr_hash_stream *stream);
void qr_hash_stream_add(struct qr_hash_stream *stream, qr_str bytes);
void qr_hash_stream_result(const struct qr_hash_stream *stream, unsigned char ret_hash[static QR_HASH_BYTES]);
