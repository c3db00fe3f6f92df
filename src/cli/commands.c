/* The map of the command line. Help, the man page and the parser all read these tables. */
#include "cli/cli.h"

const char cli_summary[] = "turns folders, files, notes and web pages into knowledge bases that can be searched";

const struct cli_option cli_options[] = {
    {"--data", "DIR", "The data folder; also the setting data.dir and QUIRE_DATA."},
    {"--config", "FILE", "The configuration file; also QUIRE_CONFIG. Default: $XDG_CONFIG_HOME/quire/quire.ini."},
    {"--set", "KEY=VALUE", "One setting for this call; may be repeated. `quire help config` lists them."},
    {"--server", "URL",
     "Work through this server instead, as in http://127.0.0.1:7700 or https://…; also QUIRE_SERVER. Paths are the "
     "server's then."},
    {"--key-file", "FILE", "The file with the key for --server; also the key itself in QUIRE_KEY."},
    {"--json", NULL, "Print the answer, or the error, as JSON and nothing else on standard output."},
    {"--help", NULL, "Print the command's help."},
    {NULL},
};

#define NO_WAIT_OPTION                                                                                                 \
    {                                                                                                                  \
        "--no-wait", NULL, "Return at once."                                                                           \
    }
#define BASE_OPTION                                                                                                    \
    {                                                                                                                  \
        "-b", "BASE", "The base, by name or id. Default: default."                                                     \
    }

