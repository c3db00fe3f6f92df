/* /api/v1/models: embedding settings with a name. `PATCH /api/v1/bases/{b}` with `model` gives them to a base. */
#include "api/models.h"

#include "api/access.h"
#include "api/jobs.h"
#include "api/write.h"
#include "base/mem.h"
#include "model/settings.h"

enum { BASES_A_PAGE = 100 };

/* ---- whose model it is ---- */

static qr_rc read_embedding(const char *embedding, struct qr_arena *arena, struct qr_embedding_settings *ret_embedding,
                            qr_err *err)
{
    struct qr_settings settings;
    const char *text = qr_arena_printf(arena, "{\"embedding\":%s}", embedding);
    if (!text) {
        return qr_answer_out_of_memory(err);
    }
    QR_TRY(qr_settings_parse_text(text, arena, &settings, err));
    *ret_embedding = settings.embedding;
    return QR_OK;
}

/* Wanted, or still live. Settings that cannot be read use nothing. */
static bool base_uses(const struct qr_base *base, const struct qr_embedding_settings *embedding, struct qr_arena *arena)
{
    struct qr_base_models models;
    return qr_base_models(base, arena, &models, NULL) == QR_OK &&
           (qr_embedding_settings_equal(&models.wanted, embedding) ||
            qr_embedding_settings_equal(&models.live, embedding));
}

static qr_rc add_users(struct qr_tx *tx, const struct qr_embedding_settings *embedding, json_t *names, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    qr_uuid after = {0};
    size_t count;
    do {
        struct qr_base *bases;
        qr_arena_reset(&arena);
        QR_TRY(qr_bases_list(tx, after, BASES_A_PAGE, false, &arena, &bases, &count, err));
        for (size_t i = 0; i < count; i++) {
            after = bases[i].id;
            if (base_uses(&bases[i], embedding, &arena) &&
                json_array_append_new(names, json_string(bases[i].name)) != 0) {
                return qr_answer_out_of_memory(err);
            }
        }
    } while (count == BASES_A_PAGE);
    return QR_OK;
}

/* ---- how one looks ---- */

/* `used_by` is for who may see all bases. */
static qr_rc make_json(struct qr_tx *tx, const struct qr_request *request, const struct qr_named_model *model,
                       struct qr_arena *arena, json_t **ret_json, qr_err *err)
{
    QR_JSON *names = json_array();
    QR_JSON *embedding = NULL;
    struct qr_embedding_settings parsed = {0};
    QR_TRY(qr_json_parse(qr_str_of(model->embedding), &QR_JSON_REQUEST_LIMITS, &embedding, err));
    if (!names) {
        return qr_answer_out_of_memory(err);
    }
    if (!qr_caller_is_member(&request->caller) && read_embedding(model->embedding, arena, &parsed, NULL) == QR_OK) {
        QR_TRY(add_users(tx, &parsed, names, err));
    }
    *ret_json = json_pack("{s:s, s:O, s:O, s:o}", "name", model->name, "embedding", embedding, "used_by", names,
                          "created_at", qr_json_time(model->created_ms));
    return *ret_json ? QR_OK : qr_answer_out_of_memory(err);
}

/* ---- listing ---- */

struct list_call {
    const struct qr_request *request;
    qr_str after; /* the name before the page; none = from the first on */
    int limit;
    json_t *data;
    bool is_more;
};

