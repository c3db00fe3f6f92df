/* A reranker that is a server: every dialect, and every way not to answer. */
#include "search/rerank.h"

#include "base/mem.h"
#include "remote/endpoint.h"
#include "support/model_server.h"
#include "support/test.h"

#include <math.h>

#define KEY "sk-test-0123456789abcdef"

struct fixture {
    struct qr_model_server *server;
    struct qr_endpoints *all;
    struct qr_reranker *reranker;
};

/* A clock on which each look takes a while: what is waited for in it comes soon. */
static int64_t hasty_ms;
static int64_t look(const struct qr_clock *clock QR_UNUSED)
{
    return hasty_ms += 500;
}
static const struct qr_clock hasty_clock = {.wall_ms = look, .mono_ms = look};

static void set_up(struct fixture *fixture, const char *provider, const char *path, const struct qr_clock *clock)
{
    qr_err err;
    struct qr_rerank_settings settings = {
        .provider = provider,
        .service = {.model = "m", .api_key_env = "QUIRE_TEST_KEY", .api_key_file = ""},
        .top_n = 10,
        .document_bytes = 1000,
        .request_bytes = 10000};
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("QUIRE_TEST_KEY", KEY, 1);
    fixture->server = qr_model_server_start(&(struct qr_model_options){.key = KEY});
    settings.service.url = qr_model_server_url(fixture->server, path);
    QR_CHECK_RC(QR_OK, qr_endpoints_open(&fixture->all, qr_clock_system(), qr_rand_system(), NULL, NULL, &err));
    QR_CHECK_RC(QR_OK, qr_reranker_create(&fixture->reranker, &settings, fixture->all, clock, &err));
    QR_CHECK(fixture->reranker);
}

static void tear_down(struct fixture *fixture)
{
    qr_reranker_free(fixture->reranker);
    qr_endpoints_close(fixture->all);
    qr_model_server_stop(fixture->server);
}

static const qr_str documents[] = {{"bread and butter", 16}, {"the harbour at night", 20}, {"a harbour", 9}};

static qr_rc score(struct fixture *fixture, double ret_scores[static QR_COUNT(documents)], qr_err *err)
{
    return fixture->reranker->score(fixture->reranker, QR_STR("harbour night"), documents, QR_COUNT(documents),
                                    ret_scores, err);
}

QR_TEST(each_dialect_gives_scores_from_0_to_1)
{
    static const struct {
        const char *provider, *path, *sent, *not_sent;
    } cases[] = {{"cohere", "/v2", "\"documents\":[\"bread", "\"texts\""},
                 {"jina", "/v1", "\"model\":\"m\"", "\"texts\""},
                 {"tei", "", "\"texts\":[\"bread", "\"model\""}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct fixture fixture;
        double scores[QR_COUNT(documents)];
        qr_err err;
        qr_test_set_context("%s", cases[i].provider);
        set_up(&fixture, cases[i].provider, cases[i].path, qr_clock_system());
        QR_CHECK_RC(QR_OK, score(&fixture, scores, &err));
        QR_CHECK(scores[1] > scores[2] && scores[2] > scores[0]);
        QR_CHECK(scores[0] >= 0 && scores[1] <= 1);
        char *request = qr_model_server_last_request(fixture.server);
        QR_CHECK_HAS("/rerank ", request);
        QR_CHECK_HAS(cases[i].sent, request);
        QR_CHECK(!strstr(request, cases[i].not_sent));
        qr_free(request);
        tear_down(&fixture);
    }
}

