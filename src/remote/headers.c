/* Retry-After, x-ratelimit-* of OpenAI and those who do as it does, and ratelimit-* of the IETF's drafts. All of it is
 * foreign text: what cannot be understood counts as not said. */
#include "remote/headers.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum {
    DAY_MS = 86400000,
    EPOCH_MS_MIN = 1000000000, /* a reset beyond it is a date, not a duration */
};

enum { REQUESTS, TOKENS };

/* ---- durations and dates ---- */

static int64_t bounded_ms(double ms)
{
    return ms > 0 ? (int64_t)QR_MIN(ms, (double)DAY_MS) : 0;
}

/* Digits with at most one point; the length, 0 = no number. */
static size_t read_number(qr_str text, double *ret_value)
{
    enum { DIGITS_MAX = 18 };
    double value = 0, unit = 1;
    size_t len = 0, digits = 0;
    bool has_point = false;
    for (; len < text.len && digits < DIGITS_MAX; len++) {
        const char c = text.ptr[len];
        if (c == '.' && !has_point) {
            has_point = true;
        } else if (c >= '0' && c <= '9') {
            unit /= has_point ? 10 : 1;
            value = has_point ? value + unit * (c - '0') : value * 10 + (c - '0');
            digits++;
        } else {
            break;
        }
    }
    *ret_value = value;
    return digits ? len : 0;
}

static size_t read_unit(qr_str text, double *ret_ms)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"us", 0.001}, {"ns", 0.000001}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", DAY_MS}};
    for (size_t i = 0; i < QR_COUNT(units); i++) {
        if (qr_str_starts_with(text, qr_str_of(units[i].name))) {
            *ret_ms = units[i].ms;
            return strlen(units[i].name);
        }
    }
    return 0;
}

bool qr_remote_duration_ms(qr_str text, int64_t *ret_ms)
{
    enum { PARTS_MAX = 6 };
    double sum_ms = 0;
    text = qr_str_trim(text);
    if (text.len == 0) {
        return false;
    }
    for (int part = 0; text.len > 0 && part < PARTS_MAX; part++) {
        double value, unit_ms = 1000;
        const size_t number_len = read_number(text, &value);
        if (number_len == 0) {
            return false;
        }
        text = (qr_str){text.ptr + number_len, text.len - number_len};
        const size_t unit_len = read_unit(text, &unit_ms);
        if (unit_len == 0 && (text.len > 0 || part > 0)) {
            return false;
        }
        text = (qr_str){text.ptr + unit_len, text.len - unit_len};
        sum_ms += value * unit_ms;
    }
    *ret_ms = bounded_ms(sum_ms);
    return text.len == 0;
}

static bool read_date_ms(qr_str text, int64_t wall_ms, int64_t *ret_ms)
{
    char date[64];
    if (text.len >= sizeof date) {
        return false;
    }
    memcpy(date, text.ptr, text.len);
    date[text.len] = '\0';
    const time_t seconds = memchr(date, ' ', text.len) ? curl_getdate(date, NULL) : -1;
    *ret_ms = bounded_ms((double)seconds * 1000 - (double)wall_ms);
    return seconds != -1;
}

/* A duration, or a time since 1970 in seconds or milliseconds. */
static bool read_reset_ms(qr_str text, int64_t wall_ms, int64_t *ret_ms)
{
    int64_t number;
    if (qr_str_to_i64(text, &number) && number >= EPOCH_MS_MIN) {
        const double since_1970_ms = number >= (int64_t)EPOCH_MS_MIN * 100 ? (double)number : (double)number * 1000;
        *ret_ms = bounded_ms(since_1970_ms - (double)wall_ms);
        return true;
    }
    return qr_remote_duration_ms(text, ret_ms) || read_date_ms(text, wall_ms, ret_ms);
}

/* ---- lines ---- */

static void take_remaining(struct qr_remote_headers *headers, int kind, qr_str value)
{
    double number;
    if (read_number(value, &number) > 0) {
        headers->remaining[kind] = (int64_t)QR_MIN(number, 1e15);
        headers->has_remaining[kind] = true;
    }
}

