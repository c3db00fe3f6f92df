/* The engine: from the bytes of a message to its answer. The order of the checks is the protocol's: form, era, envelope, method,
 * headers, and only then parameters. */
#include "mcp/headers.h"

#include "mcp/tools.h"

#define META(name) "io.modelcontextprotocol/" name

/* JSON-RPC's codes, and those of MCP. */
enum {
    CODE_PARSE = -32700,
    CODE_INVALID_REQUEST = -32600,
    CODE_NO_METHOD = -32601,
    CODE_INVALID_PARAMS = -32602,
    CODE_INTERNAL = -32603,
    CODE_HEADER_MISMATCH = -32020,
    CODE_VERSION = -32022,
};

static const char modern_version[] = "2026-07-28";
/* Newest first; of a version that we do not know, the first is offered. */
static const char *const older_versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

static const char instructions[] =
    "Quire holds knowledge bases: folders, files, notes and web pages that can be searched. Begin with quire_search; "
    "it answers with passages and where each one is (base_id, item_id, lines, bytes, uri), which you can cite. "
    "quire_read shows more of an item around a passage. quire_list shows bases and what is in them. quire_add takes "
    "notes, URLs and paths; what was added can be found once quire_status says completed.";

struct message {
    const struct quire_mcp *mcp;
    const struct quire_request *from;
    json_t *json;       /* the whole; borrowed */
    const json_t *id;   /* NULL = a notification */
    const char *method; /* NULL = an answer */
    const json_t *params;
    bool is_modern;
    /* the answer; NULL where memory ran out */
    int status;
    bool is_refused; /* then `error` */
    json_t *result;
    json_t *error;
};

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- errors ---- */

/* Always false, for whoever checks. `status` is what HTTP says of it; `error` is taken. */
static bool refuse_with(struct message *message, int status, json_t *error)
{
    message->status = status;
    message->is_refused = true;
    message->error = error;
    return false;
}

static bool refuse(struct message *message, int code, int status, const char *text)
{
    return refuse_with(message, status, json_pack("{s:i, s:s}", "code", code, "message", text));
}

/* NULL when out of memory. */
static json_t *versions_json(void)
{
    QR_JSON *versions = json_pack("[s]", modern_version);
    for (size_t i = 0; i < QR_COUNT(older_versions); i++) {
        if (json_array_append_new(versions, json_string(older_versions[i])) != 0) {
            return NULL;
        }
    }
    return json_incref(versions);
}

static bool refuse_version(struct message *message, const char *requested)
{
    return refuse_with(message, 400,
                       json_pack("{s:i, s:s, s:{s:o, s:s}}", "code", CODE_VERSION, "message",
                                 "this version of the protocol is not spoken here", "data", "supported",
                                 versions_json(), "requested", requested));
}

/* ---- the form ---- */

static bool read_id(struct message *message)
{
    const json_t *id = json_object_get(message->json, "id");
    if (id && !json_is_string(id) && !json_is_integer(id)) {
        return refuse(message, CODE_INVALID_REQUEST, 400, "an id is a string or a whole number");
    }
    message->id = id;
    return true;
}

static bool read_form(struct message *message)
{
    const json_t *json = message->json;
    const char *version = mcp_text(json, "jsonrpc");
    const json_t *method = json_object_get(json, "method");
    if (json_is_array(json)) {
        return refuse(message, CODE_INVALID_REQUEST, 400, "batches are not taken: send one message at a time");
    }
    if (!json_is_object(json)) {
        return refuse(message, CODE_INVALID_REQUEST, 400, "a message is a JSON object");
    }
    if (!read_id(message)) {
        return false;
    }
    if (!version || strcmp(version, "2.0") != 0) {
        return refuse(message, CODE_INVALID_REQUEST, 400, "jsonrpc must be \"2.0\"");
    }
    if (!method && (json_object_get(json, "result") || json_object_get(json, "error"))) {
        return true;
    }
    if (!json_is_string(method)) {
        return refuse(message, CODE_INVALID_REQUEST, 400, "a message has a method, which is a string");
    }
    message->method = json_string_value(method);
    message->params = json_object_get(json, "params");
    return true;
}

/* ---- the era ---- */

