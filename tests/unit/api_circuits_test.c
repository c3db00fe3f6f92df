/* A base shows which of its servers refuse to be asked, from the refusal to the next good answer, whoever saw it. */
#include "api/instance.h"
#include "base/fs.h"
#include "base/thread.h"
#include "remote/http.h"
#include "support/api_fixture.h"
#include "support/jobs_fixture.h"
#include "support/model_server.h"

#include <sched.h>
#include <stdlib.h>

static enum qr_refusal ask_with(struct quire *quire, const struct qr_endpoint_options *options)
{
    struct qr_endpoint *endpoint;
    const struct qr_remote_request request = {
        .method = "POST", .path = "/embeddings", .json = QR_STR("{\"input\":[\"a\"]}"), .wait_ms_max = 1000};
    QR_REMOTE_ANSWER(answer);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_endpoint_get(quire->endpoints, options, &endpoint, &err));
    QR_CHECK_RC(QR_OK, qr_remote_send(endpoint, &request, &answer, &err));
    qr_endpoint_put(endpoint);
    return answer.refusal;
}

static enum qr_refusal ask(struct quire *quire, const struct qr_model_server *server)
{
    return ask_with(quire, &(struct qr_endpoint_options){.url = qr_model_server_url(server, "/v1"),
                                                         .api_key_env = "QUIRE_TEST_KEY"});
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

/* ---- jobs that wait for one ---- */

static size_t count_jobs(struct quire *quire, const char *state)
{
    char path[96];
    snprintf(path, sizeof path, "/api/v1/jobs?queue=embed&state=%s", state);
    QR_JSON *answer = api_call(quire, "GET", path, NULL, 200);
    return json_array_size(json_object_get(answer, "data"));
}

/* In a file: while threads work the environment cannot be changed. */
static void set_key(struct qr_test *t, const char *key)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "key"), qr_str_of(key), 0600, &err));
}

static void name_server_and_file(struct qr_test *t, struct quire *quire, const struct qr_model_server *server)
{
    char body[1024];
    snprintf(body, sizeof body,
             "{\"settings\":{\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"%s\",\"api_key_file\":"
             "\"%s\"}}}",
             qr_model_server_url(server, "/v1"), qr_test_path(t, "key"));
    json_decref(api_call(quire, "PATCH", API_BASE, body, 200));
}

/* Two notes whose jobs wait for half a minute or longer, because the key is wrong. */
static struct quire *open_with_jobs_put_off(struct qr_test *t, const struct qr_model_server *server,
                                            char ret_ids[static 2][API_ID_SIZE])
{
    struct quire *quire = api_open_base(t);
    setenv("no_proxy", "127.0.0.1", 1);
    set_key(t, "a-wrong-key");
    name_server_and_file(t, quire, server);
    api_start_work(quire);
    api_add_note(quire, "one", "a word", ret_ids[0]);
    api_add_note(quire, "two", "another word", ret_ids[1]);
    while (count_jobs(quire, "scheduled") < 2) {
        sched_yield();
    }
    return quire;
}

static void check_completed(struct quire *quire, char ids[static 2][API_ID_SIZE])
{
    json_decref(api_wait_for(quire, ids[0], "completed"));
    json_decref(api_wait_for(quire, ids[1], "completed"));
}

QR_TEST(jobs_that_wait_for_a_server_do_not_wait_longer_than_it_refuses) /* AGAIN-2 */
{
    char ids[2][API_ID_SIZE];
    struct qr_model_server *server = qr_model_server_start(&(struct qr_model_options){.key = "the-right-key"});
    struct quire *quire = open_with_jobs_put_off(t, server, ids);
    set_key(t, "the-right-key");
    const struct qr_endpoint_options options = {.url = qr_model_server_url(server, "/v1"),
                                                .api_key_file = qr_test_path(t, "key")};
    QR_CHECK_INT(QR_REFUSAL_NONE, ask_with(quire, &options)); /* as a search would */
    QR_CHECK_INT(0, count_jobs(quire, "scheduled"));
    check_completed(quire, ids);
    quire_close(quire);
    qr_model_server_stop(server);
}

QR_TEST(a_process_that_starts_tries_a_refused_server_at_once) /* AGAIN-2 */
{
    char ids[2][API_ID_SIZE];
    struct qr_model_server *server = qr_model_server_start(&(struct qr_model_options){.key = "the-right-key"});
    quire_close(open_with_jobs_put_off(t, server, ids));
    set_key(t, "the-right-key");
    struct quire *quire = api_open(t);
    QR_CHECK_INT(2, count_jobs(quire, "scheduled"));
    api_start_work(quire);
    QR_CHECK(count_jobs(quire, "scheduled") <= 1); /* one tries, the other follows when it is answered */
    check_completed(quire, ids);
    quire_close(quire);
    qr_model_server_stop(server);
}

