/* Owns the endpoints' books. The promises G1–G5 are in gate.h. One lock guards everything: a call under it is a few
 * comparisons, and what it stands before takes milliseconds at least. */
#include "job/gate.h"

#include "base/mem.h"
#include "base/sync.h"

#include <assert.h>
#include <stdio.h>

enum {
    WINDOW_MS = 60000,
    BURST_SHARE = 10,      /* a bucket holds that part of a minute's allowance */
    SLOT_WAIT_MS = 1000,   /* nobody knows when a call ends */
    PROBE_WAIT_MS = 2000,  /* while another one probes */
    PROBE_MS_MAX = 300000, /* then the probe counts as lost, and another may try */
    TURN_GRACE_MS = 30000, /* so late after its time one keeps its place in line */
    FULL_WAIT_MS = 5000,   /* no room for another endpoint */
    PAUSE_MS_LIMIT = 86400000,
    FORGET_MS = 60 * 60000L, /* an endpoint that nobody asked for is forgotten, whatever is known of it */
};

/* ---- token buckets ---- */

/* Parts: 1 token is WINDOW_MS parts, so that filling by the millisecond is exact. A call needs one whole token and takes
 * its cost, if need be as a debt: otherwise small calls would drain the bucket under the eyes of a large one.
 *
 * G2: from `burst` at the start of a window down to the debt of a call that costs up to `burst`, with `fill` coming in,
 * makes 2 × burst - 1 + fill - 1 ≤ limit (the last part of the window's filling is never complete); where every call costs
 * one there is no debt, and burst + fill - 1 ≤ limit. */
struct bucket {
    int64_t limit; /* 0 = none */
    int64_t burst, fill_per_window;
    int64_t parts;
    int64_t filled_ms;
};

static void set_bucket(struct bucket *bucket, int64_t limit, bool costs_one, int64_t now_ms)
{
    limit = QR_MIN(limit, (int64_t)QR_GATE_PER_MIN_MAX);
    if (limit == bucket->limit) {
        return;
    }
    const int64_t burst = QR_MAX(limit / BURST_SHARE, (int64_t)1);
    *bucket = (struct bucket){
        .limit = limit,
        .burst = burst,
        .fill_per_window = limit - burst + 1 - (costs_one ? 0 : burst - 1),
        .parts = burst * WINDOW_MS,
        .filled_ms = now_ms,
    };
}

static void fill_bucket(struct bucket *bucket, int64_t now_ms)
{
    int64_t gain, parts;
    const int64_t full = bucket->burst * WINDOW_MS;
    if (QR_MUL_OVERFLOWS(now_ms - bucket->filled_ms, bucket->fill_per_window, &gain) ||
        QR_ADD_OVERFLOWS(bucket->parts, gain, &parts)) {
        parts = full;
    }
    bucket->parts = QR_MIN(parts, full);
    bucket->filled_ms = now_ms;
}

/* How long until a call may go that comes after others, which cost `ahead`. */
static int64_t bucket_wait_ms(const struct bucket *bucket, int64_t ahead)
{
    if (bucket->limit == 0) {
        return 0;
    }
    const int64_t missing = (ahead + 1) * WINDOW_MS - bucket->parts;
    return missing <= 0 ? 0 : (missing + bucket->fill_per_window - 1) / bucket->fill_per_window;
}

static void take_from_bucket(struct bucket *bucket, int64_t cost)
{
    if (bucket->limit) {
        bucket->parts = QR_MIN(bucket->parts - cost * WINDOW_MS, bucket->burst * WINDOW_MS);
    }
}

/* ---- endpoints ---- */

/* Who was told to come back (G3). Until its turn the others may use what is free; from then on they come after it. */
struct waiter {
    qr_uuid caller;
    int64_t cost_tokens;
    int64_t turn_ms;     /* what it was told first */
    int64_t expected_ms; /* what it was told last */
};

struct qr_gate_endpoint {
    char name[QR_GATE_NAME_MAX];
    struct qr_gate_limits limits;
    bool has_own_limits;
    struct bucket requests, tokens;
    int in_flight;
    int64_t not_before_ms; /* G5 */
    int64_t used_ms;

    enum qr_circuit circuit;
    char reason[QR_GATE_REASON_MAX];
    int failures; /* in a row */
    int64_t pause_ms;
    int64_t open_until_ms;
    uint64_t probe; /* the one that is out; 0 = none */
    int64_t probe_began_ms;

    struct waiter waiters[QR_GATE_WAITERS_MAX]; /* first come, first */
    size_t waiter_count;
};

