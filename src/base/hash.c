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
