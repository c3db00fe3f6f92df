/* Bases and items as a user works with them: the real program on a folder of files. */
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the program ---- */

enum { ARGS_MAX = 16 };

static char out[65536], errors[16384];

static void keep(const struct qr_buf *from, char *ret_text, size_t size)
{
    QR_CHECK(from->len < size);
    memcpy(ret_text, qr_buf_str(from).ptr, from->len);
    ret_text[from->len] = '\0';
}

/* Fills argv with `quire --data DIR/data …`. */
static void fill_argv(struct qr_test *t, const char *const *args, const char *argv[static ARGS_MAX + 4])
{
    static char data[256];
    snprintf(data, sizeof data, "%s/data", t->dir);
    size_t count = 0;
    argv[count++] = QUIRE_BINARY_DIR "/quire";
    argv[count++] = "--data";
    argv[count++] = data;
    for (size_t i = 0; args[i]; i++) {
        QR_CHECK(i < ARGS_MAX);
        argv[count++] = args[i];
    }
    argv[count] = NULL;
}

/* Runs it in the test's folder; leaves what it printed in `out` and `errors`. Returns the exit code. */
static int run_with(struct qr_test *t, const char *input, const char *const *args)
{
    char home[256];
    snprintf(home, sizeof home, "HOME=%s", t->dir);
    const char *argv[ARGS_MAX + 4], *env[] = {home, "PATH=/usr/bin:/bin", NULL};
    fill_argv(t, args, argv);
    QR_CLEANUP(qr_buf_done) struct qr_buf out_buf = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf err_buf = {0};
    const struct qr_proc_options options = {.argv = argv,
                                            .env = env,
                                            .dir = t->dir,
                                            .input = qr_str_of(input),
                                            .output_bytes_max = sizeof out - 1,
                                            .timeout_ms = 50000};
    struct qr_proc_result result;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &out_buf, &err_buf, &result, &err));
    keep(&out_buf, out, sizeof out);
    keep(&err_buf, errors, sizeof errors);
    return result.exit_code;
}
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void check_run(struct qr_test *t, const char *const *args, int exit_code, const char *says)
{
    const int actual = run_with(t, "", args);
    const char *where = exit_code > 1 ? errors : out;
    if (actual != exit_code || !strstr(where, says)) {
        QR_FAIL("%s: exit code %d, not %d with \"%s\": %s%s", args[0], actual, exit_code, says, out, errors);
    }
}

static void write_file(struct qr_test *t, const char *name, const char *content)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, name), qr_str_of(content), 0600, &err));
}

/* docs/pears.md, docs/sub/apples.md */
static void make_docs(struct qr_test *t)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "docs/sub"), 0700, &err));
    write_file(t, "docs/pears.md", "# Pears\n\nPears are green.\n");
    write_file(t, "docs/sub/apples.md", "# Apples\n\nApples are red.\n");
}

/* The id in the answer's line about the name; static memory. */
static const char *id_of(const char *name)
{
    static char id[37];
    const char *at = strstr(out, name);
    QR_CHECK(at != NULL);
    while (at > out && at[-1] != '\n') {
        at--;
    }
    snprintf(id, sizeof id, "%s", at);
    return id;
}

/* ---- a folder ---- */

