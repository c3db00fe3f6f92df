/* job_demo DIR [--jobs N] [--kills N]: shows what the job core promises.
 *
 * A process takes jobs and runs them; in the middle it is killed with SIGKILL and another one goes on. In the end every job
 * that was acknowledged must have taken effect exactly once. Exit 0 when that is so, 1 when not, 2 for a wrong call. */
#include "support/job_ledger.h"

#include "base/fs.h"
#include "base/thread.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    JOBS = 10000,
    KILLS = 2,
    KILLS_MAX = 2, /* a job that is there at the third counts as their cause: `crashed_worker` */
    SLOTS = 8,
    HANDLER_US = 3000,
    BAR_WIDTH = 24,
    PROGRESS_US = 50000,        /* between two updates of a line on a terminal */
    PROGRESS_PLAIN_US = 500000, /* and between two lines on a pipe */
    EXIT_WRONG = 1,
    EXIT_USAGE = 2,
    NUMBER_SIZE = 32,
};

struct demo {
    char database[1024];
    char url[1100];
    int64_t jobs, kills;
    bool colours;
    int64_t process, began_us, done_before, progress_us; /* of the line under way */
};

/* ---- looks ---- */

static const char *style(const struct demo *demo, const char *code)
{
    return demo->colours ? code : "";
}
#define BOLD  "\033[1m"
#define GREEN "\033[1;32m"
#define RED   "\033[1;31m"
#define PLAIN "\033[0m"

/* 1234567 → "1,234,567" */
static const char *grouped(int64_t number, char text[static NUMBER_SIZE])
{
    char digits[NUMBER_SIZE];
    const int len = snprintf(digits, sizeof digits, "%" PRId64, number);
    char *at = text;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            *at++ = ',';
        }
        *at++ = digits[i];
    }
    *at = '\0';
    return text;
}

static void print_heading(const struct demo *demo)
{
    char jobs[NUMBER_SIZE];
    printf("\n%sQuire: %s jobs, SIGKILL in the middle, start again. Each must take effect exactly once.%s\n\n",
           style(demo, BOLD), grouped(demo->jobs, jobs), style(demo, PLAIN));
    printf("  database  %s\n", demo->database);
    printf("  jobs      accepted only once they are on disk; %d run at a time, %d ms each\n", SLOTS, HANDLER_US / 1000);
    printf("  effect    one row, written in the transaction that ends the job\n\n");
}

/* "  process 1  ██████░░░░   4,812 of 10,000   2,431 jobs/s   " */
static void print_bar(const struct demo *demo, const struct job_ledger_state *state)
{
    char done[NUMBER_SIZE], jobs[NUMBER_SIZE], rate[NUMBER_SIZE];
    const int64_t took_us = QR_MAX(qr_thread_mono_us() - demo->began_us, INT64_C(1));
    const int filled = (int)(QR_MIN(state->done, demo->jobs) * BAR_WIDTH / demo->jobs);
    printf("%s  process %" PRId64 "  %s", demo->colours ? "\r\033[K" : "", demo->process, style(demo, GREEN));
    for (int i = 0; i < BAR_WIDTH; i++) {
        if (i == filled) {
            fputs(style(demo, PLAIN), stdout);
        }
        fputs(i < filled ? "█" : "░", stdout);
    }
    printf("%s  %6s of %s done  %6s jobs/s", style(demo, PLAIN), grouped(state->done, done), grouped(demo->jobs, jobs),
           grouped((state->done - demo->done_before) * 1000000 / took_us, rate));
}

static void print_progress(struct demo *demo, const struct job_ledger_state *state)
{
    const int64_t now_us = qr_thread_mono_us();
    if (now_us - demo->progress_us < (demo->colours ? PROGRESS_US : PROGRESS_PLAIN_US)) {
        return;
    }
    demo->progress_us = now_us;
    print_bar(demo, state);
    fputs(demo->colours ? "" : "\n", stdout);
    fflush(stdout);
}

static void print_end(const struct demo *demo, const struct job_ledger_state *state, bool killed)
{
    print_bar(demo, state);
    if (killed) {
        printf("  %sSIGKILL%s with %" PRId64 " in hand\n", style(demo, RED), style(demo, PLAIN), state->running);
    } else {
        puts("  all ended");
    }
    fflush(stdout);
}

static int print_verdict(const struct demo *demo, const struct job_ledger *ledger,
                         const struct job_ledger_verdict *verdict)
{
    char told[NUMBER_SIZE], completed[NUMBER_SIZE], lost[NUMBER_SIZE], twice[NUMBER_SIZE], cut[NUMBER_SIZE];
    const bool is_right =
        verdict->lost == 0 && verdict->twice == 0 && verdict->completed == demo->jobs && verdict->jobs == demo->jobs;
    printf("\n  %s jobs were acknowledged, %s are completed; without effect %s, with more than one %s.\n",
           grouped((int64_t)ledger->count, told), grouped(verdict->completed, completed), grouped(verdict->lost, lost),
           grouped(verdict->twice, twice));
    if (verdict->interrupted) {
        printf("  (%s attempts were cut short by a kill and made again.)\n", grouped(verdict->interrupted, cut));
    }
    if (is_right) {
        printf("\n%s✓ Every job took effect exactly once.%s\n\n", style(demo, GREEN), style(demo, PLAIN));
    } else {
        printf("\n%s✗ Not every job took effect exactly once.%s\n\n", style(demo, RED), style(demo, PLAIN));
    }
    return is_right ? EXIT_SUCCESS : EXIT_WRONG;
}

