/* GET /api/v1/bases/{b}/items/{i}/content, /chunks, /assets: what is in an item. */
#include "api/items.h"
#include "store/assets.h"

/* ---- what the reads need to know of the item ---- */

struct inside {
    const struct qr_request *request;
    struct qr_arena *arena;
    struct qr_base base;
    struct qr_item item;
    bool has_deleting_below, has_text;
    int64_t model; /* the live one: how chunks are is told of its vectors */
    struct qr_artifact text;
    qr_uuid after; /* of assets: the one before the page */
    int limit;     /* one above the page's: is there more? */
    struct qr_asset *assets;
    size_t asset_count;
};

static qr_rc load_inside(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct inside *inside = arg;
    qr_arena_reset(inside->arena);
    QR_TRY(qr_request_base(tx, inside->request, inside->arena, &inside->base, err));
    return qr_request_item(tx, inside->request, &inside->base, inside->arena, &inside->item, err);
}

/* ---- content ---- */

static qr_rc load_text(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct inside *inside = arg;
    QR_TRY(load_inside(tx, arg, err));
    /* what search shows, or before there is anything to show, what was read already */
    return qr_artifact_find(tx, inside->item.id, QR_ARTIFACT_TEXT, inside->item.live_generation, inside->arena,
                            &inside->has_text, &inside->text, err);
}

/* Which bytes of it; a limit of 0 is all of it. */
static qr_rc read_part(const struct qr_request *request, int64_t *ret_offset, int64_t *ret_limit, qr_err *err)
{
    enum { PART_BYTES_MIN = 8, PART_BYTES_MAX = 4 << 20 }; /* one character has room in the least */
    const char *offset = qr_request_query(request, "offset"), *limit = qr_request_query(request, "limit");
    if (offset && (!qr_str_to_i64(qr_str_of(offset), ret_offset) || *ret_offset < 0 || *ret_offset > INT64_MAX / 2)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "offset is a whole number from 0 on");
    }
    *ret_limit = offset ? PART_BYTES_MAX : 0;
    if (limit &&
        (!qr_str_to_i64(qr_str_of(limit), ret_limit) || *ret_limit < PART_BYTES_MIN || *ret_limit > PART_BYTES_MAX)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "limit is a whole number from %d to %d", (int)PART_BYTES_MIN,
                       (int)PART_BYTES_MAX);
    }
    return QR_OK;
}

/* Without the rest of a character that began before, and the beginning of one that ends behind it. */
static qr_str whole_characters(qr_str part, int64_t *offset)
{
    while (part.len && (part.ptr[0] & 0xC0) == 0x80) {
        part = (qr_str){part.ptr + 1, part.len - 1};
        ++*offset;
    }
    for (size_t cut = 0; cut < 4 && cut < part.len && !qr_utf8_valid(part); cut++) {
        part.len--;
    }
    return part;
}

qr_rc qr_route_content_show(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_arena_init(&arena, 0);
    struct inside inside = {.request = request, .arena = &arena};
    int64_t offset = 0, limit = 0;
    QR_TRY(read_part(request, &offset, &limit, err));
    QR_TRY(qr_db_read(request->quire->db, load_text, &inside, err));
    if (!inside.has_text) {
        const char *name = inside.item.name;
        return inside.item.is_container
                   ? qr_fail(err, QR_CODE_NOT_FOUND, "%s has no text of its own: it holds other items", name)
                   : qr_fail(err, QR_CODE_NOT_COMPLETED, "%s has not been read yet", name);
    }
    QR_TRY(limit ? qr_artifact_read_part(&request->quire->artifacts, request->quire->db, &inside.text, offset,
                                         (size_t)limit, &text, err)
                 : qr_artifact_read(&request->quire->artifacts, request->quire->db, &inside.text, &text, err));
    const qr_str bytes = limit ? whole_characters(qr_buf_str(&text), &offset) : qr_buf_str(&text);
    return qr_reply_with(reply, 200,
                         json_pack("{s:o, s:I, s:I, s:I}", "text", json_stringn(bytes.ptr, bytes.len), "generation",
                                   (json_int_t)inside.text.generation, "offset", (json_int_t)offset, "size_bytes",
                                   (json_int_t)inside.text.size_bytes),
                         err);
}

/* ---- chunks ---- */

static qr_rc load_for_chunks(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct inside *inside = arg;
    struct qr_base_models models;
    QR_TRY(load_inside(tx, arg, err));
    QR_TRY(qr_base_models(&inside->base, inside->arena, &models, err));
    inside->model = models.live_key;
    inside->has_deleting_below = false;
    return inside->item.is_container && inside->item.status == QR_ITEM_COMPLETED
               ? qr_items_has_deleting(tx, inside->base.id, inside->item.path, &inside->has_deleting_below, err)
               : QR_OK;
}

