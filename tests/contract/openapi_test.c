/* The description of the API against the API: every route's answers, good and bad, have the shape that /openapi.json gives
 * them, what a schema refuses the handler refuses too, and every code is one that is described. */
#include "api/openapi.h"
#include "base/fs.h"
#include "store/bases.h"
#include "support/db_fixture.h"
#include "support/json_schema.h"

#include <ctype.h>
#include <sched.h>
#include <sys/stat.h>

enum { ID_SIZE = QR_UUID_TEXT_SIZE, ROUTES_MAX = 200 };

/* ---- a server's worth of things, and what was asked for ---- */

struct walk {
    struct quire *quire;
    json_t *openapi;
    bool is_stranger;        /* asks from elsewhere, with this header */
    char authorization[128]; /* "" = none */
    bool succeeded[ROUTES_MAX];
    size_t refusals; /* that were compared */
};

static void open_walk(struct walk *walk, struct qr_test *t)
{
    const struct qr_config_flag settings[] = {
        {"test", QR_STR("data.dir"), qr_str_of(qr_test_path(t, "data"))},
        {"test", QR_STR("database.url"),
         qr_str_of(qr_test_on_postgres(t) ? qr_test_db_options(t, NULL, 0).url : "sqlite")},
    };
    const struct qr_instance_options options = {
        .settings = settings, .setting_count = QR_COUNT(settings), .program = "the test"};
    qr_err err;
    *walk = (struct walk){.openapi = qr_openapi_json()};
    QR_CHECK(walk->openapi && qr_route_count <= ROUTES_MAX);
    QR_CHECK_RC(QR_OK, qr_instance_open(&walk->quire, &options, &err));
}

static void close_walk(struct walk *walk)
{
    quire_stop_work(walk->quire, 10000);
    qr_instance_close(walk->quire);
    json_decref(walk->openapi);
}

static const struct qr_route *find_route(const char *method, const char *target, size_t *ret_index)
{
    qr_str rest = qr_str_of(target), params[QR_ROUTE_PARAMS_MAX];
    const qr_str path = qr_str_split(&rest, '?');
    for (size_t i = 0; i < qr_route_count; i++) {
        if (strcmp(qr_routes[i].method, method) == 0 && qr_route_matches(qr_routes[i].pattern, path, params)) {
            *ret_index = i;
            return &qr_routes[i];
        }
    }
    QR_FAIL("there is no route for %s %s", method, target);
}

static const json_t *operation_of(const struct walk *walk, const struct qr_route *route)
{
    char method[16];
    snprintf(method, sizeof method, "%s", route->method);
    for (char *c = method; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    return json_object_get(json_object_get(json_object_get(walk->openapi, "paths"), route->pattern), method);
}

static const json_t *json_schema_of(const json_t *content)
{
    return json_object_get(json_object_get(content, "application/json"), "schema");
}

static const json_t *body_schema(const struct walk *walk, const struct qr_route *route)
{
    return json_schema_of(json_object_get(json_object_get(operation_of(walk, route), "requestBody"), "content"));
}

/* ---- one answer against the description ---- */

static bool has_text(const json_t *list, const char *text)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        if (strcmp(json_string_value(entry), text) == 0) {
            return true;
        }
    }
    return false;
}

/* Of Dify's refusals the number is no code of ours. */
static void check_code(struct walk *walk, const json_t *described, const json_t *answer)
{
    const char *code = json_string_value(json_object_get(json_object_get(answer, "error"), "code"));
    walk->refusals++;
    if (code && !has_text(json_object_get(described, "x-quire-codes"), code)) {
        QR_FAIL("the code %s is not described", code);
    }
}

