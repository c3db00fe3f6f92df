/* POST /api/v1/bases/{b}/search and /api/v1/search: what a request says becomes a search. */
#include "api/search.h"

#include "api/jobs.h"
#include "api/lookup.h"
#include "api/places.h"
#include "model/settings.h"

/* ---- the filter ---- */

static qr_rc add_id(const json_t *value, qr_uuid *ids, size_t *count, qr_err *err)
{
    if (*count == QR_FILTER_IDS_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "filter names at most %d items", (int)QR_FILTER_IDS_MAX);
    }
    return json_is_string(value) && qr_uuid_parse(qr_str_of(json_string_value(value)), &ids[(*count)++])
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "filter.item_ids and filter.under hold ids of items");
}

/* item_ids and under: the items, and what is in them. An empty list names nothing. */
static qr_rc read_ids(const json_t *filter, struct qr_arena *arena, struct qr_search_filter *ret_filter, qr_err *err)
{
    const json_t *list = json_object_get(filter, "item_ids"), *under = json_object_get(filter, "under"), *id;
    qr_uuid *ids = qr_arena_array(arena, QR_FILTER_IDS_MAX, sizeof *ids);
    size_t i, count = 0;
    if (!ids) {
        return qr_answer_out_of_memory(err);
    }
    if (!list && !under) {
        return QR_OK;
    }
    if (list && (!json_is_array(list) || under)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "filter has a list item_ids or one under, not both");
    }
    json_array_foreach(list, i, id)
    {
        QR_TRY(add_id(id, ids, &count, err));
    }
    if (under) {
        QR_TRY(add_id(under, ids, &count, err));
    }
    ret_filter->item_ids = ids;
    ret_filter->item_id_count = count;
    return QR_OK;
}

static qr_rc read_types(const json_t *filter, struct qr_search_filter *ret_filter, qr_err *err)
{
    const json_t *list = json_object_get(filter, "types"), *type;
    size_t i;
    if (list && !json_is_array(list)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "filter.types is a list of directory, file, note and url");
    }
    ret_filter->types = list ? QR_FILTER_NO_TYPE : 0;
    json_array_foreach(list, i, type)
    {
        const char *name = json_string_value(type);
        const enum qr_item_type found = name ? qr_item_type_find(qr_str_of(name)) : 0;
        if (!found) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "filter.types is a list of directory, file, note and url");
        }
        ret_filter->types |= QR_BIT(found);
    }
    return QR_OK;
}

static qr_rc read_filter(const json_t *body, struct qr_arena *arena, struct qr_search_filter *ret_filter, qr_err *err)
{
    enum { PATTERN_BYTES_MAX = 1000 };
    const json_t *filter = json_object_get(body, "filter");
    const char *path;
    *ret_filter = (struct qr_search_filter){0};
    if (!filter || json_is_null(filter)) {
        return QR_OK;
    }
    if (!json_is_object(filter)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "filter is an object with item_ids, under, types, attributes, path");
    }
    QR_TRY(qr_json_require_fields(filter, "filter.", "item_ids under types attributes path", err));
    QR_TRY(read_ids(filter, arena, ret_filter, err));
    QR_TRY(read_types(filter, ret_filter, err));
    QR_TRY(qr_field_text(filter, "filter.", "path", &path, err));
    if (path && (!path[0] || strlen(path) > PATTERN_BYTES_MAX)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "filter.path has 1 to %d bytes", (int)PATTERN_BYTES_MAX);
    }
    if (path) {
        ret_filter->patterns[ret_filter->pattern_count++] = (struct qr_path_pattern){qr_str_of(path), false};
    }
    ret_filter->attributes = json_object_get(filter, "attributes");
    return !ret_filter->attributes || json_is_object(ret_filter->attributes)
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "filter.attributes is an object");
}

/* ---- the request ---- */

/* A number of the body; stays as it is when it is absent. */
static qr_rc read_number(const json_t *body, const char *name, double min, double max, bool is_whole, double *number,
                         qr_err *err)
{
    const json_t *value = json_object_get(body, name);
    if (!value || json_is_null(value)) {
        return QR_OK;
    }
    const double given = json_number_value(value);
    if (!json_is_number(value) || !(given >= min && given <= max) || (is_whole && !json_is_integer(value))) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s is a %snumber from %g to %g", name, is_whole ? "whole " : "",
                       min, max);
    }
    *number = given;
    return QR_OK;
}

static qr_rc read_query(const json_t *body, struct qr_search *search, qr_err *err)
{
    const char *query;
    QR_TRY(qr_field_text(body, "", "query", &query, err));
    search->query = qr_str_of(query);
    return query && query[0] && search->query.len <= QR_QUERY_BYTES_MAX
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "query has 1 to %d bytes", (int)QR_QUERY_BYTES_MAX);
}

