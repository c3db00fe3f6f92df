/* quire_search: passages, each with all that is needed to cite it. */
#include "mcp/call.h"

enum {
    HITS_DEFAULT = 10,
    TOP_K_MAX = 100, /* of the API */
    BASES_MAX = 32,  /* of the API, at a time */
    TEXT_SLACK = 64, /* bytes: below it a part of a passage says nothing */
};

struct search {
    const struct mcp_call *call;
    const json_t *answer; /* of the API */
    size_t offset;        /* hits before it were shown already */
    size_t limit;
    size_t base_count, left_out_count; /* bases that were searched, and that could not be */
};

/* ---- the bases ---- */

/* All that the caller sees and that work. */
static qr_rc find_bases(struct search *search, json_t **ret_ids, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    QR_JSON *answer = NULL;
    QR_JSON *ids = json_array();
    const json_t *base;
    size_t i;
    qr_buf_add_text(&target, "/api/v1/bases?limit=200");
    QR_TRY(mcp_ask(search->call, "GET", &target, NULL, &answer, err));
    json_array_foreach(json_object_get(answer, "data"), i, base)
    {
        const char *status = mcp_text(base, "status");
        if (!status || strcmp(status, "ready") != 0 || json_array_size(ids) == BASES_MAX) {
            search->left_out_count++;
        } else if (json_array_append(ids, mcp_get(base, "id")) != 0) {
            return mcp_out_of_memory(err);
        }
    }
    *ret_ids = json_incref(ids);
    return ids ? QR_OK : mcp_out_of_memory(err);
}

/* ---- the request ---- */

/* Takes an argument along, where it was given. */
static bool take(json_t *body, const char *member, const json_t *args, const char *name)
{
    json_t *value = json_object_get(args, name);
    return !value || json_object_set(body, member, value) == 0;
}

static json_t *body_json(const struct search *search, const json_t *bases)
{
    const json_t *args = search->call->args;
    /* one more than is shown, so that it is known whether there are more */
    const size_t top_k = QR_MIN(search->offset + search->limit + 1, (size_t)TOP_K_MAX);
    QR_JSON *filter = json_object();
    QR_JSON *body = json_pack("{s:O, s:O, s:I, s:O}", "base_ids", bases, "query", mcp_get(args, "query"), "top_k",
                              (json_int_t)top_k, "filter", filter);
    return take(filter, "under", args, "under") && take(filter, "types", args, "types") &&
                   take(filter, "path", args, "path") && take(body, "mode", args, "mode") &&
                   take(body, "context", args, "context")
               ? json_incref(body)
               : NULL;
}

/* ---- the answer ---- */

static json_t *hit_json(const json_t *hit)
{
    static const char *const members[] = {"rank", "score", "base_id",    "item_id",  "name",  "source", "heading",
                                          "page", "uri",   "line_start", "line_end", "start", "end",    "text"};
    QR_JSON *json = json_object();
    return mcp_add_members(json, hit, members, QR_COUNT(members)) ? json_incref(json) : NULL;
}

static const char *note(const struct search *search, size_t next, size_t shown, size_t left)
{
    if (next) {
        return "There are more hits: call again with offset = next_offset, or with a narrower query.";
    }
    if (search->left_out_count) {
        return "Some bases were not searched: quire_list shows which are not ready; name up to 32 in bases.";
    }
    if (search->base_count == 0) {
        return "There is no base to search yet: quire_add makes one.";
    }
    return shown == 0 && left == 0 ? "Nothing fits. Try other words, or fewer of them." : NULL;
}

static json_t *answer_json(const struct search *search, json_t *hits, size_t shown)
{
    const json_t *found = json_object_get(search->answer, "hits");
    const size_t end = search->offset + shown;
    const size_t next = json_array_size(found) > end ? end : 0;
    const char *text = note(search, next, shown, json_array_size(found));
    return json_pack("{s:o, s:O, s:O, s:o, s:s?}", "hits", hits, "mode", mcp_get(search->answer, "mode"), "degraded",
                     mcp_get(search->answer, "degraded"), "next_offset",
                     next ? json_integer((json_int_t)next) : json_null(), "note", text);
}

static json_t *render_hits(void *arg, size_t count)
{
    const struct search *search = arg;
    const json_t *found = json_object_get(search->answer, "hits");
    json_t *hits = json_array();
    for (size_t i = 0; hits && i < count; i++) {
        if (json_array_append_new(hits, hit_json(json_array_get(found, search->offset + i))) != 0) {
            json_decref(hits);
            return NULL;
        }
    }
    return answer_json(search, hits, count);
}

/* Where there is no room for the first hit, its beginning; its ids and places are whole, so that the rest can be read. */
static json_t *render_part(void *arg, size_t count)
{
    const struct search *search = arg;
    QR_JSON *hit = hit_json(json_array_get(json_object_get(search->answer, "hits"), search->offset));
    const json_t *text = json_object_get(hit, "text");
    const qr_str whole = {json_string_value(text), json_string_length(text)};
    const qr_str part = qr_utf8_prefix(whole, count);
    QR_JSON *shortened = json_object_set_new(hit, "text", json_stringn(part.ptr, part.len)) == 0 &&
                                 json_object_set_new(hit, "is_cut", json_true()) == 0
                             ? mcp_shortened(hit, QR_MAX(count, (size_t)TEXT_SLACK))
                             : NULL;
    return shortened ? answer_json(search, json_pack("[O]", shortened), 1) : NULL;
}