static const char *version_header(const struct message *message)
{
    return message->mcp->is_http ? quire_request_header(message->from, "MCP-Protocol-Version") : NULL;
}

static bool check_envelope(struct message *message, const json_t *meta)
{
    const json_t *version = json_object_get(meta, META("protocolVersion"));
    const json_t *info = json_object_get(meta, META("clientInfo"));
    const char *header = version_header(message);
    if (!json_is_string(version)) {
        return refuse(message, CODE_INVALID_PARAMS, 400, "_meta needs " META("protocolVersion") ", a string");
    }
    if (message->mcp->is_http && (!header || strcmp(header, json_string_value(version)) != 0)) {
        return refuse(message, CODE_HEADER_MISMATCH, 400,
                      "the header MCP-Protocol-Version does not say what _meta says");
    }
    if (strcmp(json_string_value(version), modern_version) != 0) {
        return refuse_version(message, json_string_value(version));
    }
    if (!json_is_object(json_object_get(meta, META("clientCapabilities")))) {
        return refuse(message, CODE_INVALID_PARAMS, 400, "_meta needs " META("clientCapabilities") ", an object");
    }
    return !info || json_is_object(info) ||
           refuse(message, CODE_INVALID_PARAMS, 400, META("clientInfo") " of _meta is an object");
}

/* By how the message looks: one that says its version in _meta is of the new era, and so is one that HTTP says it of. */
static bool find_era(struct message *message)
{
    const json_t *meta = json_object_get(message->params, "_meta");
    const char *header = version_header(message);
    if (message->params && !json_is_object(message->params)) {
        return refuse(message, CODE_INVALID_PARAMS, message->mcp->is_http ? 400 : 200, "params is an object");
    }
    message->is_modern = json_object_get(meta, META("protocolVersion")) ||
                         strcmp(message->method, "server/discover") == 0 ||
                         (header && strcmp(header, modern_version) == 0);
    if (message->is_modern) {
        return check_envelope(message, meta);
    }
    return !header || is_one_of(header, older_versions, QR_COUNT(older_versions)) || refuse_version(message, header);
}

/* ---- methods ---- */

static json_t *server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "quire", "title", "Quire", "version", quire_version());
}

static void discover(struct message *message)
{
    message->result =
        json_pack("{s:s, s:o, s:{s:{}}, s:{s:o}, s:s, s:i, s:s}", "resultType", "complete", "supportedVersions",
                  versions_json(), "capabilities", "tools", "_meta", META("serverInfo"), server_info(), "instructions",
                  instructions, "ttlMs", MCP_LIST_TTL_MS, "cacheScope", "public");
}

static void initialize(struct message *message)
{
    const char *asked = mcp_text(message->params, "protocolVersion");
    if (!asked) {
        refuse(message, CODE_INVALID_PARAMS, 200, "initialize needs protocolVersion, a string");
        return;
    }
    const bool is_known = is_one_of(asked, older_versions, QR_COUNT(older_versions));
    message->result = json_pack("{s:s, s:{s:{}}, s:o, s:s}", "protocolVersion", is_known ? asked : older_versions[0],
                                "capabilities", "tools", "serverInfo", server_info(), "instructions", instructions);
}

static void ping(struct message *message)
{
    message->result = json_object();
}

static void list_tools(struct message *message)
{
    if (json_object_get(message->params, "cursor")) { /* all of them are on one page, so nobody was given one */
        refuse(message, CODE_INVALID_PARAMS, 200, "cursor is not one that a list has answered with");
        return;
    }
    message->result = mcp_tools_json(message->is_modern);
}

static void call_tool(struct message *message)
{
    const char *name = mcp_text(message->params, "name");
    const json_t *args = json_object_get(message->params, "arguments");
    const struct mcp_tool *tool = name ? mcp_tool_find(name) : NULL;
    if (!tool) {
        refuse(message, CODE_INVALID_PARAMS, 200,
               name ? "there is no tool of this name: tools/list has those that there are" : "name is missing");
        return;
    }
    if (args && !json_is_object(args)) {
        refuse(message, CODE_INVALID_PARAMS, 200, "arguments is an object");
        return;
    }
    QR_JSON *none = json_object();
    const struct mcp_call call = {.mcp = message->mcp,
                                  .from = message->from,
                                  .args = args ? args : none,
                                  .is_modern = message->is_modern,
                                  .max_tokens =
                                      QR_MAX(mcp_number(args, "max_tokens", MCP_MAX_TOKENS_DEFAULT),
                                             (json_int_t)MCP_MAX_TOKENS_MIN)}; /* else refused as an argument */
    message->result = mcp_tool_call(tool, &call);
}

