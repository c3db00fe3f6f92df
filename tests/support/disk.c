/* Owns what is pending on each file and in each folder; disk_loss.c owns what a power loss makes of it.
 *
 * Invariants
 *   1. The real files always show every write, rename and unlink at once: what a running program must see.
 *   2. A file's changes, undone newest first, give exactly its last content of which all was synced. The pending
 *      entries, in order, say how the names got from the last synced state to the present one.
 *   3. Everything happens under one lock, reads included. Who loses the power never gives it back: no other thread
 *      reaches the disk between the loss and the end of the process, so nothing can be synced, and then acknowledged,
 *      after it, nor can anybody see the files change. */
#include "support/disk_model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- what ends the process when it fails ---- */

void disk_broken(const char *what)
{
    fprintf(stderr, "disk model: %s: %s\n", what, strerror(errno));
    _exit(DISK_BROKEN);
}

void *disk_must_alloc(size_t size_bytes)
{
    void *block = calloc(1, size_bytes ? size_bytes : 1);
    if (!block) {
        disk_broken("out of memory");
    }
    return block;
}

void disk_must_write(int fd, const unsigned char *bytes, size_t len, off_t at)
{
    while (len) {
        const ssize_t written = pwrite(fd, bytes, len, at);
        if (written <= 0) {
            disk_broken("pwrite");
        }
        bytes += written;
        len -= (size_t)written;
        at += written;
    }
}

size_t disk_must_read(int fd, unsigned char *bytes, size_t len, off_t at)
{
    size_t done = 0;
    while (done < len) {
        const ssize_t got = pread(fd, bytes + done, len - done, at + (off_t)done);
        if (got < 0) {
            disk_broken("pread");
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return done;
}

off_t disk_size_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st)) {
        disk_broken("fstat");
    }
    return st.st_size;
}

/* ---- counting ---- */

/* Counts an operation; the planned one is the last. */
static void count_operation(struct disk *disk, const char *operation, const char *path)
{
    if (++disk->stats->operations == disk->options.crash_at) {
        disk_lose_power(disk, operation, path);
    }
}

/* For messages only: the first name that our own fd was opened by. */
static const char *name_of(const struct disk_file *file, char path[static 512])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->fd);
    const ssize_t len = readlink(link, path, 511);
    path[len > 0 ? len : 0] = '\0';
    return path;
}

static void count_file_operation(struct disk *disk, const char *operation, const struct disk_file *file)
{
    char path[512];
    const bool last = disk->stats->operations + 1 == disk->options.crash_at;
    count_operation(disk, operation, last ? name_of(file, path) : "");
}

/* ---- what is remembered ---- */

static void forget_changes(struct disk_file *file)
{
    for (struct change *change = file->newest, *older; change; change = older) {
        older = change->older;
        free(change->old_bytes);
        free(change->new_bytes);
        free(change);
    }
    file->newest = NULL;
    file->change_count = 0;
}

static bool is_pending(const struct disk *disk, const struct disk_file *file)
{
    for (const struct entry *entry = disk->entries; entry; entry = entry->next) {
        if (entry->file == file || entry->overwrote == file) {
            return true;
        }
    }
    return false;
}

/* Lets go of files on which a loss could not change anything any more. */
static void forget_settled_files(struct disk *disk)
{
    for (struct disk_file **link = &disk->files; *link;) {
        struct disk_file *file = *link;
        struct stat st;
        if (file->open_count || is_pending(disk, file) ||
            (file->change_count && fstat(file->fd, &st) == 0 && st.st_nlink)) {
            link = &file->next;
            continue;
        }
        *link = file->next;
        forget_changes(file);
        close(file->fd);
        free(file);
    }
}

