#include "support/test.h"

QR_TEST(order_is_by_bytes_and_shorter_first)
{
    QR_CHECK(qr_str_compare(QR_STR("a"), QR_STR("b")) < 0);
    QR_CHECK(qr_str_compare(QR_STR("a"), QR_STR("aa")) < 0);
    QR_CHECK(qr_str_compare(QR_STR("\xC3\xA4"), QR_STR("z")) > 0);
    QR_CHECK(qr_str_compare(QR_STR("a\0b"), QR_STR("a\0c")) < 0);
    QR_CHECK_INT(0, qr_str_compare(QR_STR(""), (qr_str){NULL, 0}));
}

QR_TEST(the_null_string_is_an_empty_string)
{
    const qr_str null = qr_str_of(NULL);
    QR_CHECK(qr_str_equal(null, QR_STR("")));
    QR_CHECK(qr_str_starts_with(null, null) && qr_str_ends_with(null, null));
    QR_CHECK(!qr_str_starts_with(null, QR_STR("a")) && !qr_str_ends_with(null, QR_STR("a")));
    QR_CHECK_INT(0, qr_str_trim(null).len);
    QR_CHECK(qr_utf8_valid(null));
    QR_CHECK_INT(0, qr_utf8_prefix(null, 3).len);
    QR_CHECK_INT(0, qr_utf8_char_len(null));
    QR_CHECK_INT(1, qr_str_distance(null, QR_STR("a"), 5));
    qr_str rest = null;
    QR_CHECK_INT(0, qr_str_split(&rest, ',').len);
    int64_t value;
    QR_CHECK(!qr_str_to_i64(null, &value));
}

QR_TEST(case_of_letters_can_be_passed_over)
{
    QR_CHECK(qr_str_equal_any_case(QR_STR("Content-Type"), QR_STR("CONTENT-type")));
    QR_CHECK(!qr_str_equal_any_case(QR_STR("Content-Type"), QR_STR("Content-Typ")));
    QR_CHECK(!qr_str_equal_any_case(QR_STR("a"), QR_STR("b")));
    QR_CHECK(qr_str_equal_any_case((qr_str){0}, QR_STR("")));
}

QR_TEST(prefix_and_suffix)
{
    QR_CHECK(qr_str_starts_with(QR_STR("papers"), QR_STR("pap")));
    QR_CHECK(!qr_str_starts_with(QR_STR("pap"), QR_STR("papers")));
    QR_CHECK(qr_str_ends_with(QR_STR("papers"), QR_STR("ers")));
    QR_CHECK(!qr_str_ends_with(QR_STR("papers"), QR_STR("er")));
    QR_CHECK_STR("a b", qr_str_trim(QR_STR(" \t\r\na b\v\f ")));
    QR_CHECK_STR("", qr_str_trim(QR_STR("   ")));
}

QR_TEST(split_takes_part_and_separator)
{
    qr_str rest = QR_STR("a,,b");
    QR_CHECK_STR("a", qr_str_split(&rest, ','));
    QR_CHECK_STR("", qr_str_split(&rest, ','));
    QR_CHECK_STR("b", qr_str_split(&rest, ','));
    QR_CHECK_INT(0, rest.len);
    QR_CHECK_STR("", qr_str_split(&rest, ','));
}

QR_TEST(numbers_are_whole_and_fit)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0}, {"-0", 0}, {"007", 7}, {"9223372036854775807", INT64_MAX}, {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      "+7",
                                      "--1",
                                      "1 ",
                                      " 1",
                                      "1x",
                                      "0x1",
                                      "1.0",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999"};
    for (size_t i = 0; i < QR_COUNT(good); i++) {
        int64_t value = 1;
        QR_CHECK(qr_str_to_i64(qr_str_of(good[i].text), &value));
        QR_CHECK_INT(good[i].value, value);
    }
    for (size_t i = 0; i < QR_COUNT(bad); i++) {
        int64_t value = 42;
        QR_CHECK(!qr_str_to_i64(qr_str_of(bad[i]), &value));
        QR_CHECK_INT(42, value);
    }
}

