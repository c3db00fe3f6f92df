/* A disk that loses power, for tests: real files in a folder, and a memory of what was not synced yet.
 *
 * Programs see their writes at once, as they would through the page cache. When power is lost, each file becomes what
 * its last sync made durable plus whatever part of the later writes chance kept: none, the first few, any of them, each
 * perhaps torn at a 512-byte sector. Folder entries (create, rename, unlink, mkdir) are durable only after a sync of
 * their folder, independently of the content: a rename may survive although the bytes of the file did not. Then the
 * process ends with DISK_POWER_LOST.
 *
 * disk_vfs_register puts SQLite on such a disk, disk_io_init our own files. Both may share one. */
#pragma once

#include "base/io.h"

enum { DISK_POWER_LOST = 99, DISK_BROKEN = 98 }; /* exit codes; broken = the model itself could not go on */

/* Lives in memory that parent and child share, so that it outlasts the loss. */
struct disk_stats {
    uint64_t operations; /* writes, syncs, truncates, entry changes so far: what crash_at counts */
    uint64_t pending_writes, dropped_writes, torn_writes; /* truncates count as writes */
    uint64_t pending_entries, dropped_entries;
    uint64_t failed_syncs;
    char lost_during[128]; /* "write PATH", "sync PATH", … */
};

struct disk_options {
    uint64_t seed;            /* of what is kept */
    uint64_t crash_at;        /* power is lost during this operation, counted from 1; 0 = never */
    uint64_t fail_sync_at;    /* the first sync of a file from this operation on fails; 0 = none */
    bool lies;                /* syncs return at once and make nothing durable: the negative control */
    struct disk_stats *stats; /* may be NULL */
};

struct disk;
struct disk_file; /* a file under any name, or none any more */

/* An open file. As on Linux, each is told once of a failed sync, by its next sync. */
struct disk_handle {
    struct disk_file *file;
    uint64_t errors_seen;
};

struct disk *disk_create(const struct disk_options *options);
/* For a process that ends without a loss. No file may be open. */
void disk_free(struct disk *disk);

/* All as the system calls: 0, or -1 and errno.
 *
 * Begins to watch a file that the caller has just opened for writing; `created` says that this open made it. */
int disk_open(struct disk *disk, const char *path, bool created, struct disk_handle *ret_handle);
void disk_close(struct disk *disk, struct disk_handle *handle);
int disk_write(struct disk *disk, struct disk_handle *handle, const void *bytes, size_t size_bytes, off_t at);
int disk_truncate(struct disk *disk, struct disk_handle *handle, off_t size_bytes);
/* When it fails, the kernel has given up what was to be written: programs still see it, later syncs succeed, but it is
 * gone after the loss. */
int disk_sync(struct disk *disk, struct disk_handle *handle);
int disk_sync_folder(struct disk *disk, const char *path);
int disk_rename(struct disk *disk, const char *from, const char *to);
int disk_unlink(struct disk *disk, const char *path);
int disk_mkdir(struct disk *disk, const char *path, mode_t mode);

/* Around every read: nobody may see how a loss rewrites the files. */
void disk_read_begin(struct disk *disk);
void disk_read_end(struct disk *disk);

/* Zeroed memory shared with children. */
struct disk_stats *disk_stats_map(void);
void disk_stats_unmap(struct disk_stats *stats);

/* Registers the SQLite VFS "powerloss": database, log and journal on the disk. The shared-memory file is not on it:
 * after a loss it must be deleted, as a restart of the machine would. */
void disk_vfs_register(struct disk *disk);

/* A table of I/O functions over the disk. */
enum { DISK_IO_FDS_MAX = 1024 };
struct disk_io {
    struct qr_io io;
    struct disk *disk;
    struct {
        struct disk_handle handle; /* file NULL = not open for writing */
        char *folder;              /* NULL = not a folder */
    } fds[DISK_IO_FDS_MAX];
};
void disk_io_init(struct disk_io *disk_io, struct disk *disk);
