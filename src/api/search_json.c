/* The answer of a search as JSON: passages with where they are, so that one can be opened at the place. */
#include "api/search.h"
#include "api/text_fragment.h"

/* ---- hits ---- */

/* The place in it, as what opens it understands: words of a web page for browsers, the line of a file for editors. Lines are
 * those of the canonical text, which are those of the file as well, unless it was converted. */
static void add_place(const struct qr_search_hit *hit, bool is_path, struct qr_buf *uri)
{
    const struct qr_chunk *chunk = &hit->row.chunk;
    if (strcmp(hit->item->mime, "text/html") == 0) {
        QR_CLEANUP(qr_buf_done) struct qr_buf words = {0};
        qr_text_fragment_write(chunk->text, hit->highlights, hit->highlight_count, &words);
        if (words.len) {
            qr_buf_printf(uri, "%s:~:text=%s", memchr(uri->data, '#', uri->len) ? "" : "#", words.data);
        }
        uri->failed = words.failed ? words.failed : uri->failed;
    } else if (is_path && chunk->line_start > 0) {
        qr_buf_printf(uri, "#L%lld", (long long)chunk->line_start);
    }
}

/* file:///path#L12 of a file that can be opened, file:///page.html#:~:text=… of a page; null for what has neither path nor
 * address. */
