/* The MCP tools over a data folder: what an agent does with them, and that no result costs more than was asked for (MCP-2). */
#include "mcp/call.h"
#include "support/api_fixture.h"

/* ---- calling ---- */

/* The result; `args` is taken. It never costs more than its max_tokens. */
static json_t *call(struct quire *quire, const char *tool, json_t *args)
{
    const struct quire_mcp mcp = {.ask = quire_mcp_ask_here, .arg = quire};
    const struct quire_request from = {.is_local_owner = 1};
    const long long asked = api_number(args, "max_tokens");
    QR_JSON *message =
        json_pack("{s:s, s:i, s:s, s:{s:s, s:o, s:{s:s, s:{}}}}", "jsonrpc", "2.0", "id", 7, "method", "tools/call",
                  "params", "name", tool, "arguments", args, "_meta", "io.modelcontextprotocol/protocolVersion",
                  "2026-07-28", "io.modelcontextprotocol/clientCapabilities");
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0}, result_text = {0};
    struct quire_mcp_answer answer;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_json_write(message, &text, &err));
    qr_test_set_context("%.300s", text.data);
    QR_CHECK_RC(QR_OK, quire_mcp_message(&mcp, &from, qr_buf_str(&text), &answer, &err));
    QR_JSON *json = NULL;
    QR_CHECK_RC(QR_OK, qr_json_parse(qr_buf_str(&answer.text), &QR_JSON_REQUEST_LIMITS, &json, &err));
    qr_buf_done(&answer.text);
    json_t *result = json_incref(json_object_get(json, "result"));
    QR_CHECK(json_is_object(result));
    QR_CHECK_RC(QR_OK, qr_json_write(result, &result_text, &err));
    const long long tokens = (long long)mcp_tokens(qr_buf_str(&result_text));
    if (tokens > (asked ? asked : MCP_MAX_TOKENS_DEFAULT)) {
        QR_FAIL("costs %lld tokens", tokens);
    }
    return result;
}

static const char *text_of(const json_t *result)
{
    return api_text(json_array_get(json_object_get(result, "content"), 0), "text");
}

/* The structured content of a call that must succeed; the text says the same. */
static json_t *call_well(struct quire *quire, const char *tool, json_t *args)
{
    QR_JSON *result = call(quire, tool, args);
    QR_JSON *same = json_loads(text_of(result), 0, NULL);
    json_t *structured = json_object_get(result, "structuredContent");
    if (!json_is_false(json_object_get(result, "isError"))) {
        QR_FAIL("%s", text_of(result));
    }
    QR_CHECK(json_equal(structured, same));
    QR_CHECK_TEXT("complete", api_text(result, "resultType"));
    return json_incref(structured);
}

static void check_refused(struct quire *quire, const char *tool, json_t *args, const char *says)
{
    QR_JSON *result = call(quire, tool, args);
    QR_CHECK(json_is_true(json_object_get(result, "isError")));
    QR_CHECK_HAS(says, text_of(result));
    QR_CHECK_HAS("Next: ", text_of(result));
}

static void wait_until_completed(struct quire *quire, const char *base, const char *item)
{
    for (;;) {
        QR_JSON *status = call_well(quire, "quire_status", json_pack("{s:s, s:s}", "base", base, "item", item));
        if (json_is_true(json_object_get(status, "searchable"))) {
            QR_CHECK_TEXT("completed", api_text(status, "status"));
            return;
        }
    }
}

/* A note in the base b that can be searched. */
static void add(struct quire *quire, const char *name, const char *text, char ret_id[static API_ID_SIZE])
{
    QR_JSON *added =
        call_well(quire, "quire_add", json_pack("{s:s, s:s, s:s}", "base", "b", "text", text, "name", name));
    memcpy(ret_id, api_text(added, "item_id"), API_ID_SIZE);
    wait_until_completed(quire, "b", ret_id);
}

/* ---- what an agent does ---- */

