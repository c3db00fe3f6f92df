#include "support/api_fixture.h"

#include <sched.h>

struct quire *api_open(struct qr_test *t)
{
    const struct quire_options options = {.data_dir = qr_test_path(t, "data"), .program = "the test"};
    struct quire_error error;
    struct quire *quire;
    if (quire_open(&options, &quire, &error) != 0) {
        QR_FAIL("%s (%s)", error.message, error.code);
    }
    return quire;
}

json_t *api_call(struct quire *quire, const char *method, const char *path, const char *body, int status)
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

void api_check(struct quire *quire, const char *method, const char *path, const char *body, int status, const char *has)
{
    struct quire_response response;
    quire_call(quire, method, path, body, &response);
    if (response.status != status || !strstr(response.body, has)) {
        QR_FAIL("%s %s answers %d, not %d with %s: %s", method, path, response.status, status, has, response.body);
    }
    quire_response_done(&response);
}

const char *api_text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "";
}

long long api_number(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

struct quire *api_open_base(struct qr_test *t)
{
    struct quire *quire = api_open(t);
    api_check(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201, "\"status\":\"ready\"");
    return quire;
}

void api_keep_id(const json_t *item, char ret_id[static API_ID_SIZE])
{
    QR_CHECK_INT(API_ID_SIZE - 1, strlen(api_text(item, "id")));
    memcpy(ret_id, api_text(item, "id"), API_ID_SIZE);
}

void api_add_note(struct quire *quire, const char *name, const char *content, char ret_id[static API_ID_SIZE])
{
    char body[1024];
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"note\",\"name\":\"%s\",\"content\":\"%s\"}]}", name, content);
    QR_JSON *answer = api_call(quire, "POST", API_ITEMS, body, 202);
    api_keep_id(json_array_get(json_object_get(answer, "items"), 0), ret_id);
}

const char *api_item_path(const char *id, const char *rest)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s%s", API_ITEMS, id, rest);
    return path;
}

json_t *api_wait_for(struct quire *quire, const char *id, const char *status)
{
    for (;;) {
        json_t *item = api_call(quire, "GET", api_item_path(id, ""), NULL, 200);
        if (strcmp(api_text(item, "status"), status) == 0) {
            return item;
        }
        json_decref(item);
        sched_yield();
    }
}

void api_start_work(struct quire *quire)
{
    struct quire_error error;
    if (quire_start_work(quire, &error) != 0) {
        QR_FAIL("%s (%s)", error.message, error.code);
    }
}

size_t api_search(struct quire *quire, const char *words)
{
    char body[256];
    snprintf(body, sizeof body, "{\"query\":\"%s\"}", words);
    QR_JSON *answer = api_call(quire, "POST", API_BASE "/search", body, 200);
    return json_array_size(json_object_get(answer, "hits"));
}
