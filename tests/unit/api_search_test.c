/* Searches through quire_call: what requests check, what answers hold, and several bases. */
#include "api/instance.h"
#include "support/api_fixture.h"

#include <stdio.h>

#define SEARCH  API_BASE "/search"
#define SEVERAL "/api/v1/search"

/* A base "b" with the provider `hash` and a note about quinces, and a base "c" with another. */
static struct quire *open_two_bases(struct qr_test *t)
{
    struct quire *quire = api_open(t);
    char id[API_ID_SIZE];
    static const char hashed[] = "{\"name\":\"b\",\"settings\":{\"embedding\":{\"provider\":\"hash\"}}}";
    json_decref(api_call(quire, "POST", "/api/v1/bases", hashed, 201));
    json_decref(api_call(quire, "POST", "/api/v1/bases", "{\"name\":\"c\"}", 201));
    api_add_note(quire, "first", "quince jelly from the garden", id);
    QR_JSON *added =
        api_call(quire, "POST", "/api/v1/bases/c/items",
                 "{\"items\":[{\"type\":\"note\",\"name\":\"second\",\"content\":\"quince bread\"}]}", 202);
    api_start_work(quire);
    json_decref(api_wait_for(quire, id, "completed"));
    char path[128];
    snprintf(path, sizeof path, "/api/v1/bases/c/items/%s",
             api_text(json_array_get(json_object_get(added, "items"), 0), "id"));
    for (bool is_done = false; !is_done;) {
        QR_JSON *item = api_call(quire, "GET", path, NULL, 200);
        is_done = strcmp(api_text(item, "status"), "completed") == 0;
    }
    return quire;
}

QR_TEST(an_answer_says_how_it_was_found)
{
    struct quire *quire = open_two_bases(t);
    QR_JSON *answer = api_call(quire, "POST", SEARCH, "{\"query\":\"quince jelly\",\"explain\":true}", 200);
    const json_t *hit = json_array_get(json_object_get(answer, "hits"), 0);
    const json_t *explain = json_object_get(answer, "explain"), *why = json_object_get(hit, "explain");
    QR_CHECK_TEXT("hybrid", api_text(answer, "mode"));
    QR_CHECK_INT(0, json_array_size(json_object_get(answer, "degraded")));
    QR_CHECK_TEXT("fused", api_text(hit, "score_kind"));
    QR_CHECK_INT(36, strlen(api_text(hit, "base_id")));
    QR_CHECK_INT(2, json_array_size(json_object_get(explain, "tokens")));
    QR_CHECK_TEXT("weighted", api_text(explain, "fusion"));
    QR_CHECK_INT(1, api_number(json_object_get(why, "text"), "rank"));
    QR_CHECK_INT(1, api_number(json_object_get(why, "vector"), "rank"));
    QR_CHECK_INT(0, json_integer_value(json_array_get(json_array_get(json_object_get(hit, "highlights"), 0), 0)));
    api_check(quire, "POST", SEARCH, "{\"query\":\"quince\",\"mode\":\"text\",\"threshold\":0.5}", 200,
              "\"threshold\"");
    api_check(quire, "POST", SEARCH, "{\"query\":\"quince\",\"mode\":\"text\"}", 200, "\"bm25\"");
    api_check(quire, "POST", SEARCH, "{\"query\":\"quince\",\"mode\":\"vector\"}", 200, "\"cosine\"");
    api_check(quire, "POST", SEARCH, "{\"query\":\"jel\",\"mode\":\"text\"}", 200, "\"relaxed\":true");
    api_check(quire, "POST", "/api/v1/bases/c/search", "{\"query\":\"quince\",\"mode\":\"vector\"}", 200,
              "\"degraded\":[\"vector\"]");
    quire_close(quire);
}

static void check_degraded(struct quire *quire, const char *query, const char *degraded)
{
    char body[100], expected[50];
    snprintf(body, sizeof body, "{\"query\":\"%s\"}", query);
    snprintf(expected, sizeof expected, "\"degraded\":[%s]", degraded);
    api_check(quire, "POST", SEARCH, body, 200, expected);
}

QR_TEST(searches_wait_for_models_in_a_part_of_the_threads_and_not_once_the_server_stops) /* HTTP-12, HTTP-3 */
{
    struct quire *quire = open_two_bases(t);
    quire->models_waiting = 11; /* of 16 threads */
    check_degraded(quire, "quince one", "");
    QR_CHECK_INT(11, quire->models_waiting);
    quire->models_waiting = 12;
    check_degraded(quire, "quince two", ""); /* a model that is well has time enough without a place too */
    QR_CHECK_INT(12, quire->models_waiting);
    quire_stop_waiting(quire);
    check_degraded(quire, "quince three", "\"vector\"");
    QR_CHECK_INT(12, quire->models_waiting);
    quire_close(quire);
}

