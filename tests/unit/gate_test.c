/* Gates: G1 to G5 of job/gate.h, alone and all together against a simple model. */
#include "job/gate.h"

#include "base/rand.h"
#include "base/sync.h"
#include "support/test.h"

#include <stdatomic.h>

enum { MINUTE_MS = 60000 };

static const struct qr_clock *clock_at_start(void)
{
    const struct qr_clock *clock = qr_test_clock(0);
    qr_test_clock_advance(1000000);
    return clock;
}

static struct qr_gates *create_gates(struct qr_gate_limits limits)
{
    qr_err err;
    struct qr_gates *gates;
    QR_CHECK_RC(QR_OK, qr_gates_create(&gates, clock_at_start(), &limits, &err));
    return gates;
}

static qr_uuid caller(uint32_t number)
{
    qr_uuid id = {0};
    memcpy(id.bytes, &number, sizeof number);
    return id;
}

/* The wait, 0 = let in; the ticket goes to *ret_ticket. */
static int64_t ask(struct qr_gates *gates, uint32_t who, int64_t cost_tokens, struct qr_gate_ticket *ret_ticket)
{
    struct qr_gate_wait wait;
    const struct qr_gate_request request = {"https://embed.example", caller(who), cost_tokens};
    if (qr_gate_enter(gates, &request, ret_ticket, &wait)) {
        return 0;
    }
    QR_CHECK(wait.wait_ms > 0);
    QR_CHECK(wait.reason[0]);
    return wait.wait_ms;
}

static void leave(struct qr_gates *gates, const struct qr_gate_ticket *ticket, enum qr_gate_result result)
{
    qr_gate_leave(gates, ticket, &(struct qr_gate_outcome){.result = result, .reason = "as the test wants it"});
}

/* A whole call: 0, or how long to wait. */
static int64_t call(struct qr_gates *gates, uint32_t who, enum qr_gate_result result)
{
    struct qr_gate_ticket ticket;
    const int64_t wait_ms = ask(gates, who, 0, &ticket);
    if (wait_ms == 0) {
        leave(gates, &ticket, result);
    }
    return wait_ms;
}

static struct qr_gate_state state_of(struct qr_gates *gates)
{
    struct qr_gate_state state;
    QR_CHECK_INT(1, qr_gate_states(gates, &state, 1));
    return state;
}

/* ---- concurrency (G1) ---- */

QR_TEST(without_limits_everything_passes)
{
    struct qr_gates *gates = create_gates((struct qr_gate_limits){0});
    struct qr_gate_ticket tickets[100];
    for (uint32_t i = 0; i < QR_COUNT(tickets); i++) {
        QR_CHECK_INT(0, ask(gates, i, 1000000, &tickets[i]));
    }
    QR_CHECK_INT(100, state_of(gates).in_flight);
    for (size_t i = 0; i < QR_COUNT(tickets); i++) {
        leave(gates, &tickets[i], QR_GATE_ANSWERED);
    }
    qr_gates_free(gates);
}

QR_TEST(as_many_calls_at_a_time_as_allowed)
{
    struct qr_gates *gates = create_gates((struct qr_gate_limits){.concurrent_max = 2});
    struct qr_gate_ticket one, two, three;
    QR_CHECK_INT(0, ask(gates, 1, 0, &one));
    QR_CHECK_INT(0, ask(gates, 2, 0, &two));
    QR_CHECK(ask(gates, 3, 0, &three) > 0);
    QR_CHECK_INT(1, state_of(gates).waiting);
    leave(gates, &one, QR_GATE_ANSWERED);
    QR_CHECK_INT(0, ask(gates, 3, 0, &three));
    QR_CHECK_INT(0, state_of(gates).waiting);
    leave(gates, &two, QR_GATE_FAILED);
    leave(gates, &three, QR_GATE_ANSWERED);
    QR_CHECK_INT(0, state_of(gates).in_flight);
    qr_gates_free(gates);
}

