/* quire reindex, refresh, retry ITEM…: has items worked on again, and waits until that is done. */
#include "cli/items.h"

enum {
    OPTION_BASE,
    OPTION_NO_WAIT,
    OPTION_DRY_RUN
}; /* the order of the commands' options; only reindex has the last */

struct request {
    const char *action; /* the end of its path */
    const char *to_be;  /* what is said of items that nobody waits for */
};

static void print_estimate(const json_t *estimate)
{
    const long long items = cli_number(estimate, "items");
    printf("would build %s document%s anew, and embed ", cli_grouped(items).text, items == 1 ? "" : "s");
    cli_print_cost(estimate);
}

static int wait_for_accepted(struct cli *cli, json_t *answer)
{
    QR_JSON *items = json_array();
    const json_t *id;
    size_t i;
    json_array_foreach(json_object_get(answer, "accepted"), i, id)
    {
        json_array_append_new(items, json_pack("{s:s}", "id", json_string_value(id)));
    }
    if (!cli->json) {
        cli_print_skipped(answer);
    }
    return cli_wait_and_tell(cli, items, cli_text(answer, "job_id"), answer);
}

static int finish(struct cli *cli, const struct request *request, json_t *answer)
{
    const bool is_dry_run = cli->switches & QR_BIT(OPTION_DRY_RUN);
    const size_t count = json_array_size(json_object_get(answer, "accepted"));
    if (!is_dry_run && count && !(cli->switches & QR_BIT(OPTION_NO_WAIT))) {
        return wait_for_accepted(cli, answer);
    }
    if (cli->json) {
        return cli_print_json(cli, json_incref(answer));
    }
    if (is_dry_run) {
        print_estimate(json_object_get(answer, "estimate"));
        return 0;
    }
    printf("%zu item%s to be %s\n", count, count == 1 ? "" : "s", request->to_be);
    cli_print_skipped(answer);
    cli_print_pending(cli);
    return 0;
}

static int send_request(struct cli *cli, const struct request *request)
{
    QR_JSON *answer = NULL;
    const char *more = cli->switches & QR_BIT(OPTION_DRY_RUN) ? ",\"dry_run\":true" : "";
    const int exit_code = cli_post_selection(cli, request->action, more, &answer);
    return exit_code ? exit_code : finish(cli, request, answer);
}

static int reindex(struct cli *cli)
{
    return send_request(cli, &(struct request){"/items/reindex", "built anew"});
}

static int refresh(struct cli *cli)
{
    return send_request(cli, &(struct request){"/items/refresh", "looked at again"});
}

static int retry(struct cli *cli)
{
    return send_request(cli, &(struct request){"/items/retry", "tried again"});
}

int cmd_reindex(struct cli *cli)
{
    return cli_with_data(cli, reindex);
}

int cmd_refresh(struct cli *cli)
{
    return cli_with_data(cli, refresh);
}

int cmd_retry(struct cli *cli)
{
    return cli_with_data(cli, retry);
}