QR_TEST(what_a_search_does_not_know_is_refused)
{
    static const struct {
        const char *body, *has;
        int status;
    } cases[] = {
        {"{\"query\":\"\"}", "query has", 422},
        {"{\"query\":7}", "query", 422},
        {"{\"query\":\"a\\u0000b\"}", "", 400},
        {"{\"query\":\"a\xff\"}", "", 400},
        {"{\"query\":\"a\",\"threshold\":2}", "threshold", 422},
        {"{\"query\":\"a\",\"diversity\":-1}", "diversity", 422},
        {"{\"query\":\"a\",\"context\":11}", "context", 422},
        {"{\"query\":\"a\",\"context\":1.5}", "whole", 422},
        {"{\"query\":\"a\",\"merge\":1}", "merge", 422},
        {"{\"query\":\"a\",\"filter\":[]}", "filter", 422},
        {"{\"query\":\"a\",\"filter\":{\"colour\":1}}", "filter.colour", 400},
        {"{\"query\":\"a\",\"filter\":{\"under\":\"x\"}}", "filter.under", 422},
        {"{\"query\":\"a\",\"filter\":{\"types\":[\"x\"]}}", "filter.types", 422},
        {"{\"query\":\"a\",\"filter\":{\"attributes\":1}}", "filter.attributes", 422},
        {"{\"query\":\"a\",\"filter\":{\"path\":\"\"}}", "filter.path has 1 to", 422},
        {"{\"query\":\"a\",\"filter\":{\"item_ids\":[],\"under\":\"01900000-0000-7000-8000-000000000000\"}}",
         "not both", 422},
        {"{\"query\":\"a\",\"base_ids\":[]}", "base_ids", 400},
    };
    struct quire *quire = api_open_base(t);
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        api_check(quire, "POST", SEARCH, cases[i].body, cases[i].status, cases[i].has);
    }
    quire_close(quire);
}

QR_TEST(an_empty_list_of_a_filter_lets_nothing_through)
{
    struct quire *quire = open_two_bases(t);
    api_check(quire, "POST", SEARCH, "{\"query\":\"quince\",\"filter\":{}}", 200, "\"hits\":[{");
    api_check(quire, "POST", SEARCH, "{\"query\":\"quince\",\"filter\":{\"types\":[\"note\"]}}", 200, "\"hits\":[{");
    api_check(quire, "POST", SEARCH, "{\"query\":\"quince\",\"filter\":{\"item_ids\":[]}}", 200, "\"hits\":[]");
    api_check(quire, "POST", SEARCH, "{\"query\":\"quince\",\"filter\":{\"types\":[]}}", 200, "\"hits\":[]");
    api_check(quire, "POST", SEVERAL, "{\"base_ids\":[\"b\",\"c\"],\"query\":\"quince\",\"filter\":{\"types\":[]}}",
              200, "\"hits\":[]");
    quire_close(quire);
}

QR_TEST(several_bases_answer_as_one)
{
    struct quire *quire = open_two_bases(t);
    QR_JSON *answer = api_call(quire, "POST", SEVERAL, "{\"base_ids\":[\"b\",\"c\",\"b\"],\"query\":\"quince\"}", 200);
    const json_t *hits = json_object_get(answer, "hits");
    QR_CHECK_INT(2, json_array_size(hits));
    QR_CHECK(strcmp(api_text(json_array_get(hits, 0), "base_id"), api_text(json_array_get(hits, 1), "base_id")) != 0);
    api_check(quire, "POST", SEVERAL, "{\"base_ids\":[\"b\",\"c\"],\"query\":\"quince\",\"mode\":\"text\"}", 200,
              "\"bm25\"");
    api_check(quire, "POST", SEVERAL, "{\"base_ids\":[\"c\"],\"query\":\"bread\"}", 200, "second");
    api_check(quire, "POST", SEVERAL, "{\"base_ids\":[\"b\",\"nowhere\"],\"query\":\"quince\"}", 404, "nowhere");
    api_check(quire, "POST", SEVERAL, "{\"query\":\"quince\"}", 422, "base_ids");
    api_check(quire, "POST", SEVERAL, "{\"base_ids\":[],\"query\":\"quince\"}", 422, "base_ids");
    api_check(quire, "POST", SEVERAL, "{\"base_ids\":[1],\"query\":\"quince\"}", 422, "base_ids");
    api_check(quire, "POST", SEVERAL, "{\"base_ids\":[\"b\"]}", 422, "query has");
    quire_close(quire);
}

static qr_rc fail_base(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE base SET status = 2, error_message = 'broken' WHERE name = 'c'", QR_NO_VALS, NULL,
                      err);
}

QR_TEST(a_base_that_has_failed_is_named)
{
    struct quire *quire = open_two_bases(t);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(quire->db, QR_RELAXED, fail_base, NULL, &err));
    api_check(quire, "POST", SEVERAL, "{\"base_ids\":[\"b\",\"c\"],\"query\":\"quince\"}", 409,
              "the base c has failed");
    quire_close(quire);
}
