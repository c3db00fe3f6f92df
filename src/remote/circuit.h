/* Whether an endpoint is asked at all (N4). Pure: the caller has the time and the lock.
 *
 * C1  A refusal of the whole endpoint opens it. While it is open nothing is sent, but one try at a time when its time has
 *     come, or when the key is another one than the refused.
 * C2  Only the try is listened to: what else comes back was begun before. A good answer closes it; another refusal doubles
 *     the pause, 30 s to 10 min; what says nothing about the key and the quota leaves the pause as it is. */
#pragma once

#include "base/err.h"

enum { QR_CIRCUIT_PAUSE_MS_MIN = 30000, QR_CIRCUIT_PAUSE_MS_MAX = 600000, QR_CIRCUIT_TRY_WAIT_MS = 2000 };

enum qr_verdict {
    QR_VERDICT_UNUSED,   /* it was not sent */
    QR_VERDICT_ANSWERED, /* key and quota are good, whatever it said about this request */
    QR_VERDICT_UNKNOWN,  /* no answer, 429, 5xx */
    QR_VERDICT_REFUSED,
};

struct qr_circuit {
    bool is_open;
    qr_err refusal;
    int64_t since_wall_ms;
    int64_t next_try_ms, pause_ms; /* of the monotonic clock */
    uint64_t try_number;           /* of the request that tries; 0 = none */
    uint64_t key_mark;             /* of the key that was refused */
};

/* Whether a request may be sent: always while closed; while open as the try. */
bool qr_circuit_lets_through(const struct qr_circuit *circuit, uint64_t key_mark, int64_t now_ms);
/* While it is open: how long until the next try. */
int64_t qr_circuit_wait_ms(const struct qr_circuit *circuit, int64_t now_ms);

struct qr_circuit_news {
    uint64_t number; /* of the request */
    enum qr_verdict verdict;
    uint64_t key_mark;
    const qr_err *refusal; /* of REFUSED */
    int64_t now_ms, wall_ms;
};
/* True: it opened, closed, or stays open after its try. */
bool qr_circuit_hear(struct qr_circuit *circuit, const struct qr_circuit_news *news);
