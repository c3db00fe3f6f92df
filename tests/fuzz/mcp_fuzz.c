/* Any bytes as an MCP message: the answer is none, or one line of JSON-RPC with the request's id; a result of a tool costs no more
 * than it may; nothing crashes. The first byte chooses the transport. */
#include "mcp/call.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* An API that has a bit of everything, so that tools have something to show. */
static qr_rc ask(void *arg QR_UNUSED, const struct quire_request *request, int *ret_status, json_t **ret_answer,
                 qr_err *err QR_UNUSED)
{
    static const char answer[] =
        "{\"id\":\"01890000-0000-7000-8000-000000000000\",\"base_id\":\"b\",\"name\":\"n\",\"status\":\"ready\","
        "\"text\":"
        "\"one\\ntwo "
        "\\\"three\\\"\\n\",\"size_bytes\":16,\"generation\":1,\"offset\":0,\"next_cursor\":null,\"mode\":\"text\","
        "\"degraded\":[],\"hits\":[{\"rank\":1,\"text\":\"one\",\"start\":0,\"end\":3,\"item_id\":\"i\"}],\"accepted\":"
        "[\"i\"],"
        "\"data\":[{\"id\":\"i\",\"name\":\"n\",\"status\":\"ready\",\"heading\":\"A\",\"start\":0,\"end\":3}],"
        "\"items\":[{"
        "\"id\":\"i\",\"result\":\"created\"}]}";
    require(request->target[0] == '/' && request->is_local_owner);
    *ret_status = 200;
    *ret_answer = json_loads(answer, 0, NULL);
    return QR_OK;
}

static void check_result(const json_t *message, const json_t *result)
{
    const json_t *args = json_object_get(json_object_get(message, "params"), "arguments");
    const json_int_t asked = mcp_number(args, "max_tokens", MCP_MAX_TOKENS_DEFAULT);
    struct qr_buf text;
    qr_buf_init(&text, 0);
    require(qr_json_write(result, &text, NULL) == QR_OK);
    if (json_object_get(result, "content")) {
        require(mcp_tokens(qr_buf_str(&text)) <= (asked > MCP_MAX_TOKENS_MIN ? asked : MCP_MAX_TOKENS_MIN));
    }
    qr_buf_done(&text);
}

static void check_answer(qr_str message_text, const struct quire_mcp_answer *answer)
{
    json_t *message = json_loadb(message_text.ptr, message_text.len, JSON_DECODE_ANY, NULL), *json = NULL;
    if (answer->text.len == 0) {
        require(answer->status == 202);
    } else {
        require(!memchr(answer->text.data, '\n', answer->text.len));
        require(qr_json_parse(qr_buf_str(&answer->text), &QR_JSON_REQUEST_LIMITS, &json, NULL) == QR_OK);
        const json_t *result = json_object_get(json, "result"), *error = json_object_get(json, "error");
        require(!result != !error);
        require(!result || json_equal(json_object_get(json, "id"), json_object_get(message, "id")));
        require(!error || json_is_integer(json_object_get(error, "code")));
        if (result) {
            check_result(message, result);
        }
    }
    json_decref(message);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    static const struct quire_header headers[] = {
        {"MCP-Protocol-Version", "2026-07-28"}, {"Mcp-Method", "tools/call"}, {"Mcp-Name", "quire_search"}};
    const bool is_http = size_bytes && bytes[0] == 'H';
    const struct quire_mcp mcp = {.ask = ask, .is_http = is_http};
    const struct quire_request from = {.is_local_owner = 1, .headers = headers, .header_count = QR_COUNT(headers)};
    const qr_str message = {(const char *)bytes + is_http, size_bytes - is_http};
    struct quire_mcp_answer answer;
    qr_err err;
    require(quire_mcp_message(&mcp, &from, message, &answer, &err) == QR_OK);
    check_answer(message, &answer);
    qr_buf_done(&answer.text);
    return 0;
}
