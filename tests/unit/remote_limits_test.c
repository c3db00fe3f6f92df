/* What an endpoint may be asked for: N1 to N4 of remote/endpoint.h, on a clock that the test moves. */
#include "remote/endpoint_internal.h"
#include "remote/http.h"

#include "support/test.h"

#include <sched.h>
#include <stdatomic.h>

enum { MINUTE_MS = 60000, BEGIN_MS = 1000000 };

struct fixture {
    const struct qr_clock *clock;
    struct qr_rand_seeded rand;
    struct qr_endpoints *all;
    struct qr_endpoint *endpoint;
    int told_count; /* of circuits */
    struct qr_endpoint_state told;
};

static void on_circuit(void *arg, const struct qr_endpoint_state *state)
{
    struct fixture *fixture = arg;
    fixture->told_count++;
    fixture->told = *state;
}

static void set_up(struct fixture *fixture, struct qr_endpoint_limits limits)
{
    qr_err err;
    *fixture = (struct fixture){.clock = qr_test_clock(0)};
    qr_test_clock_advance(BEGIN_MS);
    qr_rand_seeded_init(&fixture->rand, 1);
    QR_CHECK_RC(QR_OK,
                qr_endpoints_open(&fixture->all, fixture->clock, &fixture->rand.rand, on_circuit, fixture, &err));
    const struct qr_endpoint_options options = {.url = "https://models.example/v1", .limits = limits};
    QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture->all, &options, &fixture->endpoint, &err));
}

static void tear_down(struct fixture *fixture)
{
    qr_endpoint_put(fixture->endpoint);
    qr_endpoints_close(fixture->all);
}

static qr_code take(struct fixture *fixture, enum qr_priority priority, int64_t tokens, struct qr_permit *ret_permit)
{
    qr_err err = {0};
    const struct qr_permit_ask ask = {.priority = priority, .tokens = tokens};
    return qr_permit_take(fixture->endpoint, &ask, ret_permit, &err) == QR_OK ? QR_CODE_NONE : err.code;
}

static int64_t answer_ms; /* the next answers */

static void give(struct fixture *fixture, const struct qr_permit *permit, enum qr_refusal refusal,
                 const struct qr_remote_headers *headers)
{
    static const struct qr_remote_headers silent;
    qr_err refused = {.code = QR_CODE_ENDPOINT_REFUSED, .rc = QR_UNAVAILABLE, .msg = "the key is wrong"};
    qr_permit_give(fixture->endpoint, permit,
                   &(struct qr_permit_outcome){.verdict = refusal == QR_REFUSAL_ENDPOINT ? QR_VERDICT_REFUSED
                                                          : refusal == QR_REFUSAL_NONE   ? QR_VERDICT_ANSWERED
                                                                                         : QR_VERDICT_UNKNOWN,
                                               .is_good = refusal == QR_REFUSAL_NONE,
                                               .is_limited = refusal == QR_REFUSAL_LIMITED,
                                               .took_ms = answer_ms,
                                               .headers = headers ? headers : &silent,
                                               .refusal = &refused});
}

/* A whole request; QR_CODE_NONE when it was sent. */
static qr_code ask(struct fixture *fixture, enum qr_refusal refusal)
{
    struct qr_permit permit;
    const qr_code code = take(fixture, QR_PRIORITY_DOCUMENT, 0, &permit);
    if (code == QR_CODE_NONE) {
        give(fixture, &permit, refusal, NULL);
    }
    return code;
}

static struct qr_endpoint_state look(struct fixture *fixture)
{
    struct qr_endpoint_state state;
    qr_endpoint_look(fixture->endpoint, &state);
    return state;
}

/* ---- so much a minute (N1, T1, T2) ---- */

/* A server that counts what came in the last 60 s, after a way of up to 0.8 s. */
struct window_server {
    int64_t at_ms[4096], cost[4096];
    size_t count, refused;
};

static void arrive(struct window_server *server, int64_t at_ms, int64_t cost, int64_t limit)
{
    int64_t sum = cost;
    for (size_t i = 0; i < server->count; i++) {
        if (server->at_ms[i] > at_ms - MINUTE_MS) {
            sum += server->cost[i];
        }
    }
    server->refused += sum > limit;
    server->at_ms[server->count] = at_ms;
    server->cost[server->count++] = cost;
}

