/* The endpoints in the shapes of others: what they take, what they answer, and how they refuse. */
#include "api/instance.h"
#include "base/base64.h"
#include "support/api_fixture.h"

static void wait_for_all(struct quire *quire, const json_t *items)
{
    const json_t *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        json_decref(api_wait_for(quire, api_text(item, "id"), "completed"));
    }
}

/* A base with vectors and three notes. */
static struct quire *open_town(struct qr_test *t)
{
    struct quire *quire = api_open(t);
    api_check(quire, "POST", "/api/v1/bases", "{\"name\":\"b\",\"settings\":{\"embedding\":{\"provider\":\"hash\"}}}",
              201, "");
    api_start_work(quire);
    QR_JSON *added = api_call(
        quire, "POST", API_ITEMS,
        "{\"items\":["
        "{\"type\":\"note\",\"name\":\"harbour\",\"content\":\"Boats at high "
        "tide.\",\"attributes\":{\"town\":\"hamburg\","
        "\"year\":2024,\"tags\":[\"sea\",\"port\"]}},"
        "{\"type\":\"note\",\"name\":\"beach\",\"content\":\"A walk at low tide.\",\"attributes\":{\"town\":\"bremen\","
        "\"year\":\"2019\",\"since\":\"2020-05-01\"}},"
        "{\"type\":\"note\",\"name\":\"bakery\",\"content\":\"Bread at six.\"}]}",
        202);
    wait_for_all(quire, json_object_get(added, "items"));
    return quire;
}

static void check_names(const json_t *list, const char *member, const char *wanted)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf names = {0};
    const json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        qr_buf_printf(&names, "%s%s", i ? " " : "", api_text(entry, member));
    }
    QR_CHECK_STR(wanted, qr_buf_str(&names));
}

/* ---- Dify ---- */

QR_TEST(dify_gets_records_whose_metadata_is_never_null) /* SHAPE-1 */
{
    struct quire *quire = open_town(t);
    QR_JSON *answer =
        api_call(quire, "POST", "/retrieval",
                 "{\"knowledge_id\":\"b\",\"query\":\"tide bread\",\"unknown\":1,\"retrieval_setting\":{\"top_k\":"
                 "5,\"score_threshold\":0.0}}",
                 200);
    const json_t *records = json_object_get(answer, "records"), *record;
    size_t i;
    QR_CHECK_INT(3, json_array_size(records));
    json_array_foreach(records, i, record)
    {
        const json_t *metadata = json_object_get(record, "metadata"), *score = json_object_get(record, "score"), *value;
        const char *name;
        QR_CHECK(json_is_object(metadata) && api_text(metadata, "item_id")[0]);
        json_object_foreach((json_t *)metadata, name, value)
        {
            QR_CHECK(!json_is_null(value));
        }
        QR_CHECK(json_is_real(score) && json_real_value(score) >= 0 && json_real_value(score) <= 1);
        QR_CHECK(api_text(record, "title")[0] && api_text(record, "content")[0]);
    }
    api_check(quire, "POST", "/retrieval",
              "{\"knowledge_id\":\"b\",\"query\":\"nowhereword\",\"retrieval_setting\":{"
              "\"score_threshold\":1}}",
              200, "{\"records\":[]}");
    quire_close(quire);
}