QR_TEST(a_folder_is_added_listed_found_and_removed)
{
    make_docs(t);
    check_run(t, ARGS("add", "docs"), 0, "/docs  2 files, 2 chunks in ");
    QR_CHECK_HAS("completed", out);
    check_run(t, ARGS("ls"), 0, "docs/  2 of 2");
    check_run(t, ARGS("ls", "docs"), 0, "pears.md  1 chunk");
    check_run(t, ARGS("ls", "--all"), 0, "      apples.md  1 chunk");
    check_run(t, ARGS("ls", "--all", "--status", "failed"), 0, "no items");
    check_run(t, ARGS("ls", "--all", "--type", "file", "--sort", "name"), 0, "apples.md  1 chunk\n");
    QR_CHECK(strstr(out, "apples.md") < strstr(out, "pears.md"));
    check_run(t, ARGS("ls", "--all", "--type", "file", "--sort", "-name"), 0, "pears.md  1 chunk\n");
    QR_CHECK(strstr(out, "apples.md") > strstr(out, "pears.md"));
    check_run(t, ARGS("ls", "--sort", "colour"), 2, "sort is one of name, created, updated, size");
    check_run(t, ARGS("cat", "docs/pears.md"), 0, "# Pears\n\nPears are green.\n");
    check_run(t, ARGS("cat", "--text", "docs/pears.md"), 0, "# Pears\n\nPears are green.\n");
    check_run(t, ARGS("cat", "docs"), 4, "holds other items");
    QR_CHECK_INT(2, run_with(t, "", ARGS("cat", "--json", "docs/pears.md")));
    QR_CHECK_HAS("original bytes are no JSON", out);
    check_run(t, ARGS("cat"), 2, "say which item");
    check_run(t, ARGS("search", "green"), 0, "1. pears.md  Pears\n   file://");
    check_run(t, ARGS("show", "docs/sub/../pears.md"), 0, "1 chunk can be found");
    QR_CHECK_HAS("process-document of generation 1 completed", out);
    check_run(t, ARGS("rm", "docs/pears.md"), 0, "1 item deleted\n1 job is pending: `quire wait` runs it\n");
    check_run(t, ARGS("search", "green"), 0, "nothing was found");
    check_run(t, ARGS("wait"), 0, "; nothing is pending\n");
    check_run(t, ARGS("wait"), 0, "nothing is pending");
    check_run(t, ARGS("show", "docs/pears.md"), 4, "there is no item docs/pears.md");
    check_run(t, ARGS("ls", "docs"), 0, "sub/  1 of 1");
}

QR_TEST(adding_a_folder_again_reads_what_changed) /* REFR-4 */
{
    make_docs(t);
    check_run(t, ARGS("add", "docs/"), 0, "completed");
    write_file(t, "docs/pears.md", "# Pears\n\nPears are yellow, and there are many of them.\n");
    write_file(t, "docs/plums.md", "Plums are blue.\n");
    check_run(t, ARGS("add", "docs"), 0, "/docs  3 files, 3 chunks in ");
    check_run(t, ARGS("search", "yellow"), 0, "pears.md");
    check_run(t, ARGS("search", "blue"), 0, "plums.md");
    check_run(t, ARGS("show", "docs/pears.md"), 0, "2 wanted, 2 in search");
    check_run(t, ARGS("show", "docs/sub/apples.md"), 0, "1 wanted, 1 in search");
}

QR_TEST(work_that_failed_is_the_exit_code_and_says_why) /* ADD-3 */
{
    make_docs(t);
    write_file(t, "docs/film.mp4", "no text");
    check_run(t, ARGS("add", "docs"), 1, "  2 files, 2 chunks in ");
    QR_CHECK_HAS("(unsupported_type)", out);
    check_run(t, ARGS("wait"), 1, "default: 1 item has failed");
    check_run(t, ARGS("show", "docs"), 0, "1 of the 3 items in it have failed");
    check_run(t, ARGS("show", "docs/film.mp4"), 0, "Another try alone will not help");
    check_run(t, ARGS("ls", "--all", "--status", "failed"), 0, "film.mp4  unsupported_type");
    check_run(t, ARGS("search", "red"), 0, "apples.md");
}

