/* Owns the table of routes, and what is the same for all of them: the search in it, the body's form, errors as JSON. */
#include "api/router.h"

#include "api/audit.h"
#include "api/once.h"
#include "base/secret.h"
#include "base/thread.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

const struct qr_route qr_routes[] = {
    {"GET", "/healthz", qr_route_healthz, "", "", "Whether the process answers.", QR_RIGHT_OPEN},
    {"GET", "/readyz", qr_route_readyz, "", "", "Whether it can work: database, schema, jobs.", QR_RIGHT_OPEN},
    {"GET", "/metrics", qr_route_metrics, "", "", "Numbers for monitoring, in the text format of Prometheus.",
     QR_RIGHT_ADMIN},
    {"POST", "/api/v1/backup", qr_route_backup, "", "path", "Copies the data folder while it is in use.",
     QR_RIGHT_ADMIN},
    {"POST", "/api/v1/check", qr_route_check, "", "repair limit", "Looks through everything stored for damage.",
     QR_RIGHT_ADMIN},
    {"GET", "/api/v1/cache", qr_route_cache_show, "", "", "How much the vector cache holds.", QR_RIGHT_ADMIN},
    {"POST", "/api/v1/cache/prune", qr_route_cache_prune, "", "to_bytes",
     "Evicts vectors that no base uses, down to a size.", QR_RIGHT_ADMIN},
    {"GET", "/api/v1/models", qr_route_models_list, "limit cursor", "", "Embedding settings that have a name.",
     QR_RIGHT_KEY},
    {"POST", "/api/v1/models", qr_route_models_add, "", "name embedding", "Gives embedding settings a name.",
     QR_RIGHT_ADMIN},
    {"DELETE", "/api/v1/models/{m}", qr_route_models_delete, "", "", "Forgets a name that no base uses.",
     QR_RIGHT_ADMIN},
    {"GET", "/api/v1/bases", qr_route_bases_list, "limit cursor", "", "Bases, oldest first.", QR_RIGHT_KEY},
    {"POST", "/api/v1/bases", qr_route_bases_add, "", "name settings", "Makes a base.", QR_RIGHT_ADMIN},
    {"GET", "/api/v1/bases/{b}", qr_route_bases_show, "", "", "One base.", QR_RIGHT_VIEWER},
    {"PATCH", "/api/v1/bases/{b}", qr_route_bases_set, "", "name settings model version dry_run",
     "Renames a base, changes settings.", QR_RIGHT_OWNER},
    {"DELETE", "/api/v1/bases/{b}", qr_route_bases_delete, "confirm", "", "Deletes a base with everything in it.",
     QR_RIGHT_OWNER},
    {"POST", "/api/v1/bases/{b}/restore", qr_route_bases_restore, "", "", "Makes a failed base work again.",
     QR_RIGHT_OWNER},
    {"POST", "/api/v1/bases/{b}/search", qr_route_base_search, "",
     "query mode top_k threshold filter context merge diversity rerank explain",
     "Finds passages by words, by vectors or by both.", QR_RIGHT_VIEWER},
    {"POST", "/api/v1/search", qr_route_search, "",
     "base_ids query mode top_k threshold filter context merge diversity rerank explain",
     "The same in several bases, as if they were one.", QR_RIGHT_VIEWER},
    {"GET", "/api/v1/bases/{b}/items", qr_route_items_list, "limit cursor parent status type q source sort", "",
     "Items of a base.", QR_RIGHT_VIEWER, .is_kept = true},
    {"POST", "/api/v1/bases/{b}/items", qr_route_items_add, "", "items process on_conflict", "Adds items.",
     QR_RIGHT_EDITOR},
    {"POST", "/api/v1/bases/{b}/uploads", qr_route_uploads, "process", "",
     "Adds files that come with the request, each with its relative name; folders are made of those.", QR_RIGHT_EDITOR,
     QR_BODY_FILES},
    {"POST", "/api/v1/bases/{b}/items/delete", qr_route_items_delete, "", "ids", "Deletes items.", QR_RIGHT_EDITOR},
    {"POST", "/api/v1/bases/{b}/items/reindex", qr_route_items_reindex, "", "ids dry_run", "Builds items anew.",
     QR_RIGHT_EDITOR},
    {"POST", "/api/v1/bases/{b}/items/retry", qr_route_items_retry, "", "ids", "Tries failed items again.",
     QR_RIGHT_EDITOR},
    {"POST", "/api/v1/bases/{b}/items/refresh", qr_route_items_refresh, "", "ids", "Looks at the sources again.",
     QR_RIGHT_EDITOR},
    {"GET", "/api/v1/bases/{b}/items/{i}", qr_route_items_show, "", "", "One item.", QR_RIGHT_VIEWER, .is_kept = true},
    {"PATCH", "/api/v1/bases/{b}/items/{i}", qr_route_items_set, "", "name attributes enabled",
     "Changes what is said about an item.", QR_RIGHT_EDITOR},
    {"GET", "/api/v1/bases/{b}/items/{i}/content", qr_route_content_show, "offset limit", "",
     "The canonical text of an item.", QR_RIGHT_VIEWER},
    {"PUT", "/api/v1/bases/{b}/items/{i}/content", qr_route_content_set, "", "content", "New content of an item.",
     QR_RIGHT_EDITOR, QR_BODY_JSON_OR_FILE},
    {"GET", "/api/v1/bases/{b}/items/{i}/raw", qr_route_raw, "offset limit", "", "The original bytes of an item.",
     QR_RIGHT_VIEWER},
    {"GET", "/api/v1/bases/{b}/items/{i}/totals", qr_route_totals, "chunks", "",
     "How much is in an item, at any depth.", QR_RIGHT_VIEWER},
    {"GET", "/api/v1/bases/{b}/items/{i}/chunks", qr_route_chunks, "limit cursor", "", "The chunks of an item.",
     QR_RIGHT_VIEWER},
    {"GET", "/api/v1/bases/{b}/items/{i}/assets", qr_route_assets, "limit cursor", "",
     "Pictures and tables of an item.", QR_RIGHT_VIEWER},
    {"GET", "/api/v1/bases/{b}/items/{i}/events", qr_route_item_events, "limit cursor", "", "What happened to an item.",
     QR_RIGHT_VIEWER},
    {"POST", "/api/v1/knowledge-spaces/{b}/process", qr_route_process, "",
     "process_new_documents chunk_processed_documents analyze_assets index_new_chunks level_gate",
     "Takes what is idle through the stages that are asked for.", QR_RIGHT_EDITOR},
    {"GET", "/api/v1/bases/{b}/runs", qr_route_runs_list, "limit cursor", "", "Runs of a base, newest first.",
     QR_RIGHT_VIEWER},
    {"GET", "/api/v1/runs/{r}", qr_route_run_show, "", "", "One run, with counters for each stage.", QR_RIGHT_VIEWER},
    {"POST", "/api/v1/runs/{r}/cancel", qr_route_run_cancel, "", "", "Ends a run; its items rest.", QR_RIGHT_EDITOR},
    {"GET", "/api/v1/events", qr_route_events, "base", "", "What happens, as it happens, as text/event-stream.",
     QR_RIGHT_KEY},
    {"GET", "/api/v1/jobs", qr_route_jobs_list, "limit cursor state queue type base item", "", "Jobs, newest first.",
     QR_RIGHT_ADMIN},
    {"GET", "/api/v1/jobs/{j}", qr_route_jobs_show, "", "", "One job, its history, and why it waits.", QR_RIGHT_ADMIN},
    {"POST", "/api/v1/jobs/{j}/cancel", qr_route_jobs_cancel, "", "", "Cancels an open job.", QR_RIGHT_ADMIN},
    {"POST", "/api/v1/jobs/{j}/retry", qr_route_jobs_retry, "", "", "Adds a failed or cancelled job once more.",
     QR_RIGHT_ADMIN},
    {"GET", "/api/v1/queues", qr_route_queues_list, "", "", "The queues and how much is in them.", QR_RIGHT_ADMIN},
    {"POST", "/api/v1/queues/{q}/pause", qr_route_queues_pause, "", "", "Begins no more jobs of the queue.",
     QR_RIGHT_ADMIN},
    {"POST", "/api/v1/queues/{q}/resume", qr_route_queues_resume, "", "", "Begins jobs of the queue again.",
     QR_RIGHT_ADMIN},
    {"GET", "/api/v1/keys", qr_route_keys_list, "limit cursor", "", "Keys, oldest first.", QR_RIGHT_ADMIN},
    {"POST", "/api/v1/keys", qr_route_keys_add, "", "name admin roles expires_in_s", "Makes a key.", QR_RIGHT_ADMIN},
    {"DELETE", "/api/v1/keys/{k}", qr_route_keys_delete, "", "", "Ends a key.", QR_RIGHT_ADMIN},
    {"POST", "/api/v1/keys/{k}/rotate", qr_route_keys_rotate, "", "grace_s", "Gives a key another secret.",
     QR_RIGHT_ADMIN},
    {"GET", "/api/v1/bases/{b}/members", qr_route_members_list, "limit cursor", "", "Keys that have a role in a base.",
     QR_RIGHT_OWNER},
    {"GET", "/api/v1/bases/{b}/members/{k}", qr_route_members_show, "", "", "One of them.", QR_RIGHT_OWNER},
    {"PUT", "/api/v1/bases/{b}/members/{k}", qr_route_members_set, "", "role", "Gives a key a role in a base.",
     QR_RIGHT_OWNER},
    {"DELETE", "/api/v1/bases/{b}/members/{k}", qr_route_members_delete, "", "", "Takes a key's role in a base away.",
     QR_RIGHT_OWNER},
    {"GET", "/openapi.json", qr_route_openapi, "", "", "This description of the API, as OpenAPI 3.1.", QR_RIGHT_OPEN},
    {"GET", "/docs", qr_route_docs, "", "", "The same as a page for people.", QR_RIGHT_OPEN},
    {"POST", "/retrieval", qr_route_dify_retrieval, "", "*", "Searches a base, in the shape of Dify.", QR_RIGHT_KEY,
     .error = qr_dify_error},
    {"POST", "/v1/vector_stores/{b}/search", qr_route_vector_store_search, "", "*",
     "Searches a base, in the shape of OpenAI.", QR_RIGHT_VIEWER, .error = qr_openai_error},
    {"POST", "/v1/embeddings", qr_route_embeddings, "", "*", "Vectors of texts, in the shape of OpenAI.", QR_RIGHT_KEY,
     .error = qr_openai_error},
};