static json_t *check_answer(struct walk *walk, const struct qr_route *route, const struct quire_response *response)
{
    char status[16];
    qr_err err;
    json_t *answer = NULL;
    QR_CLEANUP(qr_buf_done) struct qr_buf wrong = {0};
    snprintf(status, sizeof status, "%d", response->status);
    const json_t *described = json_object_get(json_object_get(operation_of(walk, route), "responses"), status);
    const json_t *content = json_object_get(described, "content");
    if (!described) {
        QR_FAIL("the status %s is not described: %s", status, response->body);
    }
    if (!json_schema_of(content)) {
        const bool is_bytes = json_object_get(content, "application/octet-stream") != NULL;
        QR_CHECK(is_bytes || json_object_get(content, response->content_type));
        return NULL;
    }
    QR_CHECK_TEXT("application/json", response->content_type);
    QR_CHECK_RC(QR_OK,
                qr_json_parse((qr_str){response->body, response->body_size}, &QR_JSON_REQUEST_LIMITS, &answer, &err));
    if (!json_schema_fits(walk->openapi, json_schema_of(content), answer, &wrong)) {
        QR_FAIL("the answer is not as described: %s: %s", wrong.data, response->body);
    }
    if (response->status >= 400) {
        check_code(walk, described, answer);
    }
    return answer;
}

/* The answer, compared; the caller's. */
static json_t *send(struct walk *walk, const char *method, const char *target, const char *body,
                    const char *content_type, int *ret_status)
{
    size_t index;
    const struct qr_route *route = find_route(method, target, &index);
    const struct quire_request request = {.method = method,
                                          .target = target,
                                          .body = body,
                                          .body_size = body ? strlen(body) : 0,
                                          .content_type = content_type,
                                          .is_local_owner = !walk->is_stranger,
                                          .remote_address = walk->is_stranger ? "192.0.2.7" : NULL,
                                          .authorization = walk->authorization[0] ? walk->authorization : NULL};
    struct quire_response response;
    qr_test_set_context("%s %s %s", method, target, body ? body : "");
    *ret_status = quire_request_call(walk->quire, &request, &response);
    json_t *answer = check_answer(walk, route, &response);
    walk->succeeded[index] |= *ret_status < 300;
    quire_response_done(&response);
    return answer;
}

static void check_refused(struct walk *walk, const char *method, const char *target, const char *body,
                          const char *content_type)
{
    int status;
    json_decref(send(walk, method, target, body, content_type, &status));
    if (status < 400 || status >= 500) {
        QR_FAIL("it is answered with %d", status);
    }
}

/* ---- what a schema refuses ---- */

static void check_body_refused(struct walk *walk, const char *method, const char *target, const json_t *body)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_json_write(body, &text, &err));
    check_refused(walk, method, target, text.data, NULL);
}

/* Each field of a body that is good becomes one that the schema does not allow, or is left out where it must not be. */
static void spoil(struct walk *walk, const char *method, const char *target, const json_t *good, const json_t *schema)
{
    static const char values[] =
        "[null, true, -1, 1.5, 1000000000000, \"\", \"no such word\", [], [[]], [\"\"], {}, {\"nonsense\":1}]";
    QR_JSON *bad_values = json_loads(values, 0, NULL);
    const char *name;
    json_t *field, *bad;
    size_t i;
    json_object_foreach(json_object_get(schema, "properties"), name, field)
    {
        QR_JSON *body = json_copy((json_t *)good);
        json_array_foreach(bad_values, i, bad)
        {
            QR_CLEANUP(qr_buf_done) struct qr_buf wrong = {0};
            json_object_set(body, name, bad);
            if (!json_schema_fits(walk->openapi, field, bad, &wrong)) {
                check_body_refused(walk, method, target, body);
            }
        }
        json_object_del(body, name);
        if (has_text(json_object_get(schema, "required"), name)) {
            check_body_refused(walk, method, target, body);
        }
    }
}

/* ---- requests that succeed ---- */

static void check_request(struct walk *walk, const char *method, const char *target, const char *body)
{
    size_t index;
    const struct qr_route *route = find_route(method, target, &index);
    const json_t *schema = json_schema_resolve(walk->openapi, body_schema(walk, route));
    QR_CLEANUP(qr_buf_done) struct qr_buf wrong = {0};
    QR_JSON *json = json_loads(body, 0, NULL);
    QR_CHECK(json != NULL);
    if (!schema || !json_schema_fits(walk->openapi, schema, json, &wrong)) {
        QR_FAIL("the body of a good request to %s is not as described: %s", target, wrong.len ? wrong.data : "");
    }
    if (json_is_false(json_object_get(schema, "additionalProperties"))) { /* others take what they do not know */
        spoil(walk, method, target, json, schema);
    }
}

