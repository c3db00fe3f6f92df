/* What the commands about bases and items share: names, requests, lines, waiting. */
#pragma once

#include "base/url.h"
#include "cli/progress.h"

/* ---- items.c: names and requests ---- */

/* The base that -b names, which is the first option of every command that has one; "default" otherwise. */
const char *cli_base(const struct cli *cli);
/* Appends /api/v1/bases/BASE and the rest. */
void cli_add_base_path(const struct cli *cli, struct qr_buf *path, const char *rest);
/* The base "default" is made on first use; one that was named must be there. Returns 0, or the exit code of an error that
 * was reported. */
int cli_make_default_base(struct cli *cli);

/* The path from the root on, without "." and "..", as the source of an item is written. */
qr_rc cli_absolute_path(const char *path, struct qr_buf *out, qr_err *err);
/* The item that a word names: an id, a beginning of it, a path, a URL. Returns 0 with the item, or the exit code of an error
 * that was reported. */
int cli_find_item(struct cli *cli, const char *word, json_t **ret_item);
/* Posts {"ids": […]} of the items that all arguments name, and `more` behind it, to …/BASE`action`. Returns 0 with the answer,
 * or the exit code of an error that was reported. */
int cli_post_selection(struct cli *cli, const char *action, const char *more, json_t **ret_answer);

/* Loads the configuration, opens, runs, closes. */
int cli_with_data(struct cli *cli, int (*fn)(struct cli *cli));

long long cli_number(const json_t *object, const char *name);
bool cli_is(const json_t *object, const char *name, const char *text);

/* ---- outcome.c: what became of items ---- */

struct cli_failures {
    long long count;
    struct {
        char code[48];
        long long count;
    } codes[16]; /* those beyond are in `count` alone */
    size_t code_count;
    bool is_more; /* there are more than were counted */
};

/* Of all that a command told about. */
struct cli_tally {
    long long items, files, chunks;
    struct cli_failures failures;
    int shown;              /* failures that have a line */
    bool found_nothing_new; /* of the next: it was there, and no file had to be read */
};

/* "completed  guide.md  3 chunks", of a folder all that is in it, and below it what failed; adds to the tally. */
void cli_print_outcome(struct cli *cli, const json_t *item, int64_t took_ms, struct cli_tally *tally);
/* The sum where it was several, where more can be read, and on a terminal what to try next. */
void cli_print_tally(const struct cli *cli, const struct cli_tally *tally, int64_t took_ms);

/* ---- cmd_base.c ---- */

/* Gives the base of -b the embedding settings of a named model, as `quire base set` would: says what it costs, and waits until
 * its vectors are built. Returns the exit code. */
int cli_use_model(struct cli *cli, const char *model, bool is_dry_run, bool waits);

/* ---- cost.c: what embedding costs ---- */

/* "412 of 9,300 chunks, about 3 minutes, 190 k tokens; 20 known already", of an estimate. */
void cli_print_cost(const json_t *estimate);

/* ---- items_lines.c: what is pending ---- */

/* " -b BASE", to be copied into a command; nothing of the default or NULL. */
void cli_print_base_option(const char *base);

/* Jobs of a queue that somebody waits for. Deletes that are put off are not among them: most of them are purges, which clean
 * up behind the scenes; cli_wait_for_all looks at each. */
struct cli_todo {
    long long now, later; /* queued and running; blocked and put off */
};
struct cli_todo cli_todo_of(const json_t *queue);
/* What a look at all queues says about progress. */
void cli_see_queues(struct cli_progress *progress, const json_t *queues, int64_t now_ms);
/* How much is pending, and what continues it; nothing when nothing is. */
void cli_print_pending(struct cli *cli);
/* A line for each of a selection that was left out, with the reason. */
void cli_print_skipped(const json_t *answer);

/* ---- work.c: running jobs and waiting ---- */

struct cli_work {
    struct cli *cli;
    struct quire_server *server; /* for others while this process owns the folder; NULL = none */
    bool is_running;             /* jobs, here */
    int pause_ms;                /* before the next look */
    struct cli_follow follow;    /* what happens in the process that runs the jobs, where that is another */
    bool is_following;           /* it was tried */
    int64_t began_ms;
    int64_t asked_ms;     /* when it was last asked why nothing ends */
    const json_t *waited; /* the items that are waited for; NULL = everything */
    int64_t files_at_ms;  /* not before are their files looked at again */
    struct cli_progress progress;
    struct cli_tally tally; /* of what was told already */
    bool is_any_gone;       /* an item was deleted while it was waited for */
};

/* Runs jobs here, if this process owns the folder; otherwise its owner does. Returns 0, or the exit code of an error that
 * was reported. Ctrl-C ends waiting from now on, not the process. */
int cli_start_work(struct cli_work *work, struct cli *cli);
void cli_stop_work(struct cli_work *work);

enum cli_wait { CLI_WAIT_DONE, CLI_WAIT_DETACHED, CLI_WAIT_FAILED };
/* Waits until the items of the list, which have ids, are at rest and no job is about them; `job_id` first, "" = none. The
 * items as they are then replace the old ones in the list. FAILED: *ret_exit_code, and the error was reported. */
enum cli_wait cli_wait_for_items(struct cli_work *work, json_t *items, const char *job_id, int *ret_exit_code);
/* Until nothing is left to do. */
enum cli_wait cli_wait_for_all(struct cli_work *work, int *ret_exit_code);
/* Until the model that the base's settings ask for is the live one; *ret_base is the base then, to be released. FAILED also
 * where the build has failed or was called off. */
enum cli_wait cli_wait_for_build(struct cli_work *work, const char *base_id, json_t **ret_base, int *ret_exit_code);
/* Waits for the items and prints what became of them; with --json they are added to `answer`, which may be NULL. Returns the exit
 * code: 1 if one failed or was deleted meanwhile. */
int cli_wait_and_tell(struct cli *cli, json_t *items, const char *job_id, const json_t *answer);
