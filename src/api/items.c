/* /api/v1/bases/{b}/items: the list, one item, and what is said about it. items_add.c adds, items_inside.c shows what is in
 * one. */
#include "api/items.h"
#include "api/upload.h"

/* ---- answers about one item ---- */

struct about {
    struct qr_item_answer answer;
    qr_item_answer_fn *fn;
};

static qr_rc load_about(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct about *about = arg;
    struct qr_base base;
    struct qr_item item;
    qr_arena_reset(about->answer.arena);
    json_decref(about->answer.body);
    about->answer.body = NULL;
    QR_TRY(qr_request_base(tx, about->answer.request, about->answer.arena, &base, err));
    QR_TRY(qr_request_item(tx, about->answer.request, &base, about->answer.arena, &item, err));
    return about->fn(tx, &about->answer, &base, &item, err);
}

qr_rc qr_answer_about_item(const struct qr_request *request, qr_item_answer_fn *fn, int status, struct qr_reply *reply,
                           qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct about about = {.answer = {.request = request, .arena = &arena}, .fn = fn};
    const qr_rc rc = qr_db_read(request->quire->db, load_about, &about, err);
    if (rc != QR_OK) {
        json_decref(about.answer.body);
        return rc;
    }
    return qr_reply_with(reply, status, about.answer.body, err);
}

static qr_rc show(struct qr_tx *tx, struct qr_item_answer *answer, const struct qr_base *base QR_UNUSED,
                  struct qr_item *item, qr_err *err)
{
    return qr_json_item(tx, item, answer->arena, &answer->body, err);
}

qr_rc qr_route_items_show(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    return qr_answer_about_item(request, show, 200, reply, err);
}

/* ---- what is in it, at any depth ---- */

static qr_rc sum_up(struct qr_tx *tx, struct qr_item_answer *answer, const struct qr_base *base QR_UNUSED,
                    struct qr_item *item, qr_err *err)
{
    struct qr_item_totals totals = {
        .leaves = 1,
        .completed = item->status == QR_ITEM_COMPLETED,
        .failed = item->status == QR_ITEM_FAILED,
        .idle = item->status == QR_ITEM_IDLE,
    };
    totals.active = 1 - totals.completed - totals.failed - totals.idle;
    if (item->is_container) {
        QR_TRY(qr_items_totals(tx, item, &totals, err));
    }
    answer->body =
        json_pack("{s:I, s:{s:I, s:I, s:I, s:I, s:I}}", "folders", (json_int_t)totals.containers, "files", "total",
                  (json_int_t)totals.leaves, "completed", (json_int_t)totals.completed, "failed",
                  (json_int_t)totals.failed, "active", (json_int_t)totals.active, "idle", (json_int_t)totals.idle);
    return answer->body ? QR_OK : qr_answer_out_of_memory(err);
}

/* The same, and what only a look at each item tells. */
static qr_rc sum_up_chunks(struct qr_tx *tx, struct qr_item_answer *answer, const struct qr_base *base,
                           struct qr_item *item, qr_err *err)
{
    enum { ITEMS_MAX = 100000 };
    int64_t leaves, chunks, tokens;
    QR_TRY(sum_up(tx, answer, base, item, err));
    QR_TRY(qr_items_sum_subtree(tx, item->base_id, item->path, ITEMS_MAX, &leaves, &chunks, &tokens, err));
    return json_object_set_new(answer->body, "chunks", json_integer((json_int_t)chunks)) == 0
               ? QR_OK
               : qr_answer_out_of_memory(err);
}

qr_rc qr_route_totals(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    const char *chunks = qr_request_query(request, "chunks");
    if (chunks && strcmp(chunks, "true") != 0 && strcmp(chunks, "false") != 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "chunks is true or false");
    }
    return qr_answer_about_item(request, chunks && chunks[0] == 't' ? sum_up_chunks : sum_up, 200, reply, err);
}

/* ---- the list ---- */