const size_t qr_route_count = QR_COUNT(qr_routes);

/* ---- the search ---- */

bool qr_route_matches(const char *pattern, qr_str path, qr_str ret_params[static QR_ROUTE_PARAMS_MAX])
{
    size_t param_count = 0;
    qr_str wanted = qr_str_of(pattern);
    if (qr_str_ends_with(path, QR_STR("/"))) {
        return false; /* one path for one thing */
    }
    while (wanted.len && path.len) {
        const qr_str want = qr_str_split(&wanted, '/');
        const qr_str part = qr_str_split(&path, '/');
        if (want.len && want.ptr[0] == '{') {
            if (part.len == 0 || param_count == QR_ROUTE_PARAMS_MAX) {
                return false;
            }
            ret_params[param_count++] = part;
        } else if (!qr_str_equal(want, part)) {
            return false;
        }
    }
    return wanted.len == 0 && path.len == 0;
}

static qr_rc find_route(qr_str method, qr_str path, struct qr_request *request, struct qr_reply *reply,
                        const struct qr_route **ret_route, qr_err *err)
{
    enum { SHOWN_BYTES_MAX = 200 };
    const qr_str shown = qr_utf8_prefix(path, SHOWN_BYTES_MAX);
    QR_CLEANUP(qr_buf_done) struct qr_buf methods = {0};
    for (size_t i = 0; i < QR_COUNT(qr_routes); i++) {
        if (!qr_route_matches(qr_routes[i].pattern, path, request->params)) {
            continue;
        }
        if (qr_str_equal(method, qr_str_of(qr_routes[i].method))) {
            *ret_route = &qr_routes[i];
            return QR_OK;
        }
        qr_buf_printf(&methods, "%s%s", methods.len ? ", " : "", qr_routes[i].method);
    }
    QR_TRY(qr_buf_check(&methods, err));
    if (methods.len) {
        qr_reply_header(reply, "Allow", "%s", methods.data);
        return qr_fail(err, QR_CODE_METHOD_NOT_ALLOWED, "%.*s takes %s", QR_STR_ARG(shown), methods.data);
    }
    return qr_fail(err, QR_CODE_NOT_FOUND, "there is nothing at %.*s", QR_STR_ARG(shown));
}