QR_TEST(a_free_place_is_not_kept_for_somebody_who_is_away)
{
    struct qr_gates *gates = create_gates((struct qr_gate_limits){.concurrent_max = 1});
    struct qr_gate_ticket ticket;
    QR_CHECK_INT(0, ask(gates, 1, 0, &ticket));
    QR_CHECK(call(gates, 2, QR_GATE_ANSWERED) > 0);
    leave(gates, &ticket, QR_GATE_ANSWERED);
    QR_CHECK_INT(0, call(gates, 3, QR_GATE_ANSWERED)); /* 2 comes back in a second */
    qr_gates_free(gates);
}

QR_TEST(whose_turn_it_is_goes_before_who_comes_later)
{
    struct qr_gates *gates = create_gates((struct qr_gate_limits){.concurrent_max = 1});
    struct qr_gate_ticket ticket;
    QR_CHECK_INT(0, ask(gates, 1, 0, &ticket));
    qr_test_clock_advance(call(gates, 2, QR_GATE_ANSWERED));
    QR_CHECK(call(gates, 2, QR_GATE_ANSWERED) > 0); /* came back, and found the place taken */
    leave(gates, &ticket, QR_GATE_ANSWERED);
    QR_CHECK(call(gates, 3, QR_GATE_ANSWERED) > 0);
    QR_CHECK_INT(0, call(gates, 2, QR_GATE_ANSWERED));
    QR_CHECK_INT(0, call(gates, 3, QR_GATE_ANSWERED));
    qr_gates_free(gates);
}

QR_TEST(who_does_not_come_back_loses_its_place)
{
    struct qr_gates *gates = create_gates((struct qr_gate_limits){.concurrent_max = 1});
    struct qr_gate_ticket ticket;
    QR_CHECK_INT(0, ask(gates, 1, 0, &ticket));
    const int64_t wait_ms = call(gates, 2, QR_GATE_ANSWERED);
    leave(gates, &ticket, QR_GATE_ANSWERED);
    qr_test_clock_advance(wait_ms);
    QR_CHECK(call(gates, 3, QR_GATE_ANSWERED) > 0);
    qr_test_clock_advance(40000);
    QR_CHECK_INT(0, call(gates, 3, QR_GATE_ANSWERED));
    qr_gates_free(gates);
}

/* ---- rates (G2) ---- */

/* Asks as often as it may for ten minutes: at no time were there more in the last 60 s than allowed, and in the long run
 * most of what is allowed was used. */
static void check_window(struct qr_gate_limits limits, int64_t cost, int64_t limit, int64_t cost_of_one)
{
    enum { STEPS = 10 * MINUTE_MS / 10 };
    static int64_t used[STEPS];
    struct qr_gates *gates = create_gates(limits);
    int64_t in_window = 0, all = 0;
    for (int step = 0; step < STEPS; step++) {
        struct qr_gate_ticket ticket;
        used[step] = 0;
        while (ask(gates, 1, cost, &ticket) == 0) {
            leave(gates, &ticket, QR_GATE_ANSWERED);
            used[step] += cost_of_one;
        }
        in_window += used[step] - (step >= MINUTE_MS / 10 ? used[step - MINUTE_MS / 10] : 0);
        all += used[step];
        QR_CHECK(in_window <= limit);
        qr_test_clock_advance(10);
    }
    QR_CHECK(all >= limit * 10 * 7 / 10);
    qr_gates_free(gates);
}

QR_TEST(no_more_requests_in_any_minute_than_allowed)
{
    for (int64_t limit = 1; limit < 5000; limit = limit * 3 + 1) {
        qr_test_set_context("limit %lld", (long long)limit);
        check_window((struct qr_gate_limits){.requests_per_min = limit}, 0, limit, 1);
    }
}

QR_TEST(no_more_tokens_in_any_minute_than_allowed)
{
    for (int64_t cost = 1; cost <= 1000; cost = cost * 3 + 1) {
        qr_test_set_context("cost %lld", (long long)cost);
        check_window((struct qr_gate_limits){.tokens_per_min = 10000}, cost, 10000, cost);
    }
}

