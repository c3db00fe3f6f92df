/* How long embedding takes, as far as anybody can know. */
#include "handler/estimate.h"

#include "support/test.h"

static struct qr_embedding_settings settings(void)
{
    return (struct qr_embedding_settings){.provider = "openai", .limits = {.inputs = 32, .request_tokens = 100000}};
}

QR_TEST(a_time_is_said_of_a_model_whose_pace_or_limits_are_known)
{
    struct qr_embedding_settings embedding = settings();
    QR_CHECK_INT(-1, qr_estimate_seconds(&embedding, 0, 412, 190000));
    QR_CHECK_INT(180, qr_estimate_seconds(&embedding, 140, 420, 190000));
    embedding.limits.tokens_a_minute = 100000;
    QR_CHECK_INT(114, qr_estimate_seconds(&embedding, 0, 412, 190000));
    QR_CHECK_INT(0, qr_estimate_seconds(&embedding, 0, 0, 0));
}

QR_TEST(the_narrowest_of_pace_and_limits_counts)
{
    struct qr_embedding_settings embedding = settings();
    embedding.limits.requests_a_minute = 1;
    QR_CHECK_INT(600, qr_estimate_seconds(&embedding, 100000, 320, 1000)); /* 10 requests */
    QR_CHECK_INT(1200, qr_estimate_seconds(&embedding, 0, 320, 2000000));  /* 20, of 100 k tokens each */
    QR_CHECK_INT(1920, qr_estimate_seconds(&embedding, 10, 320, 1000));
}