QR_TEST(an_agent_adds_waits_finds_reads_cites_and_deletes)
{
    struct quire *quire = api_open(t);
    api_start_work(quire);
    static const char text[] = "# Harbour\n\nBoats may enter at high tide.\n\n## Fees\n\nTen coins a night.\n";
    /* the base default is made on first use */
    QR_JSON *added = call_well(quire, "quire_add", json_pack("{s:s, s:s}", "text", text, "name", "harbour.md"));
    QR_CHECK_TEXT("created", api_text(added, "result"));
    const char *base = api_text(added, "base_id"), *item = api_text(added, "item_id");
    wait_until_completed(quire, base, item);
    QR_JSON *found = call_well(quire, "quire_search", json_pack("{s:s}", "query", "tide"));
    const json_t *hit = json_array_get(json_object_get(found, "hits"), 0);
    QR_CHECK_TEXT(item, api_text(hit, "item_id"));
    QR_CHECK_TEXT(base, api_text(hit, "base_id"));
    QR_CHECK_TEXT("harbour.md", api_text(hit, "name"));
    QR_CHECK_HAS("Harbour", api_text(hit, "heading"));
    QR_JSON *read = call_well(quire, "quire_read",
                              json_pack("{s:s, s:s, s:I, s:I}", "base", base, "item", item, "offset",
                                        (json_int_t)api_number(hit, "start"), "length",
                                        (json_int_t)(api_number(hit, "end") - api_number(hit, "start"))));
    QR_CHECK_TEXT(api_text(hit, "text"), api_text(read, "text")); /* what is cited is what is there */
    QR_CHECK_INT(api_number(hit, "line_start"), api_number(read, "line_start"));
    QR_JSON *gone = call_well(quire, "quire_delete", json_pack("{s:s, s:[s]}", "base", base, "items", item));
    QR_CHECK_INT(1, api_number(gone, "count"));
    QR_JSON *nothing = call_well(quire, "quire_search", json_pack("{s:s}", "query", "tide"));
    QR_CHECK_INT(0, json_array_size(json_object_get(nothing, "hits")));
    QR_CHECK_HAS("Nothing fits", api_text(nothing, "note"));
    quire_close(quire);
}

QR_TEST(a_part_is_read_by_bytes_lines_or_heading)
{
    struct quire *quire = api_open_base(t);
    api_start_work(quire);
    char id[API_ID_SIZE];
    add(quire, "n.md", "# One\n\nfirst\n\n# Two\n\nzwölf\nlast", id);
    QR_JSON *whole = call_well(quire, "quire_read", json_pack("{s:s, s:s}", "base", "b", "item", id));
    QR_CHECK_TEXT("# One\n\nfirst\n\n# Two\n\nzwölf\nlast", api_text(whole, "text"));
    QR_CHECK_INT(1, api_number(whole, "line_start"));
    QR_CHECK_INT(8, api_number(whole, "line_end"));
    QR_CHECK(json_is_null(json_object_get(whole, "next_offset")));
    QR_JSON *lines =
        call_well(quire, "quire_read",
                  json_pack("{s:s, s:s, s:i, s:i}", "base", "b", "item", id, "line_start", 3, "line_end", 5));
    QR_CHECK_TEXT("first\n\n# Two\n", api_text(lines, "text"));
    QR_CHECK_INT(5, api_number(lines, "line_end"));
    QR_CHECK(json_is_null(json_object_get(lines, "next_offset"))); /* all that was asked for */
    QR_JSON *section =
        call_well(quire, "quire_read", json_pack("{s:s, s:s, s:s}", "base", "b", "item", id, "heading", "two"));
    QR_CHECK_TEXT("# Two\n\nzwölf\nlast", api_text(section, "text"));
    QR_JSON *before =
        call_well(quire, "quire_read", json_pack("{s:s, s:s, s:s}", "base", "b", "item", id, "heading", "One"));
    QR_CHECK_TEXT("# One\n\nfirst\n\n", api_text(before, "text"));
    /* a character is not cut, whatever bytes are asked for */
    const json_int_t inside = (json_int_t)(strstr(api_text(whole, "text"), "ö") - api_text(whole, "text")) + 1;
    QR_JSON *bytes = call_well(
        quire, "quire_read", json_pack("{s:s, s:s, s:I, s:i}", "base", "b", "item", id, "offset", inside, "length", 2));
    QR_CHECK_TEXT("l", api_text(bytes, "text"));
    quire_close(quire);
}

