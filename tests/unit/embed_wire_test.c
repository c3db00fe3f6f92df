/* Requests and answers of the OpenAI embeddings operation. */
#include "embed/openai_wire.h"
#include "support/fault.h"
#include "support/test.h"

#include <math.h>

static qr_err err;

/* ---- requests ---- */

static struct qr_embedding_settings settings_of(const char *model)
{
    return (struct qr_embedding_settings){
        .provider = "openai", .model = model, .document_prefix = "", .query_prefix = "", .encoding = ""};
}

static void check_request(const char *expected, const struct qr_embedding_settings *settings, bool is_query)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    const qr_str texts[] = {QR_STR("plain"), QR_STR("a \"quoted\"\nline \\ \x01")};
    qr_openai_write_request(settings, &(struct qr_embed_request){.texts = texts, .count = 2, .is_query = is_query},
                            &out);
    QR_CHECK_TEXT(expected, out.data);
}

QR_TEST(a_request_has_what_is_configured_and_nothing_else)
{
    struct qr_embedding_settings settings = settings_of("m \"1\"");
    check_request("{\"model\":\"m \\\"1\\\"\",\"input\":[\"plain\",\"a \\\"quoted\\\"\\nline \\\\ \\u0001\"]}",
                  &settings, false);
    settings.dimensions = 256;
    settings.encoding = "base64";
    settings.document_prefix = "passage: ";
    settings.query_prefix = "query: ";
    check_request("{\"model\":\"m \\\"1\\\"\",\"input\":[\"passage: plain\",\"passage: a \\\"quoted\\\"\\nline \\\\ "
                  "\\u0001\"],\"dimensions\":256,\"encoding_format\":\"base64\"}",
                  &settings, false);
    check_request("{\"model\":\"m \\\"1\\\"\",\"input\":[\"query: plain\",\"query: a \\\"quoted\\\"\\nline \\\\ "
                  "\\u0001\"],\"dimensions\":256,\"encoding_format\":\"base64\"}",
                  &settings, true);
}

/* ---- answers ---- */

enum { COUNT_MAX = 8 };
static bool is_bad[COUNT_MAX];

static qr_rc read_answer(const char *body, size_t count, struct qr_embed_answer *answer)
{
    *answer = (struct qr_embed_answer){.is_bad = is_bad};
    return qr_openai_read_answer(qr_str_of(body), count, answer, &err);
}

static void check_vector(const struct qr_embed_answer *answer, size_t index, double x, double y)
{
    const float *vector = answer->vectors + index * 2;
    QR_CHECK_INT(2, answer->dimension);
    QR_CHECK(fabs((double)vector[0] - x) < 1e-6 && fabs((double)vector[1] - y) < 1e-6);
}

QR_TEST(an_answer_is_read_in_the_order_of_its_indexes)
{
    struct qr_embed_answer answer;
    QR_CHECK_RC(QR_OK, read_answer("{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":1,\"embedding\":"
                                   "[0, 1.0]},{\"embedding\":[3e0,4.0E+0],\"index\":0}],\"model\":\"m\",\"usage\":"
                                   "{\"prompt_tokens\":5,\"total_tokens\":7,\"x\":[{}]}}",
                                   2, &answer));
    check_vector(&answer, 0, 0.6, 0.8);
    check_vector(&answer, 1, 0, 1);
    QR_CHECK_INT(7, answer.token_count);
    QR_CHECK(!is_bad[0] && !is_bad[1]);
    qr_free(answer.vectors);
}

QR_TEST(an_answer_without_indexes_is_in_the_order_of_the_request)
{
    struct qr_embed_answer answer;
    QR_CHECK_RC(QR_OK, read_answer(" { \"data\" : [ { \"embedding\" : [ 1 , 0 ] } , {\"embedding\":[-1,0]} ] } \n", 2,
                                   &answer));
    check_vector(&answer, 0, 1, 0);
    check_vector(&answer, 1, -1, 0);
    QR_CHECK_INT(0, answer.token_count);
    qr_free(answer.vectors);
}

