/* Bases and items through quire_call: what requests check, what answers hold, and what search may show. */
#include "base/failpoint.h"
#include "base/fs.h"
#include "base/json.h"
#include "support/fault.h"
#include "support/postgres.h"
#include "support/test.h"

#include <pthread.h>
#include <quire/quire.h>
#include <sched.h>

/* ---- calling ---- */

static struct quire *open_data(struct qr_test *t)
{
    const struct quire_options options = {.data_dir = qr_test_path(t, "data"), .program = "the test"};
    struct quire_error error;
    struct quire *quire;
    if (quire_open(&options, &quire, &error) != 0) {
        QR_FAIL("%s (%s)", error.message, error.code);
    }
    return quire;
}

/* The answer, which must have this status; the caller's. */
static json_t *call(struct quire *quire, const char *method, const char *path, const char *body, int status)
{
    struct quire_response response;
    json_t *answer = NULL;
    qr_err err;
    quire_call(quire, method, path, body, &response);
    if (response.status != status) {
        QR_FAIL("%s %s answers %d, not %d: %s", method, path, response.status, status, response.body);
    }
    QR_CHECK_RC(QR_OK,
                qr_json_parse((qr_str){response.body, response.body_size}, &QR_JSON_REQUEST_LIMITS, &answer, &err));
    quire_response_done(&response);
    return answer;
}

static void check_call(struct quire *quire, const char *method, const char *path, const char *body, int status,
                       const char *has)
{
    struct quire_response response;
    quire_call(quire, method, path, body, &response);
    if (response.status != status || !strstr(response.body, has)) {
        QR_FAIL("%s %s answers %d, not %d with %s: %s", method, path, response.status, status, has, response.body);
    }
    quire_response_done(&response);
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "";
}

static long long number(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

#define BASE  "/api/v1/bases/b"
#define ITEMS BASE "/items"

static struct quire *open_base(struct qr_test *t)
{
    struct quire *quire = open_data(t);
    check_call(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201, "\"status\":\"ready\"");
    return quire;
}

enum { ID_SIZE = 37 };

static void keep_id(const json_t *item, char ret_id[static ID_SIZE])
{
    QR_CHECK_INT(ID_SIZE - 1, strlen(text(item, "id")));
    memcpy(ret_id, text(item, "id"), ID_SIZE);
}

static void add_note(struct quire *quire, const char *name, const char *content, char ret_id[static ID_SIZE])
{
    char body[1024];
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"note\",\"name\":\"%s\",\"content\":\"%s\"}]}", name, content);
    QR_JSON *answer = call(quire, "POST", ITEMS, body, 202);
    keep_id(json_array_get(json_object_get(answer, "items"), 0), ret_id);
}

static const char *item_path(const char *id, const char *rest)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s%s", ITEMS, id, rest);
    return path;
}

/* Until the item has the status; the test's own time limit ends it otherwise. */
static json_t *wait_for(struct quire *quire, const char *id, const char *status)
{
    for (;;) {
        json_t *item = call(quire, "GET", item_path(id, ""), NULL, 200);
        if (strcmp(text(item, "status"), status) == 0) {
            return item;
        }
        json_decref(item);
        sched_yield();
    }
}

static void start_work(struct quire *quire)
{
    struct quire_error error;
    if (quire_start_work(quire, &error) != 0) {
        QR_FAIL("%s (%s)", error.message, error.code);
    }
}

/* How many hits. */
static size_t search(struct quire *quire, const char *words)
{
    char body[256];
    snprintf(body, sizeof body, "{\"query\":\"%s\"}", words);
    QR_JSON *answer = call(quire, "POST", BASE "/search", body, 200);
    return json_array_size(json_object_get(answer, "hits"));
}

/* ---- bases ---- */