QR_TEST(a_section_holds_its_subsections_and_no_heading_is_found_in_code)
{
    struct quire *quire = api_open_base(t);
    api_start_work(quire);
    char id[API_ID_SIZE];
    add(quire, "n.md", "```\n# Deep code\n```\n# Top\n## Deep\na\n### Deeper\nb\n## Next\nc\n", id);
    QR_JSON *deep =
        call_well(quire, "quire_read", json_pack("{s:s, s:s, s:s}", "base", "b", "item", id, "heading", "deep"));
    QR_CHECK_TEXT("## Deep\na\n### Deeper\nb\n", api_text(deep, "text"));
    QR_CHECK_INT(5, api_number(deep, "line_start"));
    QR_CHECK_INT(8, api_number(deep, "line_end"));
    quire_close(quire);
}

QR_TEST(refusals_of_the_api_are_said_to_the_model) /* MCP-4 */
{
    struct quire *quire = api_open_base(t);
    api_start_work(quire);
    char id[API_ID_SIZE];
    add(quire, "n", "some words\n", id);
    static const char unknown[] = "01890000-0000-7000-8000-000000000000";
    check_refused(quire, "quire_search", json_pack("{s:s, s:[s]}", "query", "x", "bases", "nowhere"), "not_found: ");
    check_refused(quire, "quire_read", json_pack("{s:s, s:s}", "base", "b", "item", unknown), "not_found: ");
    check_refused(quire, "quire_read", json_pack("{s:s, s:s, s:i}", "base", "b", "item", id, "page", 3),
                  "no such page");
    check_refused(quire, "quire_read", json_pack("{s:s, s:s, s:s}", "base", "b", "item", id, "heading", "zz"),
                  "no such heading");
    check_refused(quire, "quire_read", json_pack("{s:s, s:s, s:i}", "base", "b", "item", id, "offset", 4000),
                  "ends before that");
    check_refused(quire, "quire_read", json_pack("{s:s, s:s, s:i}", "base", "b", "item", id, "line_start", 4000),
                  "ends before that");
    check_refused(quire, "quire_read",
                  json_pack("{s:s, s:s, s:i, s:i}", "base", "b", "item", id, "line_start", 3, "line_end", 2),
                  "line_end is before line_start");
    check_refused(quire, "quire_read",
                  json_pack("{s:s, s:s, s:i, s:i}", "base", "b", "item", id, "offset", 1, "page", 1), "in one way");
    check_refused(quire, "quire_list", json_pack("{s:s}", "base", "nowhere"), "not_found: ");
    check_refused(quire, "quire_list", json_pack("{s:s, s:s}", "base", "b", "cursor", "made up"), "invalid_value: ");
    check_refused(quire, "quire_add", json_pack("{s:s, s:s}", "base", "nowhere", "text", "x"), "not_found: ");
    check_refused(quire, "quire_add", json_pack("{s:s, s:s}", "base", "b", "path", "relative"), "must be absolute");
    check_refused(quire, "quire_status", json_pack("{s:s}", "base", "nowhere"), "not_found: ");
    check_refused(quire, "quire_delete", json_pack("{s:s, s:[s]}", "base", "b", "items", "no id"), "");
    quire_close(quire);
}

QR_TEST(status_says_why_something_failed)
{
    struct quire *quire = api_open_base(t);
    api_start_work(quire);
    QR_JSON *added =
        call_well(quire, "quire_add", json_pack("{s:s, s:s}", "base", "b", "path", qr_test_path(t, "missing.txt")));
    json_decref(api_wait_for(quire, api_text(added, "item_id"), "failed"));
    QR_JSON *status =
        call_well(quire, "quire_status", json_pack("{s:s, s:s}", "base", "b", "item", api_text(added, "item_id")));
    const json_t *error = json_object_get(status, "error");
    QR_CHECK_TEXT("source_missing", api_text(error, "code"));
    QR_CHECK(api_text(error, "next_step")[0] && json_is_false(json_object_get(status, "searchable")));
    QR_JSON *base = call_well(quire, "quire_status", json_pack("{s:s}", "base", "b"));
    const json_t *failed = json_array_get(json_object_get(base, "failed_items"), 0);
    QR_CHECK_TEXT("source_missing", api_text(json_object_get(failed, "error"), "code"));
    QR_CHECK_HAS("failed", api_text(base, "note"));
    quire_close(quire);
}