struct qr_gates {
    const struct qr_clock *clock;
    struct qr_gate_limits defaults;
    struct qr_mutex lock; /* guards everything below */
    struct qr_gate_endpoint *endpoints[QR_GATE_ENDPOINTS_MAX];
    size_t endpoint_count;
    uint64_t probe_count;
};

static void set_limits(struct qr_gate_endpoint *endpoint, const struct qr_gate_limits *limits, int64_t now_ms)
{
    endpoint->limits = *limits;
    struct qr_gate_limits *own = &endpoint->limits;
    own->failures_max = own->failures_max ? own->failures_max : QR_GATE_FAILURES_MAX;
    own->pause_ms_min = own->pause_ms_min ? own->pause_ms_min : QR_GATE_PAUSE_MS_MIN;
    own->pause_ms_max = own->pause_ms_max ? own->pause_ms_max : QR_GATE_PAUSE_MS_MAX;
    own->pause_ms_min = QR_MIN(own->pause_ms_min, (int64_t)PAUSE_MS_LIMIT);
    own->pause_ms_max = QR_MIN(QR_MAX(own->pause_ms_max, own->pause_ms_min), (int64_t)PAUSE_MS_LIMIT);
    set_bucket(&endpoint->requests, own->requests_per_min, true, now_ms);
    set_bucket(&endpoint->tokens, own->tokens_per_min, false, now_ms);
}

/* Forgetting it changes nothing for anybody. */
static bool is_idle(struct qr_gate_endpoint *endpoint, int64_t now_ms)
{
    if (endpoint->in_flight > 0 || endpoint->has_own_limits) {
        return false;
    }
    fill_bucket(&endpoint->requests, now_ms);
    fill_bucket(&endpoint->tokens, now_ms);
    const bool has_no_memory = endpoint->circuit == QR_CIRCUIT_CLOSED && endpoint->failures == 0 &&
                               endpoint->waiter_count == 0 && now_ms >= endpoint->not_before_ms &&
                               endpoint->requests.parts == endpoint->requests.burst * WINDOW_MS &&
                               endpoint->tokens.parts == endpoint->tokens.burst * WINDOW_MS;
    return has_no_memory || now_ms - endpoint->used_ms >= FORGET_MS;
}

/* Makes room by forgetting the idle one that was used longest ago. */
static void forget_one(struct qr_gates *gates, int64_t now_ms)
{
    size_t oldest = gates->endpoint_count;
    for (size_t i = 0; i < gates->endpoint_count; i++) {
        if (is_idle(gates->endpoints[i], now_ms) &&
            (oldest == gates->endpoint_count || gates->endpoints[i]->used_ms < gates->endpoints[oldest]->used_ms)) {
            oldest = i;
        }
    }
    if (oldest < gates->endpoint_count) {
        qr_free(gates->endpoints[oldest]);
        gates->endpoints[oldest] = gates->endpoints[--gates->endpoint_count];
    }
}

/* NULL when there is no room. */
static struct qr_gate_endpoint *get_endpoint(struct qr_gates *gates, const char *name, int64_t now_ms)
{
    for (size_t i = 0; i < gates->endpoint_count; i++) {
        if (strncmp(gates->endpoints[i]->name, name, QR_GATE_NAME_MAX - 1) == 0) {
            return gates->endpoints[i];
        }
    }
    if (gates->endpoint_count == QR_GATE_ENDPOINTS_MAX) {
        forget_one(gates, now_ms);
    }
    if (gates->endpoint_count == QR_GATE_ENDPOINTS_MAX) {
        return NULL;
    }
    struct qr_gate_endpoint *endpoint = qr_alloc_zero(sizeof *endpoint);
    if (endpoint) {
        snprintf(endpoint->name, sizeof endpoint->name, "%s", name);
        set_limits(endpoint, &gates->defaults, now_ms);
        gates->endpoints[gates->endpoint_count++] = endpoint;
    }
    return endpoint;
}

static qr_rc check_limits(const struct qr_gate_limits *limits, qr_err *err)
{
    const bool is_negative = limits->concurrent_max < 0 || limits->requests_per_min < 0 || limits->tokens_per_min < 0 ||
                             limits->failures_max < 0 || limits->pause_ms_min < 0 || limits->pause_ms_max < 0;
    return is_negative ? qr_fail(err, QR_CODE_INVALID_VALUE, "a limit of calls to an endpoint cannot be negative")
                       : QR_OK;
}

qr_rc qr_gates_create(struct qr_gates **ret_gates, const struct qr_clock *clock, const struct qr_gate_limits *defaults,
                      qr_err *err)
{
    QR_TRY(check_limits(defaults, err));
    struct qr_gates *gates = qr_alloc_zero(sizeof *gates);
    if (!gates) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the gates");
    }
    gates->clock = clock;
    gates->defaults = *defaults;
    qr_mutex_init(&gates->lock);
    *ret_gates = gates;
    return QR_OK;
}

