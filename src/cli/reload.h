/* Settings of a server: as it begins, and when it is told that they have changed. */
#pragma once

#include "cli/cli.h"
#include "http/port.h"

/* Borrows texts of the configuration. Who has keys is not in it. */
struct quire_port_options cli_port_options(const struct cli *cli, const struct qr_config *config);

/* Reads the configuration again and takes what can change while it serves, as a whole: where anything in it is wrong, nothing
 * changes. Logs what it took, what waits for the next start, or what is wrong. */
void cli_reload(struct cli *cli, struct quire_port *port);