QR_TEST(a_source_that_is_there_already_is_not_added_twice)
{
    struct quire *quire = api_open_base(t);
    QR_JSON *first =
        call_well(quire, "quire_add", json_pack("{s:s, s:s}", "base", "b", "folder", qr_test_path(t, "f")));
    QR_JSON *second =
        call_well(quire, "quire_add", json_pack("{s:s, s:s}", "base", "b", "folder", qr_test_path(t, "f")));
    QR_CHECK_TEXT(api_text(first, "item_id"), api_text(second, "item_id"));
    QR_CHECK_TEXT("updated", api_text(second, "result"));
    quire_close(quire);
}

/* ---- what fits ---- */

enum { NOTES = 12 };

/* Text that is hard to fit: long lines and short ones, escapes, characters of one to four bytes. */
static void write_text(struct qr_buf *text, unsigned seed)
{
    static const char *const words[] = {"harbour ", "\"quoted\" ",     "東京湾", "back\\slash ", "ä",
                                        "\n",       "\n\n## Part\n\n", "tab\t",  "🙂",         "tide "};
    for (int i = 0; i < 300; i++) {
        seed = seed * 1103515245 + 12345;
        qr_buf_add_text(text, words[(seed >> 16) % QR_COUNT(words)]);
    }
    qr_buf_add_text(text, "end\n");
}

static void add_notes(struct quire *quire, char ids[NOTES][API_ID_SIZE])
{
    for (unsigned i = 0; i < NOTES; i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0}, name = {0};
        qr_buf_printf(&name, "note %u ", i);
        for (unsigned j = 0; j < i * 8; j++) {
            qr_buf_add_text(&name, j % 2 ? "名" : "\\\"");
        }
        write_text(&text, i);
        add(quire, name.data, text.data, ids[i]);
    }
}

/* Reads on from next_offset until it is all; some calls may have no room. Whether there was always room. */
static bool read_through(struct quire *quire, const char *id, int max_tokens, struct qr_buf *text)
{
    for (json_int_t offset = 0;;) {
        QR_JSON *result = call(
            quire, "quire_read",
            json_pack("{s:s, s:s, s:I, s:i}", "base", "b", "item", id, "offset", offset, "max_tokens", max_tokens));
        const json_t *read = json_object_get(result, "structuredContent");
        if (json_is_true(json_object_get(result, "isError"))) {
            QR_CHECK_HAS("max_tokens", text_of(result));
            return false;
        }
        QR_CHECK_INT(offset, api_number(read, "start"));
        qr_buf_add_text(text, api_text(read, "text"));
        QR_CHECK_INT(text->len, api_number(read, "end"));
        if (json_is_null(json_object_get(read, "next_offset"))) {
            QR_CHECK_INT(text->len, api_number(read, "size_bytes"));
            return true;
        }
        QR_CHECK(api_number(read, "next_offset") > offset);
        offset = api_number(read, "next_offset");
    }
}

/* Lists page after page; -1 where there was no room. */
static int list_through(struct quire *quire, int max_tokens)
{
    QR_JSON *cursor = NULL;
    int seen = 0;
    do {
        QR_JSON *args = json_pack("{s:s, s:i}", "base", "b", "max_tokens", max_tokens);
        if (cursor) {
            json_object_set(args, "cursor", cursor);
        }
        QR_JSON *result = call(quire, "quire_list", json_incref(args));
        if (json_is_true(json_object_get(result, "isError"))) {
            QR_CHECK_HAS("max_tokens", text_of(result));
            return -1;
        }
        const json_t *page = json_object_get(result, "structuredContent"), *items = json_object_get(page, "items");
        QR_CHECK(json_array_size(items) > 0);
        seen += (int)json_array_size(items);
        json_decref(cursor);
        cursor = json_incref(json_object_get(page, "next_cursor"));
    } while (json_is_string(cursor));
    return seen;
}