void qr_gates_free(struct qr_gates *gates)
{
    if (!gates) {
        return;
    }
    for (size_t i = 0; i < gates->endpoint_count; i++) {
        assert(gates->endpoints[i]->in_flight == 0);
        qr_free(gates->endpoints[i]);
    }
    qr_mutex_done(&gates->lock);
    qr_free(gates);
}

qr_rc qr_gates_set_limits(struct qr_gates *gates, const char *endpoint, const struct qr_gate_limits *limits,
                          qr_err *err)
{
    QR_TRY(check_limits(limits, err));
    QR_HOLD(&gates->lock);
    const int64_t now_ms = qr_clock_mono_ms(gates->clock);
    struct qr_gate_endpoint *found = get_endpoint(gates, endpoint, now_ms);
    if (!found) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "no room for another endpoint beside %d", QR_GATE_ENDPOINTS_MAX);
    }
    found->has_own_limits = true;
    set_limits(found, limits, now_ms);
    return QR_OK;
}

/* ---- the line (G3) ---- */

static void remove_waiter(struct qr_gate_endpoint *endpoint, size_t at)
{
    endpoint->waiter_count--;
    memmove(endpoint->waiters + at, endpoint->waiters + at + 1,
            (endpoint->waiter_count - at) * sizeof endpoint->waiters[0]);
}

/* The place of the caller in line; waiter_count when it has none. Those that did not come back in time lose theirs. */
static size_t find_place(struct qr_gate_endpoint *endpoint, qr_uuid caller, int64_t now_ms)
{
    size_t place = SIZE_MAX;
    for (size_t i = 0; i < endpoint->waiter_count;) {
        if (qr_uuid_equal(endpoint->waiters[i].caller, caller)) {
            place = i++;
        } else if (now_ms > endpoint->waiters[i].expected_ms + TURN_GRACE_MS) {
            remove_waiter(endpoint, i);
        } else {
            i++;
        }
    }
    return QR_MIN(place, endpoint->waiter_count);
}

static void keep_place(struct qr_gate_endpoint *endpoint, size_t place, const struct qr_gate_request *request,
                       int64_t expected_ms)
{
    if (place == QR_GATE_WAITERS_MAX) {
        return;
    }
    struct waiter *waiter = &endpoint->waiters[place];
    if (place == endpoint->waiter_count) {
        endpoint->waiter_count++;
        waiter->caller = request->caller;
        waiter->turn_ms = expected_ms;
    }
    waiter->cost_tokens = request->cost_tokens;
    waiter->expected_ms = expected_ms;
}

/* What those before a place in line will take. */
struct ahead {
    int64_t count, tokens;
};

static struct ahead count_ahead(const struct qr_gate_endpoint *endpoint, size_t place, int64_t turn_ms_max)
{
    struct ahead ahead = {0};
    for (size_t i = 0; i < place; i++) {
        if (endpoint->waiters[i].turn_ms <= turn_ms_max) {
            ahead.count++;
            ahead.tokens += endpoint->waiters[i].cost_tokens;
        }
    }
    return ahead;
}

/* ---- may it pass? Each answers the wait in ms, 0 = not for this reason, and then leaves the reason alone ---- */

static int64_t circuit_wait_ms(struct qr_gate_endpoint *endpoint, int64_t now_ms, char *reason)
{
    if (endpoint->circuit == QR_CIRCUIT_OPEN && now_ms >= endpoint->open_until_ms) {
        endpoint->circuit = QR_CIRCUIT_HALF_OPEN;
        endpoint->probe = 0;
    }
    int64_t wait_ms = 0;
    if (endpoint->circuit == QR_CIRCUIT_OPEN) {
        wait_ms = endpoint->open_until_ms - now_ms;
    } else if (endpoint->circuit == QR_CIRCUIT_HALF_OPEN && endpoint->probe &&
               now_ms - endpoint->probe_began_ms < PROBE_MS_MAX) {
        wait_ms = PROBE_WAIT_MS;
    }
    if (wait_ms > 0) {
        snprintf(reason, QR_GATE_REASON_MAX, "%s", endpoint->reason);
    } else if (now_ms < endpoint->not_before_ms) {
        wait_ms = endpoint->not_before_ms - now_ms;
        snprintf(reason, QR_GATE_REASON_MAX, "the endpoint asked to be left alone for a while");
    }
    return wait_ms;
}

