/* Every list of the table of routes, over every database: its pages are the whole, once and in order, whatever is added meanwhile, and
 * what is no limit or no cursor is refused. */
#include "api/router.h"
#include "api/wire.h"
#include "store/ids.h"
#include "support/db_fixture.h"

#include <sched.h>

enum { COUNT = 7, ID_SIZE = QR_UUID_TEXT_SIZE };

struct world {
    struct quire *quire;
    char item_id[ID_SIZE];
};

static json_t *ask(const struct world *world, const char *method, const char *target, const char *body, int status)
{
    struct quire_response response;
    json_t *answer = NULL;
    qr_err err;
    quire_call(world->quire, method, target, body, &response);
    if (response.status != status) {
        QR_FAIL("%s %s answers %d, not %d: %s", method, target, response.status, status, response.body);
    }
    QR_CHECK_RC(QR_OK,
                qr_json_parse((qr_str){response.body, response.body_size}, &QR_JSON_REQUEST_LIMITS, &answer, &err));
    quire_response_done(&response);
    return answer;
}

static void done(const struct world *world, const char *method, const char *target, const char *body, int status)
{
    json_decref(ask(world, method, target, body, status));
}

/* ---- things ---- */

static void open_world(struct world *world, struct qr_test *t)
{
    const struct qr_config_flag settings[] = {
        {"test", QR_STR("data.dir"), qr_str_of(qr_test_path(t, "data"))},
        {"test", QR_STR("database.url"),
         qr_str_of(qr_test_on_postgres(t) ? qr_test_db_options(t, NULL, 0).url : "sqlite")},
    };
    const struct qr_instance_options options = {
        .settings = settings, .setting_count = QR_COUNT(settings), .program = "the test"};
    qr_err err;
    *world = (struct world){0};
    QR_CHECK_RC(QR_OK, qr_instance_open(&world->quire, &options, &err));
}

static const char *item_path(const struct world *world, const char *rest)
{
    static char path[200];
    snprintf(path, sizeof path, "/api/v1/bases/b/items/%s%s", world->item_id, rest);
    return path;
}

/* A note of several chunks, whose content was replaced a few times. */
static void add_finished(struct world *world)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *added = ask(world, "POST", "/api/v1/bases/b/items",
                         "{\"items\":[{\"type\":\"note\",\"name\":\"long\",\"content\":\"x\"}]}", 202);
    const json_t *item = json_array_get(json_object_get(added, "items"), 0);
    snprintf(world->item_id, ID_SIZE, "%s", json_string_value(json_object_get(item, "id")));
    for (int i = 0; i < COUNT; i++) {
        qr_buf_clear(&body);
        qr_buf_printf(&body, "{\"content\":\"version %d ", i);
        for (int k = 0; k < 100 * COUNT; k++) {
            qr_buf_printf(&body, "\\n\\nThe harbour has a lighthouse, and it is number %d.", k);
        }
        qr_buf_add_text(&body, "\"}");
        done(world, "PUT", item_path(world, "/content"), body.data, 202);
    }
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_instance_start_work(world->quire, &err));
    for (bool is_done = false; !is_done; sched_yield()) { /* the test's time limit ends it */
        QR_JSON *now = ask(world, "GET", item_path(world, ""), NULL, 200);
        is_done = strcmp(json_string_value(json_object_get(now, "status")), "completed") == 0;
    }
    quire_stop_work(world->quire, 10000);
}

static qr_rc add_assets(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct world *world = arg;
    qr_uuid item_id, id;
    QR_CHECK(qr_uuid_parse(qr_str_of(world->item_id), &item_id));
    for (unsigned char i = 0; i < COUNT; i++) {
        id = item_id;
        id.bytes[0] = i;
        QR_TRY(
            qr_tx_exec(tx,
                       "INSERT INTO asset (id, base_id, item_id, generation, kind, mime, place, artifact_id, "
                       "analysis_status, text, code, message, created_at, updated_at) SELECT ?1, base_id, id, "
                       "live_generation, 'picture', 'image/png', '', ?1, 3, '', '', '', 1, 1 FROM item WHERE id = ?2",
                       QR_VALS(qr_val_uuid(&id), qr_val_uuid(&item_id)), NULL, err));
    }
    return QR_OK;
}

/* One more of everything that is listed and was added last. */
static void add_more(const struct world *world, int number)
{
    char body[200];
    snprintf(body, sizeof body, "{\"name\":\"%d\"}", number);
    done(world, "POST", "/api/v1/bases", body, 201);
    snprintf(body, sizeof body, "{\"name\":\"%d\",\"roles\":{\"b\":\"viewer\"}}", number);
    done(world, "POST", "/api/v1/keys", body, 201);
    snprintf(body, sizeof body, "{\"name\":\"%d\",\"embedding\":{\"provider\":\"hash\"}}", number);
    done(world, "POST", "/api/v1/models", body, 201);
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"note\",\"name\":\"%d\",\"content\":\"x\"}]}", number);
    done(world, "POST", "/api/v1/bases/b/items", body, 202);
    done(world, "POST", "/api/v1/knowledge-spaces/b/process", "{\"process_new_documents\":true}", 202);
}

