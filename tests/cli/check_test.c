/* quire check as a user runs it on a folder in which something is wrong: what it prints, how it ends, what it mends. */
#include "base/fs.h"
#include "base/proc.h"
#include "support/test.h"

#include <sqlite3.h>
#include <sys/stat.h>

enum { ARGS_MAX = 8 };

struct outcome {
    int exit_code;
    struct qr_buf out, errors;
};

static void outcome_done(struct outcome *outcome)
{
    qr_buf_done(&outcome->out);
    qr_buf_done(&outcome->errors);
}

static void run(const char *data_dir, const char *const *args, struct outcome *ret_outcome)
{
    const char *argv[ARGS_MAX + 4] = {QUIRE_BINARY_DIR "/quire", "--data", data_dir};
    const char *env[] = {"HOME=/nonexistent", "PATH=/usr/bin:/bin", NULL};
    for (size_t i = 0; args[i]; i++) {
        QR_CHECK(i < ARGS_MAX);
        argv[i + 3] = args[i];
    }
    const struct qr_proc_options options = {.argv = argv, .env = env, .output_bytes_max = 1 << 20, .timeout_ms = 50000};
    struct qr_proc_result result;
    qr_err err;
    *ret_outcome = (struct outcome){0};
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &ret_outcome->out, &ret_outcome->errors, &result, &err));
    ret_outcome->exit_code = result.exit_code;
}
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void check_run(const char *data_dir, const char *const *args, int exit_code, const char *out)
{
    QR_CLEANUP(outcome_done) struct outcome outcome;
    run(data_dir, args, &outcome);
    if (outcome.exit_code != exit_code) {
        QR_FAIL("%s ends with %d: %s%s", args[0], outcome.exit_code, qr_buf_str(&outcome.out).ptr,
                qr_buf_str(&outcome.errors).ptr);
    }
    QR_CHECK_HAS(out, qr_buf_str(&outcome.out).ptr);
    QR_CHECK_TEXT("", qr_buf_str(&outcome.errors).ptr);
}

static void damage(struct qr_test *t, const char *sql)
{
    sqlite3 *db;
    QR_CHECK(sqlite3_open(qr_test_path(t, "data/quire.db"), &db) == SQLITE_OK);
    QR_CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

/* A folder with one file, indexed. */
static const char *make_data(struct qr_test *t)
{
    const char *data = qr_test_path(t, "data"), *folder = qr_test_path(t, "src");
    QR_CLEANUP(outcome_done) struct outcome outcome;
    qr_err err;
    QR_CHECK(mkdir(folder, 0700) == 0);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "src/a.txt"), QR_STR("words"), 0600, &err));
    run(data, ARGS("add", folder), &outcome);
    QR_CHECK_INT(0, outcome.exit_code);
    return data;
}

QR_TEST(findings_are_printed_and_end_with_one_until_they_are_repaired)
{
    const char *data = make_data(t);
    check_run(data, ARGS("check"), 0, "\nno damage found\n");
    check_run(data, ARGS("check"), 0, "bases 1, items 2, jobs ");
    damage(t, "UPDATE item SET n_completed = 9 WHERE is_container = 1");
    check_run(data, ARGS("check"), 1, "I6   counters_wrong  item ");
    check_run(data, ARGS("check"), 1, "\ndamage found: 1, repaired: 0\n");
    check_run(data, ARGS("check", "--json"), 1, "{\"ok\":false,\"database\":");
    check_run(data, ARGS("check", "--json"), 1, "\"found\":1,\"repaired\":0,\"findings\":[{\"invariant\":\"I6\"");
    check_run(data, ARGS("check", "--repair"), 0, " (repaired)\ndamage found: 1, repaired: 1\n");
    check_run(data, ARGS("check", "--repair"), 0, "\nno damage found\n");
}

QR_TEST(what_cannot_be_repaired_stays_a_finding)
{
    const char *data = make_data(t);
    damage(t, "DELETE FROM artifact");
    check_run(data, ARGS("check", "--repair"), 1, "I7   text_missing  item ");
    check_run(data, ARGS("check", "--repair", "--json"), 1, "\"code\":\"text_missing\"");
}