/* Those ahead in line are counted as if they were in. */
static int64_t capacity_wait_ms(const struct qr_gate_endpoint *endpoint, struct ahead ahead, char *reason)
{
    const struct qr_gate_limits *limits = &endpoint->limits;
    int64_t wait_ms = 0;
    const int64_t excess = endpoint->in_flight + ahead.count - limits->concurrent_max;
    if (limits->concurrent_max && excess >= 0) {
        wait_ms = SLOT_WAIT_MS * (excess / limits->concurrent_max + 1);
        snprintf(reason, QR_GATE_REASON_MAX, "at most %d calls at a time", limits->concurrent_max);
    }
    const int64_t requests_ms = bucket_wait_ms(&endpoint->requests, ahead.count);
    if (requests_ms > wait_ms) {
        wait_ms = requests_ms;
        snprintf(reason, QR_GATE_REASON_MAX, "at most %lld requests a minute", (long long)limits->requests_per_min);
    }
    const int64_t tokens_ms = bucket_wait_ms(&endpoint->tokens, ahead.tokens);
    if (tokens_ms > wait_ms) {
        wait_ms = tokens_ms;
        snprintf(reason, QR_GATE_REASON_MAX, "at most %lld tokens a minute", (long long)limits->tokens_per_min);
    }
    return wait_ms;
}

static void admit(struct qr_gates *gates, struct qr_gate_endpoint *endpoint, int64_t cost_tokens, int64_t now_ms,
                  struct qr_gate_ticket *ret_ticket)
{
    *ret_ticket = (struct qr_gate_ticket){.endpoint = endpoint, .cost_tokens = cost_tokens};
    endpoint->in_flight++;
    take_from_bucket(&endpoint->requests, 1);
    take_from_bucket(&endpoint->tokens, cost_tokens);
    if (endpoint->circuit == QR_CIRCUIT_HALF_OPEN) {
        ret_ticket->probe = endpoint->probe = ++gates->probe_count;
        endpoint->probe_began_ms = now_ms;
    }
}

bool qr_gate_enter(struct qr_gates *gates, const struct qr_gate_request *request, struct qr_gate_ticket *ret_ticket,
                   struct qr_gate_wait *ret_wait)
{
    const int64_t cost_tokens = QR_MIN(QR_MAX(request->cost_tokens, (int64_t)0), (int64_t)QR_GATE_PER_MIN_MAX);
    const struct qr_gate_request bounded = {request->endpoint, request->caller, cost_tokens};
    QR_HOLD(&gates->lock);
    const int64_t now_ms = qr_clock_mono_ms(gates->clock);
    struct qr_gate_endpoint *endpoint = get_endpoint(gates, request->endpoint, now_ms);
    *ret_wait = (struct qr_gate_wait){0};
    if (!endpoint) {
        ret_wait->wait_ms = FULL_WAIT_MS;
        snprintf(ret_wait->reason, sizeof ret_wait->reason, "too many endpoints are in use at a time");
        return false;
    }
    endpoint->used_ms = now_ms;
    ret_wait->wait_ms = circuit_wait_ms(endpoint, now_ms, ret_wait->reason);
    if (ret_wait->wait_ms > 0) {
        return false;
    }
    const size_t place = find_place(endpoint, bounded.caller, now_ms);
    fill_bucket(&endpoint->requests, now_ms);
    fill_bucket(&endpoint->tokens, now_ms);
    if (capacity_wait_ms(endpoint, count_ahead(endpoint, place, now_ms), ret_wait->reason) > 0) {
        ret_wait->wait_ms = capacity_wait_ms(endpoint, count_ahead(endpoint, place, INT64_MAX), ret_wait->reason);
        keep_place(endpoint, place, &bounded, now_ms + ret_wait->wait_ms);
        return false;
    }
    if (place < endpoint->waiter_count) {
        remove_waiter(endpoint, place);
    }
    admit(gates, endpoint, cost_tokens, now_ms, ret_ticket);
    return true;
}

/* ---- what came of it ---- */

static void open_circuit(struct qr_gate_endpoint *endpoint, const char *why, const char *reason, int64_t now_ms)
{
    const struct qr_gate_limits *limits = &endpoint->limits;
    endpoint->pause_ms =
        endpoint->pause_ms ? QR_MIN(endpoint->pause_ms * 2, limits->pause_ms_max) : limits->pause_ms_min;
    endpoint->circuit = QR_CIRCUIT_OPEN;
    endpoint->open_until_ms = now_ms + endpoint->pause_ms;
    endpoint->probe = 0;
    endpoint->waiter_count = 0; /* who comes first afterwards probes */
    snprintf(endpoint->reason, sizeof endpoint->reason, "%s%s%s", why, reason ? ": " : "", reason ? reason : "");
}