static void take_reset(struct qr_remote_headers *headers, int kind, qr_str value, int64_t wall_ms)
{
    int64_t reset_ms;
    if (read_reset_ms(value, wall_ms, &reset_ms)) {
        headers->reset_ms[kind] = reset_ms;
        headers->has_reset[kind] = true;
    }
}

/* `limit=100, remaining=50, reset=30`, or `"default";r=50;t=30` */
static void take_combined(struct qr_remote_headers *headers, qr_str value, int64_t wall_ms)
{
    while (value.len > 0) {
        size_t end = 0;
        while (end < value.len && value.ptr[end] != ';' && value.ptr[end] != ',') {
            end++;
        }
        qr_str field = qr_str_trim((qr_str){value.ptr, end});
        const qr_str name = qr_str_split(&field, '=');
        if (qr_str_equal(name, QR_STR("remaining")) || qr_str_equal(name, QR_STR("r"))) {
            take_remaining(headers, REQUESTS, field);
        } else if (qr_str_equal(name, QR_STR("reset")) || qr_str_equal(name, QR_STR("t"))) {
            take_reset(headers, REQUESTS, field, wall_ms);
        }
        end = QR_MIN(end + 1, value.len);
        value = (qr_str){value.ptr + end, value.len - end};
    }
}

static void take_field(struct qr_remote_headers *headers, qr_str name, qr_str value, int64_t wall_ms)
{
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {{"x-ratelimit-remaining-requests", REQUESTS},
                 {"x-ratelimit-remaining-tokens", TOKENS},
                 {"x-ratelimit-remaining", REQUESTS},
                 {"ratelimit-remaining", REQUESTS}},
      resets[] = {{"x-ratelimit-reset-requests", REQUESTS},
                  {"x-ratelimit-reset-tokens", TOKENS},
                  {"x-ratelimit-reset", REQUESTS},
                  {"ratelimit-reset", REQUESTS}};
    char small[40] = "";
    for (size_t i = 0; i < name.len && i < sizeof small - 1; i++) {
        small[i] = (char)(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] + 32 : name.ptr[i]);
    }
    for (size_t i = 0; i < QR_COUNT(kinds); i++) {
        if (strcmp(small, kinds[i].name) == 0) {
            take_remaining(headers, kinds[i].kind, value);
        } else if (strcmp(small, resets[i].name) == 0) {
            take_reset(headers, resets[i].kind, value, wall_ms);
        }
    }
    if (strcmp(small, "retry-after") == 0 && !read_reset_ms(value, wall_ms, &headers->retry_after_ms)) {
        headers->retry_after_ms = 0;
    } else if (strcmp(small, "retry-after-ms") == 0) {
        double ms;
        headers->retry_after_ms = read_number(value, &ms) == value.len ? bounded_ms(ms) : 0;
    } else if (strcmp(small, "ratelimit") == 0) {
        take_combined(headers, value, wall_ms);
    } else if (strcmp(small, "location") == 0) {
        snprintf(headers->location, sizeof headers->location, "%.*s", QR_STR_ARG(value));
    }
}

void qr_remote_headers_add(struct qr_remote_headers *headers, qr_str line, int64_t wall_ms)
{
    if (qr_str_starts_with(line, QR_STR("HTTP/"))) {
        *headers = (struct qr_remote_headers){0};
        return;
    }
    qr_str value = qr_str_trim(line);
    const qr_str name = qr_str_split(&value, ':');
    take_field(headers, name, qr_str_trim(value), wall_ms);
    struct qr_told *const told[] = {&headers->requests, &headers->tokens};
    for (int kind = REQUESTS; kind <= TOKENS; kind++) {
        *told[kind] = (struct qr_told){.is_known = headers->has_remaining[kind] && headers->has_reset[kind],
                                       .remaining = headers->remaining[kind],
                                       .reset_ms = headers->reset_ms[kind]};
    }
}