QR_TEST(dify_conditions_choose_by_attributes)
{
    struct quire *quire = open_town(t);
    static const struct {
        const char *conditions, *wanted;
    } cases[] = {
        {"{\"conditions\":[{\"name\":\"town\",\"comparison_operator\":\"is\",\"value\":\"bremen\"}]}", "beach"},
        {"{\"conditions\":[{\"name\":[\"place\",\"town\"],\"comparison_operator\":\"is\",\"value\":\"bremen\"}]}",
         "beach"},
        {"{\"conditions\":[{\"name\":\"town\",\"comparison_operator\":\"contains\",\"value\":\"burg\"}]}", "harbour"},
        {"{\"conditions\":[{\"name\":\"town\",\"comparison_operator\":\"start with\",\"value\":\"ham\"}]}", "harbour"},
        {"{\"conditions\":[{\"name\":\"town\",\"comparison_operator\":\"end with\",\"value\":\"men\"}]}", "beach"},
        {"{\"conditions\":[{\"name\":\"town\",\"comparison_operator\":\"in\",\"value\":[\"rome\",\"hamburg\"]}]}",
         "harbour"},
        {"{\"conditions\":[{\"name\":\"tags\",\"comparison_operator\":\"is\",\"value\":\"port\"}]}", "harbour"},
        {"{\"conditions\":[{\"name\":\"since\",\"comparison_operator\":\"empty\"},{\"name\":\"town\","
         "\"comparison_operator\":\"not empty\"}]}",
         "harbour"},
        {"{\"conditions\":[{\"name\":\"year\",\"comparison_operator\":\"≥\",\"value\":2020}]}", "harbour"},
        {"{\"conditions\":[{\"name\":\"year\",\"comparison_operator\":\"<\",\"value\":\"2020\"}]}", "beach"},
        {"{\"conditions\":[{\"name\":\"since\",\"comparison_operator\":\"after\",\"value\":\"2020-04-30\"}]}", "beach"},
        {"{\"conditions\":[{\"name\":\"since\",\"comparison_operator\":\"before\",\"value\":\"2020-04-30\"}]}", ""},
        {"{\"logical_operator\":\"or\",\"conditions\":[{\"name\":\"town\",\"comparison_operator\":\"is\",\"value\":"
         "\"rome\"},"
         "{\"name\":\"year\",\"comparison_operator\":\"=\",\"value\":2019}]}",
         "beach"},
        {"{\"logical_operator\":\"and\",\"conditions\":[{\"name\":\"town\",\"comparison_operator\":\"is\",\"value\":"
         "\"bremen\"},{\"name\":\"year\",\"comparison_operator\":\"=\",\"value\":2024}]}",
         ""},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        char body[1024];
        qr_test_set_context("%s", cases[i].conditions);
        snprintf(body, sizeof body, "{\"knowledge_id\":\"b\",\"query\":\"tide\",\"metadata_condition\":%s}",
                 cases[i].conditions);
        QR_JSON *answer = api_call(quire, "POST", "/retrieval", body, 200);
        check_names(json_object_get(answer, "records"), "title", cases[i].wanted);
    }
    quire_close(quire);
}

