/* The pool of helpers, against the real quire-reader. */
#include "base/mem.h"
#include "base/thread.h"
#include "convert/reader.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static qr_err err;

#define PROGRAM QUIRE_BINARY_DIR "/" QR_READER_PROGRAM

enum { SECOND_US = 1000 * 1000 };

static const char trouble[] = "reader.crash=error;reader.loop=error;reader.hang=error;reader.memory=error;"
                              "reader.starve=error;reader.flood=error;reader.lie=error;reader.chat=error;"
                              "reader.probe=error";

static struct qr_reader *open_reader(int count_max)
{
    struct qr_reader *reader;
    setenv("QUIRE_READER_FAILPOINTS", trouble, 1);
    QR_CHECK_RC(QR_OK,
                qr_reader_open(&reader, &(struct qr_reader_options){.program = PROGRAM, .count_max = count_max}, &err));
    return reader;
}

static struct qr_arena arena;
static struct qr_converted converted;

static qr_rc convert_with(struct qr_reader *reader, qr_str bytes, const struct qr_reader_limits *limits)
{
    qr_arena_done(&arena);
    converted = (struct qr_converted){0};
    return qr_reader_convert(reader, bytes, "a.txt", limits, &arena, &converted, &err);
}

static qr_rc convert(struct qr_reader *reader, const char *text)
{
    return convert_with(reader, qr_str_of(text), NULL);
}

static void check_works(struct qr_reader *reader)
{
    QR_CHECK_RC(QR_OK, convert(reader, "still here\n"));
    QR_CHECK_STR("still here\n", converted.text);
}

static struct qr_reader_stats stats_of(struct qr_reader *reader)
{
    struct qr_reader_stats stats;
    qr_reader_stats(reader, &stats);
    return stats;
}

static int count_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    QR_CHECK(folder);
    while (readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}

/* The helpers of this process, by the list that the kernel keeps; of at most `max`. */
static int find_helpers(pid_t *ret_pids, int max)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    QR_CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/task/%.16s/children", task->d_name);
        FILE *children = fopen(path, "r");
        for (int pid; children && count < max && fscanf(children, "%d", &pid) == 1;) {
            ret_pids[count++] = pid;
        }
        if (children) {
            fclose(children);
        }
    }
    closedir(tasks);
    return count;
}

static void close_reader(struct qr_reader *reader)
{
    qr_reader_close(reader);
    qr_arena_done(&arena);
    QR_CHECK_INT(-1, waitpid(-1, NULL, WNOHANG)); /* H4 */
    QR_CHECK_INT(ECHILD, errno);
}

/* ---- what it does ---- */

QR_TEST(a_file_comes_back_as_canonical_text) /* ISOL-1 */
{
    struct qr_reader *reader = open_reader(1);
    QR_CHECK_RC(QR_OK, qr_reader_convert(reader, QR_STR("\xEF\xBB\xBF# Title\r\n\r\nText \xC3\xA4\r\n"), "x.md", NULL,
                                         &arena, &converted, &err));
    QR_CHECK_STR("# Title\n\nText \xC3\xA4\n", converted.text);
    QR_CHECK_TEXT("Title", converted.title);
    QR_CHECK_TEXT("text/markdown", converted.mime);
    QR_CHECK_TEXT("utf-8", converted.charset);
    QR_CHECK_INT(0, converted.warning_count);
    close_reader(reader);
}

