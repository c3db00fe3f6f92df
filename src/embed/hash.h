/* The provider `hash`. Private to src/embed/. */
#pragma once

#include "embed/provider.h"

/* dimensions 0 = 64. */
qr_rc qr_provider_hash_create(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                              struct qr_endpoints *endpoints, qr_err *err);
