/* The settings of a base: JSON with defaults. Unknown keys are refused. An absent key, an empty object and an empty text
 * mean the defaults. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

enum { QR_TOP_K_MAX = 100 };

enum qr_recovery { QR_RECOVERY_RESUME, QR_RECOVERY_ABANDON };

struct qr_settings {
    struct {
        const char *provider; /* "none", "hash" */
        const char *model;    /* "" = the provider's default */
        int dimensions;       /* 0 = the provider's */
    } embedding;
    struct {
        const char *strategy; /* "structured", "separator" */
        int64_t size_tokens, overlap_tokens;
        const char *separator;
    } chunking;
    struct {
        const char *mode; /* "auto", "text", "vector", "hybrid" */
        int64_t top_k;
        double threshold;   /* of cosines; hits of the vectors below it are none. 0 = none */
        const char *fusion; /* "weighted", "rrf" */
        double text_weight, vector_weight;
    } retrieval;
    struct {
        const char *kind;        /* "none", "command" */
        const char *const *argv; /* of `command`; a NULL is behind the last */
        size_t argc;
        const char *const *extensions; /* "pdf", …, small letters without the dot: which files go to it */
        size_t extension_count;
    } file_processor;
    struct {
        const char *analysis; /* "off", "test" */
    } assets;
    enum qr_recovery recovery;
    struct {
        int64_t file_bytes_max, items_max, depth_max;
    } limits;
};

/* Reads them; everything pointed to lives in the arena. `unknown_field` and `invalid_value` name the setting. */
qr_rc qr_settings_parse(const json_t *object, struct qr_arena *arena, struct qr_settings *ret_settings, qr_err *err);
qr_rc qr_settings_parse_text(const char *text, struct qr_arena *arena, struct qr_settings *ret_settings, qr_err *err);
/* Whether files of that name go to the base's file processor. */
bool qr_settings_has_processor(const struct qr_settings *settings, qr_str name);
/* What changes the vectors: two settings with the same fingerprint share them. */
bool qr_settings_same_vectors(const struct qr_settings *a, const struct qr_settings *b);
