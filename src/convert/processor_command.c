/* The converter that is a program on this machine. Shared by threads: holds nothing but its settings; what there is to know
 * of a ticket is in its folder, so that whoever asks, now or after a restart, finds the same.
 *
 * A ticket is a folder:
 *   pid         of the process that leads the work, written before the work begins
 *   start       "PID START_TICKS BOOT_ID\n": with these the process cannot be taken for another of the same number
 *   out.tmp     what the program writes;  out.md  the same when it has ended
 *   errors.txt  the first few KB of its standard error
 *   status      its exit status; written last
 *
 * C1  `status` exists only when out.md is whole: it gets its name last.
 * C2  Nothing of an earlier boot counts: files that were not synced before a power loss may be there and be empty.
 * C3  A process is only killed when its number and its start time fit. It leads a group of its own, which dies with it.
 *
 * base/proc.h runs children that die with us; this is for one that must not. /bin/sh keeps watch over it: a fork of our own
 * process would hold our memory, and the exit status must be written when we are long gone. */
#include "convert/processor.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/rand.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ARGS_MAX = 64,
    TICKET_SIZE = 40,
    BOOT_ID_SIZE = 40,
    SMALL_FILE_BYTES_MAX = 8192,
    REASON_BYTES_MAX = 300,
};

/* $1 is the ticket's folder, the rest is the program. The limits are kept where the bytes go through: a program that writes
 * without end ends by a broken pipe, and what it says beside its output is read to the end, so that it never waits for us.
 * The first shell has ended before we go on, so that the work belongs to nobody and nobody has to wait for it. */
static const char script[] = "d=$1; shift; "
                             "{ { { \"$@\" 2>&3 3>&-; echo $? >\"$d/status.tmp\"; } | head -c " QR_STRINGIFY(
                                 67108865) " >\"$d/out.tmp\"; } 3>&1 "
                                           "| { head -c 4096 >\"$d/errors.txt\"; cat >/dev/null; }; "
                                           "mv \"$d/out.tmp\" \"$d/out.md\" && mv \"$d/status.tmp\" \"$d/status\"; } "
                                           "</dev/null >/dev/null 2>&1 & "
                                           "echo $! >\"$d/pid\"";
_Static_assert(QR_PROCESSOR_OUTPUT_BYTES_MAX + 1 == 67108865, "the script has the limit as a number");

struct command {
    struct qr_processor processor;
    char *argv[ARGS_MAX + 1];
    size_t argc;
    char *dir;
};

struct process {
    pid_t pid;
    int64_t start_ticks; /* since boot */
    char boot_id[BOOT_ID_SIZE];
};

static qr_rc fail_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
}

/* ---- files of a ticket ---- */

static void add_path(struct qr_buf *path, const struct command *command, const char *ticket, const char *name)
{
    qr_buf_clear(path);
    qr_buf_printf(path, "%s/%s%s%s", command->dir, ticket, *name ? "/" : "", name);
}

/* Appends what there is; false when it is not there or cannot be read. */
static bool read_file(const struct command *command, const char *ticket, const char *name, size_t len_max,
                      struct qr_buf *out)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    add_path(&path, command, ticket, name);
    return qr_buf_check(&path, NULL) == QR_OK && qr_fs_read(qr_io_system(), path.data, len_max, out, NULL) == QR_OK;
}

/* Tickets come back from outside: nothing but what submit hands out may become a path. */
static bool is_ticket(const char *ticket)
{
    const size_t len = strlen(ticket);
    return len > 1 && len < TICKET_SIZE && strspn(ticket, "c0123456789abcdef") == len;
}

static void remove_ticket(const struct command *command, const char *ticket)
{
    static const char *const names[] = {"pid", "start", "out.tmp", "out.md", "errors.txt", "status", "status.tmp", ""};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    const struct qr_io *io = qr_io_system();
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        add_path(&path, command, ticket, names[i]);
        if (qr_buf_check(&path, NULL) == QR_OK) {
            (void)(*names[i] ? io->unlink(io, path.data) : io->rmdir(io, path.data));
        }
    }
}

/* ---- processes ---- */