static qr_rc list_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct list_call *call = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_named_model *models;
    size_t count;
    qr_arena_init(&arena, 0);
    json_array_clear(call->data);
    QR_TRY(qr_named_models_list(tx, &arena, &models, &count, err));
    call->is_more = false;
    for (size_t i = 0; i < count; i++) {
        json_t *json;
        if (qr_str_compare(qr_str_of(models[i].name), call->after) <= 0) {
            continue;
        }
        call->is_more = json_array_size(call->data) == (size_t)call->limit;
        if (call->is_more) {
            break;
        }
        QR_TRY(make_json(tx, call->request, &models[i], &arena, &json, err));
        if (json_array_append_new(call->data, json) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    return QR_OK;
}

qr_rc qr_route_models_list(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    QR_JSON *data = json_array();
    struct list_call call = {.request = request, .data = data};
    qr_arena_init(&arena, 0);
    if (!data) {
        return qr_answer_out_of_memory(err);
    }
    QR_TRY(qr_request_limit(request, &call.limit, err));
    QR_TRY(qr_request_cursor(request, &arena, &call.after, err));
    QR_TRY(qr_db_read(request->quire->db, list_in_tx, &call, err));
    const json_t *last = call.is_more ? json_array_get(data, json_array_size(data) - 1) : NULL;
    json_t *next = qr_json_cursor(qr_str_of(json_string_value(json_object_get(last, "name"))));
    return qr_reply_with(reply, 200, json_pack("{s:O, s:o}", "data", data, "next_cursor", next), err);
}

/* ---- making ---- */

struct model_call {
    const struct qr_request *request;
    const char *name, *embedding;
    struct qr_arena *arena;
    json_t *body;
};

static qr_rc add_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct model_call *call = arg;
    struct qr_named_model model;
    QR_TRY(qr_named_model_add(tx, call->name, call->embedding, err));
    QR_TRY(qr_named_model_find(tx, qr_str_of(call->name), call->arena, &model, err));
    json_decref(call->body);
    call->body = NULL;
    return make_json(tx, call->request, &model, call->arena, &call->body,
                     err); /* here: after the commit nothing may fail any more */
}

static qr_rc check_embedding(const struct model_call *call, qr_err *err)
{
    const struct qr_request *request = call->request;
    struct qr_embedding_settings parsed = {0};
    if (!call->embedding) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "embedding is missing");
    }
    QR_TRY(read_embedding(call->embedding, call->arena, &parsed, err));
    if (strcmp(parsed.provider, "none") == 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "embedding.provider must be given, as in \"openai\"");
    }
    QR_JSON *settings = json_pack("{s:O}", "embedding", json_object_get(request->body, "embedding"));
    return settings ? qr_access_check_settings(request, NULL, settings, err) : qr_answer_out_of_memory(err);
}

qr_rc qr_route_models_add(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct model_call call = {.request = request, .arena = &arena};
    QR_TRY(qr_field_text(request->body, "", "name", &call.name, err));
    if (!call.name) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "name is missing");
    }
    QR_TRY(qr_check_name(call.name, err));
    QR_TRY(qr_field_object(request->body, "", "embedding", &arena, &call.embedding, err));
    QR_TRY(check_embedding(&call, err));
    const qr_rc rc = qr_request_write(request, add_in_tx, &call, err);
    return qr_reply_made(reply, rc, 201, call.body, err);
}

/* ---- removing ---- */

struct remove_call {
    qr_str name;
    char removed[QR_BASE_NAME_BYTES_MAX + 1];
};

static qr_rc remove_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct remove_call *call = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    QR_JSON *names = json_array();
    struct qr_named_model model;
    struct qr_embedding_settings parsed = {0};
    qr_arena_init(&arena, 0);
    QR_TRY(qr_named_model_find(tx, call->name, &arena, &model, err));
    if (read_embedding(model.embedding, &arena, &parsed, NULL) == QR_OK) {
        QR_TRY(add_users(tx, &parsed, names, err));
    }
    if (json_array_size(names)) {
        return qr_fail(err, QR_CODE_IN_USE, "the base %s uses the model %s",
                       json_string_value(json_array_get(names, 0)), model.name);
    }
    snprintf(call->removed, sizeof call->removed, "%s", model.name);
    return qr_named_model_remove(tx, model.name, err);
}

qr_rc qr_route_models_delete(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf name = {0};
    struct remove_call call = {0};
    QR_TRY(qr_url_decode(&name, request->params[0], err));
    call.name = qr_buf_str(&name);
    QR_TRY(qr_request_write(request, remove_in_tx, &call, err));
    return qr_reply_with(reply, 200, json_pack("{s:s}", "name", call.removed), err);
}

/* ---- giving it to a base ---- */

qr_rc qr_model_put_into(struct qr_tx *tx, const char *name, struct qr_arena *arena, json_t *settings, qr_err *err)
{
    struct qr_named_model model;
    json_t *embedding = NULL;
    QR_TRY(qr_named_model_find(tx, qr_str_of(name), arena, &model, err));
    QR_TRY(qr_json_parse(qr_str_of(model.embedding), &QR_JSON_REQUEST_LIMITS, &embedding, err));
    return json_object_set_new(settings, "embedding", embedding) == 0 ? QR_OK : qr_answer_out_of_memory(err);
}