/* It is answered with this status; every way to spoil its body is tried first. */
static json_t *ask(struct walk *walk, const char *method, const char *target, const char *body, int expected)
{
    int status;
    if (body) {
        check_request(walk, method, target, body);
    }
    json_t *answer = send(walk, method, target, body, NULL, &status);
    if (status != expected) {
        char *text = json_dumps(answer, 0);
        QR_FAIL("it is answered with %d, not %d: %s", status, expected, text ? text : "");
    }
    return answer;
}

static void done(struct walk *walk, const char *method, const char *target, const char *body, int expected)
{
    json_decref(ask(walk, method, target, body, expected));
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static void keep(char ret_id[static ID_SIZE], const json_t *object)
{
    QR_CHECK_INT(ID_SIZE - 1, strlen(text_of(object, "id")));
    memcpy(ret_id, text_of(object, "id"), ID_SIZE);
}

static json_t *first_of(const json_t *answer, const char *list)
{
    return json_array_get(json_object_get(answer, list), 0);
}

/* A path or a body with ids in it; static memory, valid for the next 3 calls. */
QR_PRINTF(1, 2) static const char *fill(const char *format, ...)
{
    static char texts[4][1024];
    static size_t next;
    char *text = texts[next++ % QR_COUNT(texts)];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof texts[0], format, args);
    va_end(args);
    return text;
}

#define BASE "/api/v1/bases/b"

static void wait_for(struct walk *walk, const char *id, const char *wanted)
{
    const char *path = fill(BASE "/items/%s", id);
    for (;;) {
        QR_JSON *item = ask(walk, "GET", path, NULL, 200);
        if (strcmp(text_of(item, "status"), wanted) == 0) {
            return;
        }
        QR_CHECK(wanted[0] == 'f' || strcmp(text_of(item, "status"), "failed") != 0);
        sched_yield();
    }
}

/* ---- the walk ---- */

static void walk_bases(struct walk *walk)
{
    done(walk, "POST", "/api/v1/bases",
         "{\"name\":\"b\",\"settings\":{\"embedding\":{\"provider\":\"hash\"},\"chunking\":{\"size_tokens\":200},"
         "\"retrieval\":{\"weights\":{\"text\":0.4}},\"limits\":{\"items_max\":1000}}}",
         201);
    done(walk, "POST", "/api/v1/bases", "{\"name\":\"other\"}", 201);
    done(walk, "GET", "/api/v1/bases?limit=1", NULL, 200);
    done(walk, "GET", BASE, NULL, 200);
    done(walk, "PATCH", BASE, "{\"settings\":{\"chunking\":{\"size_tokens\":300},\"limits\":null}}", 200);
    done(walk, "PATCH", BASE, "{\"settings\":{\"embedding\":{\"dimensions\":64}},\"dry_run\":true}", 200);
    done(walk, "PATCH", "/api/v1/bases/other", "{\"name\":\"another\",\"version\":1}", 200);
    done(walk, "PATCH", "/api/v1/bases/another", "{\"name\":\"other\"}", 200);
    check_refused(walk, "PATCH", BASE, "{\"name\":\"c\",\"version\":99}", NULL);
    check_refused(walk, "PATCH", BASE, "{\"name\":\"other\"}", NULL);
    check_refused(walk, "POST", "/api/v1/bases", "{\"name\":\"b\"}", NULL);
    check_refused(walk, "POST", BASE "/restore", NULL, NULL);
}

static void upload(struct walk *walk)
{
    static const char body[] = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"kept/a.md\"\r\n\r\n"
                               "# Kept\n\nmedlar\r\n--x--\r\n";
    int status;
    json_decref(send(walk, "POST", BASE "/uploads?process=auto", body, "multipart/form-data; boundary=x", &status));
    QR_CHECK_INT(202, status);
    check_refused(walk, "POST", BASE "/uploads", "--x--\r\n", "multipart/form-data; boundary=x");
    check_refused(walk, "POST", BASE "/uploads?process=never", body, "multipart/form-data; boundary=x");
}