static qr_rc fit(struct search *search, json_t **ret_result, qr_err *err)
{
    const json_t *found = json_object_get(search->answer, "hits");
    const size_t size = json_array_size(found);
    const size_t left = size > search->offset ? QR_MIN(size - search->offset, search->limit) : 0;
    QR_JSON *result = NULL;
    size_t count = 0;
    QR_TRY(mcp_fit(search->call, render_hits, search, left, &count, &result, err));
    if (left > 0 && (!result || count == 0)) {
        const size_t text_len = json_string_length(json_object_get(json_array_get(found, search->offset), "text"));
        json_decref(result);
        result = NULL;
        QR_TRY(mcp_fit(search->call, render_part, search, text_len, &count, &result, err));
    }
    *ret_result = json_incref(result);
    return result ? QR_OK : mcp_no_room(search->call, err);
}

static qr_rc run(const struct mcp_call *call, json_t **ret_result, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    QR_JSON *bases = json_incref(json_object_get(call->args, "bases"));
    QR_JSON *answer = NULL;
    struct search search = {.call = call,
                            .offset = (size_t)mcp_number(call->args, "offset", 0),
                            .limit = (size_t)mcp_number(call->args, "limit", HITS_DEFAULT)};
    if (!bases) {
        QR_TRY(find_bases(&search, &bases, err));
    }
    search.base_count = json_array_size(bases);
    if (search.base_count) {
        QR_JSON *body = body_json(&search, bases);
        qr_buf_add_text(&target, "/api/v1/search");
        QR_TRY(body ? mcp_ask(call, "POST", &target, body, &answer, err) : mcp_out_of_memory(err));
    } else {
        answer = json_pack("{s:[], s:s, s:[]}", "hits", "mode", "text", "degraded");
    }
    search.answer = answer;
    return fit(&search, ret_result, err);
}

const struct mcp_tool mcp_tool_search = {
    .name = "quire_search",
    .title = "Search the knowledge bases",
    .description = "Finds passages in the user's documents by words and by meaning. Use it first whenever the answer "
                   "may be in their files, notes or saved pages. Each hit has its text and its citation: name, "
                   "heading, page, lines, uri, base_id, item_id, start and end (bytes). In the query, \"quoted words\" "
                   "must occur, -word must not, path:docs/*.md and title:word narrow it. To see more around a hit, "
                   "call quire_read with its base_id, item_id and start.",
    .is_read_only = true,
    .is_idempotent = true,
    .input_schema = MCP_SCHEMA_BEGIN
    "\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":131072,\"description\":\"What to look for, as a "
    "person would type it.\"},"
    "\"bases\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1},\"minItems\":1,\"maxItems\":32,"
    "\"description\":\"Names or ids of bases. Left out: all of them.\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,\"default\":10,\"description\":\"At most so many "
    "hits.\"},"
    "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":99,\"default\":0,\"description\":\"Hits to pass over: "
    "next_offset of the call before.\"},"
    "\"mode\":{\"type\":\"string\",\"enum\":[\"auto\",\"text\",\"vector\",\"hybrid\"],\"default\":\"auto\","
    "\"description\":\"text: by words only. vector: by meaning only.\"},"
    "\"context\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":10,\"default\":0,\"description\":\"So many "
    "neighbouring pieces are shown with each hit.\"},"
    "\"under\":{\"type\":\"string\",\"description\":\"The id of a folder or file: only in it. Needs one base in "
    "bases.\"},"
    "\"types\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"directory\",\"file\",\"note\","
    "\"url\"]},"
    "\"description\":\"Only in items of these types.\"},"
    "\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000,\"description\":\"Only in items whose path fits, "
    "as in docs/*.md.\"}," MCP_MAX_TOKENS_SCHEMA "},\"required\":[\"query\"],\"additionalProperties\":false}",
    .output_schema = MCP_SCHEMA_BEGIN
    "\"hits\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"rank\":{\"type\":\"integer\"},\"score\":{\"type\":\"number\"},\"base_id\":{\"type\":\"string\"},"
    "\"item_id\":{\"type\":\"string\"},\"name\":{\"type\":\"string\"},\"source\":{\"type\":[\"string\",\"null\"]},"
    "\"heading\":{\"type\":\"string\"},\"page\":{\"type\":[\"integer\",\"null\"]},"
    "\"uri\":{\"type\":[\"string\",\"null\"]},\"line_start\":{\"type\":\"integer\"},"
    "\"line_end\":{\"type\":\"integer\"},\"start\":{\"type\":\"integer\"},\"end\":{\"type\":\"integer\"},"
    "\"text\":{\"type\":\"string\"},\"is_cut\":{\"type\":\"boolean\",\"description\":\"The text is only the beginning: "
    "quire_read shows the rest.\"}},"
    "\"required\":[\"rank\",\"base_id\",\"item_id\",\"name\",\"heading\",\"page\",\"uri\",\"line_start\",\"line_"
    "end\","
    "\"start\",\"end\",\"text\"]}},"
    "\"mode\":{\"type\":\"string\"},\"degraded\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
    "\"description\":\"What could not be done as asked: vector = by words only.\"},"
    "\"next_offset\":{\"type\":[\"integer\",\"null\"]},\"note\":{\"type\":[\"string\",\"null\"]}},"
    "\"required\":[\"hits\",\"mode\",\"degraded\",\"next_offset\",\"note\"]}",
    .fn = run,
};
