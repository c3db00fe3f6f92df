/* Searching for the endpoints in the shapes of others: their conditions, and scores from 0 to 1. */
#include "api/compat.h"

#include "api/lookup.h"
#include "base/json_error.h"
#include "base/url.h"

#include <math.h>
#include <stdlib.h>

/* ---- other routes ---- */

qr_rc qr_compat_ask(const struct qr_request *request, const char *method, const char *target, const json_t *body,
                    json_t **ret_answer, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    struct qr_reply reply;
    if (body) {
        QR_TRY(qr_json_write(body, &text, err));
    }
    const struct quire_request asked = {.method = method,
                                        .target = target,
                                        .body = body ? text.data : NULL,
                                        .body_size = text.len,
                                        .is_local_owner = request->from->is_local_owner,
                                        .authorization = request->from->authorization,
                                        .remote_address = request->from->remote_address,
                                        .request_id = request->from->request_id};
    qr_router_call(request->quire, &asked, &reply);
    QR_JSON *answer = reply.body;
    qr_buf_done(&reply.bytes);
    if (reply.status >= 400 || !answer) {
        return answer ? qr_json_read_error(answer, err) : qr_answer_out_of_memory(err);
    }
    *ret_answer = json_incref(answer);
    return QR_OK;
}

/* ---- conditions ---- */

static bool read_number(const json_t *value, double *ret_number)
{
    char *end = NULL;
    const char *text = json_string_value(value);
    *ret_number = text ? strtod(text, &end) : json_number_value(value);
    return json_is_number(value) || (text && end != text && *end == '\0' && isfinite(*ret_number));
}

static qr_str text_of(const json_t *value)
{
    return json_is_string(value)  ? (qr_str){json_string_value(value), json_string_length(value)}
           : json_is_true(value)  ? QR_STR("true")
           : json_is_false(value) ? QR_STR("false")
                                  : QR_STR("");
}

/* Less than, equal to or greater than 0. */
static int compare(const json_t *a, const json_t *b)
{
    double first, second;
    if (read_number(a, &first) && read_number(b, &second)) {
        return (first > second) - (first < second);
    }
    return qr_str_compare(text_of(a), text_of(b));
}

/* As it is, or a list that has it. */
static bool equals(const json_t *attribute, const json_t *value)
{
    const json_t *member;
    size_t i;
    json_array_foreach(attribute, i, member)
    {
        if (compare(member, value) == 0) {
            return true;
        }
    }
    return !json_is_array(attribute) && compare(attribute, value) == 0;
}

static bool is_in(const json_t *attribute, const json_t *values)
{
    const json_t *value;
    size_t i;
    json_array_foreach(values, i, value)
    {
        if (equals(attribute, value)) {
            return true;
        }
    }
    return !json_is_array(values) && equals(attribute, values);
}

static bool contains(const json_t *attribute, const json_t *value)
{
    const qr_str part = text_of(value), text = text_of(attribute);
    return json_is_array(attribute) ? equals(attribute, value)
                                    : part.len && memmem(text.ptr, text.len, part.ptr, part.len) != NULL;
}

static bool is_empty(const json_t *attribute)
{
    return !attribute || json_is_null(attribute) || (json_is_string(attribute) && json_string_length(attribute) == 0) ||
           (json_is_array(attribute) && json_array_size(attribute) == 0);
}

bool qr_compat_fits(enum qr_compat_operator op, const json_t *attribute, const json_t *value)
{
    const bool has_both = attribute && !json_is_null(attribute) && value;
    switch (op) {
    case QR_OP_EQ:
        return has_both && equals(attribute, value);
    case QR_OP_NE:
        return !has_both || !equals(attribute, value);
    case QR_OP_GT:
        return has_both && compare(attribute, value) > 0;
    case QR_OP_GE:
        return has_both && compare(attribute, value) >= 0;
    case QR_OP_LT:
        return has_both && compare(attribute, value) < 0;
    case QR_OP_LE:
        return has_both && compare(attribute, value) <= 0;
    case QR_OP_IN:
        return has_both && is_in(attribute, value);
    case QR_OP_NOT_IN:
        return !has_both || !is_in(attribute, value);
    case QR_OP_CONTAINS:
        return has_both && contains(attribute, value);
    case QR_OP_NOT_CONTAINS:
        return !has_both || !contains(attribute, value);
    case QR_OP_STARTS:
        return has_both && qr_str_starts_with(text_of(attribute), text_of(value));
    case QR_OP_ENDS:
        return has_both && qr_str_ends_with(text_of(attribute), text_of(value));
    case QR_OP_EMPTY:
        return is_empty(attribute);
    case QR_OP_NOT_EMPTY:
        return !is_empty(attribute);
    case QR_OP_COUNT:
        break;
    }
    return false;
}

