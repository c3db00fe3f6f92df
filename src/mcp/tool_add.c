/* quire_add: a note, a web page, a file or a folder. What was added is worked on in the background. */
#include "mcp/call.h"

/* ---- what is added ---- */

static const struct kind {
    const char *argument, *type, *member;
} kinds[] = {
    {"text", "note", "content"},
    {"url", "url", "url"},
    {"path", "file", "path"},
    {"folder", "directory", "path"},
};

static qr_rc find_kind(const json_t *args, const struct kind **ret_kind, qr_err *err)
{
    const struct kind *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < QR_COUNT(kinds); i++) {
        if (json_object_get(args, kinds[i].argument)) {
            found = &kinds[i];
            count++;
        }
    }
    if (count != 1) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "give exactly one of text, url, path and folder");
    }
    *ret_kind = found;
    return QR_OK;
}

/* A source that is there already is looked at again, not added twice: an agent may well try again. */
static qr_rc make_body(const json_t *args, json_t **ret_body, qr_err *err)
{
    const struct kind *kind = NULL;
    QR_TRY(find_kind(args, &kind, err));
    const bool is_note = strcmp(kind->type, "note") == 0;
    const char *name = mcp_text(args, "name");
    QR_JSON *item = json_pack("{s:s, s:O}", "type", kind->type, kind->member, json_object_get(args, kind->argument));
    json_t *attributes = json_object_get(args, "attributes");
    if (name && !is_note) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "name is for a note: the others are named by their source");
    }
    if ((is_note && json_object_set_new(item, "name", json_string(name ? name : "note")) != 0) ||
        (attributes && json_object_set(item, "attributes", attributes) != 0)) {
        return mcp_out_of_memory(err);
    }
    *ret_body = json_pack("{s:[O], s:s}", "items", item, "on_conflict", "update");
    return *ret_body ? QR_OK : mcp_out_of_memory(err);
}

/* ---- the request ---- */

static qr_rc make_default_base(const struct mcp_call *call, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    QR_JSON *body = json_pack("{s:s}", "name", "default");
    QR_JSON *answer = NULL;
    qr_buf_add_text(&target, "/api/v1/bases");
    const qr_rc rc = body ? mcp_ask(call, "POST", &target, body, &answer, err) : mcp_out_of_memory(err);
    return rc != QR_OK && err->code == QR_CODE_ALREADY_EXISTS ? QR_OK : rc; /* somebody else was first */
}

/* The base `default` is made on first use; one that was named must be there. */
static qr_rc send(const struct mcp_call *call, const json_t *body, json_t **ret_answer, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    mcp_add_path(call, &target, "/items");
    const qr_rc rc = mcp_ask(call, "POST", &target, body, ret_answer, err);
    if (rc == QR_OK || err->code != QR_CODE_NOT_FOUND || mcp_text(call->args, "base")) {
        return rc;
    }
    QR_TRY(make_default_base(call, err));
    return mcp_ask(call, "POST", &target, body, ret_answer, err);
}

static qr_rc run(const struct mcp_call *call, json_t **ret_result, qr_err *err)
{
    QR_JSON *body = NULL;
    QR_JSON *answer = NULL;
    QR_TRY(make_body(call->args, &body, err));
    QR_TRY(send(call, body, &answer, err));
    const json_t *item = json_array_get(json_object_get(answer, "items"), 0);
    QR_JSON *structured =
        json_pack("{s:O, s:O, s:O, s:O, s:O, s:O, s:s}", "base_id", mcp_get(item, "base_id"), "item_id",
                  mcp_get(item, "id"), "status", mcp_get(item, "status"), "result", mcp_get(item, "result"), "type",
                  mcp_get(item, "type"), "name", mcp_get(item, "name"), "note",
                  "It is worked on in the background. Call quire_status with this base_id and item_id; once it says "
                  "completed, quire_search finds it.");
    return mcp_fit_texts(call, structured, ret_result, err);
}

const struct mcp_tool mcp_tool_add = {
    .name = "quire_add",
    .title = "Add a note, page, file or folder",
    .description =
        "Adds one thing to a knowledge base so that it can be searched: text (kept as a note), url (a web page), path "
        "(a file) or folder (with everything in it). Paths are absolute, on the machine where Quire runs, and may be "
        "refused there. Returns at once; quire_status tells when it can be searched. A url, path or folder that is "
        "there already is looked at again instead of being added twice; text is added each time.",
    .is_open_world = true,
    .input_schema = MCP_SCHEMA_BEGIN
    "\"base\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Name or id of the base. Left out: the base named "
    "default, which is made when it is missing.\"},"
    "\"text\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The content of a note; Markdown is understood.\"},"
    "\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000,\"description\":\"The note's name, by which it "
    "is cited.\"},"
    "\"url\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8192},"
    "\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4096,\"description\":\"Absolute path of a file.\"},"
    "\"folder\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4096,\"description\":\"Absolute path of a "
    "folder.\"},"
    "\"attributes\":{\"type\":\"object\",\"description\":\"Anything to keep with it, as in {\\\"topic\\\": "
    "\\\"garden\\\"}.\"}," MCP_MAX_TOKENS_SCHEMA "},\"additionalProperties\":false}",
    .output_schema = MCP_SCHEMA_BEGIN
    "\"base_id\":{\"type\":\"string\"},\"item_id\":{\"type\":\"string\"},\"name\":{\"type\":\"string\"},"
    "\"type\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"},\"result\":{\"type\":\"string\",\"enum\":"
    "[\"created\",\"skipped\",\"updated\"]},\"note\":{\"type\":\"string\"}},"
    "\"required\":[\"base_id\",\"item_id\",\"status\",\"result\"]}",
    .fn = run,
};
