/* What servers say when they refuse, and in their headers: every shape that we know of, as a table. */
#include "remote/refusal.h"

#include "remote/headers.h"
#include "remote/key.h"
#include "support/test.h"

/* ---- refusals ---- */

static const struct {
    int status;
    const char *body;
    enum qr_refusal refusal;
    const char *words;
} cases[] = {
    /* shapes */
    {400, "{\"error\":{\"message\":\"bad input\",\"type\":\"invalid_request_error\",\"code\":null}}",
     QR_REFUSAL_REQUEST, "bad input"},
    {400, "{\"error\":\"bad input\"}", QR_REFUSAL_REQUEST, "bad input"},
    {400, "{\"message\":\"bad input\"}", QR_REFUSAL_REQUEST, "bad input"},
    {400, "{\"object\":\"error\",\"message\":\"bad input\",\"type\":\"BadRequestError\",\"code\":400}",
     QR_REFUSAL_REQUEST, "bad input"},
    {422, "{\"detail\":\"bad input\"}", QR_REFUSAL_REQUEST, "bad input"},
    {422,
     "{\"detail\":[{\"loc\":[\"body\",\"input\",0],\"msg\":\"field required\",\"type\":\"missing\"},"
     "{\"loc\":[\"body\",\"model\"],\"msg\":\"field required\"}]}",
     QR_REFUSAL_REQUEST, "body.input: field required; body.model: field required"},
    {400, "[{\"error\":{\"code\":400,\"message\":\"bad input\",\"status\":\"INVALID_ARGUMENT\"}}]", QR_REFUSAL_REQUEST,
     "bad input"},
    {400, "{\"success\":false,\"errors\":[{\"code\":7,\"message\":\"bad input\"}]}", QR_REFUSAL_REQUEST, "bad input"},
    {400, "{\"errors\":[\"one\",\"two\",\"three\",\"four\"]}", QR_REFUSAL_REQUEST, "one; two; three"},
    {400, "{\"error\":{\"message\":{\"detail\":\"deep\"}}}", QR_REFUSAL_REQUEST, "deep"},
    {400, "{\"title\":\"Bad\",\"status\":400}", QR_REFUSAL_REQUEST, "Bad"},
    {400, "plain  text\r\n\tof a\x01 proxy ", QR_REFUSAL_REQUEST, "plain text of a proxy"},
    {400, "{\"error\": \"cut", QR_REFUSAL_REQUEST, "{\"error\": \"cut"},
    {400, "", QR_REFUSAL_REQUEST, ""},
    {400, "{}", QR_REFUSAL_REQUEST, "{}"},
    {400, "caf\xc3\xa9 \xff\xfe \xc2\x9b\x33", QR_REFUSAL_REQUEST, "caf\xc3\xa9 3"},
    {502, "<html>\r\n<head><title>502 Bad Gateway</title></head><body>nginx</body></html>", QR_REFUSAL_SERVER,
     "502 Bad Gateway"},
    {502, "<h1>Away</h1><p>come <b>back</b></p>", QR_REFUSAL_SERVER, "Away come back"},
    {307, "", QR_REFUSAL_REQUEST, ""},
    /* too large, whatever the status */
    {413, "", QR_REFUSAL_TOO_LARGE, ""},
    {413, "<html><head><title>413 Request Entity Too Large</title></head></html>", QR_REFUSAL_TOO_LARGE,
     "413 Request Entity Too Large"},
    {400,
     "{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens, however you requested 9000 tokens "
     "(9000 in your prompt; 0 for the completion).\",\"type\":\"invalid_request_error\"}}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {400,
     "{\"error\":{\"message\":\"Invalid 'input': array too long. Expected an array with maximum length 2048, but got "
     "an "
     "array with length 3000 instead.\",\"code\":\"array_above_max_length\"}}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {400,
     "{\"error\":{\"message\":\"Requested 300450 tokens, max 300000 tokens per request\",\"type\":"
     "\"max_tokens_per_request\",\"code\":\"max_tokens_per_request\"}}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {400, "{\"error\":\"the input length exceeds the context length\"}", QR_REFUSAL_TOO_LARGE, NULL},
    {500,
     "{\"error\":{\"code\":500,\"message\":\"input is too large to process. increase the physical batch size\","
     "\"type\":\"server_error\"}}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {500,
     "{\"error\":{\"code\":500,\"message\":\"input (900 tokens) is too large to process. increase the physical batch "
     "size (current batch size: 512)\",\"type\":\"server_error\"}}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {400,
     "{\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size, try increasing it\","
     "\"type\":\"exceed_context_size_error\"}}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {422,
     "{\"error\":\"Input validation error: `inputs` must have less than 512 tokens. Given: 900\",\"error_type\":"
     "\"Validation\"}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {422, "{\"error\":\"batch size 64 > maximum allowed batch size 32\",\"error_type\":\"Validation\"}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {400,
     "{\"object\":\"error\",\"message\":\"This model's maximum context length is 512 tokens. However, you requested "
     "900 "
     "tokens in the input for embedding generation. Please reduce the length of the input.\",\"code\":400}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {400,
     "{\"detail\":\"Request to model 'voyage-3' failed. The max allowed tokens per submitted batch is 120000. Your "
     "batch "
     "has 130000 tokens after truncation.\"}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {400, "{\"message\":\"invalid request: total number of texts must be at most 96 - received 97\"}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {422,
     "{\"detail\":[{\"type\":\"too_long\",\"loc\":[\"body\",\"input\"],\"msg\":\"List should have at most 32 items "
     "after "
     "validation, not 64\"}]}",
     QR_REFUSAL_TOO_LARGE, NULL},
    {429,
     "{\"error\":{\"message\":\"Request too large for text-embedding-3-small on tokens per min (TPM): Limit 40000, "
     "Requested 50000.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
     QR_REFUSAL_TOO_LARGE, NULL},
    /* later */
    {429, "", QR_REFUSAL_LIMITED, ""},
    {429,
     "{\"error\":{\"message\":\"Rate limit reached: the limit of tokens per min is exceeded\",\"type\":\"tokens\"}}",
     QR_REFUSAL_LIMITED, NULL},
    {429, "{\"error\":\"Model is overloaded\",\"error_type\":\"Overloaded\"}", QR_REFUSAL_LIMITED,
     "Model is overloaded"},
    {503, "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":\"unavailable_error\"}}", QR_REFUSAL_LIMITED,
     "Loading model"},
    {503, "{\"error\":\"Model x is currently loading\",\"estimated_time\":20.0}", QR_REFUSAL_LIMITED, NULL},
    {500, "{\"error\":\"the model is loading\"}", QR_REFUSAL_LIMITED, NULL},
    {529, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
     QR_REFUSAL_LIMITED, "Overloaded"},
    /* the endpoint */
    {401, "{\"error\":{\"message\":\"Incorrect API key provided\",\"code\":\"invalid_api_key\"}}", QR_REFUSAL_ENDPOINT,
     "Incorrect API key provided"},
    {403, "{\"detail\":\"Forbidden\"}", QR_REFUSAL_ENDPOINT, "Forbidden"},
    {402, "Payment Required", QR_REFUSAL_ENDPOINT, "Payment Required"},
    {429,
     "{\"error\":{\"message\":\"You exceeded your current quota, please check your plan and billing details.\","
     "\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\"}}",
     QR_REFUSAL_ENDPOINT, NULL},
    {400,
     "{\"error\":{\"code\":400,\"message\":\"API key not valid. Please pass a valid API key.\",\"status\":"
     "\"INVALID_ARGUMENT\",\"details\":[{\"reason\":\"API_KEY_INVALID\"}]}}",
     QR_REFUSAL_ENDPOINT, NULL},
    {400, "{\"error\":{\"message\":\"Insufficient Balance\"}}", QR_REFUSAL_ENDPOINT, NULL},
    /* this request, and the rest */
    {404, "{\"error\":\"model \\\"nothing\\\" not found, try pulling it first\"}", QR_REFUSAL_REQUEST,
     "model \"nothing\" not found, try pulling it first"},
    {404, "404 page not found", QR_REFUSAL_REQUEST, "404 page not found"},
    {408, "", QR_REFUSAL_SERVER, ""},
    {500, "{\"error\":\"something broke\"}", QR_REFUSAL_SERVER, "something broke"},
    {504, "", QR_REFUSAL_SERVER, ""},
    {200, "{\"error\":\"not looked at\"}", QR_REFUSAL_NONE, ""},
    {0, "", QR_REFUSAL_REQUEST, ""},
};

QR_TEST(every_shape_of_a_refusal_is_read_and_understood)
{
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        char words[QR_REFUSAL_WORDS_SIZE];
        qr_test_set_context("%d %s", cases[i].status, cases[i].body);
        QR_CHECK_INT(cases[i].refusal, qr_refusal_read(cases[i].status, qr_str_of(cases[i].body), words));
        if (cases[i].words) {
            QR_CHECK_TEXT(cases[i].words, words);
        } else {
            QR_CHECK(words[0]);
        }
    }
}

QR_TEST(long_words_are_cut_between_characters)
{
    enum { COUNT = 1000 };
    char body[2 * COUNT + 1], words[QR_REFUSAL_WORDS_SIZE];
    for (size_t i = 0; i < COUNT; i++) {
        memcpy(body + 2 * i, "\xc3\xa9", 2);
    }
    body[2 * COUNT] = '\0';
    QR_CHECK_INT(QR_REFUSAL_SERVER, qr_refusal_read(500, qr_str_of(body), words));
    QR_CHECK(qr_utf8_valid(qr_str_of(words)));
    QR_CHECK(strlen(words) > QR_REFUSAL_WORDS_SIZE - 4);
}

QR_TEST(a_body_with_nul_bytes_or_without_end_is_read_too)
{
    char words[QR_REFUSAL_WORDS_SIZE];
    QR_CHECK_INT(QR_REFUSAL_TOO_LARGE, qr_refusal_read(500, QR_STR("a\0b too many tokens"), words));
    QR_CHECK_TEXT("ab too many tokens", words);
    QR_CHECK_INT(QR_REFUSAL_SERVER, qr_refusal_read(500, QR_STR("<title>never closed"), words));
    QR_CHECK_TEXT("never closed", words);
    QR_CHECK_INT(QR_REFUSAL_SERVER, qr_refusal_read(500, QR_STR("<"), words));
}

/* ---- headers ---- */

QR_TEST(durations_are_read_as_they_are_written_there)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1 = none */
    } durations[] = {{"20", 20000},     {"1.5", 1500},    {"6ms", 6},       {"1s", 1000},
                     {"1m30s", 90000},  {"6m0s", 360000}, {"2h", 7200000},  {"88.5ms", 88},
                     {"0", 0},          {" 3 ", 3000},    {"", -1},         {"soon", -1},
                     {"1x", -1},        {"1m30", -1},     {"-5", -1},       {"1 s", -1},
                     {".", -1},         {"500us", 0},     {"1d", 86400000}, {"99999999999999999999999", -1},
                     {"400d", 86400000}};
    for (size_t i = 0; i < QR_COUNT(durations); i++) {
        int64_t ms = -1;
        qr_test_set_context("%s", durations[i].text);
        const bool is_read = qr_remote_duration_ms(qr_str_of(durations[i].text), &ms);
        QR_CHECK_INT(durations[i].ms, is_read ? ms : -1);
    }
}

