#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock_ms(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t system_wall_ms(const struct qr_clock *clock QR_UNUSED)
{
    return read_clock_ms(CLOCK_REALTIME);
}

static int64_t system_mono_ms(const struct qr_clock *clock QR_UNUSED)
{
    return read_clock_ms(CLOCK_MONOTONIC);
}

const struct qr_clock *qr_clock_system(void)
{
    static const struct qr_clock system_clock = {system_wall_ms, system_mono_ms};
    return &system_clock;
}

static char *add_digits(char *at, int value, int count, char behind)
{
    for (int i = count; i > 0; i--) {
        at[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    at[count] = behind;
    return at + count + 1;
}

/* Times stand in every answer and every line of the log, and strftime takes as long as the rest of one. */
static void format_usual(const struct tm *utc, int ms, char ret_text[static QR_TIME_TEXT_SIZE])
{
    char *at = add_digits(ret_text, utc->tm_year + 1900, 4, '-');
    at = add_digits(at, utc->tm_mon + 1, 2, '-');
    at = add_digits(at, utc->tm_mday, 2, 'T');
    at = add_digits(at, utc->tm_hour, 2, ':');
    at = add_digits(at, utc->tm_min, 2, ':');
    at = add_digits(at, utc->tm_sec, 2, '.');
    at = add_digits(at, ms, 3, 'Z');
    *at = '\0';
}

void qr_time_format(int64_t wall_ms, char ret_text[static QR_TIME_TEXT_SIZE])
{
    /* milliseconds are counted forward from the second, also before 1970 */
    const int64_t ms = ((wall_ms % 1000) + 1000) % 1000;
    const time_t seconds = (time_t)(wall_ms / 1000 - (wall_ms % 1000 < 0));
    struct tm utc;
    if (!gmtime_r(&seconds, &utc)) {
        utc = (struct tm){.tm_year = 70, .tm_mday = 1};
    }
    if (utc.tm_year >= 1000 - 1900 && utc.tm_year <= 9999 - 1900) {
        format_usual(&utc, (int)ms, ret_text);
        return;
    }
    char seconds_text[QR_TIME_TEXT_SIZE - sizeof ".000Z" + 1];
    strftime(seconds_text, sizeof seconds_text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(ret_text, QR_TIME_TEXT_SIZE, "%s.%03uZ", seconds_text, (unsigned)ms % 1000U);
}
