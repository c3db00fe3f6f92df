/* The real system calls behind the table of io.h. Stateless: each function is the call of its name. */
#include "base/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

static int system_open(const struct qr_io *io QR_UNUSED, const char *path, int flags, mode_t mode)
{
    return open(path, flags | O_CLOEXEC, mode);
}

static int system_close(const struct qr_io *io QR_UNUSED, int fd)
{
    return close(fd);
}

static ssize_t system_read(const struct qr_io *io QR_UNUSED, int fd, void *bytes, size_t size_bytes)
{
    return read(fd, bytes, size_bytes);
}

static ssize_t system_write(const struct qr_io *io QR_UNUSED, int fd, const void *bytes, size_t size_bytes)
{
    return write(fd, bytes, size_bytes);
}

static int system_fsync(const struct qr_io *io QR_UNUSED, int fd)
{
    return fsync(fd);
}

static void system_write_back(const struct qr_io *io QR_UNUSED, int fd, off_t offset, off_t size_bytes)
{
    (void)sync_file_range(fd, offset, size_bytes, SYNC_FILE_RANGE_WRITE);
}

static int system_ftruncate(const struct qr_io *io QR_UNUSED, int fd, off_t size_bytes)
{
    return ftruncate(fd, size_bytes);
}

static int system_fstat(const struct qr_io *io QR_UNUSED, int fd, struct stat *ret_stat)
{
    return fstat(fd, ret_stat);
}

static int system_rename(const struct qr_io *io QR_UNUSED, const char *from, const char *to)
{
    return rename(from, to);
}

static int system_unlink(const struct qr_io *io QR_UNUSED, const char *path)
{
    return unlink(path);
}

static int system_mkdir(const struct qr_io *io QR_UNUSED, const char *path, mode_t mode)
{
    return mkdir(path, mode);
}

static int system_rmdir(const struct qr_io *io QR_UNUSED, const char *path)
{
    return rmdir(path);
}

static int system_flock(const struct qr_io *io QR_UNUSED, int fd, int operation)
{
    return flock(fd, operation);
}

const struct qr_io *qr_io_system(void)
{
    static const struct qr_io system_io = {
        .open = system_open,
        .close = system_close,
        .read = system_read,
        .write = system_write,
        .fsync = system_fsync,
        .write_back = system_write_back,
        .ftruncate = system_ftruncate,
        .fstat = system_fstat,
        .rename = system_rename,
        .unlink = system_unlink,
        .mkdir = system_mkdir,
        .rmdir = system_rmdir,
        .flock = system_flock,
    };
    return &system_io;
}
