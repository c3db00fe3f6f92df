/* Who may do what, over every database: the whole table of routes for everybody who may come, and the single rules. */
#include "api/audit.h"
#include "api/router.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/secret.h"
#include "support/db_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

enum { ID_SIZE = QR_UUID_TEXT_SIZE, HEADER_SIZE = 64 };

/* ---- a data folder, and those who come ---- */

enum who { NOBODY, BAD_KEY, OUTSIDER, VIEWER, EDITOR, OWNER, ADMIN, LOCAL, WHO_COUNT };
static const char *const names[] = {"no key",    "a bad key", "an outsider", "a viewer",
                                    "an editor", "an owner",  "an admin",    "the local owner"};

struct world {
    struct qr_test *t;
    struct quire *quire;
    char base_id[ID_SIZE], item_id[ID_SIZE], run_id[ID_SIZE];
    char headers[WHO_COUNT][HEADER_SIZE]; /* Authorization */
    char key_ids[WHO_COUNT][ID_SIZE];
    const char *address; /* of those who come by the port */
};

static void open_world(struct world *world, struct qr_test *t, const char *import_roots)
{
    const struct qr_config_flag settings[] = {
        {"test", QR_STR("data.dir"), qr_str_of(qr_test_path(t, "data"))},
        {"test", QR_STR("server.import_roots"), qr_str_of(import_roots)},
        {"test", QR_STR("server.service_hosts"), QR_STR("listed.example, 10.0.0.5:8080")},
        {"test", QR_STR("database.url"),
         qr_str_of(qr_test_on_postgres(t) ? qr_test_db_options(t, NULL, 0).url : "sqlite")},
    };
    const struct qr_instance_options options = {.settings = settings,
                                                .setting_count = QR_COUNT(settings),
                                                .program = "the test",
                                                .clock = qr_test_clock(INT64_C(1700000000000))};
    qr_err err;
    *world = (struct world){.t = t, .address = "192.0.2.7"};
    QR_CHECK_RC(QR_OK, qr_instance_open(&world->quire, &options, &err));
}

static void close_world(struct world *world)
{
    qr_instance_close(world->quire);
}

static struct quire_request request_of(const struct world *world, enum who who, const char *method, const char *target,
                                       const char *body)
{
    return (struct quire_request){.method = method,
                                  .target = target,
                                  .body = body,
                                  .body_size = body ? strlen(body) : 0,
                                  .is_local_owner = who == LOCAL,
                                  .authorization = world->headers[who][0] ? world->headers[who] : NULL,
                                  .remote_address = who == LOCAL ? NULL : world->address,
                                  .request_id = "request-1"};
}

/* The answer; the caller's. */
static struct quire_response ask(const struct world *world, enum who who, const char *method, const char *target,
                                 const char *body)
{
    const struct quire_request request = request_of(world, who, method, target, body);
    struct quire_response response;
    quire_request_call(world->quire, &request, &response);
    return response;
}

static void check(const struct world *world, enum who who, const char *method, const char *target, const char *body,
                  int status, const char *has)
{
    struct quire_response response = ask(world, who, method, target, body);
    if (response.status != status || !strstr(response.body, has)) {
        QR_FAIL("%s %s by %s answers %d, not %d with %s: %s", method, target, names[who], response.status, status, has,
                response.body);
    }
    quire_response_done(&response);
}

