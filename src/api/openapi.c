/* GET /openapi.json: the router's table as OpenAPI 3.1. Nothing of a route is said here that is not in a table. */
#include "api/openapi.h"

#include "api/once.h"

#include <ctype.h>
#include <stdio.h>

static bool put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static bool append(json_t *array, json_t *value)
{
    return json_array_append_new(array, value) == 0;
}

/* ---- parameters ---- */

static json_t *parameter_json(const struct qr_parameter *parameter, qr_str name, const char *in)
{
    return json_pack("{s:s%, s:s, s:b, s:s, s:o}", "name", name.ptr, name.len, "in", in, "required",
                     strcmp(in, "path") == 0, "description", parameter ? parameter->doc : "", "schema",
                     qr_notation_type(parameter ? parameter->type : "text"));
}

static bool add_path_parameters(const struct qr_route *route, json_t *list)
{
    qr_str rest = qr_str_of(route->pattern);
    bool ok = true;
    while (rest.len) {
        const qr_str part = qr_str_split(&rest, '/');
        if (part.len > 2 && part.ptr[0] == '{') {
            const qr_str name = {part.ptr + 1, part.len - 2};
            ok = ok && append(list, parameter_json(qr_path_parameter(route, name), name, "path"));
        }
    }
    return ok;
}

static json_t *parameters_json(const struct qr_route *route)
{
    QR_JSON *list = json_array();
    qr_str rest = qr_str_of(route->query);
    size_t count;
    const struct qr_parameter *headers = qr_header_parameters(route, &count);
    bool ok = list && add_path_parameters(route, list);
    while (rest.len) {
        const qr_str name = qr_str_split(&rest, ' ');
        ok = ok && append(list, parameter_json(qr_query_parameter(route, name), name, "query"));
    }
    for (size_t i = 0; i < count; i++) {
        ok = ok && append(list, parameter_json(&headers[i], qr_str_of(headers[i].name), "header"));
    }
    return ok ? json_incref(list) : NULL;
}

/* ---- bodies ---- */

static json_t *media_json(const char *media_type, json_t *schema)
{
    return json_pack("{s:{s:o}}", media_type, "schema", schema);
}

/* Whether something must be in it. */
static bool is_required(const char *type, const json_t *schemas)
{
    return json_array_size(json_object_get(json_object_get(schemas, type), "required")) > 0;
}

static json_t *body_json(const struct qr_route *route, const struct qr_operation *operation, const json_t *schemas)
{
    if (route->takes == QR_BODY_FILES) {
        json_t *file = json_pack("{s:s, s:s}", "type", "string", "contentMediaType", "application/octet-stream");
        json_t *form = json_pack("{s:s, s:o}", "type", "object", "additionalProperties", file);
        return json_pack("{s:b, s:s, s:o}", "required", 1, "description",
                         "One part a file; its file name may have folders in it.", "content",
                         media_json("multipart/form-data", form));
    }
    QR_JSON *content = media_json("application/json", qr_notation_type(operation->body));
    if (!content || (route->takes == QR_BODY_JSON_OR_FILE &&
                     !put(content, "application/octet-stream", json_pack("{s:{}}", "schema")))) {
        return NULL;
    }
    return json_pack("{s:b, s:O}", "required", is_required(operation->body, schemas), "content", content);
}

/* ---- answers ---- */

/* What is not JSON. */
static json_t *answer_content(const char *type)
{
    static const struct {
        const char *type, *media_type;
    } others[] = {{"bytes", "application/octet-stream"},
                  {"events", "text/event-stream"},
                  {"html", "text/html; charset=utf-8"},
                  {"metrics", "text/plain; version=0.0.4; charset=utf-8"}};
    for (size_t i = 0; i < QR_COUNT(others); i++) {
        if (strcmp(others[i].type, type) == 0) {
            return media_json(others[i].media_type, json_object());
        }
    }
    return strcmp(type, "nothing") == 0 ? json_object() : media_json("application/json", qr_notation_type(type));
}

static bool add_answers(const char *answers, json_t *responses)
{
    qr_str rest = qr_str_of(answers);
    bool ok = true;
    while (rest.len) {
        enum { STATUS_LEN = 3 };
        char status[STATUS_LEN + 1], type[64];
        const qr_str answer = qr_str_split(&rest, ' ');
        snprintf(status, sizeof status, "%.*s", STATUS_LEN, answer.ptr);
        snprintf(type, sizeof type, "%.*s", (int)answer.len - STATUS_LEN - 1, answer.ptr + STATUS_LEN + 1);
        ok = ok && put(responses, status,
                       json_pack("{s:s, s:o}", "description", strcmp(status, "202") == 0 ? "Accepted." : "Done.",
                                 "content", answer_content(type)));
    }
    return ok;
}

/* ---- refusals ---- */

static const char *error_schema(const struct qr_route *route)
{
    return route->error == qr_dify_error ? "DifyError" : route->error == qr_openai_error ? "OpenAiError" : "Error";
}

