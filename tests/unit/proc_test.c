#include "base/mem.h"
#include "base/proc.h"
#include "base/thread.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 4 << 20 };

static qr_err err;
static struct qr_buf out, errors;
static struct qr_proc_result result;

#define ARGV(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define SH(script) ARGV("sh", "-c", script)

static qr_rc run(struct qr_proc_options options)
{
    qr_buf_done(&out);
    qr_buf_done(&errors);
    result = (struct qr_proc_result){-7, -7};
    options.output_bytes_max = options.output_bytes_max ? options.output_bytes_max : OUTPUT_MAX;
    const qr_rc rc = qr_proc_run(&options, &out, &errors, &result, &err);
    errno = 0;
    QR_CHECK(rc != QR_OK || result.exit_code >= 0 || result.signal_number > 0);
    return rc;
}

static void done(void)
{
    qr_buf_done(&out);
    qr_buf_done(&errors);
}

static void check_no_child_left(void)
{
    QR_CHECK_INT(-1, waitpid(-1, NULL, WNOHANG));
    QR_CHECK_INT(ECHILD, errno);
}

QR_TEST(output_errors_and_exit_code_come_back)
{
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = SH("echo to out; echo to err >&2; exit 3")}));
    QR_CHECK_STR("to out\n", qr_buf_str(&out));
    QR_CHECK_STR("to err\n", qr_buf_str(&errors));
    QR_CHECK_INT(3, result.exit_code);
    QR_CHECK_INT(0, result.signal_number);
    check_no_child_left();
    done();
}

QR_TEST(a_signal_that_ended_it_comes_back)
{
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = SH("kill -TERM $$")}));
    QR_CHECK_INT(-1, result.exit_code);
    QR_CHECK_INT(SIGTERM, result.signal_number);
    done();
}

QR_TEST(outputs_may_be_left_out)
{
    const struct qr_proc_options options = {.argv = SH("echo x; echo y >&2")};
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, NULL, NULL, &result, &err));
    QR_CHECK_INT(0, result.exit_code);
}

QR_TEST(arguments_are_passed_as_they_are)
{
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("printf", "%s|", "a b", "$HOME", "", "'\"*")}));
    QR_CHECK_STR("a b|$HOME||'\"*|", qr_buf_str(&out));
    done();
}

QR_TEST(the_environment_is_inherited_or_given)
{
    setenv("QUIRE_TEST_WORD", "inherited", 1);
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = SH("echo $QUIRE_TEST_WORD")}));
    QR_CHECK_STR("inherited\n", qr_buf_str(&out));
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("env"), .env = ARGV("ONLY=this")}));
    QR_CHECK_STR("ONLY=this\n", qr_buf_str(&out));
    done();
}

QR_TEST(it_runs_in_the_folder_it_is_given)
{
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("pwd", "-P"), .dir = "/usr"}));
    QR_CHECK_STR("/usr\n", qr_buf_str(&out));
    done();
}

QR_TEST(a_megabyte_goes_in_and_comes_out)
{
    char *input = qr_alloc(1 << 20);
    for (size_t i = 0; i < 1 << 20; i++) {
        input[i] = (char)(i * 31 >> 3);
    }
    const qr_str text = {input, 1 << 20};
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("cat"), .input = text}));
    QR_CHECK(qr_str_equal(text, qr_buf_str(&out)));
    qr_free(input);
    done();
}

QR_TEST(input_can_be_opened_by_name)
{
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("cat", "/dev/stdin"), .input = QR_STR("abc")}));
    QR_CHECK_STR("abc", qr_buf_str(&out));
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("cat")})); /* no input: at its end at once */
    QR_CHECK_STR("", qr_buf_str(&out));
    done();
}

QR_TEST(a_child_that_does_not_read_a_megabyte_of_input_does_no_harm)
{
    signal(SIGPIPE, SIG_DFL); /* would end this process */
    char *input = qr_alloc_zero(1 << 20);
    const qr_str text = {input, 1 << 20};
    /* so much output that the loop meets the closed input while the child still runs */
    const char *script = "exec <&-; head -c 300000 /dev/zero";
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = SH(script), .input = text}));
    QR_CHECK_INT(300000, out.len);
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("true"), .input = text}));
    sigset_t pending, blocked;
    sigpending(&pending);
    QR_CHECK(!sigismember(&pending, SIGPIPE));
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    QR_CHECK(!sigismember(&blocked, SIGPIPE));
    qr_free(input);
    done();
}

/* ---- what cannot be started ---- */

QR_TEST(a_missing_program_is_not_found)
{
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, run((struct qr_proc_options){.argv = ARGV("no-such-program-here")}));
    QR_CHECK_HAS("no-such-program-here", err.msg);
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, run((struct qr_proc_options){.argv = ARGV("/no/such/program")}));
    QR_CHECK_HAS("cannot start /no/such/program: No such file", err.msg);
    check_no_child_left();
    done();
}