/* ---- searching ---- */

/* Scores of words have no upper end: they are bent into 0 to 1, in the same order. */
static double score_of(const json_t *hit)
{
    const double score = json_number_value(json_object_get(hit, "score"));
    const char *kind = json_string_value(json_object_get(hit, "score_kind"));
    const double bent = kind && strcmp(kind, "bm25") == 0 && score > 0 ? score / (1 + score) : score;
    return bent > 1 ? 1 : bent > 0 ? bent : 0;
}

/* Several hits may be of one item. */
static qr_rc find_attributes(const struct qr_request *request, const json_t *hit, json_t *known,
                             json_t **ret_attributes, qr_err *err)
{
    const char *base = json_string_value(json_object_get(hit, "base_id"));
    const char *item = json_string_value(json_object_get(hit, "item_id"));
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    QR_JSON *answer = NULL;
    *ret_attributes = json_object_get(known, item);
    if (*ret_attributes) {
        return QR_OK;
    }
    qr_buf_printf(&target, "/api/v1/bases/%s/items/%s", base, item);
    QR_TRY(qr_buf_check(&target, err));
    const qr_rc rc = qr_compat_ask(request, "GET", target.data, NULL, &answer, err);
    if (rc == QR_NOT_FOUND) { /* it was deleted since */
        return QR_OK;
    }
    QR_TRY(rc);
    if (json_object_set(known, item, json_object_get(answer, "attributes")) != 0) {
        return qr_answer_out_of_memory(err);
    }
    *ret_attributes = json_object_get(known, item);
    return QR_OK;
}

static qr_rc keep_fitting(const struct qr_request *request, const struct qr_compat_search *search, const json_t *found,
                          json_t *hits, qr_err *err)
{
    QR_JSON *known = json_object();
    json_t *hit;
    size_t i;
    json_array_foreach(found, i, hit)
    {
        json_t *attributes = NULL;
        if (json_array_size(hits) == search->top_k) {
            break;
        }
        if (score_of(hit) < search->score_min) {
            continue;
        }
        QR_TRY(find_attributes(request, hit, known, &attributes, err));
        if (!attributes || (search->fits && !search->fits(search->arg, attributes))) {
            continue;
        }
        if (json_object_set(hit, "attributes", attributes) != 0 ||
            json_object_set_new(hit, "shown_score", json_real(score_of(hit))) != 0 ||
            json_array_append(hits, hit) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    return QR_OK;
}

qr_rc qr_compat_search(const struct qr_request *request, const struct qr_compat_search *search, json_t **ret_hits,
                       qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    QR_JSON *answer = NULL;
    QR_JSON *hits = json_array();
    const size_t top_k = search->fits ? QR_COMPAT_HITS_MAX : search->top_k;
    QR_JSON *body = json_pack("{s:s, s:I}", "query", search->query ? search->query : "", "top_k", (json_int_t)top_k);
    qr_buf_add_text(&target, "/api/v1/bases/");
    qr_url_add_encoded(&target, search->base);
    qr_buf_add_text(&target, "/search");
    QR_TRY(qr_buf_check(&target, err));
    if (!hits || !body) {
        return qr_answer_out_of_memory(err);
    }
    QR_TRY(qr_compat_ask(request, "POST", target.data, body, &answer, err));
    QR_TRY(keep_fitting(request, search, json_object_get(answer, "hits"), hits, err));
    *ret_hits = json_incref(hits);
    return QR_OK;
}