QR_TEST(base64_is_read_too_with_its_slashes_escaped_or_not)
{
    /* 0x3F800000 (1), 0xBF800000 (-1): 00 00 80 3F 00 00 80 BF; and -0.0 … with slashes: FF FF 7F 3F, 3F FF 00 00 */
    struct qr_embed_answer answer;
    QR_CHECK_RC(QR_OK, read_answer("{\"data\":[{\"index\":0,\"embedding\":\"AACAPwAAgL8=\"},"
                                   "{\"index\":1,\"embedding\":\"//9/PwAAAAA=\"},"
                                   "{\"index\":2,\"embedding\":\"\\/\\/9\\/PwAAAAA\"}]}",
                                   3, &answer));
    check_vector(&answer, 0, sqrt(0.5), -sqrt(0.5));
    check_vector(&answer, 1, 1, 0);
    check_vector(&answer, 2, 1, 0);
    qr_free(answer.vectors);
}

QR_TEST(a_vector_that_cannot_be_used_is_bad_alone)
{
    struct qr_embed_answer answer;
    QR_CHECK_RC(QR_OK, read_answer("{\"data\":[{\"embedding\":[1,0]},{\"embedding\":[NaN,0]},{\"embedding\":[0,0.0]},"
                                   "{\"embedding\":[null,1]},{\"embedding\":[-Infinity,1]},{\"embedding\":[1e99,1]},"
                                   "{\"embedding\":[0,-2]}]}",
                                   7, &answer));
    const bool expected[] = {false, true, true, true, true, true, false};
    for (size_t i = 0; i < QR_COUNT(expected); i++) {
        QR_CHECK_INT(expected[i], is_bad[i]);
    }
    check_vector(&answer, 0, 1, 0);
    check_vector(&answer, 6, 0, -1);
    qr_free(answer.vectors);
}

QR_TEST(numbers_are_read_as_the_c_library_reads_them)
{
    static const char *const numbers[] = {"0",
                                          "-0.0",
                                          "1",
                                          "-0.012345678901234567",
                                          "0.1",
                                          "3.4028234e38",
                                          "1.1754944e-38",
                                          "123456789012345678901234567890",
                                          "0.00000000000000000000000000000000000012345678901234567890123",
                                          "9007199254740993",
                                          "-1.5e-7",
                                          "1E5",
                                          "2.5e+3",
                                          "1e-400",
                                          "0e999999999"};
    for (size_t i = 0; i < QR_COUNT(numbers); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
        struct qr_embed_answer answer;
        qr_test_set_context("%s", numbers[i]);
        /* beside a number that is as large, so that the length does not hide it */
        qr_buf_printf(&body, "{\"data\":[{\"embedding\":[%s,%s]}]}", numbers[i], numbers[i]);
        const float expected = strtof(numbers[i], NULL);
        QR_CHECK_RC(QR_OK, read_answer(body.data, 1, &answer));
        QR_CHECK_INT(expected == 0, is_bad[0]);
        if (!is_bad[0]) {
            check_vector(&answer, 0, copysign(sqrt(0.5), (double)expected), copysign(sqrt(0.5), (double)expected));
        }
        qr_free(answer.vectors);
        body.len = 0;
        qr_buf_printf(&body, "{\"data\":[{\"embedding\":[%s,1]}]}", numbers[i]);
        QR_CHECK_RC(QR_OK, read_answer(body.data, 1, &answer));
        QR_CHECK(fabs((double)answer.vectors[0] / (double)answer.vectors[1] - (double)expected) <=
                     fabs((double)expected) * 1e-6 ||
                 fabsf(expected) > 1e30F);
        qr_free(answer.vectors);
    }
}