static void read_boot_id(char ret_id[static BOOT_ID_SIZE])
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    (void)qr_fs_read(qr_io_system(), "/proc/sys/kernel/random/boot_id", SMALL_FILE_BYTES_MAX, &text, NULL);
    const qr_str id = qr_str_trim(qr_buf_str(&text));
    snprintf(ret_id, BOOT_ID_SIZE, "%.*s", QR_STR_ARG(id));
    if (ret_id[0] == '\0') {
        snprintf(ret_id, BOOT_ID_SIZE, "unknown");
    }
}

/* From /proc/PID/stat: the third field is the state, the 22nd the start; the second may hold anything, but ends with the
 * last parenthesis. False when there is no such process. */
static bool look_at(pid_t pid, char *ret_state, int64_t *ret_start_ticks)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    if (qr_fs_read(qr_io_system(), path, SMALL_FILE_BYTES_MAX, &text, NULL) != QR_OK || text.len == 0) {
        return false;
    }
    const char *end_of_name = strrchr(text.data, ')');
    if (!end_of_name || strlen(end_of_name) < 3) {
        return false;
    }
    qr_str rest = qr_str_of(end_of_name + 2);
    *ret_state = *rest.ptr;
    for (int field = 3; field < 22; field++) {
        (void)qr_str_split(&rest, ' ');
    }
    return qr_str_to_i64(qr_str_split(&rest, ' '), ret_start_ticks);
}

static bool is_running(const struct process *process)
{
    char state;
    int64_t start_ticks;
    if (!look_at(process->pid, &state, &start_ticks) || start_ticks != process->start_ticks) {
        return false;
    }
    if (state == 'Z') { /* where we are the first process of a container, orphans become our children */
        waitpid(process->pid, NULL, WNOHANG);
        return false;
    }
    return true;
}

static int64_t running_ms(const struct process *process)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    const int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return QR_MAX(now_ms - process->start_ticks * 1000 / sysconf(_SC_CLK_TCK), (int64_t)0);
}

/* C2: false also for a process of an earlier boot. */
static bool load_process(const struct command *command, const char *ticket, struct process *ret_process)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    if (!read_file(command, ticket, "start", SMALL_FILE_BYTES_MAX, &text)) {
        return false;
    }
    qr_str rest = qr_str_trim(qr_buf_str(&text));
    int64_t pid;
    char boot_id[BOOT_ID_SIZE];
    if (!qr_str_to_i64(qr_str_split(&rest, ' '), &pid) || pid < 0 || pid > INT32_MAX ||
        !qr_str_to_i64(qr_str_split(&rest, ' '), &ret_process->start_ticks)) {
        return false;
    }
    read_boot_id(boot_id);
    ret_process->pid = (pid_t)pid;
    snprintf(ret_process->boot_id, sizeof ret_process->boot_id, "%.*s", QR_STR_ARG(rest));
    return strcmp(ret_process->boot_id, boot_id) == 0;
}

/* ---- submit ---- */

static qr_rc spawn_shell(char **argv, pid_t *ret_pid, qr_err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) {
        return qr_fail_errno(err, failed, "cannot start %s", argv[0]);
    }
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        /* no file of ours goes with it: a lock on the data folder would live on in it */
        failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        failed = failed ? failed : posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        failed = failed ? failed : posix_spawn_file_actions_adddup2(&actions, 1, 2);
        failed = failed ? failed : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        failed = failed ? failed : posix_spawn(ret_pid, argv[0], &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed ? qr_fail_errno(err, failed, "cannot start %s", argv[0]) : QR_OK;
}

static qr_rc run_shell(const struct command *command, const char *folder, const char *path, qr_err *err)
{
    char *argv[ARGS_MAX + 8];
    size_t argc = 0;
    QR_CLEANUP(qr_free_ptr) char *kept_path = NULL;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_buf_printf(&text, "%s%s", path[0] == '-' ? "./" : "", path); /* never taken for an option */
    kept_path = qr_buf_take(&text, NULL);
    if (!kept_path) {
        return fail_memory(err);
    }
    const char *const first[] = {"/bin/sh", "-c", script, "quire-converter", folder};
    for (size_t i = 0; i < QR_COUNT(first); i++) {
        argv[argc++] = (char *)first[i];
    }
    for (size_t i = 0; i < command->argc; i++) {
        argv[argc++] = command->argv[i];
    }
    argv[argc++] = kept_path;
    argv[argc] = NULL;
    pid_t pid;
    int status;
    QR_TRY(spawn_shell(argv, &pid, err));
    if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) != pid || status != 0) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "the converter %s cannot be started", command->argv[0]);
    }
    return QR_OK;
}

