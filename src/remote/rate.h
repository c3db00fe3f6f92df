/* So much a minute: requests or tokens. Pure: the caller has the time and the lock.
 *
 * T1  In any 60 s at most `limit` is begun, by our clock; a second more is left for the way to the server and its clock. What
 *     is larger than the limit goes when nothing else did.
 * T2  What is paced (documents) is spread evenly over the minute, so that there is room at any time for what is not. */
#pragma once

#include "base/compiler.h"

enum {
    QR_RATE_SLOT_MS = 250,
    QR_RATE_WINDOW_MS = 61000,
    QR_RATE_SLOTS = QR_RATE_WINDOW_MS / QR_RATE_SLOT_MS + 1, /* one more, since the first counts from its beginning */
};

struct qr_rate {
    int64_t limit;                /* a minute; 0 = none */
    int64_t slots[QR_RATE_SLOTS]; /* what was begun in a quarter of a second */
    int64_t sum;                  /* of all slots */
    int64_t slot;                 /* the newest, by its number since the clock's beginning */
    int64_t paced_us;             /* when what was begun so far is used up, at an even pace */
};

void qr_rate_set(struct qr_rate *rate, int64_t limit);
/* How long until so much may begin, 0 = now. */
int64_t qr_rate_wait_ms(struct qr_rate *rate, int64_t cost, bool is_paced, int64_t now_ms);
void qr_rate_begin(struct qr_rate *rate, int64_t cost, int64_t now_ms);
