/* quire help [COMMAND|config|errors] [--man] */
#include "cli/cli.h"

enum { SWITCH_MAN = QR_BIT(0) }; /* the order of the command's options */

int cmd_help(struct cli *cli)
{
    const char *topic = cli->arg_count ? cli->args[0] : NULL;
    if (cli->switches & SWITCH_MAN) {
        cli_print_man_page();
    } else if (!topic) {
        cli_print_overview(stdout);
    } else if (strcmp(topic, "errors") == 0) {
        cli_print_errors_page();
    } else if (strcmp(topic, "config") == 0) {
        cli_print_config_page();
    } else if (cli_find_command(topic)) {
        cli_print_command_help(cli_find_command(topic));
    } else {
        qr_err err;
        qr_fail(&err, QR_CODE_USAGE, "there is no help on %s; `quire help` lists the commands", topic);
        return cli_fail(cli, &err);
    }
    return 0;
}
