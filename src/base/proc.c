/* Child processes. A run is: pipes, fork, exec in the child (only async-signal-safe calls between: other threads may
 * have held any lock at the fork), one poll loop in the parent, the end of the whole group, waitpid.
 *
 * P1  Once fork has succeeded, every way out kills the group and reaps the child.
 * P2  The group is killed before the child is reaped: until then its number cannot belong to anybody else.
 * P3  Every file made here is close-on-exec from birth, so a child that another thread starts meanwhile keeps none. */
#include "base/proc.h"

#include "base/mem.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 16 * 1024,
    ERRORS_BYTES_MAX = 8 * 1024, /* of standard error; the rest is read and thrown away */
    DRAIN_READS_MAX = 4096,      /* after the end; a process that left the group might write for ever */
    EXIT_NOT_STARTED = 127,
};

/* What the child tells through the report pipe when it cannot become the program. */
enum step { STEP_FILES, STEP_DIR, STEP_EXEC };
struct report {
    enum step step;
    int errnum;
};

struct run {
    const struct qr_proc_options *options;
    struct qr_buf *out, *errors;
    char *program;
    int64_t deadline_us; /* INT64_MAX = none */
    pid_t pid;           /* 0 = not forked yet, or reaped */
    int pid_fd;
    int child_fds[3];                              /* what becomes 0, 1 and 2 */
    int input_fd, output_fd, errors_fd, report_fd; /* the parent's ends; -1 = closed */
    int child_report_fd;
    size_t input_sent, output_bytes, errors_bytes;
};

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* ---- before the fork ---- */

/* Leaves 0–2 alone, where the parent has them closed: they are about to be overwritten in the child. */
static int above_standard(int fd)
{
    if (fd < 0 || fd > 2) {
        return fd;
    }
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return moved;
}

static qr_rc open_pipe(int *ret_read_fd, int *ret_write_fd, qr_err *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC)) {
        return qr_fail_errno(err, errno, "cannot make a pipe");
    }
    *ret_read_fd = above_standard(fds[0]);
    *ret_write_fd = above_standard(fds[1]);
    if (*ret_read_fd < 0 || *ret_write_fd < 0) {
        return qr_fail_errno(err, errno, "cannot make a pipe");
    }
    return QR_OK;
}

static qr_rc open_null(int flags, int *ret_fd, qr_err *err)
{
    *ret_fd = above_standard(open("/dev/null", flags | O_CLOEXEC));
    return *ret_fd < 0 ? qr_fail_errno(err, errno, "cannot open /dev/null") : QR_OK;
}

static qr_rc open_streams(struct run *run, qr_err *err)
{
    QR_TRY(run->options->input.len ? open_pipe(&run->child_fds[0], &run->input_fd, err)
                                   : open_null(O_RDONLY, &run->child_fds[0], err));
    QR_TRY(run->out ? open_pipe(&run->output_fd, &run->child_fds[1], err)
                    : open_null(O_WRONLY, &run->child_fds[1], err));
    QR_TRY(run->errors ? open_pipe(&run->errors_fd, &run->child_fds[2], err)
                       : open_null(O_WRONLY, &run->child_fds[2], err));
    QR_TRY(open_pipe(&run->report_fd, &run->child_report_fd, err));
    /* only our ends: the child's stay as programs expect them */
    const int ours[] = {run->input_fd, run->output_fd, run->errors_fd, run->report_fd};
    for (size_t i = 0; i < QR_COUNT(ours); i++) {
        if (ours[i] >= 0 && fcntl(ours[i], F_SETFL, O_NONBLOCK)) {
            return qr_fail_errno(err, errno, "cannot set up a pipe");
        }
    }
    return QR_OK;
}

static qr_rc fail_start(const char *name, int errnum, qr_err *err)
{
    return qr_fail_errno(err, errnum, "cannot start %s", name);
}