static void add_items(struct walk *walk, struct qr_test *t, char ret_note[static ID_SIZE],
                      char ret_gone[static ID_SIZE], char ret_folder[static ID_SIZE])
{
    qr_err err;
    QR_CHECK(mkdir(qr_test_path(t, "docs"), 0700) == 0);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "docs/page.html"),
                                     QR_STR("<h1>Page</h1><p>quince <img src=\"data:image/png;base64,"
                                            "iVBORw0KGgo=\">"),
                                     0600, &err));
    QR_JSON *added = ask(walk, "POST", BASE "/items",
                         "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"# Sour\\n\\nquince and "
                         "medlar\",\"attributes\":{\"kind\":\"fruit\"}}],\"on_conflict\":\"create\"}",
                         202);
    QR_JSON *gone = ask(walk, "POST", BASE "/items", "{\"items\":[{\"type\":\"file\",\"path\":\"/no/such.md\"}]}", 202);
    QR_JSON *folder = ask(
        walk, "POST", BASE "/items",
        fill("{\"items\":[{\"type\":\"directory\",\"path\":\"%s\",\"exclude\":[\"*.bin\"]}]}", qr_test_path(t, "docs")),
        202);
    done(walk, "POST", BASE "/items",
         "{\"items\":[{\"type\":\"url\",\"url\":\"http://127.0.0.1:1/\"}],\"process\":\"manual\"}", 202);
    check_refused(walk, "POST", BASE "/items", "{\"items\":[{\"type\":\"note\",\"name\":\"n\"}]}", NULL);
    keep(ret_note, first_of(added, "items"));
    keep(ret_gone, first_of(gone, "items"));
    keep(ret_folder, first_of(folder, "items"));
}

static void walk_items(struct walk *walk, const char *note, const char *folder)
{
    static const char *const lists[] = {"", "?parent=root&limit=1&sort=-name", "?status=completed&type=note&q=n",
                                        "?source=/no/such.md"};
    static const char *const inside[] = {"",
                                         "/content",
                                         "/content?offset=2&limit=8",
                                         "/raw",
                                         "/raw?offset=1&limit=3",
                                         "/totals?chunks=true",
                                         "/chunks?limit=1",
                                         "/assets",
                                         "/events"};
    for (size_t i = 0; i < QR_COUNT(lists); i++) {
        done(walk, "GET", fill(BASE "/items%s", lists[i]), NULL, 200);
    }
    for (size_t i = 0; i < QR_COUNT(inside); i++) {
        done(walk, "GET", fill(BASE "/items/%s%s", note, inside[i]), NULL, 200);
    }
    QR_JSON *found = ask(walk, "GET", fill(BASE "/items?parent=%s", folder), NULL, 200);
    char page[ID_SIZE];
    keep(page, first_of(found, "data"));
    done(walk, "GET", fill(BASE "/items/%s/assets", page), NULL, 200);
    done(walk, "GET", fill(BASE "/items/%s/totals", folder), NULL, 200);
    check_refused(walk, "GET", fill(BASE "/items/%s/content", folder), NULL, NULL);
    check_refused(walk, "GET", fill(BASE "/items/%s/raw", folder), NULL, NULL);
    check_refused(walk, "GET", fill(BASE "/items/%s/chunks?limit=0", note), NULL, NULL);
    check_refused(walk, "GET", BASE "/items?sort=colour", NULL, NULL);
    done(walk, "PATCH", fill(BASE "/items/%s", note),
         "{\"name\":\"m\",\"attributes\":{\"kind\":\"tree\"},\"enabled\":true}", 200);
    done(walk, "PUT", fill(BASE "/items/%s/content", note), "{\"content\":\"# Sweet\\n\\nquince jelly\"}", 202);
    wait_for(walk, note, "completed");
}