/* ---- the form ---- */

/* "application/json", with or without parameters. */
static bool is_json(const char *content_type)
{
    qr_str rest = qr_str_of(content_type);
    const qr_str type = qr_str_trim(qr_str_split(&rest, ';'));
    return qr_str_equal_any_case(type, QR_STR("application/json"));
}

static qr_rc parse_body(const struct quire_request *from, const char *fields, json_t **ret_body, qr_err *err)
{
    QR_JSON *body = NULL;
    qr_str text = {from->body, from->body ? from->body_size : 0};
    if (qr_str_trim(text).len == 0) {
        text = QR_STR("{}");
    } else if (from->content_type && !is_json(from->content_type)) {
        return qr_fail(err, QR_CODE_UNSUPPORTED_MEDIA_TYPE, "the body must be JSON: Content-Type: application/json");
    }
    QR_TRY(qr_json_parse(text, &QR_JSON_REQUEST_LIMITS, &body, err));
    if (!json_is_object(body)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "the body must be a JSON object");
    }
    if (strcmp(fields, "*") != 0) {
        QR_TRY(qr_json_require_fields(body, "", fields, err));
    }
    *ret_body = json_incref(body);
    return QR_OK;
}

/* ---- the path, and the parameters behind the '?' ---- */

qr_rc qr_url_decode(struct qr_buf *out, qr_str text, qr_err *err)
{
    for (size_t i = 0; i < text.len; i++) {
        const bool is_coded = text.ptr[i] == '%' && i + 2 < text.len && qr_hex_digit(text.ptr[i + 1]) >= 0 &&
                              qr_hex_digit(text.ptr[i + 2]) >= 0;
        if (text.ptr[i] == '%' && !is_coded) {
            return qr_fail(err, QR_CODE_BAD_REQUEST,
                           "a '%%' in the path or behind the '?' is not followed by two hexadecimal digits");
        }
        qr_buf_add_char(out, is_coded ? (char)(qr_hex_digit(text.ptr[i + 1]) << 4 | qr_hex_digit(text.ptr[i + 2]))
                                      : text.ptr[i]);
        i += is_coded ? 2 : 0;
    }
    QR_TRY(qr_buf_check(out, err));
    const qr_str decoded = qr_buf_str(out);
    if (!qr_utf8_valid(decoded) || memchr(decoded.ptr, '\0', decoded.len)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "what stands in the path or behind the '?' is not text");
    }
    return QR_OK;
}

