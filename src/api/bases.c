/* /api/v1/bases: making, listing, changing, deleting and restoring bases. */
#include "api/base_models.h"
#include "api/circuits.h"
#include "api/jobs.h"
#include "api/lookup.h"
#include "api/models.h"
#include "api/write.h"
#include "base/failpoint.h"
#include "model/settings.h"
#include "store/change.h"
#include "store/members.h"
#include "workflow/models.h"
#include "workflow/process.h"

/* ---- how a base looks ---- */

static json_t *settings_json(const struct qr_base *base)
{
    json_t *settings = NULL;
    const qr_rc rc =
        qr_json_parse(qr_str_of(base->settings[0] ? base->settings : "{}"), &QR_JSON_REQUEST_LIMITS, &settings, NULL);
    return rc == QR_OK || rc == QR_NOMEM ? settings : json_object();
}

static json_t *base_json(const struct qr_base *base, const struct qr_build_view *build)
{
    json_t *error = base->error_code[0]
                        ? json_pack("{s:s, s:s}", "code", base->error_code, "message", base->error_message)
                        : json_null();
    return json_pack("{s:o, s:s, s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "id", qr_json_uuid(base->id), "name",
                     base->name, "status", qr_base_status_name(base->status), "error", error, "settings",
                     settings_json(base), "version", (json_int_t)base->version, "created_at",
                     qr_json_time(base->created_ms), "updated_at", qr_json_time(base->updated_ms), "models",
                     qr_json_base_models(base), "model_build", qr_json_model_build(base, build));
}

/* ---- reading ---- */

struct view {
    const struct qr_request *request;
    struct qr_arena *arena;
    qr_uuid after;
    int limit;
    struct qr_base *bases;
    struct qr_build_view *builds; /* of each */
    size_t count;
};

/* Those in which the caller's key has a role. */
static qr_rc load_own(struct qr_tx *tx, struct view *view, qr_err *err)
{
    struct qr_member *members;
    size_t count;
    QR_TRY(qr_members_of_key(tx, view->request->caller.key_id, view->after, view->limit + 1, view->arena, &members,
                             &count, err));
    view->bases = qr_arena_array(view->arena, count + 1, sizeof *view->bases);
    if (!view->bases) {
        return qr_answer_out_of_memory(err);
    }
    view->count = 0;
    for (size_t i = 0; i < count; i++) {
        bool found;
        QR_TRY(qr_base_find(tx, members[i].base_id, view->arena, &found, &view->bases[view->count], err));
        view->count += found;
    }
    return QR_OK;
}

static qr_rc load_list(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct view *view = arg;
    qr_arena_reset(view->arena);
    QR_TRY(qr_caller_is_member(&view->request->caller)
               ? load_own(tx, view, err)
               : qr_bases_list(tx, view->after, view->limit + 1, false, view->arena, &view->bases, &view->count, err));
    view->builds = qr_arena_array(view->arena, view->count + 1, sizeof *view->builds);
    if (!view->builds) {
        return qr_answer_out_of_memory(err);
    }
    for (size_t i = 0; i < view->count; i++) {
        QR_TRY(qr_build_view_load(tx, &view->bases[i], view->arena, &view->builds[i], err));
    }
    return QR_OK;
}

static json_t *list_json(const struct view *view)
{
    const size_t page = (size_t)view->limit, count = QR_MIN(view->count, page);
    json_t *data = json_array();
    for (size_t i = 0; data && i < count; i++) {
        if (json_array_append_new(data, base_json(&view->bases[i], &view->builds[i])) != 0) {
            json_decref(data);
            data = NULL;
        }
    }
    json_t *cursor = view->count > page ? qr_json_uuid(view->bases[page - 1].id) : json_null();
    return json_pack("{s:o, s:o}", "data", data, "next_cursor", cursor);
}

qr_rc qr_route_bases_list(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct view view = {.request = request, .arena = &arena};
    QR_TRY(qr_request_limit(request, &view.limit, err));
    QR_TRY(qr_request_cursor_id(request, &view.after, err));
    QR_TRY(qr_db_read(request->quire->db, load_list, &view, err));
    return qr_reply_with(reply, 200, list_json(&view), err);
}

struct one {
    const struct qr_request *request;
    json_t *body; /* the base */
};

static qr_rc write_base(struct qr_tx *tx, const struct qr_base *base, struct qr_arena *arena, json_t **body,
                        qr_err *err)
{
    struct qr_build_view build;
    QR_TRY(qr_build_view_load(tx, base, arena, &build, err));
    json_decref(*body);
    *body = base_json(base, &build);
    return *body ? QR_OK : qr_answer_out_of_memory(err);
}

