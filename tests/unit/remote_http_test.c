/* Requests to a server of ours that answers well, badly, late and never. */
#include "remote/http.h"

#include "base/mem.h"
#include "base/sync.h"
#include "remote/refusal.h"
#include "support/fault.h"
#include "support/model_server.h"
#include "support/test.h"

#include <stdatomic.h>
#include <sys/stat.h>

#define KEY "sk-test-0123456789abcdef"

struct fixture {
    struct qr_model_server *server;
    struct qr_endpoints *all;
    struct qr_endpoint *endpoint;
};

static void open_endpoint(struct fixture *fixture, const struct qr_endpoint_options *options)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_endpoints_open(&fixture->all, qr_clock_system(), qr_rand_system(), NULL, NULL, &err));
    QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture->all, options, &fixture->endpoint, &err));
}

/* Without a proxy, whatever the environment of the tests is. */
static void set_up(struct fixture *fixture, struct qr_model_options options)
{
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("QUIRE_TEST_KEY", KEY, 1);
    fixture->server = qr_model_server_start(&options);
    open_endpoint(fixture, &(struct qr_endpoint_options){.url = qr_model_server_url(fixture->server, "/v1"),
                                                         .api_key_env = "QUIRE_TEST_KEY",
                                                         .timeout_ms = 20000});
}

static void close_endpoint(struct fixture *fixture)
{
    qr_endpoint_put(fixture->endpoint);
    qr_endpoints_close(fixture->all);
}

static void tear_down(struct fixture *fixture)
{
    close_endpoint(fixture);
    qr_model_server_stop(fixture->server);
}

static const struct qr_remote_request embed_request = {.method = "POST",
                                                       .path = "/embeddings",
                                                       .json = {"{\"model\":\"m\",\"input\":[\"one\",\"two\"]}", 35},
                                                       .wait_ms_max = 10000};

static qr_rc embed(struct fixture *fixture, struct qr_remote_answer *answer, qr_err *err)
{
    return qr_remote_send(fixture->endpoint, &embed_request, answer, err);
}

static void set_fault(struct fixture *fixture, enum qr_model_fault fault, int64_t number)
{
    qr_model_server_set_steps(fixture->server, &(struct qr_model_step){.from = 1, .fault = fault, .number = number}, 1);
}

static struct qr_model_stats stats_of(struct fixture *fixture)
{
    struct qr_model_stats stats;
    qr_model_server_stats(fixture->server, &stats);
    return stats;
}

/* ---- good answers ---- */

QR_TEST(a_request_has_its_body_and_its_key_and_connections_are_used_again)
{
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){.key = KEY});
    for (int i = 0; i < 5; i++) {
        QR_REMOTE_ANSWER(answer);
        QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));
        QR_CHECK_INT(200, answer.status);
        QR_CHECK_INT(QR_REFUSAL_NONE, answer.refusal);
        QR_CHECK_HAS("\"index\":1", answer.body.data);
    }
    QR_CLEANUP(qr_free_ptr) char *request = qr_model_server_last_request(fixture.server);
    QR_CHECK_HAS("POST /v1/embeddings HTTP/1.1\r\n", request);
    QR_CHECK_HAS("Authorization: Bearer " KEY "\r\n", request);
    QR_CHECK_HAS("Content-Type: application/json\r\n", request);
    QR_CHECK_HAS("\r\n\r\n{\"model\":\"m\"", request);
    QR_CHECK(!strstr(request, "Expect:"));
    QR_CHECK_INT(1, stats_of(&fixture).connections);
    QR_CHECK_INT(10, stats_of(&fixture).inputs);
    tear_down(&fixture);
}

