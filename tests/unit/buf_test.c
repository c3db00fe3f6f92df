#include "base/buf.h"
#include "base/mem.h"
#include "support/test.h"

QR_TEST(content_ends_with_nul_and_may_hold_nul)
{
    struct qr_buf buf;
    qr_err err;
    qr_buf_init(&buf, 0);
    QR_CHECK_STR("", qr_buf_str(&buf));
    qr_buf_add(&buf, QR_STR("a\0b"));
    qr_buf_add_char(&buf, '-');
    qr_buf_add_text(&buf, "text");
    qr_buf_printf(&buf, " %d%%", 100);
    QR_CHECK(qr_str_equal(QR_STR("a\0b-text 100%"), qr_buf_str(&buf)));
    QR_CHECK_INT('\0', buf.data[buf.len]);
    QR_CHECK_RC(QR_OK, qr_buf_check(&buf, &err));
    qr_buf_done(&buf);
}

QR_TEST(it_grows_over_any_number_of_appends)
{
    struct qr_buf buf;
    qr_buf_init(&buf, 0);
    for (int i = 0; i < 100000; i++) {
        qr_buf_printf(&buf, "%d", i % 10);
    }
    QR_CHECK_INT(100000, buf.len);
    for (size_t i = 0; i < buf.len; i++) {
        QR_CHECK_INT('0' + (int)(i % 10), buf.data[i]);
    }
    qr_buf_done(&buf);
}

QR_TEST(the_limit_is_sticky_and_the_content_stays_a_prefix)
{
    struct qr_buf buf;
    qr_err err;
    qr_buf_init(&buf, 5);
    qr_buf_add_text(&buf, "abc");
    qr_buf_add_text(&buf, "defg"); /* does not fit */
    qr_buf_add_text(&buf, "h");    /* would, but what comes before it is missing */
    QR_CHECK_STR("abc", qr_buf_str(&buf));
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE, qr_buf_check(&buf, &err));
    QR_CHECK(!qr_buf_reserve(&buf, 0));
    QR_CHECK(!qr_buf_take(&buf, NULL));
    qr_buf_clear(&buf);
    QR_CHECK_RC(QR_OK, qr_buf_check(&buf, &err));
    qr_buf_add_text(&buf, "12345");
    QR_CHECK_RC(QR_OK, qr_buf_check(&buf, &err));
    QR_CHECK_STR("12345", qr_buf_str(&buf));
    qr_buf_done(&buf);
}

QR_TEST(a_size_that_overflows_is_an_error)
{
    struct qr_buf buf;
    qr_buf_init(&buf, 0);
    qr_buf_add_text(&buf, "abc");
    QR_CHECK(!qr_buf_reserve(&buf, SIZE_MAX - 1));
    QR_CHECK_INT(QR_CODE_PAYLOAD_TOO_LARGE, buf.failed);
    qr_buf_clear(&buf);
    QR_CHECK(!qr_buf_reserve(&buf, SIZE_MAX)); /* with the NUL behind it */
    QR_CHECK_INT(QR_CODE_PAYLOAD_TOO_LARGE, buf.failed);
    qr_buf_done(&buf);
}

static void *never_resize(void *old QR_UNUSED, size_t size_bytes QR_UNUSED)
{
    return NULL;
}

QR_TEST(out_of_memory_is_sticky_and_loses_nothing_before_it)
{
    static const struct qr_mem_hooks hooks = {malloc, never_resize, free};
    struct qr_buf buf;
    qr_err err;
    qr_buf_init(&buf, 0);
    qr_buf_add_text(&buf, "kept");
    qr_mem_set_hooks(&hooks);
    while (buf.failed == QR_CODE_NONE) {
        qr_buf_add_char(&buf, '.');
    }
    qr_mem_set_hooks(NULL);
    const size_t len = buf.len;
    qr_buf_add_text(&buf, "more");
    QR_CHECK_INT(len, buf.len);
    QR_CHECK_CODE(QR_CODE_OUT_OF_MEMORY, qr_buf_check(&buf, &err));
    QR_CHECK(qr_str_starts_with(qr_buf_str(&buf), QR_STR("kept....")));
    qr_buf_done(&buf);
}

QR_TEST(reserved_room_is_counted_when_it_is_filled)
{
    struct qr_buf buf;
    qr_buf_init(&buf, 0);
    qr_buf_add_text(&buf, "a");
    char *room = qr_buf_reserve(&buf, 1000);
    room[0] = 'b';
    room[1] = 'c';
    qr_buf_grown(&buf, 2);
    QR_CHECK_STR("abc", qr_buf_str(&buf));
    QR_CHECK_TEXT("abc", buf.data);
    qr_buf_done(&buf);
}

QR_TEST(taken_content_is_the_callers_and_the_buffer_starts_anew)
{
    struct qr_buf buf;
    qr_buf_init(&buf, 10);
    size_t len = 1;
    char *empty = qr_buf_take(&buf, &len);
    QR_CHECK_TEXT("", empty);
    QR_CHECK_INT(0, len);
    qr_free(empty);
    qr_buf_add_text(&buf, "abc");
    char *taken = qr_buf_take(&buf, &len);
    QR_CHECK_TEXT("abc", taken);
    QR_CHECK_INT(3, len);
    QR_CHECK_INT(0, buf.len);
    qr_buf_add_text(&buf, "12345678901"); /* the limit stays */
    QR_CHECK_INT(QR_CODE_PAYLOAD_TOO_LARGE, buf.failed);
    QR_CHECK_TEXT("abc", taken);
    qr_free(taken);
    qr_buf_done(&buf);
}
