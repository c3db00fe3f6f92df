/* Helper processes. posix_spawn, never fork: other threads may hold any lock. The helper inherits nothing but its end of a
 * socket, as standard input; the two other standard files are /dev/null.
 *
 * All waiting is a blocking call on the socket with a short time limit, after which the deadline and the wish to cancel are
 * looked at: one system call where nothing goes wrong. Deadlines are on the real clock, as the helper's work is. */
#include "convert/reader_child.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/thread.h"
#include "convert/reader_wire.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SLICE_US = 100 * 1000,  /* how often a wait looks up */
    GREET_MS_MAX = 20000,   /* on a machine that does much else */
    FAREWELL_MS_MAX = 1000, /* from the end of its socket to the end of the process */
    GROWN_BYTES_MAX = 32 << 20,
    TOGETHER_MS_MAX = 1000, /* without any answer; far longer than a small file takes */
    INBOX_BYTES = 64 << 10,
};

/* What came together with something before it. */
struct inbox {
    size_t start, end;
    char bytes[INBOX_BYTES];
};

/* Until when, and for whom. */
struct wait {
    int64_t deadline_us;
    const struct qr_reader_limits *limits; /* NULL = until the deadline only */
};

/* ---- starting ---- */

static qr_rc fail_start(const char *program, int errnum, qr_err *err)
{
    return qr_fail(err, QR_CODE_UNAVAILABLE, "cannot start %s: %s", program, strerrordesc_np(errnum));
}

static int set_up(posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes, int socket)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int failed = posix_spawn_file_actions_adddup2(files, socket, STDIN_FILENO);
    failed = failed ? failed : posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    failed = failed ? failed : posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    failed = failed ? failed : posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
    failed = failed ? failed : posix_spawnattr_setsigdefault(attributes, &all);
    failed = failed ? failed : posix_spawnattr_setsigmask(attributes, &none);
    failed = failed ? failed : posix_spawnattr_setpgroup(attributes, 0); /* a Ctrl-C is not for it */
    return failed ? failed
                  : posix_spawnattr_setflags(attributes,
                                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
}

static int spawn(const char *program, char *const *env, int socket, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char own_pid[16];
    snprintf(own_pid, sizeof own_pid, "%d", (int)getpid());
    char name[] = QR_READER_PROGRAM, serve[] = "--serve";
    char *const argv[] = {name, serve, own_pid, NULL};
    int failed = posix_spawn_file_actions_init(&files);
    if (failed) {
        return failed;
    }
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = set_up(&files, &attributes, socket);
        failed = failed ? failed : posix_spawn(ret_pid, program, &files, &attributes, argv, env);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

static int set_slice(int socket)
{
    const struct timeval slice = {.tv_usec = SLICE_US};
    return setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice) ||
           setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof slice);
}

qr_rc qr_child_start(struct qr_child *child, const char *program, char *const *env, qr_err *err)
{
    int ends[2];
    *child = (struct qr_child){.program = program, .pid_fd = -1, .socket = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        return fail_start(program, errno, err);
    }
    child->socket = ends[0];
    int failed = set_slice(child->socket) ? errno : spawn(program, env, ends[1], &child->pid);
    close(ends[1]);
    if (!failed) {
        child->pid_fd = pidfd_open(child->pid, 0);
        failed = child->pid_fd < 0 ? errno : clock_getcpuclockid(child->pid, &child->cpu_clock);
    }
    if (failed) {
        qr_child_end(child);
        return fail_start(program, failed, err);
    }
    return QR_OK;
}

/* ---- the end ---- */

/* In *status as waitpid has it; false when somebody else has reaped it. */
static bool reap(struct qr_child *child, int *ret_status)
{
    const pid_t pid = child->pid;
    child->pid = 0;
    if (child->pid_fd >= 0) {
        pidfd_send_signal(child->pid_fd, SIGKILL, NULL, 0);
    } else {
        kill(pid, SIGKILL);
    }
    return TEMP_FAILURE_RETRY(waitpid(pid, ret_status, 0)) == pid;
}

static void close_files(struct qr_child *child)
{
    if (child->pid_fd >= 0) {
        close(child->pid_fd);
    }
    if (child->socket >= 0) {
        close(child->socket);
    }
    child->pid_fd = child->socket = -1;
}

void qr_child_end(struct qr_child *child)
{
    int status;
    if (child->pid) {
        (void)reap(child, &status);
    }
    close_files(child);
}

/* Of another program than ours, which the settings may name. */
static const char *name_of(const struct qr_child *child)
{
    const char *slash = strrchr(child->program, '/');
    return slash ? slash + 1 : child->program;
}

