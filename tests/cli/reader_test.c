/* The program without the one that reads files, and with it beside itself. */
#include "base/fs.h"
#include "base/proc.h"
#include "support/program.h"

enum { OUTPUT_BYTES_MAX = 1 << 16, ARGS_MAX = 8 };

static struct qr_buf out, errors;

/* `quire --data DIR/data --set reader.program=READER …`; the exit code. */
static int run(struct qr_test *t, const char *reader, const char *const *args)
{
    char data[256], setting[256], home[256];
    snprintf(data, sizeof data, "%s/data", t->dir);
    snprintf(setting, sizeof setting, "reader.program=%s", reader);
    snprintf(home, sizeof home, "HOME=%s", t->dir);
    const char program[] = QUIRE_BINARY_DIR "/quire";
    const char *argv[ARGS_MAX + 6] = {program, "--data", data, "--set", setting};
    const char *env[] = {home, "PATH=/usr/bin:/bin", NULL};
    for (size_t i = 0; args[i]; i++) {
        argv[5 + i] = args[i];
    }
    const struct qr_proc_options options = {
        .argv = argv, .env = env, .dir = t->dir, .output_bytes_max = OUTPUT_BYTES_MAX, .timeout_ms = 50000};
    struct qr_proc_result result;
    qr_err err;
    qr_buf_done(&out);
    qr_buf_done(&errors);
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &out, &errors, &result, &err));
    return result.exit_code;
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

QR_TEST(a_program_that_is_no_reader_is_named_while_its_files_wait)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "a.txt"), QR_STR("some words\n"), 0644, &err));
    const struct program add = {.args = {"--set", "reader.program=/bin/true", "add", "a.txt"},
                                .env = {"TERM=xterm", "LC_ALL=C.UTF-8"},
                                .columns = 400,
                                .ctrl_c_upon = "waiting: "};
    const struct program_end end = program_run_on_terminal(t, &add);
    QR_CHECK_INT(0, end.exit_code);
    QR_CHECK_HAS(
        "\nwaiting: cannot use /bin/true as reader.program: true ended before it was ready, with 0 (unavailable)",
        end.out); /* below the bar */
    QR_CHECK(strncmp(program_screen(end.out, 400), "quire: stopped waiting", strlen("quire: stopped waiting")) == 0);
    program_check(t, PROGRAM("wait"), 0, "nothing is pending");
    program_check(t, PROGRAM("search", "words"), 0, "a.txt");
}

QR_TEST(without_the_reader_no_work_begins_and_with_it_all_goes_on) /* ISOL-6 */
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "a.txt"), QR_STR("some words\n"), 0644, &err));
    QR_CHECK_INT(qr_code_info(QR_CODE_UNAVAILABLE)->exit_code, run(t, "/nowhere/quire-reader", ARGS("add", "a.txt")));
    QR_CHECK_HAS("there is no program /nowhere/quire-reader that may be run", errors.data);
    QR_CHECK_INT(qr_code_info(QR_CODE_UNAVAILABLE)->exit_code, run(t, "quire-nothing", ARGS("add", "a.txt")));
    QR_CHECK_HAS("libexec/quire", errors.data);
    QR_CHECK_INT(0, run(t, "quire-reader", ARGS("add", "a.txt")));
    QR_CHECK_INT(0, run(t, "quire-reader", ARGS("search", "words")));
    QR_CHECK_HAS("a.txt", out.data);
    qr_buf_done(&out);
    qr_buf_done(&errors);
}
