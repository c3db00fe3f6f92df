/* `quire base show` says what a base waits for. */
#include "api/instance.h"
#include "remote/http.h"
#include "support/api_fixture.h"
#include "support/model_server.h"
#include "support/program.h"

#include <stdlib.h>

/* One request by another process than the one that shows it. */
static void ask(struct qr_test *t, const struct qr_model_server *server)
{
    struct quire *quire = api_open(t);
    struct qr_endpoint *endpoint;
    qr_err err;
    QR_REMOTE_ANSWER(answer);
    const struct qr_endpoint_options options = {.url = qr_model_server_url(server, "/v1"), .api_key_env = "TEST_KEY"};
    const struct qr_remote_request request = {
        .method = "POST", .path = "/embeddings", .json = QR_STR("{\"input\":[\"a\"]}"), .wait_ms_max = 1000};
    QR_CHECK_RC(QR_OK, qr_endpoint_get(quire->endpoints, &options, &endpoint, &err));
    QR_CHECK_RC(QR_OK, qr_remote_send(endpoint, &request, &answer, &err));
    qr_endpoint_put(endpoint);
    quire_close(quire);
}

QR_TEST(a_base_says_which_server_refuses_it_until_that_answers) /* AGAIN-2 */
{
    char url[128];
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("TEST_KEY", "a-wrong-key", 1);
    struct qr_model_server *server = qr_model_server_start(&(struct qr_model_options){.key = "the-right-key"});
    snprintf(url, sizeof url, "embedding.url=%s", qr_model_server_url(server, "/v1"));
    program_check(t,
                  PROGRAM("base", "create", "b", "embedding.provider=openai", "embedding.model=m", url,
                          "embedding.api_key_env=TEST_KEY"),
                  0, "name      b");
    QR_CHECK(!strstr(program_check(t, PROGRAM("base", "show", "b"), 0, "status    ready"), "waits"));
    ask(t, server);
    const char *shown = program_check(t, PROGRAM("base", "show", "b"), 0, "waits     for embedding: http://127.0.0.1:");
    QR_CHECK_HAS("answers 401", shown);
    QR_CHECK_HAS("(endpoint_refused), since ", shown);
    QR_CHECK_HAS("tried again at ", shown);
    QR_CHECK(!strstr(shown, "a-wrong-key"));
    setenv("TEST_KEY", "the-right-key", 1);
    ask(t, server);
    QR_CHECK(!strstr(program_check(t, PROGRAM("base", "show", "b"), 0, "status    ready"), "waits"));
    qr_model_server_stop(server);
}
