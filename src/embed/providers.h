/* The embedding models that a process works with: one batcher for each set of settings, shared by all handlers and searches
 * that name it, however many bases they are of. */
#pragma once

#include "embed/batcher.h"

struct qr_providers;

struct qr_providers_options {
    const struct qr_clock *clock;
    struct qr_endpoints *endpoints; /* NULL = only those that need no network */
    struct qr_batcher_hooks hooks;
    /* Tests: this one for all settings but `none`; the caller's. */
    struct qr_provider *instead;
    /* Tests: by the settings; the caller's. */
    struct qr_provider *(*instead_of)(const struct qr_embedding_settings *settings, void *arg);
    void *instead_arg;
};

qr_rc qr_providers_open(struct qr_providers **ret_providers, const struct qr_providers_options *options, qr_err *err);
/* Every batcher must have been given back. */
void qr_providers_close(struct qr_providers *providers);

/* NULL for `none`. To be given back. */
qr_rc qr_providers_get(struct qr_providers *providers, const struct qr_embedding_settings *settings,
                       struct qr_batcher **ret_batcher, qr_err *err);
void qr_providers_put(struct qr_providers *providers, struct qr_batcher *batcher);
