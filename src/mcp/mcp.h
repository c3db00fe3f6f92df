/* MCP, the Model Context Protocol: tools by which agents search, read and add. One engine for every transport: a JSON-RPC
 * message becomes at most one answer. It keeps nothing between two messages, so any thread may ask, and a client may speak
 * either era: 2026-07-28, in which each request says its version, or the older handshake with `initialize`.
 * It keeps the promises MCP-1 to MCP-4. */
#pragma once

#include "base/json.h"

#include <quire/quire.h>

enum {
    QUIRE_MCP_MESSAGE_BYTES_MAX = 16 << 20, /* a note with its escapes */
};

/* Sends a request as quire_request_call does; the answer is JSON, the caller's. */
typedef qr_rc quire_mcp_ask_fn(void *arg, const struct quire_request *request, int *ret_status, json_t **ret_answer,
                               qr_err *err);

struct quire_mcp {
    quire_mcp_ask_fn *ask;
    void *arg;
    bool is_http; /* headers come along, and must say what the message says */
};

/* The ask of a data folder that is open in this process: `arg` is the struct quire. */
quire_mcp_ask_fn quire_mcp_ask_here;

struct quire_mcp_answer {
    int status;         /* as HTTP has it: 200, 202 where there is no answer, 400, 404 */
    struct qr_buf text; /* one line of JSON without its end; empty = there is no answer. To be released */
};

/* Answers a message. `from` says who asks, and where is_http its headers; its method, target and body are not looked at.
 * Fails only without memory; what is wrong with the message is an answer. */
qr_rc quire_mcp_message(const struct quire_mcp *mcp, const struct quire_request *from, qr_str message,
                        struct quire_mcp_answer *ret_answer, qr_err *err);

/* Streamable HTTP in the form of quire_request_call, for a server to call instead: what goes to /mcp is answered here, a POST
 * with one message by JSON, and everything else by quire_request_call. */
#define QUIRE_MCP_PATH "/mcp"
int quire_mcp_http_call(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response);