QR_TEST(a_base_is_found_by_its_id_and_by_its_name) /* THING-1 */
{
    struct quire *quire = open_data(t);
    QR_JSON *made = call(quire, "POST", "/api/v1/bases", "{\"name\":\"my notes\"}", 201);
    char path[128];
    snprintf(path, sizeof path, "/api/v1/bases/%s", text(made, "id"));
    check_call(quire, "GET", path, NULL, 200,
               "\"name\":\"my notes\",\"status\":\"ready\",\"error\":null,\"settings\":{}");
    check_call(quire, "GET", "/api/v1/bases/my%20notes", NULL, 200, text(made, "id"));
    check_call(quire, "GET", "/api/v1/bases/my", NULL, 404, "there is no base my");
    check_call(quire, "POST", "/api/v1/bases", "{\"name\":\"my notes\"}", 409, "\"already_exists\"");
    check_call(quire, "GET", "/api/v1/bases", NULL, 200, "\"next_cursor\":null");
    quire_close(quire);
}

QR_TEST(a_base_with_a_bad_name_or_bad_settings_is_not_made)
{
    struct quire *quire = open_data(t);
    static const char *const bodies[] = {"{}",
                                         "{\"name\":\"\"}",
                                         "{\"name\":3}",
                                         "{\"name\":\"a/b\"}",
                                         "{\"name\":\"a\\nb\"}",
                                         "{\"name\":\"a\",\"settings\":[]}",
                                         "{\"name\":\"a\",\"settings\":{\"chunking\":{\"size_tokens\":-1}}}"};
    for (size_t i = 0; i < QR_COUNT(bodies); i++) {
        check_call(quire, "POST", "/api/v1/bases", bodies[i], 422, "\"invalid_value\"");
    }
    check_call(quire, "POST", "/api/v1/bases", "{\"name\":\"a\",\"settings\":{\"chunkin\":{}}}", 400, "did you mean");
    check_call(quire, "GET", "/api/v1/bases", NULL, 200, "{\"data\":[],");
    quire_close(quire);
}

QR_TEST(settings_are_merged_under_the_version_that_was_read)
{
    struct quire *quire = open_base(t);
    check_call(quire, "PATCH", BASE, "{\"settings\":{\"chunking\":{\"size_tokens\":300}}}", 200, "\"version\":2");
    check_call(quire, "PATCH", BASE, "{\"settings\":{\"chunking\":{\"overlap_tokens\":10}}}", 200,
               "\"settings\":{\"chunking\":{\"size_tokens\":300,\"overlap_tokens\":10}},\"version\":3");
    check_call(quire, "PATCH", BASE, "{\"settings\":{\"chunking\":null},\"version\":3}", 200, "\"settings\":{}");
    check_call(quire, "PATCH", BASE, "{\"name\":\"c\",\"version\":3}", 409, "\"version_conflict\"");
    check_call(quire, "PATCH", BASE, "{\"settings\":{\"chunking\":{\"size_tokens\":\"x\"}}}", 422, "size_tokens");
    check_call(quire, "PATCH", BASE, "{\"name\":\"c\"}", 200, "\"name\":\"c\"");
    check_call(quire, "GET", BASE, NULL, 404, "\"not_found\"");
    quire_close(quire);
}

QR_TEST(a_base_that_is_not_empty_is_deleted_only_when_confirmed) /* BASE-1 */
{
    struct quire *quire = open_base(t);
    char id[ID_SIZE];
    add_note(quire, "n", "text", id);
    check_call(quire, "DELETE", BASE, NULL, 409, "\"not_empty\"");
    check_call(quire, "DELETE", BASE "?confirm=maybe", NULL, 422, "confirm");
    check_call(quire, "DELETE", BASE "?confirm=true", NULL, 202, "\"job_id\":\"");
    check_call(quire, "GET", BASE, NULL, 404, "\"not_found\"");
    check_call(quire, "GET", ITEMS, NULL, 404, "\"not_found\"");
    check_call(quire, "POST", BASE "/search", "{\"query\":\"text\"}", 404, "\"not_found\"");
    check_call(quire, "POST", BASE "/restore", NULL, 404, "\"not_found\""); /* REQ-5 */
    quire_close(quire);
}

QR_TEST(only_a_failed_base_is_restored) /* BASE-2 */
{
    struct quire *quire = open_base(t);
    check_call(quire, "POST", BASE "/restore", NULL, 409, "\"not_failed\"");
    quire_close(quire);
}

/* ---- adding ---- */

