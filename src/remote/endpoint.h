/* A server elsewhere that work depends on: of embeddings, reranking, vision, conversion. One endpoint is shared by all bases
 * and threads of the process that name the same address and key; what it may be asked for is decided here and nowhere else.
 *
 * N1  A request is sent only with a permit. Permits keep to the requests and tokens a minute that are configured or that the
 *     server's headers tell, to the time that it asked to be left alone (Retry-After), and to the number in flight, which
 *     grows by one after as many good answers as it is large and halves at 429 and 503.
 * N2  Those of a higher priority get theirs first: a person waits for a query, nobody for a document.
 * N3  No permit within the time that the caller can wait: `rate_limited`, and how long it will take. What cannot wait that
 *     long in memory is written down and comes back (the caller's job is put off, no attempt is counted).
 * N4  A refusal of the whole endpoint (401, 403, a quota used up) opens its circuit: `endpoint_refused` at once for
 *     everybody. When its time has come one request is let through; a good answer closes it.
 * N5  A key is read from the environment or a file when it is needed. It is in no structure that is stored, shown or logged,
 *     and no message holds it, whatever a server echoes. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/rand.h"

enum qr_priority { QR_PRIORITY_QUERY, QR_PRIORITY_DOCUMENT, QR_PRIORITY_END };

struct qr_endpoint_limits { /* 0 = not limited by us */
    int64_t requests_a_minute, tokens_a_minute;
    int in_flight_max; /* 0 = 8 */
};

struct qr_endpoint_options {
    const char *url;            /* of the service, without the path of an operation; without user and password */
    const char *api_key_env;    /* name of the variable; "" = none */
    const char *api_key_file;   /* "" = none; the variable goes first where it is set */
    const char *api_key_header; /* NULL or "" = Authorization: Bearer KEY; else NAME: KEY. The first one counts */
    struct qr_endpoint_limits limits;
    int64_t timeout_ms; /* of one request; 0 = 120 s */
};

/* How it stands, for people and metrics. */
struct qr_endpoint_state {
    unsigned char id[QR_HASH_BYTES]; /* of qr_endpoint_id */
    const char *url;
    bool is_open;        /* the circuit: nothing is sent */
    qr_err refusal;      /* why */
    int64_t since_ms;    /* wall clock */
    int64_t next_try_ms; /* wall clock */
    int in_flight, in_flight_limit;
    uint64_t request_count, refused_count, limited_count; /* sent; 401/403/quota; 429/503 */
};

struct qr_endpoint;
struct qr_endpoints; /* all of a process */

/* Told outside of all locks whenever a circuit opens, stays open after its try, or closes; and at the first good answer of a
 * process, since an earlier one may have left it open. */
typedef void qr_circuit_fn(void *arg, const struct qr_endpoint_state *state);

qr_rc qr_endpoints_open(struct qr_endpoints **ret_endpoints, const struct qr_clock *clock, struct qr_rand *rand,
                        qr_circuit_fn *on_circuit, void *arg, qr_err *err);
/* Every endpoint must have been given back. */
void qr_endpoints_close(struct qr_endpoints *endpoints);
/* The one of that url and key, made where there is none; limits given later replace those from before, but for those of 0
 * while somebody else holds it. `invalid_value` names what is wrong with the url. */
qr_rc qr_endpoint_get(struct qr_endpoints *endpoints, const struct qr_endpoint_options *options,
                      struct qr_endpoint **ret_endpoint, qr_err *err);
void qr_endpoint_put(struct qr_endpoint *endpoint);
/* `invalid_value` names what is wrong with the url. */
qr_rc qr_endpoint_check_url(const char *url, qr_err *err);
/* The same for the same url and the same names of keys, in every process. */
void qr_endpoint_id(const struct qr_endpoint_options *options, unsigned char ret_id[static QR_HASH_BYTES]);
/* Since when (wall clock) the oldest request of this process waits for its answer there; 0 = none does. */
int64_t qr_endpoint_awaited_since(struct qr_endpoints *endpoints, const struct qr_endpoint_options *options);
/* Of all that the process knows. */
struct qr_endpoints_totals {
    int known, open; /* endpoints; those whose circuit is open */
    uint64_t request_count, refused_count, limited_count;
};
void qr_endpoints_look(struct qr_endpoints *endpoints, struct qr_endpoints_totals *ret_totals);
/* Texts live as long as the endpoint. */
void qr_endpoint_look(struct qr_endpoint *endpoint, struct qr_endpoint_state *ret_state);
/* How long until a request of so many tokens may be sent, as it stands, whatever is under way; 0 = now. To look changes nothing. */
int64_t qr_endpoint_look_ms(struct qr_endpoint *endpoint, enum qr_priority priority, int64_t tokens);
/* Whether one more finds a place; or, where answers take no longer than `ahead_ms`, is no further back in line than behind as many
 * as are sent at a time: then it has its place when one of these is answered. */
bool qr_endpoint_has_place(struct qr_endpoint *endpoint, int64_t ahead_ms);
/* The same for a caller that was told `rate_limited` or `endpoint_refused` and puts its work off. Where there is a limit a minute each
 * caller is told another time, one behind the other, so that they do not all come back at once for the one that can be sent. */
int64_t qr_endpoint_wait_ms(struct qr_endpoint *endpoint, int64_t tokens);