static json_t *ask_json(const struct world *world, enum who who, const char *method, const char *target,
                        const char *body, int status)
{
    struct quire_response response = ask(world, who, method, target, body);
    json_t *answer = NULL;
    qr_err err;
    if (response.status != status) {
        QR_FAIL("%s %s by %s answers %d, not %d: %s", method, target, names[who], response.status, status,
                response.body);
    }
    QR_CHECK_RC(QR_OK,
                qr_json_parse((qr_str){response.body, response.body_size}, &QR_JSON_REQUEST_LIMITS, &answer, &err));
    quire_response_done(&response);
    return answer;
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

/* A key, made by the local owner. */
static void make_key(struct world *world, enum who who, const char *body)
{
    QR_JSON *key = ask_json(world, LOCAL, "POST", "/api/v1/keys", body, 201);
    snprintf(world->headers[who], HEADER_SIZE, "Bearer %s", text_of(key, "secret"));
    keep(world->key_ids[who], key);
}

/* A base `b` with a note and a run, a base `other`, and a key of each kind. */
static void fill_world(struct world *world)
{
    QR_JSON *base = ask_json(world, LOCAL, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201);
    check(world, LOCAL, "POST", "/api/v1/bases", "{\"name\":\"other\"}", 201, "other");
    QR_JSON *added = ask_json(world, LOCAL, "POST", "/api/v1/bases/b/items",
                              "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"words\"}],\"process\":"
                              "\"manual\"}",
                              202);
    QR_JSON *run =
        ask_json(world, LOCAL, "POST", "/api/v1/knowledge-spaces/b/process", "{\"process_new_documents\":true}", 202);
    keep(world->base_id, base);
    keep(world->item_id, json_array_get(json_object_get(added, "items"), 0));
    keep(world->run_id, run);
    strcpy(world->headers[BAD_KEY], "Bearer qk_0000000000000000000000000000000000000000000");
    make_key(world, OUTSIDER, "{\"name\":\"outsider\",\"roles\":{\"other\":\"owner\"}}");
    make_key(world, VIEWER, "{\"name\":\"viewer\",\"roles\":{\"b\":\"viewer\"}}");
    make_key(world, EDITOR, "{\"name\":\"editor\",\"roles\":{\"b\":\"editor\"}}");
    make_key(world, OWNER, "{\"name\":\"owner\",\"roles\":{\"b\":\"owner\"}}");
    make_key(world, ADMIN, "{\"name\":\"admin\",\"admin\":true}");
}

/* ---- the matrix ---- */

/* A path of the route: what is in it exists, but for keys and jobs, which nothing may happen to. */
static const char *path_of(const struct world *world, const struct qr_route *route, const char *base)
{
    static char path[512];
    const struct {
        const char *param, *value;
    } values[] = {{"{b}", base},
                  {"{i}", world->item_id},
                  {"{r}", world->run_id},
                  {"{q}", "embed"},
                  {"{", "00000000-0000-7000-8000-000000000000"}};
    size_t len = 0;
    for (const char *at = route->pattern; *at; at++) {
        const char *value = NULL;
        for (size_t i = 0; i < QR_COUNT(values) && !value && *at == '{'; i++) {
            value = strncmp(at, values[i].param, strlen(values[i].param)) == 0 ? values[i].value : NULL;
        }
        len +=
            (size_t)snprintf(path + len, sizeof path - len, "%.*s", value ? (int)strlen(value) : 1, value ? value : at);
        at = value ? strchr(at, '}') : at;
        QR_CHECK(len < sizeof path);
    }
    return path;
}

static const char *body_of(const struct qr_route *route)
{
    return strstr(route->fields, "base_ids") ? "{\"base_ids\":[\"b\"],\"query\":\"words\"}" : NULL;
}

/* 401, 403 or 404; 0 = let in. */
static int expected_refusal(const struct qr_route *route, enum who who)
{
    static const enum qr_right rights[] = {
        [NOBODY] = QR_RIGHT_OPEN,   [BAD_KEY] = QR_RIGHT_OPEN, [OUTSIDER] = QR_RIGHT_KEY, [VIEWER] = QR_RIGHT_VIEWER,
        [EDITOR] = QR_RIGHT_EDITOR, [OWNER] = QR_RIGHT_OWNER,  [ADMIN] = QR_RIGHT_ADMIN,  [LOCAL] = QR_RIGHT_LOCAL};
    if (rights[who] >= route->needs) {
        return 0;
    }
    return who == NOBODY || who == BAD_KEY ? 401 : who == OUTSIDER && route->needs < QR_RIGHT_ADMIN ? 404 : 403;
}

/* By what the answer says: a handler that was reached may also find nothing. */
static int refusal_of(const struct quire_response *response)
{
    const bool is_hidden = response->status == 404 && (strstr(response->body, "there is no base b\"") ||
                                                       strstr(response->body, "there is no such run\""));
    return response->status == 401 || response->status == 403 ? response->status : is_hidden ? 404 : 0;
}

static void check_route(const struct world *world, const struct qr_route *route, enum who who)
{
    struct quire_response response = ask(world, who, route->method, path_of(world, route, "b"), body_of(route));
    const int expected = expected_refusal(route, who);
    if (refusal_of(&response) != expected || response.status == 500) {
        QR_FAIL("%s %s by %s answers %d, not %d: %s", route->method, route->pattern, names[who], response.status,
                expected, response.body);
    }
    if (expected && !route->error) { /* else it has the shape of somebody else's API */
        static const char *const codes[] = {"unauthorized", NULL, "forbidden", "not_found"};
        QR_CHECK_HAS(codes[expected - 401], response.body);
    }
    QR_CHECK_INT(expected == 401, quire_response_header(&response, "WWW-Authenticate") != NULL);
    quire_response_done(&response);
}

QR_DB_TEST_WITH_TIMEOUT(every_route_lets_in_whom_its_row_says_and_nobody_else, 300) /* KEY-3, KEY-4, KEY-5 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    for (size_t i = 0; i < qr_route_count; i++) {
        const struct qr_route *route = &qr_routes[i];
        if (route->needs == QR_RIGHT_UNSAID) {
            QR_FAIL("nobody has said who may %s %s", route->method, route->pattern);
        }
        for (enum who who = NOBODY; who < WHO_COUNT; who++) {
            check_route(&world, route, who);
        }
    }
    close_world(&world);
}

QR_DB_TEST(a_route_for_the_local_owner_is_refused_even_to_an_admin) /* KEY-3 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    struct qr_route route = {.method = "POST", .pattern = "/x", .query = "", .fields = "", .needs = QR_RIGHT_LOCAL};
    for (enum who who = NOBODY; who < WHO_COUNT; who++) {
        const struct quire_request from = request_of(&world, who, "POST", "/x", NULL);
        struct qr_request request = {.quire = world.quire, .from = &from};
        qr_err err = {0};
        const qr_code expected = who == LOCAL     ? QR_CODE_NONE
                                 : who <= BAD_KEY ? QR_CODE_UNAUTHORIZED
                                                  : QR_CODE_FORBIDDEN;
        (void)qr_access_enter(&request, &route, &err);
        QR_CHECK_INT(expected, err.code);
        route.needs = QR_RIGHT_UNSAID; /* refused to everybody */
        QR_CHECK_CODE(QR_CODE_INTERNAL, qr_access_enter(&request, &route, &err));
        route.needs = QR_RIGHT_LOCAL;
    }
    close_world(&world);
}