QR_TEST(one_bad_payload_and_nothing_is_created) /* ADD-1 */
{
    struct quire *quire = open_base(t);
    static const struct {
        const char *payload;
        int status;
        const char *says;
    } bad[] = {
        {"3", 422, "items[1].type"},
        {"{}", 422, "items[1].type is one of"},
        {"{\"type\":\"book\"}", 422, "items[1].type is one of"},
        {"{\"type\":\"note\",\"name\":\"n\"}", 422, "items[1].content is missing"},
        {"{\"type\":\"note\",\"name\":\"\",\"content\":\"\"}", 422, "items[1].name must have"},
        {"{\"type\":\"note\",\"name\":\"n\",\"content\":\"\",\"path\":\"/a\"}", 400, "items[1].path"},
        {"{\"type\":\"file\"}", 422, "items[1].path is missing"},
        {"{\"type\":\"file\",\"path\":\"a\"}", 422, "items[1].path must be absolute"},
        {"{\"type\":\"file\",\"path\":\"/a\",\"copy\":1}", 422, "items[1].copy"},
        {"{\"type\":\"url\",\"url\":\"ftp://a\"}", 422, "items[1].url"},
        {"{\"type\":\"directory\",\"path\":\"/a\",\"include\":\"*.md\"}", 422, "items[1].include"},
        {"{\"type\":\"directory\",\"path\":\"/a\",\"exclude\":[\"a\",3]}", 422, "items[1].exclude[1]"},
        {"{\"type\":\"file\",\"path\":\"/a\",\"attributes\":[]}", 422, "items[1].attributes"},
    };
    for (size_t i = 0; i < QR_COUNT(bad); i++) {
        char body[512];
        snprintf(body, sizeof body, "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"c\"},%s]}",
                 bad[i].payload);
        check_call(quire, "POST", ITEMS, body, bad[i].status, bad[i].says);
    }
    check_call(quire, "POST", ITEMS, "{}", 422, "items must be an array");
    check_call(quire, "POST", ITEMS, "{\"items\":[],\"process\":\"later\"}", 422, "process is one of auto, manual");
    check_call(quire, "POST", ITEMS, "{\"items\":[],\"on_conflict\":\"x\"}", 422, "on_conflict");
    check_call(quire, "POST", ITEMS, "{\"items\":[]}", 202, "{\"items\":[]}");
    check_call(quire, "GET", ITEMS, NULL, 200, "{\"data\":[],");
    quire_close(quire);
}

QR_TEST(an_item_that_was_added_shows_every_field) /* ADD-2, STATE-1, STATE-2 */
{
    struct quire *quire = open_base(t);
    QR_JSON *answer =
        call(quire, "POST", ITEMS,
             "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"four\",\"attributes\":{\"a\":1}}]}", 202);
    const json_t *item = json_array_get(json_object_get(answer, "items"), 0);
    static const char *const fields[] = {
        "id",       "base_id",         "parent_id",    "type",        "name",         "source",      "depth",
        "mime",     "size_bytes",      "content_hash", "status",      "index_status", "generation",  "document_status",
        "enabled",  "live_generation", "attributes",   "chunk_count", "counts",       "token_count", "progress",
        "warnings", "error",           "created_at",   "updated_at",  "indexed_at",   "result",
    };
    for (size_t i = 0; i < QR_COUNT(fields); i++) {
        if (!json_object_get(item, fields[i])) {
            QR_FAIL("there is no %s", fields[i]);
        }
    }
    QR_CHECK_INT(QR_COUNT(fields), json_object_size(item));
    QR_CHECK_TEXT("created", text(item, "result"));
    QR_CHECK_TEXT("processing", text(item, "status"));
    QR_CHECK_TEXT("queued", text(item, "index_status"));
    QR_CHECK_TEXT("processing", text(item, "document_status"));
    QR_CHECK_TEXT("process-document", text(json_object_get(item, "progress"), "stage"));
    QR_CHECK_INT(4, number(item, "size_bytes"));
    QR_CHECK_INT(1, number(json_object_get(item, "attributes"), "a"));
    quire_close(quire);
}

QR_TEST(what_is_added_by_hand_rests) /* ADD-2 */
{
    struct quire *quire = open_base(t);
    check_call(quire, "POST", ITEMS,
               "{\"process\":\"manual\",\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"c\"}]}", 202,
               "\"status\":\"idle\",\"index_status\":\"not_indexed\",\"document_status\":\"uploaded\"");
    check_call(quire, "GET", "/api/v1/jobs", NULL, 200, "{\"data\":[],");
    quire_close(quire);
}

