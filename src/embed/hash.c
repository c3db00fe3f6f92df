/* The provider `hash`: each word of a text adds 1 or -1 to one of the dimensions, both chosen by the word's hash; then the
 * vector gets the length 1. Stateless but for the count of calls, so any number of threads may use it. */
#include "embed/hash.h"

#include "base/failpoint.h"
#include "base/hash.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>

enum { DIMENSIONS_DEFAULT = 64, DIMENSIONS_MAX = 4096, BATCH_INPUTS_MAX = 64, WORD_BYTES_MAX = 64 };

struct hash_provider {
    struct qr_provider provider;
    uint64_t seed;        /* of the model's name: another model gives other vectors */
    char fingerprint[64]; /* "hash:SEED:DIMENSION": of fixed size, whatever the name */
};

static uint64_t hash_u64(qr_str text)
{
    unsigned char hash[QR_HASH_BYTES];
    qr_hash_128(text, hash);
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | hash[i];
    }
    return value;
}

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
}

/* The next word, of which the first bytes count, in small letters; 0 at the end. */
static size_t next_word(qr_str *text, char word[static WORD_BYTES_MAX])
{
    size_t at = 0, len = 0;
    while (at < text->len && !is_letter((unsigned char)text->ptr[at])) {
        at++;
    }
    for (; at < text->len && is_letter((unsigned char)text->ptr[at]); at++) {
        const char c = text->ptr[at];
        if (len < WORD_BYTES_MAX) {
            word[len++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        }
    }
    *text = (qr_str){text->ptr + at, text->len - at};
    return len;
}

static void normalise(float *vector, int dimension)
{
    double square = 0;
    for (int i = 0; i < dimension; i++) {
        square += (double)vector[i] * (double)vector[i];
    }
    if (square == 0) { /* no words, or they cancel each other out: still a vector of length 1 */
        vector[0] = 1;
        return;
    }
    for (int i = 0; i < dimension; i++) {
        vector[i] = (float)((double)vector[i] / sqrt(square));
    }
}

static void embed_text(const struct hash_provider *hash, qr_str text, float *ret_vector)
{
    const int dimension = hash->provider.dimension;
    char word[WORD_BYTES_MAX];
    size_t len;
    memset(ret_vector, 0, (size_t)dimension * sizeof ret_vector[0]);
    while ((len = next_word(&text, word)) > 0) {
        const uint64_t value = hash_u64((qr_str){word, len}) ^ hash->seed;
        ret_vector[(value >> 1) % (uint64_t)dimension] += value & 1 ? 1.0F : -1.0F;
    }
    normalise(ret_vector, dimension);
}

static bool has(qr_str text, const char *order)
{
    return text.len > 0 && memmem(text.ptr, text.len, order, strlen(order)) != NULL;
}

static qr_rc embed(struct qr_provider *provider, const qr_str *texts, size_t count, struct qr_embedding *ret,
                   qr_err *err)
{
    const struct hash_provider *hash = QR_CONTAINER_OF(provider, struct hash_provider, provider);
    atomic_fetch_add(&provider->call_count, 1);
    QR_FAILPOINT("embed.call", err);
    for (size_t i = 0; i < count; i++) {
        if (has(texts[i], QR_HASH_PROVIDER_DOWN)) {
            return qr_fail(err, QR_CODE_EMBEDDING_FAILED, "the provider \"hash\" was told to fail by a text");
        }
    }
    for (size_t i = 0; i < count; i++) {
        ret[i].has_failed = has(texts[i], QR_HASH_UNEMBEDDABLE);
        embed_text(hash, texts[i], ret[i].vector);
    }
    return QR_OK;
}

static void release(struct qr_provider *provider)
{
    qr_free(QR_CONTAINER_OF(provider, struct hash_provider, provider));
}

qr_rc qr_provider_hash_create(struct qr_provider **ret_provider, const char *model, int dimensions, qr_err *err)
{
    if (dimensions < 0 || dimensions > DIMENSIONS_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the provider \"hash\" has 1 to %d dimensions", (int)DIMENSIONS_MAX);
    }
    struct hash_provider *hash = qr_alloc_zero(sizeof *hash);
    if (!hash) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an embedding provider");
    }
    hash->seed = hash_u64(qr_str_of(model));
    hash->provider.dimension = dimensions ? dimensions : DIMENSIONS_DEFAULT;
    hash->provider.batch_inputs_max = BATCH_INPUTS_MAX;
    hash->provider.fingerprint = hash->fingerprint;
    hash->provider.embed = embed;
    hash->provider.free = release;
    snprintf(hash->fingerprint, sizeof hash->fingerprint, "hash:%016llx:%d", (unsigned long long)hash->seed,
             hash->provider.dimension);
    *ret_provider = &hash->provider;
    return QR_OK;
}