/* Looks the program up here, since execvp may allocate and the child may not. */
static qr_rc find_program(const char *name, char **ret_path, qr_err *err)
{
    if (strchr(name, '/')) {
        *ret_path = qr_copy_string(name);
        return *ret_path ? QR_OK : fail_start(name, ENOMEM, err);
    }
    int failed = ENOENT;
    const char *path = getenv("PATH");
    qr_str rest = qr_str_of(path ? path : "/usr/local/bin:/usr/bin:/bin");
    while (rest.len) {
        const qr_str folder = qr_str_split(&rest, ':');
        if (folder.len == 0) {
            continue; /* would be the current folder: never meant */
        }
        struct qr_buf candidate;
        qr_buf_init(&candidate, 0);
        qr_buf_add(&candidate, folder);
        qr_buf_add_char(&candidate, '/');
        qr_buf_add_text(&candidate, name);
        char *found = qr_buf_take(&candidate, NULL);
        qr_buf_done(&candidate);
        struct stat st;
        if (!found) {
            return fail_start(name, ENOMEM, err);
        }
        if (stat(found, &st) == 0 && S_ISREG(st.st_mode)) {
            if (access(found, X_OK) == 0) {
                *ret_path = found;
                return QR_OK;
            }
            failed = EACCES;
        }
        qr_free(found);
    }
    return fail_start(name, failed, err);
}

/* ---- the child ---- */

QR_NORETURN static void give_up(const struct run *run, enum step step)
{
    const struct report report = {step, errno};
    const ssize_t written = write(run->child_report_fd, &report, sizeof report);
    (void)written;
    _exit(EXIT_NOT_STARTED);
}

/* By mark, not by closing: the report pipe must live until the exec. */
static void close_others_on_exec(int fd_limit)
{
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
        return;
    }
    for (int fd = 3; fd < fd_limit; fd++) { /* a kernel before 5.11 */
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
}

QR_NORETURN static void become_program(const struct run *run, pid_t parent, int fd_limit)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_NOT_STARTED); /* it died before we asked to follow it */
    }
    for (int number = 1; number < NSIG; number++) {
        sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL); /* ignored ones would stay ignored */
    }
    for (int fd = 0; fd < 3; fd++) {
        if (dup2(run->child_fds[fd], fd) < 0) {
            give_up(run, STEP_FILES);
        }
    }
    close_others_on_exec(fd_limit);
    if (run->options->dir && chdir(run->options->dir)) {
        give_up(run, STEP_DIR);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(run->program, (char *const *)run->options->argv,
           run->options->env ? (char *const *)run->options->env : environ);
    give_up(run, STEP_EXEC);
}

static qr_rc start(struct run *run, qr_err *err)
{
    struct rlimit files;
    const int fd_limit = getrlimit(RLIMIT_NOFILE, &files) == 0 ? (int)QR_MIN(files.rlim_cur, (rlim_t)1 << 20) : 1024;
    const pid_t parent = getpid();
    /* a handler of the parent's must not run in the child: it would act on the parent's behalf */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid == 0) {
        become_program(run, parent, fd_limit);
    }
    const int failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        return fail_start(run->options->argv[0], failed, err);
    }
    run->pid = pid;
    setpgid(pid, pid); /* here too: whoever comes first, the group exists before we might kill it */
    for (int i = 0; i < 3; i++) {
        close_fd(&run->child_fds[i]);
    }
    close_fd(&run->child_report_fd);
    run->pid_fd = pidfd_open(pid, 0);
    if (run->pid_fd < 0) {
        return qr_fail_errno(err, errno, "cannot watch %s", run->options->argv[0]);
    }
    return QR_OK;
}

/* ---- the parent's loop ---- */

static qr_rc send_input(struct run *run, qr_err *err)
{
    const qr_str input = run->options->input;
    const ssize_t written = write(run->input_fd, input.ptr + run->input_sent, input.len - run->input_sent);
    if (written >= 0) {
        run->input_sent += (size_t)written;
        if (run->input_sent == input.len) {
            close_fd(&run->input_fd);
        }
        return QR_OK;
    }
    if (errno == EPIPE) { /* it does not want the rest */
        close_fd(&run->input_fd);
        return QR_OK;
    }
    if (errno == EAGAIN || errno == EINTR) {
        return QR_OK;
    }
    return qr_fail_errno(err, errno, "cannot write to %s", run->options->argv[0]);
}