/* The process may have ended already; its start time is then unknown and its status there. */
static qr_rc save_process(const struct command *command, const char *ticket, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0}, path = {0};
    int64_t pid, start_ticks = 0;
    char state, boot_id[BOOT_ID_SIZE];
    if (!read_file(command, ticket, "pid", SMALL_FILE_BYTES_MAX, &text) ||
        !qr_str_to_i64(qr_str_trim(qr_buf_str(&text)), &pid)) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "the converter %s cannot be started", command->argv[0]);
    }
    if (!look_at((pid_t)pid, &state, &start_ticks)) {
        start_ticks = -1;
    }
    read_boot_id(boot_id);
    qr_buf_clear(&text);
    qr_buf_printf(&text, "%lld %lld %s\n", (long long)pid, (long long)start_ticks, boot_id);
    add_path(&path, command, ticket, "start");
    QR_TRY(qr_buf_check(&text, err));
    QR_TRY(qr_buf_check(&path, err));
    return qr_fs_replace(qr_io_system(), path.data, qr_buf_str(&text), 0600, err);
}

static qr_rc start_work(const struct command *command, const char *ticket, const char *path, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf folder = {0};
    add_path(&folder, command, ticket, "");
    QR_TRY(qr_buf_check(&folder, err));
    QR_TRY(qr_fs_make_dirs(qr_io_system(), folder.data, 0700, err));
    QR_TRY(run_shell(command, folder.data, path, err));
    return save_process(command, ticket, err);
}

static qr_rc command_submit(struct qr_processor *processor, const char *path, const char *name QR_UNUSED,
                            struct qr_arena *arena, const char **ret_ticket, qr_err *err)
{
    const struct command *command = processor->arg;
    const char *ticket = qr_arena_printf(arena, "c%016llx%016llx", (unsigned long long)qr_rand_u64(qr_rand_system()),
                                         (unsigned long long)qr_rand_u64(qr_rand_system()));
    if (!ticket) {
        return fail_memory(err);
    }
    const qr_rc rc = start_work(command, ticket, path, err);
    if (rc != QR_OK) {
        processor->cancel(processor, ticket);
        return rc;
    }
    *ret_ticket = ticket;
    return QR_OK;
}

/* ---- poll ---- */

/* The first line that it wrote to standard error, made fit to show. */
static void add_reason(const struct command *command, const char *ticket, struct qr_buf *reason)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    (void)read_file(command, ticket, "errors.txt", SMALL_FILE_BYTES_MAX, &text);
    qr_str rest = qr_str_trim(qr_buf_str(&text));
    const qr_str line = qr_utf8_prefix(qr_str_split(&rest, '\n'), REASON_BYTES_MAX);
    for (size_t i = 0; i < line.len;) {
        const size_t len = qr_utf8_char_len((qr_str){line.ptr + i, line.len - i});
        const bool is_fit = len > 1 || (len == 1 && (unsigned char)line.ptr[i] >= ' ' && line.ptr[i] != 0x7F);
        qr_buf_add(reason, is_fit ? (qr_str){line.ptr + i, len} : QR_STR("?"));
        i += len ? len : 1;
    }
}

static void fail_conversion(const struct command *command, const char *ticket, const char *what, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf reason = {0};
    add_reason(command, ticket, &reason);
    qr_fail(err, QR_CODE_CONVERSION_FAILED, "the converter %s%s%s", what, reason.len ? ": " : "",
            reason.len && reason.data ? reason.data : "");
}

