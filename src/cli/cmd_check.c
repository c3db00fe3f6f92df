/* quire check: asks POST /api/v1/check. */
#include "cli/paint.h"

#include <stdio.h>

enum { REPAIR };
enum { EXIT_FOUND = 1 };

/* Damage of the database is an error with a code of its own; what breaks an invariant is a line of the answer. Returns the
 * exit code of the first error, 0 without any. */
static int report_damage(const json_t *findings)
{
    int exit_code = 0;
    size_t i;
    const json_t *finding;
    json_array_foreach(findings, i, finding)
    {
        if (json_object_get(finding, "invariant")) {
            continue;
        }
        const char *name = cli_text(finding, "code");
        const qr_code code = qr_code_find(name);
        qr_err err;
        qr_fail(&err, code == QR_CODE_COUNT ? QR_CODE_INTERNAL : code, "%s", cli_text(finding, "message"));
        cli_print_error(&err);
        exit_code = exit_code ? exit_code : qr_code_info(err.code)->exit_code;
    }
    return exit_code;
}

static int exit_code_of(const json_t *answer)
{
    const int exit_code = report_damage(json_object_get(answer, "findings"));
    return exit_code || json_is_true(json_object_get(answer, "ok")) ? exit_code : EXIT_FOUND;
}

static long long number_of(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

/* "I6   counters_wrong  item 0192…: it counts 3 completed, …, repaired" */
static void print_finding(const json_t *finding)
{
    static const char *const owners[][2] = {{"job_id", "job"}, {"item_id", "item"}, {"base_id", "base"}};
    if (!json_object_get(finding, "invariant")) {
        return;
    }
    printf("%-4s %s  ", cli_text(finding, "invariant"), cli_text(finding, "code"));
    for (size_t i = 0; i < QR_COUNT(owners); i++) {
        const char *id = cli_text(finding, owners[i][0]);
        if (id[0]) {
            printf("%s %s: ", owners[i][1], id);
            break;
        }
    }
    cli_print_safe(cli_text(finding, "message"));
    puts(json_is_true(json_object_get(finding, "repaired")) ? " (repaired)" : "");
}

static void print_findings(const json_t *answer)
{
    const json_t *findings = json_object_get(answer, "findings");
    const long long found = number_of(answer, "found"), shown = (long long)json_array_size(findings);
    size_t i;
    const json_t *finding;
    json_array_foreach(findings, i, finding)
    {
        print_finding(finding);
    }
    if (found > shown) {
        printf("and %lld more\n", found - shown);
    }
}

static int print_answer(const struct cli *cli, const json_t *answer)
{
    const json_t *database = json_object_get(answer, "database"), *checked = json_object_get(answer, "checked");
    printf("data folder  %s\n", qr_config_text(&cli->config, QR_CONFIG_DATA_DIR));
    printf("database     %s, schema version %lld\n", cli_text(database, "driver"),
           number_of(database, "schema_version"));
    printf("instance     %s, made %s\n", cli_text(database, "instance_id"), cli_text(database, "created_at"));
    printf("checked      bases %lld, items %lld, jobs %lld, chunks %lld, artifacts %lld\n", number_of(checked, "bases"),
           number_of(checked, "items"), number_of(checked, "jobs"), number_of(checked, "chunks"),
           number_of(checked, "artifacts"));
    print_findings(answer);
    const long long found = number_of(answer, "found"), repaired = number_of(answer, "repaired");
    cli_paint(cli, found > repaired ? CLI_BAD : CLI_GOOD);
    if (found == 0) {
        fputs("no damage found", stdout);
    } else {
        printf("damage found: %lld, repaired: %lld", found, repaired);
    }
    cli_paint(cli, CLI_PLAIN);
    fputc('\n', stdout);
    return exit_code_of(answer);
}

static int check(struct cli *cli)
{
    QR_JSON *answer = NULL;
    const char *body = (cli->switches & QR_BIT(REPAIR)) ? "{\"repair\":true}" : NULL;
    int exit_code = cli_call(cli, "POST", "/api/v1/check", body, &answer);
    if (exit_code) {
        return exit_code;
    }
    if (!cli->json) {
        return print_answer(cli, answer);
    }
    exit_code = cli_print_json(cli, json_incref(answer));
    return exit_code ? exit_code : exit_code_of(answer);
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
