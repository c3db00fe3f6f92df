/* POST /api/v1/bases/{b}/search: hits with where they are, so that one can be opened at the place. */
#include "search/search.h"

#include "api/jobs.h"
#include "api/lookup.h"

enum { TOP_K_DEFAULT = 10, QUERY_BYTES_MAX = 8192 };

/* ---- hits ---- */

/* file:///path#L12 of a file that can be opened; null for what has no path. */
static json_t *uri_json(const struct qr_search_hit *hit)
{
    const qr_str source = hit->item->source;
    if (source.len == 0) {
        return json_null();
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf uri = {0};
    qr_buf_add_text(&uri, source.ptr[0] == '/' ? "file://" : "");
    for (size_t i = 0; i < source.len; i++) {
        const unsigned char c = (unsigned char)source.ptr[i];
        if (c > ' ' && c < 0x7f && !strchr("\"#%<>?[\\]^`{|}", c)) {
            qr_buf_add_char(&uri, (char)c);
        } else if (source.ptr[0] == '/') {
            qr_buf_printf(&uri, "%%%02X", c);
        } else {
            qr_buf_add_char(&uri, c < 0x80 ? (char)c : '?'); /* a URL is written in ASCII already */
        }
    }
    if (source.ptr[0] == '/' && hit->row.chunk.line_start > 0) {
        qr_buf_printf(&uri, "#L%lld", (long long)hit->row.chunk.line_start);
    }
    return uri.failed == QR_CODE_NONE ? json_string(uri.data) : NULL;
}

static json_t *source_json(const struct qr_search_hit *hit, struct qr_arena *arena)
{
    const char *text = qr_arena_copy_utf8(arena, hit->item->source);
    return !text ? NULL : text[0] ? json_string(text) : json_null();
}

static json_t *place_json(const struct qr_search_hit *hit)
{
    const struct qr_chunk *chunk = &hit->row.chunk;
    return json_pack(
        "{s:s%, s:o, s:I, s:I, s:I, s:I, s:s%, s:o}", "heading", chunk->heading.ptr ? chunk->heading.ptr : "",
        chunk->heading.len, "page", chunk->page ? json_integer((json_int_t)chunk->page) : json_null(), "start",
        (json_int_t)chunk->start, "end", (json_int_t)chunk->end, "line_start", (json_int_t)chunk->line_start,
        "line_end", (json_int_t)chunk->line_end, "text", chunk->text.ptr, chunk->text.len, "uri", uri_json(hit));
}

static json_t *hit_json(const struct qr_search_hit *hit, size_t rank, struct qr_arena *arena)
{
    char item_id[QR_UUID_TEXT_SIZE];
    qr_uuid_format(hit->item->id, item_id);
    json_t *json = json_pack(
        "{s:I, s:f, s:s, s:o, s:s, s:I, s:s, s:o}", "rank", (json_int_t)rank, "score", hit->score, "score_kind", "bm25",
        "chunk_id",
        json_sprintf("%s:%lld:%lld", item_id, (long long)hit->row.generation, (long long)hit->row.chunk.ordinal),
        "item_id", item_id, "generation", (json_int_t)hit->row.generation, "name", hit->item->name, "source",
        source_json(hit, arena));
    QR_JSON *place = place_json(hit);
    if (!json || !place || json_object_update(json, place) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* ---- the request ---- */

struct base_call {
    const struct qr_request *request;
    qr_uuid id;
};

static qr_rc find_ready_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_call *call = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_base base;
    qr_arena_init(&arena, 0);
    QR_TRY(qr_request_base(tx, call->request, &arena, &base, err));
    call->id = base.id;
    return base.status == QR_BASE_FAILED
               ? qr_fail(err, QR_CODE_BASE_FAILED, "the base %s has failed: %s", base.name, base.error_message)
               : QR_OK;
}

static qr_rc read_mode(const json_t *body, qr_err *err)
{
    const char *mode;
    QR_TRY(qr_field_text(body, "", "mode", &mode, err));
    return !mode || strcmp(mode, "auto") == 0 || strcmp(mode, "text") == 0
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "mode is auto or text");
}

static qr_rc read_request(const struct qr_request *request, struct qr_search *search, qr_err *err)
{
    const char *query;
    const json_t *top_k = json_object_get(request->body, "top_k");
    QR_TRY(read_mode(request->body, err));
    QR_TRY(qr_field_text(request->body, "", "query", &query, err));
    if (!query || !query[0] || strlen(query) > QUERY_BYTES_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "query has 1 to %d bytes", (int)QUERY_BYTES_MAX);
    }
    search->query = qr_str_of(query);
    search->top_k = top_k ? (int)QR_MIN(json_integer_value(top_k), QR_SEARCH_TOP_K_MAX + 1) : TOP_K_DEFAULT;
    if (top_k && (!json_is_integer(top_k) || search->top_k < 1 || search->top_k > QR_SEARCH_TOP_K_MAX)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "top_k is a number from 1 to %d", (int)QR_SEARCH_TOP_K_MAX);
    }
    struct base_call call = {.request = request};
    QR_TRY(qr_db_read(request->quire->db, find_ready_base, &call, err));
    search->base_id = call.id;
    return QR_OK;
}

qr_rc qr_route_base_search(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    const struct quire *quire = request->quire;
    const int64_t began_ms = qr_clock_mono_ms(quire->clock);
    struct qr_search search = {.db = quire->db, .index = quire->index};
    struct qr_search_hit *hits;
    size_t count;
    QR_TRY(read_request(request, &search, err));
    QR_TRY(qr_search_text(&search, &arena, &hits, &count, err));
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++) {
        if (json_array_append_new(list, hit_json(&hits[i], i + 1, &arena)) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return qr_reply_with(reply, 200,
                         json_pack("{s:o, s:s, s:[], s:I}", "hits", list, "mode", "text", "degraded", "took_ms",
                                   (json_int_t)(qr_clock_mono_ms(quire->clock) - began_ms)),
                         err);
}
