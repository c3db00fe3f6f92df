/* A base shows which of its servers refuse to be asked, from the refusal to the next good answer, whoever saw it. */
#include "api/instance.h"
#include "remote/http.h"
#include "support/api_fixture.h"
#include "support/model_server.h"

#include <stdlib.h>

static struct qr_endpoint *get_endpoint(struct quire *quire, const struct qr_model_server *server)
{
    struct qr_endpoint *endpoint;
    qr_err err;
    const struct qr_endpoint_options options = {.url = qr_model_server_url(server, "/v1"),
                                                .api_key_env = "QUIRE_TEST_KEY"};
    QR_CHECK_RC(QR_OK, qr_endpoint_get(quire->endpoints, &options, &endpoint, &err));
    return endpoint;
}

static enum qr_refusal ask(struct quire *quire, const struct qr_model_server *server)
{
    struct qr_endpoint *endpoint = get_endpoint(quire, server);
    const struct qr_remote_request request = {
        .method = "POST", .path = "/embeddings", .json = QR_STR("{\"input\":[\"a\"]}"), .wait_ms_max = 1000};
    QR_REMOTE_ANSWER(answer);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_remote_send(endpoint, &request, &answer, &err));
    qr_endpoint_put(endpoint);
    return answer.refusal;
}

static void name_server(struct quire *quire, const struct qr_model_server *server)
{
    char body[512];
    snprintf(body, sizeof body,
             "{\"settings\":{\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"%s\",\"api_key_env\":"
             "\"QUIRE_TEST_KEY\"}}}",
             qr_model_server_url(server, "/v1/"));
    json_decref(api_call(quire, "PATCH", API_BASE, body, 200));
}

QR_TEST(a_base_shows_the_circuits_of_the_servers_it_names) /* AGAIN-2 */
{
    struct quire *quire = api_open_base(t);
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("QUIRE_TEST_KEY", "a-wrong-key", 1);
    struct qr_model_server *server = qr_model_server_start(&(struct qr_model_options){.key = "the-right-key"});
    api_check(quire, "GET", API_BASE, NULL, 200, "\"circuits\":[]");
    QR_CHECK_INT(QR_REFUSAL_ENDPOINT, ask(quire, server));
    api_check(quire, "GET", API_BASE, NULL, 200, "\"circuits\":[]"); /* it does not name it */
    name_server(quire, server);
    QR_JSON *base = api_call(quire, "GET", API_BASE, NULL, 200);
    const json_t *circuit = json_array_get(json_object_get(base, "circuits"), 0);
    QR_CHECK_TEXT("embedding", api_text(circuit, "for"));
    QR_CHECK_TEXT(qr_model_server_url(server, "/v1"), api_text(circuit, "url"));
    QR_CHECK_TEXT("endpoint_refused", api_text(circuit, "code"));
    QR_CHECK_HAS("answers 401", api_text(circuit, "message"));
    QR_CHECK(!strstr(api_text(circuit, "message"), "a-wrong-key"));
    QR_CHECK(strcmp(api_text(circuit, "since"), api_text(circuit, "next_try_at")) < 0);
    setenv("QUIRE_TEST_KEY", "the-right-key", 1);
    QR_CHECK_INT(QR_REFUSAL_NONE, ask(quire, server));
    api_check(quire, "GET", API_BASE, NULL, 200, "\"circuits\":[]");
    quire_close(quire);
    qr_model_server_stop(server);
}

QR_TEST(word_of_an_open_circuit_outlives_the_process_until_somebody_is_answered)
{
    struct quire *quire = api_open_base(t);
    setenv("no_proxy", "127.0.0.1", 1);
    struct qr_model_server *server = qr_model_server_start(&(struct qr_model_options){0});
    const struct qr_model_step step = {.from = 1, .to = 1, .fault = QR_FAULT_QUOTA};
    setenv("QUIRE_TEST_KEY", "a-key", 1);
    qr_model_server_set_steps(server, &step, 1);
    name_server(quire, server);
    QR_CHECK_INT(QR_REFUSAL_ENDPOINT, ask(quire, server));
    quire_close(quire);
    quire = api_open(t);
    api_check(quire, "GET", API_BASE, NULL, 200, "quota");
    QR_CHECK_INT(QR_REFUSAL_NONE, ask(quire, server));
    api_check(quire, "GET", API_BASE, NULL, 200, "\"circuits\":[]");
    quire_close(quire);
    qr_model_server_stop(server);
}