static qr_rc add_parameter(json_t *query, qr_str assignment, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf name = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf value = {0};
    QR_TRY(qr_url_decode(&name, qr_str_split(&assignment, '='), err));
    QR_TRY(qr_url_decode(&value, assignment, err));
    const char *key = qr_buf_str(&name).ptr;
    if (json_object_get(query, key)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "a parameter behind the '?' is given twice");
    }
    if (json_object_set_new(query, key, json_string(qr_buf_str(&value).ptr)) != 0) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
    }
    return QR_OK;
}

static qr_rc parse_query(qr_str text, const struct qr_route *route, json_t **ret_query, qr_err *err)
{
    enum { QUERY_BYTES_MAX = 8192 };
    QR_JSON *query = json_object();
    if (text.len > QUERY_BYTES_MAX) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "more than %d bytes stand behind the '?'", (int)QUERY_BYTES_MAX);
    }
    while (text.len) {
        QR_TRY(add_parameter(query, qr_str_split(&text, '&'), err));
    }
    if (!query) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
    }
    QR_TRY(qr_json_require_fields(query, "", route->query, err));
    *ret_query = json_incref(query);
    return QR_OK;
}

const char *qr_request_query(const struct qr_request *request, const char *name)
{
    return json_string_value(json_object_get(request->query, name));
}