QR_TEST(it_answers_what_converting_in_place_does)
{
    static const struct {
        const char *name;
        qr_str bytes;
    } files[] = {
        {"page.html", QR_STR("<html><head><title>T</title></head><body><main><h1>Head</h1><p>One <b>two</b></p>"
                             "<ul><li>a<li>b</ul><table><tr><th>x<th>y<tr><td>1<td>2</table></main></body></html>")},
        {"empty.txt", QR_STR("")},
        {"blank.txt", QR_STR("  \n\n")},
        {"rows.csv", QR_STR("a,b\r\n1,2\r\n")},
        {"data.json", QR_STR("{\"a\": [1, 2, 3]}")},
        {"code.py", QR_STR("def f():\n    return 1\n")},
        {"cyrillic.txt", QR_STR("\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0! \xdd\xf2\xee \xef\xf0\xee\xf1\xf2\xee\xe9 "
                                "\xf2\xe5\xea\xf1\xf2 \xed\xe0 \xf0\xf3\xf1\xf1\xea\xee\xec \xff\xe7\xfb\xea\xe5.\n")},
        {"japanese.txt",
         QR_STR("\x82\xb1\x82\xea\x82\xcd\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\xcd\x82\xc5\x82\xb7"
                "\x81\x42\x8a\xbf\x8e\x9a\x82\xe0\x82\xa0\x82\xe8\x82\xdc\x82\xb7\x81\x42\n")},
        {"binary.txt", QR_STR("\x7f"
                              "ELF\0\1\2\3\4\5\6\7\0\0\0\0\xff\xfe\xfd\xfc")},
        {"utf16.txt", QR_STR("\xff\xfeh\0i\0\n\0")},
        {"", QR_STR("without a name\n")},
    };
    struct qr_reader *isolated = open_reader(1), *direct = qr_reader_direct();
    for (size_t i = 0; i < QR_COUNT(files); i++) {
        struct qr_converted here = {0}, there = {0};
        qr_err here_err = {0}, there_err = {0};
        qr_test_set_context("%s", files[i].name);
        const qr_rc rc = qr_reader_convert(direct, files[i].bytes, files[i].name, NULL, &arena, &here, &here_err);
        QR_CHECK_INT(rc, qr_reader_convert(isolated, files[i].bytes, files[i].name, NULL, &arena, &there, &there_err));
        QR_CHECK_TEXT(here_err.msg, there_err.msg);
        if (rc != QR_OK) {
            continue;
        }
        QR_CHECK(qr_str_equal(here.text, there.text));
        QR_CHECK_TEXT(here.mime, there.mime);
        QR_CHECK_TEXT(here.source_mime, there.source_mime);
        QR_CHECK_TEXT(here.charset, there.charset);
        QR_CHECK_TEXT(here.title, there.title);
        QR_CHECK_INT(here.page_count, there.page_count);
        QR_CHECK_INT(here.line_count, there.line_count);
        QR_CHECK(here.line_count == 0 || memcmp(here.lines, there.lines, here.line_count * sizeof here.lines[0]) == 0);
        QR_CHECK_INT(here.warning_count, there.warning_count);
        for (size_t k = 0; k < here.warning_count; k++) {
            QR_CHECK_TEXT(here.warnings[k].code, there.warnings[k].code);
            QR_CHECK_TEXT(here.warnings[k].message, there.warnings[k].message);
        }
    }
    close_reader(isolated);
}

QR_TEST(a_thousand_files_go_through_one_helper) /* H1 */
{
    struct qr_reader *reader = open_reader(4);
    char text[64];
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "file number %d\n", i);
        QR_CHECK_RC(QR_OK, convert(reader, text));
        QR_CHECK_STR(text, converted.text);
    }
    QR_CHECK_INT(1, stats_of(reader).started);
    QR_CHECK_INT(1, stats_of(reader).replaced); /* after the last */
    check_works(reader);
    QR_CHECK_INT(2, stats_of(reader).started);
    QR_CHECK_INT(0, stats_of(reader).faults);
    close_reader(reader);
}

QR_TEST(a_large_file_goes_through)
{
    struct qr_reader *reader = open_reader(1);
    enum { SIZE = 8 << 20 };
    char *text = qr_alloc(SIZE);
    QR_CHECK(text);
    for (size_t i = 0; i < SIZE; i++) {
        text[i] = i % 64 == 63 ? '\n' : (char)('a' + i % 23);
    }
    QR_CHECK_RC(QR_OK, convert_with(reader, (qr_str){text, SIZE}, NULL));
    QR_CHECK(qr_str_equal((qr_str){text, SIZE}, converted.text));
    qr_free(text);
    check_works(reader);
    close_reader(reader);
}

/* ---- what it has no right to ---- */

QR_TEST(the_helper_can_open_connect_start_and_signal_nothing) /* ISOL-1 */
{
    struct qr_reader *reader = open_reader(1);
    QR_CHECK_RC(QR_OK, convert(reader, "reader.probe"));
    QR_CHECK_STR("open: EPERM\ncreate: EPERM\nsocket: EPERM\nfork: EPERM\nexec: EPERM\nkill: EPERM\nlimit: EPERM\n"
                 "code: EPERM\nmemory: allowed\n",
                 converted.text);
    close_reader(reader);
}

