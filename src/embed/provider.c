/* Owns the table of embedding providers, and what they share. */
#include "embed/provider.h"

#include "embed/hash.h"
#include "embed/openai.h"

#include <math.h>

static const struct {
    const char *kind;
    qr_rc (*create)(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                    struct qr_endpoints *endpoints, qr_err *err);
} providers[] = {
    {"hash", qr_provider_hash_create},
    {"openai", qr_provider_openai_create},
};

qr_rc qr_provider_create(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                         struct qr_endpoints *endpoints, qr_err *err)
{
    if (strcmp(settings->provider, "none") == 0) {
        *ret_provider = NULL;
        return QR_OK;
    }
    for (size_t i = 0; i < QR_COUNT(providers); i++) {
        if (strcmp(settings->provider, providers[i].kind) == 0) {
            return providers[i].create(ret_provider, settings, endpoints, err);
        }
    }
    return qr_fail(err, QR_CODE_INVALID_VALUE, "this build has no embedding provider \"%s\"", settings->provider);
}

void qr_provider_free(struct qr_provider *provider)
{
    if (provider && provider->free) {
        provider->free(provider);
    }
}

qr_rc qr_embed_answer_begin(struct qr_embed_answer *answer, size_t count, int dimension, qr_err *err)
{
    answer->vectors = qr_alloc(QR_MAX(count, (size_t)1) * (size_t)dimension * sizeof(float));
    answer->dimension = dimension;
    return answer->vectors ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for vectors");
}

bool qr_vector_normalise(float *vector, int dimension)
{
    double square = 0;
    for (int i = 0; i < dimension; i++) {
        square += (double)vector[i] * (double)vector[i];
    }
    if (!isfinite(square) || !(square > 0)) { /* one that is not finite makes the sum so */
        return false;
    }
    const double factor = 1 / sqrt(square);
    for (int i = 0; i < dimension; i++) {
        vector[i] = (float)((double)vector[i] * factor);
    }
    return true;
}