/* The program has ended with this status. */
static qr_rc take_result(const struct command *command, const char *ticket, int64_t status,
                         enum qr_ticket_state *ret_state, struct qr_buf *out, qr_err *err)
{
    const size_t len = out->len;
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    add_path(&path, command, ticket, "out.md");
    QR_TRY(qr_buf_check(&path, err));
    *ret_state = QR_TICKET_FAILED;
    qr_err failed = {0};
    const qr_rc rc = qr_fs_read(qr_io_system(), path.data, QR_PROCESSOR_OUTPUT_BYTES_MAX, out, &failed);
    if (rc == QR_OK && status == 0) {
        *ret_state = QR_TICKET_DONE;
        return QR_OK;
    }
    if (out->data) { /* nothing of what failed */
        out->len = len;
        out->data[len] = '\0';
    }
    if (rc == QR_TOO_LARGE) {
        fail_conversion(command, ticket, "writes more than " QR_STRINGIFY(64) " MB", err);
        return QR_OK;
    }
    if (rc != QR_OK) {
        return qr_fail(err, failed.code, "%s", failed.msg);
    }
    char what[64];
    snprintf(what, sizeof what, status == 126 || status == 127 ? "cannot be started" : "ended with status %lld",
             (long long)status);
    fail_conversion(command, ticket, what, err);
    return QR_OK;
}

static bool load_status(const struct command *command, const char *ticket, int64_t *ret_status)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    return read_file(command, ticket, "status", SMALL_FILE_BYTES_MAX, &text) &&
           qr_str_to_i64(qr_str_trim(qr_buf_str(&text)), ret_status);
}

static qr_rc command_poll(struct qr_processor *processor, const char *ticket, enum qr_ticket_state *ret_state,
                          int64_t *ret_running_ms, struct qr_buf *out, qr_err *err)
{
    const struct command *command = processor->arg;
    struct process process;
    int64_t status;
    *ret_running_ms = 0;
    if (!is_ticket(ticket) || !load_process(command, ticket, &process)) {
        *ret_state = QR_TICKET_UNKNOWN;
        return QR_OK;
    }
    const bool runs = is_running(&process); /* before the look at its status, which it writes last */
    if (load_status(command, ticket, &status)) {
        return take_result(command, ticket, status, ret_state, out, err);
    }
    if (runs) {
        *ret_running_ms = running_ms(&process);
        *ret_state = QR_TICKET_RUNNING;
        return QR_OK;
    }
    *ret_state = QR_TICKET_FAILED;
    fail_conversion(command, ticket, "ended without a result: it was killed, or the disk is full", err);
    return QR_OK;
}

/* ---- the rest ---- */

static void command_cancel(struct qr_processor *processor, const char *ticket)
{
    const struct command *command = processor->arg;
    struct process process;
    if (!is_ticket(ticket)) {
        return;
    }
    if (load_process(command, ticket, &process) && is_running(&process)) { /* C3 */
        const pid_t group = getpgid(process.pid);
        if (group > 1 && group != getpgrp()) {
            kill(-group, SIGKILL);
        }
    }
    remove_ticket(command, ticket);
}

static void command_free(struct qr_processor *processor)
{
    struct command *command = processor->arg;
    for (size_t i = 0; i < command->argc; i++) {
        qr_free(command->argv[i]);
    }
    qr_free(command->dir);
    qr_free(command);
}

static qr_rc copy_settings(struct command *command, const char *const *argv, const char *dir, qr_err *err)
{
    for (; argv[command->argc]; command->argc++) {
        if (command->argc == ARGS_MAX) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "the converter has more than %d arguments", ARGS_MAX);
        }
        command->argv[command->argc] = qr_copy_string(argv[command->argc]);
        if (!command->argv[command->argc]) {
            return fail_memory(err);
        }
    }
    if (command->argc == 0 || !command->argv[0][0]) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the converter's command is empty");
    }
    command->dir = qr_copy_string(dir);
    return command->dir ? QR_OK : fail_memory(err);
}

qr_rc qr_processor_command(struct qr_processor **ret_processor, const char *const *argv, const char *dir, qr_err *err)
{
    struct command *command = qr_alloc_zero(sizeof *command);
    if (!command) {
        return fail_memory(err);
    }
    command->processor = (struct qr_processor){
        .name = "command",
        .arg = command,
        .submit = command_submit,
        .poll = command_poll,
        .cancel = command_cancel,
        .free = command_free,
    };
    const qr_rc rc = copy_settings(command, argv, dir, err);
    if (rc != QR_OK) {
        command_free(&command->processor);
        return rc;
    }
    *ret_processor = &command->processor;
    return QR_OK;
}

void qr_processor_free(struct qr_processor *processor)
{
    if (processor) {
        processor->free(processor);
    }
}