QR_TEST(what_protects_the_helper_is_stated) /* ISOL-5 */
{
    struct qr_reader *reader = open_reader(1);
    QR_CHECK_INT(0, stats_of(reader).protections);
    check_works(reader);
    const struct qr_reader_stats stats = stats_of(reader);
    QR_CHECK(stats.protections & QR_PROTECTION_LIMITS);
    QR_CHECK_INT((stats.protections & QR_PROTECTION_LANDLOCK) != 0, stats.landlock_abi > 0);
    close_reader(reader);
}

/* From now on this process and what it starts live on a kernel without one of them. */
static void take_away(int call, int first_argument)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)first_argument, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {QR_COUNT(steps), steps};
    QR_CHECK_INT(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    QR_CHECK_INT(0, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0));
}

QR_TEST(without_landlock_the_others_hold_and_it_is_stated) /* ISOL-5 */
{
    take_away(SYS_landlock_create_ruleset, 0);
    struct qr_reader *reader = open_reader(1);
    QR_CHECK_RC(QR_OK, convert(reader, "reader.probe"));
    QR_CHECK_HAS("open: EPERM\ncreate: EPERM\nsocket: EPERM\nfork: EPERM\nexec: EPERM\n", converted.text.ptr);
    QR_CHECK_INT(QR_PROTECTION_SECCOMP | QR_PROTECTION_LIMITS, stats_of(reader).protections);
    QR_CHECK_INT(0, stats_of(reader).landlock_abi);
    close_reader(reader);
}

QR_TEST(without_seccomp_the_others_hold_and_it_is_stated) /* ISOL-5 */
{
    take_away(SYS_prctl, PR_SET_SECCOMP);
    struct qr_reader *reader = open_reader(1);
    QR_CHECK_RC(QR_OK, convert(reader, "reader.probe"));
    QR_CHECK_HAS("open: EMFILE\ncreate: EMFILE\nsocket: EMFILE\n", converted.text.ptr);
    const struct qr_reader_stats stats = stats_of(reader);
    QR_CHECK_INT(0, stats.protections & QR_PROTECTION_SECCOMP);
    QR_CHECK(stats.protections & QR_PROTECTION_LIMITS);
    QR_CHECK(!stats.landlock_abi || strstr(converted.text.ptr, "exec: EACCES\n"));
    close_reader(reader);
}

QR_TEST(the_helper_gets_no_file_and_no_environment_of_ours)
{
    struct qr_reader *reader;
    char path[64], target[256], env[4096];
    pid_t pid;
    const int secret = open("/etc/passwd", O_RDONLY); /* without close-on-exec */
    setenv("QUIRE_TEST_SECRET", "1", 1);
    reader = open_reader(1);
    check_works(reader);
    QR_CHECK_INT(1, find_helpers(&pid, 1));
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, secret);
    QR_CHECK(secret > STDERR_FILENO && readlink(path, target, sizeof target) < 0);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    const int fd = open(path, O_RDONLY); /* refused to all but root: it is not to be looked into */
    const ssize_t len = fd >= 0 ? read(fd, env, sizeof env) : 0;
    QR_CHECK(len <= 0 || !memmem(env, (size_t)len, "QUIRE_TEST_SECRET", 17));
    close(fd);
    close(secret);
    close_reader(reader);
}

/* ---- what goes wrong ---- */

QR_TEST(a_crash_costs_the_file_that_caused_it) /* ISOL-2, H2 */
{
    struct qr_reader *reader = open_reader(1);
    check_works(reader);
    for (int i = 0; i < 3; i++) {
        QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, convert(reader, "this is a reader.crash file"));
        QR_CHECK_HAS("quire-reader died while it read this: ", err.msg);
        check_works(reader);
    }
    QR_CHECK_INT(3, stats_of(reader).faults);
    QR_CHECK_INT(4, stats_of(reader).started);
    close_reader(reader);
}

QR_TEST(a_loop_and_a_hang_end_at_the_time_limit) /* ISOL-3 */
{
    struct qr_reader *reader = open_reader(1);
    const struct qr_reader_limits limits = {.timeout_ms = 300};
    static const char *const files[] = {"reader.loop", "reader.hang"};
    check_works(reader);
    for (size_t i = 0; i < QR_COUNT(files); i++) {
        const int64_t start_us = qr_thread_mono_us();
        QR_CHECK_CODE(QR_CODE_TIMEOUT, convert_with(reader, qr_str_of(files[i]), &limits));
        QR_CHECK(qr_thread_mono_us() - start_us >= 300 * 1000);
        QR_CHECK(qr_thread_mono_us() - start_us < 10 * SECOND_US);
        check_works(reader);
    }
    close_reader(reader);
}

