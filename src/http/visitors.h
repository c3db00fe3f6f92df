/* How many connections and requests come from each address. Pure but for memory; the caller holds a lock over it and tells
 * the time. */
#pragma once

#include "base/map.h"

struct qr_visitors {
    struct qr_map addresses;
    int connections_max;    /* from one address; 0 = any number */
    int64_t requests_per_s; /* from one address, after a burst of two seconds' worth; 0 = any number */
};

void qr_visitors_init(struct qr_visitors *visitors, uint64_t seed, int connections_max, int64_t requests_per_s);
void qr_visitors_done(struct qr_visitors *visitors);

/* Whether one more connection from there may be taken. */
bool qr_visitors_may_enter(const struct qr_visitors *visitors, const char *address);
/* False = out of memory: it is not counted, and must not leave. */
bool qr_visitors_enter(struct qr_visitors *visitors, const char *address, int64_t now_us) QR_MUST_USE;
void qr_visitors_leave(struct qr_visitors *visitors, const char *address, int64_t now_us);

/* A request from an address that has entered: 0, or after how many seconds to come again. */
int qr_visitors_ask(struct qr_visitors *visitors, const char *address, int64_t now_us);
