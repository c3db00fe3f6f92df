/* The MCP engine: messages of both eras, and what HTTP adds. MCP-1 to MCP-4. */
#include "mcp/call.h"
#include "support/api_fixture.h"
#include "support/fault.h"

#define META                                                                                                           \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"                 \
    "clientCapabilities\":{}}"

/* ---- saying something ---- */

/* An API that has nothing, and remembers who asked. */
struct nobody {
    char authorization[64], target[128];
    int is_local_owner, status;
    size_t count;
};

static qr_rc ask_nobody(void *arg, const struct quire_request *request, int *ret_status, json_t **ret_answer,
                        qr_err *err QR_UNUSED)
{
    struct nobody *nobody = arg;
    nobody->count++;
    nobody->is_local_owner = request->is_local_owner;
    snprintf(nobody->authorization, sizeof nobody->authorization, "%s",
             request->authorization ? request->authorization : "");
    snprintf(nobody->target, sizeof nobody->target, "%s", request->target);
    *ret_status = nobody->status ? nobody->status : 200;
    *ret_answer = nobody->status ? json_pack("{s:{s:s, s:s}}", "error", "code", "unauthorized", "message", "no key")
                                 : json_pack("{s:[], s:n}", "data", "next_cursor");
    return QR_OK;
}

static json_t *parse(const struct qr_buf *text)
{
    json_t *json = NULL;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_json_parse(qr_buf_str(text), &QR_JSON_REQUEST_LIMITS, &json, &err));
    return json;
}

/* The answer, which must have this status; NULL where there must be none. */
static json_t *say_as(const struct quire_mcp *mcp, const struct quire_request *from, const char *message, int status)
{
    struct quire_mcp_answer answer;
    qr_err err;
    qr_test_set_context("%.300s", message);
    QR_CHECK_RC(QR_OK, quire_mcp_message(mcp, from, qr_str_of(message), &answer, &err));
    QR_CHECK_INT(status, answer.status);
    QR_CHECK(!answer.text.len || !memchr(answer.text.data, '\n', answer.text.len)); /* one line */
    json_t *json = answer.text.len ? parse(&answer.text) : NULL;
    qr_buf_done(&answer.text);
    return json;
}

static json_t *say(const char *message, int status)
{
    struct nobody nobody = {0};
    const struct quire_mcp mcp = {.ask = ask_nobody, .arg = &nobody};
    const struct quire_request from = {.is_local_owner = 1};
    return say_as(&mcp, &from, message, status);
}

static void check_error(const char *message, int status, int code)
{
    QR_JSON *answer = say(message, status);
    QR_CHECK_INT(code, api_number(json_object_get(answer, "error"), "code"));
    QR_CHECK(json_object_get(answer, "id") && !json_object_get(answer, "result"));
    QR_CHECK_TEXT("2.0", api_text(answer, "jsonrpc"));
}

static const json_t *result_of(const json_t *answer)
{
    const json_t *result = json_object_get(answer, "result");
    QR_CHECK(json_is_object(result));
    return result;
}

/* ---- the form ---- */

QR_TEST(what_is_no_message_is_an_error_with_the_right_code)
{
    static const struct {
        const char *message;
        int code;
    } cases[] = {
        {"", -32700},
        {"{", -32700},
        {"nonsense", -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"ping\"}", -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\\u0000\",\"method\":\"ping\"}", -32700},
        {"\"\xff\"", -32700},
        {"[]", -32600},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600},
        {"null", -32600},
        {"7", -32600},
        {"{}", -32600},
        {"{\"id\":1,\"method\":\"ping\"}", -32600},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        check_error(cases[i].message, 400, cases[i].code);
    }
}

QR_TEST(nesting_without_end_is_refused)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    for (int i = 0; i < 100000; i++) {
        qr_buf_add_char(&text, '[');
    }
    check_error(text.data, 400, -32700);
}