static qr_rc load_one(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct one *one = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_base base;
    qr_arena_init(&arena, 0);
    QR_TRY(qr_request_base(tx, one->request, &arena, &base, err));
    json_t *circuits, *awaited;
    QR_TRY(write_base(tx, &base, &arena, &one->body, err));
    QR_TRY(qr_circuits_of_base(tx, &base, &arena, &circuits, err));
    if (json_object_set_new(one->body, "circuits", circuits) != 0) {
        return qr_answer_out_of_memory(err);
    }
    QR_TRY(qr_awaited_of_base(one->request->quire, &base, &arena, &awaited, err));
    return json_object_set_new(one->body, "awaited", awaited) == 0 ? QR_OK : qr_answer_out_of_memory(err);
}

static qr_rc answer_one(const struct qr_request *request, int status, struct qr_reply *reply, qr_err *err)
{
    struct one one = {.request = request};
    const qr_rc rc = qr_db_read(request->quire->db, load_one, &one, err);
    if (rc != QR_OK) {
        json_decref(one.body);
        return rc;
    }
    return qr_reply_with(reply, status, one.body, err);
}

static void add_etag(struct qr_reply *reply, const json_t *base)
{
    qr_reply_header(reply, "ETag", "\"%lld\"", (long long)json_integer_value(json_object_get(base, "version")));
}

qr_rc qr_route_bases_show(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_TRY(answer_one(request, 200, reply, err));
    add_etag(reply, reply->body);
    return QR_OK;
}

/* ---- making ---- */

static qr_rc check_settings(const json_t *settings, struct qr_arena *arena, qr_err *err)
{
    struct qr_settings parsed;
    if (settings && !json_is_object(settings)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "settings must be an object");
    }
    return settings ? qr_settings_parse(settings, arena, &parsed, err) : QR_OK;
}

qr_rc qr_route_bases_add(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    const char *name, *settings;
    QR_TRY(qr_field_text(request->body, "", "name", &name, err));
    if (!name) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "name is missing");
    }
    QR_TRY(qr_check_name(name, err));
    QR_TRY(check_settings(json_object_get(request->body, "settings"), &arena, err));
    QR_TRY(qr_access_check_settings(request, NULL, json_object_get(request->body, "settings"), err));
    QR_TRY(qr_field_object(request->body, "", "settings", &arena, &settings, err));
    char id_text[QR_UUID_TEXT_SIZE];
    qr_uuid id;
    QR_TRY(qr_workflow_add_base(&request->quire->workflow, qr_str_of(name), qr_str_of(settings ? settings : "{}"), &id,
                                err));
    qr_uuid_format(id, id_text);
    struct qr_request made = *request;
    made.params[0] = qr_str_of(id_text);
    return answer_one(&made, 201, reply, err);
}

/* ---- changing ---- */

/* A JSON merge patch (RFC 7386): null takes a setting away. */
static qr_rc merge(json_t *settings, json_t *patch, qr_err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(patch, key, value)
    {
        json_t *old = json_object_get(settings, key);
        if (json_is_null(value)) {
            json_object_del(settings, key);
        } else if (json_is_object(value) && json_is_object(old)) {
            QR_TRY(merge(old, value, err));
        } else if (json_object_set(settings, key, value) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    return QR_OK;
}

struct set_call {
    const struct qr_request *request;
    const char *name;  /* NULL = stays */
    const char *model; /* the named one whose embedding it gets; NULL = none */
    int64_t version;   /* 0 = any */
    json_t *body;
};

static qr_rc merged_settings(struct qr_tx *tx, const struct set_call *call, const struct qr_base *base,
                             struct qr_arena *arena, struct qr_buf *out, qr_err *err)
{
    QR_JSON *settings = settings_json(base);
    QR_JSON *old = settings_json(base);
    json_t *patch = json_object_get(call->request->body, "settings");
    if (!settings || !old) {
        return qr_answer_out_of_memory(err);
    }
    if (call->model) { /* in both: what a model names is not the caller's own wish */
        QR_TRY(qr_model_put_into(tx, call->model, arena, settings, err));
        QR_TRY(qr_model_put_into(tx, call->model, arena, old, err));
    }
    QR_TRY(merge(settings, patch, err));
    QR_TRY(check_settings(settings, arena, err));
    QR_TRY(qr_access_check_settings(call->request, old, settings, err));
    return qr_json_write(settings, out, err);
}

static qr_rc set_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct set_call *call = arg;
    const struct quire *quire = call->request->quire;
    QR_CHANGE(change);
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    QR_CLEANUP(qr_buf_done) struct qr_buf settings = {0};
    struct qr_base base;
    bool found;
    qr_arena_init(&arena, 0);
    QR_TRY(qr_request_base(tx, call->request, &arena, &base, err));
    const qr_uuid id = base.id;
    QR_TRY(qr_change_begin(&change, tx, quire->workflow.ids, &id, 1, err));
    const struct qr_base *locked = qr_change_base(&change, id); /* what counts is what the lock guards */
    if (!locked || locked->status == QR_BASE_DELETING) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "the base is gone");
    }
    QR_TRY(merged_settings(tx, call, locked, &arena, &settings, err));
    QR_TRY(qr_base_set(tx, id, call->version, qr_str_of(call->name ? call->name : locked->name), qr_buf_str(&settings),
                       err));
    QR_TRY(qr_model_choose(&change, locked, settings.data, err));
    QR_TRY(qr_workflow_finish(&change, err));
    QR_TRY(qr_base_find(tx, id, &arena, &found, &base, err));
    QR_FAILPOINT("base.set.before_commit", err);
    return write_base(tx, &base, &arena, &call->body, err); /* here: after the commit nothing may fail any more */
}

