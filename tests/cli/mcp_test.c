/* quire mcp: messages on standard input, answers and nothing else on standard output, and it ends with its input. */
#include "base/json.h"
#include "support/program.h"

#define CALL(id, tool, arguments)                                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool                        \
    "\",\"arguments\":" arguments "}}\n"

/* The line with this number is a JSON-RPC answer with this id, and has this in it. */
static void check_line(const char *out, int number, const char *id, const char *has)
{
    qr_str rest = qr_str_of(out), line = {0};
    for (int i = 0; i < number; i++) {
        QR_CHECK(rest.len > 0);
        line = qr_str_split(&rest, '\n');
    }
    QR_JSON *answer = json_loadb(line.ptr, line.len, 0, NULL);
    QR_JSON *wanted = json_loads(id, JSON_DECODE_ANY, NULL);
    qr_test_set_context("%.*s", QR_STR_ARG(line));
    QR_CHECK(answer && json_equal(json_object_get(answer, "id"), wanted));
    QR_CHECK(memmem(line.ptr, line.len, has, strlen(has)));
}

static int count_lines(const char *out)
{
    int count = 0;
    for (; (out = strchr(out, '\n')); out++) {
        count++;
    }
    return count;
}

QR_TEST(messages_are_answered_in_order_and_nothing_else_is_printed) /* MCP-1 */
{
    static const char input[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","
        "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r\n"
        "\n"
        "nonsense\n" CALL("\"a\"", "quire_add", "{\"text\":\"Boats at high tide.\",\"name\":\"harbour\"}")
            CALL("2", "quire_list", "{}") "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}"; /* without an end */
    const struct program_end end = program_run(t, &(struct program){.args = {"mcp"}, .input = input});
    QR_CHECK_INT(0, end.exit_code);
    QR_CHECK_INT(5, count_lines(end.out));
    check_line(end.out, 1, "0", "\"protocolVersion\":\"2025-06-18\"");
    check_line(end.out, 2, "null", "-32700");
    check_line(end.out, 3, "\"a\"", "created");
    check_line(end.out, 4, "2", "default");
    check_line(end.out, 5, "3", "\"result\":{}");
    /* what was added is durable, whoever goes on with it */
    program_check(t, PROGRAM("wait"), 0, "nothing is pending");
    program_check(t, PROGRAM("search", "tide"), 0, "harbour");
}

QR_TEST(a_line_that_is_too_long_costs_only_itself)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf input = {0};
    char *room = qr_buf_reserve(&input, 40 << 20);
    QR_CHECK(room);
    memset(room, 'x', 40 << 20);
    qr_buf_grown(&input, 40 << 20);
    qr_buf_add_text(&input, "\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    const struct program_end end = program_run(t, &(struct program){.args = {"mcp"}, .input = input.data});
    QR_CHECK_INT(0, end.exit_code);
    QR_CHECK_INT(2, count_lines(end.out));
    check_line(end.out, 1, "null", "-32600");
    check_line(end.out, 2, "1", "\"result\":{}");
}

QR_TEST(an_error_of_the_program_is_no_message)
{
    const struct program_end end =
        program_run(t, &(struct program){.args = {"mcp", "--json", "--set", "database.url=nonsense"}, .input = "{}\n"});
    QR_CHECK(end.exit_code != 0);
    QR_CHECK_TEXT("", end.out);
    QR_CHECK(end.errors[0]);
}
