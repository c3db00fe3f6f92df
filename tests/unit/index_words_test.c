/* What of a typed query reaches the database. */
#include "index/words.h"

#include "support/test.h"

static void check_words(const char *expected, qr_str typed)
{
    struct qr_buf out = {0};
    qr_words_for_fts5(&out, typed);
    QR_CHECK_INT(QR_CODE_NONE, out.failed);
    QR_CHECK_STR(expected, qr_buf_str(&out));
    qr_buf_done(&out);
}

QR_TEST(words_are_quoted_and_joined_once_each)
{
    check_words("", QR_STR(""));
    check_words("\"alpha\"", QR_STR("alpha"));
    check_words("\"alpha\" OR \"beta\"", QR_STR(" alpha,beta alpha "));
    check_words("\"Äpfel\" OR \"東京\"", QR_STR("Äpfel 東京"));
    struct qr_buf out = {0};
    qr_words_for_tsquery(&out, QR_STR("a b"));
    QR_CHECK_STR("'a' | 'b'", qr_buf_str(&out));
    qr_buf_done(&out);
}

QR_TEST(nothing_but_words_gets_through)
{
    check_words("\"a\" OR \"b\"", QR_STR("a\"b"));
    check_words("\"NEAR\" OR \"a\" OR \"10\"", QR_STR("NEAR(a, 10)"));
    check_words("\"text\" OR \"x\"", QR_STR("{text}:x*"));
    check_words("\"a\" OR \"b\"", QR_STR("a\0b"));
    check_words("\"a\" OR \"b\"", QR_STR("a\xff"
                                         "b\xc3"));
    check_words("", QR_STR("\"'\\*^()-:+|&!<>"));
}

QR_TEST(a_query_has_a_limited_number_of_words_of_limited_length)
{
    char typed[8 * 1000];
    size_t len = 0;
    for (int i = 0; i < 1000; i++) {
        len += (size_t)snprintf(typed + len, sizeof typed - len, "w%d ", i);
    }
    struct qr_buf out = {0};
    qr_words_for_fts5(&out, (qr_str){typed, len});
    size_t quotes = 0;
    for (size_t i = 0; i < out.len; i++) {
        quotes += out.data[i] == '"';
    }
    QR_CHECK_INT(2 * QR_WORDS_MAX, quotes);
    qr_buf_clear(&out);
    memset(typed, 'x', sizeof typed);
    qr_words_for_fts5(&out, (qr_str){typed, sizeof typed});
    QR_CHECK_INT(QR_WORD_BYTES_MAX + 2, out.len);
    qr_buf_done(&out);
}
