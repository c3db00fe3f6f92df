/* POST /api/v1/bases/{b}/items/delete, /reindex, /retry, /refresh: requests on a selection of items (REQ-3, REQ-4). */
#include "api/base_models.h"
#include "api/items.h"
#include "api/refused.h"

enum { IDS_MAX = 1000 };

/* ---- the request ---- */

static qr_rc read_selection(const struct qr_request *request, struct qr_arena *arena,
                            struct qr_selection *ret_selection, qr_err *err)
{
    const json_t *list = json_object_get(request->body, "ids");
    if (!json_is_array(list) || json_array_size(list) > IDS_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "ids must be an array of at most %d ids", (int)IDS_MAX);
    }
    const size_t count = json_array_size(list);
    qr_uuid *ids = qr_arena_array(arena, count + 1, sizeof ids[0]);
    if (!ids) {
        return qr_answer_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || !qr_uuid_parse(qr_str_of(text), &ids[i])) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "ids[%zu] is not an id", i);
        }
    }
    *ret_selection = (struct qr_selection){.ids = ids, .count = count};
    return qr_request_base_id(request, &ret_selection->base_id, err);
}

/* ---- the answer ---- */

static json_t *accepted_json(const struct qr_selection_answer *answer)
{
    json_t *accepted = json_array();
    for (size_t i = 0; accepted && i < answer->accepted_count; i++) {
        if (json_array_append_new(accepted, qr_json_uuid(answer->accepted[i])) != 0) {
            json_decref(accepted);
            accepted = NULL;
        }
    }
    return accepted;
}

static json_t *skipped_json(const struct qr_selection_answer *answer)
{
    json_t *skipped = json_array();
    for (size_t i = 0; skipped && i < answer->skipped_count; i++) {
        json_t *entry =
            json_pack("{s:o, s:s}", "id", qr_json_uuid(answer->skipped[i].id), "reason", answer->skipped[i].reason);
        if (json_array_append_new(skipped, entry) != 0) {
            json_decref(skipped);
            skipped = NULL;
        }
    }
    return skipped;
}

static json_t *answer_json(const struct qr_selection_answer *answer)
{
    return json_pack("{s:o, s:o, s:o}", "accepted", accepted_json(answer), "skipped", skipped_json(answer), "job_id",
                     qr_json_uuid(answer->job_id));
}

/* ---- delete, retry, refresh ---- */

typedef qr_rc selection_fn(const struct qr_workflow *workflow, const struct qr_selection *selection,
                           struct qr_arena *arena, struct qr_selection_answer *ret_answer, qr_err *err);

static qr_rc call_on_selection(const struct qr_request *request, selection_fn *fn, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_selection selection;
    struct qr_selection_answer answer = {0};
    qr_err failure = {0};
    QR_TRY(read_selection(request, &arena, &selection, err));
    const qr_rc rc = fn(&request->quire->workflow, &selection, &arena, &answer, &failure);
    if (rc != QR_OK) {
        *err = failure;
        /* a delete stands though its cleanup begins later (DEL-3) */
        reply->details = failure.code == QR_CODE_ENQUEUE_FAILED ? answer_json(&answer) : NULL;
        return rc;
    }
    return qr_reply_with(reply, 202, answer_json(&answer), err);
}

qr_rc qr_route_items_delete(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    return call_on_selection(request, qr_workflow_delete, reply, err);
}

qr_rc qr_route_items_retry(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_TRY(call_on_selection(request, qr_workflow_retry, reply, err));
    (void)qr_refused_try_again(request->quire, NULL); /* what waits for a server, too; the answer stands */
    return QR_OK;
}

qr_rc qr_route_items_refresh(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    return call_on_selection(request, qr_workflow_refresh, reply, err);
}

/* ---- reindex ---- */

/* {"counts": {"processing": 3}}: what is not at rest. */
static json_t *blocking_json(const struct qr_status_counts *counts)
{
    json_t *of = json_object();
    for (enum qr_item_status status = QR_ITEM_IDLE; of && status < QR_ITEM_DELETING; status++) {
        if (counts->of[status] &&
            json_object_set_new(of, qr_item_status_name(status), json_integer((json_int_t)counts->of[status])) != 0) {
            json_decref(of);
            of = NULL;
        }
    }
    return json_pack("{s:o}", "counts", of);
}

struct model_call {
    qr_uuid base_id;
    struct qr_arena *arena;
    bool found;
    struct qr_settings settings;
};

static qr_rc load_model(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct model_call *call = arg;
    struct qr_base base;
    QR_TRY(qr_base_find(tx, call->base_id, call->arena, &call->found, &base, err));
    return call->found ? qr_settings_parse_text(base.settings, call->arena, &call->settings, err) : QR_OK;
}

/* What it would cost: {"items", "chunks", "to_embed", …}. */
static qr_rc add_estimate(struct quire *quire, const struct qr_selection *selection,
                          const struct qr_selection_answer *answer, const struct qr_reindex_estimate *counted,
                          struct qr_arena *arena, json_t *body, qr_err *err)
{
    struct model_call model = {.base_id = selection->base_id, .arena = arena};
    struct qr_estimate estimate = {0};
    QR_TRY(qr_db_read(quire->db, load_model, &model, err));
    if (model.found) {
        QR_TRY(qr_estimate_items(quire->db, quire->index, selection->base_id, answer->accepted, answer->accepted_count,
                                 &model.settings.embedding, &estimate, err));
    }
    json_t *json = qr_json_estimate(&estimate);
    if (json_object_set_new(json, "items", json_integer((json_int_t)counted->item_count)) != 0 ||
        json_object_set(body, "estimate", json) != 0) {
        json_decref(json);
        return qr_answer_out_of_memory(err);
    }
    json_decref(json);
    return QR_OK;
}

qr_rc qr_route_items_reindex(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_selection selection;
    struct qr_selection_answer answer = {0};
    struct qr_status_counts counts = {0};
    struct qr_reindex_estimate estimate = {0};
    qr_err failure = {0};
    bool dry_run = false;
    QR_TRY(qr_field_bool(request->body, "", "dry_run", &dry_run, err));
    QR_TRY(read_selection(request, &arena, &selection, err));
    const qr_rc rc = qr_workflow_reindex(&request->quire->workflow, &selection, dry_run, &arena, &answer, &counts,
                                         &estimate, &failure);
    if (rc != QR_OK) {
        *err = failure;
        reply->details = failure.code == QR_CODE_NOT_TERMINAL ? blocking_json(&counts) : NULL;
        return rc;
    }
    QR_JSON *body = answer_json(&answer);
    if (body && dry_run) {
        QR_TRY(add_estimate(request->quire, &selection, &answer, &estimate, &arena, body, err));
    }
    return qr_reply_with(reply, dry_run ? 200 : 202, json_incref(body), err);
}