QR_TEST(a_query_of_the_address_stays_behind_the_path_and_a_key_may_have_its_own_header)
{
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){0});
    close_endpoint(&fixture);
    open_endpoint(&fixture,
                  &(struct qr_endpoint_options){.url = qr_model_server_url(fixture.server, "/openai/?api-version=7"),
                                                .api_key_env = "QUIRE_TEST_KEY",
                                                .api_key_header = "api-key"});
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));
    QR_CLEANUP(qr_free_ptr) char *request = qr_model_server_last_request(fixture.server);
    QR_CHECK_HAS("POST /openai/embeddings?api-version=7 ", request);
    QR_CHECK_HAS("api-key: " KEY "\r\n", request);
    QR_CHECK(!strstr(request, "Bearer"));
    tear_down(&fixture);
}

QR_TEST(files_and_fields_go_as_a_form)
{
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){0});
    const char *path = qr_test_path(t, "paper.pdf");
    FILE *file = fopen(path, "w");
    QR_CHECK(file && fputs("the words of the paper", file) >= 0 && fclose(file) == 0);
    const struct qr_remote_part parts[] = {
        {.name = "to_formats", .bytes = QR_STR("md")},
        {.name = "files", .file_name = "paper.pdf", .path = path, .mime = "application/pdf"},
        {.name = "more", .file_name = "b.bin", .bytes = QR_STR("a\0b"), .mime = "application/octet-stream"},
    };
    const struct qr_remote_request submit = {
        .method = "POST", .path = "/convert/file/async", .parts = parts, .part_count = QR_COUNT(parts)};
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_RC(QR_OK, qr_remote_send(fixture.endpoint, &submit, &answer, &err));
    QR_CHECK_HAS("\"task_id\":\"task-0\"", answer.body.data);
    QR_REMOTE_ANSWER(result);
    QR_CHECK_RC(QR_OK,
                qr_remote_send(fixture.endpoint, &(struct qr_remote_request){.method = "GET", .path = "/result/task-0"},
                               &result, &err));
    QR_CHECK_HAS("the words of the paper", result.body.data);
    const struct qr_remote_part missing = {.name = "files", .file_name = "x", .path = "/nonexistent/file"};
    const struct qr_remote_request broken = {
        .method = "POST", .path = "/convert/file/async", .parts = &missing, .part_count = 1};
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_remote_send(fixture.endpoint, &broken, &answer, &err));
    QR_CHECK_INT(2, stats_of(&fixture).requests);
    tear_down(&fixture);
}

/* ---- refusals ---- */

QR_TEST(every_refusal_is_an_answer_with_its_meaning)
{
    static const struct {
        enum qr_model_fault fault;
        int64_t number;
        int status;
        enum qr_refusal refusal;
        const char *words;
    } faults[] = {
        {QR_FAULT_429, 0, 429, QR_REFUSAL_LIMITED, "Rate limit reached"},
        {QR_FAULT_429_RETRY_AFTER, 7, 429, QR_REFUSAL_LIMITED, "Rate limit reached"},
        {QR_FAULT_QUOTA, 0, 429, QR_REFUSAL_ENDPOINT, "quota"},
        {QR_FAULT_401, 0, 401, QR_REFUSAL_ENDPOINT, "Incorrect API key provided: ***"},
        {QR_FAULT_403, 0, 403, QR_REFUSAL_ENDPOINT, "Not authorised"},
        {QR_FAULT_404, 0, 404, QR_REFUSAL_REQUEST, "/v1/embeddings answers 404: model \"nothing\" not found"},
        {QR_FAULT_400, 0, 400, QR_REFUSAL_REQUEST, "invalid request"},
        {QR_FAULT_500, 0, 500, QR_REFUSAL_SERVER, "something broke"},
        {QR_FAULT_500_TOO_LARGE, 0, 500, QR_REFUSAL_TOO_LARGE, "too large to process"},
        {QR_FAULT_413, 0, 413, QR_REFUSAL_TOO_LARGE, "413 Request Entity Too Large"},
        {QR_FAULT_422, 0, 422, QR_REFUSAL_REQUEST, "body.input: field required"},
        {QR_FAULT_502_HTML, 0, 502, QR_REFUSAL_SERVER, "502 Bad Gateway"},
        {QR_FAULT_503_LOADING, 0, 503, QR_REFUSAL_LIMITED, "Loading model"},
        {QR_FAULT_503_RETRY_AFTER, 3, 503, QR_REFUSAL_LIMITED, "upstream is away"},
        {QR_FAULT_REDIRECT, 0, 307, QR_REFUSAL_REQUEST, "it has moved to http://elsewhere.invalid/"},
    };
    for (size_t i = 0; i < QR_COUNT(faults); i++) {
        struct fixture fixture;
        qr_err err;
        qr_test_set_context("fault %d", (int)faults[i].fault);
        set_up(&fixture, (struct qr_model_options){0});
        set_fault(&fixture, faults[i].fault, faults[i].number);
        QR_REMOTE_ANSWER(answer);
        QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));
        QR_CHECK_INT(faults[i].status, answer.status);
        QR_CHECK_INT(faults[i].refusal, answer.refusal);
        QR_CHECK_HAS(faults[i].words, answer.reason.msg);
        QR_CHECK(!strstr(answer.reason.msg, KEY)); /* N5 */
        QR_CHECK_INT(faults[i].number * 1000, answer.retry_after_ms);
        QR_CHECK_INT(1, stats_of(&fixture).requests);
        tear_down(&fixture);
    }
}