static const struct method {
    const char *name;
    bool is_modern, is_older; /* the eras that know it */
    void (*fn)(struct message *message);
} methods[] = {
    {"server/discover", true, false, discover}, {"initialize", false, true, initialize}, {"ping", false, true, ping},
    {"tools/list", true, true, list_tools},     {"tools/call", true, true, call_tool},
};

static const struct method *find_method(const struct message *message)
{
    for (size_t i = 0; i < QR_COUNT(methods); i++) {
        if (strcmp(methods[i].name, message->method) == 0) {
            return (message->is_modern ? methods[i].is_modern : methods[i].is_older) ? &methods[i] : NULL;
        }
    }
    return NULL;
}

static void answer_request(struct message *message)
{
    if (!find_era(message)) {
        return;
    }
    const struct method *method = find_method(message);
    if (!method) { /* to older clients 404 is the end of a session */
        refuse(message, CODE_NO_METHOD, message->is_modern ? 404 : 200, "there is no such method here");
        return;
    }
    const char *mismatch = message->mcp->is_http && message->is_modern
                               ? mcp_header_mismatch(message->from, message->method, message->params)
                               : NULL;
    if (mismatch) {
        refuse(message, CODE_HEADER_MISMATCH, 400, mismatch);
        return;
    }
    message->status = 200;
    method->fn(message);
}

/* ---- the answer ---- */

static qr_rc write_answer(const struct message *message, struct quire_mcp_answer *ret_answer, qr_err *err)
{
    json_t *id = message->id ? json_incref((json_t *)message->id) : json_null();
    QR_JSON *json = json_pack("{s:s, s:o, s:O}", "jsonrpc", "2.0", "id", id, message->is_refused ? "error" : "result",
                              message->is_refused ? message->error : message->result);
    ret_answer->status = message->status;
    return json ? qr_json_write(json, &ret_answer->text, err) : mcp_out_of_memory(err);
}

static void refuse_unparsed(struct message *message, const qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_buf_printf(&text, "the message is not JSON that is taken here: %s", err->msg);
    const bool is_too_large = err->rc == QR_TOO_LARGE;
    refuse(message, is_too_large ? CODE_INVALID_REQUEST : CODE_PARSE, is_too_large ? 413 : 400,
           text.failed == QR_CODE_NONE ? text.data : "the message is not JSON");
}

/* MCP-1 */
static bool has_no_answer(const struct message *message)
{
    return !message->is_refused && (!message->method || !message->id);
}

static qr_rc answer(struct message *message, qr_str text, struct quire_mcp_answer *ret_answer, qr_err *err)
{
    const struct qr_json_limits limits = {
        .size_bytes_max = QUIRE_MCP_MESSAGE_BYTES_MAX, .depth_max = 64, .values_max = 1 << 16};
    QR_JSON *json = NULL;
    qr_err why = {0};
    const qr_rc rc = qr_json_parse(text, &limits, &json, &why);
    if (rc == QR_NOMEM) {
        return mcp_out_of_memory(err);
    }
    message->json = json;
    if (rc != QR_OK) {
        refuse_unparsed(message, &why);
    } else if (read_form(message) && !has_no_answer(message)) {
        answer_request(message);
    }
    if (has_no_answer(message)) {
        ret_answer->status = 202;
        return QR_OK;
    }
    return message->error || message->result ? write_answer(message, ret_answer, err) : mcp_out_of_memory(err);
}

qr_rc quire_mcp_message(const struct quire_mcp *mcp, const struct quire_request *from, qr_str message,
                        struct quire_mcp_answer *ret_answer, qr_err *err)
{
    struct message state = {.mcp = mcp, .from = from};
    *ret_answer = (struct quire_mcp_answer){.status = 200};
    const qr_rc rc = answer(&state, message, ret_answer, err);
    json_decref(state.result);
    json_decref(state.error);
    return rc;
}