QR_TEST(an_id_comes_back_as_it_was)
{
    QR_JSON *with_text = say("{\"jsonrpc\":\"2.0\",\"id\":\"a \\u00e9\",\"method\":\"ping\"}", 200);
    QR_JSON *with_number = say("{\"jsonrpc\":\"2.0\",\"id\":-9007199254740993,\"method\":\"ping\"}", 200);
    QR_CHECK_TEXT("a é", api_text(with_text, "id"));
    QR_CHECK_INT(-9007199254740993, api_number(with_number, "id"));
    QR_CHECK(json_object_size(result_of(with_number)) == 0);
}

QR_TEST(notifications_and_answers_have_no_answer) /* MCP-1 */
{
    static const char *const messages[] = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"quire_list\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"no/such\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":1,\"message\":\"x\"}}",
    };
    for (size_t i = 0; i < QR_COUNT(messages); i++) {
        QR_CHECK(say(messages[i], 202) == NULL);
    }
}

/* ---- the older era ---- */

QR_TEST(the_older_handshake_keeps_to_a_version_that_both_know)
{
    static const char *const asked[][2] = {{"2025-11-25", "2025-11-25"},
                                           {"2025-06-18", "2025-06-18"},
                                           {"2024-11-05", "2024-11-05"},
                                           {"1999-01-01", "2025-11-25"}};
    for (size_t i = 0; i < QR_COUNT(asked); i++) {
        char message[256];
        snprintf(message, sizeof message,
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"%s\","
                 "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
                 asked[i][0]);
        QR_JSON *answer = say(message, 200);
        const json_t *result = result_of(answer);
        QR_CHECK_TEXT(asked[i][1], api_text(result, "protocolVersion"));
        QR_CHECK_TEXT("quire", api_text(json_object_get(result, "serverInfo"), "name"));
        QR_CHECK(json_is_object(json_object_get(json_object_get(result, "capabilities"), "tools")));
        QR_CHECK(!json_object_get(result, "resultType"));
    }
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}", 200, -32602);
}

QR_TEST(unknown_methods_and_tools_are_protocol_errors)
{
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}", 200, -32601);
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}", 200, -32602);
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}", 200, -32602);
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[]}", 200, -32602);
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"quire_list\","
                "\"arguments\":[]}}",
                200, -32602);
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}", 200, -32602);
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}x", 400, -32700);
}

/* ---- the new era ---- */

QR_TEST(the_new_era_needs_no_handshake)
{
    QR_JSON *answer = say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}", 200);
    const json_t *result = result_of(answer);
    QR_CHECK_TEXT("complete", api_text(result, "resultType"));
    QR_CHECK_TEXT("2026-07-28", json_string_value(json_array_get(json_object_get(result, "supportedVersions"), 0)));
    QR_CHECK_TEXT("public", api_text(result, "cacheScope"));
    QR_CHECK(api_number(result, "ttlMs") > 0);
    const json_t *meta = json_object_get(result, "_meta");
    QR_CHECK_TEXT("quire", api_text(json_object_get(meta, "io.modelcontextprotocol/serverInfo"), "name"));
}

QR_TEST(a_request_of_the_new_era_says_all_that_it_must)
{
    static const char *const without[] = {
        "{}",
        "{\"_meta\":{}}",
        "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":7}}",
        "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}",
        "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"
        "clientCapabilities\":[]}}",
        "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"
        "clientCapabilities\":{},\"io.modelcontextprotocol/clientInfo\":\"x\"}}",
    };
    for (size_t i = 0; i < QR_COUNT(without); i++) {
        char message[512];
        snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":%s}",
                 without[i]);
        check_error(message, 400, -32602);
    }
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{" META "}}", 404, -32601);
    check_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{" META "}}", 404, -32601);
}

