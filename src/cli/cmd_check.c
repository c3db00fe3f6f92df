/* quire check: asks POST /api/v1/check. */
#include "cli/cli.h"

#include <stdio.h>

/* Reports each finding as an error. Returns the exit code of the first, 0 without any. */
static int report_findings(const json_t *findings)
{
    int exit_code = 0;
    size_t i;
    const json_t *finding;
    json_array_foreach(findings, i, finding)
    {
        const char *name = json_string_value(json_object_get(finding, "code"));
        const char *message = json_string_value(json_object_get(finding, "message"));
        const qr_code code = qr_code_find(name ? name : "");
        qr_err err;
        qr_fail(&err, code == QR_CODE_COUNT ? QR_CODE_INTERNAL : code, "%s", message ? message : "");
        cli_print_error(&err);
        exit_code = exit_code ? exit_code : qr_code_info(err.code)->exit_code;
    }
    return exit_code;
}

static int print_answer(const struct cli *cli, json_t *answer)
{
    const json_t *database = json_object_get(answer, "database");
    printf("data folder  %s\n", qr_config_text(&cli->config, QR_CONFIG_DATA_DIR));
    printf("database     %s, schema version %lld\n", json_string_value(json_object_get(database, "driver")),
           (long long)json_integer_value(json_object_get(database, "schema_version")));
    printf("instance     %s, made %s\n", json_string_value(json_object_get(database, "instance_id")),
           json_string_value(json_object_get(database, "created_at")));
    const int exit_code = report_findings(json_object_get(answer, "findings"));
    puts(exit_code ? "damage found" : "no damage found");
    return exit_code;
}

static int check(struct cli *cli)
{
    QR_JSON *answer = NULL;
    int exit_code = cli_call(cli, "POST", "/api/v1/check", NULL, &answer);
    if (exit_code) {
        return exit_code;
    }
    if (!cli->json) {
        return print_answer(cli, answer);
    }
    exit_code = cli_print_json(cli, json_incref(answer));
    return exit_code ? exit_code : report_findings(json_object_get(answer, "findings"));
}

int cmd_check(struct cli *cli)
{
    qr_err err = {0};
    if (cli_load_config(cli, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    int exit_code = cli_open(cli);
    if (exit_code == 0) {
        exit_code = check(cli);
        cli_close(cli);
    }
    return exit_code;
}
