/* Help texts and the Markdown documents of docs/, printed from the tables. */
#include "cli/cli.h"

const struct cli_exit_code cli_exit_codes[] = {
    {0, "done"},
    {1, "some of the work failed"},
    {2, "the command, a setting or the request is wrong"},
    {3, "refused by the state things are in"},
    {4, "not found"},
    {5, "something needed is not available: the data folder, the database, the disk, memory"},
};
const size_t cli_exit_code_count = QR_COUNT(cli_exit_codes);

static void print_options(FILE *out, const struct cli_option *options)
{
    for (; options->name; options++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", options->name, options->arg ? options->arg : "");
        fprintf(out, "  %-18s %s\n", left, options->doc);
    }
}

void cli_print_overview(FILE *out)
{
    fprintf(out, "quire %s\n\nusage: quire [OPTION]… COMMAND\n\ncommands:\n", cli_summary);
    for (size_t i = 0; i < cli_command_count; i++) {
        fprintf(out, "  %-18s %s\n", cli_commands[i].name, cli_commands[i].doc);
    }
    fputs("\noptions:\n", out);
    print_options(out, cli_options);
    fputs(
        "\n`quire help COMMAND` says more; `quire help config` and `quire help errors` list all settings and errors.\n",
        out);
}

void cli_print_command_help(const struct cli_command *command)
{
    printf("usage: quire [OPTION]… %s%s%s\n\n%s\n", command->name, command->args[0] ? " " : "", command->args,
           command->doc);
    if (command->details[0]) {
        puts(command->details);
    }
    puts("\noptions:");
    print_options(stdout, command->options);
    print_options(stdout, cli_options);
}

/* ---- docs/CONFIG.md ---- */

static void print_key_row(const struct qr_config_key *key)
{
    char env_name[QR_CONFIG_ENV_SIZE];
    qr_config_env_name(key, env_name);
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_buf_printf(&text, "| `%s` | `%s` | `", key->name, env_name);
    qr_config_add_default(&text, key);
    qr_buf_add_text(&text, "` | ");
    qr_config_add_allowed(&text, key);
    qr_buf_printf(&text, " | %s | %s |", key->when == QR_CONFIG_AT_RELOAD ? "reload" : "start", key->doc);
    if (text.failed == QR_CODE_NONE) {
        puts(text.data);
    }
}

static const char config_page_beginning[] =
    "# Settings\n\n"
    "Each setting has a default, which the configuration file overrides, which the environment overrides, which a\n"
    "flag (`--set KEY=VALUE`) overrides. `quire config` prints what is in force and where it came from,\n"
    "`quire config KEY` one value.\n\n"
    "The file is named by `--config`, else by `QUIRE_CONFIG`, else it is `$XDG_CONFIG_HOME/quire/quire.ini`, else\n"
    "`~/.config/quire/quire.ini`. A file that is named must exist. It is UTF-8 text of the form\n\n"
    "```ini\n"
    "# a comment\n"
    "[log]\n"
    "level = debug\n"
    "```\n\n"
    "A value reaches to the end of its line; quotes and comments behind it would be part of it. A path begins\n"
    "with `/` or `~/`. A key may stand once. An unknown key is an error. An empty environment variable counts as\n"
    "not set. KB, MB and GB are powers of 1024. A password belongs in the file or the environment: others can see\n"
    "flags.\n\n"
    "`quire serve` reads the file again when it gets SIGHUP, and takes what says `reload` below at once; `start` takes "
    "a\n"
    "restart. Where anything in it is wrong nothing changes. The log says which.\n\n"
    "| setting | variable | default | allowed | takes effect | meaning |\n"
    "|---|---|---|---|---|---|";

void cli_print_config_page(void)
{
    puts(config_page_beginning);
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        print_key_row(qr_config_key(id));
    }
}

/* ---- docs/ERRORS.md ---- */

void cli_print_errors_page(void)
{
    puts(
        "# Errors\n\n"
        "Every error has a stable code. Programs match on the code; messages may change. The API answers\n"
        "`{\"error\": {\"code\", \"message\", \"details\"?}}` with the HTTP status below, the command line exits with\n"
        "the exit code below, and a job that fails this way is tried again, failed for good or skipped.\n\n"
        "| code | HTTP | exit | job | what to do |\n"
        "|---|---|---|---|---|");
    for (qr_code code = QR_CODE_NONE + 1; code < QR_CODE_COUNT; code++) {
        const struct qr_code_info *info = qr_code_info(code);
        printf("| `%s` | %d | %d | %s | %s |\n", info->name, info->http_status, info->exit_code,
               qr_policy_name(info->policy), info->advice);
    }
    puts("\n| exit code | meaning |\n"
         "|---|---|");
    for (size_t i = 0; i < cli_exit_code_count; i++) {
        printf("| %d | %s |\n", cli_exit_codes[i].code, cli_exit_codes[i].meaning);
    }
}