QR_TEST(a_missing_folder_is_not_found_and_named)
{
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, run((struct qr_proc_options){.argv = ARGV("true"), .dir = "/no/such/folder"}));
    QR_CHECK_HAS("/no/such/folder", err.msg);
    check_no_child_left();
    done();
}

static void write_file(const char *path, const char *content, mode_t mode)
{
    FILE *file = fopen(path, "w");
    QR_CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0 && chmod(path, mode) == 0);
}

QR_TEST(a_file_without_permission_is_forbidden_and_one_that_is_no_program_invalid)
{
    write_file(qr_test_path(t, "tool"), "#!/bin/sh\necho hello\n", 0644);
    setenv("PATH", t->dir, 1);
    QR_CHECK_CODE(QR_CODE_FORBIDDEN, run((struct qr_proc_options){.argv = ARGV(qr_test_path(t, "tool"))}));
    QR_CHECK_CODE(QR_CODE_FORBIDDEN, run((struct qr_proc_options){.argv = ARGV("tool")}));
    chmod(qr_test_path(t, "tool"), 0755);
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("tool")}));
    QR_CHECK_STR("hello\n", qr_buf_str(&out));
    write_file(qr_test_path(t, "text"), "just text", 0755);
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, run((struct qr_proc_options){.argv = ARGV("text")}));
    done();
}

QR_TEST(the_path_is_searched_in_order_and_never_means_the_current_folder)
{
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "first"), 0777));
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "second"), 0777));
    write_file(qr_test_path(t, "first/tool"), "not to be run", 0644);
    write_file(qr_test_path(t, "second/tool"), "#!/bin/sh\necho second\n", 0755);
    write_file(qr_test_path(t, "local"), "#!/bin/sh\necho local\n", 0755);
    QR_CHECK_INT(0, chdir(t->dir));
    char path[512];
    snprintf(path, sizeof path, "/no/such/folder:%s::%s:", qr_test_path(t, "first"), qr_test_path(t, "second"));
    setenv("PATH", path, 1);
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("tool")}));
    QR_CHECK_STR("second\n", qr_buf_str(&out));
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, run((struct qr_proc_options){.argv = ARGV("local")}));
    done();
}

/* ---- limits ---- */

/* As their subreaper this process gets the grandchildren when their parent is gone, and sees how they end. */
static void become_subreaper(void)
{
    QR_CHECK_INT(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
}

static void check_was_killed(pid_t pid)
{
    int status;
    QR_CHECK_INT(pid, waitpid(pid, &status, 0));
    QR_CHECK(WIFSIGNALED(status));
    QR_CHECK_INT(SIGKILL, WTERMSIG(status));
}

static pid_t printed_pid(void)
{
    qr_str rest = qr_buf_str(&out);
    int64_t pid = 0;
    return qr_str_to_i64(qr_str_split(&rest, '\n'), &pid) ? (pid_t)pid : 0;
}

/* The child may have had one of its own that it did not come to print. */
static void check_orphans_were_killed(void)
{
    for (int status; waitpid(-1, &status, 0) > 0;) {
        QR_CHECK(WIFSIGNALED(status));
        QR_CHECK_INT(SIGKILL, WTERMSIG(status));
    }
}

QR_TEST(a_timeout_kills_the_whole_group)
{
    become_subreaper();
    /* longer and longer, until the child came far enough to have a child of its own */
    for (int64_t timeout_ms = 50;; timeout_ms *= 2) {
        const struct qr_proc_options options = {.argv = SH("sleep 1000 & echo $!; wait"), .timeout_ms = timeout_ms};
        const int64_t began_us = qr_thread_mono_us();
        QR_CHECK_CODE(QR_CODE_TIMEOUT, run(options));
        QR_CHECK(qr_thread_mono_us() - began_us >= timeout_ms * 1000);
        if (printed_pid()) {
            break;
        }
        check_orphans_were_killed();
    }
    check_was_killed(printed_pid());
    check_no_child_left();
    done();
}

QR_TEST(a_timeout_holds_for_a_child_that_never_stops_writing_or_starting)
{
    QR_CHECK_CODE(QR_CODE_TIMEOUT, run((struct qr_proc_options){.argv = SH("yes >&2"), .timeout_ms = 50}));
    QR_CHECK_CODE(QR_CODE_TIMEOUT, run((struct qr_proc_options){.argv = SH("trap '' TERM INT HUP; sleep 1000; sleep 1"),
                                                                .timeout_ms = 50}));
    for (int i = 0; i < 20; i++) { /* may hit it before its exec, or before its group */
        const qr_rc rc = run((struct qr_proc_options){.argv = ARGV("sleep", "1000"), .timeout_ms = 1});
        QR_CHECK_INT(QR_TIMEOUT, rc);
    }
    check_no_child_left();
    done();
}

QR_TEST(what_the_child_leaves_running_is_killed)
{
    become_subreaper();
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = SH("sleep 1000 & echo $!; exit 5")}));
    QR_CHECK_INT(5, result.exit_code);
    check_was_killed(printed_pid());
    done();
}