static void search_through(struct quire *quire, int max_tokens)
{
    for (json_int_t offset = 0;;) {
        QR_JSON *result =
            call(quire, "quire_search",
                 json_pack("{s:s, s:I, s:i}", "query", "harbour tide", "offset", offset, "max_tokens", max_tokens));
        const json_t *found = json_object_get(result, "structuredContent"), *hits = json_object_get(found, "hits");
        if (json_is_true(json_object_get(result, "isError"))) {
            QR_CHECK_HAS("max_tokens", text_of(result));
            return;
        }
        QR_CHECK(json_array_size(hits) > 0);
        QR_CHECK_INT(offset + 1, api_number(json_array_get(hits, 0), "rank"));
        if (json_is_null(json_object_get(found, "next_offset"))) {
            return;
        }
        QR_CHECK_INT(offset + (json_int_t)json_array_size(hits), api_number(found, "next_offset"));
        offset = api_number(found, "next_offset");
    }
}

QR_TEST_WITH_TIMEOUT(no_result_costs_more_than_was_asked_for, 300) /* MCP-2 */
{
    struct quire *quire = api_open_base(t);
    api_start_work(quire);
    char ids[NOTES][API_ID_SIZE];
    add_notes(quire, ids);
    for (int max_tokens = 200; max_tokens < 6000; max_tokens += max_tokens / 3) {
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0}, whole = {0};
        write_text(&whole, 3);
        if (read_through(quire, ids[3], max_tokens, &text)) {
            QR_CHECK_STR(whole.data, qr_buf_str(&text));
        } else {
            QR_CHECK(max_tokens < 600); /* there is room from some hundred on */
        }
        const int listed = list_through(quire, max_tokens);
        QR_CHECK(listed == NOTES || (listed == -1 && max_tokens < 600));
        search_through(quire, max_tokens);
        QR_JSON *status =
            call_well(quire, "quire_status",
                      json_pack("{s:s, s:s, s:i}", "base", "b", "item", ids[NOTES - 1], "max_tokens", max_tokens));
        QR_CHECK_TEXT("completed", api_text(status, "status"));
        QR_JSON *base =
            call_well(quire, "quire_status", json_pack("{s:s, s:i}", "base", "b", "max_tokens", max_tokens));
        QR_CHECK_TEXT("ready", api_text(base, "status"));
    }
    quire_close(quire);
}

QR_TEST(what_was_done_is_never_answered_with_an_error_for_want_of_room) /* MCP-2 */
{
    struct quire *quire = api_open_base(t);
    QR_CLEANUP(qr_buf_done) struct qr_buf name = {0};
    for (int i = 0; i < 300; i++) {
        qr_buf_add_text(&name, "名");
    }
    QR_JSON *ids = json_array();
    for (int i = 0; i < 50; i++) {
        QR_JSON *added = call_well(quire, "quire_add",
                                   json_pack("{s:s, s:s, s:s, s:i}", "base", "b", "text", "x", "name", name.data,
                                             "max_tokens", MCP_MAX_TOKENS_MIN));
        QR_CHECK_INT(API_ID_SIZE - 1, strlen(api_text(added, "item_id")));
        json_array_append(ids, json_object_get(added, "item_id"));
    }
    QR_JSON *gone =
        call_well(quire, "quire_delete",
                  json_pack("{s:s, s:O, s:i}", "base", "b", "items", ids, "max_tokens", MCP_MAX_TOKENS_MIN));
    QR_CHECK_INT(50, api_number(gone, "count"));
    quire_close(quire);
}