QR_TEST(dify_is_refused_in_its_own_shape) /* SHAPE-1 */
{
    struct quire *quire = open_town(t);
    static const struct {
        const char *body;
        int status;
        const char *has;
    } cases[] = {
        {"{\"knowledge_id\":\"nowhere\",\"query\":\"x\"}", 404, "{\"error_code\":2001,\"error_msg\":\""},
        {"{\"query\":\"x\"}", 422, "\"error_code\":422"},
        {"{\"knowledge_id\":\"b\"}", 422, "\"error_msg\":\"query has"},
        {"{\"knowledge_id\":7,\"query\":\"x\"}", 422, "\"error_code\":422"},
        {"{\"knowledge_id\":\"b\",\"query\":\"x\",\"retrieval_setting\":{\"top_k\":0}}", 422, "top_k"},
        {"{\"knowledge_id\":\"b\",\"query\":\"x\",\"retrieval_setting\":{\"score_threshold\":\"a\"}}", 422,
         "score_threshold"},
        {"{\"knowledge_id\":\"b\",\"query\":\"x\",\"metadata_condition\":{\"conditions\":[{\"name\":\"a\","
         "\"comparison_operator\":\"like\"}]}}",
         422, "comparison_operator"},
        {"{\"knowledge_id\":\"b\",\"query\":\"x\",\"metadata_condition\":{\"conditions\":[{\"comparison_operator\":"
         "\"is\"}]}}",
         422, "name is a text"},
        {"[]", 400, "\"error_code\":400"},
        {"{", 400, "\"error_code\":400"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        api_check(quire, "POST", "/retrieval", cases[i].body, cases[i].status, cases[i].has);
    }
    quire_close(quire);
}

QR_TEST(dify_is_told_what_is_wrong_with_its_key)
{
    struct quire *quire = open_town(t);
    json_decref(api_call(quire, "POST", "/api/v1/keys", "{\"name\":\"k\",\"admin\":true}", 201));
    static const char body[] = "{\"knowledge_id\":\"b\",\"query\":\"x\"}";
    static const struct {
        const char *authorization, *has;
    } cases[] = {
        {NULL, "\"error_code\":1001"}, {"Basic x", "\"error_code\":1001"}, {"Bearer qk_x", "\"error_code\":1002"}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        const struct quire_request request = {.method = "POST",
                                              .target = "/retrieval",
                                              .body = body,
                                              .body_size = sizeof body - 1,
                                              .authorization = cases[i].authorization,
                                              .remote_address = "192.0.2.1"};
        struct quire_response response;
        QR_CHECK_INT(401, quire_request_call(quire, &request, &response));
        QR_CHECK_HAS(cases[i].has, response.body);
        quire_response_done(&response);
    }
    quire_close(quire);
}

QR_TEST(what_a_key_has_no_role_in_is_not_there_in_any_shape) /* SHAPE-2 */
{
    struct quire *quire = open_town(t);
    QR_JSON *key = api_call(quire, "POST", "/api/v1/keys", "{\"name\":\"k\"}", 201);
    static const struct {
        const char *target, *body, *has;
    } cases[] = {{"/retrieval", "{\"knowledge_id\":\"b\",\"query\":\"tide\"}", "\"error_code\":2001"},
                 {"/v1/vector_stores/b/search", "{\"query\":\"tide\"}", "\"code\":\"not_found\""},
                 {"/v1/embeddings", "{\"model\":\"b\",\"input\":\"x\"}", "\"code\":\"not_found\""}};
    char authorization[200];
    snprintf(authorization, sizeof authorization, "Bearer %s", api_text(key, "secret"));
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        const struct quire_request request = {.method = "POST",
                                              .target = cases[i].target,
                                              .body = cases[i].body,
                                              .body_size = strlen(cases[i].body),
                                              .authorization = authorization,
                                              .remote_address = "192.0.2.1"};
        struct quire_response response;
        QR_CHECK_INT(404, quire_request_call(quire, &request, &response));
        QR_CHECK_HAS(cases[i].has, response.body);
        quire_response_done(&response);
    }
    quire_close(quire);
}

/* ---- OpenAI: vector stores ---- */

QR_TEST(a_vector_store_is_searched)
{
    struct quire *quire = open_town(t);
    QR_JSON *answer = api_call(quire, "POST", "/v1/vector_stores/b/search",
                               "{\"query\":[\"tide\",\"boats\"],\"max_num_results\":2,\"rewrite_query\":true}", 200);
    const json_t *first = json_array_get(json_object_get(answer, "data"), 0);
    QR_CHECK_TEXT("vector_store.search_results.page", api_text(answer, "object"));
    QR_CHECK_INT(2, json_array_size(json_object_get(answer, "search_query")));
    QR_CHECK_INT(2, json_array_size(json_object_get(answer, "data")));
    QR_CHECK(json_is_false(json_object_get(answer, "has_more")) && json_is_null(json_object_get(answer, "next_page")));
    QR_CHECK_TEXT("harbour", api_text(first, "filename"));
    QR_CHECK_INT(36, strlen(api_text(first, "file_id")));
    QR_CHECK_TEXT("Boats at high tide.", api_text(json_array_get(json_object_get(first, "content"), 0), "text"));
    /* lists are not among what an attribute may be there */
    QR_CHECK_INT(2, json_object_size(json_object_get(first, "attributes")));
    quire_close(quire);
}