QR_TEST(a_call_that_costs_more_than_a_minute_is_let_in_and_paid_off)
{
    struct qr_gates *gates = create_gates((struct qr_gate_limits){.tokens_per_min = 1000});
    struct qr_gate_ticket ticket;
    QR_CHECK_INT(0, ask(gates, 1, 5000, &ticket));
    leave(gates, &ticket, QR_GATE_ANSWERED);
    QR_CHECK(ask(gates, 1, 1, &ticket) > 5 * MINUTE_MS);
    qr_gates_free(gates);
}

QR_TEST(the_wait_that_is_told_is_long_enough_and_no_longer)
{
    struct qr_gates *gates = create_gates((struct qr_gate_limits){.requests_per_min = 7});
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_ANSWERED));
    for (int i = 0; i < 20; i++) {
        const int64_t wait_ms = call(gates, 1, QR_GATE_ANSWERED);
        QR_CHECK(wait_ms > 1);
        qr_test_clock_advance(wait_ms - 1);
        QR_CHECK_INT(1, call(gates, 1, QR_GATE_ANSWERED));
        qr_test_clock_advance(1);
        QR_CHECK_INT(0, call(gates, 1, QR_GATE_ANSWERED));
    }
    qr_gates_free(gates);
}

QR_TEST(a_call_that_was_not_made_costs_nothing)
{
    struct qr_gates *gates = create_gates((struct qr_gate_limits){.requests_per_min = 1, .tokens_per_min = 100});
    struct qr_gate_ticket ticket;
    for (int i = 0; i < 10; i++) {
        QR_CHECK_INT(0, ask(gates, 1, 5000, &ticket));
        leave(gates, &ticket, QR_GATE_UNUSED);
    }
    qr_gates_free(gates);
}

/* ---- fairness (G3) ---- */

QR_TEST(nobody_starves)
{
    enum { CALLERS = 20, MINUTES = 30 };
    struct qr_gates *gates =
        create_gates((struct qr_gate_limits){.concurrent_max = 3, .requests_per_min = 60, .tokens_per_min = 10000});
    int64_t back_ms[CALLERS] = {0}, served_ms[CALLERS] = {0}, longest_ms = 0;
    int calls[CALLERS] = {0};
    for (int64_t now_ms = 0; now_ms < (int64_t)MINUTES * MINUTE_MS; now_ms += 50) {
        for (uint32_t i = 0; i < CALLERS; i++) {
            if (now_ms < back_ms[i]) {
                continue;
            }
            struct qr_gate_ticket ticket;
            const int64_t cost = i == 0 ? 1000 : 10; /* the expensive one comes to its turn as well */
            const int64_t wait_ms = ask(gates, i, cost, &ticket);
            back_ms[i] = now_ms + QR_MAX(wait_ms, (int64_t)1);
            if (wait_ms == 0) {
                leave(gates, &ticket, QR_GATE_ANSWERED);
                longest_ms = QR_MAX(longest_ms, now_ms - served_ms[i]);
                served_ms[i] = now_ms;
                calls[i]++;
            }
        }
        qr_test_clock_advance(50);
    }
    int least = calls[0], most = calls[0];
    for (size_t i = 0; i < CALLERS; i++) {
        least = QR_MIN(least, calls[i]);
        most = QR_MAX(most, calls[i]);
    }
    QR_CHECK(least * 2 >= most);
    QR_CHECK(longest_ms < 3 * MINUTE_MS);
    qr_gates_free(gates);
}

/* ---- the circuit (G4, G5) ---- */

static const struct qr_gate_limits CIRCUIT = {.failures_max = 3, .pause_ms_min = 1000, .pause_ms_max = 8000};

QR_TEST(failures_in_a_row_open_the_circuit)
{
    struct qr_gates *gates = create_gates(CIRCUIT);
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_FAILED));
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_FAILED));
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_ANSWERED)); /* not in a row */
    for (int i = 0; i < 3; i++) {
        QR_CHECK_INT(QR_CIRCUIT_CLOSED, state_of(gates).circuit);
        QR_CHECK_INT(0, call(gates, 1, QR_GATE_FAILED));
    }
    QR_CHECK_INT(QR_CIRCUIT_OPEN, state_of(gates).circuit);
    QR_CHECK_HAS("keeps failing: as the test wants it", state_of(gates).reason);
    QR_CHECK_INT(1000, state_of(gates).closed_for_ms);
    QR_CHECK_INT(1000, call(gates, 1, QR_GATE_ANSWERED));
    qr_gates_free(gates);
}