static void walk_search(struct walk *walk, const char *note)
{
    done(walk, "GET", "/readyz", NULL, 200);
    done(walk, "POST", BASE "/search",
         "{\"query\":\"quince\",\"mode\":\"hybrid\",\"top_k\":5,\"threshold\":0,\"context\":1,\"merge\":true,"
         "\"diversity\":0.2,\"rerank\":false,\"explain\":true,\"filter\":{\"types\":[\"note\",\"file\"]}}",
         200);
    done(walk, "POST", BASE "/search",
         fill("{\"query\":\"quince\",\"mode\":\"text\",\"filter\":{\"under\":\"%s\"}}", note), 200);
    done(walk, "POST", BASE "/search", "{\"query\":\"quince\",\"mode\":\"vector\"}", 200);
    QR_JSON *answer = ask(walk, "POST", "/api/v1/search", "{\"base_ids\":[\"b\",\"other\"],\"query\":\"quince\"}", 200);
    QR_CHECK(json_array_size(json_object_get(answer, "hits")) > 0);
    done(walk, "POST", "/retrieval",
         "{\"knowledge_id\":\"b\",\"query\":\"quince\",\"retrieval_setting\":{\"top_k\":2,\"score_threshold\":0}}",
         200);
    done(walk, "POST", "/v1/vector_stores/b/search", "{\"query\":[\"quince\"],\"max_num_results\":2}", 200);
    done(walk, "POST", "/v1/embeddings", "{\"model\":\"b\",\"input\":\"quince\"}", 200);
    done(walk, "POST", "/v1/embeddings", "{\"model\":\"b\",\"input\":[\"quince\"],\"encoding_format\":\"base64\"}",
         200);
    check_refused(walk, "POST", "/retrieval", "{\"query\":\"quince\"}", NULL);
    check_refused(walk, "POST", "/retrieval", "{\"knowledge_id\":\"nowhere\",\"query\":\"quince\"}", NULL);
    check_refused(walk, "POST", "/v1/embeddings", "{\"model\":\"nowhere\",\"input\":\"quince\"}", NULL);
    check_refused(walk, "POST", "/api/v1/search", "{\"base_ids\":[\"nowhere\"],\"query\":\"quince\"}", NULL);
}

/* Nothing is worked on meanwhile. */
static void walk_work(struct walk *walk, const char *note, const char *gone)
{
    static const char *const wishes[] = {"retry", "refresh", "reindex"};
    char run[ID_SIZE], job[ID_SIZE];
    done(walk, "POST", BASE "/items",
         "{\"items\":[{\"type\":\"note\",\"name\":\"idle\",\"content\":\"rest\"}],\"process\":\"manual\"}", 202);
    QR_JSON *made = ask(walk, "POST", "/api/v1/knowledge-spaces/b/process",
                        "{\"process_new_documents\":true,\"level_gate\":\"auto\"}", 202);
    keep(run, made);
    done(walk, "GET", BASE "/runs?limit=1", NULL, 200);
    done(walk, "GET", "/api/v1/events", NULL, 200);
    done(walk, "GET", "/api/v1/events?base=b", NULL, 200);
    check_refused(walk, "GET", "/api/v1/events?base=nowhere", NULL, NULL);
    done(walk, "GET", fill("/api/v1/runs/%s", run), NULL, 200);
    done(walk, "POST", fill("/api/v1/runs/%s/cancel", run), NULL, 200);
    check_refused(walk, "POST", fill("/api/v1/runs/%s/cancel", run), NULL, NULL);
    done(walk, "POST", "/api/v1/knowledge-spaces/b/process", "{\"process_new_documents\":true}", 202);
    QR_JSON *jobs = ask(walk, "GET", "/api/v1/jobs?state=queued&queue=convert&limit=1", NULL, 200);
    keep(job, first_of(jobs, "data"));
    done(walk, "GET", fill("/api/v1/jobs/%s", job), NULL, 200);
    check_refused(walk, "POST", fill("/api/v1/jobs/%s/retry", job), NULL, NULL);
    done(walk, "POST", fill("/api/v1/jobs/%s/cancel", job), NULL, 200);
    check_refused(walk, "POST", fill("/api/v1/jobs/%s/cancel", job), NULL, NULL);
    done(walk, "POST", fill("/api/v1/jobs/%s/retry", job), NULL, 202);
    done(walk, "GET", "/api/v1/queues", NULL, 200);
    done(walk, "POST", "/api/v1/queues/embed/pause", NULL, 200);
    done(walk, "POST", "/api/v1/queues/embed/resume", NULL, 200);
    done(walk, "POST", BASE "/items/reindex", fill("{\"ids\":[\"%s\"],\"dry_run\":true}", note), 200);
    for (size_t i = 0; i < QR_COUNT(wishes); i++) {
        done(walk, "POST", fill(BASE "/items/%s", wishes[i]), fill("{\"ids\":[\"%s\"]}", i ? note : gone), 202);
    }
    done(walk, "GET", fill(BASE "/items/%s/events", note), NULL, 200);
    done(walk, "POST", BASE "/items/delete", fill("{\"ids\":[\"%s\"]}", gone), 202);
}