/* Sends `count` requests as fast as it may; how long it took. */
static int64_t send_all(struct fixture *fixture, struct window_server *server, int count, int64_t tokens, int64_t limit)
{
    enum { WAY_MS_MAX = 800 };
    const int64_t begin_ms = qr_clock_mono_ms(fixture->clock);
    for (int i = 0; i < count;) {
        struct qr_permit permit;
        const qr_code code = take(fixture, QR_PRIORITY_DOCUMENT, tokens, &permit);
        if (code == QR_CODE_NONE) {
            const int64_t way_ms = (int64_t)qr_rand_below(&fixture->rand.rand, WAY_MS_MAX);
            arrive(server, qr_clock_mono_ms(fixture->clock) + way_ms, tokens ? tokens : 1, limit);
            give(fixture, &permit, QR_REFUSAL_NONE, NULL);
            i++;
            continue;
        }
        QR_CHECK_INT(QR_CODE_RATE_LIMITED, code);
        const int64_t wait_ms = qr_endpoint_wait_ms(fixture->endpoint, tokens);
        QR_CHECK(wait_ms > 0 && wait_ms <= QR_RATE_WINDOW_MS + QR_RATE_SLOT_MS);
        qr_test_clock_advance(wait_ms);
    }
    return qr_clock_mono_ms(fixture->clock) - begin_ms;
}

QR_TEST(ten_thousand_chunks_under_a_hundred_requests_a_minute_meet_no_429)
{
    enum { REQUESTS = (10000 + 31) / 32, LIMIT = 100 };
    static struct window_server server;
    struct fixture fixture;
    set_up(&fixture, (struct qr_endpoint_limits){.requests_a_minute = LIMIT});
    const int64_t took_ms = send_all(&fixture, &server, REQUESTS, 0, LIMIT);
    QR_CHECK_INT(0, server.refused);
    QR_CHECK(took_ms * LIMIT * 95 <= (int64_t)REQUESTS * MINUTE_MS * 100); /* at least 95 % of what is allowed */
    tear_down(&fixture);
}

QR_TEST(every_limit_of_requests_is_kept_and_used)
{
    static const int64_t limits[] = {1, 2, 3, 7, 20, 60, 99, 500, 3000};
    for (size_t i = 0; i < QR_COUNT(limits); i++) {
        static struct window_server server;
        struct fixture fixture;
        const int count = (int)QR_MIN(4 * limits[i] + 3, (int64_t)4000);
        qr_test_set_context("%lld a minute", (long long)limits[i]);
        server = (struct window_server){0};
        set_up(&fixture, (struct qr_endpoint_limits){.requests_a_minute = limits[i]});
        const int64_t took_ms = send_all(&fixture, &server, count, 0, limits[i]);
        QR_CHECK_INT(0, server.refused);
        QR_CHECK(took_ms * limits[i] * 95 <= (int64_t)(count + 1) * MINUTE_MS * 100);
        tear_down(&fixture);
    }
}

QR_TEST(tokens_a_minute_are_kept_and_used)
{
    enum { LIMIT = 40000, TOKENS = 1700, COUNT = 120 };
    static struct window_server server;
    struct fixture fixture;
    set_up(&fixture, (struct qr_endpoint_limits){.tokens_a_minute = LIMIT});
    const int64_t took_ms = send_all(&fixture, &server, COUNT, TOKENS, LIMIT);
    QR_CHECK_INT(0, server.refused);
    QR_CHECK(took_ms * LIMIT * 90 <= (int64_t)COUNT * TOKENS * MINUTE_MS * 100);
    tear_down(&fixture);
}

QR_TEST(a_request_larger_than_the_minute_goes_alone)
{
    struct fixture fixture;
    struct qr_permit permit;
    set_up(&fixture, (struct qr_endpoint_limits){.tokens_a_minute = 1000});
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 5000, &permit));
    give(&fixture, &permit, QR_REFUSAL_NONE, NULL);
    QR_CHECK_INT(QR_CODE_RATE_LIMITED, take(&fixture, QR_PRIORITY_QUERY, 1, &permit));
    qr_test_clock_advance(QR_RATE_WINDOW_MS + QR_RATE_SLOT_MS);
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 5000, &permit));
    give(&fixture, &permit, QR_REFUSAL_NONE, NULL);
    tear_down(&fixture);
}

