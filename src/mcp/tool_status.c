/* quire_status: how far a base or an item is, and why it is not further. */
#include "mcp/call.h"

enum { FAILED_SHOWN = 5 };

/* What is wrong, with what to do about it; null where nothing is. */
static json_t *reason_json(const json_t *error)
{
    const char *name = mcp_text(error, "code");
    const qr_code code = name ? qr_code_find(name) : QR_CODE_COUNT;
    if (!json_is_object(error)) {
        return json_null();
    }
    return json_pack("{s:O, s:O, s:s}", "code", mcp_get(error, "code"), "message", mcp_get(error, "message"),
                     "next_step", code == QR_CODE_COUNT ? "" : qr_code_info(code)->advice);
}

/* ---- an item ---- */

static const char *item_note(const json_t *item)
{
    static const struct {
        const char *status, *note;
    } notes[] = {
        {"completed", "It can be searched."},
        {"failed", "It could not be processed: error says why. What search shows of it, if anything, is from before."},
        {"idle", "It is only registered: nothing reads it until processing is asked for."},
    };
    const char *status = mcp_text(item, "status");
    for (size_t i = 0; status && i < QR_COUNT(notes); i++) {
        if (strcmp(status, notes[i].status) == 0) {
            return notes[i].note;
        }
    }
    return "It is being worked on: ask again in a few seconds.";
}

static qr_rc show_item(const struct mcp_call *call, json_t **ret_result, qr_err *err)
{
    static const char *const members[] = {"progress",        "counts",  "warnings",   "chunk_count", "generation",
                                          "live_generation", "enabled", "indexed_at", "source"};
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    QR_JSON *item = NULL;
    mcp_add_path(call, &target, "");
    QR_TRY(mcp_ask(call, "GET", &target, NULL, &item, err));
    const bool is_searchable =
        mcp_number(item, "live_generation", 0) > 0 && json_is_true(json_object_get(item, "enabled"));
    QR_JSON *structured = json_pack("{s:O, s:O, s:O, s:b, s:o, s:s, s:O, s:O}", "base_id", mcp_get(item, "base_id"),
                                    "item_id", mcp_get(item, "id"), "status", mcp_get(item, "status"), "searchable",
                                    is_searchable, "error", reason_json(json_object_get(item, "error")), "note",
                                    item_note(item), "name", mcp_get(item, "name"), "type", mcp_get(item, "type"));
    if (!mcp_add_members(structured, item, members, QR_COUNT(members))) {
        return mcp_out_of_memory(err);
    }
    return mcp_fit_texts(call, structured, ret_result, err);
}

/* ---- a base ---- */

static qr_rc list_items(const struct mcp_call *call, const char *filter, json_t **ret_items, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    QR_JSON *answer = NULL;
    mcp_add_path(call, &target, "/items?");
    qr_buf_add_text(&target, filter);
    QR_TRY(mcp_ask(call, "GET", &target, NULL, &answer, err));
    *ret_items = json_incref(json_object_get(answer, "data"));
    return QR_OK;
}

static json_t *failed_json(const json_t *items)
{
    QR_JSON *list = json_array();
    const json_t *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        json_t *entry = json_pack("{s:O, s:O, s:o}", "item_id", mcp_get(item, "id"), "name", mcp_get(item, "name"),
                                  "error", reason_json(json_object_get(item, "error")));
        if (json_array_append_new(list, entry) != 0) {
            return NULL;
        }
    }
    return json_incref(list);
}

static const char *base_note(const json_t *base, const json_t *failed, bool is_working)
{
    const char *status = mcp_text(base, "status");
    if (status && strcmp(status, "ready") != 0) {
        return "The base has failed: error says why, and its owner can restore it.";
    }
    if (is_working) {
        return "Items are being worked on: ask again in a few seconds.";
    }
    return json_array_size(failed) ? "Some items have failed; quire_list with status failed shows all of them."
                                   : "Everything that was added can be searched.";
}

