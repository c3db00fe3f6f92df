/* quire rm ITEM…: deletes them. */
#include "cli/items.h"

static int remove_items(struct cli *cli)
{
    QR_JSON *answer = NULL;
    const int exit_code = cli_post_selection(cli, "/items/delete", "", &answer);
    if (exit_code || cli->json) {
        return exit_code ? exit_code : cli_print_json(cli, json_incref(answer));
    }
    const size_t count = json_array_size(json_object_get(answer, "accepted"));
    printf("%zu item%s deleted\n", count, count == 1 ? "" : "s");
    cli_print_skipped(answer);
    cli_print_pending(cli);
    return 0;
}

int cmd_rm(struct cli *cli)
{
    return cli_with_data(cli, remove_items);
}