QR_TEST(a_refusal_opens_the_circuit_at_once)
{
    struct qr_gates *gates = create_gates(CIRCUIT);
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_REFUSED));
    QR_CHECK_INT(QR_CIRCUIT_OPEN, state_of(gates).circuit);
    QR_CHECK_HAS("refuses us: as the test wants it", state_of(gates).reason);
    QR_CHECK_INT(1000, call(gates, 2, QR_GATE_ANSWERED));
    qr_gates_free(gates);
}

QR_TEST(the_pause_doubles_up_to_its_limit_and_begins_anew_after_success)
{
    struct qr_gates *gates = create_gates(CIRCUIT);
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_REFUSED));
    static const int64_t pauses_ms[] = {1000, 2000, 4000, 8000, 8000, 8000};
    for (size_t i = 0; i < QR_COUNT(pauses_ms); i++) {
        QR_CHECK_INT(pauses_ms[i], call(gates, 1, QR_GATE_FAILED));
        qr_test_clock_advance(pauses_ms[i] - 1);
        QR_CHECK_INT(1, call(gates, 1, QR_GATE_FAILED));
        qr_test_clock_advance(1);
        QR_CHECK_INT(0, call(gates, 1, QR_GATE_FAILED)); /* the probe */
    }
    qr_test_clock_advance(8000);
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_ANSWERED));
    QR_CHECK_INT(QR_CIRCUIT_CLOSED, state_of(gates).circuit);
    QR_CHECK_TEXT("", state_of(gates).reason);
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_REFUSED));
    QR_CHECK_INT(1000, call(gates, 1, QR_GATE_FAILED));
    qr_gates_free(gates);
}

QR_TEST(one_probe_at_a_time)
{
    struct qr_gates *gates = create_gates(CIRCUIT);
    struct qr_gate_ticket probe, other;
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_REFUSED));
    qr_test_clock_advance(1000);
    QR_CHECK_INT(0, ask(gates, 1, 0, &probe));
    QR_CHECK_INT(QR_CIRCUIT_HALF_OPEN, state_of(gates).circuit);
    QR_CHECK(ask(gates, 2, 0, &other) > 0);
    qr_test_clock_advance(10 * MINUTE_MS); /* its handler hangs: another may try */
    QR_CHECK_INT(0, ask(gates, 2, 0, &other));
    leave(gates, &probe, QR_GATE_ANSWERED); /* too late to mean anything */
    QR_CHECK_INT(QR_CIRCUIT_HALF_OPEN, state_of(gates).circuit);
    leave(gates, &other, QR_GATE_ANSWERED);
    QR_CHECK_INT(QR_CIRCUIT_CLOSED, state_of(gates).circuit);
    qr_gates_free(gates);
}

QR_TEST(calls_from_before_the_circuit_opened_do_not_move_it)
{
    struct qr_gates *gates = create_gates(CIRCUIT);
    struct qr_gate_ticket early[2];
    QR_CHECK_INT(0, ask(gates, 1, 0, &early[0]));
    QR_CHECK_INT(0, ask(gates, 2, 0, &early[1]));
    QR_CHECK_INT(0, call(gates, 3, QR_GATE_REFUSED));
    leave(gates, &early[0], QR_GATE_ANSWERED);
    QR_CHECK_INT(QR_CIRCUIT_OPEN, state_of(gates).circuit);
    qr_test_clock_advance(500);
    leave(gates, &early[1], QR_GATE_FAILED);
    QR_CHECK_INT(500, state_of(gates).closed_for_ms);
    qr_gates_free(gates);
}

