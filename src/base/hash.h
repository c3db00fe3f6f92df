/* Hashes of bytes: fast, the same on every machine and in every version, not secret. */
#pragma once

#include "base/str.h"

enum { QR_HASH_BYTES = 16 };

/* 128 bits, so that two different keys are never taken for one. */
void qr_hash_128(qr_str text, unsigned char ret_hash[static QR_HASH_BYTES]);