/* The file at a path, watched from now on; NULL and errno. */
static struct disk_file *watch(struct disk *disk, const char *path)
{
    struct stat st;
    if (stat(path, &st)) {
        return NULL;
    }
    for (struct disk_file *file = disk->files; file; file = file->next) {
        if (file->inode == st.st_ino && file->device == st.st_dev) {
            return file;
        }
    }
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    struct disk_file *file = disk_must_alloc(sizeof *file);
    *file = (struct disk_file){.next = disk->files, .device = st.st_dev, .inode = st.st_ino, .fd = fd};
    disk->files = file;
    return file;
}

static char *must_copy(const char *text)
{
    return strcpy(disk_must_alloc(strlen(text) + 1), text);
}

static struct entry *add_entry(struct disk *disk, enum entry_kind kind, const char *path, struct disk_file *file)
{
    struct entry *entry = disk_must_alloc(sizeof *entry);
    *entry = (struct entry){.kind = kind, .path = must_copy(path), .file = file};
    *disk->entries_end = entry;
    disk->entries_end = &entry->next;
    return entry;
}

static bool is_in_folder(const char *path, const char *folder)
{
    const char *slash = strrchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) : 0;
    return slash ? strlen(folder) == len && memcmp(path, folder, len) == 0 : strcmp(folder, ".") == 0;
}

static struct change *add_change(struct disk_file *file, off_t at, size_t old_len_max)
{
    struct change *change = disk_must_alloc(sizeof *change);
    *change = (struct change){.older = file->newest, .at = at, .size_before = disk_size_of(file->fd)};
    change->old_bytes = disk_must_alloc(old_len_max);
    change->old_len = disk_must_read(file->fd, change->old_bytes, old_len_max, at);
    file->newest = change;
    file->change_count++;
    return change;
}

/* ---- what programs call ---- */

struct disk *disk_create(const struct disk_options *options)
{
    struct disk *disk = disk_must_alloc(sizeof *disk);
    disk->options = *options;
    disk->stats = options->stats ? options->stats : &disk->own_stats;
    disk->entries_end = &disk->entries;
    qr_rand_seeded_init(&disk->chance, options->seed);
    pthread_mutex_init(&disk->lock, NULL);
    return disk;
}

static void forget_entries(struct disk *disk, const char *folder) /* NULL = all */
{
    for (struct entry **link = &disk->entries; *link;) {
        struct entry *entry = *link;
        if (folder && !is_in_folder(entry->path, folder)) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        free(entry->path);
        free(entry->to);
        free(entry);
    }
    disk->entries_end = &disk->entries;
    while (*disk->entries_end) {
        disk->entries_end = &(*disk->entries_end)->next;
    }
}

void disk_free(struct disk *disk)
{
    forget_entries(disk, NULL);
    for (struct disk_file *file = disk->files; file; file = file->next) {
        forget_changes(file);
    }
    forget_settled_files(disk);
    pthread_mutex_destroy(&disk->lock);
    free(disk);
}

int disk_open(struct disk *disk, const char *path, bool created, struct disk_handle *ret_handle)
{
    QR_LOCKED(&disk->lock);
    struct disk_file *file = watch(disk, path);
    if (!file) {
        return -1;
    }
    file->open_count++;
    *ret_handle = (struct disk_handle){file, file->errors};
    if (created && !is_pending(disk, file)) { /* two threads may both believe they made it */
        add_entry(disk, ENTRY_CREATE, path, file);
        count_operation(disk, "create", path);
    }
    return 0;
}

void disk_close(struct disk *disk, struct disk_handle *handle)
{
    QR_LOCKED(&disk->lock);
    handle->file->open_count--;
    handle->file = NULL;
    forget_settled_files(disk);
}

int disk_write(struct disk *disk, struct disk_handle *handle, const void *bytes, size_t size_bytes, off_t at)
{
    QR_LOCKED(&disk->lock);
    struct disk_file *file = handle->file;
    struct change *change = add_change(file, at, size_bytes);
    change->new_len = size_bytes;
    change->new_bytes = memcpy(disk_must_alloc(size_bytes), bytes, size_bytes);
    disk_must_write(file->fd, bytes, size_bytes, at);
    change->size_after = disk_size_of(file->fd);
    count_file_operation(disk, "write", file);
    return 0;
}

