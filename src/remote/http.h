/* One request to an endpoint, and its answer. Blocks; ends within a second after is_cancelled says so. Proxies and
 * certificates by libcurl's rules (environment). Connections are kept and used again. */
#pragma once

#include "remote/endpoint.h"

struct qr_remote_part { /* of multipart/form-data */
    const char *name;
    const char *file_name; /* NULL = a plain field */
    const char *path;      /* its bytes are in this file; NULL = in `bytes` */
    const char *mime;
    qr_str bytes;
};

struct qr_remote_request {
    const char *method;                 /* "GET", "POST", "DELETE" */
    const char *path;                   /* behind the endpoint's url: "/embeddings" */
    qr_str json;                        /* the body, application/json; empty = none */
    const struct qr_remote_part *parts; /* or this */
    size_t part_count;
    int64_t tokens; /* what it counts for against the limit a minute; 0 = nothing */
    enum qr_priority priority;
    int64_t wait_ms_max;             /* for a permit; beyond it `rate_limited` */
    size_t answer_bytes_max;         /* 0 = 64 MB */
    bool (*is_cancelled)(void *arg); /* may be NULL */
    void *cancel_arg;
};

/* What an answer that is not 2xx means, whatever shape the server gave it. */
enum qr_refusal {
    QR_REFUSAL_NONE,      /* 2xx */
    QR_REFUSAL_TOO_LARGE, /* less at once may do: 413, or any status that says so in words */
    QR_REFUSAL_LIMITED,   /* 429, 503, 529: later */
    QR_REFUSAL_ENDPOINT,  /* 401, 403, quota: the circuit is open now */
    QR_REFUSAL_REQUEST,   /* other 4xx: this request will never do */
    QR_REFUSAL_SERVER,    /* other 5xx */
};

struct qr_remote_answer {
    int status;
    struct qr_buf body;
    enum qr_refusal refusal;
    qr_err reason;          /* of a refusal: the server's own words, cleaned and cut */
    int64_t retry_after_ms; /* 0 = it did not say */
};
#define QR_REMOTE_ANSWER(name) QR_CLEANUP(qr_remote_answer_done) struct qr_remote_answer name = {0}
void qr_remote_answer_done(struct qr_remote_answer *answer);

/* QR_OK: there is an answer, perhaps a refusal. Otherwise `rate_limited`, `endpoint_refused`, `cancelled`, `timeout`, or
 * `unavailable` (no connection, TLS, cut off, too long); and what the file of a part that cannot be read gives. */
qr_rc qr_remote_send(struct qr_endpoint *endpoint, const struct qr_remote_request *request,
                     struct qr_remote_answer *ret_answer, qr_err *err);