QR_TEST(names_that_turn_text_or_move_the_cursor_are_printed_without)
{
    static const char *const raw[] = {"\302\233", "\u202e", "\u2066"};
    make_docs(t);
    write_file(t, "docs/a\u202egpj.md", "# Turned \302\2332J\n\nQuinces are rare.\n");
    write_file(t, "docs/b\u2066.mp4", "no text");
    check_run(t, ARGS("add", "docs"), 1, "; 1 failed: unsupported_type 1\n  failed     ");
    const char *const *const commands[] = {ARGS("ls", "docs"), ARGS("show", "docs/a\u202egpj.md"),
                                           ARGS("show", "docs/b\u2066.mp4"), ARGS("search", "quinces")};
    const char *const says[] = {"b?.mp4  unsupported_type", "a?gpj.md", "b?.mp4", "1. a?gpj.md  Turned ?2J\n"};
    for (size_t i = 0; i < QR_COUNT(commands); i++) {
        check_run(t, commands[i], 0, says[i]);
        for (size_t k = 0; k < QR_COUNT(raw); k++) {
            if (strstr(out, raw[k])) {
                QR_FAIL("%s prints it raw: %s", commands[i][0], out);
            }
        }
    }
}

/* ---- notes ---- */

QR_TEST(a_note_comes_from_standard_input_and_can_be_hidden) /* HIDE-1 */
{
    QR_CHECK_INT(0, run_with(t, "Quinces are sour.\n", ARGS("add", "-", "--name", "quinces")));
    QR_CHECK_TEXT("completed  quinces  1 chunk\n", out);
    check_run(t, ARGS("ls"), 0, "quinces  1 chunk");
    char id[37];
    snprintf(id, sizeof id, "%s", id_of("quinces"));
    check_run(t, ARGS("set", id, "enabled=false", "attributes.shelf=3"), 0, "changed ");
    check_run(t, ARGS("search", "quinces"), 0, "nothing was found");
    check_run(t, ARGS("ls"), 0, "hidden");
    check_run(t, ARGS("set", id, "enabled=true"), 0, "changed ");
    check_run(t, ARGS("search", "quinces"), 0, "1. quinces");
    check_run(t, ARGS("show", "--json", id), 0, "\"attributes\":{\"shelf\":3}");
    QR_CHECK_INT(2, run_with(t, "\xff", ARGS("add", "-")));
    QR_CHECK_HAS("standard input is not text in UTF-8", errors);
}

QR_TEST(what_is_added_without_waiting_is_done_by_wait)
{
    make_docs(t);
    check_run(t, ARGS("add", "--no-wait", "docs"), 0, "created ");
    QR_CHECK_HAS("1 job is pending: `quire wait` runs it\n", out);
    check_run(t, ARGS("ls"), 0, "preparing");
    check_run(t, ARGS("show", "docs"), 0, "prepare-root waits for its turn");
    check_run(t, ARGS("reindex", "docs"), 3, "not_terminal");
    check_run(t, ARGS("retry", "docs"), 0, ": already_in_progress");
    check_run(t, ARGS("wait", "docs"), 0, "completed");
    check_run(t, ARGS("search", "green"), 0, "pears.md");
    check_run(t, ARGS("reindex", "--dry-run", "docs"), 0, "would build 2 documents anew, and embed 0 of 2 chunks");
    check_run(t, ARGS("reindex", "docs"), 0, "completed");
    check_run(t, ARGS("show", "docs/pears.md"), 0, "generation 2: ");
    check_run(t, ARGS("refresh", "--no-wait", "docs"), 0, "1 item to be looked at again");
    check_run(t, ARGS("wait"), 0, "nothing is pending");
    check_run(t, ARGS("add", "--manual", "docs/pears.md", "-b", "default"), 0, "created ");
}

QR_TEST(refresh_and_retry_wait_until_it_is_done)
{
    make_docs(t);
    check_run(t, ARGS("add", "docs"), 0, "completed");
    write_file(t, "docs/pears.md", "# Pears\n\nPears are blue today.\n");
    check_run(t, ARGS("refresh", "docs"), 0, "completed");
    check_run(t, ARGS("search", "blue"), 0, "pears.md");
    write_file(t, "docs/pears.md", "\x01\x02\x03\x04\x05\x06\x07\x08");
    check_run(t, ARGS("refresh", "--json", "docs"), 1, "\"accepted\":[");
    QR_CHECK_HAS("\"items\":[", out);
    write_file(t, "docs/pears.md", "# Pears\n\nPears are red again.\n");
    check_run(t, ARGS("retry", "docs"), 0, "completed");
    check_run(t, ARGS("search", "red"), 0, "pears.md");
    check_run(t, ARGS("retry", "docs"), 0, "0 items to be tried again\nskipped ");
}

