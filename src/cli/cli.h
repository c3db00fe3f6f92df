/* The command line: one table of commands (commands.c), one file a command. A front end: it knows base/ and the public
 * header, nothing else. */
#pragma once

#include "base/config.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/remote.h"

#include <quire/quire.h>
#include <stdio.h>

struct cli_option {
    const char *name; /* "--data" */
    const char *arg;  /* "DIR"; NULL = a switch */
    const char *doc;
    bool may_repeat;     /* at most one option of a command */
    const char *choices; /* the words it takes, for completion; NULL = any */
};

enum { CLI_OPTIONS_MAX = 8 };

struct cli;

struct cli_command {
    const char *name;
    const char *args; /* "[KEY]" */
    size_t args_max;
    const char *doc;                                /* a sentence */
    const char *details;                            /* more, for its own help; "" = nothing */
    struct cli_option options[CLI_OPTIONS_MAX + 1]; /* of its own; ends with a NULL name */
    int (*run)(struct cli *cli);                    /* returns the exit code, after having reported any error */
};

struct cli {
    /* what was typed */
    const struct cli_command *command;
    bool json;
    bool help;                           /* --help: print the command's help instead of running it */
    uint32_t switches;                   /* bit i: options[i] of the command was given */
    const char *values[CLI_OPTIONS_MAX]; /* of options[i], the first one; NULL = not given */
    const char **repeated;               /* all values of the option that may be repeated */
    size_t repeated_count;
    const char *file;             /* --config */
    const char *server;           /* --server or QUIRE_SERVER; NULL = the data folder is this machine's */
    const char *key_file;         /* --key-file */
    struct qr_config_flag *flags; /* --data and --set, in order */
    size_t flag_count;
    char **secrets; /* values of --set that argv has no more */
    size_t secret_count;
    const char **args;
    size_t arg_count;
    /* what is in force; after cli_load_config */
    struct qr_config config;
    struct qr_log log;
    /* the data folder, between cli_open and cli_close */
    struct quire *quire;      /* NULL = another process owns it, and answers through its socket */
    struct cli_remote remote; /* only then, or the server's */
};

/* ---- commands.c: the tables ---- */

extern const struct cli_option cli_options[]; /* that every command takes; ends with a NULL name */
extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;
extern const char cli_summary[];

/* NULL when there is none. */
const struct cli_command *cli_find_command(const char *name);

int cmd_add(struct cli *cli);
int cmd_backup(struct cli *cli);
int cmd_base(struct cli *cli);
int cmd_check(struct cli *cli);
int cmd_completion(struct cli *cli);
int cmd_config(struct cli *cli);
int cmd_eval(struct cli *cli);
int cmd_help(struct cli *cli);
int cmd_jobs(struct cli *cli);
int cmd_key(struct cli *cli);
int cmd_cache(struct cli *cli);
int cmd_cat(struct cli *cli);
int cmd_ls(struct cli *cli);
int cmd_model(struct cli *cli);
int cmd_mcp(struct cli *cli);
int cmd_process(struct cli *cli);
int cmd_refresh(struct cli *cli);
int cmd_reindex(struct cli *cli);
int cmd_retry(struct cli *cli);
int cmd_rm(struct cli *cli);
int cmd_search(struct cli *cli);
int cmd_serve(struct cli *cli);
int cmd_set(struct cli *cli);
int cmd_show(struct cli *cli);
int cmd_version(struct cli *cli);
int cmd_wait(struct cli *cli);

/* ---- args.c ---- */

qr_rc cli_parse(struct cli *cli, int argc, char **argv, qr_err *err);
void cli_done(struct cli *cli);

/* ---- session.c: what commands share ---- */

/* Prints the error, as text on standard error or with --json as JSON on standard output. Returns its exit code. */
int cli_fail(const struct cli *cli, const qr_err *err);
/* `quire: MESSAGE` and what to do, on standard error; never raw control characters. */
void cli_print_error(const qr_err *err);
/* Foreign text on standard output: what would move a cursor or begin a line becomes '?'. */
void cli_print_safe(const char *text);
/* " (CODE)"; nothing of an empty one. */
void cli_print_code(const char *code);
/* Prints a value as JSON with a line break, and releases it; NULL is out of memory. Returns the exit code. */
int cli_print_json(const struct cli *cli, json_t *value);

/* Reads the configuration that the command line, the environment and the file ask for now. */
qr_rc cli_read_config(const struct cli *cli, struct qr_config *config, qr_err *err);
/* The same, into force. */
qr_rc cli_load_config(struct cli *cli, qr_err *err);
/* What the library is handed of it, since it reads neither file nor environment; borrowed. Returns how many. */
size_t cli_settings_of(const struct qr_config *config, struct quire_setting ret_settings[static QR_CONFIG_COUNT]);
/* The error of the public interface, back in the form of the table. */
void cli_read_error(const char *code_name, const char *message, qr_err *ret_err);

/* Opens the data folder of the configuration; when another process owns it, connects to that one. Returns 0, or the exit
 * code of an error that was reported. */
int cli_open(struct cli *cli);
void cli_close(struct cli *cli);
/* Sends a request. Returns 0 with an answer to be released, or the exit code of an error that was reported. */
int cli_call(struct cli *cli, const char *method, const char *path, const char *body, json_t **ret_answer);
/* The same, but nothing is reported: a refusal is an answer too, with its status. */
qr_rc cli_ask(struct cli *cli, const char *method, const char *path, const char *body, int *ret_status,
              json_t **ret_answer, qr_err *err);
/* Of a GET whose answer is no JSON unless it is a refusal. */
qr_rc cli_ask_bytes(struct cli *cli, const char *path, int *ret_status, struct qr_buf *ret_bytes, qr_err *err);
/* Reports a refusal. Returns its exit code. */
int cli_report(struct cli *cli, const json_t *answer);

/* ---- cmd_jobs_show.c ---- */

void cli_print_job(const json_t *job);
/* "2026-11-15 06:30:17" of a member with a time; "" when it is null. */
struct cli_time {
    char text[sizeof "2026-11-15 06:30:17"];
};
struct cli_time cli_short_time(const json_t *object, const char *name);
/* The member's text; "" when it is absent or null. */
const char *cli_text(const json_t *object, const char *name);

/* ---- pages.c, man.c: the documents printed from the tables ---- */

void cli_print_overview(FILE *out);
void cli_print_command_help(const struct cli_command *command);
void cli_print_config_page(void);
void cli_print_errors_page(void);
void cli_print_man_page(void);

struct cli_exit_code {
    int code;
    const char *meaning;
};
extern const struct cli_exit_code cli_exit_codes[];
extern const size_t cli_exit_code_count;