QR_TEST(a_retry_tries_a_refused_server_with_another_key_and_never_with_the_same) /* AGAIN-2 */
{
    char ids[2][API_ID_SIZE], body[96];
    struct qr_model_stats before, after;
    struct qr_model_server *server = qr_model_server_start(&(struct qr_model_options){.key = "the-right-key"});
    struct quire *quire = open_with_jobs_put_off(t, server, ids);
    snprintf(body, sizeof body, "{\"ids\":[\"%s\"]}", ids[1]);
    qr_model_server_stats(server, &before);
    api_check(quire, "POST", API_ITEMS "/retry", body, 202, "already_in_progress");
    while (count_jobs(quire, "scheduled") < 2) {
        sched_yield();
    }
    qr_model_server_stats(server, &after);
    QR_CHECK_INT(before.requests, after.requests);
    set_key(t, "the-right-key");
    api_check(quire, "POST", API_ITEMS "/retry", body, 202, "already_in_progress");
    check_completed(quire, ids);
    quire_close(quire);
    qr_model_server_stop(server);
}

QR_TEST(a_server_that_does_not_answer_is_shown_while_it_is_waited_for)
{
    struct quire *quire = api_open_base(t);
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("QUIRE_TEST_KEY", "a-key", 1);
    struct qr_model_server *server = qr_model_server_start(&(struct qr_model_options){0});
    const struct qr_model_step hangs = {.from = 1, .fault = QR_FAULT_HANG};
    char id[API_ID_SIZE];
    qr_model_server_set_steps(server, &hangs, 1);
    name_server(quire, server);
    api_check(quire, "GET", API_BASE, NULL, 200, "\"awaited\":[]");
    api_start_work(quire);
    api_add_note(quire, "n", "words", id);
    for (bool is_shown = false; !is_shown; qr_world_pause_briefly()) {
        QR_JSON *base = api_call(quire, "GET", API_BASE, NULL, 200);
        const json_t *awaited = json_array_get(json_object_get(base, "awaited"), 0);
        is_shown = json_is_object(awaited);
        if (is_shown) {
            QR_CHECK_TEXT("embedding", api_text(awaited, "for"));
            QR_CHECK_TEXT(qr_model_server_url(server, "/v1"), api_text(awaited, "url"));
            api_check(quire, "GET", api_item_path(id, "/events"), NULL, 200, "\"awaited\":{\"url\":\"http");
        }
    }
    quire_close(quire);
    qr_model_server_stop(server);
}

static void *ask_both(void *quire)
{
    api_check(quire, "POST", "/api/v1/search", "{\"query\":\"tide\",\"base_ids\":[\"one\",\"two\"]}", 200,
              "\"degraded\":[\"vector\"]");
    return NULL;
}

/* One after another, the second one would be asked only when the time for the first one is over, which is far away. */
QR_TEST(models_of_several_bases_are_asked_at_once) /* EMB-2 */
{
    static const struct quire_setting patience = {"search.model_wait_ms", "600000"};
    struct quire *quire = api_open(t);
    QR_CHECK_INT(0, quire_reload(quire, &patience, 1, NULL));
    struct qr_model_stats stats = {0};
    setenv("no_proxy", "127.0.0.1", 1);
    struct qr_model_server *server = qr_model_server_start(&(struct qr_model_options){0});
    static const char *const names[] = {"one", "two"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        char body[256];
        snprintf(
            body, sizeof body,
            "{\"name\":\"%s\",\"settings\":{\"embedding\":{\"provider\":\"openai\",\"url\":\"%s\",\"model\":\"%s\"}}}",
            names[i], qr_model_server_url(server, "/v1"), names[i]);
        api_check(quire, "POST", "/api/v1/bases", body, 201, "");
    }
    const struct qr_model_step hangs = {.from = 1, .fault = QR_FAULT_HANG};
    qr_model_server_set_steps(server, &hangs, 1);
    pthread_t thread;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_thread_start(&thread, "asker", ask_both, quire, &err));
    while (stats.in_flight_max < 2) {
        qr_world_pause_briefly();
        qr_model_server_stats(server, &stats);
    }
    qr_model_server_stop(server); /* nobody waits for it any longer */
    pthread_join(thread, NULL);
    quire_close(quire);
}
