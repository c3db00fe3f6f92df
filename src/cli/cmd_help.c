/* quire help [COMMAND|config|errors] [--man] */
#include "cli/cli.h"

enum { SWITCH_MAN = QR_BIT(0) }; /* the order of the command's options */

static int refuse(struct cli *cli, const char *topic)
{
    qr_err err;
    if (topic) {
        qr_fail(&err, QR_CODE_USAGE, "there is no help on %s; `quire help` lists the commands", topic);
    } else {
        qr_fail(&err, QR_CODE_USAGE, "help is text for people: leave --json away");
    }
    return cli_fail(cli, &err);
}

int cmd_help(struct cli *cli)
{
    const char *topic = cli->arg_count ? cli->args[0] : NULL;
    const bool is_errors = topic && strcmp(topic, "errors") == 0, is_config = topic && strcmp(topic, "config") == 0;
    if (topic && !is_errors && !is_config && !cli_find_command(topic)) {
        return refuse(cli, topic);
    }
    if (cli->json) {
        return refuse(cli, NULL);
    }
    if (cli->switches & SWITCH_MAN) {
        cli_print_man_page();
    } else if (!topic) {
        cli_print_overview(stdout);
    } else if (is_errors) {
        cli_print_errors_page();
    } else if (is_config) {
        cli_print_config_page();
    } else {
        cli_print_command_help(cli_find_command(topic));
    }
    return 0;
}