struct listing {
    const struct qr_request *request;
    struct qr_arena *arena;
    struct qr_item_filter filter;
    enum qr_item_status shown; /* 0 = any; `reading` and `embedding` are stored as `processing` */
    const char *source;        /* NULL = any */
    json_t *data;
    qr_str next;
};

/* `sort=size`, or `sort=-size` for the largest first. */
static qr_rc read_order(const char *sort, struct qr_item_filter *filter, qr_err *err)
{
    static const char *const names[QR_ORDER_END] = {[QR_ORDER_NAME] = "name",
                                                    [QR_ORDER_CREATED] = "created",
                                                    [QR_ORDER_UPDATED] = "updated",
                                                    [QR_ORDER_SIZE] = "size"};
    if (!sort) {
        return QR_OK;
    }
    filter->is_backward = sort[0] == '-';
    for (enum qr_item_order order = QR_ORDER_TREE + 1; order < QR_ORDER_END; order++) {
        if (strcmp(sort + filter->is_backward, names[order]) == 0) {
            filter->order = order;
            return QR_OK;
        }
    }
    return qr_fail(err, QR_CODE_INVALID_VALUE,
                   "sort is one of name, created, updated, size, with a - before it the other way round");
}

static qr_rc read_filter(struct listing *listing, qr_err *err)
{
    const struct qr_request *request = listing->request;
    struct qr_item_filter *filter = &listing->filter;
    const char *status = qr_request_query(request, "status"), *type = qr_request_query(request, "type");
    QR_TRY(qr_request_limit(request, &filter->limit, err));
    QR_TRY(read_order(qr_request_query(request, "sort"), filter, err));
    listing->source = qr_request_query(request, "source");
    filter->name_part = qr_request_query(request, "q");
    listing->shown = status ? qr_item_status_find(qr_str_of(status)) : 0;
    if (status && (!listing->shown || listing->shown == QR_ITEM_DELETING)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "status is one of idle, preparing, processing, reading, embedding, completed, failed");
    }
    filter->status =
        listing->shown == QR_ITEM_READING || listing->shown == QR_ITEM_EMBEDDING ? QR_ITEM_PROCESSING : listing->shown;
    filter->type = type ? qr_item_type_find(qr_str_of(type)) : 0;
    return type && !filter->type ? qr_fail(err, QR_CODE_INVALID_VALUE, "type is one of directory, file, note, url")
                                 : QR_OK;
}

/* `parent` is an item as in paths, or "root". */
static qr_rc find_parent(struct qr_tx *tx, struct listing *listing, const struct qr_base *base, qr_err *err)
{
    const char *parent = qr_request_query(listing->request, "parent");
    struct qr_item item = {0};
    listing->filter.base_id = base->id;
    listing->filter.has_parent = parent != NULL;
    if (parent && strcmp(parent, "root") != 0) {
        struct qr_request named = *listing->request;
        named.params[1] = qr_str_of(parent);
        QR_TRY(qr_request_item(tx, &named, base, listing->arena, &item, err));
    }
    listing->filter.parent_id = item.id;
    return QR_OK;
}

static qr_rc add_to_list(struct qr_tx *tx, struct listing *listing, const struct qr_item *item, qr_err *err)
{
    json_t *json;
    if (listing->shown) {
        enum qr_item_status status;
        QR_TRY(qr_item_shown_status(tx, item, listing->arena, &status, err));
        if (status != listing->shown) {
            return QR_OK;
        }
    }
    QR_TRY(qr_json_item(tx, item, listing->arena, &json, err));
    return json_array_append_new(listing->data, json) == 0 ? QR_OK : qr_answer_out_of_memory(err);
}

/* The one item of the source, as a list. */
static qr_rc load_source(struct qr_tx *tx, struct listing *listing, const struct qr_base *base, qr_err *err)
{
    struct qr_item item;
    bool found, is_deleting = false;
    QR_TRY(qr_item_find_source(tx, base->id, qr_str_of(listing->source), listing->arena, &found, &item, err));
    if (found) {
        QR_TRY(qr_item_path_is_deleting(tx, item.path, &is_deleting, err));
    }
    return found && !is_deleting ? add_to_list(tx, listing, &item, err) : QR_OK;
}

