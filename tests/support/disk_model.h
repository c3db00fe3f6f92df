/* What a disk that loses power remembers; private to disk.c and disk_loss.c. */
#pragma once

#include "support/disk.h"

#include "base/rand.h"
#include "base/thread.h"

enum change_state {
    PENDING,  /* chance decides */
    GIVEN_UP, /* its sync failed */
    DURABLE,  /* synced, and remembered only because an older one was given up */
};

/* A write, or a truncate (no new bytes). */
struct change {
    struct change *older;
    enum change_state state;
    off_t at;
    size_t new_len, old_len; /* old_len < new_len when the file grew */
    off_t size_before, size_after;
    unsigned char *old_bytes, *new_bytes;
};

struct disk_file {
    struct disk_file *next;
    dev_t device;
    ino_t inode; /* not reused as long as we hold fd */
    int fd;      /* of our own: reaches the content under any name, or none */
    int open_count;
    struct change *newest;
    size_t change_count;
    uint64_t errors; /* failed syncs */
};

enum entry_kind { ENTRY_CREATE, ENTRY_RENAME, ENTRY_UNLINK, ENTRY_MKDIR };

/* A change of folder entries that no sync of its folder has made durable. */
struct entry {
    struct entry *next;
    enum entry_kind kind;
    char *path, *to;             /* `to` only of a rename, which stays in its folder */
    struct disk_file *file;      /* NULL of a mkdir */
    struct disk_file *overwrote; /* by a rename; may be NULL */
};

struct disk {
    pthread_mutex_t lock;
    struct disk_options options;
    struct disk_stats own_stats; /* when nobody wants them */
    struct disk_stats *stats;
    struct qr_rand_seeded chance;
    struct disk_file *files;
    struct entry *entries, **entries_end; /* oldest first */
};

/* The model cannot go on: whatever the test concludes from here would be wrong. */
QR_NORETURN void disk_broken(const char *what);

/* These end the process when they fail. Memory comes from malloc, not base/mem.h: tests that make allocations fail must
 * not fail the disk. */
void *disk_must_alloc(size_t size_bytes); /* zeroed */
void disk_must_write(int fd, const unsigned char *bytes, size_t len, off_t at);
size_t disk_must_read(int fd, unsigned char *bytes, size_t len, off_t at); /* less at the end of the file */
off_t disk_size_of(int fd);

/* Rewrites the files and folders as a loss leaves them, and ends the process. Under the lock. */
QR_NORETURN void disk_lose_power(struct disk *disk, const char *operation, const char *path);
