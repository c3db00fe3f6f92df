/* What the tools share: who calls with which arguments, requests to the API, answers that fit. Private to mcp/. */
#pragma once

#include "base/url.h"
#include "mcp/mcp.h"

struct mcp_call {
    const struct quire_mcp *mcp;
    const struct quire_request *from; /* who asks */
    const json_t *args;               /* as the tool's input schema has them */
    bool is_modern;                   /* the result says that it is complete */
    int64_t max_tokens;
};

/* On QR_OK *ret_result is the result of tools/call, made by mcp_fit or mcp_result. */
typedef qr_rc mcp_tool_fn(const struct mcp_call *call, json_t **ret_result, qr_err *err);

struct mcp_tool {
    const char *name, *title;
    const char *description; /* for the model that chooses among tools */
    bool is_read_only, is_destructive, is_idempotent, is_open_world;
    const char *input_schema, *output_schema; /* JSON Schema 2020-12; the input's is what arguments are checked by */
    mcp_tool_fn *fn;
};

extern const struct mcp_tool mcp_tool_search, mcp_tool_read, mcp_tool_list, mcp_tool_add, mcp_tool_status,
    mcp_tool_delete;

/* What every input schema has beside its own. */
#define MCP_MAX_TOKENS_DEFAULT 8000
#define MCP_MAX_TOKENS_MIN     200
#define MCP_TEXT_OF(value)     MCP_TEXT_OF_(value)
#define MCP_TEXT_OF_(value)    #value
/* clang-format off */
#define MCP_MAX_TOKENS_SCHEMA                                                                                          \
    "\"max_tokens\":{\"type\":\"integer\",\"minimum\":" MCP_TEXT_OF(MCP_MAX_TOKENS_MIN)                                  \
    ",\"maximum\":100000,\"default\":" MCP_TEXT_OF(MCP_MAX_TOKENS_DEFAULT)                                             \
    ",\"description\":\"The whole result costs at most this many tokens. Everything is in it twice, as text and "       \
    "structured.\"}"
/* What every schema begins with: an object, whose properties follow. */
#define MCP_SCHEMA_BEGIN                                                                                               \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"properties\":{"
/* clang-format on */

/* ---- schema.c ---- */

/* The arguments against the tool's input schema: `unknown_field` or `invalid_value`, in words that name the argument. */
qr_rc mcp_check_args(const char *input_schema, const json_t *args, qr_err *err);

/* ---- ask.c ---- */

/* Of whoever asks, and nothing of what their own request is about. */
struct quire_request mcp_request_of(const struct quire_request *from, const char *method, const char *target);
/* A request of whoever asks. A refusal becomes the error that it names. `body` may be NULL. */
qr_rc mcp_ask(const struct mcp_call *call, const char *method, const struct qr_buf *target, const json_t *body,
              json_t **ret_answer, qr_err *err);
/* "/api/v1/bases/BASE" and, where the call has an `item`, "/items/ITEM", and then the rest. */
void mcp_add_path(const struct mcp_call *call, struct qr_buf *target, const char *rest);

/* An argument, or a member of an answer; NULL or `otherwise` where there is none. */
const char *mcp_text(const json_t *object, const char *name);
json_int_t mcp_number(const json_t *object, const char *name, json_int_t otherwise);
/* The member as it is, null where there is none; borrowed. */
json_t *mcp_get(const json_t *object, const char *name);
/* Adds these members of `from`, null where there is none; false when out of memory. */
bool mcp_add_members(json_t *object, const json_t *from, const char *const *names, size_t count);
qr_rc mcp_out_of_memory(qr_err *err);

/* ---- budget.c ---- */

/* About as the project estimates tokens, and never less: a byte is a quarter of a token, a character of three bytes or more a
 * whole one. White space counts too. */
int64_t mcp_tokens(qr_str text);

/* The result of a tool: structured, and the same as text. NULL when out of memory. */
json_t *mcp_result(const struct mcp_call *call, const json_t *structured);
/* A result that the model reads as a failure: "code: message Next: advice". */
json_t *mcp_error_result(const struct mcp_call *call, const qr_err *err);

/* The structured content that shows the first `count`; NULL when out of memory. With a larger count it costs more, but that
 * all of them may cost less than all but one. */
typedef json_t *mcp_render_fn(void *arg, size_t count);
/* The result with the largest count of at most `count_max` that costs no more than was asked for; NULL where not even 0
 * does. */
qr_rc mcp_fit(const struct mcp_call *call, mcp_render_fn *render, void *arg, size_t count_max, size_t *ret_count,
              json_t **ret_result, qr_err *err);
/* The value with every text in it cut to `bytes_max` bytes, but never below what an id has; NULL when out of memory. */
json_t *mcp_shortened(const json_t *value, size_t bytes_max);
/* The result with the longest texts that there is room for; where there is none for all members, with the first of them, which
 * are the most important. Of MCP_MAX_TOKENS_MIN three ids always fit, so that what was done is never answered with an error. */
qr_rc mcp_fit_texts(const struct mcp_call *call, const json_t *structured, json_t **ret_result, qr_err *err);
/* `invalid_value`: max_tokens is too small for anything. */
qr_rc mcp_no_room(const struct mcp_call *call, qr_err *err);
