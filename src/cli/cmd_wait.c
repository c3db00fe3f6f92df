/* quire wait [ITEM…]: runs what is pending, or watches who runs it, until it is done. */
#include "cli/items.h"

/* ---- items ---- */

static int wait_for_named(struct cli *cli)
{
    QR_JSON *items = json_array();
    for (size_t i = 0; i < cli->arg_count; i++) {
        json_t *item = NULL;
        const int exit_code = cli_find_item(cli, cli->args[i], &item);
        if (exit_code) {
            return exit_code;
        }
        json_array_append_new(items, item);
    }
    return cli_wait_and_tell(cli, items, "", NULL);
}

/* ---- everything ---- */

/* Roots that failed, of all bases: `wait` ends with 1 as `add` does. */
static int count_failed(struct cli *cli, const json_t *base, long long *ret_count)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    qr_buf_printf(&path, "/api/v1/bases/%s/items?parent=root&status=failed&limit=200", cli_text(base, "id"));
    const int exit_code = cli_call(cli, "GET", qr_buf_str(&path).ptr, NULL, &answer);
    const json_t *data = json_object_get(answer, "data");
    *ret_count = (long long)json_array_size(data);
    if (exit_code == 0 && *ret_count && !cli->json) {
        cli_print_safe(cli_text(base, "name"));
        printf(": %lld item%s failed; `quire ls", *ret_count, *ret_count == 1 ? " has" : "s have");
        cli_print_base_option(cli_text(base, "name"));
        puts(" --all --status failed` says why");
    }
    return exit_code;
}

/* "12 jobs done in 1.4 s; nothing is pending" */
static void print_done(const struct cli_work *work)
{
    const long long done = cli_progress_done(&work->progress, NULL);
    if (done) {
        printf("%s job%s done in %s; ", cli_grouped(done).text, done == 1 ? "" : "s",
               cli_duration(qr_clock_mono_ms(qr_clock_system()) - work->began_ms).text);
    }
    puts("nothing is pending");
}

static int tell_failures(struct cli *cli, const struct cli_work *work)
{
    QR_JSON *answer = NULL;
    const json_t *base;
    size_t i;
    long long sum = 0;
    int exit_code = cli_call(cli, "GET", "/api/v1/bases?limit=200", NULL, &answer);
    json_array_foreach(json_object_get(answer, "data"), i, base)
    {
        long long count = 0;
        exit_code = exit_code ? exit_code : count_failed(cli, base, &count);
        sum += count;
    }
    if (exit_code) {
        return exit_code;
    }
    if (cli->json) {
        exit_code = cli_print_json(cli, json_pack("{s:I}", "failed", (json_int_t)sum));
    } else if (sum == 0) {
        print_done(work);
    }
    return exit_code ? exit_code : sum ? 1 : 0;
}

static int wait_for_everything(struct cli *cli)
{
    struct cli_work work;
    int exit_code = cli_start_work(&work, cli);
    const enum cli_wait end = exit_code ? CLI_WAIT_FAILED : cli_wait_for_all(&work, &exit_code);
    const struct cli_work waited = work;
    cli_stop_work(&work);
    if (end == CLI_WAIT_DETACHED) {
        cli_print_pending(cli);
        return 0;
    }
    return end == CLI_WAIT_DONE ? tell_failures(cli, &waited) : exit_code;
}

int cmd_wait(struct cli *cli)
{
    return cli_with_data(cli, cli->arg_count ? wait_for_named : wait_for_everything);
}