/* ---- what is not yours is not there ---- */

/* The answers of all routes about a base, one after the other. */
static char *answers_about(const struct world *world, const char *base)
{
    struct qr_buf all = {0};
    for (size_t i = 0; i < qr_route_count; i++) {
        if (strstr(qr_routes[i].pattern, "{b}") || strstr(qr_routes[i].pattern, "{r}")) {
            struct quire_response response =
                ask(world, OUTSIDER, qr_routes[i].method, path_of(world, &qr_routes[i], base), NULL);
            qr_buf_printf(&all, "%s %d %s\n", qr_routes[i].pattern, response.status, response.body);
            quire_response_done(&response);
        }
    }
    QR_CHECK(all.len > 0 && all.failed == QR_CODE_NONE);
    return qr_buf_take(&all, NULL);
}

QR_DB_TEST_WITH_TIMEOUT(what_is_not_yours_answers_as_what_does_not_exist, 300) /* KEY-4 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    char *by_name = answers_about(&world, "b"), *by_id = answers_about(&world, world.base_id);
    check(&world, LOCAL, "DELETE", "/api/v1/bases/b?confirm=true", NULL, 202, "job_id");
    memset(world.run_id, '1', 8); /* one that nobody ever made */
    char *gone_by_name = answers_about(&world, "b"), *gone_by_id = answers_about(&world, world.base_id);
    QR_CHECK_TEXT(gone_by_name, by_name);
    QR_CHECK_TEXT(gone_by_id, by_id);
    qr_free(by_name);
    qr_free(by_id);
    qr_free(gone_by_name);
    qr_free(gone_by_id);
    close_world(&world);
}

QR_DB_TEST(lists_hold_only_what_is_the_callers) /* KEY-5 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    QR_JSON *all = ask_json(&world, ADMIN, "GET", "/api/v1/bases", NULL, 200);
    QR_JSON *mine = ask_json(&world, VIEWER, "GET", "/api/v1/bases", NULL, 200);
    QR_CHECK_INT(2, json_array_size(json_object_get(all, "data")));
    QR_CHECK_INT(1, json_array_size(json_object_get(mine, "data")));
    check(&world, VIEWER, "GET", "/api/v1/bases", NULL, 200, world.base_id);
    check(&world, OUTSIDER, "GET", "/api/v1/bases", NULL, 200, "\"name\":\"other\"");
    make_key(&world, OUTSIDER, "{\"name\":\"two bases\",\"roles\":{\"other\":\"viewer\",\"b\":\"viewer\"}}");
    QR_JSON *page = ask_json(&world, OUTSIDER, "GET", "/api/v1/bases?limit=1", NULL, 200);
    char next[128];
    snprintf(next, sizeof next, "/api/v1/bases?limit=1&cursor=%s", text_of(page, "next_cursor"));
    QR_CHECK_INT(1, json_array_size(json_object_get(page, "data")));
    check(&world, OUTSIDER, "GET", next, NULL, 200, "\"name\":\"other\"");
    check(&world, OUTSIDER, "GET", next, NULL, 200, "\"next_cursor\":null");
    close_world(&world);
}

QR_DB_TEST(a_search_needs_a_role_in_each_base) /* KEY-5 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    static const char path[] = "/api/v1/search";
    check(&world, VIEWER, "POST", path, "{\"base_ids\":[\"b\"],\"query\":\"x\"}", 200, "\"hits\"");
    check(&world, VIEWER, "POST", path, "{\"base_ids\":[\"b\",\"other\"],\"query\":\"x\"}", 404,
          "there is no base other");
    check(&world, OUTSIDER, "POST", path, "{\"base_ids\":[\"b\"],\"query\":\"x\"}", 404, "there is no base b");
    check(&world, VIEWER, "POST", path, "{\"base_ids\":[],\"query\":\"x\"}", 422, "base_ids");
    check(&world, VIEWER, "POST", path, "{\"base_ids\":\"b\",\"query\":\"x\"}", 422, "base_ids");
    check(&world, VIEWER, "POST", path, "{\"base_ids\":[{}],\"query\":\"x\"}", 422, "base_ids");
    check(&world, VIEWER, "POST", path, "{\"query\":\"x\"}", 422, "base_ids");
    check(&world, NOBODY, "POST", path, "{\"base_ids\":[\"b\"],\"query\":\"x\"}", 401, "unauthorized");
    close_world(&world);
}

/* ---- whether a key is needed ---- */

