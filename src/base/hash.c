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

static void hash_pair(qr_str a, qr_str b, uint64_t seed, unsigned char *ret_hash)
{
    XXH3_state_t state;
    XXH128_canonical_t canonical;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset_withSeed(&state, seed);
    XXH3_128bits_update(&state, a.len ? a.ptr : "", a.len);
    XXH3_128bits_update(&state, "", 1);
    XXH3_128bits_update(&state, b.len ? b.ptr : "", b.len);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
    memcpy(ret_hash, canonical.digest, QR_HASH_BYTES);
}

void qr_hash_256(qr_str a, qr_str b, unsigned char ret_hash[static QR_HASH_256_BYTES])
{
    hash_pair(a, b, 0, ret_hash);
    hash_pair(a, b, UINT64_C(0x9E3779B97F4A7C15), ret_hash + QR_HASH_BYTES);
}