QR_TEST(the_same_source_is_added_skipped_or_updated)
{
    struct quire *quire = open_base(t);
    static const char file[] = "{\"on_conflict\":\"%s\",\"items\":[{\"type\":\"file\",\"path\":\"/no/where.md\"}]}";
    static const char *const steps[][2] = {
        {"create", "created"}, {"skip", "skipped"}, {"update", "updated"}, {"create", "created"}};
    for (size_t i = 0; i < QR_COUNT(steps); i++) {
        char body[256], result[64];
        snprintf(body, sizeof body, file, steps[i][0]);
        snprintf(result, sizeof result, "\"result\":\"%s\"", steps[i][1]);
        check_call(quire, "POST", ITEMS, body, 202, result);
    }
    check_call(quire, "GET", ITEMS "?source=/no/where.md", NULL, 200, "\"source\":\"/no/where.md\"");
    check_call(quire, "GET", ITEMS "?source=/no/where", NULL, 200, "{\"data\":[],");
    quire_close(quire);
}

#ifdef QUIRE_FAILPOINTS
QR_TEST(items_whose_jobs_could_not_be_queued_are_in_the_error) /* ADD-4 */
{
    struct quire *quire = open_base(t);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error@2", &err));
    QR_JSON *answer = call(quire, "POST", ITEMS,
                           "{\"items\":[{\"type\":\"note\",\"name\":\"a\",\"content\":\"1\"},"
                           "{\"type\":\"note\",\"name\":\"b\",\"content\":\"2\"}]}",
                           503);
    const json_t *error = json_object_get(answer, "error");
    const json_t *items = json_object_get(json_object_get(error, "details"), "items");
    QR_CHECK_TEXT("enqueue_failed", text(error, "code"));
    QR_CHECK_INT(2, json_array_size(items));
    QR_CHECK_TEXT("processing", text(json_array_get(items, 0), "status"));
    QR_CHECK_TEXT("failed", text(json_array_get(items, 1), "status"));
    QR_CHECK_TEXT("enqueue_failed", text(json_object_get(json_array_get(items, 1), "error"), "code"));
    quire_close(quire);
}
#endif

/* ---- lists ---- */

QR_TEST(pages_of_a_list_follow_each_other_without_a_gap)
{
    struct quire *quire = open_base(t);
    char id[ID_SIZE], path[512] = ITEMS "?limit=2&parent=root";
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        add_note(quire, names[i], "text", id);
    }
    size_t seen = 0;
    for (;;) {
        QR_JSON *answer = call(quire, "GET", path, NULL, 200);
        const json_t *item;
        size_t i;
        json_array_foreach(json_object_get(answer, "data"), i, item)
        {
            QR_CHECK_TEXT(names[seen++], text(item, "name"));
        }
        if (!text(answer, "next_cursor")[0]) {
            break;
        }
        snprintf(path, sizeof path, "%s?limit=2&parent=root&cursor=%s", ITEMS, text(answer, "next_cursor"));
    }
    QR_CHECK_INT(QR_COUNT(names), seen);
    check_call(quire, "GET", ITEMS "?q=C", NULL, 200, "\"name\":\"c\"");
    check_call(quire, "GET", ITEMS "?type=file", NULL, 200, "{\"data\":[],");
    check_call(quire, "GET", ITEMS "?status=failed", NULL, 200, "{\"data\":[],");
    check_call(quire, "GET", ITEMS "?status=deleting", NULL, 422, "status is one of");
    check_call(quire, "GET", ITEMS "?type=book", NULL, 422, "type is one of");
    check_call(quire, "GET", ITEMS "?limit=0", NULL, 422, "limit");
    check_call(quire, "GET", ITEMS "?cursor=xyz", NULL, 422, "cursor");
    check_call(quire, "GET", ITEMS "?parent=00000000", NULL, 404, "\"not_found\"");
    quire_close(quire);
}

/* ---- selections ---- */

