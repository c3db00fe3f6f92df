/* A server of models for tests and benchmarks: speaks what people's servers speak, on a port of the loopback, and misbehaves on
 * demand.
 *
 *     POST /v1/embeddings, /embeddings, /api/embed…   OpenAI: float and base64, `dimensions`, `usage`
 *     POST /rerank, /v1/rerank, /v2/rerank            Cohere and Jina (`documents`, relevance_score), TEI (`texts`, score)
 *     POST /v1/chat/completions                       OpenAI, with pictures
 *     POST /v1/convert/file/async, GET /v1/status/poll/ID, GET /v1/result/ID     docling-serve
 *
 * Vectors are of the words of a text, hashed: texts with common words are near each other, the same text has the same vector
 * in every process. */
#pragma once

#include "base/err.h"

/* What it does to a request instead of answering it well. */
enum qr_model_fault {
    QR_FAULT_NONE,
    QR_FAULT_429,             /* without Retry-After */
    QR_FAULT_429_RETRY_AFTER, /* `number` seconds */
    QR_FAULT_429_HEADERS,     /* x-ratelimit: nothing left for `number` milliseconds */
    QR_FAULT_QUOTA,           /* 429, insufficient_quota */
    QR_FAULT_401,             /* and repeats the key that it was given */
    QR_FAULT_403,
    QR_FAULT_404,
    QR_FAULT_400,           /* flat {"message"} */
    QR_FAULT_500,           /* {"error": "…"} */
    QR_FAULT_500_TOO_LARGE, /* llama.cpp */
    QR_FAULT_413,
    QR_FAULT_422, /* {"detail": […]} */
    QR_FAULT_502_HTML,
    QR_FAULT_503_LOADING,     /* llama.cpp */
    QR_FAULT_503_RETRY_AFTER, /* `number` seconds */
    QR_FAULT_SLOW,            /* good, after `number` milliseconds */
    QR_FAULT_HANG,            /* no answer until the client goes away */
    QR_FAULT_TRUNCATED,       /* closes in the middle of the body */
    QR_FAULT_EOF,             /* closes without an answer */
    QR_FAULT_RESET,           /* resets the connection */
    QR_FAULT_IDLE_RESET,      /* good, and resets the kept connection before the next request */
    QR_FAULT_BAD_JSON,
    QR_FAULT_HUGE,            /* `number` bytes of answer */
    QR_FAULT_REDIRECT,        /* 307 to another host */
    QR_FAULT_WRONG_COUNT,     /* one vector less */
    QR_FAULT_SAME_INDEX,      /* every `index` is 0 */
    QR_FAULT_WRONG_DIMENSION, /* one number less in the last vector */
    QR_FAULT_NAN,             /* a word that is no number, and in base64 a NaN */
    QR_FAULT_ZERO,            /* the first vector is all zero */
    QR_FAULT_UNNORMALISED,    /* vectors are seven times as long: good for who normalises */
    QR_FAULT_TASK_FAILED,     /* docling: the conversion that this request begins fails */
    QR_FAULT_TASK_LOST,       /* docling: it is not known later */
};

struct qr_model_step { /* requests are counted from 1; the first step that fits counts */
    int64_t from, to;  /* `to` 0 = without end */
    enum qr_model_fault fault;
    int64_t number;
    const char *path; /* only requests with this in their path count here; NULL = all. Steps count all requests alike */
};

/* How it says that a request is too large. */
enum qr_model_dialect { QR_DIALECT_OPENAI, QR_DIALECT_OLLAMA, QR_DIALECT_LLAMACPP, QR_DIALECT_TEI, QR_DIALECT_VLLM };

struct qr_model_options { /* 0 and NULL: as it says */
    int port;             /* any */
    int dimension;        /* 64 */
    const char *key;      /* none is asked for; else Bearer or X-Api-Key */
    bool shuffles;        /* `data` in another order than the inputs, `index` right */
    enum qr_model_dialect dialect;
    int64_t inputs_max;       /* a request; no limit, as below */
    int64_t input_tokens_max; /* of one input; a token is 4 bytes */
    int64_t request_tokens_max;
    int64_t requests_a_minute; /* of any 60 s: beyond it 429 */
    int64_t tokens_a_minute;
    int64_t inputs_a_second; /* how fast it is */
    int64_t in_flight_max;   /* beyond it 429 */
    bool tells_limits;       /* by x-ratelimit-* headers */
    int task_polls;          /* docling: so many times it is not ready yet */
    const struct qr_model_step *steps;
    size_t step_count;
};

struct qr_model_stats {
    int64_t requests;       /* all that came in whole */
    int64_t answered;       /* 200 */
    int64_t limited;        /* 429 that were not asked for by a step */
    int64_t inputs, tokens; /* of answered embeddings: what is paid for */
    int64_t in_flight_max;
    int64_t connections;
};

struct qr_model_server;

/* Ends the program where it fails. Options and steps are copied. */
struct qr_model_server *qr_model_server_start(const struct qr_model_options *options);
void qr_model_server_stop(struct qr_model_server *server);
/* "http://127.0.0.1:PORT" and the path; static memory, for the next 7 calls. "https://…" of this port is a TLS error. */
const char *qr_model_server_url(const struct qr_model_server *server, const char *path);
int qr_model_server_port(const struct qr_model_server *server);
/* Counts begin anew with requests from now on. */
void qr_model_server_set_steps(struct qr_model_server *server, const struct qr_model_step *steps, size_t count);
void qr_model_server_stats(struct qr_model_server *server, struct qr_model_stats *ret_stats);
/* The last request as it came in, header and body; "" = none. The caller's (qr_free). */
char *qr_model_server_last_request(struct qr_model_server *server);