static qr_rc show_base(const struct mcp_call *call, json_t **ret_result, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0}, filter = {0};
    QR_JSON *base = NULL;
    QR_JSON *failed = NULL;
    QR_JSON *preparing = NULL;
    QR_JSON *processing = NULL;
    mcp_add_path(call, &target, "");
    qr_buf_printf(&filter, "limit=%d&status=failed", (int)FAILED_SHOWN);
    QR_TRY(qr_buf_check(&filter, err));
    QR_TRY(mcp_ask(call, "GET", &target, NULL, &base, err));
    QR_TRY(list_items(call, filter.data, &failed, err));
    QR_TRY(list_items(call, "limit=1&parent=root&status=preparing", &preparing, err));
    QR_TRY(list_items(call, "limit=1&parent=root&status=processing", &processing, err));
    const bool is_working = json_array_size(preparing) + json_array_size(processing) > 0;
    QR_JSON *structured = json_pack(
        "{s:O, s:O, s:b, s:o, s:s, s:O, s:o, s:O, s:O}", "base_id", mcp_get(base, "id"), "status",
        mcp_get(base, "status"), "working", is_working, "error", reason_json(json_object_get(base, "error")), "note",
        base_note(base, failed, is_working), "name", mcp_get(base, "name"), "failed_items", failed_json(failed),
        "model_build", mcp_get(base, "model_build"), "circuits", mcp_get(base, "circuits"));
    return mcp_fit_texts(call, structured, ret_result, err);
}

static qr_rc run(const struct mcp_call *call, json_t **ret_result, qr_err *err)
{
    return mcp_text(call->args, "item") ? show_item(call, ret_result, err) : show_base(call, ret_result, err);
}

const struct mcp_tool mcp_tool_status = {
    .name = "quire_status",
    .title = "Status of a base or an item",
    .description =
        "Says whether an item that was added can be searched yet, how far it is, and if it failed why and what to do. "
        "Without item: whether the base works, whether something is being worked on, and which items failed.",
    .is_read_only = true,
    .is_idempotent = true,
    .input_schema = MCP_SCHEMA_BEGIN
    "\"base\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Name or id of the base.\"},"
    "\"item\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Id of the item.\"}," MCP_MAX_TOKENS_SCHEMA
    "},\"required\":[\"base\"],\"additionalProperties\":false}",
    .output_schema = MCP_SCHEMA_BEGIN
    "\"base_id\":{\"type\":\"string\"},\"item_id\":{\"type\":\"string\"},\"name\":{\"type\":\"string\"},"
    "\"type\":{\"type\":\"string\"},\"source\":{\"type\":[\"string\",\"null\"]},\"status\":{\"type\":\"string\"},"
    "\"searchable\":{\"type\":\"boolean\"},\"generation\":{\"type\":\"integer\"},"
    "\"live_generation\":{\"type\":\"integer\"},\"enabled\":{\"type\":\"boolean\"},"
    "\"progress\":{\"type\":[\"object\",\"null\"]},\"counts\":{\"type\":[\"object\",\"null\"]},"
    "\"chunk_count\":{\"type\":\"integer\"},\"warnings\":{\"type\":\"array\"},"
    "\"indexed_at\":{\"type\":[\"string\",\"null\"]},"
    "\"error\":{\"type\":[\"object\",\"null\"],\"properties\":{\"code\":{\"type\":\"string\"},\"message\":{"
    "\"type\":"
    "\"string\"},\"next_step\":{\"type\":\"string\"}}},"
    "\"working\":{\"type\":\"boolean\"},\"failed_items\":{\"type\":\"array\"},"
    "\"model_build\":{\"type\":[\"object\",\"null\"]},\"circuits\":{\"type\":[\"array\",\"null\"]},"
    "\"note\":{\"type\":\"string\"}},\"required\":[\"base_id\",\"status\"]}",
    .fn = run,
};