/* What the request says; what it does not say is as the base's settings have it. */
static qr_rc read_request(const struct qr_request *request, const struct qr_settings *settings, struct qr_arena *arena,
                          struct qr_search *search, qr_err *err)
{
    const json_t *body = request->body;
    const char *mode = settings->retrieval.mode;
    double top_k = (double)settings->retrieval.top_k, context = 0;
    bool merges = true;
    search->threshold = settings->retrieval.threshold;
    search->fusion = (struct qr_fusion_options){strcmp(settings->retrieval.fusion, "rrf") == 0 ? QR_FUSION_RANKS
                                                                                               : QR_FUSION_WEIGHTED,
                                                {settings->retrieval.text_weight, settings->retrieval.vector_weight}};
    const char *asked_mode;
    QR_TRY(read_query(body, search, err));
    QR_TRY(qr_field_text(body, "", "mode", &asked_mode, err));
    search->mode = qr_search_mode_find(asked_mode ? asked_mode : mode);
    if (search->mode == QR_MODE_COUNT) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "mode is auto, text, vector or hybrid");
    }
    QR_TRY(read_number(body, "top_k", 1, QR_SEARCH_TOP_K_MAX, true, &top_k, err));
    QR_TRY(read_number(body, "context", 0, QR_SEARCH_CONTEXT_MAX, true, &context, err));
    QR_TRY(read_number(body, "threshold", 0, 1, false, &search->threshold, err));
    QR_TRY(read_number(body, "diversity", 0, 1, false, &search->diversity, err));
    QR_TRY(qr_field_bool(body, "", "merge", &merges, err));
    search->top_k = (int)top_k;
    search->context = (int)context;
    search->keeps_chunks = !merges;
    return read_filter(body, arena, &search->filter, err);
}

/* ---- bases ---- */

/* What a search needs of its bases. */
struct call {
    const struct qr_request *request;
    struct qr_arena *arena;
    struct qr_base bases[QR_SEARCH_BASES_MAX];
    struct qr_settings settings[QR_SEARCH_BASES_MAX];
    struct qr_batcher *batchers[QR_SEARCH_BASES_MAX];
    struct qr_reranker *reranker;
    size_t count;
};

static void call_done(struct call *call)
{
    qr_reranker_free(call->reranker);
    for (size_t i = 0; i < call->count; i++) {
        qr_providers_put(call->request->quire->providers, call->batchers[i]);
    }
}

static qr_rc check_ready(const struct qr_base *base, qr_err *err)
{
    return base->status == QR_BASE_FAILED
               ? qr_fail(err, QR_CODE_BASE_FAILED, "the base %s has failed: %s", base->name, base->error_message)
               : QR_OK;
}

static qr_rc find_one(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    call->count = 1;
    QR_TRY(qr_request_base(tx, call->request, call->arena, &call->bases[0], err));
    return check_ready(&call->bases[0], err);
}

static bool is_named_before(const struct call *call)
{
    for (size_t i = 0; i + 1 < call->count; i++) {
        if (qr_uuid_equal(call->bases[i].id, call->bases[call->count - 1].id)) {
            return true;
        }
    }
    return false;
}

/* By id or name; one that is named twice is searched once. */
static qr_rc find_all(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    const json_t *list = json_object_get(call->request->body, "base_ids"), *name;
    size_t i;
    call->count = 0;
    json_array_foreach(list, i, name)
    {
        QR_TRY(qr_find_base(tx, qr_str_of(json_string_value(name)), call->arena, &call->bases[call->count++], err));
        QR_TRY(check_ready(&call->bases[call->count - 1], err));
        call->count -= is_named_before(call);
    }
    return QR_OK;
}

static qr_rc check_base_ids(const struct qr_request *request, qr_err *err)
{
    const json_t *list = json_object_get(request->body, "base_ids"), *name;
    size_t i;
    bool ok = json_is_array(list) && json_array_size(list) > 0 && json_array_size(list) <= QR_SEARCH_BASES_MAX;
    json_array_foreach(list, i, name)
    {
        ok = ok && json_is_string(name) && json_string_length(name) > 0;
    }
    return ok ? QR_OK
              : qr_fail(err, QR_CODE_INVALID_VALUE, "base_ids is a list of 1 to %d ids or names of bases",
                        (int)QR_SEARCH_BASES_MAX);
}

/* ---- searching ---- */

static qr_rc find_models(struct call *call, struct qr_search_base *ret_bases, qr_err *err)
{
    for (size_t i = 0; i < call->count; i++) {
        struct qr_base_models models;
        QR_TRY(qr_settings_parse_text(call->bases[i].settings, call->arena, &call->settings[i], err));
        QR_TRY(qr_base_models(&call->bases[i], call->arena, &models, err));
        QR_TRY(qr_providers_get(call->request->quire->providers, &models.live, &call->batchers[i], err));
        ret_bases[i] = (struct qr_search_base){call->bases[i].id, call->batchers[i], models.live_key};
    }
    return QR_OK;
}

