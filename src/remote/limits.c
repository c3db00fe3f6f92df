/* Owns an endpoint's count of what was asked for (limits.h). */
#include "remote/limits.h"

enum {
    PAUSE_MS_MIN = 1000, /* after a refusal that does not say how long, doubled at each in a row */
    PAUSE_MS_MAX = 60000,
    LEFT_ALONE_MS_MAX = 3600000, /* what a server asks for is not believed without end */
    TOLD_RESET_MS_MAX = 600000,
    TOLD_PACE_MS_MAX = 60000,
};

void qr_limits_set(struct qr_limits *limits, const struct qr_endpoint_limits *set)
{
    const int before = limits->set.in_flight_max;
    limits->set = *set;
    limits->set.in_flight_max =
        set->in_flight_max > 0 ? QR_MIN(set->in_flight_max, (int)QR_IN_FLIGHT_MAX) : QR_IN_FLIGHT_DEFAULT;
    if (limits->set.in_flight_max != before) {
        limits->in_flight_limit = limits->set.in_flight_max;
    }
    qr_rate_set(&limits->requests, QR_MAX(set->requests_a_minute, (int64_t)0));
    qr_rate_set(&limits->tokens, QR_MAX(set->tokens_a_minute, (int64_t)0));
}

/* ---- may it begin? ---- */

/* By the server's headers: none without something left; and documents spread what is left over the time until it is renewed.
 * Where a minute is counted from its beginning that uses all of it, where it is refilled steadily half of it stays in hand. */
static int64_t left_wait_ms(const struct qr_left *left, int64_t cost, bool is_paced, int64_t begun_ms, int64_t now_ms)
{
    if (!left->is_known || cost <= 0 || now_ms >= left->reset_at_ms) {
        return 0;
    }
    if (left->remaining < cost) {
        return left->reset_at_ms - now_ms;
    }
    if (!is_paced) {
        return 0;
    }
    const double share = (double)cost / (double)left->remaining;
    const int64_t pace_ms = (int64_t)((double)(left->reset_at_ms - left->heard_ms) * share);
    return QR_MAX(begun_ms + QR_MIN(pace_ms, (int64_t)TOLD_PACE_MS_MAX) - now_ms, (int64_t)0);
}

int64_t qr_limits_wait_ms(struct qr_limits *limits, enum qr_priority priority, int64_t tokens, int64_t now_ms,
                          const char **ret_why)
{
    const bool is_paced = priority != QR_PRIORITY_QUERY;
    const struct {
        int64_t wait_ms;
        const char *why;
    } reasons[] = {
        {limits->not_before_ms - now_ms, "it asked to be left alone"},
        {qr_rate_wait_ms(&limits->requests, 1, is_paced, now_ms), "the limit of requests a minute is reached"},
        {qr_rate_wait_ms(&limits->tokens, tokens, is_paced, now_ms), "the limit of tokens a minute is reached"},
        {left_wait_ms(&limits->requests_left, 1, is_paced, limits->begun_ms, now_ms),
         "it says that no more requests are left for now"},
        {left_wait_ms(&limits->tokens_left, tokens, is_paced, limits->begun_ms, now_ms),
         "it says that no more tokens are left for now"},
    };
    int64_t wait_ms = 0;
    *ret_why = "too many requests are under way";
    for (size_t i = 0; i < QR_COUNT(reasons); i++) {
        if (reasons[i].wait_ms > wait_ms) {
            wait_ms = reasons[i].wait_ms;
            *ret_why = reasons[i].why;
        }
    }
    return wait_ms;
}

static void use_up(struct qr_left *left, int64_t cost)
{
    left->remaining -= QR_MIN(cost, left->remaining);
}

uint64_t qr_limits_begin(struct qr_limits *limits, int64_t tokens, int64_t now_ms)
{
    qr_rate_begin(&limits->requests, 1, now_ms);
    qr_rate_begin(&limits->tokens, tokens, now_ms);
    use_up(&limits->requests_left, 1);
    use_up(&limits->tokens_left, tokens);
    limits->begun_ms = now_ms;
    limits->in_flight++;
    return ++limits->begun_count;
}

/* ---- what came of it ---- */

static void hear(struct qr_left *left, const struct qr_told *told, int64_t now_ms)
{
    if (told->is_known) {
        *left = (struct qr_left){.is_known = true,
                                 .remaining = told->remaining,
                                 .heard_ms = now_ms,
                                 .reset_at_ms = now_ms + QR_MIN(told->reset_ms, (int64_t)TOLD_RESET_MS_MAX)};
    }
}

/* The last few count: a server that is slow now is known to be so after one or two. */
static void note_time(struct qr_limits *limits, int64_t took_ms)
{
    const int64_t before_ms = limits->answer_ms ? limits->answer_ms : took_ms;
    limits->answer_ms = QR_MAX((before_ms + took_ms) / 2, (int64_t)1);
}

static void grow(struct qr_limits *limits)
{
    limits->pause_ms = 0;
    if (limits->in_flight_limit < limits->set.in_flight_max && ++limits->good_count >= limits->in_flight_limit) {
        limits->in_flight_limit++;
        limits->good_count = 0;
    }
}

/* Those that were begun before the limit was halved are refused for what was too much then: they count once, and false is
 * the answer. */
static bool halve(struct qr_limits *limits, const struct qr_limits_news *news)
{
    const bool is_news = news->number > limits->halved_at;
    if (is_news) {
        limits->in_flight_limit = QR_MAX(limits->in_flight_limit / 2, 1);
        limits->good_count = 0;
        limits->halved_at = limits->begun_count;
    }
    return is_news;
}

static void shrink(struct qr_limits *limits, const struct qr_limits_news *news, struct qr_rand *rand, int64_t now_ms)
{
    const bool is_news = halve(limits, news);
    int64_t pause_ms = news->headers ? news->headers->retry_after_ms : 0;
    if (pause_ms == 0) {
        if (is_news) {
            limits->pause_ms =
                limits->pause_ms ? QR_MIN(limits->pause_ms * 2, (int64_t)PAUSE_MS_MAX) : (int64_t)PAUSE_MS_MIN;
        }
        /* several processes that were refused together do not come back together */
        pause_ms = limits->pause_ms + (int64_t)qr_rand_below(rand, (uint64_t)QR_MAX(limits->pause_ms / 4, 1L));
    }
    pause_ms = QR_MIN(pause_ms, (int64_t)LEFT_ALONE_MS_MAX);
    limits->not_before_ms = QR_MAX(limits->not_before_ms, now_ms + pause_ms);
}

void qr_limits_end(struct qr_limits *limits, const struct qr_limits_news *news, struct qr_rand *rand, int64_t now_ms)
{
    limits->in_flight--;
    if (news->headers) {
        hear(&limits->requests_left, &news->headers->requests, now_ms);
        hear(&limits->tokens_left, &news->headers->tokens, now_ms);
    }
    if (news->is_good) {
        note_time(limits, news->took_ms);
    }
    if (news->is_limited) {
        shrink(limits, news, rand, now_ms);
    } else if (
        news->is_slow) { /* it does one after the other: those behind would run out of time, and be asked for again */
        halve(limits, news);
    } else if (news->is_good) {
        grow(limits);
    }
}