/* ---- the call ---- */

/* As far as can be said before the body has come. */
static qr_rc enter(struct qr_request *request, const struct qr_route **ret_route, struct qr_reply *reply, qr_err *err)
{
    qr_str rest = qr_str_of(request->from->target);
    if (!qr_utf8_valid(rest)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "the path is not UTF-8");
    }
    const qr_str path = qr_str_split(&rest, '?');
    QR_TRY(find_route(qr_str_of(request->from->method), path, request, reply, ret_route, err));
    return qr_access_enter(request, *ret_route, err);
}

static qr_rc call(struct qr_request *request, const struct qr_route **ret_route, struct qr_reply *reply, qr_err *err)
{
    const struct quire_request *from = request->from;
    QR_TRY(enter(request, ret_route, reply, err));
    const struct qr_route *route = *ret_route;
    qr_str query = qr_str_of(from->target);
    (void)qr_str_split(&query, '?');
    QR_JSON *parameters = NULL;
    QR_JSON *body = NULL;
    QR_TRY(parse_query(query, route, &parameters, err));
    if (request->upload || route->takes == QR_BODY_FILES) {
        body = json_object();
    } else {
        QR_TRY(parse_body(from, route->fields, &body, err));
    }
    QR_TRY(qr_access_check_named(request, route, body, err));
    request->query = parameters;
    request->body = body;
    const int64_t began_us = qr_thread_mono_us();
    const qr_rc rc = qr_once_call(request, route, reply, err);
    if (route->fn == qr_route_base_search || route->fn == qr_route_search) {
        qr_meter_search(&request->quire->meter, qr_thread_mono_us() - began_us);
    }
    request->query = request->body = NULL; /* they end here */
    return rc;
}

void qr_reply_header(struct qr_reply *reply, const char *name, const char *format, ...)
{
    assert(reply->header_count < QR_REPLY_HEADERS_MAX);
    struct qr_reply_header *header = &reply->headers[reply->header_count++];
    header->name = name;
    va_list args;
    va_start(args, format);
    const int len = vsnprintf(header->value, sizeof header->value, format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof header->value);
}

qr_rc qr_reply_with(struct qr_reply *reply, int status, json_t *body, qr_err *err)
{
    if (!body) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer");
    }
    reply->status = status;
    reply->body = body;
    return QR_OK;
}

static void drop_content(struct qr_reply *reply, int status)
{
    qr_buf_done(&reply->bytes);
    reply->bytes = (struct qr_buf){0};
    quire_pieces_free(reply->pieces);
    reply->pieces = NULL;
    json_decref(reply->body);
    reply->body = NULL;
    reply->status = status;
    reply->content_type = "application/json"; /* of no bytes */
}

/* Whether a GET's answer is what the caller has: If-None-Match names its ETag. */
static bool is_known_already(const struct qr_request *request, const struct qr_reply *reply)
{
    const char *wanted = request->from->if_none_match;
    const char *etag = NULL;
    for (size_t i = 0; i < reply->header_count; i++) {
        etag = strcmp(reply->headers[i].name, "ETag") == 0 ? reply->headers[i].value : etag;
    }
    return wanted && etag && reply->status == 200 && strcmp(request->from->method, "GET") == 0 &&
           (strcmp(wanted, "*") == 0 || strstr(wanted, etag));
}