/* true, false, or how many hits. */
static qr_rc read_rerank(const json_t *body, const struct qr_rerank_settings *rerank, int *ret_top_n, qr_err *err)
{
    const json_t *value = json_object_get(body, "rerank");
    double top_n = 0;
    if (json_is_integer(value)) {
        QR_TRY(read_number(body, "rerank", 1, QR_RERANK_TOP_N_MAX, true, &top_n, err));
    } else if (value && !json_is_boolean(value) && !json_is_null(value)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "rerank is true, false or a whole number from 1 to %d",
                       (int)QR_RERANK_TOP_N_MAX);
    } else if (json_is_true(value) || (!json_is_false(value) && strcmp(rerank->provider, "none") != 0)) {
        top_n = (double)rerank->top_n;
    }
    *ret_top_n = (int)top_n;
    return QR_OK;
}

/* The one that all bases name. Where they differ there is none: what one scores cannot be compared with another's. */
static void open_reranker(struct call *call, struct qr_search *search)
{
    const struct quire *quire = call->request->quire;
    const struct qr_rerank_settings *rerank = &call->settings[0].retrieval.rerank;
    bool is_same = true;
    for (size_t i = 1; i < call->count; i++) {
        is_same = is_same && qr_rerank_settings_equal(rerank, &call->settings[i].retrieval.rerank);
    }
    if (search->rerank_top_n > 0 && is_same &&
        qr_reranker_create(&call->reranker, rerank, quire->endpoints, quire->clock, NULL) == QR_OK) {
        search->reranker = call->reranker;
    }
}

static bool asks_a_model(const struct qr_search *search)
{
    bool asks = search->reranker != NULL;
    for (size_t i = 0; i < search->base_count; i++) {
        asks = asks || search->bases[i].batcher;
    }
    return asks;
}

/* Without a place models have less time: a search then is by words rather than later. */
static qr_rc run_search(struct call *call, struct qr_search *search, struct qr_search_answer *ret_answer, qr_err *err)
{
    struct quire *quire = call->request->quire;
    const bool has_place = asks_a_model(search) && qr_place_take(quire);
    search->is_cancelled = qr_waiting_is_over;
    search->cancel_arg = quire;
    if (!has_place) {
        search->model_wait_ms = QR_MIN(search->model_wait_ms, (int64_t)QR_PLACELESS_WAIT_MS);
    }
    if (search->reranker) {
        search->reranker->wait_ms = has_place ? 0 : QR_PLACELESS_WAIT_MS;
        search->reranker->is_cancelled = qr_waiting_is_over;
        search->reranker->cancel_arg = quire;
    }
    const qr_rc rc = qr_search_run(search, call->arena, ret_answer, err);
    if (has_place) {
        qr_place_leave(quire);
    }
    return rc;
}

/* Of several bases, none is the one whose settings would count: what the request does not say is as by default. */
static qr_rc search_bases(struct call *call, struct qr_reply *reply, qr_err *err)
{
    const struct quire *quire = call->request->quire;
    const int64_t began_ms = qr_clock_mono_ms(quire->clock);
    struct qr_search_base bases[QR_SEARCH_BASES_MAX];
    struct qr_search search = {.db = quire->db,
                               .index = quire->index,
                               .memory = quire->visible,
                               .bases = bases,
                               .base_count = call->count,
                               .clock = quire->clock,
                               .model_wait_ms =
                                   qr_config_number(qr_instance_config(quire), QR_CONFIG_SEARCH_MODEL_WAIT_MS)};
    struct qr_settings defaults;
    struct qr_search_answer answer;
    bool with_reasons = false;
    QR_TRY(find_models(call, bases, err));
    QR_TRY(qr_settings_parse_text("", call->arena, &defaults, err));
    QR_TRY(read_request(call->request, call->count > 1 ? &defaults : &call->settings[0], call->arena, &search, err));
    QR_TRY(read_rerank(call->request->body,
                       call->count > 1 ? &defaults.retrieval.rerank : &call->settings[0].retrieval.rerank,
                       &search.rerank_top_n, err));
    open_reranker(call, &search);
    QR_TRY(qr_field_bool(call->request->body, "", "explain", &with_reasons, err));
    QR_TRY(run_search(call, &search, &answer, err));
    QR_JSON *json = qr_json_search(&search, &answer, with_reasons, call->arena);
    const json_int_t took_ms = (json_int_t)(qr_clock_mono_ms(quire->clock) - began_ms);
    if (!json || json_object_set_new(json, "took_ms", json_integer(took_ms)) != 0) {
        return qr_answer_out_of_memory(err);
    }
    return qr_reply_with(reply, 200, json_incref(json), err);
}

static qr_rc run_call(const struct qr_request *request, qr_tx_fn *find, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_CLEANUP(call_done) struct call call = {.request = request, .arena = &arena};
    QR_TRY(qr_db_read(request->quire->db, find, &call, err));
    return search_bases(&call, reply, err);
}

qr_rc qr_route_base_search(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    return run_call(request, find_one, reply, err);
}

qr_rc qr_route_search(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_TRY(check_base_ids(request, err));
    return run_call(request, find_all, reply, err);
}