QR_TEST(a_query_goes_at_once_while_documents_are_paced) /* T2 */
{
    struct fixture fixture;
    struct qr_permit permit;
    set_up(&fixture, (struct qr_endpoint_limits){.requests_a_minute = 60});
    while (ask(&fixture, QR_REFUSAL_NONE) == QR_CODE_NONE) {
    }
    QR_CHECK(qr_endpoint_look_ms(fixture.endpoint, QR_PRIORITY_DOCUMENT, 0) > 0);
    QR_CHECK_INT(0, qr_endpoint_look_ms(fixture.endpoint, QR_PRIORITY_QUERY, 0));
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_QUERY, 0, &permit));
    give(&fixture, &permit, QR_REFUSAL_NONE, NULL);
    tear_down(&fixture);
}

QR_TEST(who_can_wait_is_told_how_long) /* N3 */
{
    struct fixture fixture;
    struct qr_permit permit;
    qr_err err;
    set_up(&fixture, (struct qr_endpoint_limits){.requests_a_minute = 1});
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    const struct qr_permit_ask later = {.priority = QR_PRIORITY_DOCUMENT, .wait_ms_max = 59000};
    QR_CHECK_CODE(QR_CODE_RATE_LIMITED, qr_permit_take(fixture.endpoint, &later, &permit, &err));
    QR_CHECK_HAS("requests a minute", err.msg);
    QR_CHECK_HAS("in about 6", err.msg);
    QR_CHECK(qr_endpoint_wait_ms(fixture.endpoint, 0) > 59000);
    tear_down(&fixture);
}

QR_TEST(those_that_are_put_off_come_back_one_behind_the_other)
{
    struct fixture fixture;
    set_up(&fixture, (struct qr_endpoint_limits){.requests_a_minute = 6});
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    int64_t before_ms = qr_endpoint_wait_ms(fixture.endpoint, 0);
    QR_CHECK(before_ms > 0 && before_ms <= 10000);
    for (int i = 0; i < 100; i++) {
        const int64_t wait_ms = qr_endpoint_wait_ms(fixture.endpoint, 0);
        QR_CHECK_INT(QR_MIN(before_ms + 10000, 600000), wait_ms);
        before_ms = wait_ms;
    }
    tear_down(&fixture);
}

QR_TEST(to_look_when_it_is_time_puts_nobody_off)
{
    struct fixture fixture;
    set_up(&fixture, (struct qr_endpoint_limits){.requests_a_minute = 6});
    QR_CHECK_INT(0, qr_endpoint_look_ms(fixture.endpoint, QR_PRIORITY_DOCUMENT, 0));
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    const int64_t wait_ms = qr_endpoint_look_ms(fixture.endpoint, QR_PRIORITY_DOCUMENT, 0);
    QR_CHECK(wait_ms > 0 && wait_ms <= 10000);
    for (int i = 0; i < 100; i++) {
        QR_CHECK_INT(wait_ms, qr_endpoint_look_ms(fixture.endpoint, QR_PRIORITY_DOCUMENT, 0));
    }
    QR_CHECK_INT(wait_ms, qr_endpoint_wait_ms(fixture.endpoint, 0)); /* the first who is put off has the first place */
    qr_test_clock_advance(wait_ms);
    QR_CHECK_INT(0, qr_endpoint_look_ms(fixture.endpoint, QR_PRIORITY_DOCUMENT, 0));
    tear_down(&fixture);
}

/* ---- what the server says (N1) ---- */

/* A server that tells what is left, and whose limit we do not know otherwise: a bucket that is refilled all the time, or a
 * minute that begins anew. */
struct telling_server {
    bool is_bucket;
    double left;
    int64_t seen_ms, refused;
};

static struct qr_remote_headers tell(struct telling_server *server, int64_t now_ms, int limit)
{
    if (server->is_bucket) {
        server->left = QR_MIN(server->left + (double)(now_ms - server->seen_ms) * limit / MINUTE_MS, (double)limit);
    } else if (now_ms / MINUTE_MS != server->seen_ms / MINUTE_MS) {
        server->left = limit;
    }
    server->seen_ms = now_ms;
    server->refused += server->left < 1;
    server->left -= server->left >= 1;
    const double until_full_ms = (limit - server->left) / limit * MINUTE_MS;
    return (struct qr_remote_headers){
        .requests = {.is_known = true,
                     .remaining = (int64_t)server->left,
                     .reset_ms = server->is_bucket ? (int64_t)until_full_ms : MINUTE_MS - now_ms % MINUTE_MS}};
}