QR_TEST(selections_are_checked_as_a_whole) /* REQ-3, REQ-4, REIDX-1, RETRY-1 */
{
    struct quire *quire = open_base(t);
    char id[ID_SIZE], body[256];
    add_note(quire, "n", "text", id);
    static const char *const actions[] = {ITEMS "/reindex", ITEMS "/retry", ITEMS "/refresh"};
    for (size_t i = 0; i < QR_COUNT(actions); i++) {
        check_call(quire, "POST", actions[i], "{\"ids\":[\"x\"]}", 422, "ids[0] is not an id");
        check_call(quire, "POST", actions[i], "{}", 422, "ids must be an array");
        check_call(quire, "POST", actions[i], "{\"ids\":[]}", 202, "{\"accepted\":[],\"skipped\":[],\"job_id\":null}");
        snprintf(body, sizeof body, "{\"ids\":[\"%s\",\"01900000-0000-7000-8000-000000000000\"]}", id);
        check_call(quire, "POST", actions[i], body, 404, "\"not_found\"");
    }
    snprintf(body, sizeof body, "{\"ids\":[\"%s\",\"%s\"]}", id, id);
    check_call(quire, "POST", ITEMS "/reindex", body, 409, "\"details\":{\"counts\":{\"processing\":1}}");
    check_call(quire, "POST", ITEMS "/retry", body, 202, "\"reason\":\"already_in_progress\"}]");
    check_call(quire, "POST", ITEMS "/refresh", body, 202, "\"reason\":\"no_source\"}]");
    quire_close(quire);
}

QR_TEST(what_is_deleted_is_gone_from_every_answer_at_once) /* DEL-4 */
{
    struct quire *quire = open_base(t);
    char id[ID_SIZE], body[256];
    add_note(quire, "n", "quince jam", id);
    start_work(quire);
    json_decref(wait_for(quire, id, "completed"));
    QR_CHECK_INT(1, search(quire, "quince"));
    quire_stop_work(quire, 10000); /* so that nothing is cleaned up */
    snprintf(body, sizeof body, "{\"ids\":[\"%s\",\"01900000-0000-7000-8000-000000000000\"]}", id);
    check_call(quire, "POST", ITEMS "/delete", body, 202, "\"job_id\":\"");
    QR_CHECK_INT(0, search(quire, "quince"));
    check_call(quire, "GET", ITEMS, NULL, 200, "{\"data\":[],");
    static const char *const rests[] = {"", "/content", "/chunks", "/assets", "/events"};
    for (size_t i = 0; i < QR_COUNT(rests); i++) {
        check_call(quire, "GET", item_path(id, rests[i]), NULL, 404, "\"not_found\"");
    }
    quire_close(quire);
}

/* ---- one item ---- */

QR_TEST(an_item_is_followed_from_its_text_to_its_chunks) /* CHUNKS-1, STATE-3 */
{
    struct quire *quire = open_base(t);
    char id[ID_SIZE], other[ID_SIZE], prefix[ID_SIZE];
    add_note(quire, "n", "# Quinces\\n\\nQuinces are sour.", id);
    check_call(quire, "GET", item_path(id, "/chunks"), NULL, 409, "\"not_completed\"");
    check_call(quire, "GET", item_path(id, "/content"), NULL, 409, "\"not_completed\"");
    start_work(quire);
    QR_JSON *item = wait_for(quire, id, "completed");
    QR_CHECK_TEXT("success", text(item, "index_status"));
    QR_CHECK_TEXT("processed", text(item, "document_status"));
    QR_CHECK_INT(1, number(item, "live_generation"));
    QR_CHECK_INT(1, number(item, "chunk_count"));
    check_call(quire, "GET", item_path(id, "/content"), NULL, 200, "{\"text\":\"# Quinces\\n\\nQuinces are sour.");
    check_call(quire, "GET", item_path(id, "/chunks"), NULL, 200, "\"heading\":\"Quinces\"");
    check_call(quire, "GET", item_path(id, "/chunks"), NULL, 200, ":1:0\",\"ordinal\":0");
    check_call(quire, "GET", item_path(id, "/chunks"), NULL, 200, "\"status\":\"indexed\"");
    check_call(quire, "GET", item_path(id, "/chunks?cursor=1"), NULL, 200, "{\"data\":[],");
    check_call(quire, "GET", item_path(id, "/assets"), NULL, 200, "{\"data\":[],");
    check_call(quire, "GET", item_path(id, "/events"), NULL, 200,
               "\"stage\":\"process-document\",\"state\":\"completed\"");
    snprintf(prefix, sizeof prefix, "%.20s", id);
    check_call(quire, "GET", item_path(prefix, ""), NULL, 200, id);
    check_call(quire, "POST", "/api/v1/bases", "{\"name\":\"other\"}", 201, "other");
    snprintf(other, sizeof other, "%s", id);
    char path[128];
    snprintf(path, sizeof path, "/api/v1/bases/other/items/%s/chunks", other);
    check_call(quire, "GET", path, NULL, 404, "\"not_found\"");
    quire_close(quire);
}

