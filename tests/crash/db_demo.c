/* db_demo DIR [--rounds N] [--seconds S] [--url URL]: shows what the database layer promises.
 *
 * A process writes under load and kills itself with SIGKILL; the database is opened again, and what had been
 * acknowledged is compared with what is there. Exit 0 when nothing is lost, 1 when something is, 2 for a wrong call. */
#include "support/kill_round.h"

#include "base/fs.h"
#include "base/thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PRODUCERS = 16,
    PAYLOAD_BYTES_MAX = 400,
    ROUNDS_MAX = 1000,
    PROGRESS_US = 100000, /* between two updates of the line that is being written */
    EXIT_LOST = 1,
    EXIT_USAGE = 2,
    READ_DEADLINE_MS = 60000,
    NUMBER_SIZE = 32,
};

struct demo {
    char database[1024]; /* the file; "" = a server */
    char url[1100];
    int64_t rounds, round_ms;
    bool colours;
    int64_t stored_before;      /* by an earlier run, on a server */
    int64_t round, progress_us; /* of the line under way */
};

/* ---- looks ---- */

static const char *bold(const struct demo *demo)
{
    return demo->colours ? "\033[1m" : "";
}

static const char *green(const struct demo *demo)
{
    return demo->colours ? "\033[1;32m" : "";
}

static const char *red(const struct demo *demo)
{
    return demo->colours ? "\033[1;31m" : "";
}

static const char *plain(const struct demo *demo)
{
    return demo->colours ? "\033[0m" : "";
}

/* 1234567 → "1,234,567" */
static const char *grouped(int64_t number, char text[static NUMBER_SIZE])
{
    char digits[NUMBER_SIZE];
    const int len = snprintf(digits, sizeof digits, "%" PRId64, number);
    char *at = text;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-') {
            *at++ = ',';
        }
        *at++ = digits[i];
    }
    *at = '\0';
    return text;
}

static void print_heading(const struct demo *demo)
{
    printf(
        "\n%sQuire: writes under load, SIGKILL in the middle, open again. What was acknowledged must be there.%s\n\n",
        bold(demo), plain(demo));
    printf("  database  %s\n", demo->database[0] ? demo->database : "PostgreSQL server");
    printf("  writers   %d threads; each waits for the answer (synced to disk) before its next write\n\n", PRODUCERS);
    printf("  %sround   acknowledged   writes/s   ended by   reopened in   stored so far   lost%s\n", bold(demo),
           plain(demo));
}

static void print_progress(void *arg, int64_t acknowledged)
{
    struct demo *demo = arg;
    const int64_t now_us = qr_thread_mono_us();
    if (demo->colours && now_us - demo->progress_us >= PROGRESS_US) {
        char number[NUMBER_SIZE];
        demo->progress_us = now_us;
        printf("\r  %5" PRId64 "   %12s   writing …", demo->round, grouped(acknowledged, number));
        fflush(stdout);
    }
}

static void print_round(const struct demo *demo, const struct kill_result *result)
{
    char acknowledged[NUMBER_SIZE], rate[NUMBER_SIZE], found[NUMBER_SIZE], lost[NUMBER_SIZE];
    const int64_t per_second = result->acknowledged * 1000000 / (result->written_us ? result->written_us : 1);
    printf("%s  %5" PRId64 "   %12s   %8s    SIGKILL   %8.1f ms   %13s   %s%4s%s\n", demo->colours ? "\r\033[K" : "",
           demo->round, grouped(result->acknowledged, acknowledged), grouped(per_second, rate),
           (double)result->opened_us / 1000, grouped(result->found, found), result->lost ? red(demo) : green(demo),
           grouped(result->lost, lost), plain(demo));
    fflush(stdout);
}

static int print_verdict(const struct demo *demo, int64_t acknowledged, const struct kill_result *last)
{
    const int64_t stored = last->found - demo->stored_before;
    char told[NUMBER_SIZE], found[NUMBER_SIZE], rest[NUMBER_SIZE], lost[NUMBER_SIZE];
    printf("\n  %s writes were acknowledged, %s are stored whole and in order, the database is undamaged.\n",
           grouped(acknowledged, told), grouped(stored, found));
    if (last->lost) {
        printf("\n%s✗ %s acknowledged writes are lost.%s\n\n", red(demo), grouped(last->lost, lost), plain(demo));
        return EXIT_LOST;
    }
    if (stored > acknowledged) {
        printf("  (%s were stored when the kill came before their answer.)\n", grouped(stored - acknowledged, rest));
    }
    printf("\n%s✓ Nothing that was acknowledged is lost.%s\n\n", green(demo), plain(demo));
    return EXIT_SUCCESS;
}