static bool is_cancelled(void *arg)
{
    return qr_thread_mono_us() >= *(const int64_t *)arg;
}

QR_TEST(a_cancelled_one_ends_within_a_second) /* ISOL-3 */
{
    struct qr_reader *reader = open_reader(1);
    int64_t at_us = qr_thread_mono_us() + SECOND_US / 2;
    const struct qr_reader_limits limits = {.is_cancelled = is_cancelled, .arg = &at_us};
    QR_CHECK_CODE(QR_CODE_CANCELLED, convert_with(reader, QR_STR("reader.loop"), &limits));
    QR_CHECK(qr_thread_mono_us() - at_us < SECOND_US);
    QR_CHECK_INT(0, stats_of(reader).faults);
    check_works(reader);
    close_reader(reader);
}

QR_TEST(memory_is_limited) /* ISOL-3 */
{
    struct qr_reader *reader = open_reader(1);
    const struct qr_reader_limits limits = {.memory_bytes_max = 64 << 20};
    static const char *const files[] = {"reader.memory", "reader.starve"};
    for (size_t i = 0; i < QR_COUNT(files); i++) {
        QR_CHECK_CODE(QR_CODE_LIMIT_EXCEEDED, convert_with(reader, qr_str_of(files[i]), &limits));
        QR_CHECK_HAS("memory", err.msg);
        check_works(reader);
    }
    close_reader(reader);
}

QR_TEST(a_file_larger_than_the_memory_is_refused) /* ISOL-3 */
{
    struct qr_reader *reader = open_reader(1);
    const struct qr_reader_limits limits = {.memory_bytes_max = 4 << 20};
    enum { SIZE = 16 << 20 };
    char *text = qr_alloc(SIZE);
    QR_CHECK(text);
    memset(text, 'a', SIZE);
    QR_CHECK_CODE(QR_CODE_LIMIT_EXCEEDED, convert_with(reader, (qr_str){text, SIZE}, &limits));
    qr_free(text);
    check_works(reader);
    close_reader(reader);
}

QR_TEST(output_is_limited) /* ISOL-3 */
{
    struct qr_reader *reader = open_reader(1);
    const struct qr_reader_limits limits = {.text_bytes_max = 5};
    QR_CHECK_CODE(QR_CODE_LIMIT_EXCEEDED, convert_with(reader, QR_STR("more than five\n"), &limits));
    QR_CHECK_INT(0, stats_of(reader).faults);
    QR_CHECK_CODE(QR_CODE_LIMIT_EXCEEDED, convert(reader, "reader.flood"));
    QR_CHECK_INT(1, stats_of(reader).faults);
    check_works(reader);
    close_reader(reader);
}

QR_TEST(an_answer_that_makes_no_sense_ends_the_helper) /* ISOL-4, H3 */
{
    struct qr_reader *reader = open_reader(1);
    QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, convert(reader, "reader.lie"));
    QR_CHECK_HAS("makes no sense", err.msg);
    check_works(reader);
    close_reader(reader);
}

QR_TEST(what_a_helper_says_unasked_does_not_reach_the_next_file) /* ISOL-4 */
{
    struct qr_reader *reader = open_reader(1);
    QR_CHECK_RC(QR_OK, convert(reader, "reader.chat"));
    QR_CHECK_STR("reader.chat", converted.text);
    pid_t pid;
    QR_CHECK_INT(1, find_helpers(&pid, 1));
    char state = 'R', path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (state != 'S') { /* until it has talked and waits for a file */
        FILE *stat = fopen(path, "r");
        QR_CHECK(stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1);
        fclose(stat);
    }
    check_works(reader);
    QR_CHECK_INT(0, stats_of(reader).faults);
    QR_CHECK_INT(2, stats_of(reader).started);
    close_reader(reader);
}

