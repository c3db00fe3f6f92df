/* What turns texts into vectors. A provider is shared by threads. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdatomic.h>

struct qr_embedding {
    float *vector;   /* the caller's, `dimension` floats; normalised on success */
    bool has_failed; /* this input can never be embedded; the others are fine */
};

struct qr_provider {
    const char *fingerprint; /* kind, model, dimension …: vectors of different ones never mix */
    int dimension;
    int batch_inputs_max;
    _Atomic int64_t call_count; /* calls of embed so far, failed ones too (I8) */
    void *arg;
    /* One call, which may be paid for. On failure no vector is to be used; the code's policy says whether to try again. */
    qr_rc (*embed)(struct qr_provider *provider, const qr_str *texts, size_t count, struct qr_embedding *ret,
                   qr_err *err);
    void (*free)(struct qr_provider *provider);
};

/* What the provider `hash` takes as orders, for tests: a text with the first never gets a vector; a call with the second in
 * one of its texts fails as a whole, with `embedding_failed`. */
#define QR_HASH_UNEMBEDDABLE  "QUIRE-UNEMBEDDABLE"
#define QR_HASH_PROVIDER_DOWN "QUIRE-PROVIDER-DOWN"

/* By the settings of a base: NULL for `none`. `hash` counts words: it is deterministic, needs no network, and texts with
 * common words are near each other; for tests, it is not semantic search. `invalid_value` for a provider that this build
 * does not have. */
qr_rc qr_provider_create(struct qr_provider **ret_provider, const char *kind, const char *model, int dimensions,
                         qr_err *err);
void qr_provider_free(struct qr_provider *provider);