/* ---- the run ---- */

/* What is there already counts as acknowledged. */
static qr_rc load_history(struct demo *demo, struct kill_history *history, qr_err *err)
{
    const struct qr_db_options options = {
        .url = demo->url,
        .migrations = ledger_migrations,
        .migration_count = ledger_migration_count,
        .read_deadline_ms = READ_DEADLINE_MS,
    };
    struct ledger_state state;
    struct qr_db *db;
    QR_TRY(qr_db_open(&db, &options, err));
    const qr_rc rc = ledger_load(db, &state, err);
    qr_db_close(db);
    QR_TRY(rc);
    demo->stored_before = state.line_count;
    memcpy(history->acknowledged, state.last_number, sizeof state.last_number);
    return QR_OK;
}

static qr_rc run(struct demo *demo, int *ret_exit_code, qr_err *err)
{
    const struct kill_plan plan = {
        .url = demo->url,
        .level = QR_DURABLE,
        .producers = PRODUCERS,
        .payload_bytes_max = PAYLOAD_BYTES_MAX,
        .after_ms = demo->round_ms,
        .progress = print_progress,
        .progress_arg = demo,
    };
    struct kill_history history = {{0}};
    struct kill_result result = {0};
    int64_t acknowledged = 0;
    QR_TRY(load_history(demo, &history, err));
    print_heading(demo);
    for (demo->round = 1; demo->round <= demo->rounds; demo->round++) {
        QR_TRY(kill_round(&plan, &history, &result, err));
        print_round(demo, &result);
        acknowledged += result.acknowledged;
    }
    *ret_exit_code = print_verdict(demo, acknowledged, &result);
    return QR_OK;
}

/* Begins with a fresh database in the folder. */
static qr_rc prepare(const struct demo *demo, const char *dir, qr_err *err)
{
    const struct qr_io *io = qr_io_system();
    QR_TRY(qr_fs_make_dirs(io, dir, 0755, err));
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < QR_COUNT(suffixes); i++) {
        char path[1100];
        snprintf(path, sizeof path, "%s%s", demo->database, suffixes[i]);
        QR_TRY(qr_fs_remove(io, path, err));
    }
    return QR_OK;
}

static bool parse_number(const char *text, double min, double max, double *ret_number)
{
    char *end;
    const double number = text ? strtod(text, &end) : 0;
    if (!text || *end || end == text || !(number >= min && number <= max)) {
        return false;
    }
    *ret_number = number;
    return true;
}

static bool parse(struct demo *demo, int argc, char **argv, const char **ret_dir)
{
    double rounds = 3, seconds = 1.3;
    const char *url = NULL;
    *ret_dir = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (argv[i][0] != '-' && !*ret_dir) {
            *ret_dir = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--rounds") == 0    ? !parse_number(value, 1, ROUNDS_MAX, &rounds)
            : strcmp(argv[i], "--seconds") == 0 ? !parse_number(value, 0.05, 3600, &seconds)
                                                : strcmp(argv[i], "--url") != 0 || !(url = value)) {
            return false;
        }
        i++;
    }
    if (!*ret_dir && !url) {
        return false;
    }
    demo->rounds = (int64_t)rounds;
    demo->round_ms = (int64_t)(seconds * 1000);
    if (!url) {
        snprintf(demo->database, sizeof demo->database, "%s/demo.db", *ret_dir);
        snprintf(demo->url, sizeof demo->url, "sqlite:%s", demo->database);
    } else {
        snprintf(demo->url, sizeof demo->url, "%s", url);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct demo demo = {.colours = isatty(STDOUT_FILENO) && !getenv("NO_COLOR")};
    const char *dir;
    if (!parse(&demo, argc, argv, &dir)) {
        fprintf(stderr, "usage: db_demo DIR [--rounds N] [--seconds S]\n"
                        "       db_demo --url postgresql://… [--rounds N] [--seconds S]\n");
        return EXIT_USAGE;
    }
    qr_err err = {0};
    int exit_code = EXIT_LOST;
    if ((demo.database[0] && prepare(&demo, dir, &err) != QR_OK) || run(&demo, &exit_code, &err) != QR_OK) {
        fprintf(stderr, "\n%s✗ %s: %s%s\n", red(&demo), qr_code_info(err.code)->name, err.msg, plain(&demo));
    }
    return exit_code;
}
