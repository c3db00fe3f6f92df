/* quire set ITEM KEY=VALUE…: what is said about an item: name, enabled, attributes. */
#include "cli/assign.h"
#include "cli/items.h"

static qr_rc make_body(const struct cli *cli, struct qr_buf *body, qr_err *err)
{
    QR_JSON *patch = NULL;
    if (cli->arg_count < 2) {
        return qr_fail(err, QR_CODE_USAGE, "say what to change: quire set ITEM KEY=VALUE…, as in enabled=false");
    }
    QR_TRY(cli_read_assignments(cli->args + 1, cli->arg_count - 1, &patch, err));
    return qr_json_write(patch, body, err);
}

static int set(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *item = NULL;
    QR_JSON *answer = NULL;
    qr_err err = {0};
    if (make_body(cli, &body, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    int exit_code = cli_find_item(cli, cli->args[0], &item);
    cli_add_base_path(cli, &path, "/items/");
    qr_buf_add_text(&path, cli_text(item, "id"));
    exit_code = exit_code ? exit_code : cli_call(cli, "PATCH", qr_buf_str(&path).ptr, body.data, &answer);
    if (exit_code || cli->json) {
        return exit_code ? exit_code : cli_print_json(cli, json_incref(answer));
    }
    printf("changed %s  ", cli_text(answer, "id"));
    cli_print_safe(cli_text(answer, "name"));
    fputc('\n', stdout);
    return 0;
}

int cmd_set(struct cli *cli)
{
    return cli_with_data(cli, set);
}
