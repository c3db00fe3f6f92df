/* Owns the line of those that want to send (N1–N4). A permit is given to the first of the highest priority that waits; who is
 * behind it waits for it, so that a large request is not starved by small ones.
 *
 * Nobody hands out permits in the background: each of those that wait looks for all of them, when it is woken by one that
 * ended or when the first one's time has come. */
#include "remote/endpoint_internal.h"

#include <assert.h>

enum { CANCEL_LOOK_MS = 200 };

struct qr_waiter {
    const struct qr_permit_ask *ask;
    struct qr_waiter *next;
    struct qr_signal signal;
    uint64_t number; /* 0 = no permit yet */
};

/* ---- the line ---- */

static void join_line(struct qr_endpoint *endpoint, struct qr_waiter *waiter)
{
    struct qr_waiter **at = &endpoint->first[waiter->ask->priority];
    while (*at) {
        at = &(*at)->next;
    }
    *at = waiter;
}

static void leave_line(struct qr_endpoint *endpoint, struct qr_waiter *waiter)
{
    struct qr_waiter **at = &endpoint->first[waiter->ask->priority];
    while (*at && *at != waiter) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = waiter->next;
    }
}

static struct qr_waiter *first_in_line(struct qr_endpoint *endpoint)
{
    for (int priority = 0; priority < QR_PRIORITY_END; priority++) {
        if (endpoint->first[priority]) {
            return endpoint->first[priority];
        }
    }
    return NULL;
}

static void wake_first(struct qr_endpoint *endpoint)
{
    struct qr_waiter *first = first_in_line(endpoint);
    if (first) {
        qr_signal_one(&first->signal);
    }
}

static void wake_all(struct qr_endpoint *endpoint)
{
    for (int priority = 0; priority < QR_PRIORITY_END; priority++) {
        for (struct qr_waiter *waiter = endpoint->first[priority]; waiter; waiter = waiter->next) {
            qr_signal_one(&waiter->signal);
        }
    }
}

int qr_permit_count_waiting(const struct qr_endpoint *endpoint)
{
    int count = 0;
    for (int priority = 0; priority < QR_PRIORITY_END; priority++) {
        for (const struct qr_waiter *waiter = endpoint->first[priority]; waiter; waiter = waiter->next) {
            count++;
        }
    }
    return count;
}

/* Gives out all permits that there are now. Returns how long the first that got none has to wait; INT64_MAX where that depends
 * on what is in flight. */
static int64_t hand_out(struct qr_endpoint *endpoint, int64_t now_ms, const char **ret_why)
{
    for (;;) {
        struct qr_waiter *waiter = first_in_line(endpoint);
        *ret_why = "too many requests are under way";
        if (!waiter || !qr_limits_has_place(&endpoint->limits)) {
            return INT64_MAX;
        }
        const struct qr_permit_ask *ask = waiter->ask;
        const int64_t wait_ms = qr_limits_wait_ms(&endpoint->limits, ask->priority, ask->tokens, now_ms, ret_why);
        if (wait_ms > 0) {
            return wait_ms;
        }
        if (!qr_circuit_lets_through(&endpoint->circuit, ask->key_mark, now_ms)) {
            return INT64_MAX; /* it learns that itself */
        }
        leave_line(endpoint, waiter);
        waiter->number = qr_limits_begin(&endpoint->limits, ask->tokens, now_ms);
        if (endpoint->circuit.is_open) {
            endpoint->circuit.try_number = waiter->number;
            wake_all(endpoint); /* the others need not wait for its outcome */
        }
        qr_signal_one(&waiter->signal);
    }
}

/* ---- taking ---- */

static qr_rc fail_refused(const struct qr_endpoint *endpoint, qr_err *err)
{
    return qr_fail(err, QR_CODE_ENDPOINT_REFUSED, "%s", endpoint->circuit.refusal.msg);
}

static qr_rc fail_limited(const struct qr_endpoint *endpoint, const char *why, int64_t wait_ms, qr_err *err)
{
    if (wait_ms == INT64_MAX) {
        return qr_fail(err, QR_CODE_RATE_LIMITED, "%s: %s", endpoint->url, why);
    }
    return qr_fail(err, QR_CODE_RATE_LIMITED, "%s: %s; the next one can be sent in about %lld s", endpoint->url, why,
                   (long long)(wait_ms + 999) / 1000);
}

/* What those before it in line will take of a minute. */
static int64_t line_wait_ms(const struct qr_endpoint *endpoint, const struct qr_waiter *waiter)
{
    enum { MINUTE_MS = 60000 };
    const struct qr_endpoint_limits *limits = &endpoint->limits.set;
    int64_t count = 0, tokens = 0;
    for (int priority = 0; priority <= (int)waiter->ask->priority; priority++) {
        for (const struct qr_waiter *at = endpoint->first[priority]; at && at != waiter; at = at->next) {
            count++;
            tokens += at->ask->tokens;
        }
    }
    const int64_t requests_ms = limits->requests_a_minute ? count * MINUTE_MS / limits->requests_a_minute : 0;
    const double token_minutes = limits->tokens_a_minute ? (double)tokens / (double)limits->tokens_a_minute : 0;
    return QR_MAX(requests_ms, (int64_t)(token_minutes * MINUTE_MS));
}