static json_t *uri_json(const struct qr_search_hit *hit)
{
    const qr_str source = hit->item->source;
    if (source.len == 0) {
        return json_null();
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf uri = {0};
    const bool is_path = source.ptr[0] == '/';
    qr_buf_add_text(&uri, is_path ? "file://" : "");
    for (size_t i = 0; i < source.len; i++) {
        const unsigned char c = (unsigned char)source.ptr[i];
        if (c > ' ' && c < 0x7f && !strchr("\"#%<>?[\\]^`{|}", c)) {
            qr_buf_add_char(&uri, (char)c);
        } else if (is_path) {
            qr_buf_printf(&uri, "%%%02X", c);
        } else {
            qr_buf_add_char(&uri, c < 0x80 ? (char)c : '?'); /* a URL is written in ASCII already */
        }
    }
    add_place(hit, is_path, &uri);
    return uri.failed == QR_CODE_NONE ? json_string(uri.data) : NULL;
}

static json_t *source_json(const struct qr_search_hit *hit, struct qr_arena *arena)
{
    const char *text = qr_arena_copy_utf8(arena, hit->item->source);
    return !text ? NULL : text[0] ? json_string(text) : json_null();
}

static json_t *highlights_json(const struct qr_search_hit *hit)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < hit->highlight_count; i++) {
        const struct qr_range *range = &hit->highlights[i];
        if (json_array_append_new(list, json_pack("[I, I]", (json_int_t)range->start, (json_int_t)range->end)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *place_json(const struct qr_search_hit *hit)
{
    const struct qr_chunk *chunk = &hit->row.chunk;
    return json_pack("{s:s%, s:o, s:I, s:I, s:I, s:I, s:s%, s:o, s:o}", "heading",
                     chunk->heading.ptr ? chunk->heading.ptr : "", chunk->heading.len, "page",
                     chunk->page ? json_integer((json_int_t)chunk->page) : json_null(), "start",
                     (json_int_t)chunk->start, "end", (json_int_t)chunk->end, "line_start",
                     (json_int_t)chunk->line_start, "line_end", (json_int_t)chunk->line_end, "text", chunk->text.ptr,
                     chunk->text.len, "highlights", highlights_json(hit), "uri", uri_json(hit));
}

/* What a score is: only those of one kind can be compared. PostgreSQL ranks in its own way, unless several bases are scored
 * again together. */
static const char *score_kind(const struct qr_search *search, const struct qr_search_answer *answer)
{
    if (answer->is_reranked) {
        return "rerank";
    }
    if (answer->is_fused) {
        return "fused";
    }
    if (answer->mode == QR_MODE_VECTOR) {
        return "cosine";
    }
    return search->base_count < 2 && strcmp(qr_db_driver_name(search->db), "postgresql") == 0 ? "ts_rank" : "bm25";
}

static json_t *leg_json(const struct qr_fused *found, enum qr_leg leg)
{
    return found->ranks[leg] ? json_pack("{s:i, s:f, s:f}", "rank", found->ranks[leg], "score", found->scores[leg],
                                         "adds", found->parts[leg])
                             : json_null();
}

static json_t *reasons_json(const struct qr_search_hit *hit, bool is_reranked)
{
    QR_JSON *json = json_pack("{s:o, s:o}", "text", leg_json(&hit->found, QR_LEG_TEXT), "vector",
                              leg_json(&hit->found, QR_LEG_VECTOR));
    if (json && is_reranked) {
        json_t *fused = json_pack("{s:i, s:f}", "rank", hit->fused_rank, "score", hit->fused_score);
        json_t *rerank = hit->rerank_score < 0 ? json_null() : json_pack("{s:f}", "score", hit->rerank_score);
        if (json_object_set_new(json, "fused", fused) != 0 || json_object_set_new(json, "rerank", rerank) != 0) {
            return NULL;
        }
    }
    return json_incref(json);
}

static json_t *hit_json(const struct qr_search_hit *hit, size_t rank, const char *kind, bool with_reasons,
                        struct qr_arena *arena)
{
    char item_id[QR_UUID_TEXT_SIZE], base_id[QR_UUID_TEXT_SIZE];
    qr_uuid_format(hit->item->id, item_id);
    qr_uuid_format(hit->item->base_id, base_id);
    QR_JSON *json = json_pack(
        "{s:I, s:f, s:s, s:o, s:s, s:s, s:I, s:s, s:o}", "rank", (json_int_t)rank, "score", hit->found.hit.score,
        "score_kind", kind, "chunk_id",
        json_sprintf("%s:%lld:%lld", item_id, (long long)hit->found.hit.generation, (long long)hit->found.hit.ordinal),
        "base_id", base_id, "item_id", item_id, "generation", (json_int_t)hit->found.hit.generation, "name",
        hit->item->name, "source", source_json(hit, arena));
    QR_JSON *place = place_json(hit);
    if (!json || !place || json_object_update(json, place) != 0) {
        return NULL;
    }
    if (with_reasons && json_object_set_new(json, "explain", reasons_json(hit, strcmp(kind, "rerank") == 0)) != 0) {
        return NULL;
    }
    return json_incref(json);
}

/* ---- the answer ---- */

static json_t *degraded_json(uint32_t degraded)
{
    static const struct {
        enum qr_degraded bit;
        const char *name;
    } names[] = {{QR_DEGRADED_VECTOR, "vector"},
                 {QR_DEGRADED_THRESHOLD, "threshold"},
                 {QR_DEGRADED_QUERY, "query"},
                 {QR_DEGRADED_MODELS, "models"},
                 {QR_DEGRADED_RERANK, "rerank"}};
    json_t *list = json_array();
    for (size_t i = 0; list && i < QR_COUNT(names); i++) {
        if ((degraded & names[i].bit) && json_array_append_new(list, json_string(names[i].name)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *words_json(const struct qr_wanted *wanted)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < wanted->count; i++) {
        if (json_array_append_new(list, json_stringn(wanted->tokens[i].ptr, wanted->tokens[i].len)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* How many hits the reranker was given, and why it was of no use; null where it was not asked. */
static json_t *rerank_json(const struct qr_search_answer *answer)
{
    const qr_err *error = &answer->rerank_error;
    if (error->code != QR_CODE_NONE) {
        return json_pack("{s:i, s:{s:s, s:s}}", "count", 0, "error", "code", qr_code_info(error->code)->name, "message",
                         error->msg);
    }
    return answer->is_reranked ? json_pack("{s:I, s:n}", "count", (json_int_t)answer->rerank_count, "error")
                               : json_null();
}

static json_t *explain_json(const struct qr_search *search, const struct qr_search_answer *answer)
{
    return json_pack("{s:o, s:o, s:s, s:{s:f, s:f}}", "rerank", rerank_json(answer), "tokens",
                     words_json(&answer->wanted), "fusion",
                     search->fusion.fusion == QR_FUSION_RANKS ? "rrf" : "weighted", "weights", "text",
                     search->fusion.weights[QR_LEG_TEXT], "vector", search->fusion.weights[QR_LEG_VECTOR]);
}

json_t *qr_json_search(const struct qr_search *search, const struct qr_search_answer *answer, bool with_reasons,
                       struct qr_arena *arena)
{
    const char *kind = score_kind(search, answer);
    QR_JSON *hits = json_array();
    for (size_t i = 0; i < answer->count; i++) {
        if (json_array_append_new(hits, hit_json(&answer->hits[i], i + 1, kind, with_reasons, arena)) != 0) {
            return NULL;
        }
    }
    QR_JSON *json = json_pack("{s:O, s:s, s:o, s:b}", "hits", hits, "mode", qr_search_mode_name(answer->mode),
                              "degraded", degraded_json(answer->degraded), "relaxed", (int)answer->is_relaxed);
    if (json && with_reasons && json_object_set_new(json, "explain", explain_json(search, answer)) != 0) {
        return NULL;
    }
    return json_incref(json);
}
