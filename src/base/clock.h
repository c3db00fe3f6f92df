/* Time comes from a clock that is handed in, so that tests own it. */
#pragma once

#include "base/compiler.h"

struct qr_clock {
    /* Milliseconds since 1970 UTC: for records. May jump, both ways. */
    int64_t (*wall_ms)(const struct qr_clock *clock);
    /* Milliseconds since some start: for deadlines. Never goes back. */
    int64_t (*mono_ms)(const struct qr_clock *clock);
};

const struct qr_clock *qr_clock_system(void);

static inline int64_t qr_clock_wall_ms(const struct qr_clock *clock)
{
    return clock->wall_ms(clock);
}

static inline int64_t qr_clock_mono_ms(const struct qr_clock *clock)
{
    return clock->mono_ms(clock);
}

/* "2026-11-15T04:29:17.042Z" */
enum { QR_TIME_TEXT_SIZE = sizeof "+292278994-08-17T07:12:55.807Z" };
void qr_time_format(int64_t wall_ms, char ret_text[static QR_TIME_TEXT_SIZE]);
