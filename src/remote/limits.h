/* How much an endpoint may be asked for now (N1): requests and tokens a minute, what its headers say is left, the time that it
 * asked to be left alone, and the number in flight. Pure: the caller has the time and the lock. */
#pragma once

#include "base/rand.h"
#include "remote/endpoint.h"
#include "remote/headers.h"
#include "remote/rate.h"

enum { QR_IN_FLIGHT_DEFAULT = 8, QR_IN_FLIGHT_MAX = 256 };

struct qr_left { /* what its headers said, and when */
    bool is_known;
    int64_t remaining, heard_ms, reset_at_ms;
};

struct qr_limits {
    struct qr_endpoint_limits set;
    struct qr_rate requests, tokens;
    struct qr_left requests_left, tokens_left;
    int64_t not_before_ms; /* left alone until then */
    int64_t pause_ms;      /* of the last refusal that did not say how long */
    int64_t begun_ms;      /* the last one */
    int in_flight, in_flight_limit, good_count;
    int64_t answer_ms;               /* so long good answers took lately; 0 = there was none */
    uint64_t begun_count, halved_at; /* the last one that was begun before the limit was halved */
};

void qr_limits_set(struct qr_limits *limits, const struct qr_endpoint_limits *set);
/* How long until a request may be begun, 0 = now, whatever is in flight. `ret_why` tells what for, in a few words. */
int64_t qr_limits_wait_ms(struct qr_limits *limits, enum qr_priority priority, int64_t tokens, int64_t now_ms,
                          const char **ret_why);
static inline bool qr_limits_has_place(const struct qr_limits *limits)
{
    return limits->in_flight < limits->in_flight_limit;
}
/* Counts it; its number. */
uint64_t qr_limits_begin(struct qr_limits *limits, int64_t tokens, int64_t now_ms);

struct qr_limits_news { /* what came of a request */
    uint64_t number;
    bool is_good;    /* 2xx */
    bool is_limited; /* 429, 503, 529 */
    bool is_slow;    /* it took a good part of the time it has, or all of it */
    int64_t took_ms;
    const struct qr_remote_headers *headers; /* NULL = there was no answer */
};
void qr_limits_end(struct qr_limits *limits, const struct qr_limits_news *news, struct qr_rand *rand, int64_t now_ms);
