/* Reranking on the wire: what is sent, and every shape of answer. */
#include "search/rerank_wire.h"
#include "support/test.h"

#include <math.h>

enum { COUNT = 3 };

static qr_err err;

static void check_written(bool is_tei, const char *model, const char *expected)
{
    const qr_str documents[] = {QR_STR("one"), QR_STR("two \"2\"\n")};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    qr_rerank_write(&(struct qr_rerank_request){is_tei, model, QR_STR("why?"), documents, 2}, &out);
    QR_CHECK_STR(expected, qr_buf_str(&out));
}

QR_TEST(a_request_has_the_shape_of_its_dialect)
{
    check_written(false, "m", "{\"model\":\"m\",\"query\":\"why?\",\"documents\":[\"one\",\"two \\\"2\\\"\\n\"]}");
    check_written(false, "", "{\"query\":\"why?\",\"documents\":[\"one\",\"two \\\"2\\\"\\n\"]}");
    check_written(true, "m", "{\"query\":\"why?\",\"texts\":[\"one\",\"two \\\"2\\\"\\n\"],\"truncate\":true}");
}

QR_TEST(scores_are_read_from_every_shape_of_answer)
{
    static const struct {
        const char *answer;
        double scores[COUNT];
    } cases[] = {
        /* Cohere */
        {"{\"id\":\"x\",\"results\":[{\"index\":2,\"relevance_score\":0.9},{\"index\":0,\"relevance_score\":0.5},"
         "{\"index\":1,\"relevance_score\":0}],\"meta\":{}}",
         {0.5, 0, 0.9}},
        /* Jina, with the documents */
        {"{\"model\":\"m\",\"usage\":{\"total_tokens\":3},\"results\":[{\"index\":0,\"relevance_score\":1,"
         "\"document\":{\"text\":\"one\"}},{\"index\":1,\"relevance_score\":0.25,\"document\":{\"text\":\"two\"}}]}",
         {1, 0.25, -1}},
        /* TEI */
        {"[{\"index\":1,\"score\":0.75},{\"index\":0,\"score\":0.5},{\"index\":2,\"score\":0.1}]", {0.5, 0.75, 0.1}},
        /* Voyage */
        {"{\"object\":\"list\",\"data\":[{\"index\":0,\"relevance_score\":0.5}]}", {0.5, -1, -1}},
        /* one named twice: the better score counts */
        {"[{\"index\":1,\"score\":0.25},{\"index\":1,\"score\":0.75},{\"index\":1,\"score\":0.5}]", {-1, 0.75, -1}},
        /* both names in one: the first one of ours */
        {"[{\"index\":0,\"score\":5,\"relevance_score\":0.5}]", {0.5, -1, -1}},
        /* llama.cpp: logits. One beyond 0…1 means that all are */
        {"{\"results\":[{\"index\":0,\"relevance_score\":0},{\"index\":1,\"relevance_score\":-2},"
         "{\"index\":2,\"relevance_score\":3}]}",
         {0.5, 0.11920292, 0.95257413}},
        {"[{\"index\":0,\"score\":1000},{\"index\":1,\"score\":-1000}]", {1, 0, -1}},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        double scores[COUNT];
        qr_test_set_context("%s", cases[i].answer);
        QR_CHECK_RC(QR_OK, qr_rerank_read(qr_str_of(cases[i].answer), COUNT, scores, &err));
        for (size_t k = 0; k < COUNT; k++) {
            QR_CHECK(fabs(scores[k] - cases[i].scores[k]) < 1e-6);
        }
    }
}

QR_TEST(an_answer_that_is_none_is_not_believed)
{
    static const char *const answers[] = {
        "",
        "<html>",
        "null",
        "{}",
        "[]",
        "{\"results\":[]}",
        "{\"results\":{}}",
        "{\"results\":[0.5,0.25,0.1]}",
        "[{\"index\":0}]",
        "[{\"score\":0.5}]",
        "[{\"index\":3,\"score\":0.5}]",
        "[{\"index\":-1,\"score\":0.5}]",
        "[{\"index\":0.0,\"score\":0.5}]",
        "[{\"index\":\"0\",\"score\":0.5}]",
        "[{\"index\":0,\"score\":\"0.5\"}]",
        "[{\"index\":0,\"score\":null}]",
        "[{\"index\":0,\"score\":NaN}]",
        "[{\"index\":0,\"score\":1e999}]",
        "[{\"index\":0,\"score\":0.5},{\"index\":1,\"score\":0.5}",
        "[{\"index\":0,\"score\":0.5},{\"index\":99,\"score\":0.5}]",
    };
    for (size_t i = 0; i < QR_COUNT(answers); i++) {
        double scores[COUNT];
        qr_test_set_context("%s", answers[i]);
        QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_rerank_read(qr_str_of(answers[i]), COUNT, scores, &err));
    }
}
