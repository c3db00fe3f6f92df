/* quire search QUERY: the passages that fit best, with where they are. */
#include "cli/items.h"

enum { OPTION_BASE, OPTION_TOP }; /* the order of the command's options */

/* The beginning, on one line: white space of any kind is one space. */
static void print_passage(const char *text)
{
    enum { SHOWN_BYTES_MAX = 280 };
    const qr_str shown = qr_utf8_prefix(qr_str_of(text), SHOWN_BYTES_MAX);
    bool was_space = true;
    fputs("   ", stdout);
    for (size_t i = 0; i < shown.len; i++) {
        const unsigned char c = (unsigned char)shown.ptr[i];
        const bool is_space = c <= ' ' || c == 0x7f;
        if (!is_space || !was_space) {
            fputc(is_space ? ' ' : c, stdout);
        }
        was_space = is_space;
    }
    puts(text[shown.len] ? " …" : "");
}

static void print_hit(const json_t *hit)
{
    const char *heading = cli_text(hit, "heading"), *uri = cli_text(hit, "uri");
    printf("%lld. ", cli_number(hit, "rank"));
    cli_print_safe(cli_text(hit, "name"));
    if (heading[0]) {
        fputs("  ", stdout);
        cli_print_safe(heading);
    }
    fputs("\n   ", stdout);
    cli_print_safe(uri[0] ? uri : cli_text(hit, "item_id"));
    fputc('\n', stdout);
    print_passage(cli_text(hit, "text"));
}

static int print_hits(struct cli *cli, const json_t *answer)
{
    const json_t *hits = json_object_get(answer, "hits"), *hit;
    size_t i;
    json_array_foreach(hits, i, hit)
    {
        print_hit(hit);
    }
    if (i == 0) {
        puts("nothing was found");
    }
    cli_print_pending(cli);
    return 0;
}

static qr_rc make_body(const struct cli *cli, struct qr_buf *body, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf query = {0};
    int64_t top_k = 10;
    for (size_t i = 0; i < cli->arg_count; i++) {
        qr_buf_printf(&query, "%s%s", i ? " " : "", cli->args[i]);
    }
    QR_TRY(qr_buf_check(&query, err));
    if (query.len == 0) {
        return qr_fail(err, QR_CODE_USAGE, "say what to search for: quire search QUERY");
    }
    if (cli->values[OPTION_TOP] && !qr_str_to_i64(qr_str_of(cli->values[OPTION_TOP]), &top_k)) {
        return qr_fail(err, QR_CODE_USAGE, "--top takes a number");
    }
    QR_JSON *request = json_pack("{s:s, s:I}", "query", query.data, "top_k", (json_int_t)top_k);
    return request ? qr_json_write(request, body, err) : qr_fail(err, QR_CODE_INVALID_VALUE, "the query is not UTF-8");
}

static int search(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    qr_err err = {0};
    cli_add_base_path(cli, &path, "/search");
    if (make_body(cli, &body, &err) != QR_OK || qr_buf_check(&path, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    const int exit_code = cli_call(cli, "POST", path.data, body.data, &answer);
    if (exit_code) {
        return exit_code;
    }
    return cli->json ? cli_print_json(cli, json_incref(answer)) : print_hits(cli, answer);
}

int cmd_search(struct cli *cli)
{
    return cli_with_data(cli, search);
}
