#include "embed/pace.h"

#include "support/test.h"

QR_TEST(a_pace_is_told_after_a_second_of_calls_and_then_seldom)
{
    struct qr_pace pace = {0};
    qr_pace_begin(&pace, 5000);
    QR_CHECK_INT(0, qr_pace_hear(&pace, 10, 5900));
    QR_CHECK_INT(20 * 60, qr_pace_hear(&pace, 10, 6000)); /* 20 in a second */
    QR_CHECK_INT(0, qr_pace_hear(&pace, 20, 7000));
    QR_CHECK_INT(0, qr_pace_hear(&pace, 20, 15999));
    QR_CHECK_INT(60 * 60 / 11, qr_pace_hear(&pace, 0, 16000));
}

QR_TEST(time_without_a_call_does_not_count)
{
    struct qr_pace pace = {0};
    qr_pace_begin(&pace, 0);
    qr_pace_begin(&pace, 0); /* two at once are as long as one */
    QR_CHECK_INT(0, qr_pace_hear(&pace, 15, 500));
    qr_pace_end(&pace, 500);
    qr_pace_end(&pace, 500);
    qr_pace_begin(&pace, 3600000);
    QR_CHECK_INT(30 * 60, qr_pace_hear(&pace, 15, 3600500));
}

QR_TEST(what_is_long_ago_counts_less_and_less)
{
    struct qr_pace pace = {0};
    int64_t now_ms = 0, told = 0;
    qr_pace_begin(&pace, now_ms);
    for (int i = 0; i < 200; i++) { /* a slow half of an hour */
        now_ms += 10000;
        told = qr_pace_hear(&pace, 10, now_ms);
    }
    QR_CHECK(told == 59 || told == 60);
    for (int i = 0; i < 60; i++) { /* ten times as fast for ten minutes */
        now_ms += 10000;
        told = qr_pace_hear(&pace, 100, now_ms);
    }
    QR_CHECK(told > 550 && told <= 600);
}

QR_TEST(a_pace_is_never_none)
{
    struct qr_pace pace = {0};
    qr_pace_begin(&pace, 0);
    QR_CHECK_INT(1, qr_pace_hear(&pace, 1, 3600000));
}