/* It closed its socket: waits until it has ended by itself, to learn how. */
static qr_rc explain_end(struct qr_child *child, qr_err *err)
{
    const char *when = child->is_ready ? "while it read this" : "before it was ready";
    int status = 0;
    struct pollfd end = {.fd = child->pid_fd, .events = POLLIN};
    (void)TEMP_FAILURE_RETRY(poll(&end, 1, FAREWELL_MS_MAX));
    const bool is_known = reap(child, &status);
    close_files(child);
    if (is_known && WIFEXITED(status) && WEXITSTATUS(status) == QR_READER_EXIT_MEMORY) {
        return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "reading it takes more memory than a file may have");
    }
    if (is_known && WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
        return qr_fail(err, QR_CODE_TIMEOUT, "reading it took longer than a file may take");
    }
    if (is_known && WIFSIGNALED(status)) {
        return qr_fail(err, QR_CODE_CRASHED_WORKER, "%s died %s: %s", name_of(child), when,
                       sigdescr_np(WTERMSIG(status)));
    }
    return qr_fail(err, QR_CODE_CRASHED_WORKER, "%s ended %s, with %d", name_of(child), when,
                   is_known ? WEXITSTATUS(status) : -1);
}

/* ---- the socket ---- */

static qr_rc look_up(const struct wait *wait, qr_err *err)
{
    const struct qr_reader_limits *limits = wait->limits;
    if (!limits && qr_thread_mono_us() >= wait->deadline_us) {
        return qr_fail(err, QR_CODE_TIMEOUT, "it was not ready after %d s", GREET_MS_MAX / 1000);
    }
    if (limits && limits->is_cancelled && limits->is_cancelled(limits->arg)) {
        return qr_fail(err, QR_CODE_CANCELLED, "reading it was cancelled");
    }
    if (limits && qr_thread_mono_us() >= wait->deadline_us) {
        return qr_fail(err, QR_CODE_TIMEOUT, "reading it took longer than %lld ms", (long long)limits->timeout_ms);
    }
    return QR_OK;
}

static bool is_passing(int errnum)
{
    return errnum == EAGAIN || errnum == EINTR;
}

/* Takes `len` bytes off the parts. */
static void skip_sent(struct msghdr *message, size_t len)
{
    while (message->msg_iovlen && len >= message->msg_iov->iov_len) { /* an empty part goes too */
        len -= message->msg_iov->iov_len;
        message->msg_iov++;
        message->msg_iovlen--;
    }
    if (message->msg_iovlen) {
        message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + len;
        message->msg_iov->iov_len -= len;
    }
}

static qr_rc send_parts(struct qr_child *child, struct iovec *parts, size_t count, const struct wait *wait, qr_err *err)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    while (message.msg_iovlen) {
        const ssize_t sent = sendmsg(child->socket, &message, MSG_NOSIGNAL);
        if (sent < 0 && !is_passing(errno)) {
            return explain_end(child, err);
        }
        skip_sent(&message, sent > 0 ? (size_t)sent : 0);
        if (message.msg_iovlen) {
            QR_TRY(look_up(wait, err));
        }
    }
    return QR_OK;
}

/* As recv, by way of the inbox where there is one. */
static ssize_t receive_some(const struct qr_child *child, struct inbox *inbox, char *to, size_t len)
{
    if (!inbox) {
        return recv(child->socket, to, len, 0);
    }
    if (inbox->start == inbox->end) {
        const ssize_t got = recv(child->socket, inbox->bytes, sizeof inbox->bytes, 0);
        if (got <= 0) {
            return got;
        }
        inbox->start = 0;
        inbox->end = (size_t)got;
    }
    len = QR_MIN(len, inbox->end - inbox->start);
    memcpy(to, inbox->bytes + inbox->start, len);
    inbox->start += len;
    return (ssize_t)len;
}

static qr_rc receive(struct qr_child *child, struct inbox *inbox, void *to, size_t len, const struct wait *wait,
                     qr_err *err)
{
    char *at = to;
    while (len) {
        const ssize_t got = receive_some(child, inbox, at, len);
        if (got == 0 || (got < 0 && !is_passing(errno))) {
            return explain_end(child, err);
        }
        at += got > 0 ? got : 0;
        len -= got > 0 ? (size_t)got : 0;
        if (len) {
            QR_TRY(look_up(wait, err));
        }
    }
    return QR_OK;
}

/* ---- ready ---- */

struct memory {
    int64_t all_pages, resident_pages;
};