QR_DB_TEST(without_any_key_this_machine_needs_none) /* KEY-2 */
{
    struct world world;
    open_world(&world, t, "none");
    static const char *const near[] = {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", NULL};
    static const char *const far[] = {"192.0.2.7", "::2", "::ffff:192.0.2.7", "1127.0.0.1", ""};
    strcpy(world.headers[BAD_KEY], "Bearer something that a client had to send");
    for (size_t i = 0; i < QR_COUNT(near); i++) {
        world.address = near[i];
        check(&world, NOBODY, "GET", "/api/v1/keys", NULL, 200, "\"data\":[]");
        check(&world, BAD_KEY, "GET", "/api/v1/keys", NULL, 200, "\"data\":[]");
        world.address = far[i];
        check(&world, NOBODY, "GET", "/api/v1/keys", NULL, 401, "\"unauthorized\"");
    }
    world.address = "127.0.0.1";
    QR_JSON *key = ask_json(&world, NOBODY, "POST", "/api/v1/keys", "{\"name\":\"first\"}", 201);
    check(&world, NOBODY, "GET", "/api/v1/bases", NULL, 401, "this needs a key");
    check(&world, BAD_KEY, "GET", "/api/v1/bases", NULL, 401, "the key is not valid");
    check(&world, LOCAL, "GET", "/api/v1/bases", NULL, 200, "\"data\":[]");
    check(&world, LOCAL, "DELETE", "/api/v1/keys/first", NULL, 200, text_of(key, "id"));
    check(&world, NOBODY, "GET", "/api/v1/bases", NULL, 401, "\"unauthorized\""); /* nor after the last one went */
    close_world(&world);
}

/* Whatever they ask for: what they send need not be kept (HTTP-7). */
QR_DB_TEST(a_stranger_is_who_has_no_valid_key_where_one_is_needed)
{
    struct world world;
    open_world(&world, t, "none");
    world.address = "127.0.0.1";
    struct quire_request request = request_of(&world, NOBODY, "POST", "/mcp", NULL);
    QR_CHECK_INT(0, quire_request_is_strange(world.quire, &request));
    fill_world(&world);
    for (enum who who = NOBODY; who < WHO_COUNT; who++) {
        request = request_of(&world, who, "POST", "/api/v1/search", NULL);
        QR_CHECK_INT(who == NOBODY || who == BAD_KEY, quire_request_is_strange(world.quire, &request));
    }
    close_world(&world);
}

/* ---- keys ---- */

QR_DB_TEST(a_secret_is_in_the_answer_that_made_it_and_in_no_other) /* KEY-1, KEY-9 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    const char *secret = world.headers[VIEWER] + strlen("Bearer ");
    struct quire_response response = ask(&world, ADMIN, "GET", "/api/v1/keys", NULL);
    QR_CHECK(!strstr(response.body, secret) && !strstr(response.body, "\"secret\""));
    QR_CHECK_HAS("\"name\":\"viewer\",\"admin\":false,\"prefix\":\"qk_", response.body);
    quire_response_done(&response);
    char path[128];
    snprintf(path, sizeof path, "/api/v1/keys/%s", secret); /* one who takes the secret for the id */
    response = ask(&world, ADMIN, "DELETE", path, NULL);
    QR_CHECK_INT(404, response.status);
    QR_CHECK(!strstr(response.body, secret));
    quire_response_done(&response);
    check(&world, VIEWER, "GET", "/api/v1/bases/b", NULL, 200, "\"name\":\"b\"");
    static const char *const wrong[] = {"/api/v1/bases/", "/api/v1/", "/api/v1/bases/b/items/"};
    for (size_t i = 0; i < QR_COUNT(wrong); i++) { /* KEY-9: nor in an error, wherever it was put */
        snprintf(path, sizeof path, "%s%s", wrong[i], secret);
        response = ask(&world, ADMIN, "GET", path, NULL);
        QR_CHECK_INT(404, response.status);
        QR_CHECK(!strstr(response.body, secret));
        quire_response_done(&response);
    }
    close_world(&world);
}

