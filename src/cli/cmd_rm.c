/* quire rm, retry, refresh ITEM…: requests on items that only queue work. */
#include "cli/items.h"

static void print_skipped(const json_t *answer)
{
    const json_t *skipped;
    size_t i;
    json_array_foreach(json_object_get(answer, "skipped"), i, skipped)
    {
        printf("skipped %s: %s\n", cli_text(skipped, "id"), cli_text(skipped, "reason"));
    }
}

static int request(struct cli *cli, const char *action, const char *done)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    qr_err err = {0};
    int exit_code = cli_find_selection(cli, &body);
    qr_buf_add_text(&body, "}");
    cli_add_base_path(cli, &path, action);
    if (exit_code == 0 && (qr_buf_check(&body, &err) != QR_OK || qr_buf_check(&path, &err) != QR_OK)) {
        exit_code = cli_fail(cli, &err);
    }
    exit_code = exit_code ? exit_code : cli_call(cli, "POST", path.data, body.data, &answer);
    if (exit_code || cli->json) {
        return exit_code ? exit_code : cli_print_json(cli, json_incref(answer));
    }
    const size_t count = json_array_size(json_object_get(answer, "accepted"));
    printf("%zu item%s %s\n", count, count == 1 ? "" : "s", done);
    print_skipped(answer);
    cli_print_pending(cli);
    return 0;
}

static int remove_items(struct cli *cli)
{
    return request(cli, "/items/delete", "deleted");
}

static int retry_items(struct cli *cli)
{
    return request(cli, "/items/retry", "to be tried again");
}

static int refresh_items(struct cli *cli)
{
    return request(cli, "/items/refresh", "to be looked at again");
}

int cmd_rm(struct cli *cli)
{
    return cli_with_data(cli, remove_items);
}

int cmd_retry(struct cli *cli)
{
    return cli_with_data(cli, retry_items);
}

int cmd_refresh(struct cli *cli)
{
    return cli_with_data(cli, refresh_items);
}