QR_TEST(a_probe_that_was_not_made_leaves_the_turn_to_the_next)
{
    struct qr_gates *gates = create_gates(CIRCUIT);
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_REFUSED));
    qr_test_clock_advance(1000);
    QR_CHECK_INT(0, call(gates, 1, QR_GATE_UNUSED));
    QR_CHECK_INT(QR_CIRCUIT_HALF_OPEN, state_of(gates).circuit);
    QR_CHECK_INT(0, call(gates, 2, QR_GATE_ANSWERED));
    QR_CHECK_INT(QR_CIRCUIT_CLOSED, state_of(gates).circuit);
    qr_gates_free(gates);
}

QR_TEST(nothing_goes_through_before_the_time_that_the_endpoint_asked_for)
{
    struct qr_gates *gates = create_gates(CIRCUIT);
    struct qr_gate_ticket ticket;
    QR_CHECK_INT(0, ask(gates, 1, 0, &ticket));
    qr_gate_leave(gates, &ticket, &(struct qr_gate_outcome){.result = QR_GATE_BUSY, .retry_after_ms = 20000});
    QR_CHECK_INT(20000, call(gates, 2, QR_GATE_ANSWERED));
    QR_CHECK_INT(20000, state_of(gates).closed_for_ms);
    qr_test_clock_advance(19999);
    QR_CHECK_INT(1, call(gates, 2, QR_GATE_ANSWERED));
    qr_test_clock_advance(1);
    QR_CHECK_INT(0, call(gates, 2, QR_GATE_ANSWERED));
    QR_CHECK_INT(QR_CIRCUIT_CLOSED, state_of(gates).circuit);
    qr_gates_free(gates);
}

/* ---- endpoints ---- */

static bool enter_named(struct qr_gates *gates, uint32_t number, struct qr_gate_ticket *ret_ticket)
{
    char name[32];
    struct qr_gate_wait wait;
    snprintf(name, sizeof name, "https://%u.example", number);
    return qr_gate_enter(gates, &(struct qr_gate_request){name, caller(1), 0}, ret_ticket, &wait);
}

QR_TEST(idle_endpoints_are_forgotten_and_busy_ones_are_not)
{
    static struct qr_gate_state states[QR_GATE_ENDPOINTS_MAX + 1];
    static struct qr_gate_ticket tickets[QR_GATE_ENDPOINTS_MAX];
    struct qr_gates *gates = create_gates((struct qr_gate_limits){0});
    struct qr_gate_ticket ticket;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_gates_set_limits(gates, "https://own.example", &CIRCUIT, &err));
    for (uint32_t i = 0; i < 3 * QR_GATE_ENDPOINTS_MAX; i++) {
        qr_test_clock_advance(1);
        QR_CHECK(enter_named(gates, i, &ticket));
        leave(gates, &ticket, QR_GATE_ANSWERED);
    }
    QR_CHECK_INT(QR_GATE_ENDPOINTS_MAX, qr_gate_states(gates, states, QR_COUNT(states)));
    for (uint32_t i = 0; i < QR_GATE_ENDPOINTS_MAX - 1; i++) {
        QR_CHECK(enter_named(gates, i, &tickets[i]));
    }
    QR_CHECK(!enter_named(gates, QR_GATE_ENDPOINTS_MAX, &ticket)); /* the last place has limits of its own */
    for (uint32_t i = 0; i < QR_GATE_ENDPOINTS_MAX - 1; i++) {
        leave(gates, &tickets[i], QR_GATE_ANSWERED);
    }
    QR_CHECK(enter_named(gates, QR_GATE_ENDPOINTS_MAX, &ticket));
    leave(gates, &ticket, QR_GATE_ANSWERED);
    qr_gates_free(gates);
}

QR_TEST(an_open_circuit_is_not_forgotten_for_another_endpoint)
{
    struct qr_gates *gates = create_gates(CIRCUIT);
    struct qr_gate_ticket ticket;
    QR_CHECK(enter_named(gates, 0, &ticket));
    leave(gates, &ticket, QR_GATE_REFUSED);
    for (uint32_t i = 1; i < 2 * QR_GATE_ENDPOINTS_MAX; i++) {
        QR_CHECK(enter_named(gates, i, &ticket));
        leave(gates, &ticket, QR_GATE_ANSWERED);
    }
    QR_CHECK(!enter_named(gates, 0, &ticket));
    qr_gates_free(gates);
}

