/* Owns the table of embedding providers. */
#include "embed/provider.h"

#include "embed/hash.h"

static const struct {
    const char *kind;
    qr_rc (*create)(struct qr_provider **ret_provider, const char *model, int dimensions, qr_err *err);
} providers[] = {
    {"hash", qr_provider_hash_create},
};

qr_rc qr_provider_create(struct qr_provider **ret_provider, const char *kind, const char *model, int dimensions,
                         qr_err *err)
{
    if (strcmp(kind, "none") == 0) {
        *ret_provider = NULL;
        return QR_OK;
    }
    for (size_t i = 0; i < QR_COUNT(providers); i++) {
        if (strcmp(kind, providers[i].kind) == 0) {
            return providers[i].create(ret_provider, model, dimensions, err);
        }
    }
    return qr_fail(err, QR_CODE_INVALID_VALUE, "this build has no embedding provider \"%s\"", kind);
}

void qr_provider_free(struct qr_provider *provider)
{
    if (provider) {
        provider->free(provider);
    }
}
