/* Reranking through quire_call: what a request may say, what an answer shows, and what it does when the server does not. */
#include "support/api_fixture.h"
#include "support/model_server.h"

#include <stdio.h>
#include <stdlib.h>

#define SEARCH API_BASE "/search"

struct fixture {
    struct quire *quire;
    struct qr_model_server *server;
};

static void name_reranker(const struct fixture *fixture, const char *base, const char *model)
{
    char path[64], body[512];
    snprintf(path, sizeof path, "/api/v1/bases/%s", base);
    snprintf(body, sizeof body,
             "{\"settings\":{\"retrieval\":{\"rerank\":{\"provider\":\"jina\",\"url\":\"%s\",\"model\":\"%s\","
             "\"api_key_env\":\"QUIRE_TEST_KEY\",\"top_n\":3}}}}",
             qr_model_server_url(fixture->server, "/v1"), model);
    json_decref(api_call(fixture->quire, "PATCH", path, body, 200));
}

/* By words the first note is best for "quince"; the model server likes texts that are all about the query. */
static void set_up(struct fixture *fixture, struct qr_test *t)
{
    char id[API_ID_SIZE];
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("QUIRE_TEST_KEY", "the-right-key", 1);
    fixture->server = qr_model_server_start(&(struct qr_model_options){.key = "the-right-key"});
    fixture->quire = api_open_base(t);
    json_decref(api_call(fixture->quire, "POST", "/api/v1/bases", "{\"name\":\"c\"}", 201));
    api_add_note(fixture->quire, "twice", "quince and quince with much sugar", id);
    api_start_work(fixture->quire);
    json_decref(api_wait_for(fixture->quire, id, "completed"));
    api_add_note(fixture->quire, "once", "a quince here", id);
    json_decref(api_wait_for(fixture->quire, id, "completed"));
}

static void tear_down(struct fixture *fixture)
{
    quire_close(fixture->quire);
    qr_model_server_stop(fixture->server);
}

static int64_t requests_of(struct fixture *fixture)
{
    struct qr_model_stats stats;
    qr_model_server_stats(fixture->server, &stats);
    return stats.requests;
}

static const json_t *hit_of(const json_t *answer, size_t i)
{
    return json_array_get(json_object_get(answer, "hits"), i);
}

QR_TEST(an_answer_that_was_reranked_says_how)
{
    struct fixture fixture;
    set_up(&fixture, t);
    name_reranker(&fixture, "b", "m");
    QR_JSON *answer = api_call(fixture.quire, "POST", SEARCH, "{\"query\":\"quince\",\"explain\":true}",
                               200); /* as the base has it */
    const json_t *why = json_object_get(hit_of(answer, 0), "explain");
    QR_CHECK_INT(0, json_array_size(json_object_get(answer, "degraded")));
    QR_CHECK_TEXT("rerank", api_text(hit_of(answer, 0), "score_kind"));
    QR_CHECK_INT(2, api_number(json_object_get(json_object_get(answer, "explain"), "rerank"), "count"));
    QR_CHECK(json_is_number(json_object_get(json_object_get(why, "fused"), "score")));
    QR_CHECK(api_number(json_object_get(why, "fused"), "rank") >= 1);
    QR_CHECK(json_number_value(json_object_get(json_object_get(why, "rerank"), "score")) ==
             json_number_value(json_object_get(hit_of(answer, 0), "score")));
    QR_CHECK_INT(1, requests_of(&fixture));
    api_check(fixture.quire, "POST", SEARCH, "{\"query\":\"quince\",\"rerank\":false}", 200, "\"bm25\"");
    QR_CHECK_INT(1, requests_of(&fixture));
    QR_JSON *one = api_call(fixture.quire, "POST", SEARCH, "{\"query\":\"quince\",\"rerank\":1,\"explain\":true}", 200);
    QR_CHECK_INT(1, api_number(json_object_get(json_object_get(one, "explain"), "rerank"), "count"));
    QR_CHECK(json_is_null(json_object_get(json_object_get(hit_of(one, 1), "explain"), "rerank")));
    tear_down(&fixture);
}