QR_TEST(a_version_that_is_not_spoken_is_answered_with_those_that_are)
{
    QR_JSON *answer = say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io."
                          "modelcontextprotocol/protocolVersion\":\"2031-01-01\"}}}",
                          400);
    const json_t *error = json_object_get(answer, "error"), *data = json_object_get(error, "data");
    QR_CHECK_INT(-32022, api_number(error, "code"));
    QR_CHECK_TEXT("2031-01-01", api_text(data, "requested"));
    QR_CHECK_TEXT("2026-07-28", json_string_value(json_array_get(json_object_get(data, "supported"), 0)));
}

/* ---- the tools ---- */

static void check_schema(const json_t *schema)
{
    const char *name;
    json_t *property;
    QR_CHECK_TEXT("https://json-schema.org/draft/2020-12/schema", api_text(schema, "$schema"));
    QR_CHECK_TEXT("object", api_text(schema, "type"));
    QR_CHECK(json_object_size(json_object_get(schema, "properties")) > 0);
    json_object_foreach(json_object_get(schema, "properties"), name, property)
    {
        qr_test_set_context("%s", name);
        QR_CHECK(json_object_get(property, "type"));
    }
}

QR_TEST(tools_are_listed_the_same_each_time_with_schemas_and_hints)
{
    static const char *const names[] = {"quire_search", "quire_read",   "quire_list",
                                        "quire_add",    "quire_status", "quire_delete"};
    QR_JSON *answer = say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", 200);
    QR_JSON *modern = say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}", 200);
    const json_t *tools = json_object_get(result_of(answer), "tools");
    QR_CHECK(json_equal(tools, json_object_get(result_of(modern), "tools")));
    QR_CHECK(json_object_size(result_of(answer)) == 1);
    QR_CHECK_TEXT("complete", api_text(result_of(modern), "resultType"));
    QR_CHECK(api_number(result_of(modern), "ttlMs") > 0);
    QR_CHECK_INT(QR_COUNT(names), json_array_size(tools));
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        const json_t *tool = json_array_get(tools, i), *hints = json_object_get(tool, "annotations");
        const bool is_writing = strcmp(names[i], "quire_add") == 0 || strcmp(names[i], "quire_delete") == 0;
        QR_CHECK_TEXT(names[i], api_text(tool, "name"));
        QR_CHECK(strlen(api_text(tool, "title")) > 5 && strlen(api_text(tool, "description")) > 50);
        check_schema(json_object_get(tool, "inputSchema"));
        check_schema(json_object_get(tool, "outputSchema"));
        QR_CHECK(json_is_false(json_object_get(json_object_get(tool, "inputSchema"), "additionalProperties")));
        QR_CHECK_INT(!is_writing, json_is_true(json_object_get(hints, "readOnlyHint")));
        QR_CHECK_INT(strcmp(names[i], "quire_delete") == 0, json_is_true(json_object_get(hints, "destructiveHint")));
    }
}

QR_TEST(a_tool_asks_as_whoever_called_it) /* MCP-3 */
{
    struct nobody nobody = {0};
    const struct quire_mcp mcp = {.ask = ask_nobody, .arg = &nobody};
    const struct quire_request from = {.authorization = "Bearer qk_1", .target = "/mcp", .body = "x", .body_size = 1};
    QR_JSON *answer =
        say_as(&mcp, &from,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"quire_list\","
               "\"arguments\":{\"base\":\"a/b c\",\"q\":\"ä&\"}}}",
               200);
    QR_CHECK(json_is_false(json_object_get(result_of(answer), "isError")));
    QR_CHECK_TEXT("Bearer qk_1", nobody.authorization);
    QR_CHECK_INT(0, nobody.is_local_owner);
    QR_CHECK_TEXT("/api/v1/bases/a%2Fb%20c/items?limit=50&parent=root&q=%C3%A4%26", nobody.target);
}