static qr_rc load_listing(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct listing *listing = arg;
    struct qr_base base;
    struct qr_item *items;
    size_t count;
    qr_arena_reset(listing->arena);
    json_array_clear(listing->data);
    listing->next = (qr_str){0};
    QR_TRY(qr_request_base(tx, listing->request, listing->arena, &base, err));
    if (listing->source) {
        return load_source(tx, listing, &base, err);
    }
    QR_TRY(find_parent(tx, listing, &base, err));
    QR_TRY(qr_request_cursor(listing->request, listing->arena, &listing->filter.after, err));
    QR_TRY(qr_items_list(tx, &listing->filter, listing->arena, &items, &count, &listing->next, err));
    for (size_t i = 0; i < count; i++) {
        QR_TRY(add_to_list(tx, listing, &items[i], err));
    }
    return QR_OK;
}

qr_rc qr_route_items_list(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_JSON *data = json_array();
    struct listing listing = {.request = request, .arena = &arena, .data = data};
    if (!data) {
        return qr_answer_out_of_memory(err);
    }
    QR_TRY(read_filter(&listing, err));
    QR_TRY(qr_db_read(request->quire->db, load_listing, &listing, err));
    return qr_reply_with(reply, 200, json_pack("{s:O, s:o}", "data", data, "next_cursor", qr_json_cursor(listing.next)),
                         err);
}

/* ---- what is said about it ---- */

enum { NAME_BYTES_MAX = 1000, ATTRIBUTES_BYTES_MAX = 64 << 10 };

qr_rc qr_route_items_set(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_item_patch patch = {0};
    bool enabled = true;
    qr_uuid base_id, item_id;
    QR_TRY(qr_field_text(request->body, "", "name", &patch.name, err));
    QR_TRY(qr_field_object(request->body, "", "attributes", &arena, &patch.attributes, err));
    QR_TRY(qr_field_bool(request->body, "", "enabled", &enabled, err));
    patch.enabled = json_object_get(request->body, "enabled") ? &enabled : NULL;
    if (patch.name && (!patch.name[0] || strlen(patch.name) > NAME_BYTES_MAX)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "name has 1 to %d bytes", (int)NAME_BYTES_MAX);
    }
    if (patch.attributes && strlen(patch.attributes) > ATTRIBUTES_BYTES_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "attributes has at most %d bytes", (int)ATTRIBUTES_BYTES_MAX);
    }
    QR_TRY(qr_request_item_id(request, &base_id, &item_id, err));
    QR_TRY(qr_workflow_patch(&request->quire->workflow, base_id, item_id, &patch, err));
    return qr_answer_about_item(request, show, 200, reply, err);
}

/* ---- new content ---- */

static qr_rc set_file(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct qr_upload *upload = request->upload;
    qr_uuid base_id, item_id;
    bool is_taken = false;
    QR_TRY(qr_request_item_id(request, &base_id, &item_id, err));
    const qr_rc rc =
        qr_workflow_update_owned(&request->quire->workflow, base_id, item_id, &upload->files[0].bytes, &is_taken, err);
    upload->fate = rc != QR_OK ? QR_UPLOAD_IN_DOUBT : is_taken ? QR_UPLOAD_TAKEN : QR_UPLOAD_UNUSED;
    return rc == QR_OK ? qr_answer_about_item(request, show, 202, reply, err) : rc;
}

qr_rc qr_route_content_set(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    const char *content;
    qr_uuid base_id, item_id;
    bool changed;
    if (request->upload) {
        return set_file(request, reply, err);
    }
    QR_TRY(qr_field_text(request->body, "", "content", &content, err));
    if (!content) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "content is missing");
    }
    QR_TRY(qr_request_item_id(request, &base_id, &item_id, err));
    QR_TRY(qr_workflow_update(&request->quire->workflow, base_id, item_id, qr_str_of(content), &changed, err));
    return qr_answer_about_item(request, show, 202, reply, err);
}