/* A database that is elsewhere is copied with its own means. */
static void walk_backup(struct walk *walk, struct qr_test *t)
{
    const char *body = fill("{\"path\":\"%s\"}", qr_test_path(t, "copy"));
    if (qr_test_on_postgres(t)) {
        check_refused(walk, "POST", "/api/v1/backup", body, NULL);
        return;
    }
    done(walk, "POST", "/api/v1/backup", body, 201);
    check_refused(walk, "POST", "/api/v1/backup", body, NULL);
}

static void walk_server(struct walk *walk)
{
    done(walk, "POST", "/api/v1/models", "{\"name\":\"m\",\"embedding\":{\"provider\":\"hash\",\"dimensions\":64}}",
         201);
    check_refused(walk, "POST", "/api/v1/models", "{\"name\":\"m\",\"embedding\":{\"provider\":\"hash\"}}", NULL);
    done(walk, "GET", "/api/v1/models", NULL, 200);
    done(walk, "DELETE", "/api/v1/models/m", NULL, 200);
    done(walk, "POST", "/api/v1/check", "{\"repair\":false,\"limit\":10}", 200);
    done(walk, "GET", "/api/v1/cache", NULL, 200);
    done(walk, "POST", "/api/v1/cache/prune", "{\"to_bytes\":0}", 200);
    done(walk, "GET", "/api/v1/cache", NULL, 200);
    done(walk, "GET", "/healthz", NULL, 200);
    done(walk, "GET", "/metrics", NULL, 200);
    done(walk, "GET", "/openapi.json", NULL, 200);
    done(walk, "GET", "/docs", NULL, 200);
}

/* Leaves the secret of a key that may look at the base. */
static void walk_keys(struct walk *walk, char ret_secret[static 100])
{
    char key[ID_SIZE];
    QR_JSON *viewer = ask(walk, "POST", "/api/v1/keys", "{\"name\":\"viewer\",\"roles\":{\"b\":\"viewer\"}}", 201);
    snprintf(ret_secret, 100, "Bearer %s", text_of(viewer, "secret"));
    QR_JSON *made = ask(walk, "POST", "/api/v1/keys",
                        "{\"name\":\"k\",\"admin\":false,\"roles\":{\"b\":\"editor\"},\"expires_in_s\":60}", 201);
    keep(key, made);
    check_refused(walk, "POST", "/api/v1/keys", "{\"name\":\"k\"}", NULL);
    check_refused(walk, "POST", "/api/v1/keys", "{\"name\":\"l\",\"roles\":{\"nowhere\":\"editor\"}}", NULL);
    done(walk, "GET", "/api/v1/keys?limit=1", NULL, 200);
    done(walk, "POST", "/api/v1/keys/k/rotate", "{\"grace_s\":5}", 200);
    done(walk, "PUT", fill(BASE "/members/%s", key), "{\"role\":\"owner\"}", 200);
    done(walk, "GET", BASE "/members?limit=1", NULL, 200);
    done(walk, "GET", fill(BASE "/members/%s", key), NULL, 200);
    done(walk, "DELETE", fill(BASE "/members/%s", key), NULL, 200);
    done(walk, "DELETE", fill("/api/v1/keys/%s", key), NULL, 200);
}

static qr_rc fail_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_base_set_status(tx, *(const qr_uuid *)arg, QR_BASE_FAILED, "index_lost", "its index is gone", err);
}

