/* POST /v1/vector_stores/{b}/search in the shape of OpenAI: a store is a base, a file is an item. */
#include "api/compat.h"
#include "api/lookup.h"

enum {
    RESULTS_DEFAULT = 10,
    RESULTS_MAX = 50,
    FILTER_DEPTH_MAX = 8,
    ATTRIBUTES_MAX = 16, /* what the shape allows */
    ATTRIBUTE_CHARS_MAX = 512,
    QUERIES_MAX = 20,
};

/* ---- errors in its shape ---- */

json_t *qr_openai_error(const struct qr_request *request QR_UNUSED, const qr_err *err)
{
    const int status = qr_code_info(err->code)->http_status;
    const char *type = status == 401   ? "authentication_error"
                       : status == 403 ? "permission_error"
                       : status == 429 ? "rate_limit_error"
                       : status < 500  ? "invalid_request_error"
                                       : "server_error";
    return json_pack("{s:{s:s, s:s, s:n, s:s}}", "error", "message", err->msg, "type", type, "param", "code",
                     qr_code_info(err->code)->name);
}

/* ---- filters ---- */

static const struct {
    const char *name;
    enum qr_compat_operator op;
} operators[] = {{"eq", QR_OP_EQ}, {"ne", QR_OP_NE},  {"gt", QR_OP_GT}, {"gte", QR_OP_GE},
                 {"lt", QR_OP_LT}, {"lte", QR_OP_LE}, {"in", QR_OP_IN}, {"nin", QR_OP_NOT_IN}};

static enum qr_compat_operator find_operator(const char *type)
{
    for (size_t i = 0; i < QR_COUNT(operators); i++) {
        if (strcmp(operators[i].name, type) == 0) {
            return operators[i].op;
        }
    }
    return QR_OP_COUNT;
}

static bool is_compound(const char *type)
{
    return strcmp(type, "and") == 0 || strcmp(type, "or") == 0;
}

static qr_rc check_filter(const json_t *filter, int depth, qr_err *err)
{
    const char *type = json_string_value(json_object_get(filter, "type"));
    const json_t *filters = json_object_get(filter, "filters"), *member;
    size_t i;
    if (!type || depth > FILTER_DEPTH_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "filters is an object with a type, nested at most %d deep",
                       (int)FILTER_DEPTH_MAX);
    }
    if (!is_compound(type)) {
        return find_operator(type) != QR_OP_COUNT && json_is_string(json_object_get(filter, "key")) &&
                       json_object_get(filter, "value")
                   ? QR_OK
                   : qr_fail(
                         err, QR_CODE_INVALID_VALUE,
                         "a filter has type eq, ne, gt, gte, lt, lte, in or nin, and key and value; or type and or or, "
                         "and filters");
    }
    if (!json_is_array(filters)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "filters of a filter of type %s is a list", type);
    }
    json_array_foreach(filters, i, member)
    {
        QR_TRY(check_filter(member, depth + 1, err));
    }
    return QR_OK;
}

/* As deep as check_filter lets through. */
static bool fits(const void *arg, const json_t *attributes)
{
    const json_t *filter = arg, *member;
    const char *type = json_string_value(json_object_get(filter, "type"));
    const bool is_or = strcmp(type, "or") == 0;
    size_t i;
    if (!is_compound(type)) {
        const char *key = json_string_value(json_object_get(filter, "key"));
        return qr_compat_fits(find_operator(type), json_object_get(attributes, key), json_object_get(filter, "value"));
    }
    json_array_foreach(json_object_get(filter, "filters"), i, member)
    {
        if (fits(member, attributes) == is_or) {
            return is_or;
        }
    }
    return !is_or;
}

/* ---- the request ---- */

