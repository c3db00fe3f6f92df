/* The settings of a base: JSON with defaults. Unknown keys are refused. An absent key, an empty object and an empty text
 * mean the defaults. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

enum { QR_TOP_K_MAX = 100 };

enum { QR_DIMENSIONS_MAX = 4096, QR_FINGERPRINT_SIZE = 48 };

enum qr_recovery { QR_RECOVERY_RESUME, QR_RECOVERY_ABANDON };

/* Which model makes the vectors, and where it is served. A key is never a setting: only where it is to be read from. */
struct qr_embedding_settings {
    const char *provider;                       /* "none", "hash", "openai" */
    const char *model;                          /* "" = the provider's default; `openai` has none */
    const char *url;                            /* of `openai`, without the path of an operation */
    const char *api_key_env;                    /* name of a variable of the environment; "" = none */
    const char *api_key_file;                   /* absolute path; "" = none */
    int dimensions;                             /* 0 = the model's, and the server is not asked for any */
    const char *document_prefix, *query_prefix; /* some models are told so what a text is; "" = nothing */
    const char *encoding;                       /* of the answer: "float", "base64"; "" = as the server likes */
    struct {
        int64_t inputs, request_tokens, request_bytes;
        int64_t input_tokens;                       /* 0 = not known: the server says so when it is too much */
        int64_t requests_a_minute, tokens_a_minute; /* 0 = what the server's answers say */
        int64_t in_flight;                          /* 0 = as many as go well */
    } limits;                                       /* of one request, of one text, of the endpoint */
};

/* A server elsewhere that is asked for something but embeddings. */
struct qr_service_settings {
    const char *url;                            /* without the path of an operation */
    const char *model;                          /* "" = the server's own */
    const char *api_key_env, *api_key_file;     /* as above */
    int64_t requests_a_minute, tokens_a_minute; /* 0 = what its answers say */
    int64_t in_flight;                          /* 0 = as many as go well */
};

enum { QR_RERANK_TOP_N_MAX = 200 };

struct qr_rerank_settings {
    const char *provider; /* "none", "cohere", "jina", "tei": how the server is spoken to */
    struct qr_service_settings service;
    int64_t top_n;                         /* so many of the best hits are put in a new order */
    int64_t document_bytes, request_bytes; /* of each at most so much is sent, of all together at most so much */
};

struct qr_vision_settings {
    struct qr_service_settings service;
    const char *prompt;    /* "" = ours */
    int64_t max_tokens;    /* of the answer; 0 = the server is not told */
    int64_t picture_bytes; /* larger ones are not sent */
};

struct qr_form_field {
    const char *name, *value;
};

struct qr_docling_settings {
    struct qr_service_settings service;
    const struct qr_form_field *options; /* sent with each file as they are */
    size_t option_count;
};

struct qr_settings {
    struct qr_embedding_settings embedding;
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
        struct qr_rerank_settings rerank;
    } retrieval;
    struct {
        const char *kind;        /* "none", "command", "docling" */
        const char *const *argv; /* of `command`; a NULL is behind the last */
        size_t argc;
        const char *const *extensions; /* "pdf", …, small letters without the dot: which files go to it */
        size_t extension_count;
        struct qr_docling_settings docling;
    } file_processor;
    struct {
        const char *analysis; /* "off", "test", "vision" */
        struct qr_vision_settings vision;
    } assets;
    enum qr_recovery recovery;
    struct {
        int64_t file_bytes_max, items_max, depth_max;
    } limits;
};

/* Reads them; everything pointed to lives in the arena. `unknown_field` and `invalid_value` name the setting. */
qr_rc qr_settings_parse(const json_t *object, struct qr_arena *arena, struct qr_settings *ret_settings, qr_err *err);
qr_rc qr_settings_parse_text(const char *text, struct qr_arena *arena, struct qr_settings *ret_settings, qr_err *err);
/* Whether both ask the same model for the same vectors at the same address with the same key, whatever their limits. */
bool qr_embedding_settings_equal(const struct qr_embedding_settings *a, const struct qr_embedding_settings *b);
/* Whether both name the same reranker, whatever their limits. */
bool qr_rerank_settings_equal(const struct qr_rerank_settings *a, const struct qr_rerank_settings *b);
/* Whether files of that name go to the base's file processor. */
bool qr_settings_has_processor(const struct qr_settings *settings, qr_str name);
/* Names the vectors of documents: "openai:" and a hash of kind, model, dimensions and the prefix of documents; "" for none.
 * Vectors of different fingerprints are never mixed. Not in it is what does not change a document's vector: the address and
 * the key (the same model is the same wherever it is served), limits, the encoding, and the prefix of queries, whose vectors
 * are not kept. So servers that serve different weights must give them different names. */
void qr_embedding_fingerprint(const struct qr_embedding_settings *settings,
                              char ret_fingerprint[static QR_FINGERPRINT_SIZE]);
