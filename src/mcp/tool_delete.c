/* quire_delete: items, and everything in them. The only tool that destroys something. */
#include "mcp/call.h"

static qr_rc run(const struct mcp_call *call, json_t **ret_result, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    QR_JSON *body = json_pack("{s:O}", "ids", json_object_get(call->args, "items"));
    QR_JSON *answer = NULL;
    mcp_add_path(call, &target, "/items/delete");
    QR_TRY(body ? mcp_ask(call, "POST", &target, body, &answer, err) : mcp_out_of_memory(err));
    const size_t count = json_array_size(json_object_get(answer, "accepted"));
    QR_JSON *structured =
        json_pack("{s:I, s:s, s:O, s:O}", "count", (json_int_t)count, "note",
                  count ? "They are not found any more; what they took is freed in the background."
                        : "Nothing of this is in the base: it is gone already, or belongs to another.",
                  "skipped", mcp_get(answer, "skipped"), "accepted", mcp_get(answer, "accepted"));
    return mcp_fit_texts(call, structured, ret_result, err);
}

const struct mcp_tool mcp_tool_delete = {
    .name = "quire_delete",
    .title = "Delete items",
    .description = "Deletes items of a base for good, with everything in them: of a folder all of its files. The "
                   "user's own files on disk stay; notes are lost. Ask the user before, unless they told you to.",
    .is_destructive = true,
    .is_idempotent = true,
    .input_schema = MCP_SCHEMA_BEGIN
    "\"base\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Name or id of the base.\"},"
    "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1},\"minItems\":1,\"maxItems\":50,"
    "\"description\":\"Ids of the items, whole.\"}," MCP_MAX_TOKENS_SCHEMA
    "},\"required\":[\"base\",\"items\"],\"additionalProperties\":false}",
    .output_schema = MCP_SCHEMA_BEGIN
    "\"count\":{\"type\":\"integer\"},\"accepted\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"skipped\":{\"type\":\"array\"},\"note\":{\"type\":\"string\"}},"
    "\"required\":[\"count\"]}",
    .fn = run,
};