QR_TEST(an_open_circuit_sends_nothing) /* AGAIN-2 */
{
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){.key = "another-key"});
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));
    QR_CHECK_INT(QR_REFUSAL_ENDPOINT, answer.refusal);
    for (int i = 0; i < 3; i++) {
        QR_CHECK_CODE(QR_CODE_ENDPOINT_REFUSED, embed(&fixture, &answer, &err));
        QR_CHECK_HAS("answers 401", err.msg);
        QR_CHECK(!strstr(err.msg, KEY));
    }
    QR_CHECK_INT(1, stats_of(&fixture).requests);
    setenv("QUIRE_TEST_KEY", "another-key", 1); /* corrected: tried at once */
    QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));
    QR_CHECK_INT(QR_REFUSAL_NONE, answer.refusal);
    tear_down(&fixture);
}

QR_TEST(a_key_file_that_is_a_pipe_is_refused_and_not_waited_for)
{
    struct fixture fixture;
    qr_err err;
    const char *pipe = qr_test_path(t, "key");
    set_up(&fixture, (struct qr_model_options){0});
    close_endpoint(&fixture);
    QR_CHECK_INT(0, mkfifo(pipe, 0600));
    open_endpoint(&fixture, &(struct qr_endpoint_options){.url = qr_model_server_url(fixture.server, "/v1"),
                                                          .api_key_file = pipe});
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_CODE(QR_CODE_ENDPOINT_REFUSED, embed(&fixture, &answer, &err));
    QR_CHECK_HAS("is no file", err.msg);
    tear_down(&fixture);
}

QR_TEST(a_missing_key_opens_the_circuit_until_it_is_there)
{
    struct fixture fixture;
    struct qr_endpoint_state state;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){.key = KEY});
    unsetenv("QUIRE_TEST_KEY");
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_CODE(QR_CODE_ENDPOINT_REFUSED, embed(&fixture, &answer, &err));
    QR_CHECK_HAS("QUIRE_TEST_KEY", err.msg);
    qr_endpoint_look(fixture.endpoint, &state);
    QR_CHECK(state.is_open);
    QR_CHECK_INT(0, stats_of(&fixture).requests);
    setenv("QUIRE_TEST_KEY", KEY, 1);
    QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));
    QR_CHECK_INT(200, answer.status);
    qr_endpoint_look(fixture.endpoint, &state);
    QR_CHECK(!state.is_open);
    tear_down(&fixture);
}

/* ---- no answer ---- */

