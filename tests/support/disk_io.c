/* Owns the table of I/O functions over a disk that loses power. What only reads goes straight to the system. */
#include "support/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static struct disk_io *own(const struct qr_io *io)
{
    return QR_CONTAINER_OF((struct qr_io *)(uintptr_t)io, struct disk_io, io);
}

/* The open that made the file must be known: only then is there a new name that may be lost. */
static int open_for_writing(const char *path, int flags, mode_t mode, bool *ret_created)
{
    const int plain = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
    const bool may_exist = !(flags & O_CREAT) || !(flags & O_EXCL);
    *ret_created = false;
    int fd = may_exist ? open(path, plain, mode) : -1;
    if (fd < 0 && (flags & O_CREAT) && (!may_exist || errno == ENOENT)) {
        *ret_created = true;
        fd = open(path, plain | O_CREAT | O_EXCL, mode);
    }
    return fd;
}

static int io_open(const struct qr_io *io, const char *path, int flags, mode_t mode)
{
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    bool created = false;
    flags |= O_CLOEXEC;
    const int fd = writes ? open_for_writing(path, flags, mode, &created) : open(path, flags, mode);
    if (fd < 0) {
        return -1;
    }
    assert(fd < DISK_IO_FDS_MAX);
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        own(io)->fds[fd].folder = strdup(path);
    } else if (writes) {
        struct disk_handle *handle = &own(io)->fds[fd].handle;
        const int failed = disk_open(own(io)->disk, path, created, handle);
        assert(!failed);
        if ((flags & O_TRUNC) && !created) {
            disk_truncate(own(io)->disk, handle, 0);
        }
    }
    return fd;
}

static int io_close(const struct qr_io *io, int fd)
{
    if (own(io)->fds[fd].handle.file) {
        disk_close(own(io)->disk, &own(io)->fds[fd].handle);
    }
    free(own(io)->fds[fd].folder);
    own(io)->fds[fd].folder = NULL;
    return close(fd);
}

static ssize_t io_read(const struct qr_io *io, int fd, void *bytes, size_t size_bytes)
{
    disk_read_begin(own(io)->disk);
    const ssize_t got = read(fd, bytes, size_bytes);
    disk_read_end(own(io)->disk);
    return got;
}

static ssize_t io_write(const struct qr_io *io, int fd, const void *bytes, size_t size_bytes)
{
    const bool append = fcntl(fd, F_GETFL) & O_APPEND;
    const off_t at = lseek(fd, 0, append ? SEEK_END : SEEK_CUR);
    if (disk_write(own(io)->disk, &own(io)->fds[fd].handle, bytes, size_bytes, at)) {
        return -1;
    }
    lseek(fd, at + (off_t)size_bytes, SEEK_SET);
    return (ssize_t)size_bytes;
}

static int io_fsync(const struct qr_io *io, int fd)
{
    const char *folder = own(io)->fds[fd].folder;
    return folder ? disk_sync_folder(own(io)->disk, folder) : disk_sync(own(io)->disk, &own(io)->fds[fd].handle);
}

static int io_ftruncate(const struct qr_io *io, int fd, off_t size_bytes)
{
    return disk_truncate(own(io)->disk, &own(io)->fds[fd].handle, size_bytes);
}

static int io_fstat(const struct qr_io *io QR_UNUSED, int fd, struct stat *ret_stat)
{
    return fstat(fd, ret_stat);
}

static int io_rename(const struct qr_io *io, const char *from, const char *to)
{
    return disk_rename(own(io)->disk, from, to);
}

static int io_unlink(const struct qr_io *io, const char *path)
{
    return disk_unlink(own(io)->disk, path);
}

static int io_mkdir(const struct qr_io *io, const char *path, mode_t mode)
{
    return disk_mkdir(own(io)->disk, path, mode);
}

static int io_rmdir(const struct qr_io *io QR_UNUSED, const char *path)
{
    return rmdir(path); /* durable at once: nobody relies on a folder that is gone */
}

static int io_flock(const struct qr_io *io QR_UNUSED, int fd, int operation)
{
    return flock(fd, operation);
}

void disk_io_init(struct disk_io *disk_io, struct disk *disk)
{
    *disk_io = (struct disk_io){
        .io = {.open = io_open,
               .close = io_close,
               .read = io_read,
               .write = io_write,
               .fsync = io_fsync,
               .ftruncate = io_ftruncate,
               .fstat = io_fstat,
               .rename = io_rename,
               .unlink = io_unlink,
               .mkdir = io_mkdir,
               .rmdir = io_rmdir,
               .flock = io_flock},
        .disk = disk,
    };
}