QR_TEST(a_limit_that_only_the_headers_tell_is_kept_and_used)
{
    enum { LIMIT = 100, COUNT = 1000, WORK_MS = 40 };
    for (int is_bucket = 0; is_bucket <= 1; is_bucket++) {
        struct fixture fixture;
        set_up(&fixture, (struct qr_endpoint_limits){0});
        const int64_t begin_ms = qr_clock_mono_ms(fixture.clock);
        struct telling_server server = {.is_bucket = is_bucket, .left = LIMIT, .seen_ms = begin_ms};
        for (int i = 0; i < COUNT;) {
            struct qr_permit permit;
            if (take(&fixture, QR_PRIORITY_DOCUMENT, 0, &permit) == QR_CODE_NONE) {
                qr_test_clock_advance(WORK_MS);
                const struct qr_remote_headers headers = tell(&server, qr_clock_mono_ms(fixture.clock), LIMIT);
                give(&fixture, &permit, QR_REFUSAL_NONE, &headers);
                i++;
            } else {
                qr_test_clock_advance(qr_endpoint_wait_ms(fixture.endpoint, 0));
            }
        }
        const int64_t took_ms = qr_clock_mono_ms(fixture.clock) - begin_ms;
        QR_CHECK_INT(0, server.refused);
        QR_CHECK(took_ms * LIMIT * 95 <= (int64_t)COUNT * MINUTE_MS * 100);
        tear_down(&fixture);
    }
}

QR_TEST(retry_after_holds_for_everybody)
{
    struct fixture fixture;
    struct qr_permit permit;
    const struct qr_remote_headers headers = {.retry_after_ms = 20000};
    set_up(&fixture, (struct qr_endpoint_limits){0});
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &permit));
    give(&fixture, &permit, QR_REFUSAL_LIMITED, &headers);
    QR_CHECK_INT(20000, qr_endpoint_wait_ms(fixture.endpoint, 0));
    QR_CHECK_INT(QR_CODE_RATE_LIMITED, take(&fixture, QR_PRIORITY_QUERY, 0, &permit));
    qr_test_clock_advance(19999);
    QR_CHECK_INT(QR_CODE_RATE_LIMITED, take(&fixture, QR_PRIORITY_QUERY, 0, &permit));
    qr_test_clock_advance(1);
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    tear_down(&fixture);
}

QR_TEST(without_retry_after_the_pause_grows_until_it_goes_well)
{
    struct fixture fixture;
    int64_t before_ms = 0;
    set_up(&fixture, (struct qr_endpoint_limits){0});
    for (int i = 0; i < 10; i++) {
        QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_LIMITED));
        const int64_t wait_ms = qr_endpoint_wait_ms(fixture.endpoint, 0);
        QR_CHECK(wait_ms >= 1000 && wait_ms <= 75000 && (wait_ms > before_ms || wait_ms >= 60000));
        before_ms = wait_ms;
        qr_test_clock_advance(wait_ms);
    }
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_LIMITED));
    QR_CHECK(qr_endpoint_wait_ms(fixture.endpoint, 0) <= 1250);
    tear_down(&fixture);
}

QR_TEST(a_server_that_says_nothing_is_left_is_believed)
{
    struct fixture fixture;
    struct qr_permit permit;
    const struct qr_remote_headers headers = {.requests = {.is_known = true, .remaining = 0, .reset_ms = 5000}};
    set_up(&fixture, (struct qr_endpoint_limits){0});
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &permit));
    give(&fixture, &permit, QR_REFUSAL_NONE, &headers);
    QR_CHECK_INT(QR_CODE_RATE_LIMITED, take(&fixture, QR_PRIORITY_QUERY, 0, &permit));
    QR_CHECK_INT(5000, qr_endpoint_wait_ms(fixture.endpoint, 0));
    qr_test_clock_advance(5000);
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    tear_down(&fixture);
}

QR_TEST(what_is_left_is_spread_over_the_time_until_there_is_more)
{
    struct fixture fixture;
    struct qr_permit permit;
    const struct qr_remote_headers headers = {.tokens = {.is_known = true, .remaining = 10000, .reset_ms = 20000}};
    set_up(&fixture, (struct qr_endpoint_limits){0});
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 1000, &permit));
    give(&fixture, &permit, QR_REFUSAL_NONE, &headers);
    QR_CHECK_INT(2000, qr_endpoint_wait_ms(fixture.endpoint, 1000));
    QR_CHECK_INT(20000, qr_endpoint_wait_ms(fixture.endpoint, 10001));
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_QUERY, 1000, &permit)); /* a person does not wait for that */
    give(&fixture, &permit, QR_REFUSAL_NONE, NULL);
    qr_test_clock_advance(20000);
    QR_CHECK_INT(0, qr_endpoint_wait_ms(fixture.endpoint, 10001));
    tear_down(&fixture);
}

