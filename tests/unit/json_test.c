#include "base/json.h"
#include "support/test.h"

static qr_err err;

static qr_rc parse(qr_str text, json_t **ret_value)
{
    return qr_json_parse(text, &QR_JSON_REQUEST_LIMITS, ret_value, &err);
}

static void check_rewrites_as(const char *expected, const char *text)
{
    QR_JSON *value = NULL;
    QR_CHECK_RC(QR_OK, parse(qr_str_of(text), &value));
    struct qr_buf out;
    qr_buf_init(&out, 0);
    QR_CHECK_RC(QR_OK, qr_json_write(value, &out, &err));
    QR_CHECK_STR(expected, qr_buf_str(&out));
    qr_buf_done(&out);
}

QR_TEST(json_is_read_and_written_compactly_with_keys_in_their_order)
{
    check_rewrites_as("{\"z\":[1,-2.5,true,null],\"a\":{\"\":\"x\"}}",
                      " { \"z\" : [ 1 , -2.5 , true , null ] , \"a\" : { \"\" : \"x\" } } \n");
    check_rewrites_as("\"alone\"", "\"alone\"");
    check_rewrites_as("0", "0");
    check_rewrites_as("null", "null");
    check_rewrites_as("[]", "[]");
    check_rewrites_as("\"\xC3\xA4 \xF0\x9F\x98\x80 /\"", "\"\\u00e4 \\ud83d\\ude00 \\/\"");
    check_rewrites_as("9223372036854775807", "9223372036854775807");
}

QR_TEST(what_is_not_strict_json_is_a_bad_request)
{
    static const qr_str bad[] = {
        {NULL, 0},
        QR_STR(""),
        QR_STR(" "),
        QR_STR("{"),
        QR_STR("[1,]"),
        QR_STR("{\"a\":1,}"),
        QR_STR("{a:1}"),
        QR_STR("'a'"),
        QR_STR("[1] 2"),
        QR_STR("01"),
        QR_STR("+1"),
        QR_STR("1."),
        QR_STR(".5"),
        QR_STR("NaN"),
        QR_STR("1e999"),
        QR_STR("9223372036854775808"),
        QR_STR("\"\n\""),
        QR_STR("\"\\x\""),
        QR_STR("\"\\ud800\""),
        QR_STR("\"\xFF\""),
        QR_STR("\"\xC0\x80\""),
        QR_STR("\"\xED\xA0\x80\""),
        QR_STR("\xEF\xBB\xBF{}"),
        QR_STR("{\"a\":1,\"a\":2}"),
        QR_STR("{\"a\":{\"b\":1,\"b\":1}}"),
        QR_STR("]]"),
        QR_STR("/* c */ 1"),
        QR_STR("tru"),
    };
    for (size_t i = 0; i < QR_COUNT(bad); i++) {
        json_t *value = NULL;
        QR_CHECK_CODE(QR_CODE_BAD_REQUEST, parse(bad[i], &value));
        QR_CHECK(!value);
        QR_CHECK_HAS("not valid JSON: line ", err.msg);
    }
}

QR_TEST(nul_is_refused_in_every_form)
{
    static const qr_str bad[] = {QR_STR("\"a\0b\""),    QR_STR("[1]\0"),           QR_STR("\0"),
                                 QR_STR("\"\\u0000\""), QR_STR("{\"\\u0000\":1}"), QR_STR("{\"a\\u0000b\":1}")};
    for (size_t i = 0; i < QR_COUNT(bad); i++) {
        json_t *value;
        QR_CHECK_CODE(QR_CODE_BAD_REQUEST, parse(bad[i], &value));
        QR_CHECK_HAS("NUL is not allowed", err.msg);
    }
}

QR_TEST(a_mistake_is_told_by_line_and_column_and_never_quoted)
{
    json_t *value;
    QR_CHECK_RC(QR_INVALID, parse(QR_STR("{\n  \"key\": \"sk-secret\" \"sk-secret2\"\n}"), &value));
    QR_CHECK_HAS("line 2, column ", err.msg);
    QR_CHECK(!strstr(err.msg, "sk-"));
    QR_CHECK_RC(QR_INVALID, parse(QR_STR("[\n\"\xC3\xA4\", \0]"), &value));
    QR_CHECK_HAS("line 2, column 6: NUL", err.msg);
}

static qr_rc parse_nested(unsigned depth, const char *open, const char *close)
{
    struct qr_buf text;
    qr_buf_init(&text, 0);
    for (unsigned i = 0; i < depth; i++) {
        qr_buf_add_text(&text, open);
    }
    qr_buf_add_text(&text, "1");
    for (unsigned i = 0; i < depth; i++) {
        qr_buf_add_text(&text, close);
    }
    QR_JSON *value = NULL;
    const qr_rc rc = parse(qr_buf_str(&text), &value);
    qr_buf_done(&text);
    return rc;
}

QR_TEST(nesting_ends_at_the_limit)
{
    QR_CHECK_RC(QR_OK, parse_nested(64, "[", "]"));
    QR_CHECK_CODE(QR_CODE_BAD_REQUEST, parse_nested(65, "[", "]"));
    QR_CHECK_HAS("line 1, column 65: nested too deeply", err.msg);
    QR_CHECK_RC(QR_OK, parse_nested(64, "{\"\\\"[\":", "}"));
    QR_CHECK_CODE(QR_CODE_BAD_REQUEST, parse_nested(65, "{\"\\\"[\":", "}"));
    QR_CHECK_CODE(QR_CODE_BAD_REQUEST, parse_nested(1000000, "[", "]"));
}