QR_TEST(an_answer_that_cannot_be_used_says_why)
{
    static const struct {
        const char *body, *message_part;
    } cases[] = {
        {"", "not the JSON"},
        {"[]", "not the JSON"},
        {"{}", "no data"},
        {"{\"error\":{\"message\":\"busy\"}}", "no data"},
        {"{\"data\":[]}", "fewer embeddings"},
        {"{\"data\":[{\"embedding\":[1,2]}]}", "fewer embeddings"},
        {"{\"data\":[{\"embedding\":[1]},{\"embedding\":[1]},{\"embedding\":[1]}]}", "more embeddings"},
        {"{\"data\":[{\"embedding\":[1,2]},{\"embedding\":[1]}]}", "one dimension"},
        {"{\"data\":[{\"embedding\":[1]},{\"embedding\":[1,2]}]}", "one dimension"},
        {"{\"data\":[{\"embedding\":[]},{\"embedding\":[]}]}", "empty"},
        {"{\"data\":[{\"index\":0},{\"index\":1}]}", "no embedding"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":0,\"embedding\":[1]}]}", "same index"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1]},{\"embedding\":[1]}]}", "some of its embeddings"},
        {"{\"data\":[{\"index\":2,\"embedding\":[1]},{\"index\":1,\"embedding\":[1]}]}", "none of ours"},
        {"{\"data\":[{\"index\":-1,\"embedding\":[1]},{\"index\":1,\"embedding\":[1]}]}", "none of ours"},
        {"{\"data\":[{\"index\":0.5,\"embedding\":[1]},{\"index\":1,\"embedding\":[1]}]}", "none of ours"},
        {"{\"data\":[{\"embedding\":\"AACAPw==\"},{\"embedding\":\"AACA\"}]}", "whole floats"},
        {"{\"data\":[{\"embedding\":\"AACAPw==\"},{\"embedding\":\"A*\"}]}", "base64"},
        {"{\"data\":[{\"embedding\":[1],\"index\":0},{\"embedding\":[1],\"index\":1}]", "cut off"},
        {"{\"data\":[{\"embedding\":[1],\"index\":0},{\"embedding\":[1],\"ind", "cut off"},
        {"{\"data\":[{\"embedding\":[1],\"index\":0},{\"embedding\":[0.", "cut off"},
        {"{\"data\":[{\"embedding\":[1 2]},{\"embedding\":[1,2]}]}", "not the JSON"},
        {"{\"data\":[{\"embedding\":[1,]},{\"embedding\":[1,x]}]}", "not the JSON"},
        {"{\"data\":[{\"embedding\":[1]},{\"embedding\":[1]}]} x", "not the JSON"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct qr_embed_answer answer;
        qr_test_set_context("%s", cases[i].body);
        QR_CHECK_CODE(QR_CODE_EMBEDDING_FAILED, read_answer(cases[i].body, 2, &answer));
        QR_CHECK_HAS(cases[i].message_part, err.msg);
    }
}

QR_TEST(an_answer_has_limits_of_depth_and_dimension)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    struct qr_embed_answer answer;
    qr_buf_add_text(&body, "{\"x\":");
    for (int i = 0; i < 33; i++) {
        qr_buf_add_char(&body, '[');
    }
    QR_CHECK_CODE(QR_CODE_EMBEDDING_FAILED, read_answer(body.data, 1, &answer));
    qr_buf_clear(&body);
    qr_buf_add_text(&body, "{\"data\":[{\"embedding\":[1");
    for (int i = 0; i < QR_DIMENSIONS_MAX; i++) {
        qr_buf_add_text(&body, ",1");
    }
    qr_buf_add_text(&body, "]}]}");
    QR_CHECK_CODE(QR_CODE_EMBEDDING_FAILED, read_answer(body.data, 1, &answer));
    QR_CHECK_HAS("more dimensions", err.msg);
}

static void read_under_fault(void *arg QR_UNUSED)
{
    struct qr_embed_answer answer;
    const qr_rc rc =
        read_answer("{\"data\":[{\"index\":1,\"embedding\":[1,2]},{\"index\":0,\"embedding\":[1,2]}]}", 2, &answer);
    qr_fault_disarm();
    QR_CHECK_INT(qr_fault_fired() ? QR_NOMEM : QR_OK, rc);
    if (rc == QR_OK) {
        qr_free(answer.vectors);
    }
}

QR_TEST(reading_survives_every_failed_allocation)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, read_under_fault, NULL);
}
