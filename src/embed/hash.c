/* The provider `hash`: each word of a text adds 1 or -1 to one of the dimensions, both chosen by the word's hash; then the
 * vector gets the length 1. Stateless but for the count of calls, so any number of threads may use it. */
#include "embed/hash.h"

#include "base/failpoint.h"
#include "base/hash.h"
#include "base/mem.h"

enum { DIMENSIONS_DEFAULT = 64, BATCH_INPUTS_MAX = 32, WORD_BYTES_MAX = 64 };

struct hash_provider {
    struct qr_provider provider;
    uint64_t seed; /* of the model's name: another model gives other vectors */
    int dimension;
    char fingerprint[QR_FINGERPRINT_SIZE];
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

static void embed_text(const struct hash_provider *hash, qr_str text, float *ret_vector)
{
    const int dimension = hash->dimension;
    char word[WORD_BYTES_MAX];
    size_t len;
    memset(ret_vector, 0, (size_t)dimension * sizeof ret_vector[0]);
    while ((len = next_word(&text, word)) > 0) {
        const uint64_t value = hash_u64((qr_str){word, len}) ^ hash->seed;
        ret_vector[(value >> 1) % (uint64_t)dimension] += value & 1 ? 1.0F : -1.0F;
    }
    if (!qr_vector_normalise(ret_vector, dimension)) {
        ret_vector[0] = 1; /* no words, or they cancel each other out: still a vector of length 1 */
    }
}

static bool has(qr_str text, const char *order)
{
    return text.len > 0 && memmem(text.ptr, text.len, order, strlen(order)) != NULL;
}

static qr_rc embed(struct qr_provider *provider, const struct qr_embed_request *request,
                   struct qr_embed_answer *ret_answer, qr_err *err)
{
    const struct hash_provider *hash = QR_CONTAINER_OF(provider, struct hash_provider, provider);
    atomic_fetch_add(&provider->call_count, 1);
    QR_FAILPOINT("embed.call", err);
    for (size_t i = 0; i < request->count; i++) {
        if (has(request->texts[i], QR_HASH_PROVIDER_DOWN)) {
            return qr_fail(err, QR_CODE_EMBEDDING_FAILED, "the provider \"hash\" was told to fail by a text");
        }
    }
    QR_TRY(qr_embed_answer_begin(ret_answer, request->count, hash->dimension, err));
    for (size_t i = 0; i < request->count; i++) {
        ret_answer->is_bad[i] = has(request->texts[i], QR_HASH_UNEMBEDDABLE);
        embed_text(hash, request->texts[i], ret_answer->vectors + i * (size_t)hash->dimension);
    }
    return QR_OK;
}

static void release(struct qr_provider *provider)
{
    qr_free(QR_CONTAINER_OF(provider, struct hash_provider, provider));
}

qr_rc qr_provider_hash_create(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                              struct qr_endpoints *endpoints QR_UNUSED, qr_err *err)
{
    if (settings->dimensions < 0 || settings->dimensions > QR_DIMENSIONS_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the provider \"hash\" has 1 to %d dimensions",
                       (int)QR_DIMENSIONS_MAX);
    }
    struct hash_provider *hash = qr_alloc_zero(sizeof *hash);
    if (!hash) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an embedding provider");
    }
    hash->seed = hash_u64(qr_str_of(settings->model));
    hash->dimension = settings->dimensions ? settings->dimensions : DIMENSIONS_DEFAULT;
    hash->provider.dimensions = settings->dimensions;
    hash->provider.limits.inputs_max = BATCH_INPUTS_MAX;
    hash->provider.fingerprint = hash->fingerprint;
    hash->provider.embed = embed;
    hash->provider.free = release;
    qr_embedding_fingerprint(settings, hash->fingerprint);
    *ret_provider = &hash->provider;
    return QR_OK;
}
