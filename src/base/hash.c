/* xxHash behind one name: what is stored must not change with a library. */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

void qr_hash_128(qr_str text, unsigned char ret_hash[static QR_HASH_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(text.len ? text.ptr : "", text.len));
    _Static_assert(sizeof canonical.digest == QR_HASH_BYTES, "the canonical form has the size of ours");
    memcpy(ret_hash, canonical.digest, QR_HASH_BYTES);
}

/* The first text decides the seed of the second: no state, whose alignment a sanitizer's stack does not keep. */
static void hash_pair(qr_str a, qr_str b, uint64_t seed, unsigned char *ret_hash)
{
    XXH128_canonical_t canonical;
    const uint64_t pair_seed = XXH3_64bits_withSeed(a.len ? a.ptr : "", a.len, seed);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(b.len ? b.ptr : "", b.len, pair_seed));
    memcpy(ret_hash, canonical.digest, QR_HASH_BYTES);
}

void qr_hash_256(qr_str a, qr_str b, unsigned char ret_hash[static QR_HASH_256_BYTES])
{
    hash_pair(a, b, 0, ret_hash);
    hash_pair(a, b, UINT64_C(0x9E3779B97F4A7C15), ret_hash + QR_HASH_BYTES);
}