/* Reads what is there now; closes at the end. *ret_len is 0 when there is nothing. */
static qr_rc read_stream(struct run *run, int *fd, char chunk[static CHUNK_BYTES], size_t *ret_len, qr_err *err)
{
    *ret_len = 0;
    const ssize_t got = read(*fd, chunk, CHUNK_BYTES);
    if (got > 0) {
        *ret_len = (size_t)got;
    } else if (got == 0) {
        close_fd(fd);
    } else if (errno != EAGAIN && errno != EINTR) {
        return qr_fail_errno(err, errno, "cannot read from %s", run->options->argv[0]);
    }
    return QR_OK;
}

static qr_rc take_output(struct run *run, size_t *ret_len, qr_err *err)
{
    char chunk[CHUNK_BYTES];
    QR_TRY(read_stream(run, &run->output_fd, chunk, ret_len, err));
    const size_t room = run->options->output_bytes_max - run->output_bytes;
    const size_t kept = QR_MIN(*ret_len, room);
    qr_buf_add(run->out, (qr_str){chunk, kept});
    run->output_bytes += kept;
    if (kept < *ret_len) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "%s writes more than %zu bytes", run->options->argv[0],
                       run->options->output_bytes_max);
    }
    return qr_buf_check(run->out, err);
}

static qr_rc take_errors(struct run *run, size_t *ret_len, qr_err *err)
{
    char chunk[CHUNK_BYTES];
    QR_TRY(read_stream(run, &run->errors_fd, chunk, ret_len, err));
    const size_t kept = QR_MIN(*ret_len, ERRORS_BYTES_MAX - run->errors_bytes);
    qr_buf_add(run->errors, (qr_str){chunk, kept});
    run->errors_bytes += kept;
    return qr_buf_check(run->errors, err);
}

/* How long poll may wait: -1 = for ever, 0 = the deadline has passed. Rounded up, so that it never spins. */
static int poll_timeout_ms(const struct run *run)
{
    if (run->deadline_us == INT64_MAX) {
        return -1;
    }
    const int64_t left_us = run->deadline_us - qr_thread_mono_us();
    return left_us <= 0 ? 0 : (int)QR_MIN((left_us + 999) / 1000, (int64_t)60000);
}

/* Moves bytes until the child has ended. */
static qr_rc pump(struct run *run, qr_err *err)
{
    for (;;) {
        const int timeout_ms = poll_timeout_ms(run);
        if (timeout_ms == 0) {
            return qr_fail(err, QR_CODE_TIMEOUT, "%s was still running after %lld ms", run->options->argv[0],
                           (long long)run->options->timeout_ms);
        }
        struct pollfd fds[] = {
            {.fd = run->pid_fd, .events = POLLIN},
            {.fd = run->input_fd, .events = POLLOUT},
            {.fd = run->output_fd, .events = POLLIN},
            {.fd = run->errors_fd, .events = POLLIN},
        };
        if (poll(fds, QR_COUNT(fds), timeout_ms) < 0 && errno != EINTR) {
            return qr_fail_errno(err, errno, "cannot wait for %s", run->options->argv[0]);
        }
        size_t len;
        if (fds[1].revents) {
            QR_TRY(send_input(run, err));
        }
        if (fds[2].revents) {
            QR_TRY(take_output(run, &len, err));
        }
        if (fds[3].revents) {
            QR_TRY(take_errors(run, &len, err));
        }
        if (fds[0].revents) {
            return QR_OK;
        }
    }
}

/* What is still in the pipes. Not to their end: a process that left the group may hold them open. */
static qr_rc drain(struct run *run, qr_err *err)
{
    size_t len = 1;
    for (int reads = 0; len && run->output_fd >= 0 && reads < DRAIN_READS_MAX; reads++) {
        QR_TRY(take_output(run, &len, err));
    }
    len = 1;
    for (int reads = 0; len && run->errors_fd >= 0 && reads < DRAIN_READS_MAX; reads++) {
        QR_TRY(take_errors(run, &len, err));
    }
    return QR_OK;
}

/* ---- the end ---- */