int disk_truncate(struct disk *disk, struct disk_handle *handle, off_t size_bytes)
{
    QR_LOCKED(&disk->lock);
    struct disk_file *file = handle->file;
    const off_t size_now = disk_size_of(file->fd);
    struct change *change = add_change(file, size_bytes, size_now > size_bytes ? (size_t)(size_now - size_bytes) : 0);
    change->size_after = size_bytes;
    if (ftruncate(file->fd, size_bytes)) {
        disk_broken("ftruncate");
    }
    count_file_operation(disk, "truncate", file);
    return 0;
}

/* Settles what is pending as a sync does that succeeds or fails. */
static void settle_changes(struct disk_file *file, enum change_state outcome)
{
    bool any_given_up = false;
    for (struct change *change = file->newest; change; change = change->older) {
        change->state = change->state == PENDING ? outcome : change->state;
        any_given_up = any_given_up || change->state == GIVEN_UP;
    }
    if (!any_given_up) {
        forget_changes(file);
    }
}

int disk_sync(struct disk *disk, struct disk_handle *handle)
{
    QR_LOCKED(&disk->lock);
    struct disk_file *file = handle->file;
    count_file_operation(disk, "sync", file);
    if (disk->options.lies) {
        return 0;
    }
    const bool fails = disk->options.fail_sync_at && disk->stats->operations >= disk->options.fail_sync_at;
    if (fails) {
        disk->options.fail_sync_at = 0;
        file->errors++;
    }
    settle_changes(file, fails ? GIVEN_UP : DURABLE);
    if (handle->errors_seen != file->errors) {
        handle->errors_seen = file->errors;
        disk->stats->failed_syncs++;
        errno = EIO;
        return -1;
    }
    return 0;
}

int disk_sync_folder(struct disk *disk, const char *path)
{
    QR_LOCKED(&disk->lock);
    count_operation(disk, "sync", path);
    if (!disk->options.lies) {
        forget_entries(disk, path);
        forget_settled_files(disk);
    }
    return 0;
}

int disk_rename(struct disk *disk, const char *from, const char *to)
{
    QR_LOCKED(&disk->lock);
    struct disk_file *file = watch(disk, from);
    if (!file) {
        return -1;
    }
    struct disk_file *overwrote = watch(disk, to);
    if (rename(from, to)) {
        return -1;
    }
    struct entry *entry = add_entry(disk, ENTRY_RENAME, from, file);
    entry->to = must_copy(to);
    entry->overwrote = overwrote;
    count_operation(disk, "rename", to);
    return 0;
}

int disk_unlink(struct disk *disk, const char *path)
{
    QR_LOCKED(&disk->lock);
    struct disk_file *file = watch(disk, path);
    if (!file || unlink(path)) {
        return -1;
    }
    add_entry(disk, ENTRY_UNLINK, path, file);
    count_operation(disk, "unlink", path);
    return 0;
}

int disk_mkdir(struct disk *disk, const char *path, mode_t mode)
{
    QR_LOCKED(&disk->lock);
    if (mkdir(path, mode)) {
        return -1;
    }
    add_entry(disk, ENTRY_MKDIR, path, NULL);
    count_operation(disk, "mkdir", path);
    return 0;
}

void disk_read_begin(struct disk *disk)
{
    pthread_mutex_lock(&disk->lock);
}

void disk_read_end(struct disk *disk)
{
    pthread_mutex_unlock(&disk->lock);
}

struct disk_stats *disk_stats_map(void)
{
    void *shared = mmap(NULL, sizeof(struct disk_stats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        disk_broken("mmap");
    }
    return shared;
}

void disk_stats_unmap(struct disk_stats *stats)
{
    munmap(stats, sizeof *stats);
}
