/* Pure. */
#include "model/model_key.h"

#include "base/hash.h"

int64_t qr_model_key(const struct qr_embedding_settings *embedding)
{
    char fingerprint[QR_FINGERPRINT_SIZE];
    qr_embedding_fingerprint(embedding, fingerprint);
    return qr_model_key_of(fingerprint);
}

int64_t qr_model_key_of(const char *fingerprint)
{
    unsigned char hash[QR_HASH_BYTES];
    uint64_t key = 0;
    if (!fingerprint[0]) {
        return 0;
    }
    qr_hash_128(qr_str_of(fingerprint), hash);
    for (int i = 0; i < 8; i++) {
        key = key << 8 | hash[i];
    }
    return key ? (int64_t)key : 1; /* 0 is taken */
}
