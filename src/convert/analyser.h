/* What reads text from pictures and tables (OCR, vision). */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "model/settings.h"

struct qr_endpoints;

struct qr_analyser {
    const char *name;
    void *arg;
    /* The text found, in the arena; empty = none. `rate_limited`, `endpoint_refused`: nothing is wrong with the picture. */
    qr_rc (*analyse)(struct qr_analyser *analyser, qr_str bytes, const char *mime, struct qr_arena *arena,
                     qr_str *ret_text, qr_err *err);
    /* After these two: how long until it is worth trying again; NULL = it does not know. */
    int64_t (*wait_ms)(struct qr_analyser *analyser);
    void (*free)(struct qr_analyser *analyser);
};

/* Answers with what the bytes say after the word TEXT:, for tests. */
qr_rc qr_analyser_test(struct qr_analyser **ret_analyser, qr_err *err);
/* A model elsewhere that looks at pictures: PNG, JPEG, GIF and WebP, others are `unsupported_type`, large ones `too_large`. The
 * settings must outlive it. `is_cancelled` may be NULL. */
qr_rc qr_analyser_vision(struct qr_analyser **ret_analyser, const struct qr_vision_settings *settings,
                         struct qr_endpoints *endpoints, bool (*is_cancelled)(void *arg), void *arg, qr_err *err);
void qr_analyser_free(struct qr_analyser *analyser);
