/* The hash that decides among places that are equally good. */
#include "chunk/place.h"

#include <endian.h>

enum { HASHED_BYTES = 64, WORD_HASHED_BYTES = 16 }; /* lines often begin alike; there are many words */

uint64_t qr_place_hash(qr_str text, size_t next, enum qr_strength strength)
{
    const size_t most = strength < QR_AT_LINE ? WORD_HASHED_BYTES : HASHED_BYTES;
    const size_t len = QR_MIN(text.len - next, most);
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, text.ptr + next + i, QR_MIN(len - i, sizeof word));
        hash = (hash ^ le64toh(word)) * /* the same on every machine */
               UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}