QR_TEST(what_only_rests_is_taken_through_the_stages_that_are_named) /* PROC-1, PROC-5 */
{
    make_docs(t);
    check_run(t, ARGS("add", "--manual", "docs"), 0, "created ");
    check_run(t, ARGS("process", "read"), 2, "there is no stage read: the stages are process, chunk, assets and index");
    check_run(t, ARGS("process", "-b", "other"), 4, "there is no base");
    check_run(t, ARGS("process", "--one-level", "process"), 0,
              "completed: process 1\n"); /* the folder; what is in it waits */
    check_run(t, ARGS("process", "process"), 0, "completed: process ");
    check_run(t, ARGS("search", "green"), 0, "nothing was found");
    check_run(t, ARGS("process", "--no-wait", "chunk", "index"), 0, "running");
    check_run(t, ARGS("wait"), 0, "nothing is pending");
    check_run(t, ARGS("search", "green"), 0, "pears.md");
    check_run(t, ARGS("process"), 0, "completed: nothing was waiting for this\n");
    check_run(t, ARGS("process", "--json"), 0, "\"status\":\"completed\"");
}

/* ---- bases ---- */

QR_TEST(bases_are_made_changed_and_deleted)
{
    make_docs(t);
    check_run(t, ARGS("base", "create", "fruit", "chunking.size_tokens=300"), 0,
              "{\"chunking\":{\"size_tokens\":300}}");
    check_run(t, ARGS("base", "create", "fruit"), 3, "already_exists");
    check_run(t, ARGS("base", "set", "fruit", "chunking.size_tokens=", "name=my fruit"), 0, "my fruit");
    check_run(t, ARGS("base", "ls"), 0, "ready     my fruit");
    check_run(t, ARGS("add", "-b", "my fruit", "docs"), 0, "completed");
    check_run(t, ARGS("search", "-b", "my fruit", "green"), 0, "pears.md");
    check_run(t, ARGS("search", "green"), 4, "there is no base default");
    check_run(t, ARGS("base", "restore", "my fruit"), 3, "not_failed");
    check_run(t, ARGS("base", "rm", "my fruit"), 3, "not_empty");
    check_run(t, ARGS("base", "rm", "--yes", "my fruit"), 0, "deleted ");
    check_run(t, ARGS("wait"), 0, "nothing is pending");
    check_run(t, ARGS("base", "ls"), 0, "no bases");
    check_run(t, ARGS("base", "show", "my fruit"), 4, "there is no base my fruit");
    check_run(t, ARGS("add", "-b", "none", "docs"), 4, "there is no base none");
}

/* ---- what is wrong with a line ---- */

QR_TEST(mistakes_are_refused_with_what_to_do)
{
    check_run(t, ARGS("add"), 2, "say what to add");
    check_run(t, ARGS("add", "nowhere"), 4, "there is no file or folder nowhere");
    check_run(t, ARGS("add", "/dev/null"), 2, "neither a file nor a folder");
    check_run(t, ARGS("base"), 2, "say what to do");
    check_run(t, ARGS("base", "creat", "x"), 2, "did you mean create?");
    check_run(t, ARGS("base", "show"), 2, "say which one");
    check_run(t, ARGS("base", "create", "x", "y"), 2, "y is not KEY=VALUE");
    check_run(t, ARGS("base", "create", "x", "chunkin.size=3"), 2, "unknown_field");
    check_run(t, ARGS("rm"), 2, "say which items");
    check_run(t, ARGS("show"), 2, "say which item");
    check_run(t, ARGS("search"), 2, "say what to search for");
    check_run(t, ARGS("set", "x"), 2, "say what to change");
    check_run(t, ARGS("ls", "--all", "x"), 2, "leave x away");
    check_run(t, ARGS("ls"), 4, "there is no base default");
}

