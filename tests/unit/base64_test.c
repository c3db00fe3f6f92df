/* Base64. */
#include "base/base64.h"
#include "support/test.h"

QR_TEST(base64_is_written_and_read_as_the_standard_has_it)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {{"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"foobar", "Zm9vYmFy"},
                 {"\xff\xfe\xfd", "//79"}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0}, bytes = {0};
        qr_test_set_context("%s", cases[i].text);
        qr_base64_add(&text, qr_str_of(cases[i].bytes));
        QR_CHECK_STR(cases[i].text, qr_buf_str(&text));
        QR_CHECK(qr_base64_read(qr_buf_str(&text), &bytes));
        QR_CHECK_STR(cases[i].bytes, qr_buf_str(&bytes));
    }
}

QR_TEST(base64_is_read_without_padding_and_across_lines)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
    QR_CHECK(qr_base64_read(QR_STR("Zm9v\r\n YmE"), &bytes));
    QR_CHECK_STR("fooba", qr_buf_str(&bytes));
}

QR_TEST(what_is_no_base64_is_not_read)
{
    static const char *const wrong[] = {"Z", "Zm9vY", "Zm=v", "Z===", "Zg=", "Zm9v=", "Zm9*", "Zm9v-_"};
    for (size_t i = 0; i < QR_COUNT(wrong); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
        qr_test_set_context("%s", wrong[i]);
        QR_CHECK(!qr_base64_read(qr_str_of(wrong[i]), &bytes));
    }
}