/* ---- in flight (N1) ---- */

/* Takes all that there are. */
static int take_all(struct fixture *fixture, struct qr_permit *permits, int max)
{
    int count = 0;
    while (count < max && take(fixture, QR_PRIORITY_DOCUMENT, 0, &permits[count]) == QR_CODE_NONE) {
        count++;
    }
    return count;
}

QR_TEST(the_number_in_flight_halves_once_for_those_that_went_together_and_grows_one_by_one)
{
    struct fixture fixture;
    struct qr_permit permits[16];
    set_up(&fixture, (struct qr_endpoint_limits){.in_flight_max = 8});
    QR_CHECK_INT(8, take_all(&fixture, permits, 16));
    for (int i = 0; i < 8; i++) {
        give(&fixture, &permits[i], QR_REFUSAL_LIMITED, NULL);
    }
    QR_CHECK_INT(4, look(&fixture).in_flight_limit);
    QR_CHECK_INT(8, look(&fixture).limited_count);
    qr_test_clock_advance(MINUTE_MS * 2);
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_LIMITED));
    QR_CHECK_INT(2, look(&fixture).in_flight_limit);
    qr_test_clock_advance(MINUTE_MS * 2);
    for (int limit = 2; limit < 8; limit++) {
        QR_CHECK_INT(limit, look(&fixture).in_flight_limit);
        for (int i = 0; i < limit; i++) {
            QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
        }
    }
    for (int i = 0; i < 50; i++) {
        QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    }
    QR_CHECK_INT(8, look(&fixture).in_flight_limit);
    tear_down(&fixture);
}

/* A server that does one after the other needs the longer for each the more are under way. */
QR_TEST(a_slow_server_is_asked_for_less_at_a_time_and_without_a_pause)
{
    struct fixture fixture;
    struct qr_permit permits[16];
    set_up(&fixture, (struct qr_endpoint_limits){.in_flight_max = 8});
    QR_CHECK_INT(8, take_all(&fixture, permits, 16));
    for (int i = 0; i < 8; i++) {
        const struct qr_permit_outcome slow = {
            .verdict = i % 2 ? QR_VERDICT_ANSWERED : QR_VERDICT_UNKNOWN, .is_good = i % 2, .is_slow = true};
        qr_permit_give(fixture.endpoint, &permits[i], &slow);
    }
    QR_CHECK_INT(4, look(&fixture).in_flight_limit);
    QR_CHECK_INT(0, look(&fixture).limited_count);
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    tear_down(&fixture);
}

QR_TEST(there_is_always_room_for_one)
{
    struct fixture fixture;
    set_up(&fixture, (struct qr_endpoint_limits){.in_flight_max = 1});
    for (int i = 0; i < 5; i++) {
        QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_LIMITED));
        qr_test_clock_advance(2 * MINUTE_MS);
    }
    QR_CHECK_INT(1, look(&fixture).in_flight_limit);
    tear_down(&fixture);
}

/* ---- the circuit (N4) ---- */

QR_TEST(a_refusal_opens_the_circuit_and_one_try_at_a_time_closes_it) /* AGAIN-2 */
{
    struct fixture fixture;
    struct qr_permit try, other;
    set_up(&fixture, (struct qr_endpoint_limits){0});
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_ENDPOINT));
    QR_CHECK_INT(1, fixture.told_count);
    QR_CHECK(fixture.told.is_open);
    QR_CHECK_TEXT("the key is wrong", fixture.told.refusal.msg);
    QR_CHECK_INT(BEGIN_MS, fixture.told.since_ms);
    QR_CHECK_INT(BEGIN_MS + 30000, fixture.told.next_try_ms);
    QR_CHECK_INT(30000, qr_endpoint_wait_ms(fixture.endpoint, 0));
    qr_test_clock_advance(29999);
    QR_CHECK_INT(QR_CODE_ENDPOINT_REFUSED, ask(&fixture, QR_REFUSAL_NONE));
    qr_test_clock_advance(1);
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &try));
    QR_CHECK_INT(QR_CODE_ENDPOINT_REFUSED, take(&fixture, QR_PRIORITY_QUERY, 0, &other));
    QR_CHECK_INT(QR_CIRCUIT_TRY_WAIT_MS, qr_endpoint_wait_ms(fixture.endpoint, 0));
    give(&fixture, &try, QR_REFUSAL_NONE, NULL);
    QR_CHECK_INT(2, fixture.told_count);
    QR_CHECK(!fixture.told.is_open);
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    tear_down(&fixture);
}