QR_TEST(new_content_is_the_next_generation_and_the_same_content_is_none) /* UPD-1, UPD-2 */
{
    struct quire *quire = open_base(t);
    char id[ID_SIZE];
    add_note(quire, "n", "quince", id);
    check_call(quire, "PUT", item_path(id, "/content"), "{\"content\":\"quince\"}", 202, "\"generation\":1");
    check_call(quire, "PUT", item_path(id, "/content"), "{\"content\":\"medlar\"}", 202, "\"generation\":2");
    check_call(quire, "PUT", item_path(id, "/content"), "{}", 422, "content is missing");
    check_call(quire, "GET", item_path(id, "/events"), NULL, 200, "\"reason\":\"update\"");
    start_work(quire);
    json_decref(wait_for(quire, id, "completed"));
    QR_CHECK_INT(0, search(quire, "quince"));
    QR_CHECK_INT(1, search(quire, "medlar"));
    quire_close(quire);
}

QR_TEST(what_is_not_enabled_is_not_found_but_listed) /* HIDE-1 */
{
    struct quire *quire = open_base(t);
    char id[ID_SIZE];
    add_note(quire, "n", "quince", id);
    start_work(quire);
    json_decref(wait_for(quire, id, "completed"));
    check_call(quire, "PATCH", item_path(id, ""), "{\"enabled\":false}", 200, "\"enabled\":false");
    QR_CHECK_INT(0, search(quire, "quince"));
    check_call(quire, "GET", ITEMS, NULL, 200, id);
    check_call(quire, "PATCH", item_path(id, ""), "{\"enabled\":true,\"name\":\"m\",\"attributes\":{\"k\":\"v\"}}", 200,
               "\"attributes\":{\"k\":\"v\"}");
    QR_CHECK_INT(1, search(quire, "quince"));
    check_call(quire, "PATCH", item_path(id, ""), "{\"enabled\":1}", 422, "enabled must be");
    check_call(quire, "PATCH", item_path(id, ""), "{\"name\":\"\"}", 422, "name has");
    check_call(quire, "PATCH", item_path(id, ""), "{\"status\":\"completed\"}", 400, "\"unknown_field\"");
    quire_close(quire);
}

QR_TEST(what_is_hidden_takes_no_place_among_the_hits) /* HIDE-1 */
{
    enum { HIDDEN = 30 };
    struct quire *quire = open_base(t);
    char ids[HIDDEN][ID_SIZE], shown[ID_SIZE];
    for (size_t i = 0; i < HIDDEN; i++) {
        add_note(quire, "n", "quince", ids[i]);
    }
    add_note(quire, "other", "many words stand around this one quince and make it the last that is found", shown);
    start_work(quire);
    for (size_t i = 0; i < HIDDEN; i++) {
        json_decref(wait_for(quire, ids[i], "completed"));
        json_decref(call(quire, "PATCH", item_path(ids[i], ""), "{\"enabled\":false}", 200));
    }
    json_decref(wait_for(quire, shown, "completed"));
    check_call(quire, "POST", BASE "/search", "{\"query\":\"quince\",\"top_k\":1}", 200, shown);
    quire_close(quire);
}

