/* What endpoint.c, permit.c and http.c share. */
#pragma once

#include "base/hash.h"
#include "base/map.h"
#include "base/sync.h"
#include "remote/circuit.h"
#include "remote/endpoint.h"
#include "remote/key.h"
#include "remote/limits.h"

struct qr_connection; /* http.c */
struct qr_waiter;     /* permit.c */

struct qr_unanswered {
    int64_t since_ms; /* wall clock */
    struct qr_unanswered *next;
};

struct qr_endpoints {
    const struct qr_clock *clock;
    struct qr_rand *rand;
    qr_circuit_fn *on_circuit;
    void *arg;
    struct qr_mutex lock; /* of what is below, and of the endpoints' ref_count and used_ms */
    struct qr_map by_id;
};

struct qr_endpoint {
    struct qr_endpoints *all;
    unsigned char id[QR_HASH_BYTES];
    char *url, *query; /* `query` begins with '?', "" = none */
    char *key_env, *key_file, *key_header;
    int ref_count;
    int64_t used_ms;

    struct qr_mutex lock; /* of everything below */
    int64_t timeout_ms;
    struct qr_limits limits;
    struct qr_circuit circuit;
    struct qr_waiter *first[QR_PRIORITY_END]; /* the lines, first come, first */
    int64_t promised_ms;                      /* the last time that somebody was told to come back at */
    bool has_answered;                        /* since this process began */
    uint64_t refused_count, limited_count;
    struct qr_unanswered *unanswered; /* requests that were sent and have no answer yet */
    struct qr_connection *idle;       /* connections that may be used again */
    int idle_count;
};

/* ---- permits (permit.c) ---- */

struct qr_permit_ask {
    enum qr_priority priority;
    int64_t tokens, wait_ms_max;
    uint64_t key_mark;
    bool (*is_cancelled)(void *arg);
    void *cancel_arg;
};

struct qr_permit {
    uint64_t number;
    uint64_t key_mark;
};

/* Waits for it. `rate_limited`, `endpoint_refused`, `cancelled`. */
qr_rc qr_permit_take(struct qr_endpoint *endpoint, const struct qr_permit_ask *ask, struct qr_permit *ret_permit,
                     qr_err *err);

/* With the lock held. */
int qr_permit_count_waiting(const struct qr_endpoint *endpoint);

struct qr_permit_outcome {
    enum qr_verdict verdict;
    bool is_good, is_limited, is_slow;
    int64_t took_ms;
    const struct qr_remote_headers *headers; /* NULL = no answer */
    const qr_err *refusal;
};
void qr_permit_give(struct qr_endpoint *endpoint, const struct qr_permit *permit,
                    const struct qr_permit_outcome *outcome);
/* Opens the circuit without a request: its key is missing. Returns what the caller returns. */
qr_rc qr_permit_refuse(struct qr_endpoint *endpoint, const qr_err *refusal, qr_err *err);

/* ---- http.c ---- */

void qr_connections_free(struct qr_connection *first);