/* ---- the walk ---- */

static void path_of(const struct world *world, const char *pattern, struct qr_buf *out)
{
    for (const char *at = pattern; *at; at++) {
        if (*at == '{') {
            qr_buf_add_text(out, at[1] == 'b' ? "b" : at[1] == 'i' ? world->item_id : "?");
            at += 2;
        } else {
            qr_buf_add_char(out, *at);
        }
    }
    QR_CHECK_INT(QR_CODE_NONE, out->failed);
}

/* What the thing is told from others by: an event has no id. */
static const json_t *name_of(const json_t *thing)
{
    const char *const names[] = {"id", "key_id", "job_id", "name", "generation"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        if (json_object_get(thing, names[i])) {
            return json_object_get(thing, names[i]);
        }
    }
    QR_FAIL("a thing in a list has no name");
}

/* The names of all pages; after the first one something is added. */
static json_t *read_pages(const struct world *world, const char *path, int limit, int number_to_add)
{
    json_t *names = json_array();
    char cursor[200] = "";
    do {
        char target[512];
        snprintf(target, sizeof target, "%s?limit=%d%s%s", path, limit, cursor[0] ? "&cursor=" : "", cursor);
        QR_JSON *page = ask(world, "GET", target, NULL, 200);
        const json_t *data = json_object_get(page, "data"), *next = json_object_get(page, "next_cursor");
        QR_CHECK(json_array_size(data) <= (size_t)limit && (json_is_string(next) || json_is_null(next)));
        for (size_t i = 0; i < json_array_size(data); i++) {
            json_array_append(names, (json_t *)name_of(json_array_get(data, i)));
        }
        snprintf(cursor, sizeof cursor, "%s", json_is_string(next) ? json_string_value(next) : "");
        if (number_to_add) {
            add_more(world, number_to_add);
            number_to_add = 0;
        }
    } while (cursor[0]);
    return names;
}

static bool has_name(const json_t *names, const json_t *name)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        if (json_equal(json_array_get(names, i), name)) {
            return true;
        }
    }
    return false;
}

static void check_pages(const struct world *world, const char *path, int number)
{
    QR_JSON *whole = read_pages(world, path, 200, 0);
    QR_JSON *pages = read_pages(world, path, 2, 0);
    QR_CHECK(json_array_size(whole) >= COUNT);
    QR_CHECK(json_equal(whole, pages));
    QR_JSON *while_adding = read_pages(world, path, 3, number);
    size_t k = 0;
    for (size_t i = 0; i < json_array_size(while_adding); i++) {
        const json_t *name = json_array_get(while_adding, i);
        if (has_name(whole, name)) {
            QR_CHECK(json_equal(json_array_get(whole, k), name)); /* none is shifted, left out or repeated */
            k++;
        }
    }
    QR_CHECK_INT(json_array_size(whole), k);
}

static void check_refusals(const struct world *world, const char *path)
{
    static const char *const wrong[] = {"limit=0",    "limit=201",        "limit=-1",     "limit=x", "limit=%2B2",
                                        "limit=+2",   "limit=",           "limit=1.5",    "cursor=", "cursor=!",
                                        "cursor=zzz", "cursor=123456789", "cursor=%2e%2e"};
    char target[512];
    for (size_t i = 0; i < QR_COUNT(wrong); i++) {
        const bool is_chunks_own = strstr(path, "/chunks") && strstr(wrong[i], "=1234"); /* their cursor is a number */
        snprintf(target, sizeof target, "%s?%s", path, wrong[i]);
        QR_JSON *answer = ask(world, "GET", target, NULL, is_chunks_own ? 200 : 422);
        const char *code = json_string_value(json_object_get(json_object_get(answer, "error"), "code"));
        QR_CHECK_TEXT(is_chunks_own ? "" : "invalid_value", code ? code : "");
    }
    snprintf(target, sizeof target, "%s?limit=2&limit=2", path);
    done(world, "GET", target, NULL, 400);
    snprintf(target, sizeof target, "%s?offset=2", path);
    done(world, "GET", target, NULL, 400);
}

QR_DB_TEST_WITH_TIMEOUT(pages_of_every_list_are_the_whole_list, 120) /* REQ-7 */
{
    struct world world;
    qr_err err;
    open_world(&world, t);
    done(&world, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201);
    add_finished(&world);
    QR_CHECK_RC(QR_OK, qr_db_write(world.quire->db, QR_DURABLE, add_assets, &world, &err));
    for (int i = 0; i < COUNT; i++) {
        add_more(&world, 10 + i);
    }
    int lists = 0;
    for (size_t i = 0; i < qr_route_count; i++) {
        const struct qr_route *route = &qr_routes[i];
        if (strcmp(route->method, "GET") == 0 && strstr(route->query, "cursor")) {
            QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
            path_of(&world, route->pattern, &path);
            qr_test_set_context("%s", route->pattern);
            check_pages(&world, path.data, 100 + (int)i);
            check_refusals(&world, path.data);
            lists++;
        }
    }
    QR_CHECK_INT(10, lists);
    qr_instance_close(world.quire);
}
