/* Reading sources. Stateless; called by the handlers, on files that anybody may change, replace or remove meanwhile.
 *
 * The facts and the bytes come from one open file, so a file that is replaced by rename is read as the old or the new one,
 * whole. A file that is written in place is recognised by its size and times before and after. */
#include "source/file.h"

#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { READ_TRIES = 3, READ_BYTES_MAX = 1 << 20 };

static qr_rc fail_source(int errnum, qr_err *err)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
        return qr_fail(err, QR_CODE_SOURCE_MISSING, "the file is not there");
    case ELOOP:
        return qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "it is a symbolic link, and links are not followed");
    case EACCES:
    case EPERM:
        return qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "the file must not be read by this user");
    case ENXIO:
    case ENODEV:
        return qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "it is not a regular file");
    case ENAMETOOLONG:
        return qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "the path is too long");
    default: /* a broken disk, too many open files …: may pass */
        return qr_fail_errno(err, errnum, "cannot read the file");
    }
}

static int64_t ns_of(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static struct qr_file_facts facts_of(const struct stat *st)
{
    return (struct qr_file_facts){.size_bytes = st->st_size, .mtime_ns = ns_of(st->st_mtim)};
}

/* Opening a pipe would wait for its other end without O_NONBLOCK. */
static qr_rc open_regular(const struct qr_io *io, struct qr_file_place place, int *ret_fd, struct stat *ret_stat,
                          qr_err *err)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    const int fd = place.no_links ? qr_fs_open_without_links(place.path, flags)
                                  : (int)TEMP_FAILURE_RETRY(io->open(io, place.path, flags, 0));
    if (fd < 0) {
        return fail_source(errno, err);
    }
    qr_rc rc = QR_OK;
    if (TEMP_FAILURE_RETRY(io->fstat(io, fd, ret_stat))) {
        rc = fail_source(errno, err);
    } else if (!S_ISREG(ret_stat->st_mode)) {
        rc = qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "it is %s",
                     S_ISDIR(ret_stat->st_mode) ? "a folder" : "not a regular file");
    }
    if (rc != QR_OK) {
        io->close(io, fd);
        return rc;
    }
    *ret_fd = fd;
    return QR_OK;
}

static qr_rc fail_too_large(int64_t size_bytes_max, qr_err *err)
{
    return qr_fail(err, QR_CODE_TOO_LARGE, "the file is larger than %lld bytes", (long long)size_bytes_max);
}

/* To the end, or one byte beyond where it should be: the file has changed then, and may be growing for ever. */
static qr_rc read_to_end(const struct qr_io *io, int fd, size_t size_bytes, struct qr_buf *out, qr_err *err)
{
    const size_t before = out->len;
    while (out->len - before <= size_bytes) {
        const size_t room = QR_MIN(size_bytes + 1 - (out->len - before), (size_t)READ_BYTES_MAX);
        char *into = qr_buf_reserve(out, room);
        if (!into) {
            return qr_buf_check(out, err);
        }
        const ssize_t got = TEMP_FAILURE_RETRY(io->read(io, fd, into, room));
        if (got < 0) {
            return fail_source(errno, err);
        }
        if (got == 0) {
            break;
        }
        qr_buf_grown(out, (size_t)got);
    }
    return QR_OK;
}

static bool same_moment(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && ns_of(a->st_mtim) == ns_of(b->st_mtim) && ns_of(a->st_ctim) == ns_of(b->st_ctim);
}

/* *ret_is_whole: nothing changed while it was read. */
static qr_rc read_once(const struct qr_io *io, struct qr_file_place place, int64_t size_bytes_max, struct qr_buf *out,
                       struct qr_file_facts *ret_facts, bool *ret_is_whole, qr_err *err)
{
    int fd = -1;
    struct stat before, after;
    QR_TRY(open_regular(io, place, &fd, &before, err));
    const size_t len = out->len;
    qr_rc rc = before.st_size > size_bytes_max ? fail_too_large(size_bytes_max, err)
                                               : read_to_end(io, fd, (size_t)before.st_size, out, err);
    if (rc == QR_OK && TEMP_FAILURE_RETRY(io->fstat(io, fd, &after))) {
        rc = fail_source(errno, err);
    }
    io->close(io, fd); /* nothing was written: what it answers changes nothing */
    if (rc == QR_OK) {
        *ret_is_whole = same_moment(&before, &after) && (off_t)(out->len - len) == after.st_size;
        *ret_facts = facts_of(&after);
    }
    return rc;
}

static void cut_back(struct qr_buf *out, size_t len)
{
    if (out->data) {
        out->len = len;
        out->data[len] = '\0';
    }
}

qr_rc qr_file_read_io(const struct qr_io *io, struct qr_file_place place, int64_t size_bytes_max, struct qr_buf *out,
                      struct qr_file_facts *ret_facts, qr_err *err)
{
    const size_t len = out->len;
    for (int tries = 0; tries < READ_TRIES; tries++) {
        bool is_whole = false;
        struct qr_file_facts facts;
        const qr_rc rc = read_once(io, place, size_bytes_max, out, &facts, &is_whole, err);
        if (rc == QR_OK && is_whole) {
            *ret_facts = facts;
            return QR_OK;
        }
        cut_back(out, len);
        QR_TRY(rc);
    }
    return qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "the file keeps changing while it is read");
}

qr_rc qr_file_read(struct qr_file_place place, int64_t size_bytes_max, struct qr_buf *out,
                   struct qr_file_facts *ret_facts, qr_err *err)
{
    return qr_file_read_io(qr_io_system(), place, size_bytes_max, out, ret_facts, err);
}

qr_rc qr_file_read_part(struct qr_file_place place, int64_t offset, size_t len_max, struct qr_buf *out,
                        struct qr_file_facts *ret_facts, qr_err *err)
{
    const struct qr_io *io = qr_io_system();
    const size_t before = out->len;
    struct stat st;
    int fd = -1;
    QR_TRY(open_regular(io, place, &fd, &st, err));
    const int errnum = qr_fs_read_part(fd, offset, len_max, out);
    io->close(io, fd);
    if (errnum) {
        cut_back(out, before);
        return fail_source(errnum, err);
    }
    *ret_facts = facts_of(&st);
    return QR_OK;
}

/* Without reading it: a file that may not be read has facts all the same. Returns 0, or an errno. */
static int look(struct qr_file_place place, struct stat *ret_stat)
{
    if (!place.no_links) {
        return lstat(place.path, ret_stat) ? errno : 0;
    }
    const int fd = qr_fs_open_without_links(place.path, O_PATH);
    const int errnum = fd < 0 || fstat(fd, ret_stat) ? errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    return errnum;
}

qr_rc qr_file_look(struct qr_file_place place, struct qr_file_facts *ret_facts, qr_err *err)
{
    struct stat st;
    const int errnum = look(place, &st);
    if (errnum) {
        return fail_source(errnum, err);
    }
    if (!S_ISREG(st.st_mode)) {
        return S_ISLNK(st.st_mode) ? fail_source(ELOOP, err) : fail_source(ENXIO, err);
    }
    *ret_facts = facts_of(&st);
    return QR_OK;
}