QR_TEST(a_helper_killed_between_files_costs_none) /* H2 */
{
    struct qr_reader *reader = open_reader(1);
    for (int i = 0; i < 5; i++) {
        pid_t pid;
        siginfo_t info;
        check_works(reader);
        QR_CHECK_INT(1, find_helpers(&pid, 1));
        kill(pid, SIGKILL);
        QR_CHECK_INT(0, waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
    }
    check_works(reader);
    QR_CHECK_INT(0, stats_of(reader).faults);
    close_reader(reader);
}

/* Asked while the helper is at work. */
static bool kill_helper(void *arg QR_UNUSED)
{
    pid_t pid;
    if (find_helpers(&pid, 1) == 1) {
        kill(pid, SIGKILL);
    }
    return false;
}

QR_TEST(a_helper_killed_during_a_file_is_a_crash) /* ISOL-2 */
{
    struct qr_reader *reader = open_reader(1);
    const struct qr_reader_limits limits = {.is_cancelled = kill_helper};
    check_works(reader);
    QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, convert_with(reader, QR_STR("reader.hang"), &limits));
    QR_CHECK_HAS("Killed", err.msg);
    check_works(reader);
    close_reader(reader);
}

QR_TEST(a_missing_program_is_told_at_once) /* ISOL-6 */
{
    struct qr_reader *reader = NULL;
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE,
                  qr_reader_open(&reader, &(struct qr_reader_options){.program = "/nowhere/quire-reader"}, &err));
    QR_CHECK_HAS("/nowhere/quire-reader", err.msg);
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE,
                  qr_reader_open(&reader, &(struct qr_reader_options){.program = "quire-nothing"}, &err));
    QR_CHECK_HAS("libexec", err.msg);
    QR_CHECK(!reader);
}

QR_TEST(another_program_in_its_place_is_told) /* ISOL-6 */
{
    struct qr_reader *reader;
    static const char *const programs[] = {"/bin/true", "/bin/cat"};
    for (size_t i = 0; i < QR_COUNT(programs); i++) {
        QR_CHECK_RC(QR_OK, qr_reader_open(&reader, &(struct qr_reader_options){.program = programs[i]}, &err));
        QR_CHECK_CODE(QR_CODE_UNAVAILABLE, convert(reader, "text"));
        QR_CHECK_HAS(programs[i], err.msg);
        close_reader(reader);
    }
}

/* ---- several together ---- */

enum { SEVERAL = 100, BAD = 37 };

static struct qr_reader_file files[SEVERAL];
static char texts[SEVERAL][64];

/* Fine ones but for `bad`, which is the BADth unless it is NULL. */
static void convert_several(struct qr_reader *reader, const char *bad, const struct qr_reader_limits *limits)
{
    qr_arena_done(&arena);
    for (int i = 0; i < SEVERAL; i++) {
        snprintf(texts[i], sizeof texts[i], "file number %d\n", i);
        if (bad && i == BAD) {
            snprintf(texts[i], sizeof texts[i], "%s", bad);
        }
        files[i] = (struct qr_reader_file){.bytes = qr_str_of(texts[i]),
                                           .name = "a.txt",
                                           .limits = limits ? *limits : (struct qr_reader_limits){0},
                                           .arena = &arena};
    }
    qr_reader_convert_several(reader, files, SEVERAL);
}

/* What has an answer has the right one. Returns how many. */
static int check_answers(void)
{
    int count = 0;
    for (int i = 0; i < SEVERAL; i++) {
        if (files[i].is_answered) {
            QR_CHECK_RC(QR_OK, files[i].rc);
            QR_CHECK_STR(texts[i], files[i].converted.text);
            count++;
        }
    }
    return count;
}

QR_TEST(several_files_have_each_its_own_answer)
{
    struct qr_reader *reader = open_reader(1);
    for (int i = 0; i < 3; i++) {
        convert_several(reader, NULL, NULL);
        QR_CHECK_INT(SEVERAL, check_answers());
    }
    convert_several(qr_reader_direct(), NULL, NULL);
    QR_CHECK_INT(SEVERAL, check_answers());
    QR_CHECK_INT(1, stats_of(reader).started);
    qr_reader_convert_several(reader, files, 0);
    close_reader(reader);
}

QR_TEST(of_several_one_that_is_no_text_fails_alone)
{
    struct qr_reader *reader = open_reader(1);
    convert_several(reader,
                    "\x7f"
                    "ELF\1\2\3\4\5\6\7\xff\xfe\xfd\xfc",
                    NULL);
    QR_CHECK(files[BAD].is_answered);
    QR_CHECK_INT(QR_CODE_UNSUPPORTED_TYPE, files[BAD].err.code);
    files[BAD].is_answered = false;
    QR_CHECK_INT(SEVERAL - 1, check_answers());
    QR_CHECK_INT(1, stats_of(reader).started);
    close_reader(reader);
}