/* The definition, written another way: decode, then look. */
static bool is_valid_by_definition(const unsigned char *s, size_t len)
{
    size_t i = 0;
    while (i < len) {
        const unsigned char c = s[i];
        const size_t more = c < 0x80 ? 0 : (c & 0xE0) == 0xC0 ? 1 : (c & 0xF0) == 0xE0 ? 2 : (c & 0xF8) == 0xF0 ? 3 : 9;
        static const unsigned char masks[] = {0x7F, 0x1F, 0x0F, 0x07};
        static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
        if (more > 3 || more >= len - i) {
            return false;
        }
        uint32_t point = c & masks[more];
        for (size_t k = 1; k <= more; k++) {
            if ((s[i + k] & 0xC0) != 0x80) {
                return false;
            }
            point = point << 6 | (s[i + k] & 0x3F);
        }
        if (point < smallest[more] || (point >= 0xD800 && point < 0xE000) || point > 0x10FFFF) {
            return false;
        }
        i += more + 1;
    }
    return true;
}

QR_TEST(utf8_is_strict_over_all_texts_of_up_to_three_bytes)
{
    for (unsigned n = 0; n < 1U << 24; n++) {
        const unsigned char bytes[] = {(unsigned char)n, (unsigned char)(n >> 8), (unsigned char)(n >> 16)};
        if (bytes[0] < 0x80 && bytes[0] != 'a') {
            continue; /* one letter stands for all of ASCII */
        }
        if (qr_utf8_valid((qr_str){(const char *)bytes, 3}) != is_valid_by_definition(bytes, 3)) {
            QR_FAIL("wrong about %02x %02x %02x", bytes[0], bytes[1], bytes[2]);
        }
    }
}

QR_TEST(utf8_of_four_bytes_ends_at_10ffff)
{
    for (unsigned first = 0xF0; first < 0x100; first++) {
        for (unsigned second = 0; second < 0x100; second++) {
            const unsigned char bytes[] = {(unsigned char)first, (unsigned char)second, 0x80, 0xBF};
            QR_CHECK_INT(is_valid_by_definition(bytes, 4), qr_utf8_valid((qr_str){(const char *)bytes, 4}));
            QR_CHECK(!qr_utf8_valid((qr_str){(const char *)bytes, 3}));
        }
    }
}

QR_TEST(utf8_mistakes_are_found_behind_long_ascii)
{
    char text[64];
    memset(text, 'a', sizeof text);
    QR_CHECK(qr_utf8_valid((qr_str){text, sizeof text}));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)0xC3;
        QR_CHECK(!qr_utf8_valid((qr_str){text, sizeof text}));
        text[i] = 'a';
    }
}

QR_TEST(a_prefix_never_cuts_a_character)
{
    const qr_str text = QR_STR("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z");
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t len = 0; len < QR_COUNT(expected); len++) {
        QR_CHECK_INT(expected[len], qr_utf8_prefix(text, len).len);
    }
}

QR_TEST(distance_counts_single_edits)
{
    QR_CHECK_INT(0, qr_str_distance(QR_STR("title"), QR_STR("title"), 3));
    QR_CHECK_INT(1, qr_str_distance(QR_STR("titel"), QR_STR("tite"), 3));
    QR_CHECK_INT(2, qr_str_distance(QR_STR("titel"), QR_STR("title"), 3));
    QR_CHECK_INT(3, qr_str_distance(QR_STR("kitten"), QR_STR("sitting"), 9));
    QR_CHECK_INT(2, qr_str_distance(QR_STR("kitten"), QR_STR("sitting"), 2));
    QR_CHECK_INT(4, qr_str_distance(QR_STR(""), QR_STR("four"), 9));
    char word[65];
    memset(word, 'a', sizeof word);
    QR_CHECK_INT(5, qr_str_distance((qr_str){word, 65}, (qr_str){word, 65}, 5));
    QR_CHECK_INT(0, qr_str_distance((qr_str){word, 64}, (qr_str){word, 64}, 5));
}
