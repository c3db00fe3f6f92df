/* Counters by address (http/visitors.h). An address that has left is remembered until its bucket is full again, so that
 * closing and coming back is no way around the limit; then nothing is known about it any more. */
#include "http/visitors.h"

#include "base/mem.h"

enum { BURST_S = 2, SWEEP_AT = 1024 };

struct visitor {
    int connections;
    int64_t requests_us; /* the bucket as time: full at BURST_S seconds, a request costs a second's share */
    int64_t seen_us;
};

void qr_visitors_init(struct qr_visitors *visitors, uint64_t seed, int connections_max, int64_t requests_per_s)
{
    *visitors = (struct qr_visitors){.connections_max = connections_max, .requests_per_s = requests_per_s};
    qr_map_init(&visitors->addresses, seed);
}

void qr_visitors_done(struct qr_visitors *visitors)
{
    size_t cursor = 0;
    qr_str address;
    void *visitor;
    while (qr_map_next(&visitors->addresses, &cursor, &address, &visitor)) {
        qr_free(visitor);
    }
    qr_map_done(&visitors->addresses);
}

static const int64_t burst_us = (int64_t)BURST_S * 1000000;

static void refill(struct visitor *visitor, int64_t now_us)
{
    visitor->requests_us = QR_MIN(visitor->requests_us + QR_MAX(now_us - visitor->seen_us, (int64_t)0), burst_us);
    visitor->seen_us = now_us;
}

/* One that says nothing; false where each still does. */
static bool forget_one(struct qr_visitors *visitors, int64_t now_us)
{
    size_t cursor = 0;
    qr_str address;
    void *value;
    while (qr_map_next(&visitors->addresses, &cursor, &address, &value)) {
        struct visitor *visitor = value;
        refill(visitor, now_us);
        if (visitor->connections == 0 && visitor->requests_us == burst_us) {
            qr_map_take(&visitors->addresses, address);
            qr_free(visitor);
            return true;
        }
    }
    return false;
}

bool qr_visitors_may_enter(const struct qr_visitors *visitors, const char *address)
{
    const struct visitor *visitor = qr_map_find(&visitors->addresses, qr_str_of(address));
    return !visitor || visitors->connections_max == 0 || visitor->connections < visitors->connections_max;
}

bool qr_visitors_enter(struct qr_visitors *visitors, const char *address, int64_t now_us)
{
    struct visitor *visitor = qr_map_find(&visitors->addresses, qr_str_of(address));
    if (!visitor) {
        while (visitors->addresses.count >= SWEEP_AT && forget_one(visitors, now_us)) {
        }
        visitor = qr_alloc_zero(sizeof *visitor);
        if (!visitor || !qr_map_put(&visitors->addresses, qr_str_of(address), visitor)) {
            qr_free(visitor);
            return false;
        }
        *visitor = (struct visitor){.requests_us = burst_us, .seen_us = now_us};
    }
    visitor->connections++;
    return true;
}

void qr_visitors_leave(struct qr_visitors *visitors, const char *address, int64_t now_us)
{
    struct visitor *visitor = qr_map_find(&visitors->addresses, qr_str_of(address));
    refill(visitor, now_us);
    visitor->connections--;
    if (visitor->connections == 0 && (visitor->requests_us == burst_us || visitors->requests_per_s == 0)) {
        qr_map_take(&visitors->addresses, qr_str_of(address));
        qr_free(visitor);
    }
}

int qr_visitors_ask(struct qr_visitors *visitors, const char *address, int64_t now_us)
{
    if (visitors->requests_per_s == 0) {
        return 0;
    }
    struct visitor *visitor = qr_map_find(&visitors->addresses, qr_str_of(address));
    const int64_t cost_us = 1000000 / visitors->requests_per_s;
    refill(visitor, now_us);
    if (visitor->requests_us < cost_us) {
        return 1;
    }
    visitor->requests_us -= cost_us;
    return 0;
}