/* A text, or several, which are looked for together. */
static qr_rc read_query(const json_t *body, struct qr_buf *text, json_t **ret_queries, qr_err *err)
{
    json_t *query = json_object_get(body, "query"), *member;
    QR_JSON *list = json_is_string(query) ? json_pack("[O]", query) : json_incref(query);
    size_t i;
    bool is_well = json_is_array(list) && json_array_size(list) > 0 && json_array_size(list) <= QUERIES_MAX;
    json_array_foreach(list, i, member)
    {
        is_well = is_well && json_is_string(member);
        qr_buf_printf(text, "%s%s", i ? " " : "", is_well ? json_string_value(member) : "");
    }
    QR_TRY(qr_buf_check(text, err));
    if (!is_well) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "query is a text, or a list of 1 to %d texts", (int)QUERIES_MAX);
    }
    *ret_queries = json_incref(list);
    return QR_OK;
}

static qr_rc read_options(const json_t *body, struct qr_compat_search *search, qr_err *err)
{
    const json_t *count = json_object_get(body, "max_num_results"), *filters = json_object_get(body, "filters");
    const json_t *score = json_object_get(json_object_get(body, "ranking_options"), "score_threshold");
    const json_int_t wanted = json_is_integer(count) ? json_integer_value(count) : RESULTS_DEFAULT;
    if ((count && !json_is_integer(count) && !json_is_null(count)) || wanted < 1 || wanted > RESULTS_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "max_num_results is a whole number from 1 to %d", (int)RESULTS_MAX);
    }
    if (score && !json_is_number(score) && !json_is_null(score)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "ranking_options.score_threshold is a number from 0 to 1");
    }
    search->top_k = (size_t)wanted;
    search->score_min = json_number_value(score);
    if (filters && !json_is_null(filters)) {
        QR_TRY(check_filter(filters, 1, err));
        search->fits = fits;
        search->arg = filters;
    }
    return QR_OK;
}

/* ---- the answer ---- */

/* Those that the shape has room for. */
static json_t *attributes_json(const json_t *attributes)
{
    QR_JSON *all = json_object();
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)attributes, name, value)
    {
        const bool has_room = json_object_size(all) < ATTRIBUTES_MAX;
        const bool is_plain = json_is_number(value) || json_is_boolean(value) ||
                              (json_is_string(value) && json_string_length(value) <= ATTRIBUTE_CHARS_MAX);
        if (has_room && is_plain && json_object_set(all, name, value) != 0) {
            return NULL;
        }
    }
    return json_incref(all);
}

static json_t *results_json(const json_t *hits)
{
    QR_JSON *results = json_array();
    const json_t *hit;
    size_t i;
    json_array_foreach(hits, i, hit)
    {
        json_t *result =
            json_pack("{s:O, s:O, s:O, s:o, s:[{s:s, s:O}]}", "file_id", json_object_get(hit, "item_id"), "filename",
                      json_object_get(hit, "name"), "score", json_object_get(hit, "shown_score"), "attributes",
                      attributes_json(json_object_get(hit, "attributes")), "content", "type", "text", "text",
                      json_object_get(hit, "text"));
        if (json_array_append_new(results, result) != 0) {
            return NULL;
        }
    }
    return json_incref(results);
}

qr_rc qr_route_vector_store_search(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf base = {0}, query = {0};
    QR_JSON *queries = NULL;
    QR_JSON *hits = NULL;
    struct qr_compat_search search = {0};
    QR_TRY(qr_url_decode(&base, request->params[0], err));
    QR_TRY(read_query(request->body, &query, &queries, err));
    QR_TRY(read_options(request->body, &search, err));
    search.base = qr_buf_str(&base).ptr;
    search.query = qr_buf_str(&query).ptr;
    QR_TRY(qr_compat_search(request, &search, &hits, err));
    return qr_reply_with(reply, 200,
                         json_pack("{s:s, s:O, s:o, s:b, s:n}", "object", "vector_store.search_results.page",
                                   "search_query", queries, "data", results_json(hits), "has_more", 0, "next_page"),
                         err);
}