static struct qr_remote_headers read_headers(const char *text)
{
    enum { WALL_S = 1700000000 }; /* Tue, 14 Nov 2023 22:13:20 GMT */
    struct qr_remote_headers headers = {0};
    qr_str rest = qr_str_of(text);
    while (rest.len > 0) {
        qr_remote_headers_add(&headers, qr_str_split(&rest, '\n'), (int64_t)WALL_S * 1000);
    }
    return headers;
}

QR_TEST(retry_after_is_seconds_or_a_date)
{
    QR_CHECK_INT(30000, read_headers("Retry-After: 30\r\n").retry_after_ms);
    QR_CHECK_INT(30000, read_headers("retry-after: Tue, 14 Nov 2023 22:13:50 GMT\r\n").retry_after_ms);
    QR_CHECK_INT(0, read_headers("retry-after: Tue, 14 Nov 2023 22:13:10 GMT\r\n").retry_after_ms);
    QR_CHECK_INT(1500, read_headers("retry-after-ms: 1500\r\n").retry_after_ms);
    QR_CHECK_INT(86400000, read_headers("Retry-After: 9999999\r\n").retry_after_ms);
    QR_CHECK_INT(0, read_headers("Retry-After: later\r\n").retry_after_ms);
    QR_CHECK_INT(0, read_headers("Retry-After: 30\r\nHTTP/1.1 200 OK\r\n").retry_after_ms);
}