QR_TEST(json_is_the_answer_and_nothing_else)
{
    make_docs(t);
    static const char *const lines[][4] = {
        {"add", "docs"},     {"ls", "--all"},         {"show", "docs"}, {"search", "red"}, {"base", "ls"},
        {"refresh", "docs"}, {"reindex", "docs/sub"}, {"wait"},         {"show", "none"},  {"rm", "docs/pears.md"}};
    for (size_t i = 0; i < QR_COUNT(lines); i++) {
        const char *args[6] = {"--json"};
        QR_JSON *answer = NULL;
        qr_err err;
        memcpy(args + 1, lines[i], sizeof lines[i]);
        run_with(t, "", args);
        QR_CHECK_RC(QR_OK, qr_json_parse(qr_str_of(out), &QR_JSON_REQUEST_LIMITS, &answer, &err));
        QR_CHECK_TEXT("", errors);
    }
}

/* ---- two at once ---- */

/* Starts `quire …` with failpoints, its output to a file. */
static pid_t start(struct qr_test *t, const char *failpoints, const char *const *args)
{
    const char *argv[ARGS_MAX + 4];
    fill_argv(t, args, argv);
    char log[256];
    snprintf(log, sizeof log, "%s", qr_test_path(t, "log"));
    const pid_t pid = fork();
    QR_CHECK(pid >= 0);
    if (pid == 0) {
        const int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0 || chdir(t->dir) != 0) {
            _exit(127);
        }
        setenv("QUIRE_FAILPOINTS", failpoints, 1);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid;
}

static const char *log_of(struct qr_test *t)
{
    static char text[8192];
    QR_CLEANUP(qr_buf_done) struct qr_buf buf = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), qr_test_path(t, "log"), sizeof text - 1, &buf, &err));
    keep(&buf, text, sizeof text);
    return text;
}

static void wait_for_socket(struct qr_test *t)
{
    struct stat status;
    while (stat(qr_test_path(t, "data/quire.sock"), &status) != 0) {
        sched_yield();
    }
}

QR_TEST(others_are_answered_while_add_works_and_ctrl_c_loses_nothing) /* REQ-1 */
{
    make_docs(t);
    const pid_t adding = start(t, "index.write.before_commit=sleep(4000)@1", ARGS("add", "docs"));
    wait_for_socket(t);
    check_run(t, ARGS("ls"), 0, "docs/");
    check_run(t, ARGS("show", "docs"), 0, "docs");
    int status;
    QR_CHECK(kill(adding, SIGINT) == 0 && waitpid(adding, &status, 0) == adding);
    QR_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    QR_CHECK_HAS("stopped waiting; nothing is lost", log_of(t));
    check_run(t, ARGS("wait", "docs"), 0, "completed");
    check_run(t, ARGS("search", "green"), 0, "pears.md");
}

QR_TEST(a_second_add_waits_for_the_owner_and_takes_over_when_it_dies)
{
    make_docs(t);
    write_file(t, "plums.md", "Plums are blue.\n");
    const pid_t adding = start(t, "index.write.before_commit=sleep(5000)@1", ARGS("add", "docs"));
    wait_for_socket(t);
    check_run(t, ARGS("add", "--no-wait", "plums.md"), 0, "`quire wait` waits for the process that runs them");
    QR_CHECK(kill(adding, SIGKILL) == 0 && waitpid(adding, NULL, 0) == adding);
    check_run(t, ARGS("wait", "plums.md", "docs"), 0, "completed");
    check_run(t, ARGS("search", "blue"), 0, "plums.md");
}
