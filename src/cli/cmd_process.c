/* quire process [STAGE…]: takes what only rests in a base through its stages, and waits until that is done. */
#include "cli/items.h"

enum { OPTION_BASE, OPTION_ONE_LEVEL, OPTION_NO_WAIT }; /* the order of the command's options */

static const struct stage {
    const char *name, *member; /* as a person says it, and as the request does */
} stages[] = {
    {"process", "process_new_documents"},
    {"chunk", "chunk_processed_documents"},
    {"assets", "analyze_assets"},
    {"index", "index_new_chunks"},
};

static bool is_asked_for(const struct cli *cli, const char *name)
{
    for (size_t i = 0; i < cli->arg_count; i++) {
        if (strcmp(cli->args[i], name) == 0) {
            return true;
        }
    }
    return cli->arg_count == 0;
}

static qr_rc require_stages(const struct cli *cli, qr_err *err)
{
    for (size_t i = 0; i < cli->arg_count; i++) {
        bool is_known = false;
        for (size_t s = 0; s < QR_COUNT(stages); s++) {
            is_known = is_known || strcmp(cli->args[i], stages[s].name) == 0;
        }
        if (!is_known) {
            return qr_fail(err, QR_CODE_USAGE, "there is no stage %s: the stages are process, chunk, assets and index",
                           cli->args[i]);
        }
    }
    return QR_OK;
}

static qr_rc write_request(const struct cli *cli, struct qr_buf *path, struct qr_buf *body, qr_err *err)
{
    QR_TRY(require_stages(cli, err));
    qr_buf_add_text(path, "/api/v1/knowledge-spaces/");
    qr_url_add_encoded(path, cli_base(cli));
    qr_buf_add_text(path, "/process");
    qr_buf_printf(body, "{\"level_gate\":\"%s\"", cli->switches & QR_BIT(OPTION_ONE_LEVEL) ? "manual" : "auto");
    for (size_t i = 0; i < QR_COUNT(stages); i++) {
        qr_buf_printf(body, ",\"%s\":%s", stages[i].member, is_asked_for(cli, stages[i].name) ? "true" : "false");
    }
    qr_buf_add_text(body, "}");
    QR_TRY(qr_buf_check(path, err));
    return qr_buf_check(body, err);
}

/* "completed: process 5, index 4 (1 failed)": stages that had nothing to do are left out. */
static void print_run(const json_t *run)
{
    const json_t *counts = json_object_get(run, "stages");
    const char *before = ": ";
    cli_print_safe(cli_text(run, "status"));
    for (size_t i = 0; i < QR_COUNT(stages); i++) {
        const json_t *stage = json_object_get(counts, stages[i].name);
        const long long done = cli_number(stage, "done"), failed = cli_number(stage, "failed");
        if (done + failed) {
            printf("%s%s %lld", before, stages[i].name, done + failed);
            before = ", ";
        }
        if (failed) {
            printf(" (%lld failed)", failed);
        }
    }
    puts(before[0] == ':' ? ": nothing was waiting for this" : "");
}

static int tell(struct cli *cli, const json_t *run)
{
    const int exit_code = cli_is(run, "status", "completed_with_errors") ? 1 : 0;
    if (cli->json) {
        const int printed = cli_print_json(cli, json_deep_copy(run));
        return printed ? printed : exit_code;
    }
    print_run(run);
    if (exit_code) {
        printf("`quire ls");
        cli_print_base_option(cli_base(cli));
        puts(" --all --status failed` says why");
    }
    cli_print_pending(cli);
    return exit_code;
}

static int wait_for_run(struct cli *cli, const json_t *run)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    struct cli_work work;
    int exit_code = cli_start_work(&work, cli);
    const enum cli_wait end = exit_code ? CLI_WAIT_FAILED : cli_wait_for_all(&work, &exit_code);
    cli_stop_work(&work);
    if (end == CLI_WAIT_FAILED) {
        return exit_code;
    }
    qr_buf_printf(&path, "/api/v1/runs/%s", cli_text(run, "id"));
    exit_code = cli_call(cli, "GET", qr_buf_str(&path).ptr, NULL, &answer);
    return exit_code ? exit_code : tell(cli, answer);
}

static int process(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *run = NULL;
    qr_err err = {0};
    if (write_request(cli, &path, &body, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    const int exit_code = cli_call(cli, "POST", path.data, body.data, &run);
    if (exit_code) {
        return exit_code;
    }
    return cli->switches & QR_BIT(OPTION_NO_WAIT) ? tell(cli, run) : wait_for_run(cli, run);
}

int cmd_process(struct cli *cli)
{
    return cli_with_data(cli, process);
}
