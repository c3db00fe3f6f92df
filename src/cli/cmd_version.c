/* quire version: with --json also the program that reads files, and what the kernel holds it by. */
#include "base/mem.h"
#include "base/proc.h"
#include "base/program.h"
#include "cli/cli.h"

#include <stdio.h>

enum { ANSWER_BYTES_MAX = 4096, ANSWER_MS_MAX = 10000 };

static qr_rc ask_reader(const char *program, json_t **ret_answer, qr_err *err)
{
    const struct qr_proc_options options = {.argv = (const char *const[]){program, "--protections", NULL},
                                            .output_bytes_max = ANSWER_BYTES_MAX,
                                            .timeout_ms = ANSWER_MS_MAX};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_proc_result result;
    QR_TRY(qr_proc_run(&options, &out, NULL, &result, err));
    if (result.exit_code != 0) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "%s does not work", program);
    }
    return qr_json_parse(qr_str_trim(qr_buf_str(&out)), &QR_JSON_REQUEST_LIMITS, ret_answer, err);
}

/* {"program", "protections": {"landlock", "seccomp", "limits"}}, or {"error"}: the version is told in any case. */
static json_t *reader_json(struct cli *cli)
{
    QR_CLEANUP(qr_free_ptr) char *program = NULL;
    json_t *protections = NULL;
    qr_err err = {0};
    if (cli_load_config(cli, &err) != QR_OK ||
        qr_program_find(qr_config_text(&cli->config, QR_CONFIG_READER_PROGRAM), &program, &err) != QR_OK ||
        ask_reader(program, &protections, &err) != QR_OK) {
        return json_pack("{s:s}", "error", err.msg);
    }
    return json_pack("{s:s, s:o}", "program", program, "protections", protections);
}

int cmd_version(struct cli *cli)
{
    if (cli->json) {
        return cli_print_json(cli, json_pack("{s:s, s:o}", "version", quire_version(), "reader", reader_json(cli)));
    }
    printf("quire %s\n", quire_version());
    return 0;
}