static void kill_group(const struct run *run)
{
    kill(-run->pid, SIGKILL);
    kill(run->pid, SIGKILL); /* should both calls of setpgid have failed */
}

static qr_rc reap(struct run *run, struct qr_proc_result *ret_result, qr_err *err)
{
    int status;
    const pid_t reaped = (pid_t)TEMP_FAILURE_RETRY(waitpid(run->pid, &status, 0));
    run->pid = 0;
    if (reaped < 0) {
        return qr_fail(err, QR_CODE_INTERNAL, "somebody else has waited for %s", run->options->argv[0]);
    }
    *ret_result = WIFEXITED(status) ? (struct qr_proc_result){WEXITSTATUS(status), 0}
                                    : (struct qr_proc_result){-1, WTERMSIG(status)};
    return QR_OK;
}

static qr_rc check_report(const struct run *run, qr_err *err)
{
    struct report report;
    const ssize_t got = TEMP_FAILURE_RETRY(read(run->report_fd, &report, sizeof report));
    if (got != (ssize_t)sizeof report) {
        return QR_OK; /* the exec has closed it unwritten */
    }
    const char *name = run->options->argv[0];
    switch (report.step) {
    case STEP_DIR:
        return qr_fail_errno(err, report.errnum, "cannot start %s in folder %s", name, run->options->dir);
    case STEP_FILES:
    case STEP_EXEC:
        break;
    }
    return fail_start(name, report.errnum, err);
}

static qr_rc run_started(struct run *run, struct qr_proc_result *ret_result, qr_err *err)
{
    QR_TRY(pump(run, err));
    kill_group(run); /* P2 */
    QR_TRY(drain(run, err));
    QR_TRY(check_report(run, err));
    return reap(run, ret_result, err);
}

static void run_done(struct run *run)
{
    if (run->pid) { /* P1 */
        struct qr_proc_result ignored;
        kill_group(run);
        (void)reap(run, &ignored, NULL);
    }
    int *const fds[] = {&run->child_fds[0],    &run->child_fds[1], &run->child_fds[2],
                        &run->child_report_fd, &run->input_fd,     &run->output_fd,
                        &run->errors_fd,       &run->report_fd,    &run->pid_fd};
    for (size_t i = 0; i < QR_COUNT(fds); i++) {
        close_fd(fds[i]);
    }
    qr_free(run->program);
}

static qr_rc run_program(struct run *run, struct qr_proc_result *ret_result, qr_err *err)
{
    QR_TRY(find_program(run->options->argv[0], &run->program, err));
    QR_TRY(open_streams(run, err));
    QR_TRY(start(run, err));
    return run_started(run, ret_result, err);
}

static int64_t deadline_after_ms(int64_t timeout_ms)
{
    int64_t timeout_us, deadline_us;
    if (timeout_ms <= 0 || QR_MUL_OVERFLOWS(timeout_ms, (int64_t)1000, &timeout_us) ||
        QR_ADD_OVERFLOWS(qr_thread_mono_us(), timeout_us, &deadline_us)) {
        return INT64_MAX;
    }
    return deadline_us;
}

qr_rc qr_proc_run(const struct qr_proc_options *options, struct qr_buf *out, struct qr_buf *errors,
                  struct qr_proc_result *ret_result, qr_err *err)
{
    struct run run = {
        .options = options,
        .out = out,
        .errors = errors,
        .deadline_us = deadline_after_ms(options->timeout_ms),
        .pid_fd = -1,
        .child_fds = {-1, -1, -1},
        .input_fd = -1,
        .output_fd = -1,
        .errors_fd = -1,
        .report_fd = -1,
        .child_report_fd = -1,
    };
    /* A child that does not read its input is no reason for SIGPIPE to end us. A pipe has no MSG_NOSIGNAL, and a socket
     * in its place breaks programs that open /dev/stdin: so the signal is held back here and taken off again. */
    sigset_t pipe_signal, before, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    const qr_rc rc = run_program(&run, ret_result, err);
    run_done(&run);
    if (!sigismember(&pending, SIGPIPE)) {
        (void)TEMP_FAILURE_RETRY(sigtimedwait(&pipe_signal, NULL, &(struct timespec){0}));
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