/* QR_OK: it has its permit, or it goes on waiting. */
static qr_rc look(struct qr_endpoint *endpoint, const struct qr_waiter *waiter, int64_t deadline_ms,
                  int64_t *ret_until_ms, qr_err *err)
{
    const struct qr_permit_ask *ask = waiter->ask;
    const int64_t now_ms = qr_clock_mono_ms(endpoint->all->clock);
    const char *why;
    if (!waiter->number && !qr_circuit_lets_through(&endpoint->circuit, ask->key_mark, now_ms)) {
        return fail_refused(endpoint, err);
    }
    const int64_t first_ms = hand_out(endpoint, now_ms, &why);
    if (waiter->number) {
        return QR_OK;
    }
    if (ask->is_cancelled && ask->is_cancelled(ask->cancel_arg)) {
        return qr_fail(err, QR_CODE_CANCELLED, "cancelled");
    }
    const int64_t wait_ms = first_ms == INT64_MAX ? first_ms : first_ms + line_wait_ms(endpoint, waiter);
    if (now_ms >= deadline_ms || (wait_ms != INT64_MAX && wait_ms > deadline_ms - now_ms)) {
        return fail_limited(endpoint, why, wait_ms, err);
    }
    const int64_t next_ms = QR_MIN(first_ms, (int64_t)CANCEL_LOOK_MS);
    *ret_until_ms = QR_MIN(deadline_ms, now_ms + next_ms);
    return QR_OK;
}

qr_rc qr_permit_take(struct qr_endpoint *endpoint, const struct qr_permit_ask *ask, struct qr_permit *ret_permit,
                     qr_err *err)
{
    const struct qr_clock *clock = endpoint->all->clock;
    struct qr_waiter waiter = {.ask = ask};
    qr_rc rc;
    qr_signal_init(&waiter.signal);
    {
        QR_HOLD(&endpoint->lock);
        const int64_t deadline_ms = qr_clock_mono_ms(clock) + QR_MAX(ask->wait_ms_max, (int64_t)0);
        int64_t until_ms = 0;
        join_line(endpoint, &waiter);
        while ((rc = look(endpoint, &waiter, deadline_ms, &until_ms, err)) == QR_OK && !waiter.number) {
            qr_signal_wait_until(&waiter.signal, &endpoint->lock, clock, until_ms);
        }
        if (rc != QR_OK) {
            leave_line(endpoint, &waiter);
            wake_first(endpoint); /* it may have been kept back by this one */
        }
    }
    qr_signal_done(&waiter.signal);
    *ret_permit = (struct qr_permit){.number = waiter.number, .key_mark = ask->key_mark};
    return rc;
}

/* ---- giving back ---- */

/* Outside of all locks: who is told may take its own. */
static void tell(struct qr_endpoint *endpoint)
{
    struct qr_endpoint_state state;
    if (endpoint->all->on_circuit) {
        qr_endpoint_look(endpoint, &state);
        endpoint->all->on_circuit(endpoint->all->arg, &state);
    }
}

/* Whether the circuit is news. */
static bool hear(struct qr_endpoint *endpoint, const struct qr_permit *permit, const struct qr_permit_outcome *outcome)
{
    const struct qr_clock *clock = endpoint->all->clock;
    const struct qr_circuit_news news = {.number = permit->number,
                                         .verdict = outcome->verdict,
                                         .key_mark = permit->key_mark,
                                         .refusal = outcome->refusal,
                                         .now_ms = qr_clock_mono_ms(clock),
                                         .wall_ms = qr_clock_wall_ms(clock)};
    bool is_news = qr_circuit_hear(&endpoint->circuit, &news);
    if (outcome->verdict == QR_VERDICT_ANSWERED && !endpoint->has_answered) {
        endpoint->has_answered = true;
        is_news = is_news || !endpoint->circuit.is_open; /* an earlier process may have left word of an open circuit */
    }
    if (is_news) {
        wake_all(endpoint);
    }
    return is_news;
}

void qr_permit_give(struct qr_endpoint *endpoint, const struct qr_permit *permit,
                    const struct qr_permit_outcome *outcome)
{
    bool is_news;
    {
        QR_HOLD(&endpoint->lock);
        const struct qr_limits_news news = {.number = permit->number,
                                            .is_good = outcome->is_good,
                                            .is_limited = outcome->is_limited,
                                            .is_slow = outcome->is_slow,
                                            .took_ms = outcome->took_ms,
                                            .headers = outcome->headers};
        assert(endpoint->limits.in_flight > 0);
        qr_limits_end(&endpoint->limits, &news, endpoint->all->rand, qr_clock_mono_ms(endpoint->all->clock));
        endpoint->limited_count += outcome->is_limited;
        endpoint->refused_count += outcome->verdict == QR_VERDICT_REFUSED;
        is_news = hear(endpoint, permit, outcome);
        wake_first(endpoint);
    }
    if (is_news) {
        tell(endpoint);
    }
}

qr_rc qr_permit_refuse(struct qr_endpoint *endpoint, const qr_err *refusal, qr_err *err)
{
    bool is_news = false;
    qr_rc rc;
    {
        QR_HOLD(&endpoint->lock);
        const int64_t now_ms = qr_clock_mono_ms(endpoint->all->clock);
        if (qr_circuit_lets_through(&endpoint->circuit, 0, now_ms)) {
            const struct qr_permit none = {.number = UINT64_MAX}; /* the try that was not even sent */
            endpoint->circuit.try_number = endpoint->circuit.is_open ? none.number : 0;
            is_news =
                hear(endpoint, &none, &(struct qr_permit_outcome){.verdict = QR_VERDICT_REFUSED, .refusal = refusal});
        }
        rc = fail_refused(endpoint, err);
    }
    if (is_news) {
        tell(endpoint);
    }
    return rc;
}