/* ---- the run ---- */

/* Lets a process live until that many jobs are done, then kills it; kill_at 0 = until it ends by itself. */
static qr_rc let_it_live(struct demo *demo, struct job_ledger *ledger, int64_t kill_at, qr_err *err)
{
    char name[32];
    snprintf(name, sizeof name, "process %" PRId64, demo->process);
    struct job_ledger_plan plan = {
        .url = demo->url, .job_count = demo->jobs, .handler_us = HANDLER_US, .slots = SLOTS, .name = name};
    struct job_ledger_state state = {.done = demo->done_before};
    struct child child;
    bool killed = false;
    demo->began_us = demo->progress_us = qr_thread_mono_us();
    job_ledger_start(&child, &plan);
    while (job_ledger_listen(&child, ledger, &state)) {
        if (killed) {
            continue; /* what it said before the kill counts */
        }
        print_progress(demo, &state);
        if (kill_at && state.done >= kill_at) {
            kill(child.pid, SIGKILL);
            killed = true;
        }
    }
    const int end = child_wait(&child);
    if (end != (killed ? -SIGKILL : 0)) {
        return qr_fail(err, QR_CODE_INTERNAL, "the process that runs the jobs ended with %d", end);
    }
    print_end(demo, &state, killed);
    demo->done_before = state.done;
    return QR_OK;
}

static qr_rc run(struct demo *demo, int *ret_exit_code, qr_err *err)
{
    static struct job_ledger ledger;
    struct job_ledger_verdict verdict;
    print_heading(demo);
    for (demo->process = 1; demo->process <= demo->kills + 1; demo->process++) {
        const int64_t kill_at = demo->process <= demo->kills ? demo->jobs * demo->process / (demo->kills + 1) : 0;
        QR_TRY(let_it_live(demo, &ledger, kill_at, err));
    }
    QR_TRY(job_ledger_judge(demo->url, &ledger, &verdict, err));
    *ret_exit_code = print_verdict(demo, &ledger, &verdict);
    return QR_OK;
}

/* Begins with a fresh database in the folder. */
static qr_rc prepare(const struct demo *demo, const char *dir, qr_err *err)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    QR_TRY(qr_fs_make_dirs(qr_io_system(), dir, 0755, err));
    for (size_t i = 0; i < QR_COUNT(suffixes); i++) {
        char path[1100];
        snprintf(path, sizeof path, "%s%s", demo->database, suffixes[i]);
        QR_TRY(qr_fs_remove(qr_io_system(), path, err));
    }
    return QR_OK;
}

static bool parse_number(const char *text, int64_t min, int64_t max, int64_t *ret_number)
{
    return text && qr_str_to_i64(qr_str_of(text), ret_number) && *ret_number >= min && *ret_number <= max;
}

static bool parse(struct demo *demo, int argc, char **argv, const char **ret_dir)
{
    *ret_dir = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (argv[i][0] != '-' && !*ret_dir) {
            *ret_dir = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--jobs") == 0
                ? !parse_number(value, 1, JOB_LEDGER_JOBS_MAX, &demo->jobs)
                : strcmp(argv[i], "--kills") != 0 || !parse_number(value, 0, KILLS_MAX, &demo->kills)) {
            return false;
        }
        i++;
    }
    if (*ret_dir) {
        snprintf(demo->database, sizeof demo->database, "%s/jobs.db", *ret_dir);
        snprintf(demo->url, sizeof demo->url, "sqlite:%s", demo->database);
    }
    return *ret_dir != NULL;
}

int main(int argc, char **argv)
{
    struct demo demo = {.jobs = JOBS, .kills = KILLS, .colours = isatty(STDOUT_FILENO) && !getenv("NO_COLOR")};
    const char *dir;
    if (!parse(&demo, argc, argv, &dir)) {
        fprintf(stderr, "usage: job_demo DIR [--jobs N] [--kills N]\n");
        return EXIT_USAGE;
    }
    qr_err err = {0};
    int exit_code = EXIT_WRONG;
    if (prepare(&demo, dir, &err) != QR_OK || run(&demo, &exit_code, &err) != QR_OK) {
        fprintf(stderr, "\n%s✗ %s: %s%s\n", style(&demo, RED), qr_code_info(err.code)->name, err.msg,
                style(&demo, PLAIN));
    }
    return exit_code;
}
