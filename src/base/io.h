/* The one table of file system calls. Every file that Quire itself reads or writes goes through it, so that a test can
 * fail each call in turn or lose power between two of them. Same contract as the system calls: -1 and errno. SQLite has
 * its own such layer, the VFS. */
#pragma once

#include "base/compiler.h"

#include <sys/stat.h>
#include <sys/types.h>

struct qr_io {
    int (*open)(const struct qr_io *io, const char *path, int flags, mode_t mode); /* O_CLOEXEC is added */
    int (*close)(const struct qr_io *io, int fd);
    ssize_t (*read)(const struct qr_io *io, int fd, void *bytes, size_t size_bytes);
    ssize_t (*write)(const struct qr_io *io, int fd, const void *bytes, size_t size_bytes);
    int (*fsync)(const struct qr_io *io, int fd); /* of a file or a folder */
    /* A hint: these bytes are synced later, the disk may begin with them. NULL = it is not passed on. */
    void (*write_back)(const struct qr_io *io, int fd, off_t offset, off_t size_bytes);
    int (*ftruncate)(const struct qr_io *io, int fd, off_t size_bytes);
    int (*fstat)(const struct qr_io *io, int fd, struct stat *ret_stat);
    int (*rename)(const struct qr_io *io, const char *from, const char *to);
    int (*unlink)(const struct qr_io *io, const char *path);
    int (*mkdir)(const struct qr_io *io, const char *path, mode_t mode);
    int (*rmdir)(const struct qr_io *io, const char *path);
    int (*flock)(const struct qr_io *io, int fd, int operation);
};

const struct qr_io *qr_io_system(void);
