#include "base/clock.h"
#include "support/test.h"

static const char *format(int64_t wall_ms)
{
    static char text[QR_TIME_TEXT_SIZE];
    qr_time_format(wall_ms, text);
    return text;
}

QR_TEST(time_is_written_as_rfc3339_in_utc_with_milliseconds)
{
    setenv("TZ", "America/New_York", 1); /* must not matter */
    QR_CHECK_TEXT("1970-01-01T00:00:00.000Z", format(0));
    QR_CHECK_TEXT("2026-11-15T04:29:17.042Z", format(INT64_C(1794716957042)));
    QR_CHECK_TEXT("2024-02-29T23:59:59.999Z", format(INT64_C(1709251199999)));
}

QR_TEST(milliseconds_before_1970_count_forward_from_the_second)
{
    QR_CHECK_TEXT("1969-12-31T23:59:59.999Z", format(-1));
    QR_CHECK_TEXT("1969-12-31T23:59:59.000Z", format(-1000));
    QR_CHECK_TEXT("1969-12-31T23:59:58.999Z", format(-1001));
}

QR_TEST(the_ends_of_the_range_fit)
{
    QR_CHECK_TEXT("292278994-08-17T07:12:55.807Z", format(INT64_MAX));
    QR_CHECK_TEXT("-292275055-05-16T16:47:04.192Z", format(INT64_MIN));
}

QR_TEST(the_system_clock_shows_the_present_and_its_monotonic_one_never_goes_back)
{
    const struct qr_clock *clock = qr_clock_system();
    QR_CHECK(qr_clock_wall_ms(clock) > INT64_C(1700000000000));
    int64_t last_ms = qr_clock_mono_ms(clock);
    for (int i = 0; i < 10000; i++) {
        const int64_t now_ms = qr_clock_mono_ms(clock);
        QR_CHECK(now_ms >= last_ms);
        last_ms = now_ms;
    }
}

QR_TEST(a_test_clock_stands_still_until_it_is_moved)
{
    const struct qr_clock *clock = qr_test_clock(5000);
    const int64_t mono_ms = qr_clock_mono_ms(clock);
    QR_CHECK_INT(5000, qr_clock_wall_ms(clock));
    qr_test_clock_advance(10);
    QR_CHECK_INT(5010, qr_clock_wall_ms(clock));
    QR_CHECK_INT(mono_ms + 10, qr_clock_mono_ms(clock));
    qr_test_clock_jump(-1000);
    QR_CHECK_INT(4010, qr_clock_wall_ms(clock));
    QR_CHECK_INT(mono_ms + 10, qr_clock_mono_ms(clock));
}