QR_TEST(the_next_try_is_later_each_time_and_the_beginning_is_kept)
{
    static const int64_t pauses[] = {30000, 60000, 120000, 240000, 480000, 600000, 600000};
    struct fixture fixture;
    set_up(&fixture, (struct qr_endpoint_limits){0});
    for (size_t i = 0; i < QR_COUNT(pauses); i++) {
        QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_ENDPOINT));
        QR_CHECK_INT(pauses[i], qr_endpoint_wait_ms(fixture.endpoint, 0));
        QR_CHECK_INT(BEGIN_MS, fixture.told.since_ms);
        qr_test_clock_advance(pauses[i]);
    }
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_SERVER)); /* says nothing about the key */
    QR_CHECK_INT(600000, qr_endpoint_wait_ms(fixture.endpoint, 0));
    QR_CHECK(look(&fixture).is_open);
    tear_down(&fixture);
}

QR_TEST(what_was_under_way_when_it_opened_does_not_close_it)
{
    struct fixture fixture;
    struct qr_permit early, refused;
    set_up(&fixture, (struct qr_endpoint_limits){0});
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &early));
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &refused));
    give(&fixture, &refused, QR_REFUSAL_ENDPOINT, NULL);
    give(&fixture, &early, QR_REFUSAL_NONE, NULL);
    QR_CHECK(look(&fixture).is_open);
    QR_CHECK_INT(QR_CODE_ENDPOINT_REFUSED, ask(&fixture, QR_REFUSAL_NONE));
    tear_down(&fixture);
}

QR_TEST(another_key_is_tried_at_once)
{
    struct fixture fixture;
    struct qr_permit permit;
    qr_err err;
    set_up(&fixture, (struct qr_endpoint_limits){0});
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_ENDPOINT));
    const struct qr_permit_ask corrected = {.key_mark = 7};
    QR_CHECK_RC(QR_OK, qr_permit_take(fixture.endpoint, &corrected, &permit, &err));
    give(&fixture, &permit, QR_REFUSAL_NONE, NULL);
    QR_CHECK(!look(&fixture).is_open);
    tear_down(&fixture);
}

QR_TEST(the_first_good_answer_is_told_since_an_earlier_process_may_have_left_it_open)
{
    struct fixture fixture;
    set_up(&fixture, (struct qr_endpoint_limits){0});
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    QR_CHECK_INT(1, fixture.told_count);
    QR_CHECK(!fixture.told.is_open);
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    QR_CHECK_INT(1, fixture.told_count);
    tear_down(&fixture);
}

/* ---- the line (N2), with threads ---- */

struct caller {
    struct fixture *fixture;
    struct qr_permit_ask ask;
    struct qr_permit permit;
    struct qr_thread thread;
    qr_code code;
};

static void call(void *arg)
{
    struct caller *caller = arg;
    qr_err err = {0};
    const qr_rc rc = qr_permit_take(caller->fixture->endpoint, &caller->ask, &caller->permit, &err);
    caller->code = rc == QR_OK ? QR_CODE_NONE : err.code;
}

/* Returns when it stands in line. */
static void start_caller(struct caller *caller, struct fixture *fixture, enum qr_priority priority)
{
    qr_err err;
    bool is_waiting = false;
    caller->fixture = fixture;
    caller->ask.priority = priority;
    caller->ask.wait_ms_max = 50000;
    struct qr_waiter *before;
    {
        QR_HOLD(&fixture->endpoint->lock);
        before = fixture->endpoint->first[priority];
    }
    QR_CHECK(!before);
    QR_CHECK_RC(QR_OK, qr_thread_spawn(&caller->thread, "caller", call, caller, &err));
    while (!is_waiting) {
        sched_yield();
        QR_HOLD(&fixture->endpoint->lock);
        is_waiting = fixture->endpoint->first[priority] != NULL;
    }
}

QR_TEST(queries_go_before_documents)
{
    struct fixture fixture;
    struct qr_permit first;
    struct caller document = {0}, query = {0};
    set_up(&fixture, (struct qr_endpoint_limits){.in_flight_max = 1});
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &first));
    start_caller(&document, &fixture, QR_PRIORITY_DOCUMENT);
    start_caller(&query, &fixture, QR_PRIORITY_QUERY);
    give(&fixture, &first, QR_REFUSAL_NONE, NULL);
    qr_thread_join(&query.thread);
    QR_CHECK_INT(QR_CODE_NONE, query.code);
    QR_CHECK_INT(2, query.permit.number);
    give(&fixture, &query.permit, QR_REFUSAL_NONE, NULL);
    qr_thread_join(&document.thread);
    QR_CHECK_INT(3, document.permit.number);
    give(&fixture, &document.permit, QR_REFUSAL_NONE, NULL);
    tear_down(&fixture);
}