/* H2: those that it took with it are asked alone, and nothing is the matter with them. */
static void check_costs_itself(struct qr_reader *reader, const char *bad, const struct qr_reader_limits *limits)
{
    const int64_t faults = stats_of(reader).faults;
    qr_test_set_context("%s", bad);
    convert_several(reader, bad, limits);
    QR_CHECK(!files[BAD].is_answered);
    QR_CHECK(check_answers() < SEVERAL);
    QR_CHECK_INT(faults, stats_of(reader).faults); /* nobody is blamed */
    for (int i = 0; i < SEVERAL; i++) {
        if (!files[i].is_answered && i != BAD) {
            QR_CHECK_RC(QR_OK, convert_with(reader, files[i].bytes, limits));
            QR_CHECK_STR(texts[i], converted.text);
        }
    }
    QR_CHECK(convert_with(reader, files[BAD].bytes, limits) != QR_OK);
    QR_CHECK(stats_of(reader).faults <= faults + 1);
}

QR_TEST_WITH_TIMEOUT(of_several_one_that_breaks_the_helper_costs_itself, 120) /* ISOL-2, ISOL-3, ISOL-4, H2 */
{
    struct qr_reader *reader = open_reader(1);
    const struct qr_reader_limits limits = {.timeout_ms = 300, .memory_bytes_max = 64 << 20};
    static const char *const troubles[] = {"reader.crash",  "reader.loop",  "reader.hang",
                                           "reader.starve", "reader.flood", "reader.lie"};
    for (size_t i = 0; i < QR_COUNT(troubles); i++) {
        check_costs_itself(reader, troubles[i], &limits);
    }
    check_works(reader);
    close_reader(reader);
}

QR_TEST(a_hang_among_several_is_noticed_long_before_the_time_limit) /* ISOL-2 */
{
    struct qr_reader *reader = open_reader(1);
    const int64_t start_us = qr_thread_mono_us();
    convert_several(reader, "reader.hang", NULL); /* a minute is what one may take */
    QR_CHECK(!files[BAD].is_answered && check_answers() < SEVERAL);
    QR_CHECK(qr_thread_mono_us() - start_us < 20 * SECOND_US);
    close_reader(reader);
}

QR_TEST(several_that_are_cancelled_end_within_a_second) /* ISOL-3 */
{
    struct qr_reader *reader = open_reader(1);
    check_works(reader);
    int64_t at_us = qr_thread_mono_us();
    const struct qr_reader_limits limits = {.is_cancelled = is_cancelled, .arg = &at_us};
    convert_several(reader, "reader.hang", &limits);
    QR_CHECK(qr_thread_mono_us() - at_us < SECOND_US);
    QR_CHECK(!files[BAD].is_answered);
    check_works(reader);
    close_reader(reader);
}

QR_TEST(each_of_several_has_its_own_limit_of_text) /* ISOL-3 */
{
    struct qr_reader *reader = open_reader(1);
    convert_several(reader, NULL, NULL);
    files[BAD].limits.text_bytes_max = 5;
    qr_reader_convert_several(reader, files, SEVERAL);
    QR_CHECK(files[BAD].is_answered);
    QR_CHECK_INT(QR_CODE_LIMIT_EXCEEDED, files[BAD].err.code);
    files[BAD].is_answered = false;
    QR_CHECK_INT(SEVERAL - 1, check_answers());
    close_reader(reader);
}

QR_TEST(each_of_several_has_its_own_limit_of_memory) /* ISOL-3 */
{
    struct qr_reader *reader = open_reader(1);
    struct qr_buf page = {0}; /* whose tree takes many times as much */
    while (page.len < 40 << 10) {
        qr_buf_add_text(&page, "<p id=a><b>");
    }
    convert_several(reader, NULL, NULL);
    for (int i = BAD; i <= BAD + 1; i++) {
        files[i].bytes = qr_buf_str(&page);
        files[i].name = "a.html";
        files[i].limits.memory_bytes_max = i == BAD ? 2 << 20 : 128 << 20;
    }
    qr_reader_convert_several(reader, files, SEVERAL);
    QR_CHECK(files[BAD].is_answered && files[BAD + 1].is_answered);
    QR_CHECK_INT(QR_CODE_LIMIT_EXCEEDED, files[BAD].err.code);
    QR_CHECK_RC(QR_OK, files[BAD + 1].rc);
    files[BAD].is_answered = files[BAD + 1].is_answered = false;
    QR_CHECK_INT(SEVERAL - 2, check_answers());
    qr_buf_done(&page);
    close_reader(reader);
}