QR_TEST(a_connection_that_ends_without_an_answer_is_unavailable_and_not_sent_again)
{
    static const enum qr_model_fault faults[] = {QR_FAULT_EOF, QR_FAULT_RESET, QR_FAULT_TRUNCATED};
    for (size_t i = 0; i < QR_COUNT(faults); i++) {
        struct fixture fixture;
        qr_err err;
        set_up(&fixture, (struct qr_model_options){0});
        set_fault(&fixture, faults[i], 0);
        QR_REMOTE_ANSWER(answer);
        QR_CHECK_CODE(QR_CODE_UNAVAILABLE, embed(&fixture, &answer, &err));
        QR_CHECK_HAS("http://127.0.0.1", err.msg);
        QR_CHECK_INT(1, stats_of(&fixture).requests);
        tear_down(&fixture);
    }
}

QR_TEST(a_kept_connection_that_the_server_closed_meanwhile_is_made_anew)
{
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){0});
    set_fault(&fixture, QR_FAULT_IDLE_RESET, 0);
    for (int i = 0; i < 4; i++) {
        QR_REMOTE_ANSWER(answer);
        QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));
        QR_CHECK_INT(200, answer.status);
    }
    QR_CHECK_INT(4, stats_of(&fixture).connections);
    QR_CHECK_INT(4, stats_of(&fixture).answered);
    tear_down(&fixture);
}

QR_TEST(a_kept_connection_that_dies_under_a_request_is_tried_once_more_on_a_new_one)
{
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){0});
    const struct qr_model_step steps[] = {{.from = 2, .to = 2, .fault = QR_FAULT_RESET},
                                          {.from = 4, .to = 5, .fault = QR_FAULT_RESET}};
    qr_model_server_set_steps(fixture.server, steps, QR_COUNT(steps));
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));
    QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));                 /* 2 is reset, 3 is good */
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, embed(&fixture, &answer, &err)); /* 4 is reset, so is 5 */
    QR_CHECK_INT(5, stats_of(&fixture).requests);
    tear_down(&fixture);
}

QR_TEST(an_answer_beyond_the_limit_is_not_read)
{
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){0});
    set_fault(&fixture, QR_FAULT_HUGE, 10 << 20);
    struct qr_remote_request request = embed_request;
    request.answer_bytes_max = 1 << 20;
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_remote_send(fixture.endpoint, &request, &answer, &err));
    QR_CHECK_HAS("more than 1048576 bytes", err.msg);
    QR_CHECK(answer.body.len <= 1 << 20);
    tear_down(&fixture);
}

QR_TEST(a_server_that_does_not_answer_in_time_is_a_timeout)
{
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){0});
    set_fault(&fixture, QR_FAULT_HANG, 0);
    struct qr_endpoint *same;
    QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture.all,
                                       &(struct qr_endpoint_options){.url = qr_model_server_url(fixture.server, "/v1"),
                                                                     .api_key_env = "QUIRE_TEST_KEY",
                                                                     .timeout_ms = 200},
                                       &same, &err));
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_CODE(QR_CODE_TIMEOUT, embed(&fixture, &answer, &err));
    qr_endpoint_put(same);
    tear_down(&fixture);
}

static int64_t awaited_since(const struct fixture *fixture)
{
    return qr_endpoint_awaited_since(fixture->all,
                                     &(struct qr_endpoint_options){.url = qr_model_server_url(fixture->server, "/v1"),
                                                                   .api_key_env = "QUIRE_TEST_KEY"});
}

/* As soon as the server has the request. Meanwhile it can be seen that somebody waits for it. */
static bool has_arrived(void *arg)
{
    struct fixture *fixture = arg;
    QR_CHECK(awaited_since(fixture) > 0);
    return stats_of(arg).requests > 0;
}

QR_TEST(a_cancel_ends_a_request_that_is_under_way)
{
    struct fixture fixture;
    struct qr_endpoint_state state;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){0});
    set_fault(&fixture, QR_FAULT_HANG, 0);
    struct qr_remote_request request = embed_request;
    request.is_cancelled = has_arrived;
    request.cancel_arg = &fixture;
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_CODE(QR_CODE_CANCELLED, qr_remote_send(fixture.endpoint, &request, &answer, &err));
    qr_endpoint_look(fixture.endpoint, &state);
    QR_CHECK_INT(0, state.in_flight);
    QR_CHECK_INT(0, awaited_since(&fixture));
    tear_down(&fixture);
}