static void walk_end_of_base(struct walk *walk)
{
    QR_JSON *base = ask(walk, "GET", BASE, NULL, 200);
    qr_uuid id;
    qr_err err;
    QR_CHECK(qr_uuid_parse(qr_str_of(text_of(base, "id")), &id));
    QR_CHECK_RC(QR_OK, qr_db_write(walk->quire->db, QR_DURABLE, fail_base, &id, &err));
    done(walk, "GET", BASE, NULL, 200);
    check_refused(walk, "POST", BASE "/search", "{\"query\":\"quince\"}", NULL);
    check_refused(walk, "POST", "/retrieval", "{\"knowledge_id\":\"b\",\"query\":\"quince\"}", NULL);
    done(walk, "POST", BASE "/restore", NULL, 202);
    check_refused(walk, "DELETE", BASE, NULL, NULL);
    check_refused(walk, "DELETE", BASE "?confirm=perhaps", NULL, NULL);
    done(walk, "DELETE", BASE "?confirm=true", NULL, 202);
}

/* ---- bad requests to every route ---- */

static const char *path_of(const struct qr_route *route)
{
    static char path[512];
    size_t len = 0;
    for (const char *at = route->pattern; *at; at++) {
        const char *value = *at != '{' ? NULL : at[1] == 'b' ? "b" : "00000000-0000-7000-8000-000000000000";
        len +=
            (size_t)snprintf(path + len, sizeof path - len, "%.*s", value ? (int)strlen(value) : 1, value ? value : at);
        at = value ? strchr(at, '}') : at;
    }
    return path;
}

static void misuse(struct walk *walk, const struct qr_route *route)
{
    const char *path = path_of(route);
    check_refused(walk, route->method, fill("%s?nonsense=1", path), NULL, NULL);
    check_refused(walk, route->method, fill("%s?a=%%zz", path), NULL, NULL);
    if (route->takes != QR_BODY_FILES) {
        check_refused(walk, route->method, path, "[", NULL);
        check_refused(walk, route->method, path, "[]", NULL);
    }
    if (route->takes == QR_BODY_JSON && strcmp(route->fields, "*") != 0) {
        check_refused(walk, route->method, path, "{\"nonsense\":1}", NULL);
    }
    if (strcmp(route->method, "GET") != 0) {
        check_refused(walk, route->method, path, "words", "text/plain");
    }
    if (strchr(path, '0')) { /* it names what there is not */
        check_refused(walk, route->method, path, NULL, NULL);
    }
}

static void check_strangers(struct walk *walk, const struct qr_route *route, const char *viewer)
{
    walk->is_stranger = true;
    walk->authorization[0] = '\0';
    if (route->needs > QR_RIGHT_OPEN) {
        check_refused(walk, route->method, path_of(route), NULL, NULL);
    }
    snprintf(walk->authorization, sizeof walk->authorization, "%s", viewer);
    if (route->needs > QR_RIGHT_VIEWER) {
        check_refused(walk, route->method, path_of(route), NULL, NULL);
    }
    walk->is_stranger = false;
    walk->authorization[0] = '\0';
}

QR_DB_TEST_WITH_TIMEOUT(every_route_answers_as_it_is_described, 300) /* SPEC-1 */
{
    struct walk walk;
    char note[ID_SIZE], gone[ID_SIZE], folder[ID_SIZE], viewer[100];
    struct quire_error error;
    open_walk(&walk, t);
    walk_bases(&walk);
    QR_CHECK_INT(0, quire_start_work(walk.quire, &error));
    add_items(&walk, t, note, gone, folder);
    upload(&walk);
    wait_for(&walk, note, "completed");
    wait_for(&walk, folder, "completed");
    wait_for(&walk, gone, "failed");
    walk_items(&walk, note, folder);
    walk_search(&walk, note);
    quire_stop_work(walk.quire, 10000);
    walk_work(&walk, note, gone);
    walk_server(&walk);
    walk_backup(&walk, t);
    walk_keys(&walk, viewer);
    for (size_t i = 0; i < qr_route_count; i++) {
        misuse(&walk, &qr_routes[i]);
        check_strangers(&walk, &qr_routes[i], viewer);
    }
    walk_end_of_base(&walk);
    qr_test_set_context("%s", "");
    for (size_t i = 0; i < qr_route_count; i++) {
        const bool is_refused = qr_routes[i].fn == qr_route_backup && qr_test_on_postgres(t);
        if (!walk.succeeded[i] && !is_refused) {
            QR_FAIL("no request to %s %s has succeeded", qr_routes[i].method, qr_routes[i].pattern);
        }
    }
    QR_CHECK(walk.refusals > 5 * qr_route_count);
    close_walk(&walk);
}
