/* Reranking on the wire. */
#include "search/rerank_wire.h"

#include "base/json.h"

#include <math.h>

enum { ANSWER_BYTES_MAX = 16 << 20 }; /* some echo the documents */

static const struct qr_json_limits answer_limits = {
    .size_bytes_max = ANSWER_BYTES_MAX, .depth_max = 16, .values_max = 100000};

static void add_field(struct qr_buf *out, const char *name, qr_str text)
{
    qr_buf_printf(out, "%s\"%s\":", out->len > 1 ? "," : "", name);
    qr_json_add_string(out, text);
}

void qr_rerank_write(const struct qr_rerank_request *request, struct qr_buf *out)
{
    qr_buf_add_char(out, '{');
    if (!request->is_tei && request->model[0]) {
        add_field(out, "model", qr_str_of(request->model));
    }
    add_field(out, "query", request->query);
    qr_buf_printf(out, ",\"%s\":[", request->is_tei ? "texts" : "documents");
    for (size_t i = 0; i < request->count; i++) {
        qr_buf_add_text(out, i ? "," : "");
        qr_json_add_string(out, request->documents[i]);
    }
    qr_buf_add_text(out, request->is_tei ? "],\"truncate\":true}" : "]}");
}

static qr_rc fail_answer(const char *what, qr_err *err)
{
    return qr_fail(err, QR_CODE_UNAVAILABLE, "the answer of the reranker %s", what);
}

static const json_t *find_list(const json_t *answer)
{
    const json_t *results = json_object_get(answer, "results");
    return json_is_array(answer) ? answer : results ? results : json_object_get(answer, "data");
}

static bool read_result(const json_t *result, size_t count, double *scores)
{
    const json_t *index = json_object_get(result, "index"), *score = json_object_get(result, "relevance_score");
    score = score ? score : json_object_get(result, "score");
    if (!json_is_integer(index) || json_integer_value(index) < 0 || (size_t)json_integer_value(index) >= count ||
        !json_is_number(score) || !isfinite(json_number_value(score))) {
        return false;
    }
    double *known = &scores[json_integer_value(index)];
    *known = isnan(*known) ? json_number_value(score) : fmax(*known, json_number_value(score));
    return true;
}

static void normalise(double *scores, size_t count)
{
    bool is_logit = false;
    for (size_t i = 0; i < count; i++) {
        is_logit = is_logit || scores[i] < 0 || scores[i] > 1; /* none is neither */
    }
    for (size_t i = 0; i < count; i++) {
        if (isnan(scores[i])) {
            scores[i] = -1;
        } else if (is_logit) {
            scores[i] = 1 / (1 + exp(-scores[i]));
        }
    }
}

qr_rc qr_rerank_read(qr_str answer, size_t count, double *ret_scores, qr_err *err)
{
    QR_JSON *json = NULL;
    qr_err ignored = {0};
    size_t i;
    json_t *result;
    if (qr_json_parse(answer, &answer_limits, &json, &ignored) != QR_OK) {
        return fail_answer("is not JSON, or too long", err);
    }
    const json_t *list = find_list(json);
    if (!json_is_array(list) || json_array_size(list) == 0) {
        return fail_answer("has no results", err);
    }
    for (i = 0; i < count; i++) {
        ret_scores[i] = NAN;
    }
    json_array_foreach(list, i, result)
    {
        if (!read_result(result, count, ret_scores)) {
            return fail_answer("has a result without a score, or of a document that it was not given", err);
        }
    }
    normalise(ret_scores, count);
    return QR_OK;
}