/* What the settings would cost, if they were set. */
struct preview {
    const struct set_call *call;
    struct qr_arena *arena;
    struct qr_base base;
    struct qr_settings settings;
};

static qr_rc load_preview(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct preview *preview = arg;
    QR_CLEANUP(qr_buf_done) struct qr_buf settings = {0};
    qr_arena_reset(preview->arena);
    QR_TRY(qr_request_base(tx, preview->call->request, preview->arena, &preview->base, err));
    QR_TRY(merged_settings(tx, preview->call, &preview->base, preview->arena, &settings, err));
    return qr_settings_parse_text(settings.data, preview->arena, &preview->settings, err);
}

static qr_rc answer_preview(const struct set_call *call, struct qr_reply *reply, qr_err *err)
{
    const struct quire *quire = call->request->quire;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct preview preview = {.call = call, .arena = &arena};
    struct qr_estimate estimate;
    QR_TRY(qr_db_read(quire->db, load_preview, &preview, err));
    QR_TRY(qr_estimate_model(quire->db, quire->index, preview.base.id, &preview.settings.embedding, &estimate, err));
    return qr_reply_with(reply, 200, json_pack("{s:b, s:o}", "dry_run", 1, "estimate", qr_json_estimate(&estimate)),
                         err);
}

/* The version that a change is meant for, as a header: the ETag of a base is its version. */
static qr_rc read_if_match(const struct qr_request *request, int64_t *version, qr_err *err)
{
    const qr_str text = qr_str_trim(qr_str_of(request->from->if_match));
    int64_t number = 0;
    if (text.len == 0 || qr_str_equal(text, QR_STR("*"))) {
        return QR_OK;
    }
    if (text.len < 3 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"' ||
        !qr_str_to_i64((qr_str){text.ptr + 1, text.len - 2}, &number) || number < 1 ||
        (*version && *version != number)) {
        return qr_fail(err, QR_CODE_VERSION_CONFLICT, "If-Match names another version than that of the base");
    }
    *version = number;
    return QR_OK;
}

qr_rc qr_route_bases_set(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct set_call call = {.request = request};
    bool dry_run = false;
    QR_TRY(qr_field_bool(request->body, "", "dry_run", &dry_run, err));
    const json_t *version = json_object_get(request->body, "version"), *settings;
    QR_TRY(qr_field_text(request->body, "", "name", &call.name, err));
    QR_TRY(qr_field_text(request->body, "", "model", &call.model, err));
    if (call.name) {
        QR_TRY(qr_check_name(call.name, err));
    }
    if (version && (!json_is_integer(version) || json_integer_value(version) < 1)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "version is a number from 1 on");
    }
    call.version = json_integer_value(version);
    QR_TRY(read_if_match(request, &call.version, err));
    settings = json_object_get(request->body, "settings");
    if (settings && !json_is_object(settings)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "settings must be an object");
    }
    if (dry_run) {
        return answer_preview(&call, reply, err);
    }
    const qr_rc rc = qr_request_write(request, set_in_tx, &call, err);
    if (rc == QR_OK) {
        add_etag(reply, call.body);
    }
    return qr_reply_made(reply, rc, 200, call.body, err);
}

/* ---- deleting and restoring ---- */

static qr_rc read_confirm(const struct qr_request *request, bool *ret_confirmed, qr_err *err)
{
    const char *text = qr_request_query(request, "confirm");
    *ret_confirmed = text && strcmp(text, "true") == 0;
    return !text || *ret_confirmed || strcmp(text, "false") == 0
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "confirm is true or false");
}

static qr_rc answer_job(qr_uuid base_id, qr_uuid job_id, struct qr_reply *reply, qr_err *err)
{
    return qr_reply_with(reply, 202,
                         json_pack("{s:o, s:o}", "id", qr_json_uuid(base_id), "job_id", qr_json_uuid(job_id)), err);
}

qr_rc qr_route_bases_delete(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    qr_uuid id, job_id;
    bool confirmed;
    QR_TRY(read_confirm(request, &confirmed, err));
    QR_TRY(qr_request_base_id(request, &id, err));
    QR_TRY(qr_workflow_delete_base(&request->quire->workflow, id, confirmed, &job_id, err));
    return answer_job(id, job_id, reply, err);
}

qr_rc qr_route_bases_restore(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    qr_uuid id, job_id;
    QR_TRY(qr_request_base_id(request, &id, err));
    QR_TRY(qr_workflow_restore_base(&request->quire->workflow, id, &job_id, err));
    return answer_job(id, job_id, reply, err);
}
