/* xxHash behind one name: what is stored must not change with a library. */
#include "base/hash.h"

#include "base/mem.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { XXH_STATE_ALIGN = 64 }; /* as XXH3_state_t asks for */

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

/* ---- in pieces ---- */

/* The state must be aligned, and memory is only to 16 bytes: so it is somewhere in a block that is large enough. */
struct qr_hash_stream {
    XXH3_state_t *state;
    char room[sizeof(XXH3_state_t) + XXH_STATE_ALIGN];
};

struct qr_hash_stream *qr_hash_stream_create(void)
{
    struct qr_hash_stream *stream = qr_alloc_zero(sizeof *stream);
    if (stream) {
        const uintptr_t misfit = (uintptr_t)stream->room % XXH_STATE_ALIGN;
        stream->state = (void *)(stream->room + (misfit ? XXH_STATE_ALIGN - misfit : 0));
        XXH3_128bits_reset(stream->state);
    }
    return stream;
}

void qr_hash_stream_free(struct qr_hash_stream *stream)
{
    qr_free(stream);
}

void qr_hash_stream_add(struct qr_hash_stream *stream, qr_str bytes)
{
    if (bytes.len) {
        XXH3_128bits_update(stream->state, bytes.ptr, bytes.len);
    }
}

void qr_hash_stream_result(const struct qr_hash_stream *stream, unsigned char ret_hash[static QR_HASH_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(stream->state));
    memcpy(ret_hash, canonical.digest, QR_HASH_BYTES);
}