/* All 0 when it cannot be told. */
static struct memory memory_of(const struct qr_child *child)
{
    char path[32];
    struct memory memory = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    snprintf(path, sizeof path, "/proc/%d/statm", (int)child->pid);
    if (qr_fs_read(qr_io_system(), path, 256, &text, NULL) == QR_OK) {
        qr_str rest = qr_buf_str(&text);
        const qr_str all = qr_str_split(&rest, ' '), resident = qr_str_split(&rest, ' ');
        (void)(qr_str_to_i64(all, &memory.all_pages) && qr_str_to_i64(resident, &memory.resident_pages));
    }
    return memory;
}

static size_t page_bytes(int64_t count)
{
    return (size_t)count * (size_t)sysconf(_SC_PAGESIZE);
}

static qr_rc check_hello(const struct qr_child *child, const struct qr_reader_hello *hello, qr_err *err)
{
    if (hello->magic != QR_READER_MAGIC || hello->protocol != QR_READER_PROTOCOL ||
        strncmp(hello->version, QUIRE_VERSION, sizeof hello->version) != 0) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "%s is not the reader of this version of Quire, " QUIRE_VERSION,
                       child->program);
    }
    return QR_OK;
}

qr_rc qr_child_greet(struct qr_child *child, qr_err *err)
{
    const struct wait wait = {qr_thread_mono_us() + GREET_MS_MAX * INT64_C(1000), NULL};
    struct qr_reader_hello hello;
    qr_err failure = {0};
    qr_rc rc = receive(child, NULL, &hello, sizeof hello, &wait, &failure);
    if (rc != QR_OK) { /* whatever it was, it was not a file's fault */
        qr_child_end(child);
        return qr_fail(err, QR_CODE_UNAVAILABLE, "cannot use %s as reader.program: %s", child->program, failure.msg);
    }
    rc = check_hello(child, &hello, err);
    if (rc != QR_OK) {
        qr_child_end(child);
        return rc;
    }
    child->is_ready = true;
    child->protections = hello.protections;
    child->landlock_abi = hello.landlock_abi;
    const struct memory memory = memory_of(child);
    child->start_bytes = page_bytes(memory.all_pages);
    child->start_resident_bytes = page_bytes(memory.resident_pages);
    return QR_OK;
}

bool qr_child_is_ready(const struct qr_child *child)
{
    char unasked;
    return recv(child->socket, &unasked, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool qr_child_has_grown(const struct qr_child *child)
{
    return page_bytes(memory_of(child).resident_pages) > child->start_resident_bytes + GROWN_BYTES_MAX;
}

/* ---- a question ---- */

/* Soft limits, set from here, so that the helper needs no right to set any; only when they change, since most files are small.
 * The processor's is cumulative, and within a second or so: it is there for the case that we die or are stopped while the
 * helper loops. */
static void set_limits(struct qr_child *child, const struct qr_reader_limits *limits)
{
    const size_t memory_bytes = child->start_bytes + limits->memory_bytes_max;
    const int64_t now_us = qr_thread_mono_us();
    struct timespec used = {0};
    if (child->start_bytes && memory_bytes != child->memory_limit_bytes) {
        (void)prlimit(child->pid, RLIMIT_AS, &(struct rlimit){memory_bytes, RLIM_INFINITY}, NULL);
        child->memory_limit_bytes = memory_bytes;
    }
    if ((now_us >= child->cpu_limit_due_us || limits->timeout_ms != child->cpu_limit_ms) &&
        clock_gettime(child->cpu_clock, &used) == 0) {
        const rlim_t seconds = (rlim_t)(used.tv_sec + limits->timeout_ms / 1000 + 3);
        (void)prlimit(child->pid, RLIMIT_CPU, &(struct rlimit){seconds, RLIM_INFINITY}, NULL);
        child->cpu_limit_due_us = now_us + 1000000;
        child->cpu_limit_ms = limits->timeout_ms;
    }
}

static struct qr_reader_request request_of(const struct qr_reader_file *file)
{
    return (struct qr_reader_request){.magic = QR_READER_MAGIC,
                                      .name_len = (uint32_t)strlen(file->name),
                                      .bytes_len = file->bytes.len,
                                      .text_bytes_max = file->limits.text_bytes_max};
}

/* All at once. sendmsg only reads them. */
static qr_rc ask(struct qr_child *child, const struct qr_reader_file *files, size_t count, const struct wait *wait,
                 qr_err *err)
{
    struct qr_reader_request requests[QR_CHILD_TOGETHER_MAX];
    struct iovec parts[3 * QR_CHILD_TOGETHER_MAX];
    assert(count <= QR_CHILD_TOGETHER_MAX);
    for (size_t i = 0; i < count; i++) {
        requests[i] = request_of(&files[i]);
        parts[3 * i] = (struct iovec){&requests[i], sizeof requests[i]};
        parts[3 * i + 1] = (struct iovec){(void *)(uintptr_t)files[i].name, requests[i].name_len};
        parts[3 * i + 2] = (struct iovec){(void *)(uintptr_t)files[i].bytes.ptr, files[i].bytes.len};
    }
    set_limits(child, wait->limits);
    return send_parts(child, parts, 3 * count, wait, err);
}

static qr_rc hear(struct qr_child *child, struct inbox *inbox, const struct qr_reader_file *file,
                  const struct wait *wait, qr_str *ret_answer, qr_err *err)
{
    const size_t text_bytes_max = file->limits.text_bytes_max;
    struct qr_reader_answer head;
    QR_TRY(receive(child, inbox, &head, sizeof head, wait, err));
    if (head.magic != QR_READER_MAGIC) {
        return qr_fail(err, QR_CODE_CRASHED_WORKER, "the answer of %s makes no sense: it is none", name_of(child));
    }
    if (head.len > qr_answer_bytes_max(text_bytes_max)) {
        return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "its text is longer than %zu bytes", text_bytes_max);
    }
    char *answer = qr_arena_alloc(file->arena, (size_t)head.len);
    if (!answer) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a text of %zu bytes", (size_t)head.len);
    }
    QR_TRY(receive(child, inbox, answer, (size_t)head.len, wait, err));
    *ret_answer = (qr_str){answer, (size_t)head.len};
    return QR_OK;
}