QR_DB_TEST(a_key_is_rotated_and_ended) /* KEY-6 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    char old[HEADER_SIZE], path[128];
    memcpy(old, world.headers[VIEWER], sizeof old);
    QR_JSON *key = ask_json(&world, ADMIN, "POST", "/api/v1/keys/viewer/rotate", "{\"grace_s\":60}", 200);
    QR_CHECK_TEXT(world.key_ids[VIEWER], text_of(key, "id"));
    check(&world, VIEWER, "GET", "/api/v1/bases/b", NULL, 200, "\"name\":\"b\"");
    snprintf(world.headers[VIEWER], HEADER_SIZE, "Bearer %s", text_of(key, "secret"));
    QR_CHECK(strcmp(old, world.headers[VIEWER]) != 0);
    check(&world, VIEWER, "GET", "/api/v1/bases/b", NULL, 200, "\"name\":\"b\"");
    qr_test_clock_advance(60000);
    memcpy(world.headers[BAD_KEY], old, sizeof old);
    check(&world, BAD_KEY, "GET", "/api/v1/bases/b", NULL, 401, "the key is not valid");
    check(&world, VIEWER, "GET", "/api/v1/bases/b", NULL, 200, "\"name\":\"b\"");
    check(&world, ADMIN, "POST", "/api/v1/keys/viewer/rotate", "{\"grace_s\":-1}", 422, "grace_s");
    snprintf(path, sizeof path, "/api/v1/keys/%s", world.key_ids[VIEWER]);
    check(&world, ADMIN, "DELETE", path, NULL, 200, "\"name\":\"viewer\"");
    check(&world, VIEWER, "GET", "/api/v1/bases/b", NULL, 401, "the key is not valid");
    check(&world, ADMIN, "DELETE", path, NULL, 404, "there is no such key");
    make_key(&world, VIEWER, "{\"name\":\"short\",\"roles\":{\"b\":\"viewer\"},\"expires_in_s\":5}");
    check(&world, VIEWER, "GET", "/api/v1/bases/b", NULL, 200, "\"name\":\"b\"");
    qr_test_clock_advance(5000);
    check(&world, VIEWER, "GET", "/api/v1/bases/b", NULL, 401, "the key is not valid");
    close_world(&world);
}

QR_DB_TEST(a_key_that_cannot_be_meant_is_not_made)
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    static const char *const bodies[] = {"{}",
                                         "{\"name\":\"\"}",
                                         "{\"name\":\"a/b\"}",
                                         "{\"name\":\"qk_something\"}",
                                         "{\"name\":\"x\",\"admin\":1}",
                                         "{\"name\":\"x\",\"roles\":[]}",
                                         "{\"name\":\"x\",\"roles\":{\"b\":\"king\"}}",
                                         "{\"name\":\"x\",\"expires_in_s\":0}",
                                         "{\"name\":\"x\",\"expires_in_s\":\"1\"}"};
    for (size_t i = 0; i < QR_COUNT(bodies); i++) {
        check(&world, ADMIN, "POST", "/api/v1/keys", bodies[i], 422, "\"invalid_value\"");
    }
    check(&world, ADMIN, "POST", "/api/v1/keys", "{\"name\":\"x\",\"roles\":{\"none\":\"viewer\"}}", 404,
          "there is no base none");
    check(&world, ADMIN, "POST", "/api/v1/keys", "{\"name\":\"viewer\"}", 409, "\"already_exists\"");
    check(&world, ADMIN, "DELETE", "/api/v1/keys/x", NULL, 404, "there is no such key"); /* nothing was made */
    close_world(&world);
}

QR_DB_TEST(owners_say_who_is_a_member) /* KEY-3 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    char path[128];
    snprintf(path, sizeof path, "/api/v1/bases/b/members/%s", world.key_ids[OUTSIDER]);
    check(&world, OWNER, "PUT", path, "{\"role\":\"editor\"}", 200, "\"name\":\"outsider\",\"role\":\"editor\"");
    check(&world, OUTSIDER, "GET", "/api/v1/bases/b", NULL, 200, "\"name\":\"b\"");
    check(&world, OUTSIDER, "DELETE", "/api/v1/bases/b", NULL, 403, "the role owner of the base");
    check(&world, OWNER, "PUT", path, "{\"role\":\"king\"}", 422, "role is viewer, editor or owner");
    QR_JSON *members = ask_json(&world, OWNER, "GET", "/api/v1/bases/b/members", NULL, 200);
    QR_CHECK_INT(4, json_array_size(json_object_get(members, "data")));
    check(&world, OWNER, "GET", "/api/v1/bases/b/members?limit=1", NULL, 200, "\"next_cursor\":\"");
    check(&world, OWNER, "DELETE", path, NULL, 200, "\"role\":\"editor\"");
    check(&world, OWNER, "DELETE", path, NULL, 404, "no role in this base");
    check(&world, OUTSIDER, "GET", "/api/v1/bases/b", NULL, 404, "there is no base b");
    check(&world, OWNER, "PUT", "/api/v1/bases/b/members/viewer", "{\"role\":\"owner\"}", 404, "by its whole id");
    close_world(&world);
}

/* ---- what is this machine's ---- */

static void check_path(const struct world *world, enum who who, const char *type, const char *path, int status)
{
    char body[1024];
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"%s\",\"path\":\"%s\"}],\"process\":\"manual\"}", type, path);
    check(world, who, "POST", "/api/v1/bases/b/items", body, status,
          status == 403 ? "server.import_roots" : "\"result\"");
}

