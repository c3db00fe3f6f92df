/* Gates: how many calls an endpoint (an embedding, vision or conversion service) may get, and whether it gets any.
 *
 * A handler asks before each call. It gets a ticket, or it is told how long to wait and why; it then returns a snooze of
 * that length, so the wait is written to the job and nothing sleeps while it holds a lease (AGAIN-2).
 *
 *     if (!qr_gate_enter(gates, &request, &ticket, &wait)) {
 *         *outcome = (struct qr_outcome){.kind = QR_OUTCOME_SNOOZED, .delay_ms = wait.wait_ms};
 *         qr_fail(&outcome->error, QR_CODE_UNAVAILABLE, "%s", wait.reason);
 *         return;
 *     }
 *
 * G1  At most `concurrent_max` tickets are out at a time.
 * G2  In any 60 s at most `requests_per_min` calls begin, and calls of at most `tokens_per_min` tokens, as long as none of
 *     them costs more than a tenth of that; a larger one is let in too, and paid off before the next.
 * G3  Who was told to wait goes, from the time it was told, before who comes later. A place in line that is not used is
 *     given up after a while.
 * G4  The circuit opens after `failures_max` failures in a row, or at once when the endpoint refuses us (401, 403, quota).
 *     After a pause one call probes it: success closes it, failure doubles the pause up to `pause_ms_max`.
 * G5  Before the time that the endpoint asked for (Retry-After) nothing goes through. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/uuid.h"

enum {
    QR_GATE_NAME_MAX = 128,
    QR_GATE_REASON_MAX = 200,
    QR_GATE_ENDPOINTS_MAX = 128,
    QR_GATE_WAITERS_MAX = 64, /* in line for one endpoint; who comes later is sent away for longer, without a place */
    QR_GATE_PER_MIN_MAX = 1000000000,
};

struct qr_gate_limits {
    int concurrent_max;       /* 0 = no limit, as below */
    int64_t requests_per_min; /* up to QR_GATE_PER_MIN_MAX */
    int64_t tokens_per_min;
    int failures_max;     /* 0 = QR_GATE_FAILURES_MAX */
    int64_t pause_ms_min; /* 0 = QR_GATE_PAUSE_MS_MIN */
    int64_t pause_ms_max; /* 0 = QR_GATE_PAUSE_MS_MAX */
};

enum { QR_GATE_FAILURES_MAX = 5, QR_GATE_PAUSE_MS_MIN = 5000, QR_GATE_PAUSE_MS_MAX = 600000 };

struct qr_gates;

/* `defaults` are for endpoints without limits of their own. A negative limit is an `invalid_value`, a pause of more than a day
 * counts as a day. All calls below may come from any thread. */
qr_rc qr_gates_create(struct qr_gates **ret_gates, const struct qr_clock *clock, const struct qr_gate_limits *defaults,
                      qr_err *err);
/* No ticket may be out. */
void qr_gates_free(struct qr_gates *gates);

/* Limits for one endpoint, which is then never forgotten; in force at once. */
qr_rc qr_gates_set_limits(struct qr_gates *gates, const char *endpoint, const struct qr_gate_limits *limits,
                          qr_err *err);

/* ---- passing ---- */

struct qr_gate_request {
    const char *endpoint; /* at most QR_GATE_NAME_MAX - 1 bytes count */
    qr_uuid caller;       /* the job: who comes back is known by it */
    int64_t cost_tokens;  /* about what the call will use; 0 where tokens are not counted */
};

struct qr_gate_ticket {
    struct qr_gate_endpoint *endpoint;
    uint64_t probe; /* 0 = no probe */
    int64_t cost_tokens;
};

struct qr_gate_wait {
    int64_t wait_ms; /* at least 1 */
    char reason[QR_GATE_REASON_MAX];
};

/* True: *ret_ticket is to be given back by qr_gate_leave, whatever happens. False: *ret_wait. */
bool qr_gate_enter(struct qr_gates *gates, const struct qr_gate_request *request, struct qr_gate_ticket *ret_ticket,
                   struct qr_gate_wait *ret_wait);

enum qr_gate_result {
    QR_GATE_ANSWERED, /* also with a complaint about this one request (400, 413, 422) */
    QR_GATE_FAILED,   /* the endpoint's failure: network, time-out, 5xx */
    QR_GATE_REFUSED,  /* 401, 403, quota used up: the same for every call */
    QR_GATE_BUSY,     /* 429: nobody's failure */
    QR_GATE_UNUSED,   /* no call was made */
};

struct qr_gate_outcome {
    enum qr_gate_result result;
    int64_t retry_after_ms; /* 0 = the endpoint did not say */
    const char *reason;     /* safe to show; NULL = none */
};

void qr_gate_leave(struct qr_gates *gates, const struct qr_gate_ticket *ticket, const struct qr_gate_outcome *outcome);

/* ---- looking ---- */

enum qr_circuit { QR_CIRCUIT_CLOSED, QR_CIRCUIT_OPEN, QR_CIRCUIT_HALF_OPEN };
const char *qr_circuit_name(enum qr_circuit circuit);

struct qr_gate_state {
    char endpoint[QR_GATE_NAME_MAX];
    enum qr_circuit circuit;
    char reason[QR_GATE_REASON_MAX]; /* why it is not closed; "" = it is */
    int64_t closed_for_ms;           /* until calls are let through again, by circuit or Retry-After; 0 = now */
    int in_flight, waiting, failures;
};

/* Fills up to `max`, in no particular order, and returns how many. */
size_t qr_gate_states(struct qr_gates *gates, struct qr_gate_state *ret_states, size_t max);