/* *ret_is_usable: what it said can be believed to be an answer. */
static qr_rc hear_one(struct qr_child *child, struct inbox *inbox, const struct qr_reader_file *file,
                      const struct wait *wait, struct qr_converted *ret, bool *ret_is_usable, qr_err *err)
{
    qr_str answer;
    *ret_is_usable = false;
    QR_TRY(hear(child, inbox, file, wait, &answer, err));
    child->file_count++;
    const qr_rc rc = qr_answer_parse(answer, file->limits.text_bytes_max, file->arena, ret, err);
    *ret_is_usable = rc == QR_OK || err->code != QR_CODE_CRASHED_WORKER;
    return rc;
}

qr_rc qr_child_ask(struct qr_child *child, const struct qr_reader_file *file, struct qr_converted *ret,
                   bool *ret_is_usable, qr_err *err)
{
    const struct wait wait = {qr_thread_mono_us() + file->limits.timeout_ms * 1000, &file->limits};
    qr_err own = {0};
    err = err ? err : &own;
    *ret_is_usable = false;
    qr_rc rc = ask(child, file, 1, &wait, err);
    rc = rc == QR_OK ? hear_one(child, NULL, file, &wait, ret, ret_is_usable, err) : rc;
    if (!*ret_is_usable) {
        qr_child_end(child);
    }
    return rc;
}

/* ---- several ---- */

static struct wait wait_for_next(const struct qr_reader_file *file)
{
    const int64_t patience_ms = QR_MIN(file->limits.timeout_ms, (int64_t)TOGETHER_MS_MAX);
    return (struct wait){qr_thread_mono_us() + patience_ms * 1000, &file->limits};
}

/* H2: whose fault it is that one has no answer is not known. Held answers of others may be lost with it, and what makes no sense
 * may be another's doing. */
static bool hear_several(struct qr_child *child, struct inbox *inbox, struct qr_reader_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct qr_reader_file *file = &files[i];
        const struct wait wait = wait_for_next(file);
        file->rc = hear_one(child, inbox, file, &wait, &file->converted, &file->is_answered, &file->err);
        if (!file->is_answered) {
            return false;
        }
    }
    return inbox->start == inbox->end; /* else it says more than it was asked */
}

bool qr_child_ask_several(struct qr_child *child, struct qr_reader_file *files, size_t count)
{
    qr_err ignored = {0};
    const struct wait wait = wait_for_next(&files[0]);
    struct inbox *inbox = qr_alloc(sizeof *inbox);
    if (!inbox) {
        qr_child_end(child);
        return false;
    }
    inbox->start = inbox->end = 0;
    const bool is_usable =
        ask(child, files, count, &wait, &ignored) == QR_OK && hear_several(child, inbox, files, count);
    qr_free(inbox);
    if (!is_usable) {
        qr_child_end(child);
    }
    return is_usable;
}
