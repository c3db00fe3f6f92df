/* Owns the list of tests and the processes they run in. */
#include "support/test.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_SKIPPED = 77, NOBODY = 65534 };

static struct qr_test *tests, **tests_end = &tests;
static void (*start_all)(void), (*finish_all)(void);
static int result_pipe = -1; /* the child writes its reason here */
static char context[128];

void qr_test_register(struct qr_test *test)
{
    *tests_end = test;
    tests_end = &test->next;
}

void qr_test_around_all(void (*start)(void), void (*finish)(void))
{
    start_all = start;
    finish_all = finish;
}

QR_PRINTF(1, 0) static void tell_reason(const char *fmt, va_list args)
{
    char reason[1024];
    const int len = vsnprintf(reason, sizeof reason - sizeof context, fmt, args);
    if (len >= 0 && context[0]) {
        const size_t used = strlen(reason);
        snprintf(reason + used, sizeof reason - used, " (%s)", context);
    }
    const ssize_t written = write(result_pipe, reason, strlen(reason));
    (void)written;
}

void qr_test_fail(const char *file, int line, const char *fmt, ...)
{
    char where[256];
    const char *short_file = strstr(file, "tests/");
    const int len = snprintf(where, sizeof where, "%s:%d: ", short_file ? short_file : file, line);
    if (len > 0) {
        const ssize_t written = write(result_pipe, where, (size_t)len);
        (void)written;
    }
    va_list args;
    va_start(args, fmt);
    tell_reason(fmt, args);
    va_end(args);
    _exit(EXIT_FAILED); /* other threads may run on: no destructors */
}

void qr_test_skip(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tell_reason(fmt, args);
    va_end(args);
    _exit(EXIT_SKIPPED);
}

void qr_test_set_context(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(context, sizeof context, fmt, args);
    va_end(args);
}

void qr_test_check_str(const char *file, int line, const char *what, qr_str expected, qr_str actual)
{
    if (!qr_str_equal(expected, actual)) {
        qr_test_fail(file, line, "%s is \"%.*s\", not \"%.*s\"", what, QR_STR_ARG(actual), QR_STR_ARG(expected));
    }
}

const char *qr_test_path(struct qr_test *t, const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % QR_COUNT(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", t->dir, name);
    return path;
}

static int64_t test_wall_ms, test_mono_ms;

static int64_t read_test_wall(const struct qr_clock *clock QR_UNUSED)
{
    return __atomic_load_n(&test_wall_ms, __ATOMIC_SEQ_CST);
}

static int64_t read_test_mono(const struct qr_clock *clock QR_UNUSED)
{
    return __atomic_load_n(&test_mono_ms, __ATOMIC_SEQ_CST);
}

const struct qr_clock *qr_test_clock(int64_t wall_ms)
{
    static const struct qr_clock clock = {read_test_wall, read_test_mono};
    __atomic_store_n(&test_wall_ms, wall_ms, __ATOMIC_SEQ_CST);
    return &clock;
}

void qr_test_clock_advance(int64_t ms)
{
    __atomic_add_fetch(&test_wall_ms, ms, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&test_mono_ms, ms, __ATOMIC_SEQ_CST);
}

void qr_test_clock_jump(int64_t ms)
{
    __atomic_add_fetch(&test_wall_ms, ms, __ATOMIC_SEQ_CST);
}

void qr_test_become_unprivileged(void)
{
    if (geteuid() == 0 &&
        (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))) {
        QR_FAIL("cannot become an unprivileged user: %s", strerror(errno));
    }
}

static int remove_entry(const char *path, const struct stat *st QR_UNUSED, int type QR_UNUSED,
                        struct FTW *ftw QR_UNUSED)
{
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

static void make_dir(struct qr_test *t)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(t->dir, sizeof t->dir, "%s/qt-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(t->dir)) {
        perror(t->dir);
        exit(2);
    }
    chmod(t->dir, 0777); /* tests that give up root still own their folder */
}

QR_NORETURN static void run_child(struct qr_test *t)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    t->fn(t);
    fflush(NULL);
    exit(0); /* with destructors: the leak checker runs here */
}

/* Waits for the child; kills its whole group at the time limit. */
static int wait_child(pid_t child, unsigned timeout_s)
{
    for (unsigned long waited_ms = 0;; waited_ms++) {
        int status;
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) {
            return status;
        }
        if (waited_ms >= timeout_s * 1000UL) {
            kill(-child, SIGKILL);
            waitpid(child, &status, 0);
            return -1;
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

/* 0 passed, 1 failed, 2 skipped */
static int run_one(struct qr_test *t, const char *suite)
{
    make_dir(t);
    int fds[2];
    if (pipe(fds)) {
        perror("pipe");
        exit(2);
    }
    fflush(NULL);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        close(fds[0]);
        fcntl(fds[1], F_SETFD, FD_CLOEXEC);
        result_pipe = fds[1];
        run_child(t);
    }
    close(fds[1]);
    /* make test-long repeats ten times as much */
    const unsigned patience = getenv("QUIRE_TEST_LONG") ? 20 : 1;
    const unsigned timeout_s = (t->timeout_s ? t->timeout_s : QR_TEST_TIMEOUT_S) * patience;
    const int status = wait_child(child, timeout_s);
    kill(-child, SIGKILL); /* what the test left running */
    clock_gettime(CLOCK_MONOTONIC, &ended);
    char reason[2048] = "";
    const ssize_t len = read(fds[0], reason, sizeof reason - 1);
    reason[len > 0 ? len : 0] = '\0';
    close(fds[0]);
    nftw(t->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

    const long ms = (ended.tv_sec - began.tv_sec) * 1000 + (ended.tv_nsec - began.tv_nsec) / 1000000;
    if (status == 0) {
        printf("ok   %s.%s (%ld ms)\n", suite, t->name, ms);
        return 0;
    }
    if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED) {
        printf("skip %s.%s: %s\n", suite, t->name, reason);
        return 2;
    }
    if (status == -1) {
        snprintf(reason, sizeof reason, "still running after %u s", timeout_s);
    } else if (WIFSIGNALED(status)) {
        snprintf(reason, sizeof reason, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (!reason[0]) {
        snprintf(reason, sizeof reason, "exit status %d: see the output above", WEXITSTATUS(status));
    }
    printf("FAIL %s.%s: %s\n", suite, t->name, reason);
    return 1;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *suite = slash ? slash + 1 : argv[0];
    const char *filter = argc > 1 ? argv[1] : "";
    if (strcmp(filter, "--list") == 0) {
        for (struct qr_test *t = tests; t; t = t->next) {
            printf("%s.%s\n", suite, t->name);
        }
        return 0;
    }
    int counts[3] = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (start_all) {
        start_all();
    }
    for (struct qr_test *t = tests; t; t = t->next) {
        if (strstr(t->name, filter)) {
            counts[run_one(t, suite)]++;
        }
    }
    if (finish_all) {
        finish_all();
    }
    printf("%d passed, %d failed, %d skipped\n", counts[0], counts[1], counts[2]);
    return counts[1] ? 1 : 0;
}