static json_t *refusal_json(const struct qr_route *route)
{
    return json_pack("{s:s, s:o, s:[]}", "description", "Refused.", "content",
                     media_json("application/json", qr_notation_type(error_schema(route))), "x-quire-codes");
}

static bool add_code(const struct qr_route *route, const char *name, json_t *responses)
{
    char status[16];
    const qr_code code = qr_code_find(name);
    if (code == QR_CODE_COUNT) {
        return true; /* a test finds it */
    }
    snprintf(status, sizeof status, "%d", qr_code_info(code)->http_status);
    json_t *response = json_object_get(responses, status);
    if (!response) {
        if (!put(responses, status, refusal_json(route))) {
            return false;
        }
        response = json_object_get(responses, status);
    }
    json_t *codes = json_object_get(response, "x-quire-codes");
    if (!codes) {
        return true; /* an answer that has this status, too */
    }
    const json_t *known;
    size_t i;
    json_array_foreach(codes, i, known)
    {
        if (strcmp(json_string_value(known), name) == 0) {
            return true;
        }
    }
    return append(codes, json_string(name));
}

static bool add_codes(const struct qr_route *route, const char *codes, json_t *responses)
{
    qr_str rest = qr_str_of(codes);
    bool ok = true;
    while (rest.len) {
        char name[64];
        const qr_str code = qr_str_split(&rest, ' ');
        snprintf(name, sizeof name, "%.*s", QR_STR_ARG(code));
        ok = ok && add_code(route, name, responses);
    }
    return ok;
}

static bool add_refusals(const struct qr_route *route, const struct qr_operation *operation, json_t *responses)
{
    const bool takes_values = route->query[0] || (operation && operation->body);
    return add_codes(route, "bad_request unknown_field", responses) &&
           (route->needs <= QR_RIGHT_OPEN || add_codes(route, "unauthorized", responses)) &&
           (route->needs <= QR_RIGHT_KEY || add_codes(route, "forbidden", responses)) &&
           (!strchr(route->pattern, '{') || add_codes(route, "not_found", responses)) &&
           (!takes_values || add_codes(route, "invalid_value", responses)) &&
           (strcmp(route->method, "GET") == 0 || add_codes(route, "unsupported_media_type cross_site", responses)) &&
           (!qr_once_is_for(route) || add_codes(route, "idempotency_mismatch idempotency_pending", responses)) &&
           (!operation || add_codes(route, operation->codes, responses)) &&
           add_codes(route,
                     "payload_too_large foreign_host rate_limited internal unavailable shutting_down timeout disk_full "
                     "io_error out_of_memory data_corrupt",
                     responses);
}

/* As people look for them. */
static json_t *sorted_by_status(const json_t *responses)
{
    enum { STATUS_MIN = 200, STATUS_MAX = 599 };
    QR_JSON *sorted = json_object();
    bool ok = sorted != NULL;
    for (int status = STATUS_MIN; status <= STATUS_MAX; status++) {
        char name[16];
        snprintf(name, sizeof name, "%d", status);
        json_t *response = json_object_get(responses, name);
        ok = ok && (!response || json_object_set(sorted, name, response) == 0);
    }
    return ok ? json_incref(sorted) : NULL;
}

/* ---- operations ---- */

static json_t *description_json(const struct qr_route *route)
{
    return route->needs == QR_RIGHT_OPEN ? json_sprintf("%s Open to all.", route->doc)
                                         : json_sprintf("%s Needs %s.", route->doc, qr_right_info(route->needs)->needs);
}

static json_t *operation_json(const struct qr_route *route, const json_t *schemas)
{
    const struct qr_operation *operation = qr_operation_find(route);
    QR_JSON *responses = json_object();
    bool ok = responses && (!operation || add_answers(operation->answers, responses)) &&
              add_refusals(route, operation, responses);
    QR_JSON *json = json_pack("{s:s, s:s, s:o, s:[s], s:s, s:o, s:o, s:o}", "operationId",
                              operation ? operation->id : route->pattern, "summary", route->doc, "description",
                              description_json(route), "tags", operation ? operation->tag : "Server", "x-quire-role",
                              qr_right_info(route->needs)->name, "parameters", parameters_json(route), "responses",
                              sorted_by_status(responses), "security",
                              route->needs <= QR_RIGHT_OPEN ? json_array() : json_pack("[{s:[]}]", "key"));
    if (ok && operation && (operation->body || route->takes == QR_BODY_FILES)) {
        ok = put(json, "requestBody", body_json(route, operation, schemas));
    }
    return ok ? json_incref(json) : NULL;
}