QR_TEST(the_next_ones_are_made_ready_ahead_only_where_answers_come_soon)
{
    struct fixture fixture;
    struct qr_permit first;
    struct caller document = {0};
    set_up(&fixture, (struct qr_endpoint_limits){.in_flight_max = 1});
    QR_CHECK(qr_endpoint_has_place(fixture.endpoint, 0));
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &first));
    QR_CHECK(!qr_endpoint_has_place(fixture.endpoint, 500)); /* nobody knows how long it takes */
    answer_ms = 200;
    give(&fixture, &first, QR_REFUSAL_NONE, NULL);
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &first));
    QR_CHECK(!qr_endpoint_has_place(fixture.endpoint, 0) && !qr_endpoint_has_place(fixture.endpoint, 199));
    QR_CHECK(qr_endpoint_has_place(fixture.endpoint, 200));
    start_caller(&document, &fixture, QR_PRIORITY_DOCUMENT);
    QR_CHECK(!qr_endpoint_has_place(fixture.endpoint, 500)); /* the place that comes next is that one's */
    answer_ms = 1200;
    give(&fixture, &first, QR_REFUSAL_NONE, NULL);
    qr_thread_join(&document.thread);
    QR_CHECK(!qr_endpoint_has_place(fixture.endpoint, 500)); /* it has become slow: a look would be an old one */
    QR_CHECK(qr_endpoint_has_place(fixture.endpoint, 700));
    give(&fixture, &document.permit, QR_REFUSAL_NONE, NULL);
    tear_down(&fixture);
}

QR_TEST(those_that_wait_learn_at_once_that_the_circuit_opened)
{
    struct fixture fixture;
    struct qr_permit first;
    struct caller document = {0};
    set_up(&fixture, (struct qr_endpoint_limits){.in_flight_max = 1});
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &first));
    start_caller(&document, &fixture, QR_PRIORITY_DOCUMENT);
    give(&fixture, &first, QR_REFUSAL_ENDPOINT, NULL);
    qr_thread_join(&document.thread);
    QR_CHECK_INT(QR_CODE_ENDPOINT_REFUSED, document.code);
    tear_down(&fixture);
}

static bool is_set(void *arg)
{
    return atomic_load((atomic_bool *)arg);
}

QR_TEST(a_cancel_ends_the_wait_for_a_permit)
{
    struct fixture fixture;
    struct qr_permit first;
    atomic_bool cancelled = false;
    struct caller document = {.ask = {.is_cancelled = is_set, .cancel_arg = &cancelled}};
    set_up(&fixture, (struct qr_endpoint_limits){.in_flight_max = 1});
    QR_CHECK_INT(QR_CODE_NONE, take(&fixture, QR_PRIORITY_DOCUMENT, 0, &first));
    start_caller(&document, &fixture, QR_PRIORITY_DOCUMENT);
    atomic_store(&cancelled, true);
    qr_thread_join(&document.thread);
    QR_CHECK_INT(QR_CODE_CANCELLED, document.code);
    give(&fixture, &first, QR_REFUSAL_NONE, NULL);
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_NONE));
    tear_down(&fixture);
}

struct crowd {
    struct fixture *fixture;
    atomic_int in_flight, in_flight_max, sent;
};

static void crowd_call(void *arg)
{
    enum { ROUNDS = 200 };
    struct crowd *crowd = arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct qr_permit permit;
        qr_err err;
        const struct qr_permit_ask wish = {
            .priority = i % 3 ? QR_PRIORITY_DOCUMENT : QR_PRIORITY_QUERY, .tokens = i, .wait_ms_max = 50000};
        if (qr_permit_take(crowd->fixture->endpoint, &wish, &permit, &err) != QR_OK) {
            continue;
        }
        const int now = atomic_fetch_add(&crowd->in_flight, 1) + 1;
        int max = atomic_load(&crowd->in_flight_max);
        while (now > max && !atomic_compare_exchange_weak(&crowd->in_flight_max, &max, now)) {
        }
        sched_yield();
        atomic_fetch_sub(&crowd->in_flight, 1);
        atomic_fetch_add(&crowd->sent, 1);
        give(crowd->fixture, &permit, QR_REFUSAL_NONE, NULL);
    }
}

