/* POST /retrieval: the external knowledge API of Dify. A knowledge is a base. */
#include "api/compat.h"
#include "api/lookup.h"

#include <strings.h>

enum { TOP_K_DEFAULT = 10, CONDITIONS_MAX = 50 };

/* ---- errors in its shape ---- */

/* 1001 no key, 1002 a wrong one, 2001 no such knowledge; of others it knows nothing, so the status stands there. */
static int error_code(const struct qr_request *request, const qr_err *err)
{
    const char *authorization = request->from->authorization;
    switch (err->code) {
    case QR_CODE_UNAUTHORIZED:
        return authorization && strncasecmp(authorization, "Bearer ", 7) == 0 ? 1002 : 1001;
    case QR_CODE_FORBIDDEN:
        return 1002;
    case QR_CODE_NOT_FOUND:
        return 2001;
    default:
        return qr_code_info(err->code)->http_status;
    }
}

json_t *qr_dify_error(const struct qr_request *request, const qr_err *err)
{
    return json_pack("{s:i, s:s}", "error_code", error_code(request, err), "error_msg", err->msg);
}

/* ---- conditions ---- */

static const struct {
    const char *name;
    enum qr_compat_operator op;
} operators[] = {
    {"contains", QR_OP_CONTAINS},
    {"not contains", QR_OP_NOT_CONTAINS},
    {"start with", QR_OP_STARTS},
    {"end with", QR_OP_ENDS},
    {"is", QR_OP_EQ},
    {"is not", QR_OP_NE},
    {"in", QR_OP_IN},
    {"not in", QR_OP_NOT_IN},
    {"empty", QR_OP_EMPTY},
    {"not empty", QR_OP_NOT_EMPTY},
    {"=", QR_OP_EQ},
    {"≠", QR_OP_NE},
    {">", QR_OP_GT},
    {"<", QR_OP_LT},
    {"≥", QR_OP_GE},
    {"≤", QR_OP_LE},
    {"before", QR_OP_LT},
    {"after", QR_OP_GT},
};

static enum qr_compat_operator find_operator(const json_t *condition)
{
    const char *name = json_string_value(json_object_get(condition, "comparison_operator"));
    for (size_t i = 0; name && i < QR_COUNT(operators); i++) {
        if (strcmp(operators[i].name, name) == 0) {
            return operators[i].op;
        }
    }
    return QR_OP_COUNT;
}

/* Older versions send a list of names: one that fits is enough. */
static bool fits_condition(const json_t *condition, const json_t *attributes)
{
    const enum qr_compat_operator op = find_operator(condition);
    const json_t *names = json_object_get(condition, "name"), *value = json_object_get(condition, "value"), *name;
    size_t i;
    json_array_foreach(names, i, name)
    {
        if (qr_compat_fits(op, json_object_get(attributes, json_string_value(name)), value)) {
            return true;
        }
    }
    return json_is_string(names) && qr_compat_fits(op, json_object_get(attributes, json_string_value(names)), value);
}

static bool fits(const void *arg, const json_t *attributes)
{
    const json_t *metadata = arg, *condition;
    const char *logic = json_string_value(json_object_get(metadata, "logical_operator"));
    const bool is_or = logic && strcmp(logic, "or") == 0;
    size_t i;
    json_array_foreach(json_object_get(metadata, "conditions"), i, condition)
    {
        if (fits_condition(condition, attributes) == is_or) {
            return is_or;
        }
    }
    return !is_or;
}

static bool are_texts(const json_t *list)
{
    const json_t *text;
    size_t i;
    json_array_foreach(list, i, text)
    {
        if (!json_is_string(text)) {
            return false;
        }
    }
    return json_array_size(list) > 0;
}