/* CHUNKS-1 */
static qr_rc require_listable(const struct inside *inside, qr_err *err)
{
    if (inside->item.status != QR_ITEM_COMPLETED) {
        return qr_fail(err, QR_CODE_NOT_COMPLETED, "%s is %s: chunks are listed of completed items", inside->item.name,
                       qr_item_status_name(inside->item.status));
    }
    return inside->has_deleting_below
               ? qr_fail(err, QR_CODE_NOT_COMPLETED, "something in %s is being deleted", inside->item.name)
               : QR_OK;
}

static json_t *chunk_json(const struct qr_chunk_row *row)
{
    const struct qr_chunk *chunk = &row->chunk;
    char item_id[QR_UUID_TEXT_SIZE];
    qr_uuid_format(row->item_id, item_id);
    return json_pack("{s:o, s:I, s:s%, s:s%, s:o, s:I, s:I, s:I, s:I, s:I, s:s}", "id",
                     json_sprintf("%s:%lld:%lld", item_id, (long long)row->generation, (long long)chunk->ordinal),
                     "ordinal", (json_int_t)chunk->ordinal, "text", chunk->text.ptr, chunk->text.len, "heading",
                     chunk->heading.ptr ? chunk->heading.ptr : "", chunk->heading.len, "page",
                     chunk->page ? json_integer((json_int_t)chunk->page) : json_null(), "start",
                     (json_int_t)chunk->start, "end", (json_int_t)chunk->end, "line_start",
                     (json_int_t)chunk->line_start, "line_end", (json_int_t)chunk->line_end, "token_count",
                     (json_int_t)chunk->token_count, "status", row->has_failed ? "failed" : "indexed");
}

static json_t *chunks_json(const struct qr_chunk_row *rows, size_t count, int limit)
{
    const size_t page = QR_MIN(count, (size_t)limit);
    json_t *data = json_array();
    for (size_t i = 0; data && i < page; i++) {
        if (json_array_append_new(data, chunk_json(&rows[i])) != 0) {
            json_decref(data);
            data = NULL;
        }
    }
    json_t *cursor = rows && count > page ? json_sprintf("%lld", (long long)rows[page].chunk.ordinal) : json_null();
    return json_pack("{s:o, s:o}", "data", data, "next_cursor", cursor);
}

qr_rc qr_route_chunks(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct inside inside = {.request = request, .arena = &arena};
    const char *cursor = qr_request_query(request, "cursor");
    struct qr_chunk_row *rows = NULL;
    size_t count = 0;
    int limit;
    int64_t from = 0;
    QR_TRY(qr_request_limit(request, &limit, err));
    if (cursor && (!qr_str_to_i64(qr_str_of(cursor), &from) || from < 0)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "cursor is not one that a list has answered with");
    }
    QR_TRY(qr_db_read(request->quire->db, load_for_chunks, &inside, err));
    QR_TRY(require_listable(&inside, err));
    if (!inside.item.is_container) {
        QR_TRY(qr_index_chunks(request->quire->index, inside.base.id, inside.item.id, inside.item.live_generation, from,
                               inside.model, limit + 1, &arena, &rows, &count, err));
    }
    return qr_reply_with(reply, 200, chunks_json(rows, count, limit), err);
}

/* ---- assets ---- */

static qr_rc load_assets(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct inside *inside = arg;
    QR_TRY(load_inside(tx, arg, err));
    const int64_t live = inside->item.live_generation;
    return qr_assets_list(tx, inside->item.id, live ? live : inside->item.generation, inside->after, inside->limit,
                          inside->arena, &inside->assets, &inside->asset_count, err);
}

static json_t *asset_json(const struct qr_asset *asset)
{
    json_t *error =
        asset->code[0] ? json_pack("{s:s, s:s}", "code", asset->code, "message", asset->message) : json_null();
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "id", qr_json_uuid(asset->id), "kind",
                     asset->kind, "mime", asset->mime, "place", asset->place, "analysis_status",
                     qr_analysis_status_name(asset->status), "text", asset->text, "error", error, "created_at",
                     qr_json_time(asset->created_ms), "updated_at", qr_json_time(asset->updated_ms));
}

qr_rc qr_route_assets(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct inside inside = {.request = request, .arena = &arena};
    QR_TRY(qr_request_limit(request, &inside.limit, err));
    QR_TRY(qr_request_cursor_id(request, &inside.after, err));
    const size_t page = (size_t)inside.limit++;
    QR_TRY(qr_db_read(request->quire->db, load_assets, &inside, err));
    json_t *data = json_array();
    for (size_t i = 0; data && i < QR_MIN(inside.asset_count, page); i++) {
        if (json_array_append_new(data, asset_json(&inside.assets[i])) != 0) {
            json_decref(data);
            data = NULL;
        }
    }
    const qr_uuid next = inside.asset_count > page ? inside.assets[page - 1].id : (qr_uuid){0};
    return qr_reply_with(reply, 200, json_pack("{s:o, s:o}", "data", data, "next_cursor", qr_json_uuid(next)), err);
}
