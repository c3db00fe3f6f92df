/* The provider `openai`. Private to src/embed/. */
#pragma once

#include "embed/provider.h"

qr_rc qr_provider_openai_create(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                                struct qr_endpoints *endpoints, qr_err *err);