QR_TEST(a_crowd_never_has_more_in_flight_than_allowed_and_all_get_through)
{
    enum { THREADS = 8 };
    struct fixture fixture;
    struct qr_thread threads[THREADS];
    qr_err err;
    set_up(&fixture, (struct qr_endpoint_limits){.in_flight_max = 3});
    struct crowd crowd = {.fixture = &fixture};
    for (int i = 0; i < THREADS; i++) {
        QR_CHECK_RC(QR_OK, qr_thread_spawn(&threads[i], "crowd", crowd_call, &crowd, &err));
    }
    for (int i = 0; i < THREADS; i++) {
        qr_thread_join(&threads[i]);
    }
    QR_CHECK_INT(THREADS * 200, atomic_load(&crowd.sent));
    QR_CHECK(atomic_load(&crowd.in_flight_max) <= 3);
    tear_down(&fixture);
}

/* ---- addresses ---- */

QR_TEST(an_address_is_http_without_user_and_password)
{
    static const struct {
        const char *url, *wrong; /* NULL = good */
    } urls[] = {
        {"https://api.openai.com/v1", NULL},
        {"http://127.0.0.1:11434/v1/", NULL},
        {"http://[::1]:8080", NULL},
        {"https://x.example/openai/deployments/d?api-version=2024-02-01", NULL},
        {"", "bytes"},
        {"api.openai.com/v1", "url"},
        {"ftp://x.example", "ftp"},
        {"file:///etc/passwd", "url"},
        {"https://me:secret@x.example/v1", "user"},
        {"https://me@x.example/v1", "user"},
        {"https://x.example/v1#there", "#"},
        {"https://x.example/a b", "spaces"},
        {"https://x.example/\r\nHost: y", "spaces"},
        {"https://", "url"},
    };
    qr_err err;
    for (size_t i = 0; i < QR_COUNT(urls); i++) {
        qr_test_set_context("%s", urls[i].url);
        if (!urls[i].wrong) {
            QR_CHECK_RC(QR_OK, qr_endpoint_check_url(urls[i].url, &err));
        } else {
            QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_endpoint_check_url(urls[i].url, &err));
            QR_CHECK_HAS(urls[i].wrong, err.msg);
            QR_CHECK(!strstr(err.msg, "secret"));
        }
    }
}

QR_TEST(the_same_address_and_key_is_the_same_endpoint_and_is_remembered)
{
    struct fixture fixture;
    struct qr_endpoint *same, *other;
    qr_err err;
    set_up(&fixture, (struct qr_endpoint_limits){.in_flight_max = 2});
    const struct qr_endpoint_options slash = {.url = "https://models.example/v1/", .limits = {.in_flight_max = 5}};
    const struct qr_endpoint_options key = {.url = "https://models.example/v1", .api_key_env = "OTHER_KEY"};
    QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture.all, &slash, &same, &err));
    QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture.all, &key, &other, &err));
    QR_CHECK(same == fixture.endpoint && other != fixture.endpoint);
    QR_CHECK_INT(5, look(&fixture).in_flight_limit); /* limits given later replace those from before */
    const struct qr_endpoint_options silent = {.url = "https://models.example/v1"};
    struct qr_endpoint *reranker;
    QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture.all, &silent, &reranker, &err));
    QR_CHECK_INT(5, look(&fixture).in_flight_limit); /* who knows of none does not take it from the others */
    qr_endpoint_put(reranker);
    QR_CHECK_INT(QR_CODE_NONE, ask(&fixture, QR_REFUSAL_ENDPOINT));
    qr_endpoint_put(same);
    qr_endpoint_put(other);
    qr_endpoint_put(fixture.endpoint);
    for (int i = 0; i < 63; i++) { /* others come and go */
        char url[64];
        snprintf(url, sizeof url, "https://other%d.example", i);
        qr_test_clock_advance(1);
        QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture.all, &(struct qr_endpoint_options){.url = url}, &other, &err));
        qr_endpoint_put(other);
        QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture.all, &slash, &fixture.endpoint, &err));
        QR_CHECK(look(&fixture).is_open);
        qr_endpoint_put(fixture.endpoint);
    }
    QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture.all, &slash, &fixture.endpoint, &err));
    tear_down(&fixture);
}
