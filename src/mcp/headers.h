/* What headers say of a message; private to mcp/. */
#pragma once

#include "mcp/call.h"

/* Why Mcp-Method and Mcp-Name do not say what the message says; NULL = they do. */
const char *mcp_header_mismatch(const struct quire_request *from, const char *method, const json_t *params);