QR_TEST(a_process_that_left_the_group_does_not_hold_up_the_end)
{
    become_subreaper();
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = SH("setsid sleep 1000 & echo $!; exit 6")}));
    QR_CHECK_INT(6, result.exit_code);
    kill(printed_pid(), SIGKILL);
    check_was_killed(printed_pid());
    done();
}

QR_TEST(output_up_to_the_limit_is_whole_and_more_kills_the_child)
{
    QR_CHECK_RC(QR_OK,
                run((struct qr_proc_options){.argv = SH("head -c 100000 /dev/zero"), .output_bytes_max = 100000}));
    QR_CHECK_INT(100000, out.len);
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE,
                  run((struct qr_proc_options){.argv = SH("head -c 100001 /dev/zero"), .output_bytes_max = 100000}));
    QR_CHECK_INT(100000, out.len);
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE,
                  run((struct qr_proc_options){.argv = ARGV("yes"), .output_bytes_max = 1000}));
    QR_CHECK_INT(1000, out.len);
    check_no_child_left();
    done();
}

QR_TEST(only_the_first_errors_are_kept_and_the_rest_does_not_block)
{
    const char *script = "echo first >&2; yes | head -c 1000000 >&2; echo end";
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = SH(script)}));
    QR_CHECK_STR("end\n", qr_buf_str(&out));
    QR_CHECK_INT(8192, errors.len);
    QR_CHECK(qr_str_starts_with(qr_buf_str(&errors), QR_STR("first\n")));
    done();
}

/* ---- what the child gets from us, and what not ---- */

QR_TEST(no_file_but_the_standard_ones_is_inherited)
{
    QR_CHECK_INT(200, dup2(open("/dev/null", O_RDONLY), 200)); /* not close-on-exec */
    const char *script = "for fd in 3 4 5 6 7 8 9 200; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; echo looked";
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = SH(script), .input = QR_STR("x")}));
    QR_CHECK_STR("looked\n", qr_buf_str(&out));
    done();
}

QR_TEST(signals_are_at_their_defaults_and_none_is_blocked)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = ARGV("grep", "-E", "SigBlk|SigIgn", "/proc/self/status")}));
    unsigned long long blocked, ignored;
    QR_CHECK_INT(2, sscanf(out.data, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored));
    QR_CHECK_INT(0, blocked);
    QR_CHECK_INT(0, ignored & ~(3ULL << 31)); /* 32 and 33 are libc's own: it lets nobody set them */
    sigset_t after;
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    QR_CHECK(sigismember(&after, SIGTERM));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    done();
}

QR_TEST(it_works_when_our_own_standard_files_are_closed)
{
    close(0);
    close(1);
    close(2);
    QR_CHECK_RC(QR_OK, run((struct qr_proc_options){.argv = SH("cat; echo err >&2"), .input = QR_STR("in")}));
    QR_CHECK_STR("in", qr_buf_str(&out));
    QR_CHECK_STR("err\n", qr_buf_str(&errors));
    QR_CHECK_INT(0, open("/dev/null", O_RDWR)); /* and nothing was left open in their place */
    done();
}

QR_TEST(the_child_dies_with_its_parent)
{
    become_subreaper();
    const char *fifo = qr_test_path(t, "fifo");
    QR_CHECK_INT(0, mkfifo(fifo, 0600));
    const pid_t parent = fork();
    if (parent == 0) {
        char script[256];
        snprintf(script, sizeof script, "echo $$ > '%s'; exec sleep 1000", fifo);
        (void)run((struct qr_proc_options){.argv = SH(script)});
        _exit(0);
    }
    FILE *pid_file = fopen(fifo, "r");
    char line[32] = "";
    QR_CHECK(pid_file && fgets(line, sizeof line, pid_file));
    fclose(pid_file);
    int64_t child;
    QR_CHECK(qr_str_to_i64(qr_str_trim(qr_str_of(line)), &child));
    kill(parent, SIGKILL);
    check_was_killed(parent);
    check_was_killed((pid_t)child);
}

static void *run_often(void *arg QR_UNUSED)
{
    for (int i = 0; i < 10; i++) {
        char text[32];
        const int len = snprintf(text, sizeof text, "%d of %p", i, (void *)text);
        const struct qr_proc_options options = {
            .argv = ARGV("cat"), .input = {text, (size_t)len}, .output_bytes_max = 100, .timeout_ms = 60000};
        struct qr_buf mine;
        qr_buf_init(&mine, 0);
        struct qr_proc_result ended;
        QR_CHECK_INT(QR_OK, qr_proc_run(&options, &mine, NULL, &ended, NULL));
        QR_CHECK_INT(0, ended.exit_code);
        QR_CHECK_STR(text, qr_buf_str(&mine));
        qr_buf_done(&mine);
    }
    return NULL;
}

QR_TEST(threads_run_children_at_the_same_time)
{
    pthread_t threads[4];
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        QR_CHECK_RC(QR_OK, qr_thread_start(&threads[i], "runner", run_often, NULL, &err));
    }
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    check_no_child_left();
}
