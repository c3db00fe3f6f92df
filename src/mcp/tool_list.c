/* quire_list: the bases; or what is in a base or folder. */
#include "mcp/call.h"

enum { ENTRIES_DEFAULT = 50 };

struct list {
    const char *kind; /* "bases" or "items" */
    const json_t *data, *next_cursor;
};

static qr_rc fetch(const struct mcp_call *call, size_t limit, json_t **ret_answer, qr_err *err)
{
    static const char *const filters[] = {"status", "type", "q", "cursor"};
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    const bool is_of_base = mcp_text(call->args, "base");
    if (is_of_base) {
        mcp_add_path(call, &target, "/items");
    } else if (json_object_get(call->args, "folder") || json_object_get(call->args, "recursive")) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "folder and recursive are about a base: say which in base");
    } else {
        qr_buf_add_text(&target, "/api/v1/bases");
    }
    qr_buf_printf(&target, "?limit=%zu", limit);
    if (is_of_base && !json_is_true(json_object_get(call->args, "recursive"))) {
        const char *folder = mcp_text(call->args, "folder");
        qr_buf_add_text(&target, "&parent=");
        qr_url_add_encoded(&target, folder ? folder : "root");
    }
    for (size_t i = 0; i < QR_COUNT(filters); i++) {
        const char *value = mcp_text(call->args, filters[i]);
        if (value) {
            qr_buf_printf(&target, "&%s=", filters[i]);
            qr_url_add_encoded(&target, value);
        }
    }
    return mcp_ask(call, "GET", &target, NULL, ret_answer, err);
}

/* What one chooses by; quire_status has the rest. */
static json_t *entry_json(const struct list *list, const json_t *entry)
{
    static const char *const of_base[] = {"id", "name", "status"};
    static const char *const of_item[] = {"id",     "name",       "type",   "parent_id",
                                          "status", "size_bytes", "counts", "updated_at"};
    const bool is_base = strcmp(list->kind, "bases") == 0;
    QR_JSON *json = json_object();
    const bool ok = is_base ? mcp_add_members(json, entry, of_base, QR_COUNT(of_base))
                            : mcp_add_members(json, entry, of_item, QR_COUNT(of_item));
    return ok ? json_incref(json) : NULL;
}

static json_t *page_json(const struct list *list, json_t *entries)
{
    const bool has_more = json_is_string(list->next_cursor);
    return json_pack("{s:o, s:O, s:s?}", list->kind, entries, "next_cursor", list->next_cursor, "note",
                     has_more ? "There is more: call again with cursor = next_cursor." : NULL);
}

static json_t *render(void *arg, size_t count)
{
    const struct list *list = arg;
    json_t *entries = json_array();
    for (size_t i = 0; entries && i < count; i++) {
        if (json_array_append_new(entries, entry_json(list, json_array_get(list->data, i))) != 0) {
            json_decref(entries);
            return NULL;
        }
    }
    return page_json(list, entries);
}

static json_t *render_short(void *arg, size_t count)
{
    const struct list *list = arg;
    QR_JSON *entry = entry_json(list, json_array_get(list->data, 0));
    json_t *shortened = entry ? mcp_shortened(entry, count) : NULL;
    return shortened ? page_json(list, json_pack("[o]", shortened)) : NULL;
}

/* Where not all of a page fits, a page with just what fits is asked for, so that its cursor goes on behind that. */
static qr_rc run(const struct mcp_call *call, json_t **ret_result, qr_err *err)
{
    enum { NAME_BYTES_MAX = 4096 };
    size_t limit = (size_t)mcp_number(call->args, "limit", ENTRIES_DEFAULT);
    for (;;) {
        QR_JSON *answer = NULL;
        QR_JSON *result = NULL;
        QR_TRY(fetch(call, limit, &answer, err));
        struct list list = {.kind = mcp_text(call->args, "base") ? "items" : "bases",
                            .data = json_object_get(answer, "data"),
                            .next_cursor = mcp_get(answer, "next_cursor")};
        const size_t size = json_array_size(list.data);
        size_t count = 0;
        QR_TRY(mcp_fit(call, render, &list, size, &count, &result, err));
        if (!(result && count == size) && size == 1) {
            json_decref(result);
            result = NULL;
            QR_TRY(mcp_fit(call, render_short, &list, NAME_BYTES_MAX, &count, &result, err));
            count = 1;
        }
        if ((result && count == size) || limit == 1) {
            *ret_result = json_incref(result);
            return result ? QR_OK : mcp_no_room(call, err);
        }
        limit = QR_MAX(QR_MIN(count, limit - 1), (size_t)1); /* it becomes less each time, so it ends */
    }
}

const struct mcp_tool mcp_tool_list = {
    .name = "quire_list",
    .title = "List bases and items",
    .description =
        "Without base: the knowledge bases there are. With base: what was added to it, or with folder what is in that "
        "folder. Use it to learn names and ids; to find something by its content use quire_search.",
    .is_read_only = true,
    .is_idempotent = true,
    .input_schema = MCP_SCHEMA_BEGIN
    "\"base\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Name or id of a base. Left out: the bases "
    "themselves.\"},"
    "\"folder\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The id of an item of type directory: what is "
    "directly in it. Left out: what was added to the base itself.\"},"
    "\"recursive\":{\"type\":\"boolean\",\"default\":false,\"description\":\"true: all items of the base, at any "
    "depth.\"},"
    "\"q\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Only items with this in their name.\"},"
    "\"status\":{\"type\":\"string\",\"enum\":[\"idle\",\"preparing\",\"processing\",\"completed\",\"failed\"],"
    "\"description\":\"Only items in this state.\"},"
    "\"type\":{\"type\":\"string\",\"enum\":[\"directory\",\"file\",\"note\",\"url\"]},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":200,\"default\":50},"
    "\"cursor\":{\"type\":\"string\",\"minLength\":1,\"description\":\"next_cursor of the call before; everything else "
    "as in that call.\"}," MCP_MAX_TOKENS_SCHEMA "},\"additionalProperties\":false}",
    .output_schema = MCP_SCHEMA_BEGIN
    "\"bases\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"
    "\"name\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"}},\"required\":[\"id\",\"name\",\"status\"]}},"
    "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"
    "\"name\":{\"type\":\"string\"},\"type\":{\"type\":\"string\"},\"parent_id\":{\"type\":[\"string\",\"null\"]},"
    "\"status\":{\"type\":\"string\"},\"size_bytes\":{\"type\":[\"integer\",\"null\"]},"
    "\"counts\":{\"type\":[\"object\",\"null\"],\"description\":\"Of a folder: how many items are directly in it, by "
    "state.\"},\"updated_at\":{\"type\":\"string\"}},\"required\":[\"id\",\"name\",\"type\",\"status\"]}},"
    "\"next_cursor\":{\"type\":[\"string\",\"null\"]},\"note\":{\"type\":[\"string\",\"null\"]}},"
    "\"required\":[\"next_cursor\",\"note\"]}",
    .fn = run,
};