QR_TEST(search_checks_its_request_and_says_where_hits_are)
{
    struct quire *quire = open_base(t);
    qr_err err;
    char body[512];
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "docs"), 0700, &err));
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "docs/a b.md"), QR_STR("one\n\n# Two\n\nquince\n"),
                                     0600, &err));
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"directory\",\"path\":\"%s\"}]}", qr_test_path(t, "docs"));
    QR_JSON *added = call(quire, "POST", ITEMS, body, 202);
    start_work(quire);
    json_decref(wait_for(quire, text(json_array_get(json_object_get(added, "items"), 0), "id"), "completed"));
    QR_JSON *answer = call(quire, "POST", BASE "/search", "{\"query\":\"quince\",\"mode\":\"text\",\"top_k\":1}", 200);
    const json_t *hit = json_array_get(json_object_get(answer, "hits"), 0);
    QR_CHECK_TEXT("text", text(answer, "mode"));
    QR_CHECK_INT(1, number(hit, "rank"));
    QR_CHECK_TEXT("a b.md", text(hit, "name"));
    QR_CHECK_HAS("file:///", text(hit, "uri"));
    QR_CHECK_HAS("/docs/a%20b.md#L", text(hit, "uri"));
    QR_CHECK_HAS("quince", text(hit, "text"));
    QR_CHECK_HAS(text(hit, "item_id"), text(hit, "chunk_id"));
    check_call(quire, "POST", BASE "/search", "{}", 422, "query has");
    check_call(quire, "POST", BASE "/search", "{\"query\":\"a\",\"top_k\":0}", 422, "top_k");
    check_call(quire, "POST", BASE "/search", "{\"query\":\"a\",\"top_k\":101}", 422, "top_k");
    check_call(quire, "POST", BASE "/search", "{\"query\":\"a\",\"mode\":\"magic\"}", 422, "mode");
    quire_close(quire);
}

QR_TEST(cancelling_a_stage_job_fails_its_item_and_its_retry_is_the_items) /* CANCEL-1, CANCEL-2 */
{
    struct quire *quire = open_base(t);
    char id[ID_SIZE], path[128];
    add_note(quire, "n", "text", id);
    snprintf(path, sizeof path, "/api/v1/jobs?item=%s", id);
    QR_JSON *jobs = call(quire, "GET", path, NULL, 200);
    const json_t *job = json_array_get(json_object_get(jobs, "data"), 0);
    snprintf(path, sizeof path, "/api/v1/jobs/%s/retry", text(job, "id"));
    check_call(quire, "POST", path, NULL, 409, "\"not_terminal\"");
    snprintf(path, sizeof path, "/api/v1/jobs/%s/cancel", text(job, "id"));
    check_call(quire, "POST", path, NULL, 200, "\"state\":\"cancelled\"");
    check_call(quire, "POST", path, NULL, 409, "\"not_open\"");
    check_call(quire, "GET", item_path(id, ""), NULL, 200, "\"code\":\"cancelled\"");
    snprintf(path, sizeof path, "/api/v1/jobs/%s/retry", text(job, "id"));
    check_call(quire, "POST", path, NULL, 202,
               "\"type\":\"process-document\",\"queue\":\"convert\",\"state\":\"queued\"");
    check_call(quire, "GET", item_path(id, ""), NULL, 200, "\"generation\":2");
    quire_close(quire);
}

/* ---- PostgreSQL ---- */

enum { SEARCHERS = 6 };

static void *search_often(void *arg)
{
    for (int i = 0; i < 20; i++) {
        QR_CHECK_INT(1, search(arg, "quince"));
    }
    return NULL;
}

