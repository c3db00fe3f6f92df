/* Owns the count of the last minute (rate.h, T1 and T2). */
#include "remote/rate.h"

#include <string.h>

enum {
    MINUTE_US = 60000000,
    BURST_US = MINUTE_US / 100, /* so much of a minute may be begun at once */
};

void qr_rate_set(struct qr_rate *rate, int64_t limit)
{
    rate->limit = limit; /* what was begun counts on, whatever the limit was then */
}

/* Forgets what is older than the window. */
static void move_on(struct qr_rate *rate, int64_t now_ms)
{
    const int64_t slot = now_ms / QR_RATE_SLOT_MS;
    if (slot - rate->slot >= QR_RATE_SLOTS) {
        memset(rate->slots, 0, sizeof rate->slots);
        rate->sum = 0;
    }
    for (int64_t at = QR_MAX(rate->slot + 1, slot - QR_RATE_SLOTS + 1); at <= slot; at++) {
        rate->sum -= rate->slots[at % QR_RATE_SLOTS];
        rate->slots[at % QR_RATE_SLOTS] = 0;
    }
    rate->slot = QR_MAX(rate->slot, slot);
}

/* T1: until so many of the oldest slots have left the window that the cost has room. */
static int64_t window_wait_ms(const struct qr_rate *rate, int64_t cost, int64_t now_ms)
{
    int64_t left = rate->sum;
    for (int64_t at = rate->slot - QR_RATE_SLOTS + 1; at <= rate->slot; at++) {
        if (left == 0 || left + cost <= rate->limit) {
            break;
        }
        const int64_t index = (at + QR_RATE_SLOTS) % QR_RATE_SLOTS;
        left -= rate->slots[index];
        if (left == 0 || left + cost <= rate->limit) {
            return QR_MAX((at + QR_RATE_SLOTS) * QR_RATE_SLOT_MS - now_ms, (int64_t)1);
        }
    }
    return 0;
}

int64_t qr_rate_wait_ms(struct qr_rate *rate, int64_t cost, bool is_paced, int64_t now_ms)
{
    move_on(rate, now_ms);
    if (rate->limit <= 0 || cost <= 0) {
        return 0;
    }
    const int64_t early_us = rate->paced_us - BURST_US - now_ms * 1000;
    const int64_t pace_ms = is_paced && early_us > 0 ? (early_us + 999) / 1000 : 0;
    return QR_MAX(pace_ms, window_wait_ms(rate, cost, now_ms));
}

void qr_rate_begin(struct qr_rate *rate, int64_t cost, int64_t now_ms)
{
    move_on(rate, now_ms);
    rate->slots[rate->slot % QR_RATE_SLOTS] += cost;
    rate->sum += cost;
    if (rate->limit > 0) {
        const double minutes = (double)QR_MIN(cost, rate->limit) / (double)rate->limit;
        rate->paced_us = QR_MAX(rate->paced_us, now_ms * 1000) + (int64_t)(minutes * MINUTE_US);
    }
}