QR_DB_TEST(paths_are_the_local_owners_or_below_the_import_roots) /* KEY-7 */
{
    struct world world;
    qr_err err;
    char roots[512];
    QR_CHECK(mkdir(qr_test_path(t, "in"), 0700) == 0 && mkdir(qr_test_path(t, "in/sub"), 0700) == 0);
    QR_CHECK(mkdir(qr_test_path(t, "inner"), 0700) == 0 && mkdir(qr_test_path(t, "out"), 0700) == 0);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "in/a.txt"), QR_STR("a"), 0600, &err));
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "out/b.txt"), QR_STR("b"), 0600, &err));
    QR_CHECK(symlink(qr_test_path(t, "out"), qr_test_path(t, "in/away")) == 0);
    QR_CHECK(symlink(qr_test_path(t, "in"), qr_test_path(t, "root")) == 0);
    snprintf(roots, sizeof roots, "/nonexistent:%s", qr_test_path(t, "root")); /* itself a link */
    open_world(&world, t, roots);
    fill_world(&world);
    check_path(&world, EDITOR, "file", qr_test_path(t, "in/a.txt"), 202);
    check_path(&world, EDITOR, "directory", qr_test_path(t, "in/sub"), 202);
    check_path(&world, ADMIN, "file", qr_test_path(t, "root/a.txt"), 202);
    static const char *const outside[] = {"out/b.txt",  "in/away/b.txt", "in/../out/b.txt", "inner",
                                          "in/no such", "out/no such",   "in/away"};
    for (size_t i = 0; i < QR_COUNT(outside); i++) {
        check_path(&world, EDITOR, "file", qr_test_path(t, outside[i]), 403);
        check_path(&world, ADMIN, "directory", qr_test_path(t, outside[i]), 403);
    }
    check_path(&world, EDITOR, "directory", "/", 403);
    check_path(&world, LOCAL, "file", qr_test_path(t, "out/b.txt"), 202);
    close_world(&world);
}

static void write_file(struct qr_test *t, const char *name, qr_str content)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, name), content, 0600, &err));
}

/* Adds the file; the path of its bytes over the API. */
static void add_file(const struct world *world, enum who who, const char *path, char ret_raw[static 256])
{
    char body[1024];
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"file\",\"path\":\"%s\"}],\"process\":\"manual\"}", path);
    QR_JSON *answer = ask_json(world, who, "POST", "/api/v1/bases/b/items", body, 202);
    const json_t *item = json_array_get(json_object_get(answer, "items"), 0);
    snprintf(ret_raw, 256, "/api/v1/bases/b/items/%s/raw", text_of(item, "id"));
}

QR_DB_TEST(what_a_key_added_stays_below_the_import_roots_whatever_links_come) /* KEY-7 */
{
    struct world world;
    char by_key[256], by_link[256], by_owner[256];
    QR_CHECK(mkdir(qr_test_path(t, "in"), 0700) == 0 && mkdir(qr_test_path(t, "in/sub"), 0700) == 0);
    QR_CHECK(mkdir(qr_test_path(t, "out"), 0700) == 0);
    write_file(t, "in/sub/f.txt", QR_STR("inside"));
    write_file(t, "out/f.txt", QR_STR("outside"));
    QR_CHECK(symlink("sub", qr_test_path(t, "in/link")) == 0);
    open_world(&world, t, qr_test_path(t, "in"));
    fill_world(&world);
    add_file(&world, EDITOR, qr_test_path(t, "in/sub/f.txt"), by_key);
    add_file(&world, EDITOR, qr_test_path(t, "in/link/f.txt"), by_link);
    add_file(&world, LOCAL, qr_test_path(t, "in/sub/f.txt"), by_owner);
    QR_CHECK(unlink(qr_test_path(t, "in/link")) == 0);
    QR_CHECK(symlink(qr_test_path(t, "out"), qr_test_path(t, "in/link")) == 0);
    check(&world, EDITOR, "GET", by_key, NULL, 200, "inside");
    check(&world, EDITOR, "GET", by_link, NULL, 200, "inside"); /* it was added where the link led */
    QR_CHECK(rename(qr_test_path(t, "in/sub"), qr_test_path(t, "in/moved")) == 0);
    QR_CHECK(symlink(qr_test_path(t, "out"), qr_test_path(t, "in/sub")) == 0);
    check(&world, EDITOR, "GET", by_key, NULL, 404, "source_missing");
    check(&world, EDITOR, "GET", by_link, NULL, 404, "source_missing");
    check(&world, LOCAL, "GET", by_owner, NULL, 200, "outside"); /* whose links are followed */
    close_world(&world);
}

QR_DB_TEST(an_error_does_not_tell_a_key_where_the_data_folder_is)
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    write_file(t, "data/backups", QR_STR("not a folder"));
    struct quire_response response = ask(&world, ADMIN, "POST", "/api/v1/backup", NULL);
    QR_CHECK_INT(409, response.status);
    QR_CHECK_HAS("\"DATA/backups", response.body);
    QR_CHECK(!strstr(response.body, qr_test_path(t, "data")));
    quire_response_done(&response);
    check(&world, LOCAL, "POST", "/api/v1/backup", NULL, 409, qr_test_path(t, "data/backups"));
    close_world(&world);
}

