/* quire version */
#include "cli/cli.h"

#include <stdio.h>

int cmd_version(struct cli *cli)
{
    if (cli->json) {
        return cli_print_json(cli, json_pack("{s:s}", "version", quire_version()));
    }
    printf("quire %s\n", quire_version());
    return 0;
}
