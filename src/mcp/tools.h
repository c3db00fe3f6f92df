/* The table of tools. Private to mcp/. */
#pragma once

#include "mcp/call.h"

enum { MCP_LIST_TTL_MS = 3600 * 1000 }; /* how long a client may keep the list: it changes with the program alone */

/* NULL when there is none. */
const struct mcp_tool *mcp_tool_find(const char *name);
/* The result of tools/list, always in the same order; NULL when out of memory. */
json_t *mcp_tools_json(bool is_modern);
/* The result of a call, a failure too (MCP-4); NULL when out of memory. */
json_t *mcp_tool_call(const struct mcp_tool *tool, const struct mcp_call *call);