QR_DB_TEST(without_import_roots_a_key_names_no_path) /* KEY-7 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    check_path(&world, ADMIN, "directory", t->dir, 403);
    close_world(&world);
}

QR_DB_TEST(settings_that_name_programs_or_keys_are_not_an_owners) /* KEY-7 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    static const char path[] = "/api/v1/bases/b";
    static const char command[] =
        "{\"settings\":{\"file_processor\":{\"kind\":\"command\",\"argv\":[\"/bin/true\"],\"extensions\":[\"x\"]}}}";
    static const char variable[] = "{\"settings\":{\"retrieval\":{\"rerank\":{\"provider\":\"jina\",\"url\":"
                                   "\"http://localhost:1\",\"model\":\"m\",\"api_key_env\":\"HOME\"}}}}";
    static const char file[] = "{\"settings\":{\"retrieval\":{\"rerank\":{\"api_key_env\":null,\"api_key_file\":"
                               "\"/etc/shadow\"}}}}";
    static const char elsewhere[] = "{\"settings\":{\"retrieval\":{\"rerank\":{\"url\":\"http://evil.example\"}}}}";
    check(&world, OWNER, "PATCH", path, "{\"settings\":{\"chunking\":{\"size_tokens\":300}}}", 200, "300");
    check(&world, OWNER, "PATCH", path, command, 403, "argv");
    check(&world, ADMIN, "PATCH", path, command, 403, "argv");
    check(&world, ADMIN, "POST", "/api/v1/bases",
          "{\"name\":\"c\",\"settings\":{\"file_processor\":{\"kind\":\"command\",\"argv\":[\"/bin/true\"],"
          "\"extensions\":[\"x\"]}}}",
          403, "argv");
    check(&world, LOCAL, "PATCH", path, command, 200, "argv");
    check(&world, OWNER, "PATCH", path, variable, 403, "api_key_env");
    check(&world, ADMIN, "PATCH", path, variable, 200, "api_key_env");
    check(&world, OWNER, "PATCH", path, elsewhere, 403, "api_key_env"); /* the key would go there */
    check(&world, ADMIN, "PATCH", path, file, 403, "api_key_file");
    check(&world, OWNER, "PATCH", path, "{\"settings\":{\"chunking\":{\"size_tokens\":200}}}", 200, "200"); /* stays */
    check(&world, OWNER, "PATCH", path, "{\"settings\":{\"retrieval\":null}}", 200, "\"settings\""); /* harmless */
    close_world(&world);
}

/* Where an address may stand. */
static const struct place {
    const char *before, *behind;
} places[] = {
    {"{\"settings\":{\"retrieval\":{\"rerank\":{\"provider\":\"jina\",\"model\":\"m\",\"url\":\"", "\"}}}}"},
    {"{\"settings\":{\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"", "\"}}}"},
    {"{\"settings\":{\"assets\":{\"analysis\":\"vision\",\"vision\":{\"model\":\"m\",\"url\":\"", "\"}}}}"},
    {"{\"settings\":{\"file_processor\":{\"kind\":\"docling\",\"extensions\":[\"pdf\"],\"url\":\"", "\"}}}"},
};

static void check_address(const struct world *world, enum who who, const struct place *place, const char *url,
                          int status)
{
    char body[512];
    snprintf(body, sizeof body, "%s%s%s", place->before, url, place->behind);
    check(world, who, "PATCH", "/api/v1/bases/b", body, status, status == 200 ? url : "server.service_hosts");
}

QR_DB_TEST(an_owner_names_only_servers_that_are_listed) /* KEY-10 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    for (size_t i = 0; i < QR_COUNT(places); i++) {
        check_address(&world, OWNER, &places[i], "http://169.254.169.254/latest", 403);
        check_address(&world, OWNER, &places[i], "http://listed.example.evil/v1", 403);
        check_address(&world, OWNER, &places[i], "http://10.0.0.5:8081/v1", 403);
        check_address(&world, OWNER, &places[i], "http://10.0.0.5/v1", 403);
        check_address(&world, OWNER, &places[i], "https://Listed.example/v1", 200);
        check_address(&world, OWNER, &places[i], "http://listed.example:9000/v1", 200);
        check_address(&world, OWNER, &places[i], "http://10.0.0.5:8080/v1", 200);
        check_address(&world, ADMIN, &places[i], "http://localhost:1/v1", 200);
        check_address(&world, OWNER, &places[i], "http://localhost:2/v1", 403);
        check_address(&world, OWNER, &places[i], "http://localhost:1/v1", 200); /* as it is */
    }
    check(&world, OWNER, "PATCH", "/api/v1/bases/b", "{\"settings\":{\"embedding\":{\"model\":\"n\"}}}", 200, "\"n\"");
    check(&world, OWNER, "PATCH", "/api/v1/bases/b", "{\"settings\":{\"embedding\":{\"url\":null}}}", 200, "settings");
    close_world(&world);
}

QR_DB_TEST(an_owner_may_use_a_model_whose_server_an_admin_has_named) /* KEY-10 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    check(&world, ADMIN, "POST", "/api/v1/models",
          "{\"name\":\"ours\",\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"http://10.1.1.1/v1\"}}",
          201, "ours");
    check(&world, OWNER, "PATCH", "/api/v1/bases/b", "{\"model\":\"ours\"}", 200, "10.1.1.1");
    check(&world, OWNER, "PATCH", "/api/v1/bases/b",
          "{\"model\":\"ours\",\"settings\":{\"embedding\":{\"url\":\"http://10.1.1.2/v1\"}}}", 403,
          "server.service_hosts");
    close_world(&world);
}

/* ---- the audit log ---- */

static void read_log(const struct world *world, struct qr_buf *ret_text)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), qr_test_path(world->t, "data/audit.log"), 64 << 20, ret_text, &err));
}

