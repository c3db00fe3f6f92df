/* quire backup: copies the data folder, in use or not, by /api/v1/backup. */
#include "base/mem.h"
#include "cli/items.h"

#include <unistd.h>

/* Another process may do it, which is somewhere else. */
static char *absolute(const char *path)
{
    char here[4096];
    struct qr_buf out = {0};
    if (path[0] == '/') {
        qr_buf_add_text(&out, path);
    } else if (getcwd(here, sizeof here)) {
        qr_buf_printf(&out, "%s/%s", here, path);
    }
    while (out.len > 1 && out.data[out.len - 1] == '/') {
        out.data[--out.len] = '\0';
    }
    return qr_buf_take(&out, NULL);
}

static void print_answer(const json_t *answer)
{
    const long long left_out = cli_number(answer, "index_stores_left_out"),
                    missing = cli_number(answer, "artifacts_missing");
    fputs("backup   ", stdout);
    cli_print_safe(cli_text(answer, "path"));
    printf("\nsize     %s bytes\n", cli_grouped(cli_number(answer, "bytes")).text);
    printf("took     %lld ms; changes waited %lld ms\n", cli_number(answer, "took_ms"), cli_number(answer, "held_ms"));
    if (left_out) {
        printf("%lld index stores are damaged and left out: they are built again when the backup is opened\n",
               left_out);
    }
    if (missing) {
        printf("%lld files are missing in the data folder: `quire check` names them\n", missing);
    }
}

static qr_rc write_body(const char *dir, struct qr_buf *body, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *path = absolute(dir);
    QR_JSON *request = path ? json_pack("{s:s}", "path", path) : NULL;
    return request ? qr_json_write(request, body, err)
                   : qr_fail(err, QR_CODE_INVALID_VALUE, "the folder's name must be UTF-8, and not too long");
}

static int backup(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *answer = NULL;
    qr_err err = {0};
    if (write_body(cli->args[0], &body, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    if (isatty(STDERR_FILENO) && !cli->json) {
        fputs("copying…\r", stderr);
    }
    const int exit_code = cli_call(cli, "POST", "/api/v1/backup", body.data, &answer);
    if (exit_code || cli->json) {
        return exit_code ? exit_code : cli_print_json(cli, json_incref(answer));
    }
    print_answer(answer);
    return 0;
}

int cmd_backup(struct cli *cli)
{
    if (cli->arg_count == 0) {
        qr_err err;
        qr_fail(&err, QR_CODE_USAGE, "say where to: quire backup DIR");
        return cli_fail(cli, &err);
    }
    return cli_with_data(cli, backup);
}
