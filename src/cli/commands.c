/* The map of the command line. Help, the man page and the parser all read these tables. */
#include "cli/cli.h"

const char cli_summary[] = "turns folders, files, notes and web pages into knowledge bases that can be searched";

const struct cli_option cli_options[] = {
    {"--data", "DIR", "The data folder; also the setting data.dir and QUIRE_DATA."},
    {"--config", "FILE", "The configuration file; also QUIRE_CONFIG. Default: $XDG_CONFIG_HOME/quire/quire.ini."},
    {"--set", "KEY=VALUE", "One setting for this call; may be repeated. `quire help config` lists them."},
    {"--json", NULL, "Print the answer, or the error, as JSON and nothing else on standard output."},
    {"--help", NULL, "Print the command's help."},
    {NULL},
};

const struct cli_command cli_commands[] = {
    {
        .name = "check",
        .args = "",
        .doc = "Looks through everything stored for damage.",
        .details = "Opens the data folder (a missing one is made), reads the whole database and says what it looked "
                   "at. Repairs nothing.",
        .run = cmd_check,
    },
    {
        .name = "config",
        .args = "[KEY]",
        .args_max = 1,
        .doc = "Prints the settings in force and where each came from.",
        .details = "With KEY prints the value of that one. Passwords are never printed. Variables that look like "
                   "settings but are none are listed as warnings.",
        .options = {{"--failpoints", NULL, "List the failpoints of this build, one a line."}},
        .run = cmd_config,
    },
    {
        .name = "help",
        .args = "[COMMAND|config|errors]",
        .args_max = 1,
        .doc = "Explains a command, all settings (config) or all errors (errors).",
        .details = "",
        .options = {{"--man", NULL, "Print the manual page."}},
        .run = cmd_help,
    },
    {
        .name = "jobs",
        .args = "ls|show|cancel|retry|queues|pause|resume [JOB|QUEUE]",
        .args_max = 2,
        .doc = "Lists jobs, says why one waits, and steers them.",
        .details = "ls lists jobs, newest first, by the options below. show JOB says why it waits and what happened to "
                   "it; cancel JOB ends an open one; retry JOB adds a failed or cancelled one once more. queues says "
                   "how much waits; pause QUEUE begins no more of its jobs until resume QUEUE. A job is named by its "
                   "id or a beginning that no other has.",
        .options =
            {
                {"--state", "STATE", "ls: blocked, scheduled, queued, running, completed, failed, skipped, cancelled."},
                {"--queue", "QUEUE", "ls: expand, convert, embed, assets or delete."},
                {"--type", "TYPE", "ls: jobs of this type."},
                {"--base", "ID", "ls: jobs of this base."},
                {"--item", "ID", "ls: jobs of this item."},
                {"--limit", "N", "ls: at most so many, 1 to 200. Default: 50."},
                {"--cursor", "ID", "ls: go on behind this job."},
            },
        .run = cmd_jobs,
    },
    {
        .name = "version",
        .args = "",
        .doc = "Prints the version.",
        .details = "",
        .run = cmd_version,
    },
};

const size_t cli_command_count = QR_COUNT(cli_commands);

const struct cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        if (strcmp(cli_commands[i].name, name) == 0) {
            return &cli_commands[i];
        }
    }
    return NULL;
}