static qr_rc check_conditions(const json_t *metadata, qr_err *err)
{
    const json_t *conditions = json_object_get(metadata, "conditions"), *condition;
    size_t i;
    if (!json_is_array(conditions) || json_array_size(conditions) > CONDITIONS_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "metadata_condition.conditions is a list of at most %d",
                       (int)CONDITIONS_MAX);
    }
    json_array_foreach(conditions, i, condition)
    {
        const json_t *name = json_object_get(condition, "name");
        if (!json_is_string(name) && !are_texts(name)) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "metadata_condition.conditions[%zu].name is a text", i);
        }
        if (find_operator(condition) == QR_OP_COUNT) {
            return qr_fail(err, QR_CODE_INVALID_VALUE,
                           "metadata_condition.conditions[%zu].comparison_operator is not one that there is", i);
        }
    }
    return QR_OK;
}

/* ---- the request ---- */

static qr_rc read_settings(const json_t *body, struct qr_compat_search *search, qr_err *err)
{
    const json_t *settings = json_object_get(body, "retrieval_setting");
    const json_t *top_k = json_object_get(settings, "top_k"), *score = json_object_get(settings, "score_threshold");
    const json_t *metadata = json_object_get(body, "metadata_condition");
    const json_int_t count = json_is_integer(top_k) ? json_integer_value(top_k) : TOP_K_DEFAULT;
    if ((top_k && !json_is_integer(top_k) && !json_is_null(top_k)) || count < 1) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "retrieval_setting.top_k is a whole number from 1 on");
    }
    if (score && !json_is_number(score) && !json_is_null(score)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "retrieval_setting.score_threshold is a number from 0 to 1");
    }
    search->top_k = QR_MIN((size_t)count, (size_t)QR_COMPAT_HITS_MAX);
    search->score_min = json_number_value(score);
    if (json_is_object(metadata) && json_array_size(json_object_get(metadata, "conditions")) > 0) {
        QR_TRY(check_conditions(metadata, err));
        search->fits = fits;
        search->arg = metadata;
    }
    return QR_OK;
}

/* ---- the answer ---- */

/* The item's attributes, and where the passage is. Never null: Dify breaks on that. */
static json_t *metadata_json(const json_t *hit)
{
    static const char *const members[] = {"base_id", "item_id",    "source",   "uri",   "heading",
                                          "page",    "line_start", "line_end", "start", "end"};
    QR_JSON *metadata = json_copy(json_object_get(hit, "attributes"));
    QR_JSON *all = json_is_object(metadata) ? json_incref(metadata) : json_object();
    for (size_t i = 0; i < QR_COUNT(members); i++) {
        json_t *value = json_object_get(hit, members[i]);
        if (value && !json_is_null(value) && json_object_set(all, members[i], value) != 0) {
            return NULL;
        }
    }
    return json_incref(all);
}

static json_t *records_json(const json_t *hits)
{
    QR_JSON *records = json_array();
    const json_t *hit;
    size_t i;
    json_array_foreach(hits, i, hit)
    {
        json_t *record = json_pack("{s:O, s:O, s:O, s:o}", "content", json_object_get(hit, "text"), "score",
                                   json_object_get(hit, "shown_score"), "title", json_object_get(hit, "name"),
                                   "metadata", metadata_json(hit));
        if (json_array_append_new(records, record) != 0) {
            return NULL;
        }
    }
    return json_incref(records);
}

qr_rc qr_route_dify_retrieval(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    const char *base;
    struct qr_compat_search search = {0};
    QR_JSON *hits = NULL;
    QR_TRY(qr_field_text(request->body, "", "knowledge_id", &base, err));
    QR_TRY(qr_field_text(request->body, "", "query", &search.query, err));
    if (!base || !base[0]) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "knowledge_id is missing: the id or the name of a base");
    }
    search.base = base;
    QR_TRY(read_settings(request->body, &search, err));
    QR_TRY(qr_compat_search(request, &search, &hits, err));
    return qr_reply_with(reply, 200, json_pack("{s:o}", "records", records_json(hits)), err);
}