QR_TEST(what_rerank_cannot_be_is_refused)
{
    static const char *const bodies[] = {"{\"query\":\"a\",\"rerank\":0}", "{\"query\":\"a\",\"rerank\":201}",
                                         "{\"query\":\"a\",\"rerank\":1.5}", "{\"query\":\"a\",\"rerank\":\"yes\"}",
                                         "{\"query\":\"a\",\"rerank\":{}}"};
    struct quire *quire = api_open_base(t);
    for (size_t i = 0; i < QR_COUNT(bodies); i++) {
        api_check(quire, "POST", SEARCH, bodies[i], 422, "rerank is");
    }
    quire_close(quire);
}

QR_TEST(a_search_goes_on_without_its_reranker)
{
    static const struct {
        enum qr_model_fault fault;
        int64_t number;
        const char *code;
    } cases[] = {{QR_FAULT_500, 0, "unavailable"},
                 {QR_FAULT_BAD_JSON, 0, "unavailable"},
                 {QR_FAULT_TRUNCATED, 0, "unavailable"},
                 {QR_FAULT_422, 0, "bad_request"}};
    struct fixture fixture;
    set_up(&fixture, t);
    name_reranker(&fixture, "b", "m");
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("fault %d", (int)cases[i].fault);
        qr_model_server_set_steps(
            fixture.server, &(struct qr_model_step){.from = 1, .fault = cases[i].fault, .number = cases[i].number}, 1);
        QR_JSON *answer = api_call(fixture.quire, "POST", SEARCH, "{\"query\":\"quince\",\"explain\":true}", 200);
        const json_t *error = json_object_get(json_object_get(json_object_get(answer, "explain"), "rerank"), "error");
        QR_CHECK_INT(2, json_array_size(json_object_get(answer, "hits")));
        QR_CHECK_TEXT("bm25", api_text(hit_of(answer, 0), "score_kind"));
        QR_CHECK_TEXT("rerank", json_string_value(json_array_get(json_object_get(answer, "degraded"), 0)));
        QR_CHECK_TEXT(cases[i].code, api_text(error, "code"));
    }
    tear_down(&fixture);
}

QR_TEST(a_reranker_that_refuses_the_key_is_shown_by_its_base) /* AGAIN-2 */
{
    struct fixture fixture;
    set_up(&fixture, t);
    name_reranker(&fixture, "b", "m");
    setenv("QUIRE_TEST_KEY", "sk-wrong-0123456789", 1);
    for (int i = 0; i < 3; i++) {
        api_check(fixture.quire, "POST", SEARCH, "{\"query\":\"quince\"}", 200, "\"degraded\":[\"rerank\"]");
    }
    QR_CHECK_INT(1, requests_of(&fixture)); /* then it is left alone */
    QR_JSON *base = api_call(fixture.quire, "GET", API_BASE, NULL, 200);
    const json_t *circuit = json_array_get(json_object_get(base, "circuits"), 0);
    QR_CHECK_TEXT("rerank", api_text(circuit, "for"));
    QR_CHECK_TEXT("endpoint_refused", api_text(circuit, "code"));
    QR_CHECK(!strstr(api_text(circuit, "message"), "sk-wrong"));
    tear_down(&fixture);
}

QR_TEST(several_bases_are_reranked_where_they_name_the_same_reranker)
{
    static const char several[] = "{\"base_ids\":[\"b\",\"c\"],\"query\":\"quince\",\"rerank\":true}";
    struct fixture fixture;
    set_up(&fixture, t);
    api_check(fixture.quire, "POST", "/api/v1/search", several, 200, "\"degraded\":[\"rerank\"]"); /* there is none */
    name_reranker(&fixture, "b", "m");
    api_check(fixture.quire, "POST", "/api/v1/search", several, 200, "\"degraded\":[\"rerank\"]");
    name_reranker(&fixture, "c", "other");
    api_check(fixture.quire, "POST", "/api/v1/search", several, 200, "\"degraded\":[\"rerank\"]");
    QR_CHECK_INT(0, requests_of(&fixture));
    name_reranker(&fixture, "c", "m");
    QR_JSON *answer = api_call(fixture.quire, "POST", "/api/v1/search", several, 200);
    QR_CHECK_INT(0, json_array_size(json_object_get(answer, "degraded")));
    QR_CHECK_TEXT("rerank", api_text(hit_of(answer, 0), "score_kind"));
    api_check(fixture.quire, "POST", "/api/v1/search", "{\"base_ids\":[\"b\",\"c\"],\"query\":\"quince\"}", 200,
              "\"bm25\""); /* of several, as by default */
    tear_down(&fixture);
}