/* ---- everything together ---- */

/* What may be believed of one endpoint, kept in the simplest way: a list of all that ever happened. */
struct model {
    int64_t begun_ms[4096];
    size_t begun_count;
    int in_flight, failures;
    bool is_open;
    int64_t not_before_ms, opened_ms, pause_ms;
};

static void model_begin(struct model *model, const struct qr_gate_limits *limits, int64_t now_ms)
{
    QR_CHECK(now_ms >= model->not_before_ms);
    QR_CHECK(!model->is_open || now_ms >= model->opened_ms + model->pause_ms);
    QR_CHECK(++model->in_flight <= limits->concurrent_max);
    int64_t in_window = 1;
    for (size_t i = 0; i < model->begun_count; i++) {
        in_window += model->begun_ms[i] > now_ms - MINUTE_MS;
    }
    QR_CHECK(in_window <= limits->requests_per_min);
    QR_CHECK(model->begun_count < QR_COUNT(model->begun_ms));
    model->begun_ms[model->begun_count++] = now_ms;
}

static void model_end(struct model *model, const struct qr_gate_limits *limits, const struct qr_gate_ticket *ticket,
                      const struct qr_gate_outcome *outcome, int64_t now_ms)
{
    model->in_flight--;
    const int64_t retry_ms =
        outcome->retry_after_ms || outcome->result != QR_GATE_BUSY ? outcome->retry_after_ms : limits->pause_ms_min;
    model->not_before_ms = QR_MAX(model->not_before_ms, now_ms + retry_ms);
    if (model->is_open && !ticket->probe) {
        return;
    }
    if (outcome->result == QR_GATE_ANSWERED) {
        model->is_open = false;
        model->failures = 0;
        model->pause_ms = 0;
    } else if (outcome->result == QR_GATE_FAILED || outcome->result == QR_GATE_REFUSED) {
        model->failures++;
        if (outcome->result == QR_GATE_REFUSED || model->is_open || model->failures >= limits->failures_max) {
            model->is_open = true;
            model->opened_ms = now_ms;
            model->pause_ms =
                model->pause_ms ? QR_MIN(model->pause_ms * 2, limits->pause_ms_max) : limits->pause_ms_min;
        }
    }
}

static void run_against_model(uint64_t seed)
{
    enum { STEPS = 2000, TICKETS = 8 };
    static struct model model;
    struct qr_rand_seeded seeded;
    struct qr_gate_ticket tickets[TICKETS];
    int out = 0;
    model = (struct model){0};
    qr_rand_seeded_init(&seeded, seed);
    const struct qr_gate_limits limits = {
        .concurrent_max = 1 + (int)qr_rand_below(&seeded.rand, TICKETS),
        .requests_per_min = 1 + (int64_t)qr_rand_below(&seeded.rand, 200),
        .failures_max = 1 + (int)qr_rand_below(&seeded.rand, 4),
        .pause_ms_min = 100,
        .pause_ms_max = 1000,
    };
    const struct qr_clock *clock = clock_at_start();
    struct qr_gates *gates = create_gates(limits);
    for (int step = 0; step < STEPS; step++) {
        if (qr_rand_below(&seeded.rand, 2)) {
            if (ask(gates, (uint32_t)qr_rand_below(&seeded.rand, 100), 0, &tickets[out]) == 0) {
                model_begin(&model, &limits, qr_clock_mono_ms(clock));
                out++;
            }
        } else if (out > 0) {
            const int which = (int)qr_rand_below(&seeded.rand, (uint64_t)out);
            const struct qr_gate_outcome outcome = {
                .result = qr_rand_below(&seeded.rand, 3) ? QR_GATE_ANSWERED
                                                         : (enum qr_gate_result)qr_rand_below(&seeded.rand, 4),
                .retry_after_ms = qr_rand_below(&seeded.rand, 50) ? 0 : 700,
            };
            qr_gate_leave(gates, &tickets[which], &outcome);
            model_end(&model, &limits, &tickets[which], &outcome, qr_clock_mono_ms(clock));
            tickets[which] = tickets[--out];
        }
        if (model.begun_count > 0) {
            QR_CHECK_INT(model.is_open, state_of(gates).circuit != QR_CIRCUIT_CLOSED);
        }
        qr_test_clock_advance((int64_t)qr_rand_below(&seeded.rand, 400));
    }
    while (out > 0) {
        leave(gates, &tickets[--out], QR_GATE_ANSWERED);
    }
    qr_gates_free(gates);
}