QR_TEST(what_a_helper_says_unasked_is_no_answer_to_another) /* ISOL-4 */
{
    struct qr_reader *reader = open_reader(1);
    convert_several(reader, "reader.chat", NULL);
    QR_CHECK(check_answers() >= BAD);
    QR_CHECK(!files[BAD + 1].is_answered);
    check_works(reader);
    QR_CHECK_INT(0, stats_of(reader).faults);
    close_reader(reader);
}

QR_TEST(a_large_one_among_several_is_left_and_the_others_are_not)
{
    struct qr_reader *reader = open_reader(1);
    enum { SIZE = 200 << 10 };
    char *text = qr_alloc(SIZE);
    QR_CHECK(text);
    memset(text, 'a', SIZE);
    convert_several(reader, NULL, NULL);
    files[BAD].bytes = (qr_str){text, SIZE};
    qr_reader_convert_several(reader, files, SEVERAL);
    QR_CHECK(!files[BAD].is_answered);
    QR_CHECK_INT(SEVERAL - 1, check_answers());
    qr_free(text);
    close_reader(reader);
}

QR_TEST(several_that_fill_all_buffers_go_through)
{
    struct qr_reader *reader = open_reader(1);
    enum { SIZE = 60 << 10, COUNT = 32 };
    char *text = qr_alloc(SIZE);
    QR_CHECK(text);
    for (size_t i = 0; i < SIZE; i++) {
        text[i] = i % 64 == 63 ? '\n' : (char)('a' + i % 23);
    }
    for (size_t i = 0; i < COUNT; i++) {
        files[i] = (struct qr_reader_file){.bytes = {text + i, SIZE - i}, .name = NULL, .arena = &arena};
    }
    qr_reader_convert_several(reader, files, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        QR_CHECK(files[i].is_answered && files[i].rc == QR_OK);
        QR_CHECK(qr_str_equal(files[i].bytes, files[i].converted.text));
    }
    qr_free(text);
    close_reader(reader);
}

QR_TEST(several_for_a_program_that_is_none_have_no_answer) /* ISOL-6 */
{
    struct qr_reader *reader;
    QR_CHECK_RC(QR_OK, qr_reader_open(&reader, &(struct qr_reader_options){.program = "/bin/true"}, &err));
    convert_several(reader, NULL, NULL);
    QR_CHECK_INT(0, check_answers());
    close_reader(reader);
}

/* ---- no more and no larger than useful ---- */

QR_TEST(a_helper_that_nobody_needs_is_ended) /* H4 */
{
    struct qr_reader *reader;
    QR_CHECK_RC(QR_OK, qr_reader_open(&reader, &(struct qr_reader_options){.program = PROGRAM, .idle_ms = 1}, &err));
    check_works(reader);
    while (stats_of(reader).running) {
        sched_yield();
    }
    pid_t pid;
    QR_CHECK_INT(0, find_helpers(&pid, 1));
    check_works(reader);
    QR_CHECK_INT(0, stats_of(reader).faults);
    close_reader(reader);
}