QR_TEST(a_vector_store_is_filtered)
{
    struct quire *quire = open_town(t);
    static const struct {
        const char *filters, *wanted;
    } cases[] = {
        {"{\"type\":\"eq\",\"key\":\"town\",\"value\":\"bremen\"}", "beach"},
        {"{\"type\":\"ne\",\"key\":\"town\",\"value\":\"bremen\"}", "harbour bakery"},
        {"{\"type\":\"gt\",\"key\":\"year\",\"value\":2019}", "harbour"},
        {"{\"type\":\"gte\",\"key\":\"year\",\"value\":2024}", "harbour"},
        {"{\"type\":\"lt\",\"key\":\"year\",\"value\":2024}", "beach"},
        {"{\"type\":\"lte\",\"key\":\"year\",\"value\":2019}", "beach"},
        {"{\"type\":\"in\",\"key\":\"town\",\"value\":[\"bremen\"]}", "beach"},
        {"{\"type\":\"nin\",\"key\":\"town\",\"value\":[\"bremen\"]}", "harbour bakery"},
        {"{\"type\":\"or\",\"filters\":[{\"type\":\"eq\",\"key\":\"town\",\"value\":\"rome\"},{\"type\":\"and\","
         "\"filters\":["
         "{\"type\":\"eq\",\"key\":\"town\",\"value\":\"hamburg\"},{\"type\":\"eq\",\"key\":\"year\",\"value\":2024}]}]"
         "}",
         "harbour"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        char body[1024];
        qr_test_set_context("%s", cases[i].filters);
        snprintf(body, sizeof body, "{\"query\":\"boats tide bread\",\"filters\":%s}", cases[i].filters);
        QR_JSON *answer = api_call(quire, "POST", "/v1/vector_stores/b/search", body, 200);
        const json_t *data = json_object_get(answer, "data");
        if (json_array_size(data) == 2) { /* in whatever order */
            QR_CHECK_TEXT("harbour bakery", cases[i].wanted);
        } else {
            check_names(data, "filename", cases[i].wanted);
        }
    }
    quire_close(quire);
}

QR_TEST(openai_is_refused_in_its_own_shape) /* SHAPE-1 */
{
    struct quire *quire = open_town(t);
    static const char store[] = "/v1/vector_stores/b/search", embeddings[] = "/v1/embeddings";
    static const struct {
        const char *path, *body;
        int status;
        const char *has;
    } cases[] = {
        {"/v1/vector_stores/nowhere/search", "{\"query\":\"x\"}", 404, "\"type\":\"invalid_request_error\""},
        {store, "{}", 422, "query is a text"},
        {store, "{\"query\":[]}", 422, "query is a text"},
        {store, "{\"query\":[7]}", 422, "query is a text"},
        {store, "{\"query\":\"x\",\"max_num_results\":51}", 422, "max_num_results"},
        {store, "{\"query\":\"x\",\"filters\":[]}", 422, "\"param\":null"},
        {store, "{\"query\":\"x\",\"filters\":{\"type\":\"like\",\"key\":\"a\",\"value\":1}}", 422,
         "a filter has type"},
        {store, "{\"query\":\"x\",\"filters\":{\"type\":\"and\",\"filters\":7}}", 422, "is a list"},
        {embeddings, "{\"model\":\"b\",\"input\":[1,2]}", 422, "token ids"},
        {embeddings, "{\"model\":\"b\",\"input\":[[1,2]]}", 422, "token ids"},
        {embeddings, "{\"model\":\"b\",\"input\":\"\"}", 422, "input[0]"},
        {embeddings, "{\"model\":\"b\",\"input\":[]}", 422, "input is a text"},
        {embeddings, "{\"model\":\"b\",\"input\":7}", 422, "input is a text"},
        {embeddings, "{\"model\":\"b\"}", 422, "input is a text"},
        {embeddings, "{\"input\":\"x\"}", 422, "model is missing"},
        {embeddings, "{\"model\":\"other\",\"input\":\"x\"}", 404, "\"code\":\"not_found\""},
        {embeddings, "{\"model\":\"b\",\"input\":\"x\",\"encoding_format\":\"hex\"}", 422, "encoding_format"},
        {embeddings, "{\"model\":\"b\",\"input\":\"x\",\"dimensions\":3}", 422, "dimensions"},
        {embeddings, "{\"model\":\"b\",\"input\":\"x\",\"dimensions\":0}", 422, "dimensions is a whole number"},
        {embeddings, "{\"model\":\"b\",\"input\":\"QUIRE-UNEMBEDDABLE\"}", 502, "\"type\":\"server_error\""},
        {embeddings, "{", 400, "\"type\":\"invalid_request_error\""},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("%s", cases[i].body);
        api_check(quire, "POST", cases[i].path, cases[i].body, cases[i].status, cases[i].has);
    }
    api_check(quire, "POST", "/api/v1/bases", "{\"name\":\"words\"}", 201, "");
    api_check(quire, "POST", embeddings, "{\"model\":\"words\",\"input\":\"x\"}", 422, "no embedding model");
    quire_close(quire);
}

QR_TEST(filters_without_end_are_refused)
{
    struct quire *quire = open_town(t);
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    qr_buf_add_text(&body, "{\"query\":\"x\",\"filters\":");
    for (int i = 0; i < 20; i++) {
        qr_buf_add_text(&body, "{\"type\":\"and\",\"filters\":[");
    }
    for (int i = 0; i < 20; i++) {
        qr_buf_add_text(&body, "]}");
    }
    qr_buf_add_text(&body, "}");
    api_check(quire, "POST", "/v1/vector_stores/b/search", body.data, 422, "nested at most");
    quire_close(quire);
}

/* ---- OpenAI: embeddings ---- */

QR_TEST(requests_that_wait_for_models_leave_threads_for_others) /* HTTP-12 */
{
    static const char body[] = "{\"model\":\"b\",\"input\":\"x\"}";
    struct quire *quire = open_town(t);
    quire->models_waiting = 12; /* of 16 threads */
    api_check(quire, "POST", "/v1/embeddings", body, 503, "12 requests wait for models already");
    QR_CHECK_INT(12, quire->models_waiting);
    quire->models_waiting = 11;
    api_check(quire, "POST", "/v1/embeddings", body, 200, "\"embedding\"");
    api_check(quire, "POST", "/v1/embeddings", "{\"model\":\"b\",\"input\":\"QUIRE-UNEMBEDDABLE\"}", 502, "");
    QR_CHECK_INT(11, quire->models_waiting); /* whatever came of them */
    quire_stop_waiting(quire);
    api_check(quire, "POST", "/v1/embeddings", "{\"model\":\"b\",\"input\":\"other\"}", 503, "shutting_down");
    QR_CHECK_INT(11, quire->models_waiting);
    quire_close(quire);
}

QR_TEST(vectors_come_as_numbers_or_base64)
{
    struct quire *quire = open_town(t);
    QR_JSON *plain = api_call(quire, "POST", "/v1/embeddings",
                              "{\"model\":\"b\",\"input\":[\"high tide\",\"bread\"],\"user\":\"u\"}", 200);
    QR_JSON *packed = api_call(quire, "POST", "/v1/embeddings",
                               "{\"model\":\"b\",\"input\":\"high tide\",\"encoding_format\":\"base64\"}", 200);
    const json_t *first = json_array_get(json_object_get(plain, "data"), 0);
    const json_t *numbers = json_object_get(first, "embedding");
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
    QR_CHECK_TEXT("list", api_text(plain, "object"));
    QR_CHECK_TEXT("b", api_text(plain, "model"));
    QR_CHECK_INT(2, json_array_size(json_object_get(plain, "data")));
    QR_CHECK_INT(1, api_number(json_array_get(json_object_get(plain, "data"), 1), "index"));
    QR_CHECK(api_number(json_object_get(plain, "usage"), "prompt_tokens") > 0);
    const char *text = api_text(json_array_get(json_object_get(packed, "data"), 0), "embedding");
    QR_CHECK(qr_base64_read(qr_str_of(text), &bytes));
    QR_CHECK_INT(json_array_size(numbers) * sizeof(float), bytes.len);
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        float value;
        memcpy(&value, bytes.data + i * sizeof value, sizeof value);
        QR_CHECK((double)value == json_real_value(json_array_get(numbers, i)));
    }
    quire_close(quire);
}