QR_TEST(brackets_in_strings_and_beside_each_other_are_no_nesting)
{
    struct qr_buf text;
    qr_buf_init(&text, 0);
    qr_buf_add_text(&text, "[\"");
    for (int i = 0; i < 1000; i++) {
        qr_buf_add_text(&text, "[{\\\"");
    }
    qr_buf_add_text(&text, "\"");
    for (int i = 0; i < 1000; i++) {
        qr_buf_add_text(&text, ",[],{}");
    }
    qr_buf_add_text(&text, "]");
    QR_JSON *value = NULL;
    QR_CHECK_RC(QR_OK, parse(qr_buf_str(&text), &value));
    qr_buf_done(&text);
}

QR_TEST(size_and_number_of_values_are_limited)
{
    const struct qr_json_limits limits = {.size_bytes_max = 20, .depth_max = 3, .values_max = 5};
    QR_JSON *fits = NULL;
    json_t *value;
    QR_CHECK_RC(QR_OK, qr_json_parse(QR_STR("\"12345678,,,,,,,,,]\""), &limits, &fits, &err));
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE, qr_json_parse(QR_STR("\"12345678,,,,,,,,,]\" "), &limits, &value, &err));
    QR_CHECK_HAS("larger than 20 bytes", err.msg);
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE, qr_json_parse(QR_STR("[1,2,3,4,5,6]"), &limits, &value, &err));
    QR_CHECK_HAS("more than 5 values", err.msg);
    QR_JSON *few = NULL;
    QR_CHECK_RC(QR_OK, qr_json_parse(QR_STR("[1,2,3,4]"), &limits, &few, &err));
}

QR_TEST(writing_stops_at_the_buffers_limit)
{
    QR_JSON *value = json_pack("[s]", "more than ten bytes");
    struct qr_buf out;
    qr_buf_init(&out, 10);
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE, qr_json_write(value, &out, &err));
    qr_buf_done(&out);
}

QR_TEST(an_added_string_is_json_whatever_the_bytes)
{
    struct qr_buf out;
    qr_buf_init(&out, 0);
    qr_json_add_string(&out, QR_STR("a\"b\\c\n\r\t\b\x1F\x7F\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"));
    QR_CHECK_STR("\"a\\\"b\\\\c\\n\\r\\t\\u0008\\u001f\\u007f\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"", qr_buf_str(&out));
    qr_buf_clear(&out);
    qr_json_add_string(&out, QR_STR("\xFF\xE2\x82x\xC3"));
    QR_CHECK_STR("\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx\xEF\xBF\xBD\"", qr_buf_str(&out));
    qr_buf_clear(&out);
    qr_json_add_string(&out, (qr_str){NULL, 0});
    QR_CHECK_STR("\"\"", qr_buf_str(&out));
    qr_buf_done(&out);
}

QR_TEST(an_added_string_reads_back_as_it_was)
{
    char text[128 - 1];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)(i + 1);
    }
    struct qr_buf out;
    qr_buf_init(&out, 0);
    qr_json_add_string(&out, (qr_str){text, sizeof text});
    QR_JSON *value = NULL;
    QR_CHECK_RC(QR_OK, parse(qr_buf_str(&out), &value));
    QR_CHECK_INT(sizeof text, json_string_length(value));
    QR_CHECK_INT(0, memcmp(text, json_string_value(value), sizeof text));
    qr_buf_done(&out);
}

static void check_error(const char *expected, const qr_err *error, json_t *details)
{
    QR_JSON *value = qr_json_error(error, details);
    struct qr_buf out;
    qr_buf_init(&out, 0);
    QR_CHECK_RC(QR_OK, qr_json_write(value, &out, &err));
    QR_CHECK_STR(expected, qr_buf_str(&out));
    qr_buf_done(&out);
}

QR_TEST(an_error_has_code_message_and_perhaps_details)
{
    qr_err error;
    qr_fail(&error, QR_CODE_NOT_FOUND, "no base \"x\"");
    check_error("{\"error\":{\"code\":\"not_found\",\"message\":\"no base \\\"x\\\"\"}}", &error, NULL);
    check_error("{\"error\":{\"code\":\"not_found\",\"message\":\"no base \\\"x\\\"\",\"details\":{\"n\":1}}}", &error,
                json_pack("{s:i}", "n", 1));
}

QR_TEST(an_error_whose_message_is_not_utf8_is_still_an_error)
{
    qr_err error;
    qr_fail(&error, QR_CODE_NOT_FOUND, "no file \xFF\xFE");
    check_error("{\"error\":{\"code\":\"not_found\",\"message\":\"no file ??\"}}", &error, NULL);
    char bytes[QR_ERR_MSG_SIZE];
    memset(bytes, 0xFF, sizeof bytes);
    bytes[sizeof bytes - 1] = '\0';
    qr_fail(&error, QR_CODE_NOT_FOUND, "%s", bytes);
    QR_JSON *value = qr_json_error(&error, NULL);
    QR_CHECK(value);
}

QR_TEST(field_that_is_not_known_is_refused_with_the_nearest_one)
{
    QR_JSON *object = json_pack("{s:i, s:i}", "name", 1, "setings", 2);
    QR_CHECK_RC(QR_OK, qr_json_require_fields(object, "", "setings name", &err));
    QR_CHECK_CODE(QR_CODE_UNKNOWN_FIELD, qr_json_require_fields(object, "", "name settings", &err));
    QR_CHECK_HAS("\"setings\"; did you mean \"settings\"?", err.msg);
    QR_CHECK_CODE(QR_CODE_UNKNOWN_FIELD, qr_json_require_fields(object, "", "name", &err));
    QR_CHECK_HAS("\"setings\"; known: name", err.msg);
    QR_CHECK_CODE(QR_CODE_UNKNOWN_FIELD, qr_json_require_fields(object, "base.", "name settings", &err));
    QR_CHECK_HAS("\"base.setings\"; did you mean \"base.settings\"?", err.msg);
}
