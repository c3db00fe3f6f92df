/* A model as the index knows it: vectors are kept by it, so that those of several models can be beside each other. */
#pragma once

#include "model/settings.h"

/* 64 bits of the fingerprint; 0 = no model. */
int64_t qr_model_key(const struct qr_embedding_settings *embedding);
/* Of a fingerprint; 0 for "". */
int64_t qr_model_key_of(const char *fingerprint);
