/* What turns texts into vectors: one call to a model, wherever it runs. Who wants vectors asks a batcher (embed/batcher.h),
 * which decides what goes into a call; a provider only makes it. Shared by threads. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/settings.h"

#include <stdatomic.h>

struct qr_endpoints;

struct qr_embed_limits { /* 0 = none */
    int inputs_max;      /* of one call, as the next two */
    int64_t tokens_max, bytes_max;
    int64_t input_tokens_max; /* of one text */
};

struct qr_embed_request {
    const qr_str *texts; /* valid UTF-8 */
    size_t count;
    int64_t tokens;               /* about so many in all */
    bool is_query;                /* else texts of documents */
    int64_t wait_ms_max;          /* for the permission to call */
    bool (*is_cancelled)(void *); /* may be NULL */
    void *cancel_arg;
};

/* A call that could be made next. */
struct qr_embed_next {
    int64_t tokens; /* about so many */
    bool is_query;
    bool is_full; /* it gains nothing by waiting */
};

struct qr_embed_answer {
    float
        *vectors; /* of length 1, `dimension` floats each, in the order of the texts; qr_alloc, the caller's to free */
    int dimension;
    bool *is_bad;        /* the caller's, for each text: it got no vector that can be used */
    int64_t token_count; /* as the model counted; 0 = it did not say */
};

struct qr_provider {
    const char *fingerprint; /* of model/settings.h */
    int dimensions;          /* that the settings ask for; 0 = what the first answer has */
    struct qr_embed_limits limits;
    int call_threads;  /* so many calls at a time, in threads of the batcher's; 0 = in those that wait for it */
    int64_t linger_ms; /* so long a call waits to be filled */
    _Atomic int64_t call_count;  /* calls of embed so far, failed ones too (I8) */
    _Atomic int64_t token_count; /* as the model counted, so far; 0 where it does not */
    void *arg;
    /* One call, which may be paid for; the same texts are not asked for again behind the caller's back. Failures with a meaning
     * to the batcher: `payload_too_large` (less at once may do), `bad_request` (it will never do, perhaps for one of the texts),
     * `rate_limited` (later; nothing was paid), and any other: for all of them. */
    qr_rc (*embed)(struct qr_provider *provider, const struct qr_embed_request *request,
                   struct qr_embed_answer *ret_answer, qr_err *err);
    /* How long until this call may be made; NULL = at any time. Asked often: it changes nothing. A call that is made has to wait
     * a moment yet where others are before it: embed waits for that. */
    int64_t (*wait_ms)(struct qr_provider *provider, const struct qr_embed_next *next);
    /* The same for who puts its work off: each is told its own time. NULL = as wait_ms says. */
    int64_t (*put_off_ms)(struct qr_provider *provider);
    void (*free)(struct qr_provider *provider); /* NULL = nothing to do */
};

/* What the provider `hash` takes as orders, for tests: a text with the first never gets a vector; a call with the second in
 * one of its texts fails as a whole, with `embedding_failed`. */
#define QR_HASH_UNEMBEDDABLE  "QUIRE-UNEMBEDDABLE"
#define QR_HASH_PROVIDER_DOWN "QUIRE-PROVIDER-DOWN"

/* By the settings of a base: NULL for `none`. `hash` counts words: it is deterministic, needs no network, and texts with
 * common words are near each other; for tests, it is not semantic search. `endpoints` may be NULL for those two.
 * `invalid_value` for a provider that this build does not have. */
qr_rc qr_provider_create(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                         struct qr_endpoints *endpoints, qr_err *err);
void qr_provider_free(struct qr_provider *provider);

/* For those who write an answer: makes room for all vectors. */
qr_rc qr_embed_answer_begin(struct qr_embed_answer *answer, size_t count, int dimension, qr_err *err);
/* Gives the vector the length 1; false where that cannot be done: it is all zero, or not of numbers. */
bool qr_vector_normalise(float *vector, int dimension);