static bool add_operation(json_t *paths, const struct qr_route *route, const json_t *schemas)
{
    char method[16];
    json_t *path = json_object_get(paths, route->pattern);
    if (!path) {
        if (!put(paths, route->pattern, json_object())) {
            return false;
        }
        path = json_object_get(paths, route->pattern);
    }
    snprintf(method, sizeof method, "%s", route->method);
    for (char *c = method; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    return put(path, method, operation_json(route, schemas));
}

/* The front end of agents is beside the router: it asks it. */
static json_t *mcp_json(void)
{
    return json_pack("{s:{s:s, s:s, s:s, s:[s], s:s, s:{s:b, s:o}, s:{s:{s:s, s:o}, s:{s:s}}, s:[{s:[]}]}}", "post",
                     "operationId", "mcp", "summary", "The Model Context Protocol.", "description",
                     "The Model Context Protocol, streamable HTTP: one JSON-RPC message a request. Needs a key.",
                     "tags", "Compatible", "x-quire-role", "key", "requestBody", "required", 1, "content",
                     media_json("application/json", qr_notation_type("object")), "responses", "200", "description",
                     "The answer to the message.", "content",
                     media_json("application/json", qr_notation_type("object")), "202", "description",
                     "A message that has no answer.", "security", "key");
}

static json_t *paths_json(const json_t *schemas)
{
    QR_JSON *paths = json_object();
    bool ok = paths != NULL;
    for (size_t i = 0; i < qr_route_count; i++) {
        ok = ok && add_operation(paths, &qr_routes[i], schemas);
    }
    return ok && put(paths, "/mcp", mcp_json()) ? json_incref(paths) : NULL;
}

/* ---- schemas ---- */

static json_t *error_code_json(void)
{
    QR_JSON *codes = json_array();
    bool ok = codes != NULL;
    for (qr_code code = QR_CODE_NONE + 1; code < QR_CODE_COUNT; code++) {
        ok = ok && append(codes, json_string(qr_code_info(code)->name));
    }
    return ok ? json_pack("{s:s, s:O, s:s}", "type", "string", "enum", codes, "description",
                          "What went wrong: stable words, with what to do about each in docs/ERRORS.md.")
              : NULL;
}

static json_t *schemas_json(void)
{
    QR_JSON *schemas = json_object();
    bool ok = schemas && put(schemas, "ErrorCode", error_code_json());
    for (size_t i = 0; i < qr_schema_count; i++) {
        ok = ok && put(schemas, qr_schemas[i].name, qr_notation_schema(qr_schemas, qr_schema_count, i));
    }
    return ok ? json_incref(schemas) : NULL;
}

/* ---- the whole ---- */

json_t *qr_openapi_json(void)
{
    QR_JSON *schemas = schemas_json();
    QR_JSON *paths = schemas ? paths_json(schemas) : NULL;
    if (!paths) {
        return NULL;
    }
    return json_pack("{s:s, s:{s:s, s:s, s:s}, s:[{s:s}], s:O, s:{s:O, s:{s:{s:s, s:s, s:s}}}}", "openapi", "3.1.0",
                     "info", "title", "Quire", "version", quire_version(), "description",
                     "Knowledge bases that are searched by words and by meaning. Bodies are JSON in UTF-8; a field "
                     "that is not named here "
                     "is refused. Times are RFC 3339 in UTC. Lists answer pages: next_cursor is the cursor of the "
                     "next, null at the end.",
                     "servers", "url", "/", "paths", paths, "components", "schemas", schemas, "securitySchemes", "key",
                     "type", "http", "scheme", "bearer", "description",
                     "A key: Authorization: Bearer qk_…. None is needed on this machine as long as there is no key.");
}

/* ---- as text, made once: nothing of it changes while the process runs ---- */

static qr_rc write_both(struct quire *quire, qr_err *err)
{
    QR_JSON *openapi = qr_openapi_json();
    if (!openapi) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the description of the API");
    }
    QR_TRY(qr_json_write(openapi, &quire->openapi_json, err));
    return qr_openapi_page(openapi, &quire->openapi_page, err);
}

static qr_rc reply_with_text(const struct qr_request *request, const struct qr_buf *text, const char *content_type,
                             struct qr_reply *reply, qr_err *err)
{
    struct quire *quire = request->quire;
    QR_HOLD(&quire->openapi_lock);
    if (!quire->openapi_page.len) {
        const qr_rc rc = write_both(quire, err);
        if (rc != QR_OK) { /* another time there may be memory */
            qr_buf_done(&quire->openapi_json);
            qr_buf_done(&quire->openapi_page);
            return rc;
        }
    }
    qr_buf_add(&reply->bytes, qr_buf_str(text));
    reply->status = 200;
    reply->content_type = content_type;
    return qr_buf_check(&reply->bytes, err);
}

qr_rc qr_route_openapi(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    return reply_with_text(request, &request->quire->openapi_json, "application/json", reply, err);
}

qr_rc qr_route_docs(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    qr_reply_header(reply, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
    return reply_with_text(request, &request->quire->openapi_page, "text/html; charset=utf-8", reply, err);
}
