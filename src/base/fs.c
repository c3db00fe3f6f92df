/* File helpers. Stateless; callers are the stores, the configuration and the front ends.
 *
 * F1  A path that qr_fs_replace writes holds the old content or the new one, whole, at every moment: the bytes are
 *     synced under another name before the rename.
 * F2  QR_OK is durable: the folder was synced after its entry changed. Doing a failed call again makes it so too, even
 *     when its change already shows.
 * F3  A failed call leaves no temporary file, no folder it made unsynced, and no open file. */
#include "base/fs.h"

#include "base/mem.h"
#include "base/rand.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_CHUNK_BYTES = 16 * 1024,
    TEMP_NAME_TRIES = 8, /* each name is taken with a chance of 2^-64 */
    LOCK_LINE_MAX = 255,
    LOCK_LINE_TRIES = 50,
};

qr_str qr_path_parent(qr_str path)
{
    while (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    while (path.len && path.ptr[path.len - 1] != '/') {
        path.len--;
    }
    if (path.len == 0) {
        return QR_STR(".");
    }
    while (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    return path;
}

/* Linux has closed the file even when it answers EINTR: never again. */
static int close_file(const struct qr_io *io, int fd)
{
    const int result = io->close(io, fd);
    return result && errno == EINTR ? 0 : result;
}

static int sync_file(const struct qr_io *io, int fd)
{
    return (int)TEMP_FAILURE_RETRY(io->fsync(io, fd));
}

static qr_rc write_all(const struct qr_io *io, int fd, qr_str content, const char *path, qr_err *err)
{
    while (content.len) {
        const ssize_t written = TEMP_FAILURE_RETRY(io->write(io, fd, content.ptr, content.len));
        if (written <= 0) {
            return qr_fail_errno(err, written < 0 ? errno : EIO, "cannot write %s", path);
        }
        content.ptr += written;
        content.len -= (size_t)written;
    }
    return QR_OK;
}

static char *copy_str(qr_str text)
{
    char *copy = qr_alloc(text.len + 1);
    if (copy) {
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

/* ---- reading ---- */

static qr_rc read_all(const struct qr_io *io, int fd, const char *path, size_t len_max, struct qr_buf *out, qr_err *err)
{
    char chunk[READ_CHUNK_BYTES];
    size_t total = 0;
    for (;;) {
        const ssize_t got = TEMP_FAILURE_RETRY(io->read(io, fd, chunk, sizeof chunk));
        if (got < 0) {
            return qr_fail_errno(err, errno, "cannot read %s", path);
        }
        if (got == 0) {
            return QR_OK;
        }
        total += (size_t)got;
        if (total > len_max) {
            return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "%s is larger than %zu bytes", path, len_max);
        }
        qr_buf_add(out, (qr_str){chunk, (size_t)got});
        QR_TRY(qr_buf_check(out, err));
    }
}

qr_rc qr_fs_read(const struct qr_io *io, const char *path, size_t len_max, struct qr_buf *out, qr_err *err)
{
    const int fd = (int)TEMP_FAILURE_RETRY(io->open(io, path, O_RDONLY, 0));
    if (fd < 0) {
        return qr_fail_errno(err, errno, "cannot open %s", path);
    }
    const qr_rc rc = read_all(io, fd, path, len_max, out, err);
    close_file(io, fd); /* nothing was written: what it answers changes nothing */
    return rc;
}

int qr_fs_read_part(int fd, int64_t offset, size_t len_max, struct qr_buf *out)
{
    enum { STEP_BYTES_MAX = 1 << 20 };
    for (size_t done = 0; done < len_max;) {
        const size_t room = QR_MIN(len_max - done, (size_t)STEP_BYTES_MAX);
        char *into = qr_buf_reserve(out, room);
        if (!into) {
            return ENOMEM;
        }
        const ssize_t got = TEMP_FAILURE_RETRY(pread(fd, into, room, (off_t)(offset + (int64_t)done)));
        if (got <= 0) {
            return got < 0 ? errno : 0;
        }
        qr_buf_grown(out, (size_t)got);
        done += (size_t)got;
    }
    return 0;
}

/* The name of the path's next part, "." for the root itself; false when it is longer than names are. */
static bool next_part(qr_str *path, char ret_name[static NAME_MAX + 1])
{
    qr_str part = {0};
    while (path->len && part.len == 0) {
        part = qr_str_split(path, '/');
    }
    part = part.len ? part : QR_STR(".");
    if (part.len > NAME_MAX) {
        return false;
    }
    memcpy(ret_name, part.ptr, part.len);
    ret_name[part.len] = '\0';
    return true;
}

/* By hand and not by openat2(2), which the filters of containers often refuse. */
int qr_fs_open_without_links(const char *path, int flags)
{
    char name[NAME_MAX + 1];
    qr_str rest = qr_str_of(path);
    assert(path[0] == '/');
    while (rest.len > 1 && rest.ptr[rest.len - 1] == '/') {
        rest.len--;
    }
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && rest.len) {
        const bool is_name = next_part(&rest, name);
        const int how = (rest.len ? O_PATH | O_DIRECTORY : flags) | O_NOFOLLOW | O_CLOEXEC;
        const int next = is_name ? (int)TEMP_FAILURE_RETRY(openat(fd, name, how)) : -1;
        const int errnum = is_name ? errno : ENAMETOOLONG;
        close(fd);
        errno = errnum;
        fd = next;
    }
    return fd;
}

/* ---- changing a folder ---- */

static qr_rc open_folder_of(const struct qr_io *io, const char *path, int *ret_fd, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *folder = copy_str(qr_path_parent(qr_str_of(path)));
    if (!folder) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    const int fd = (int)TEMP_FAILURE_RETRY(io->open(io, folder, O_RDONLY | O_DIRECTORY, 0));
    if (fd < 0) {
        return qr_fail_errno(err, errno, "cannot open folder %s", folder);
    }
    *ret_fd = fd;
    return QR_OK;
}

static qr_rc sync_folder(const struct qr_io *io, int folder_fd, const char *path, qr_err *err)
{
    if (sync_file(io, folder_fd)) {
        return qr_fail_errno(err, errno, "cannot sync the folder of %s", path);
    }
    return QR_OK;
}

/* Makes and opens a new file beside `path`. */
static qr_rc create_temp(const struct qr_io *io, const char *path, mode_t mode, char **ret_temp, int *ret_fd,
                         qr_err *err)
{
    const qr_str folder = qr_path_parent(qr_str_of(path));
    const size_t size = folder.len + sizeof "/" QR_FS_TEMP_PREFIX "0123456789abcdef";
    QR_CLEANUP(qr_free_ptr) char *temp = qr_alloc(size);
    if (!temp) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    int fd = -1;
    for (int tries = 0; fd < 0 && tries < TEMP_NAME_TRIES; tries++) {
        snprintf(temp, size, "%.*s/" QR_FS_TEMP_PREFIX "%016llx", QR_STR_ARG(folder),
                 (unsigned long long)qr_rand_u64(qr_rand_system()));
        fd = (int)TEMP_FAILURE_RETRY(io->open(io, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (fd < 0) {
        return qr_fail_errno(err, errno, "cannot make a file beside %s", path);
    }
    *ret_fd = fd;
    *ret_temp = temp;
    temp = NULL;
    return QR_OK;
}

/* Writes, syncs and closes. */
static qr_rc fill_temp(const struct qr_io *io, int fd, qr_str content, const char *path, qr_err *err)
{
    qr_rc rc = write_all(io, fd, content, path, err);
    if (rc == QR_OK && sync_file(io, fd)) {
        rc = qr_fail_errno(err, errno, "cannot sync %s", path);
    }
    if (close_file(io, fd) && rc == QR_OK) {
        rc = qr_fail_errno(err, errno, "cannot close %s", path);
    }
    return rc;
}

static qr_rc replace_in(const struct qr_io *io, int folder_fd, const char *path, qr_str content, mode_t mode,
                        qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *temp = NULL;
    int fd = -1;
    QR_TRY(create_temp(io, path, mode, &temp, &fd, err));
    qr_rc rc = fill_temp(io, fd, content, path, err);
    if (rc == QR_OK && TEMP_FAILURE_RETRY(io->rename(io, temp, path))) {
        rc = qr_fail_errno(err, errno, "cannot replace %s", path);
    }
    if (rc != QR_OK) {
        (void)TEMP_FAILURE_RETRY(io->unlink(io, temp)); /* F3 */
        return rc;
    }
    return sync_folder(io, folder_fd, path, err);
}

qr_rc qr_fs_replace(const struct qr_io *io, const char *path, qr_str content, mode_t mode, qr_err *err)
{
    /* opened first: a folder that cannot be synced later shall not be changed either */
    int folder_fd;
    QR_TRY(open_folder_of(io, path, &folder_fd, err));
    const qr_rc rc = replace_in(io, folder_fd, path, content, mode, err);
    close_file(io, folder_fd);
    return rc;
}

qr_rc qr_fs_move(const struct qr_io *io, const char *from, const char *to, qr_err *err)
{
    int folder_fd;
    QR_TRY(open_folder_of(io, to, &folder_fd, err));
    const qr_rc rc = TEMP_FAILURE_RETRY(io->rename(io, from, to))
                         ? qr_fail_errno(err, errno, "cannot move %s to %s", from, to)
                         : sync_folder(io, folder_fd, to, err);
    close_file(io, folder_fd);
    return rc;
}

qr_rc qr_fs_remove(const struct qr_io *io, const char *path, qr_err *err)
{
    int folder_fd;
    qr_rc rc = open_folder_of(io, path, &folder_fd, err);
    if (rc != QR_OK) {
        return rc == QR_NOT_FOUND ? QR_OK : rc;
    }
    if (TEMP_FAILURE_RETRY(io->unlink(io, path)) && errno != ENOENT) {
        rc = qr_fail_errno(err, errno, "cannot remove %s", path);
    } else {
        rc = sync_folder(io, folder_fd, path, err); /* F2: also when an earlier call has unlinked it */
    }
    close_file(io, folder_fd);
    return rc;
}

void qr_fs_sweep(const struct qr_io *io, const char *folder)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf pattern = {0};
    for (const char *at = folder; *at; at++) {
        qr_buf_printf(&pattern, strchr("*?[\\", *at) ? "\\%c" : "%c", *at);
    }
    qr_buf_add_text(&pattern, "/" QR_FS_TEMP_PREFIX "*");
    glob_t found;
    if (qr_buf_check(&pattern, NULL) != QR_OK || glob(pattern.data, GLOB_NOSORT, NULL, &found) != 0) {
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        (void)TEMP_FAILURE_RETRY(io->unlink(io, found.gl_pathv[i]));
    }
    globfree(&found);
}

/* ---- folders ---- */

static qr_rc require_folder(const struct qr_io *io, const char *path, qr_err *err)
{
    const int fd = (int)TEMP_FAILURE_RETRY(io->open(io, path, O_PATH | O_DIRECTORY, 0));
    if (fd >= 0) {
        close_file(io, fd);
        return QR_OK;
    }
    if (errno == ENOTDIR || errno == ENOENT) { /* a file, or a link to nowhere */
        return qr_fail(err, QR_CODE_ALREADY_EXISTS, "%s exists and is not a folder", path);
    }
    return qr_fail_errno(err, errno, "cannot open folder %s", path);
}

static qr_rc sync_parent(const struct qr_io *io, const char *path, qr_err *err)
{
    int parent_fd;
    QR_TRY(open_folder_of(io, path, &parent_fd, err));
    const qr_rc rc = sync_folder(io, parent_fd, path, err);
    close_file(io, parent_fd);
    return rc;
}

static qr_rc make_dir(const struct qr_io *io, const char *path, mode_t mode, bool *ret_made, qr_err *err)
{
    *ret_made = TEMP_FAILURE_RETRY(io->mkdir(io, path, mode)) == 0;
    if (!*ret_made) {
        return errno == EEXIST ? require_folder(io, path, err)
                               : qr_fail_errno(err, errno, "cannot make folder %s", path);
    }
    const qr_rc rc = sync_parent(io, path, err);
    if (rc != QR_OK) {
        (void)TEMP_FAILURE_RETRY(io->rmdir(io, path)); /* F2, F3: the next call must not find it and call it durable */
    }
    return rc;
}

/* F2: whoever made the folder may have died before the sync. Above folders of our own we may not be allowed to. */
static qr_rc sync_existing(const struct qr_io *io, const char *path, qr_err *err)
{
    const qr_rc rc = sync_parent(io, path, err);
    return rc == QR_DENIED ? QR_OK : rc;
}

qr_rc qr_fs_make_dirs(const struct qr_io *io, const char *path, mode_t mode, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *prefix = qr_copy_string(path);
    if (!prefix) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    const size_t len = strlen(path);
    if (len == 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the folder's path is empty");
    }
    bool made = false;
    for (size_t i = 1; i <= len; i++) {
        if ((path[i] == '/' || path[i] == '\0') && path[i - 1] != '/') {
            prefix[i] = '\0';
            QR_TRY(make_dir(io, prefix, mode, &made, err));
            prefix[i] = path[i];
        }
    }
    return made ? QR_OK : sync_existing(io, path, err);
}

/* ---- the lock ---- */

/* The holder's line, first read and then taken apart; what it lacks is left out. */
static qr_rc fail_locked(const struct qr_io *io, int fd, qr_str folder, qr_err *err)
{
    char text[LOCK_LINE_MAX + 1];
    ssize_t got = TEMP_FAILURE_RETRY(io->read(io, fd, text, sizeof text));
    for (int tries = 0; got == 0 && tries < LOCK_LINE_TRIES; tries++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL); /* the very first holder is about to write its line */
        got = TEMP_FAILURE_RETRY(io->read(io, fd, text, sizeof text));
    }
    qr_str rest = {text, got > 0 ? (size_t)got : 0};
    qr_str line = qr_str_split(&rest, '\n');
    const qr_str word = QR_STR("pid ");
    int64_t pid = 0;
    if (qr_str_starts_with(line, word)) {
        line = (qr_str){line.ptr + word.len, line.len - word.len};
        if (!qr_str_to_i64(qr_str_split(&line, ','), &pid)) {
            pid = 0;
        }
    }
    if (pid <= 0) {
        return qr_fail(err, QR_CODE_DATA_LOCKED, "the data folder %.*s is in use by another process",
                       QR_STR_ARG(folder));
    }
    line = qr_str_trim(line);
    return qr_fail(err, QR_CODE_DATA_LOCKED, "the data folder %.*s is in use by process %lld (%.*s)",
                   QR_STR_ARG(folder), (long long)pid, QR_STR_ARG(line));
}

static qr_rc fail_open_lock(int errnum, const char *path, qr_str folder, qr_err *err)
{
    if (errnum == EACCES || errnum == EPERM || errnum == EROFS) {
        return qr_fail(err, QR_CODE_DATA_READONLY,
                       "the data folder %.*s is not writable for user %u: make it so, or choose another with --data",
                       QR_STR_ARG(folder), (unsigned)geteuid());
    }
    return qr_fail_errno(err, errnum, "cannot open the lock file %s", path);
}

/* Over the old line and only then cut: whoever looks meanwhile reads a whole line, and on a full disk the block that is
 * already there serves. */
static qr_rc write_holder(const struct qr_io *io, int fd, const struct qr_clock *clock, const char *path,
                          const char *command, qr_err *err)
{
    char now[QR_TIME_TEXT_SIZE];
    qr_time_format(qr_clock_wall_ms(clock), now);
    char line[LOCK_LINE_MAX + 1];
    const int len = snprintf(line, sizeof line, "pid %lld, %.128s, since %s\n", (long long)getpid(), command, now);
    QR_TRY(write_all(io, fd, (qr_str){line, (size_t)len}, path, err));
    if (TEMP_FAILURE_RETRY(io->ftruncate(io, fd, len))) {
        return qr_fail_errno(err, errno, "cannot write %s", path);
    }
    return QR_OK;
}

qr_rc qr_file_lock_take(struct qr_file_lock *lock, const struct qr_io *io, const struct qr_clock *clock,
                        const char *path, const char *command, qr_err *err)
{
    *lock = (struct qr_file_lock){.io = io, .fd = -1};
    const qr_str folder = qr_path_parent(qr_str_of(path));
    const int fd = (int)TEMP_FAILURE_RETRY(io->open(io, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (fd < 0) {
        return fail_open_lock(errno, path, folder, err);
    }
    if (TEMP_FAILURE_RETRY(io->flock(io, fd, LOCK_EX | LOCK_NB))) {
        const qr_rc rc =
            errno == EWOULDBLOCK ? fail_locked(io, fd, folder, err) : qr_fail_errno(err, errno, "cannot lock %s", path);
        close_file(io, fd);
        return rc;
    }
    lock->fd = fd;
    const qr_rc rc = write_holder(io, fd, clock, path, command, err);
    if (rc != QR_OK) {
        qr_file_lock_release(lock);
    }
    return rc;
}

void qr_file_lock_release(struct qr_file_lock *lock)
{
    if (lock->fd < 0) {
        return;
    }
    /* unlocked by name: a child between fork and exec still shares the file, and closing ours would not unlock it */
    (void)TEMP_FAILURE_RETRY(lock->io->flock(lock->io, lock->fd, LOCK_UN));
    close_file(lock->io, lock->fd);
    lock->fd = -1;
}