static void check_last_line(const struct world *world, const char *has)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    read_log(world, &text);
    text.data[text.len - 1] = '\0';
    const char *last = strrchr(text.data, '\n');
    QR_CHECK_HAS(has, last ? last + 1 : text.data);
}

QR_DB_TEST(every_change_leaves_a_line_without_a_secret) /* KEY-8, KEY-9 */
{
    struct world world;
    open_world(&world, t, "none");
    fill_world(&world);
    char expected[512], path[128];
    check(&world, EDITOR, "POST", "/api/v1/bases/b/items?",
          "{\"items\":[{\"type\":\"note\",\"name\":\"private\",\"content\":\"very private\"}]}", 202, "items");
    snprintf(
        expected, sizeof expected,
        "\"request_id\":\"request-1\",\"key\":\"%s\",\"key_name\":\"editor\",\"address\":\"192.0.2.7\","
        "\"method\":\"POST\",\"path\":\"/api/v1/bases/b/items\",\"status\":202,\"code\":null,\"ids\":{\"items\":[\"",
        world.key_ids[EDITOR]);
    check_last_line(&world, expected);
    snprintf(expected, sizeof expected, "\"count\":1},\"base_id\":\"%s\"}", world.base_id);
    check_last_line(&world, expected);
    check(&world, VIEWER, "DELETE", "/api/v1/bases/b", NULL, 403, "forbidden");
    check_last_line(&world, "\"path\":\"/api/v1/bases/b\",\"status\":403,\"code\":\"forbidden\"");
    check(&world, LOCAL, "POST", "/api/v1/queues/embed/pause", NULL, 200, "embed");
    check_last_line(&world, "\"key\":\"local\",\"key_name\":\"\",\"address\":null,\"method\":\"POST\",\"path\":"
                            "\"/api/v1/queues/embed/pause\",\"status\":200");
    /* no change, or nobody known: no line */
    check(&world, EDITOR, "GET", "/api/v1/bases/b", NULL, 200, "b");
    check(&world, EDITOR, "POST", "/api/v1/bases/b/search", "{\"query\":\"words\"}", 200, "hits");
    check(&world, BAD_KEY, "DELETE", "/api/v1/bases/b", NULL, 401, "unauthorized");
    check_last_line(&world, "/api/v1/queues/embed/pause");
    snprintf(path, sizeof path, "/api/v1/keys/%s", world.headers[VIEWER] + strlen("Bearer "));
    check(&world, ADMIN, "DELETE", path, NULL, 404, "no such key");
    check_last_line(&world, "\"path\":\"/api/v1/keys/qk_****");
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    read_log(&world, &text);
    QR_CHECK(!strstr(text.data, "private"));
    for (enum who who = OUTSIDER; who < LOCAL; who++) {
        QR_CHECK(!strstr(text.data, world.headers[who] + strlen("Bearer qk_")));
    }
    struct stat facts;
    QR_CHECK(stat(qr_test_path(t, "data/audit.log"), &facts) == 0 && (facts.st_mode & 0777) == 0600);
    close_world(&world);
}

QR_TEST(a_full_audit_log_makes_room_and_keeps_four) /* KEY-8 */
{
    struct world world;
    qr_err err;
    open_world(&world, t, "none");
    check(&world, LOCAL, "POST", "/api/v1/bases", "{\"name\":\"first\"}", 201, "first");
    for (int i = 0; i < 6; i++) {
        char name[32];
        QR_CHECK(truncate(qr_test_path(t, "data/audit.log"), QR_AUDIT_FILE_BYTES_MAX) == 0);
        snprintf(name, sizeof name, "{\"name\":\"b%d\"}", i);
        check(&world, LOCAL, "POST", "/api/v1/bases", name, 201, "ready");
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        read_log(&world, &text);
        QR_CHECK(text.len > 0 && text.len < 4096 && text.data[0] == '{');
    }
    QR_CHECK(access(qr_test_path(t, "data/audit.log.4"), F_OK) == 0);
    QR_CHECK(access(qr_test_path(t, "data/audit.log.5"), F_OK) != 0);
    /* what cannot be written is counted, and fails nothing */
    QR_CHECK(unlink(qr_test_path(t, "data/audit.log")) == 0 && mkdir(qr_test_path(t, "data/audit.log"), 0700) == 0);
    check(&world, LOCAL, "POST", "/api/v1/queues/embed/pause", NULL, 200, "embed");
    check(&world, LOCAL, "POST", "/api/v1/queues/embed/pause", NULL, 200, "embed");
    QR_CHECK(rmdir(qr_test_path(t, "data/audit.log")) == 0);
    check(&world, LOCAL, "POST", "/api/v1/queues/embed/resume", NULL, 200, "embed");
    check_last_line(&world, "\"lost_before\":2}");
    check(&world, LOCAL, "GET", "/metrics", NULL, 200, "\nquire_audit_lost_total 2\n"); /* a counter does not go back */
    check(&world, LOCAL, "POST", "/api/v1/queues/embed/pause", NULL, 200, "embed");
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), qr_test_path(t, "data/audit.log"), 1 << 20, &text, &err));
    QR_CHECK(!strstr(strstr(text.data, "lost_before") + 1, "lost_before")); /* said once */
    close_world(&world);
}