/* What is wrong is said without the key, whatever the server repeats. */
QR_TEST(whatever_a_server_does_is_scores_or_an_error)
{
    static const struct {
        enum qr_model_fault fault;
        int64_t number;
        qr_code code; /* QR_CODE_NONE: it is an answer */
    } cases[] = {{QR_FAULT_429_RETRY_AFTER, 60, QR_CODE_RATE_LIMITED},
                 {QR_FAULT_QUOTA, 0, QR_CODE_ENDPOINT_REFUSED},
                 {QR_FAULT_401, 0, QR_CODE_ENDPOINT_REFUSED},
                 {QR_FAULT_403, 0, QR_CODE_ENDPOINT_REFUSED},
                 {QR_FAULT_404, 0, QR_CODE_BAD_REQUEST},
                 {QR_FAULT_400, 0, QR_CODE_BAD_REQUEST},
                 {QR_FAULT_413, 0, QR_CODE_TOO_LARGE},
                 {QR_FAULT_422, 0, QR_CODE_BAD_REQUEST},
                 {QR_FAULT_500, 0, QR_CODE_UNAVAILABLE},
                 {QR_FAULT_502_HTML, 0, QR_CODE_UNAVAILABLE},
                 {QR_FAULT_503_RETRY_AFTER, 60, QR_CODE_RATE_LIMITED},
                 {QR_FAULT_TRUNCATED, 0, QR_CODE_UNAVAILABLE},
                 {QR_FAULT_EOF, 0, QR_CODE_UNAVAILABLE},
                 {QR_FAULT_RESET, 0, QR_CODE_UNAVAILABLE},
                 {QR_FAULT_BAD_JSON, 0, QR_CODE_UNAVAILABLE},
                 {QR_FAULT_HUGE, 20 << 20, QR_CODE_UNAVAILABLE},
                 {QR_FAULT_REDIRECT, 0, QR_CODE_BAD_REQUEST},
                 {QR_FAULT_NAN, 0, QR_CODE_UNAVAILABLE},
                 {QR_FAULT_WRONG_COUNT, 0, QR_CODE_NONE},
                 {QR_FAULT_SAME_INDEX, 0, QR_CODE_NONE}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct fixture fixture;
        double scores[QR_COUNT(documents)];
        qr_err err = {0};
        qr_test_set_context("fault %d", (int)cases[i].fault);
        set_up(&fixture, "jina", "/v1", qr_clock_system());
        qr_model_server_set_steps(
            fixture.server, &(struct qr_model_step){.from = 1, .fault = cases[i].fault, .number = cases[i].number}, 1);
        const qr_rc rc = score(&fixture, scores, &err);
        QR_CHECK_TEXT(qr_code_info(cases[i].code)->name, qr_code_info(err.code)->name);
        QR_CHECK_INT(cases[i].code == QR_CODE_NONE, rc == QR_OK);
        QR_CHECK(!strstr(err.msg, KEY));
        tear_down(&fixture);
    }
}

QR_TEST(what_the_server_leaves_out_has_no_score)
{
    struct fixture fixture;
    double scores[QR_COUNT(documents)];
    qr_err err;
    set_up(&fixture, "cohere", "/v2", qr_clock_system());
    qr_model_server_set_steps(fixture.server, &(struct qr_model_step){.from = 1, .fault = QR_FAULT_WRONG_COUNT}, 1);
    QR_CHECK_RC(QR_OK, score(&fixture, scores, &err));
    QR_CHECK(scores[0] == -1 && scores[1] > 0 && scores[2] > 0);
    tear_down(&fixture);
}

QR_TEST(nobody_waits_for_a_server_that_hangs)
{
    struct fixture fixture;
    double scores[QR_COUNT(documents)];
    qr_err err;
    set_up(&fixture, "tei", "", &hasty_clock);
    qr_model_server_set_steps(fixture.server, &(struct qr_model_step){.from = 1, .fault = QR_FAULT_HANG}, 1);
    QR_CHECK_CODE(QR_CODE_TIMEOUT, score(&fixture, scores, &err));
    QR_CHECK_HAS("within 3 s", err.msg);
    tear_down(&fixture);
}

QR_TEST(without_settings_there_is_no_reranker)
{
    struct qr_reranker *reranker;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_reranker_create(&reranker, &(struct qr_rerank_settings){.provider = "none"}, NULL,
                                          qr_clock_system(), &err));
    QR_CHECK(!reranker);
}