QR_TEST(what_is_left_is_read_from_every_family_of_headers)
{
    struct qr_remote_headers headers =
        read_headers("HTTP/2 200\r\nx-ratelimit-limit-requests: 100\r\n"
                     "x-ratelimit-remaining-requests: 99\r\nx-ratelimit-reset-requests: 600ms\r\n"
                     "X-RateLimit-Remaining-Tokens: 149984\r\nx-ratelimit-reset-tokens: 6m0s\r\n");
    QR_CHECK(headers.requests.is_known && headers.tokens.is_known);
    QR_CHECK_INT(99, headers.requests.remaining);
    QR_CHECK_INT(600, headers.requests.reset_ms);
    QR_CHECK_INT(149984, headers.tokens.remaining);
    QR_CHECK_INT(360000, headers.tokens.reset_ms);

    headers = read_headers("ratelimit-remaining: 5\r\nratelimit-reset: 12\r\n");
    QR_CHECK(headers.requests.is_known && !headers.tokens.is_known);
    QR_CHECK_INT(12000, headers.requests.reset_ms);
    headers = read_headers("RateLimit: limit=100, remaining=50, reset=30\r\n");
    QR_CHECK_INT(50, headers.requests.remaining);
    QR_CHECK_INT(30000, headers.requests.reset_ms);
    headers = read_headers("RateLimit: \"default\";r=7;t=3\r\n");
    QR_CHECK_INT(7, headers.requests.remaining);
    QR_CHECK_INT(3000, headers.requests.reset_ms);
    headers = read_headers("x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1700000010\r\n");
    QR_CHECK_INT(10000, headers.requests.reset_ms);
    headers = read_headers("x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1700000010000\r\n");
    QR_CHECK_INT(10000, headers.requests.reset_ms);
    headers = read_headers("x-ratelimit-remaining: many\r\nx-ratelimit-reset: 10\r\n");
    QR_CHECK(!headers.requests.is_known);
}