/* Where the data folder is on this machine is nobody's business who is not on it. */
static void hide_folder(const struct qr_request *request, qr_err *err)
{
    static const char shown[] = "DATA";
    const char *folder = qr_config_text(qr_instance_config(request->quire), QR_CONFIG_DATA_DIR);
    const size_t len = strlen(folder);
    if (request->caller.right >= QR_RIGHT_LOCAL || len < sizeof shown) {
        return;
    }
    for (char *at = err->msg; (at = strstr(at, folder));) {
        memcpy(at, shown, sizeof shown - 1);
        at += sizeof shown - 1;
        memmove(at, at + len - (sizeof shown - 1), strlen(at + len - (sizeof shown - 1)) + 1);
    }
}

static void answer(struct qr_request *request, const qr_err *failure, bool is_only_asked, struct qr_reply *reply)
{
    const struct qr_route *route = NULL;
    qr_err err = *failure;
    const qr_rc rc = is_only_asked || failure->code != QR_CODE_NONE ? enter(request, &route, reply, &err)
                                                                    : call(request, &route, reply, &err);
    if (rc != QR_OK || failure->code != QR_CODE_NONE) {
        err = rc != QR_OK ? err : *failure;
        qr_buf_done(&reply->bytes);
        quire_pieces_free(reply->pieces);
        reply->pieces = NULL;
        qr_secret_hide(err.msg); /* KEY-9: one that was sent in the wrong place */
        hide_folder(request, &err);
        reply->status = qr_code_info(err.code)->http_status;
        reply->body = route && route->error ? route->error(request, &err) : qr_json_error(&err, reply->details);
        reply->bytes = (struct qr_buf){0};
        reply->content_type = NULL;
    }
    if (rc == QR_OK && is_known_already(request, reply)) {
        drop_content(reply, 304);
    }
    if (err.code == QR_CODE_UNAUTHORIZED) {
        qr_reply_header(reply, "WWW-Authenticate", "Bearer realm=\"quire\"");
    }
    if (reply->status) {
        qr_meter_request(&request->quire->meter, reply->status);
    }
    reply->is_kept =
        rc == QR_OK && route && route->is_kept && reply->status == 200 && request->caller.right == QR_RIGHT_LOCAL;
    if (route && !is_only_asked) {
        qr_audit_note(request, route, reply);
    }
}

void qr_router_call(struct quire *quire, const struct quire_request *request, struct qr_reply *ret_reply)
{
    struct qr_request routed = {.quire = quire, .from = request};
    const qr_err none = {0};
    *ret_reply = (struct qr_reply){0};
    answer(&routed, &none, false, ret_reply);
}

void qr_router_call_upload(struct quire *quire, const struct quire_request *request, struct qr_upload *upload,
                           const qr_err *failure, struct qr_reply *ret_reply)
{
    struct qr_request routed = {.quire = quire, .from = request, .upload = upload};
    *ret_reply = (struct qr_reply){0};
    answer(&routed, failure, false, ret_reply);
}

bool qr_router_admits(struct quire *quire, const struct quire_request *request, struct qr_reply *ret_reply)
{
    struct qr_request routed = {.quire = quire, .from = request};
    const qr_err none = {0};
    *ret_reply = (struct qr_reply){0};
    answer(&routed, &none, true, ret_reply);
    return ret_reply->status == 0;
}

bool qr_router_takes_files(const struct quire_request *request)
{
    qr_str rest = qr_str_of(request->target), params[QR_ROUTE_PARAMS_MAX];
    const qr_str path = qr_str_split(&rest, '?');
    for (size_t i = 0; i < QR_COUNT(qr_routes); i++) {
        const struct qr_route *route = &qr_routes[i];
        if (route->takes != QR_BODY_JSON && strcmp(request->method, route->method) == 0 &&
            qr_route_matches(route->pattern, path, params)) {
            return route->takes == QR_BODY_FILES || (request->content_type && !is_json(request->content_type));
        }
    }
    return false;
}