QR_TEST(an_item_of_many_parts_is_read_anywhere)
{
    struct quire *quire = api_open_base(t);
    api_start_work(quire);
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    char id[API_ID_SIZE];
    for (int i = 1; i <= 30000; i++) { /* more than what is fetched at once, with characters across its ends */
        qr_buf_printf(&text, "zeile äöü %d\n", i);
    }
    add(quire, "long", text.data, id);
    QR_JSON *lines =
        call_well(quire, "quire_read",
                  json_pack("{s:s, s:s, s:i, s:i}", "base", "b", "item", id, "line_start", 29999, "line_end", 29999));
    QR_CHECK_TEXT("zeile äöü 29999\n", api_text(lines, "text"));
    QR_JSON *bytes = call_well(
        quire, "quire_read",
        json_pack("{s:s, s:s, s:I}", "base", "b", "item", id, "offset", (json_int_t)api_number(lines, "start")));
    QR_CHECK_INT(29999, api_number(bytes, "line_start"));
    QR_CHECK_TEXT("zeile äöü 29999\nzeile äöü 30000\n", api_text(bytes, "text"));
    quire_close(quire);
}

/* ---- keys ---- */

/* The answer over HTTP with this key; NULL = without one. */
static json_t *post(struct quire *quire, const char *secret, const char *tool, const char *arguments, int status)
{
    char body[512], authorization[128] = "";
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\",\"arguments\":%s}}",
             tool, arguments);
    snprintf(authorization, sizeof authorization, "Bearer %s", secret ? secret : "");
    const struct quire_request request = {.method = "POST",
                                          .target = "/mcp",
                                          .body = body,
                                          .body_size = strlen(body),
                                          .authorization = secret ? authorization : NULL,
                                          .remote_address = "192.0.2.1"};
    struct quire_response response;
    qr_test_set_context("%s", body);
    QR_CHECK_INT(status, quire_mcp_http_call(quire, &request, &response));
    if (status == 401) {
        QR_CHECK_HAS("Bearer", quire_response_header(&response, "WWW-Authenticate"));
        QR_CHECK_HAS("\"unauthorized\"", response.body);
    }
    json_t *answer = json_loads(response.body, 0, NULL);
    quire_response_done(&response);
    return answer;
}

static void check_post(struct quire *quire, const char *secret, const char *tool, const char *arguments,
                       const char *says)
{
    QR_JSON *answer = post(quire, secret, tool, arguments, 200);
    QR_CHECK_HAS(says, text_of(json_object_get(answer, "result")));
}

QR_TEST(tools_do_what_the_key_may_and_nothing_else) /* MCP-3 */
{
    struct quire *quire = api_open_base(t);
    api_check(quire, "POST", "/api/v1/bases", "{\"name\":\"secret\"}", 201, "");
    QR_JSON *base = api_call(quire, "GET", API_BASE, NULL, 200);
    char body[256];
    snprintf(body, sizeof body, "{\"name\":\"k\",\"roles\":{\"%s\":\"viewer\"}}", api_text(base, "id"));
    QR_JSON *key = api_call(quire, "POST", "/api/v1/keys", body, 201);
    const char *viewer = api_text(key, "secret");
    json_decref(post(quire, NULL, "quire_list", "{}", 401));
    json_decref(post(quire, "qk_wrong", "quire_list", "{}", 401));
    QR_JSON *listed = post(quire, viewer, "quire_list", "{}", 200);
    QR_CHECK_HAS("\"name\":\"b\"", text_of(json_object_get(listed, "result")));
    QR_CHECK(!strstr(text_of(json_object_get(listed, "result")), "secret"));
    check_post(quire, viewer, "quire_search", "{\"query\":\"x\"}", "\"hits\":[]");
    check_post(quire, viewer, "quire_search", "{\"query\":\"x\",\"bases\":[\"secret\"]}", "not_found: ");
    check_post(quire, viewer, "quire_add", "{\"base\":\"b\",\"text\":\"x\"}", "forbidden: ");
    check_post(quire, viewer, "quire_add", "{\"text\":\"x\"}", "forbidden: "); /* nor makes it the base default */
    check_post(quire, viewer, "quire_add", "{\"base\":\"secret\",\"text\":\"x\"}", "not_found: ");
    check_post(quire, viewer, "quire_status", "{\"base\":\"secret\"}", "not_found: ");
    check_post(quire, viewer, "quire_delete", "{\"base\":\"b\",\"items\":[\"01890000-0000-7000-8000-000000000000\"]}",
               "forbidden: ");
    quire_close(quire);
}
