/* quire reindex ITEM…: builds them anew, and waits until that is done. */
#include "cli/items.h"

enum { OPTION_BASE, OPTION_DRY_RUN, OPTION_NO_WAIT }; /* the order of the command's options */

static void print_estimate(const json_t *estimate)
{
    const long long items = cli_number(estimate, "items");
    printf("would build %s document%s anew, and embed ", cli_grouped(items).text, items == 1 ? "" : "s");
    cli_print_cost(estimate);
}

static int wait_for_accepted(struct cli *cli, const json_t *answer)
{
    QR_JSON *items = json_array();
    const json_t *id;
    size_t i;
    json_array_foreach(json_object_get(answer, "accepted"), i, id)
    {
        json_array_append_new(items, json_pack("{s:s}", "id", json_string_value(id)));
    }
    return cli_wait_and_tell(cli, items, cli_text(answer, "job_id"));
}

static int finish(struct cli *cli, const json_t *answer)
{
    const bool dry_run = cli->switches & QR_BIT(OPTION_DRY_RUN), no_wait = cli->switches & QR_BIT(OPTION_NO_WAIT);
    if (!dry_run && !no_wait) {
        return wait_for_accepted(cli, answer);
    }
    if (cli->json) {
        return cli_print_json(cli, json_deep_copy(answer));
    }
    if (dry_run) {
        print_estimate(json_object_get(answer, "estimate"));
        return 0;
    }
    const size_t count = json_array_size(json_object_get(answer, "accepted"));
    printf("%zu item%s to be built anew\n", count, count == 1 ? "" : "s");
    cli_print_pending(cli);
    return 0;
}

static int reindex(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    qr_err err = {0};
    int exit_code = cli_find_selection(cli, &body);
    qr_buf_add_text(&body, cli->switches & QR_BIT(OPTION_DRY_RUN) ? ",\"dry_run\":true}" : "}");
    cli_add_base_path(cli, &path, "/items/reindex");
    if (exit_code == 0 && (qr_buf_check(&body, &err) != QR_OK || qr_buf_check(&path, &err) != QR_OK)) {
        exit_code = cli_fail(cli, &err);
    }
    exit_code = exit_code ? exit_code : cli_call(cli, "POST", path.data, body.data, &answer);
    return exit_code ? exit_code : finish(cli, answer);
}

int cmd_reindex(struct cli *cli)
{
    return cli_with_data(cli, reindex);
}