const struct cli_command cli_commands[] = {
    {
        .name = "add",
        .args = "PATH|URL|-…",
        .args_max = 500,
        .doc = "Adds folders, files and notes, and waits until they can be searched.",
        .details = "What is there already is looked at again, and only what changed is read. - is a note from standard "
                   "input. The base default is made on first use. Ctrl-C ends the waiting; nothing is lost, and "
                   "`quire wait` goes on. Ends with 1 when something failed.",
        .options =
            {
                BASE_OPTION,
                {"--name", "NAME", "Of a note from standard input."},
                {"--manual", NULL, "Only register it: nothing is read until it is asked for."},
                NO_WAIT_OPTION,
            },
        .run = cmd_add,
    },
    {
        .name = "backup",
        .args = "DIR",
        .args_max = 1,
        .doc = "Copies the data folder, while it is in use or not.",
        .details =
            "DIR is a new folder; it appears under its name when the copy is whole. To restore, use it as a data "
            "folder, or copy it to where one is to be: `quire --data DIR check`. Changes wait for the end of "
            "it, searches do not. With PostgreSQL use pg_dump, which has everything.",
        .run = cmd_backup,
    },
    {
        .name = "base",
        .args = "create|ls|show|set|rm|restore [NAME] [KEY=VALUE]…",
        .args_max = 100,
        .doc = "Makes, lists, changes, deletes and restores bases.",
        .details = "KEY=VALUE are settings, as in chunking.size_tokens=300; an empty VALUE takes one away, and of set, "
                   "name=NEW renames. restore makes a failed base work again. Another model (embedding.model and the "
                   "like) is built beside the one that search uses, and then takes its place: set says what is to be "
                   "embedded and "
                   "waits for it; Ctrl-C ends the waiting, not the work, and show says how far it is. With --json the "
                   "answer is printed and nothing is waited for.",
        .options = {{"-b", "BASE", "The base, by name or id, instead of NAME."},
                    {"--yes", NULL, "rm: also when it is not empty."},
                    {"--dry-run", NULL, "set: only say how much would be embedded."},
                    {"--no-wait", NULL, "set: do not wait until another model is built."}},
        .run = cmd_base,
    },
    {
        .name = "cache",
        .args = "stat|prune",
        .args_max = 1,
        .doc = "Says what the vector cache holds, or makes it smaller.",
        .details =
            "Vectors that were paid for are kept, for all bases. prune evicts those that no base uses, the ones used "
            "longest ago first, down to cache.vector_limit; what a base uses stays. It happens by itself every "
            "hour; the space is used again, the files do not shrink. Ends with 1 when a base's index has to be "
            "whole first.",
        .options = {{"--to", "SIZE", "prune: down to this size, as in 500MB; 0 leaves only what is in use."}},
        .run = cmd_cache,
    },
    {
        .name = "cat",
        .args = "ITEM",
        .args_max = 1,
        .doc = "Prints the original bytes of an item, or its text.",
        .details = "The bytes that Quire keeps, or the file as it is now. On a terminal only what is text.",
        .options =
            {
                BASE_OPTION,
                {"--text", NULL, "The text that was made of it, which is what can be searched."},
            },
        .run = cmd_cat,
    },
    {
        .name = "check",
        .args = "",
        .doc = "Looks through everything stored for damage.",
        .details = "Opens the data folder (a missing one is made), reads the whole database, the indexes and the names "
                   "of the files, and says what it looked at and what it found; the exit code is 1 when something is "
                   "left to mend. Others may go on working meanwhile.",
        .options = {{"--repair", NULL, "Mend counters and states, remove what belongs to nothing."}},
        .run = cmd_check,
    },
    {
        .name = "completion",
        .args = "bash|zsh|fish",
        .args_max = 1,
        .doc = "Prints what the shell needs to complete commands and options.",
        .details =
            "bash: put it into ~/.local/share/bash-completion/completions/quire; zsh: into a file _quire of a folder "
            "in $fpath; fish: into ~/.config/fish/completions/quire.fish.",
        .run = cmd_completion,
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
        .name = "eval",
        .args = "SET [KEY=VALUE]…",
        .args_max = 33,
        .doc = "Measures how well search finds what a test set says it should.",
        .details =
            "SET is a folder in the layout of BEIR (corpus.jsonl, queries.jsonl, qrels/) or a file in the layout "
            "of SQuAD; KEY=VALUE are settings of a base. It works in a data folder of its own, which is thrown "
            "away. Prints nDCG@10, recall, MRR and how many queries found nothing, for each mode.",
        .options =
            {
                {"--compare", "SETTINGS",
                 "Measure these too, as in \"chunking.size_tokens=200 chunking.overlap_tokens=0\"."},
                {"--mode", "MODE", "Only text, vector or hybrid.", .choices = "text vector hybrid"},
                {"--queries", "N", "Only the first so many."},
            },
        .run = cmd_eval,
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
                {"--state", "STATE", "ls: blocked, scheduled, queued, running, completed, failed, skipped, cancelled.",
                 .choices = "blocked scheduled queued running completed failed skipped cancelled"},
                {"--queue", "QUEUE", "ls: expand, convert, embed, assets or delete.",
                 .choices = "expand convert embed assets delete"},
                {"--type", "TYPE", "ls: jobs of this type."},
                {"--base", "ID", "ls: jobs of this base."},
                {"--item", "ID", "ls: jobs of this item."},
                {"--limit", "N", "ls: at most so many, 1 to 200. Default: 50."},
                {"--cursor", "ID", "ls: go on behind this job."},
            },
        .run = cmd_jobs,
    },
    {
        .name = "key",
        .args = "create|ls|rm|rotate [NAME]",
        .args_max = 2,
        .doc = "Makes, lists, ends and renews the keys of those who ask over the network.",
        .details =
            "create prints the secret, once: it is kept nowhere. Who sends it (Authorization: Bearer qk_…) may do what "
            "the key's roles say, or with --admin everything. Once there is a key, the port asks for one. rotate "
            "gives a key another secret, and the old one ends; rm ends a key at once. A key is named by its name or "
            "its id.",
        .options =
            {
                {"--role", "BASE=ROLE", "create: viewer, editor or owner in a base; may be repeated.", true},
                {"--admin", NULL, "create: may do everything in all bases."},
                {"--days", "N", "create: ends by itself after so many days."},
                {"--grace", "SECONDS", "rotate: so long the old secret is still good. Default: 0."},
            },
        .run = cmd_key,
    },
    {
        .name = "ls",
        .args = "[ITEM]",
        .args_max = 1,
        .doc = "Lists the items of a base, or of a folder in it.",
        .details = "An item is named by its id, a beginning of it that no other has, or its path.",
        .options =
            {
                BASE_OPTION,
                {"--all", NULL, "The whole tree."},
                {"--status", "STATUS", "idle, preparing, processing, reading, embedding, completed or failed.",
                 .choices = "idle preparing processing reading embedding completed failed"},
                {"--type", "TYPE", "directory, file, note or url.", .choices = "directory file note url"},
                {"--sort", "ORDER", "name, created, updated or size; with a - before it, the other way round.",
                 .choices = "name created updated size -name -created -updated -size"},
            },
        .run = cmd_ls,
    },
    {
        .name = "mcp",
        .args = "",
        .doc = "Lets an agent search, read and add: MCP on standard input and output.",
        .details =
            "For programs that start it, such as Claude, Cursor or an editor: one message a line, until the input "
            "ends. Both the protocol of 2026-07-28 and the older handshake are spoken. It runs jobs while it owns the "
            "data folder. A server offers the same at /mcp.",
        .run = cmd_mcp,
    },
    {
        .name = "model",
        .args = "add|ls|use|rm [NAME]",
        .args_max = 2,
        .doc = "Gives embedding models a name, and bases a model by its name.",
        .details = "add NAME keeps where a model is served; its key is never kept, only the variable it is read from. "
                   "use NAME "
                   "gives it to a base: what is to be embedded is said and waited for, and search uses the old one "
                   "meanwhile. A base keeps what it was given, so rm only forgets the name; it is refused while a base "
                   "uses it.",
        .options =
            {
                {"-b", "BASE", "use: the base, by name or id. Default: default."},
                {"--url", "URL", "add: where it is served, as in http://localhost:11434/v1. Default: OpenAI."},
                {"--model", "MODEL", "add: what the server calls it."},
                {"--dimensions", "N", "add: ask the server for vectors of so many numbers."},
                {"--api-key-env", "VARIABLE", "add: the variable of the environment that holds the key."},
                {"--dry-run", NULL, "use: only say how much would be embedded."},
                {"--no-wait", NULL, "use: do not wait until it is built."},
            },
        .run = cmd_model,
    },
    {
        .name = "process",
        .args = "[process|chunk|assets|index]…",
        .args_max = 4,
        .doc = "Takes what only rests in a base through its stages, and waits until that is done.",
        .details =
            "For what was added with --manual, or changed since. Without a stage all of them. Documents are read "
            "level by level, the outermost folders first. Ends with 1 when something failed.",
        .options =
            {
                BASE_OPTION,
                {"--one-level", NULL, "Read only the next level of folders; the one below waits for another call."},
                NO_WAIT_OPTION,
            },
        .run = cmd_process,
    },
    {
        .name = "refresh",
        .args = "ITEM…",
        .args_max = 500,
        .doc = "Looks at the sources again, reads what changed anew, and waits until that is done.",
        .details = "Ends with 1 when something failed.",
        .options = {BASE_OPTION, NO_WAIT_OPTION},
        .run = cmd_refresh,
    },
    {
        .name = "reindex",
        .args = "ITEM…",
        .args_max = 500,
        .doc = "Builds items anew, and waits until that is done.",
        .details = "Search shows the old state until the new one is complete. Refused while something in it is worked "
                   "on.",
        .options =
            {
                BASE_OPTION,
                NO_WAIT_OPTION,
                {"--dry-run", NULL, "Only say how much it would be."},
            },
        .run = cmd_reindex,
    },
    {
        .name = "retry",
        .args = "ITEM…",
        .args_max = 500,
        .doc = "Tries failed items again; of a folder, what failed in it. Waits until that is done.",
        .details = "Ends with 1 when something failed again.",
        .options = {BASE_OPTION, NO_WAIT_OPTION},
        .run = cmd_retry,
    },
    {
        .name = "rm",
        .args = "ITEM…",
        .args_max = 500,
        .doc = "Deletes items with everything in them; the files they came from stay.",
        .details = "They cannot be found from then on; the cleaning up is a job.",
        .options = {BASE_OPTION},
        .run = cmd_rm,
    },
    {
        .name = "search",
        .args = "QUERY…",
        .args_max = 500,
        .doc = "Prints the passages that fit best, with where they are.",
        .details =
            "Any of the words may occur. \"two words\" must occur in this order, -word must not; title:word and "
            "heading:word must occur there; path:docs/*.md and type:note say which items. An item is named by its "
            "id, a beginning of it, or its path.",
        .options =
            {
                {"-b", "BASE", "The base, by name or id; may be repeated. Default: default.", true},
                {"--top", "N", "At most so many, 1 to 100. Default: 10."},
                {"--mode", "MODE", "auto, text, vector or hybrid. Default: auto, hybrid where the base has a model.",
                 .choices = "auto text vector hybrid"},
                {"--under", "ITEM", "Only in this folder."},
                {"--context", "N", "Show so many neighbours of each passage too, up to 10."},
                {"--open", "N",
                 "Open the N-th hit at its line, in $VISUAL, $EDITOR or what the desktop has; a page in $BROWSER."},
                {"--rerank", NULL, "Have the base's reranker put the hits in a better order."},
                {"--explain", NULL, "Say what was searched for, and why a hit stands where it stands."},
            },
        .run = cmd_search,
    },
    {
        .name = "serve",
        .args = "",
        .doc = "Takes requests on a port, and runs jobs, until it is told to end.",
        .details =
            "Prints `listening on URL` when it is ready. Other commands work through it meanwhile. Without any key "
            "only "
            "this machine is listened to. SIGHUP makes it read its configuration again and take what can change "
            "while it runs. SIGTERM or Ctrl-C ends it: requests that run are answered, jobs go on with the next one "
            "who runs them.",
        .options = {{"--listen", "ADDR:PORT", "Where; also the setting server.listen. Default: 127.0.0.1:7700."}},
        .run = cmd_serve,
    },
    {
        .name = "set",
        .args = "ITEM KEY=VALUE…",
        .args_max = 100,
        .doc = "Changes what is said about an item: name, enabled, attributes.KEY.",
        .details = "enabled=false hides it, and what is in it, from search.",
        .options = {BASE_OPTION},
        .run = cmd_set,
    },
    {
        .name = "show",
        .args = "ITEM",
        .args_max = 1,
        .doc = "Says how an item is and why, and what happened to it.",
        .details = "",
        .options = {BASE_OPTION},
        .run = cmd_show,
    },
    {
        .name = "version",
        .args = "",
        .doc = "Prints the version.",
        .details = "",
        .run = cmd_version,
    },
    {
        .name = "wait",
        .args = "[ITEM]…",
        .args_max = 500,
        .doc = "Runs what is pending, and returns when it is done.",
        .details = "Where another process runs jobs, waits for that one. Without ITEM waits for everything, of all "
                   "bases, but for old states that are kept half a minute for whoever reads them. When nothing "
                   "ends for some seconds, says why. Ends with 1 when something failed.",
        .options = {BASE_OPTION},
        .run = cmd_wait,
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