static size_t resident_bytes(pid_t pid)
{
    char path[64];
    size_t all, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *statm = fopen(path, "r");
    QR_CHECK(statm && fscanf(statm, "%zu %zu", &all, &resident) == 2);
    fclose(statm);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

QR_TEST(a_large_page_leaves_no_large_helper) /* H1 */
{
    struct qr_reader *reader = open_reader(1);
    struct qr_buf page = {0};
    pid_t pid;
    check_works(reader);
    QR_CHECK_INT(1, find_helpers(&pid, 1));
    const size_t before_bytes = resident_bytes(pid);
    while (page.len < 2 << 20) {
        qr_buf_add_text(&page, "<p id=a>some <b>words</b></p>\n");
    }
    QR_CHECK_RC(QR_OK, qr_reader_convert(reader, qr_buf_str(&page), "a.html", NULL, &arena, &converted, &err));
    QR_CHECK(converted.text.len > 1 << 19);
    qr_buf_done(&page);
    check_works(reader);
    QR_CHECK_INT(1, find_helpers(&pid, 1));
    QR_CHECK(resident_bytes(pid) < before_bytes + (40 << 20));
    close_reader(reader);
}

/* ---- many at once ---- */

enum { THREADS = 4, ROUNDS = 60 };

struct crowd {
    struct qr_reader *reader;
    _Atomic int crashed, bad;
};

static void *work_in_crowd(void *arg)
{
    struct crowd *crowd = arg;
    struct qr_arena own;
    qr_arena_init(&own, 0);
    for (int i = 0; i < ROUNDS; i++) {
        char text[64];
        struct qr_converted answer;
        qr_err failure = {0};
        const bool is_bad = i % 10 == 9;
        snprintf(text, sizeof text, "%s %p %d\n", is_bad ? "reader.crash" : "fine", (void *)&own, i);
        const qr_rc rc = qr_reader_convert(crowd->reader, qr_str_of(text), "a.txt", NULL, &own, &answer, &failure);
        if (is_bad) {
            crowd->crashed += rc != QR_OK && failure.code == QR_CODE_CRASHED_WORKER;
        } else {
            crowd->bad += rc != QR_OK || !qr_str_equal(answer.text, qr_str_of(text));
        }
        qr_arena_reset(&own);
    }
    qr_arena_done(&own);
    return NULL;
}

static void run_crowd(int count_max)
{
    struct crowd crowd = {.reader = open_reader(count_max)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        QR_CHECK_RC(QR_OK, qr_thread_start(&threads[i], "crowd", work_in_crowd, &crowd, &err));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    QR_CHECK_INT(0, crowd.bad);
    QR_CHECK_INT(THREADS * ROUNDS / 10, crowd.crashed);
    QR_CHECK_INT(THREADS * ROUNDS / 10, stats_of(crowd.reader).faults);
    QR_CHECK(stats_of(crowd.reader).running <= QR_MIN(count_max, (int)sysconf(_SC_NPROCESSORS_ONLN)));
    close_reader(crowd.reader);
}

QR_TEST_WITH_TIMEOUT(threads_share_the_helpers_and_none_gets_anothers_text, 120) /* H1, H2 */
{
    run_crowd(2);
    run_crowd(THREADS);
}

QR_TEST_WITH_TIMEOUT(helpers_live_on_when_the_thread_that_asked_for_them_ends, 120) /* H4 */
{
    struct crowd crowd = {.reader = open_reader(1)};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        QR_CHECK_RC(QR_OK, qr_thread_start(&thread, "crowd", work_in_crowd, &crowd, &err));
        pthread_join(thread, NULL);
    }
    QR_CHECK_INT(0, crowd.bad);
    QR_CHECK_INT(3 * ROUNDS / 10, stats_of(crowd.reader).faults);
    close_reader(crowd.reader);
}

QR_TEST(files_and_processes_are_not_left_behind) /* H4 */
{
    struct qr_reader *reader = open_reader(1);
    check_works(reader);
    const int before = count_files();
    for (int i = 0; i < 20; i++) {
        QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, convert(reader, "reader.crash"));
        check_works(reader);
    }
    QR_CHECK_INT(before, count_files());
    QR_CHECK_INT(1, stats_of(reader).running);
    pid_t pids[4];
    QR_CHECK_INT(1, find_helpers(pids, 4));
    close_reader(reader);
}

QR_TEST(helpers_die_with_the_process) /* ISOL-7, H4 */
{
    int ends[2];
    pid_t helper = 0;
    QR_CHECK_INT(0, pipe(ends));
    const pid_t process = fork();
    if (process == 0) {
        struct qr_reader *reader = open_reader(1);
        check_works(reader);
        if (find_helpers(&helper, 1) == 1 && write(ends[1], &helper, sizeof helper) > 0) {
            const struct qr_reader_limits limits = {.timeout_ms = 50000};
            (void)!convert_with(reader, QR_STR("reader.loop"), &limits); /* it is busy when we die */
        }
        _exit(1);
    }
    close(ends[1]);
    QR_CHECK_INT(sizeof helper, read(ends[0], &helper, sizeof helper));
    kill(process, SIGKILL);
    QR_CHECK_INT(process, waitpid(process, NULL, 0));
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)helper);
    for (char state = 'R'; state != 'Z';) { /* gone, or waiting for whoever takes orphans here */
        FILE *stat = fopen(path, "r");
        if (!stat) {
            break;
        }
        if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1) {
            state = 'Z';
        }
        fclose(stat);
    }
    close(ends[0]);
}