QR_TEST(nobody_there_and_no_tls_are_unavailable)
{
    struct fixture fixture, tls;
    char url[64];
    qr_err err;
    set_up(&fixture, (struct qr_model_options){0});
    snprintf(url, sizeof url, "https://127.0.0.1:%d/v1", qr_model_server_port(fixture.server));
    tls.server = NULL;
    open_endpoint(&tls, &(struct qr_endpoint_options){.url = url, .timeout_ms = 5000});
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, embed(&tls, &answer, &err));
    QR_CHECK_HAS("https://127.0.0.1", err.msg);
    close_endpoint(&tls);
    qr_model_server_stop(fixture.server);
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, embed(&fixture, &answer, &err));
    close_endpoint(&fixture);
}

QR_TEST(a_link_local_address_is_not_connected_to) /* KEY-10 */
{
    static const char *const urls[] = {"http://169.254.169.254/v1", "http://[::ffff:169.254.169.254]/v1",
                                       "http://[fe80::1]/v1", "http://[fd00:ec2::254]/v1"};
    setenv("no_proxy", "*", 1);
    for (size_t i = 0; i < QR_COUNT(urls); i++) {
        struct fixture fixture = {0};
        struct qr_remote_answer answer = {0};
        qr_err err;
        open_endpoint(&fixture, &(struct qr_endpoint_options){.url = urls[i], .timeout_ms = 20000});
        QR_CHECK_CODE(QR_CODE_UNAVAILABLE, embed(&fixture, &answer, &err));
        QR_CHECK_HAS("link-local", err.msg);
        qr_remote_answer_done(&answer);
        close_endpoint(&fixture);
    }
}

QR_TEST(a_proxy_of_the_environment_is_used)
{
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){0});
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    setenv("http_proxy", qr_model_server_url(fixture.server, ""), 1);
    close_endpoint(&fixture);
    open_endpoint(&fixture, &(struct qr_endpoint_options){.url = "http://models.invalid/v1"});
    QR_REMOTE_ANSWER(answer);
    QR_CHECK_RC(QR_OK, embed(&fixture, &answer, &err));
    QR_CLEANUP(qr_free_ptr) char *request = qr_model_server_last_request(fixture.server);
    QR_CHECK_HAS("POST http://models.invalid/v1/embeddings ", request);
    tear_down(&fixture);
}

/* ---- no memory ---- */

/* To a port where nobody is: all that is ours is done by then. */
static void send_under_faults(void *arg QR_UNUSED)
{
    struct qr_endpoints *all = NULL;
    struct qr_endpoint *endpoint = NULL;
    qr_err err = {0};
    const struct qr_endpoint_options options = {.url = "http://127.0.0.1:1/v1", .api_key_env = "QUIRE_TEST_KEY"};
    QR_REMOTE_ANSWER(answer);
    qr_rc rc = qr_endpoints_open(&all, qr_clock_system(), qr_rand_system(), NULL, NULL, &err);
    rc = rc == QR_OK ? qr_endpoint_get(all, &options, &endpoint, &err) : rc;
    rc = rc == QR_OK ? qr_remote_send(endpoint, &embed_request, &answer, &err) : rc;
    QR_CHECK(rc == QR_UNAVAILABLE || (rc == QR_NOMEM && qr_fault_fired()));
    qr_fault_disarm();
    qr_endpoint_put(endpoint);
    qr_endpoints_close(all);
}