/* ---- keys ---- */

static struct qr_key key_of(const char *text)
{
    struct qr_key key = {0};
    qr_buf_add_text(&key.text, text);
    return key;
}

QR_TEST(a_key_is_taken_out_of_whatever_is_said) /* N5 */
{
    static const struct {
        const char *text, *scrubbed;
    } texts[] = {
        {"Incorrect API key provided: sk-proj-secret-1234.", "Incorrect API key provided: ***"},
        {"key sk-proj-secret-1234 and \"sk-proj-secret-1234\" again", "key *** and \"***\" again"},
        {"provided: sk-pro**********1234. Look", "provided: *** Look"},
        {"sk-proj-secret-1234", "***"},
        {"nothing to hide, sk-", "nothing to hide, sk-"},
        {"Bearer sk-proj-secret-1234sk-proj-secret-1234", "Bearer ***"},
    };
    QR_KEY_TEXT(key);
    key = key_of("sk-proj-secret-1234");
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        char text[128];
        snprintf(text, sizeof text, "%s", texts[i].text);
        qr_key_scrub(&key, text);
        QR_CHECK_TEXT(texts[i].scrubbed, text);
    }
    QR_KEY_TEXT(none);
    char text[] = "as it is";
    qr_key_scrub(&none, text);
    QR_CHECK_TEXT("as it is", text);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    QR_CHECK(file);
    fputs(text, file);
    fclose(file);
}

QR_TEST(a_key_comes_from_the_variable_or_the_file)
{
    qr_err err;
    const char *file = qr_test_path(t, "key");
    setenv("QUIRE_TEST_KEY", "from-environment", 1);
    write_file(file, "  from-file\n");
    struct qr_key both = {0}, from_file = {0}, none = {0}, missing = {0};
    QR_CHECK_RC(QR_OK, qr_key_load(&both, "QUIRE_TEST_KEY", file, &err));
    QR_CHECK_STR("from-environment", qr_buf_str(&both.text));
    QR_CHECK_RC(QR_OK, qr_key_load(&from_file, "QUIRE_TEST_NONE", file, &err));
    QR_CHECK_STR("from-file", qr_buf_str(&from_file.text));
    QR_CHECK(both.mark != from_file.mark);
    QR_CHECK_RC(QR_OK, qr_key_load(&none, "", "", &err));
    QR_CHECK_INT(0, none.text.len);
    QR_CHECK_CODE(QR_CODE_ENDPOINT_REFUSED, qr_key_load(&missing, "QUIRE_TEST_NONE", "", &err));
    QR_CHECK_HAS("QUIRE_TEST_NONE", err.msg);
    QR_CHECK_CODE(QR_CODE_ENDPOINT_REFUSED, qr_key_load(&missing, "", "/nonexistent/key", &err));
    QR_CHECK_HAS("/nonexistent/key", err.msg);
    qr_key_done(&missing);
    qr_key_done(&both);
    qr_key_done(&from_file);
}

QR_TEST(a_key_that_would_break_the_header_is_refused_and_not_repeated)
{
    qr_err err;
    const char *file = qr_test_path(t, "key");
    struct qr_key broken = {0}, empty = {0};
    write_file(file, "secret\nX-Other: 1");
    QR_CHECK_CODE(QR_CODE_ENDPOINT_REFUSED, qr_key_load(&broken, "", file, &err));
    QR_CHECK(!strstr(err.msg, "secret"));
    write_file(file, "\n");
    QR_CHECK_CODE(QR_CODE_ENDPOINT_REFUSED, qr_key_load(&empty, "", file, &err));
    qr_key_done(&broken);
    qr_key_done(&empty);
}