QR_TEST(whatever_happens_the_gate_keeps_to_the_model)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        qr_test_set_context("seed %llu", (unsigned long long)seed);
        run_against_model(seed);
    }
}

/* ---- threads ---- */

struct crowd {
    struct qr_gates *gates;
    atomic_int in, most, passed;
};

static void push_through(void *arg)
{
    struct crowd *crowd = arg;
    for (uint32_t i = 0; i < 2000; i++) {
        struct qr_gate_ticket ticket;
        struct qr_gate_state states[4];
        if (ask(crowd->gates, i, 1, &ticket) == 0) {
            const int in = atomic_fetch_add(&crowd->in, 1) + 1;
            int most = atomic_load(&crowd->most);
            while (in > most && !atomic_compare_exchange_weak(&crowd->most, &most, in)) {
            }
            atomic_fetch_add(&crowd->passed, 1);
            QR_CHECK_INT(1, qr_gate_states(crowd->gates, states, QR_COUNT(states)));
            atomic_fetch_sub(&crowd->in, 1);
            leave(crowd->gates, &ticket, i % 7 ? QR_GATE_ANSWERED : QR_GATE_FAILED);
        }
    }
}

QR_TEST(many_threads_keep_to_the_limits)
{
    enum { THREADS = 8 };
    struct crowd crowd = {.gates = create_gates((struct qr_gate_limits){.concurrent_max = 3, .failures_max = 1000})};
    struct qr_thread threads[THREADS];
    qr_err err;
    for (int i = 0; i < THREADS; i++) {
        QR_CHECK_RC(QR_OK, qr_thread_spawn(&threads[i], "crowd", push_through, &crowd, &err));
    }
    for (int i = 0; i < THREADS; i++) {
        qr_thread_join(&threads[i]);
    }
    QR_CHECK(atomic_load(&crowd.most) <= 3);
    QR_CHECK(atomic_load(&crowd.passed) > 0);
    QR_CHECK_INT(0, state_of(crowd.gates).in_flight);
    qr_gates_free(crowd.gates);
}

QR_TEST(limits_that_cannot_be_are_refused_and_huge_ones_bounded)
{
    const struct qr_gate_limits wrong[] = {{.concurrent_max = -1},        {.requests_per_min = INT64_MIN},
                                           {.tokens_per_min = INT64_MIN}, {.failures_max = -1},
                                           {.pause_ms_min = INT64_MIN},   {.pause_ms_max = -1}};
    struct qr_gates *gates = create_gates((struct qr_gate_limits){
        .requests_per_min = INT64_MAX, .failures_max = 1, .pause_ms_min = INT64_MAX, .pause_ms_max = INT64_MAX});
    qr_err err;
    struct qr_gates *refused;
    for (size_t i = 0; i < QR_COUNT(wrong); i++) {
        QR_CHECK_INT(QR_INVALID, qr_gates_create(&refused, qr_clock_system(), &wrong[i], &err));
        QR_CHECK_INT(QR_INVALID, qr_gates_set_limits(gates, "endpoint", &wrong[i], &err));
    }
    struct qr_gate_ticket ticket;
    QR_CHECK_INT(0, ask(gates, 1, 1, &ticket));
    leave(gates, &ticket, QR_GATE_FAILED);
    QR_CHECK_INT(86400000, ask(gates, 1, 1, &ticket));
    qr_gates_free(gates);
}