static void close_circuit(struct qr_gate_endpoint *endpoint)
{
    endpoint->circuit = QR_CIRCUIT_CLOSED;
    endpoint->failures = 0;
    endpoint->pause_ms = 0;
    endpoint->reason[0] = '\0';
}

static void judge_failure(struct qr_gate_endpoint *endpoint, const struct qr_gate_outcome *outcome, bool was_probe,
                          int64_t now_ms)
{
    endpoint->failures += endpoint->failures < INT32_MAX;
    if (outcome->result == QR_GATE_REFUSED) {
        open_circuit(endpoint, "the endpoint refuses us", outcome->reason, now_ms);
    } else if (was_probe || endpoint->failures >= endpoint->limits.failures_max) {
        open_circuit(endpoint, "the endpoint keeps failing", outcome->reason, now_ms);
    }
}

/* G4: while the circuit is not closed only the probe is listened to. What else comes in began before it opened. */
static void judge(struct qr_gate_endpoint *endpoint, const struct qr_gate_ticket *ticket,
                  const struct qr_gate_outcome *outcome, int64_t now_ms)
{
    const bool is_probe = ticket->probe && ticket->probe == endpoint->probe;
    if (endpoint->circuit != QR_CIRCUIT_CLOSED && !is_probe) {
        return;
    }
    endpoint->probe = 0;
    switch (outcome->result) {
    case QR_GATE_ANSWERED:
        close_circuit(endpoint);
        break;
    case QR_GATE_FAILED:
    case QR_GATE_REFUSED:
        judge_failure(endpoint, outcome, is_probe, now_ms);
        break;
    case QR_GATE_BUSY:
    case QR_GATE_UNUSED:
        break; /* says nothing: the next one is the probe */
    }
}

void qr_gate_leave(struct qr_gates *gates, const struct qr_gate_ticket *ticket, const struct qr_gate_outcome *outcome)
{
    struct qr_gate_endpoint *endpoint = ticket->endpoint;
    QR_HOLD(&gates->lock);
    const int64_t now_ms = qr_clock_mono_ms(gates->clock);
    assert(endpoint->in_flight > 0);
    endpoint->in_flight--;
    endpoint->used_ms = now_ms;
    if (outcome->result == QR_GATE_UNUSED) {
        take_from_bucket(&endpoint->requests, -1);
        take_from_bucket(&endpoint->tokens, -ticket->cost_tokens);
    }
    int64_t pause_ms = QR_MAX(outcome->retry_after_ms, (int64_t)0);
    if (outcome->result == QR_GATE_BUSY && pause_ms == 0) {
        pause_ms = endpoint->limits.pause_ms_min;
    }
    pause_ms = QR_MIN(pause_ms, (int64_t)FORGET_MS); /* what an endpoint says is not trusted without end */
    endpoint->not_before_ms = QR_MAX(endpoint->not_before_ms, now_ms + pause_ms);
    judge(endpoint, ticket, outcome, now_ms);
}

/* ---- looking ---- */

const char *qr_circuit_name(enum qr_circuit circuit)
{
    static const char *const names[] = {
        [QR_CIRCUIT_CLOSED] = "closed", [QR_CIRCUIT_OPEN] = "open", [QR_CIRCUIT_HALF_OPEN] = "half_open"};
    return names[circuit];
}

size_t qr_gate_states(struct qr_gates *gates, struct qr_gate_state *ret_states, size_t max)
{
    QR_HOLD(&gates->lock);
    const int64_t now_ms = qr_clock_mono_ms(gates->clock);
    const size_t count = QR_MIN(max, gates->endpoint_count);
    for (size_t i = 0; i < count; i++) {
        const struct qr_gate_endpoint *endpoint = gates->endpoints[i];
        struct qr_gate_state *state = &ret_states[i];
        int64_t until_ms = endpoint->not_before_ms;
        if (endpoint->circuit == QR_CIRCUIT_OPEN) {
            until_ms = QR_MAX(until_ms, endpoint->open_until_ms);
        }
        *state = (struct qr_gate_state){
            .circuit = endpoint->circuit,
            .closed_for_ms = QR_MAX(until_ms - now_ms, (int64_t)0),
            .in_flight = endpoint->in_flight,
            .waiting = (int)endpoint->waiter_count,
            .failures = endpoint->failures,
        };
        snprintf(state->endpoint, sizeof state->endpoint, "%s", endpoint->name);
        snprintf(state->reason, sizeof state->reason, "%s", endpoint->reason);
    }
    return count;
}