static void refuse_under_faults(void *arg QR_UNUSED)
{
    char words[QR_REFUSAL_WORDS_SIZE];
    const qr_str body = QR_STR("{\"error\":{\"message\":\"too many tokens\",\"code\":\"x\"}}");
    const enum qr_refusal refusal = qr_refusal_read(422, body, words);
    QR_CHECK(refusal == QR_REFUSAL_TOO_LARGE || (refusal == QR_REFUSAL_SERVER && qr_fault_fired()));
    qr_fault_disarm();
}

QR_TEST(every_allocation_may_fail)
{
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("QUIRE_TEST_KEY", KEY, 1);
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, send_under_faults, NULL);
    qr_fault_sweep(QR_FAULT_MEMORY, refuse_under_faults, NULL);
}

/* ---- many at once ---- */

struct crowd {
    struct fixture *fixture;
    atomic_int good;
};

static void crowd_send(void *arg)
{
    enum { ROUNDS = 20 };
    struct crowd *crowd = arg;
    for (int i = 0; i < ROUNDS; i++) {
        QR_REMOTE_ANSWER(answer);
        qr_err err;
        if (embed(crowd->fixture, &answer, &err) == QR_OK && answer.status == 200) {
            atomic_fetch_add(&crowd->good, 1);
        }
    }
}

QR_TEST(threads_share_an_endpoint_its_connections_and_its_limit)
{
    enum { THREADS = 8 };
    struct fixture fixture;
    struct qr_thread threads[THREADS];
    struct qr_endpoint *same;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){.in_flight_max = 3});
    QR_CHECK_RC(QR_OK, qr_endpoint_get(fixture.all,
                                       &(struct qr_endpoint_options){.url = qr_model_server_url(fixture.server, "/v1"),
                                                                     .api_key_env = "QUIRE_TEST_KEY",
                                                                     .limits = {.in_flight_max = 3}},
                                       &same, &err));
    struct crowd crowd = {.fixture = &fixture};
    for (int i = 0; i < THREADS; i++) {
        QR_CHECK_RC(QR_OK, qr_thread_spawn(&threads[i], "crowd", crowd_send, &crowd, &err));
    }
    for (int i = 0; i < THREADS; i++) {
        qr_thread_join(&threads[i]);
    }
    QR_CHECK_INT(THREADS * 20, atomic_load(&crowd.good));
    QR_CHECK_INT(0, stats_of(&fixture).limited);
    QR_CHECK(stats_of(&fixture).in_flight_max <= 3);
    QR_CHECK(stats_of(&fixture).connections <= 3);
    qr_endpoint_put(same);
    tear_down(&fixture);
}

/* ---- the test server itself ---- */

QR_TEST(the_test_server_speaks_its_dialects)
{
    static const struct {
        const char *path, *json, *has;
    } calls[] = {
        {"/embeddings", "{\"input\":\"a\",\"encoding_format\":\"base64\",\"dimensions\":2}", "\"embedding\":\""},
        {"/embeddings", "{\"input\":[\"\"]}", "invalid_request_error"},
        {"/rerank", "{\"query\":\"red cat\",\"documents\":[\"blue dog\",\"red cat\"],\"top_n\":1}",
         "\"results\":[{\"index\":1,\"relevance_score\":1.0"},
        {"/rerank", "{\"query\":\"red cat\",\"texts\":[\"red cat\",\"blue dog\"]}", "[{\"index\":0,\"score\":1.0"},
        {"/chat/completions",
         "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
         "\"data:image/png;base64,AAAA\"}}]}]}",
         "A picture of about 3 bytes"},
    };
    struct fixture fixture;
    qr_err err;
    set_up(&fixture, (struct qr_model_options){.shuffles = true});
    for (size_t i = 0; i < QR_COUNT(calls); i++) {
        QR_REMOTE_ANSWER(answer);
        const struct qr_remote_request request = {
            .method = "POST", .path = calls[i].path, .json = qr_str_of(calls[i].json)};
        QR_CHECK_RC(QR_OK, qr_remote_send(fixture.endpoint, &request, &answer, &err));
        QR_CHECK_HAS(calls[i].has, answer.body.data);
    }
    tear_down(&fixture);
}
