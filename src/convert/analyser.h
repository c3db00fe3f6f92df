/* What reads text from pictures and tables (OCR, vision). */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct qr_analyser {
    const char *name;
    void *arg;
    /* The text found, in the arena; empty = none. */
    qr_rc (*analyse)(struct qr_analyser *analyser, qr_str bytes, const char *mime, struct qr_arena *arena,
                     qr_str *ret_text, qr_err *err);
    void (*free)(struct qr_analyser *analyser);
};

/* Answers with what the bytes say after the word TEXT:, for tests. */
qr_rc qr_analyser_test(struct qr_analyser **ret_analyser, qr_err *err);
void qr_analyser_free(struct qr_analyser *analyser);
