/* The table of tools, as clients are told of it, and the calls. */
#include "mcp/tools.h"

static const struct mcp_tool *const tools[] = {&mcp_tool_search, &mcp_tool_read,   &mcp_tool_list,
                                               &mcp_tool_add,    &mcp_tool_status, &mcp_tool_delete};

const struct mcp_tool *mcp_tool_find(const char *name)
{
    for (size_t i = 0; i < QR_COUNT(tools); i++) {
        if (strcmp(tools[i]->name, name) == 0) {
            return tools[i];
        }
    }
    return NULL;
}

static json_t *tool_json(const struct mcp_tool *tool)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:{s:s, s:b, s:b, s:b, s:b}}", "name", tool->name, "title", tool->title,
                     "description", tool->description, "inputSchema", json_loads(tool->input_schema, 0, NULL),
                     "outputSchema", json_loads(tool->output_schema, 0, NULL), "annotations", "title", tool->title,
                     "readOnlyHint", tool->is_read_only, "destructiveHint", tool->is_destructive, "idempotentHint",
                     tool->is_idempotent, "openWorldHint", tool->is_open_world);
}

json_t *mcp_tools_json(bool is_modern)
{
    QR_JSON *list = json_array();
    for (size_t i = 0; i < QR_COUNT(tools); i++) {
        if (json_array_append_new(list, tool_json(tools[i])) != 0) {
            return NULL;
        }
    }
    return is_modern ? json_pack("{s:s, s:O, s:i, s:s}", "resultType", "complete", "tools", list, "ttlMs",
                                 MCP_LIST_TTL_MS, "cacheScope", "public")
                     : json_pack("{s:O}", "tools", list);
}

json_t *mcp_tool_call(const struct mcp_tool *tool, const struct mcp_call *call)
{
    json_t *result = NULL;
    qr_err err = {0};
    qr_rc rc = mcp_check_args(tool->input_schema, call->args, &err);
    rc = rc == QR_OK ? tool->fn(call, &result, &err) : rc;
    return rc == QR_OK ? result : mcp_error_result(call, &err);
}