/* DB-15; and more searches at once than there are connections. */
QR_TEST(items_are_worked_on_and_found_on_postgresql_too)
{
    if (!qr_pg_installed()) {
        qr_test_skip("PostgreSQL is not installed");
    }
    struct qr_pg pg = {0};
    qr_pg_start(&pg, t->dir);
    const struct quire_setting settings[] = {{"database.url", qr_pg_url(&pg, "quire")}, {"database.connections", "4"}};
    const struct quire_options options = {
        .data_dir = qr_test_path(t, "data"), .settings = settings, .setting_count = 2};
    struct quire_error error = {0};
    struct quire *quire = NULL;
    if (quire_open(&options, &quire, &error) != 0) {
        QR_FAIL("%s (%s)", error.message, error.code);
    }
    char id[ID_SIZE];
    check_call(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201, "\"status\":\"ready\"");
    add_note(quire, "n", "# Sour\\n\\nquince", id);
    start_work(quire);
    json_decref(wait_for(quire, id, "completed"));
    check_call(quire, "GET", item_path(id, "/chunks"), NULL, 200, "\"heading\":\"Sour\"");
    check_call(quire, "GET", item_path(id, "/content"), NULL, 200, "quince");
    check_call(quire, "GET", ITEMS "?parent=root&status=completed", NULL, 200, id);
    pthread_t threads[SEARCHERS];
    for (size_t i = 0; i < SEARCHERS; i++) {
        QR_CHECK(pthread_create(&threads[i], NULL, search_often, quire) == 0);
    }
    for (size_t i = 0; i < SEARCHERS; i++) {
        QR_CHECK(pthread_join(threads[i], NULL) == 0);
    }
    quire_close(quire);
    qr_pg_remove(&pg);
}

/* ---- failures ---- */

static void call_under_faults(struct quire *quire, const char *method, const char *path, const char *body)
{
    struct quire_response response;
    const int status = quire_call(quire, method, path, body, &response);
    if (status >= 500 && !(status == 503 && qr_fault_fired())) {
        QR_FAIL("%s %s answers %d: %s", method, path, status, response.body);
    }
    quire_response_done(&response);
}

struct faulty {
    struct quire *quire;
    char id[ID_SIZE];
};

/* Whatever fails, the answer says so, and nothing is leaked or half done. */
static void use_everything(void *arg)
{
    const struct faulty *faulty = arg;
    struct quire *quire = faulty->quire;
    char body[128];
    call_under_faults(quire, "PATCH", BASE, "{\"settings\":{\"chunking\":{\"size_tokens\":300}}}");
    call_under_faults(quire, "GET", "/api/v1/bases", NULL);
    call_under_faults(quire, "GET", ITEMS "?parent=root&limit=1", NULL);
    static const char *const rests[] = {"", "/content", "/chunks", "/assets", "/events"};
    for (size_t i = 0; i < QR_COUNT(rests); i++) {
        call_under_faults(quire, "GET", item_path(faulty->id, rests[i]), NULL);
    }
    call_under_faults(quire, "PATCH", item_path(faulty->id, ""), "{\"attributes\":{\"a\":1}}");
    call_under_faults(quire, "POST", BASE "/search", "{\"query\":\"quince\"}");
    snprintf(body, sizeof body, "{\"ids\":[\"%s\"],\"dry_run\":true}", faulty->id);
    call_under_faults(quire, "POST", ITEMS "/reindex", body);
    snprintf(body, sizeof body, "{\"ids\":[\"%s\"]}", faulty->id);
    call_under_faults(quire, "POST", ITEMS "/retry", body);
    call_under_faults(quire, "POST", ITEMS,
                      "{\"items\":[{\"type\":\"file\",\"path\":\"/a.md\"}],\"on_conflict\":\"skip\"}");
    qr_fault_disarm();
    check_call(quire, "GET", item_path(faulty->id, ""), NULL, 200, "\"status\":\"completed\"");
}

QR_TEST_WITH_TIMEOUT(requests_survive_every_failure_of_memory, 300)
{
    qr_fault_memory_install();
    struct faulty faulty = {.quire = open_base(t)};
    add_note(faulty.quire, "n", "quince", faulty.id);
    start_work(faulty.quire);
    json_decref(wait_for(faulty.quire, faulty.id, "completed"));
    quire_stop_work(faulty.quire, 10000);
    check_call(faulty.quire, "POST", ITEMS, "{\"items\":[{\"type\":\"file\",\"path\":\"/a.md\"}]}", 202, "a.md");
    /* caches of the database grow meanwhile, so what is leaked is left to the leak checker */
    uint64_t n = 1;
    do {
        qr_test_set_context("failing allocation no. %llu", (unsigned long long)n);
        qr_fault_arm(QR_FAULT_MEMORY, n);
        use_everything(&faulty);
        n += 1 + n / 150; /* not each of many thousands, but many in every call */
    } while (qr_fault_fired());
    qr_test_set_context("%s", "");
    quire_close(faulty.quire);
}