QR_TEST(what_is_wrong_with_a_call_is_said_to_the_model) /* MCP-4 */
{
    static const struct {
        const char *tool, *arguments, *says;
    } cases[] = {
        {"quire_search", "{}", "invalid_value: the argument query is missing. Next: "},
        {"quire_search", "{\"query\":\"\"}", "query has a length from 1 to"},
        {"quire_search", "{\"query\":7}", "query must be of the type string"},
        {"quire_search", "{\"query\":\"x\",\"limit\":0}", "limit is a whole number from 1 to 50"},
        {"quire_search", "{\"query\":\"x\",\"limit\":2.5}", "limit must be of the type integer"},
        {"quire_search", "{\"query\":\"x\",\"mode\":\"fast\"}", "mode is one of auto, text, vector, hybrid"},
        {"quire_search", "{\"query\":\"x\",\"types\":[\"film\"]}", "types is one of directory"},
        {"quire_search", "{\"query\":\"x\",\"bases\":[]}", "bases has so many entries: from 1 to 32"},
        {"quire_search", "{\"query\":\"x\",\"base\":\"b\"}", "unknown_field: "},
        {"quire_search", "{\"query\":\"x\",\"max_tokens\":199}", "max_tokens is a whole number from 200 to 100000"},
        {"quire_search", "{\"query\":\"x\",\"max_tokens\":-9000000000000000000}", "max_tokens is a whole number"},
        {"quire_read", "{\"base\":\"b\"}", "the argument item is missing"},
        {"quire_list", "{\"folder\":\"x\"}", "say which in base"},
        {"quire_list", "{\"recursive\":true}", "say which in base"},
        {"quire_add", "{}", "give exactly one of text, url, path and folder"},
        {"quire_add", "{\"text\":\"a\",\"url\":\"b\"}", "give exactly one of"},
        {"quire_add", "{\"url\":\"http://a\",\"name\":\"b\"}", "name is for a note"},
        {"quire_status", "{}", "the argument base is missing"},
        {"quire_delete", "{\"base\":\"b\",\"items\":[]}", "items has so many entries"},
        {"quire_delete", "{\"base\":\"b\",\"items\":\"x\"}", "items must be of the type array"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        char message[512];
        snprintf(
            message, sizeof message,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\",\"arguments\":%s}}",
            cases[i].tool, cases[i].arguments);
        QR_JSON *answer = say(message, 200);
        const json_t *result = result_of(answer);
        QR_CHECK(json_is_true(json_object_get(result, "isError")) && !json_object_get(result, "structuredContent"));
        QR_CHECK_HAS(cases[i].says, api_text(json_array_get(json_object_get(result, "content"), 0), "text"));
    }
}

QR_TEST(tokens_are_never_counted_lower_than_the_project_does)
{
    QR_CHECK_INT(0, mcp_tokens(QR_STR("")));
    QR_CHECK_INT(1, mcp_tokens(QR_STR("four")));
    QR_CHECK_INT(2, mcp_tokens(QR_STR("fours")));
    QR_CHECK_INT(2, mcp_tokens(QR_STR("東京")));
    QR_CHECK_INT(2, mcp_tokens(QR_STR("ääää")));
    QR_CHECK_INT(1, mcp_tokens(QR_STR("\xff")));
}

/* ---- without memory ---- */

/* An API with a hit, an item and a text. */
static qr_rc ask_scarce(void *arg QR_UNUSED, const struct quire_request *request QR_UNUSED, int *ret_status,
                        json_t **ret_answer, qr_err *err)
{
    *ret_status = 200;
    *ret_answer =
        json_pack("{s:[{s:s, s:s, s:i, s:i}], s:n, s:s, s:[], s:[{s:s, s:s}], s:s, s:i, s:s}", "hits", "text", "a b c",
                  "item_id", "i", "start", 0, "end", 5, "next_cursor", "mode", "text", "degraded", "data", "id", "i",
                  "status", "ready", "text", "line\nline\n", "size_bytes", 10, "name", "n");
    return *ret_answer ? QR_OK : mcp_out_of_memory(err);
}

static void say_with_little_memory(void *arg)
{
    const struct quire_mcp mcp = {.ask = ask_scarce};
    const struct quire_request from = {.is_local_owner = 1};
    struct quire_mcp_answer answer;
    qr_err err = {0};
    const qr_rc rc = quire_mcp_message(&mcp, &from, qr_str_of(arg), &answer, &err);
    qr_fault_disarm();
    QR_CHECK(rc == QR_OK || rc == QR_NOMEM);
    QR_CHECK(rc == QR_NOMEM || answer.text.len > 0); /* MCP-1 */
    qr_buf_done(&answer.text);
}

QR_TEST(a_request_is_answered_or_out_of_memory) /* MCP-1 */
{
    static const char *const messages[] = {
        "{",
        "[]",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
        "protocolVersion\":\"1\"}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"quire_search\","
        "\"arguments\":{\"query\":\"x\",\"max_tokens\":300}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"quire_read\","
        "\"arguments\":{\"base\":\"b\",\"item\":\"i\",\"heading\":\"x\"}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"quire_status\","
        "\"arguments\":{\"base\":\"b\"}}}",
    };
    qr_fault_memory_install();
    for (size_t i = 0; i < QR_COUNT(messages); i++) {
        qr_test_set_context("%s", messages[i]);
        qr_fault_sweep(QR_FAULT_MEMORY, say_with_little_memory, (void *)messages[i]);
    }
}

/* ---- HTTP ---- */

enum { HEADERS_MAX = 8 };

struct posted {
    const char *method, *body, *content_type;
    struct quire_header headers[HEADERS_MAX];
};

static struct quire_response post(struct quire *quire, const struct posted *posted)
{
    struct quire_request request = {.method = posted->method ? posted->method : "POST",
                                    .target = "/mcp",
                                    .body = posted->body,
                                    .body_size = posted->body ? strlen(posted->body) : 0,
                                    .content_type = posted->content_type,
                                    .is_local_owner = 1,
                                    .headers = posted->headers};
    while (request.header_count < HEADERS_MAX && posted->headers[request.header_count].name) {
        request.header_count++;
    }
    struct quire_response response;
    QR_CHECK_INT(quire_mcp_http_call(quire, &request, &response), response.status);
    return response;
}

static void check_post(struct quire *quire, const struct posted *posted, int status, const char *has)
{
    struct quire_response response = post(quire, posted);
    qr_test_set_context("%s: %s", posted->body ? posted->body : "", response.body);
    QR_CHECK_INT(status, response.status);
    QR_CHECK_HAS(has, response.body);
    quire_response_done(&response);
}

#define MODERN_LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}"
#define MODERN_CALL                                                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                                                                \
    "call\",\"params\":{\"name\":\"quire_list\",\"arguments\":{}," META "}}"
#define VERSION_HEADER                                                                                                 \
    {                                                                                                                  \
        "mcp-protocol-version", "2026-07-28"                                                                           \
    }

QR_TEST(headers_must_say_what_the_message_says)
{
    struct quire *quire = api_open(t);
    static const struct {
        struct posted posted;
        int status;
        const char *has;
    } cases[] = {
        {{.body = MODERN_LIST, .headers = {VERSION_HEADER, {"Mcp-Method", "tools/list"}}}, 200, "quire_search"},
        {{.body = MODERN_LIST, .headers = {VERSION_HEADER}}, 400, "-32020"},
        {{.body = MODERN_LIST, .headers = {VERSION_HEADER, {"Mcp-Method", "tools/call"}}}, 400, "-32020"},
        {{.body = MODERN_LIST, .headers = {{"Mcp-Method", "tools/list"}}}, 400, "-32020"},
        {{.body = MODERN_LIST, .headers = {{"MCP-Protocol-Version", "2025-06-18"}, {"Mcp-Method", "tools/list"}}},
         400,
         "-32020"},
        {{.body = MODERN_CALL, .headers = {VERSION_HEADER, {"Mcp-Method", "tools/call"}}}, 400, "-32020"},
        {{.body = MODERN_CALL, .headers = {VERSION_HEADER, {"Mcp-Method", "tools/call"}, {"Mcp-Name", "quire_add"}}},
         400,
         "-32020"},
        {{.body = MODERN_CALL, .headers = {VERSION_HEADER, {"Mcp-Method", "tools/call"}, {"Mcp-Name", "quire_list"}}},
         200,
         "\"isError\":false"},
        {{.body = MODERN_CALL,
          .headers = {VERSION_HEADER, {"Mcp-Method", "tools/call"}, {"Mcp-Name", "=?base64?cXVpcmVfbGlzdA==?="}}},
         200,
         "\"isError\":false"},
        {{.body = MODERN_CALL,
          .headers = {VERSION_HEADER, {"Mcp-Method", "tools/call"}, {"Mcp-Name", "=?base64?cXVpcmVfbGlzdB==!?="}}},
         400,
         "-32020"},
        /* what HTTP says to be of the new era needs the envelope */
        {{.body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", .headers = {VERSION_HEADER}},
         400,
         "-32602"},
        {{.body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a/b\",\"params\":{" META "}}",
          .headers = {VERSION_HEADER, {"Mcp-Method", "a/b"}}},
         404,
         "-32601"},
        /* the older era */
        {{.body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
          .headers = {{"MCP-Protocol-Version", "2025-06-18"}}},
         200,
         "quire_search"},
        {{.body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"}, 200, "quire_search"},
        {{.body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
          .headers = {{"MCP-Protocol-Version", "1999-01-01"}}},
         400,
         "-32022"},
        {{.body = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"}, 202, ""},
        {{.body = "["}, 400, "-32700"},
        {{.body = NULL}, 400, "-32700"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        check_post(quire, &cases[i].posted, cases[i].status, cases[i].has);
    }
    quire_close(quire);
}

QR_TEST(only_posts_of_json_by_pages_of_our_own_are_taken)
{
    struct quire *quire = api_open(t);
    struct quire_response response = post(quire, &(struct posted){.method = "GET"});
    QR_CHECK_INT(405, response.status);
    QR_CHECK_TEXT("POST", quire_response_header(&response, "Allow"));
    quire_response_done(&response);
    static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    check_post(quire, &(struct posted){.method = "DELETE"}, 405, "method_not_allowed");
    check_post(quire, &(struct posted){.body = ping, .content_type = "text/plain"}, 415, "unsupported_media_type");
    check_post(quire, &(struct posted){.body = ping, .content_type = "Application/JSON; charset=utf-8"}, 200, "result");
    static const struct {
        const char *origin;
        int status;
    } origins[] = {{"http://evil.example", 403},
                   {"null", 403},
                   {"http://127.0.0.1:7700.evil.example", 403},
                   {"http://127.0.0.1:7701", 403},
                   {"http://127.0.0.1:7700", 200}};
    for (size_t i = 0; i < QR_COUNT(origins); i++) {
        check_post(
            quire,
            &(struct posted){.body = ping, .headers = {{"Host", "127.0.0.1:7700"}, {"Origin", origins[i].origin}}},
            origins[i].status, "");
    }
    quire_close(quire);
}

QR_TEST(what_does_not_go_to_mcp_is_the_apis)
{
    struct quire *quire = api_open(t);
    const struct quire_request request = {.method = "GET", .target = "/api/v1/bases?limit=1", .is_local_owner = 1};
    struct quire_response response;
    QR_CHECK_INT(200, quire_mcp_http_call(quire, &request, &response));
    QR_CHECK_HAS("\"next_cursor\"", response.body);
    quire_response_done(&response);
    quire_close(quire);
}
