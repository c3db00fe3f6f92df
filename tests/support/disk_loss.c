/* Owns what a power loss makes of the files and folders: chance decides what of the pending is kept, dropped or torn.
 * Runs once, under the disk's lock, at the end of the process. */
#include "support/disk_model.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR_BYTES = 512 };

static uint64_t below(struct disk *disk, uint64_t limit)
{
    return qr_rand_below(&disk->chance.rand, limit);
}

/* ---- content ---- */

/* What chance keeps of a row of changes: one of three habits of disks and file systems. */
struct luck {
    enum { KEEP_NONE, KEEP_FIRST, KEEP_ANY } habit;
    size_t first_count; /* of KEEP_FIRST */
};
enum fate { DROPPED, TORN, KEPT };

static struct luck draw_luck(struct disk *disk, size_t count)
{
    const uint64_t pick = below(disk, 5);
    return (struct luck){pick == 0 ? KEEP_NONE : pick <= 2 ? KEEP_FIRST : KEEP_ANY, below(disk, count + 1)};
}

static enum fate draw_fate(struct disk *disk, struct luck luck, size_t index)
{
    switch (luck.habit) {
    case KEEP_NONE:
        return DROPPED;
    case KEEP_FIRST:
        if (index == luck.first_count) {
            return below(disk, 2) ? TORN : DROPPED;
        }
        return index < luck.first_count ? KEPT : DROPPED;
    case KEEP_ANY:
        break;
    }
    return (enum fate)below(disk, 3);
}

/* Any of the sectors arrive; the new size may arrive without them. */
static void replay_torn(struct disk *disk, int fd, const struct change *change)
{
    for (size_t from = 0; from < change->new_len;) {
        const size_t to_sector_end = SECTOR_BYTES - (size_t)((change->at + (off_t)from) % SECTOR_BYTES);
        const size_t len = QR_MIN(to_sector_end, change->new_len - from);
        if (below(disk, 2)) {
            disk_must_write(fd, change->new_bytes + from, len, change->at + (off_t)from);
        }
        from += len;
    }
    if (disk_size_of(fd) < change->size_after && below(disk, 2) && ftruncate(fd, change->size_after)) {
        disk_broken("ftruncate");
    }
}

static void replay(struct disk *disk, int fd, const struct change *change, enum fate fate)
{
    const bool is_truncate = !change->new_bytes;
    if (fate == DROPPED || (fate == TORN && is_truncate)) {
        disk->stats->dropped_writes++;
    } else if (fate == TORN) {
        disk->stats->torn_writes++;
        replay_torn(disk, fd, change);
    } else if (!is_truncate) {
        disk_must_write(fd, change->new_bytes, change->new_len, change->at);
    } else if (ftruncate(fd, change->size_after)) {
        disk_broken("ftruncate");
    }
}

static void lose_content(struct disk *disk, struct disk_file *file)
{
    const size_t count = file->change_count;
    struct change **oldest_first = disk_must_alloc(count * sizeof *oldest_first);
    size_t index = count;
    for (struct change *change = file->newest; change; change = change->older) {
        disk_must_write(file->fd, change->old_bytes, change->old_len, change->at);
        if (ftruncate(file->fd, change->size_before)) {
            disk_broken("ftruncate");
        }
        oldest_first[--index] = change;
    }
    disk->stats->pending_writes += count;
    const struct luck luck = draw_luck(disk, count);
    for (size_t i = 0; i < count; i++) {
        const enum fate fate = draw_fate(disk, luck, i);
        const enum change_state state = oldest_first[i]->state;
        replay(disk, file->fd, oldest_first[i], state == DURABLE ? KEPT : state == GIVEN_UP ? DROPPED : fate);
    }
    free(oldest_first);
}

/* ---- folder entries ---- */

/* What will be at a path after the loss. */
struct place {
    const char *path;
    struct disk_file *file; /* NULL = nothing */
};

static struct place *find_place(struct place *places, size_t *count, const char *path, struct disk_file *durable)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(places[i].path, path) == 0) {
            return &places[i];
        }
    }
    places[*count] = (struct place){path, durable};
    return &places[(*count)++];
}

/* The first pending entry that names a path knows what was there at the last sync. */
static size_t durable_places(struct disk *disk, struct place *places)
{
    size_t count = 0;
    for (const struct entry *entry = disk->entries; entry; entry = entry->next) {
        if (entry->kind == ENTRY_MKDIR) {
            continue;
        }
        find_place(places, &count, entry->path, entry->kind == ENTRY_CREATE ? NULL : entry->file);
        if (entry->to) {
            find_place(places, &count, entry->to, entry->overwrote);
        }
    }
    return count;
}

static void keep_entry(const struct entry *entry, struct place *places, size_t count)
{
    struct place *place = find_place(places, &count, entry->path, NULL);
    if (entry->kind == ENTRY_CREATE) {
        place->file = entry->file;
    } else if (place->file == entry->file) {
        place->file = NULL;
    }
    if (entry->to) {
        find_place(places, &count, entry->to, NULL)->file = entry->file;
    }
}

static bool is_at(const struct disk_file *file, const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_ino == file->inode && st.st_dev == file->device;
}

static void copy_file(const struct disk_file *file, const char *path)
{
    unsigned char block[65536];
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        disk_broken(path);
    }
    size_t len;
    for (off_t at = 0; (len = disk_must_read(file->fd, block, sizeof block, at)) > 0; at += (off_t)len) {
        disk_must_write(fd, block, len, at);
    }
    close(fd);
}

/* In two steps, because names may have changed places. The file behind a removed name exists only through our fd, so
 * its name comes back with a copy. */
static void settle_places(const struct place *places, size_t count)
{
    char copy[1024];
    for (int step = 1; step <= 2; step++) {
        for (size_t i = 0; i < count; i++) {
            const struct place *place = &places[i];
            snprintf(copy, sizeof copy, "%s.after-loss", place->path);
            if (!place->file) {
                if (step == 2 && unlink(place->path) && errno != ENOENT) {
                    disk_broken(place->path);
                }
            } else if (step == 1 && !is_at(place->file, place->path)) {
                copy_file(place->file, copy);
            } else if (step == 2 && access(copy, F_OK) == 0 && rename(copy, place->path)) {
                disk_broken(place->path);
            }
        }
    }
}

static int remove_any(const char *path, const struct stat *st QR_UNUSED, int type QR_UNUSED, struct FTW *ftw QR_UNUSED)
{
    return remove(path);
}

static void lose_entries(struct disk *disk)
{
    size_t entry_count = 0;
    for (const struct entry *entry = disk->entries; entry; entry = entry->next) {
        entry_count++;
    }
    struct place *places = disk_must_alloc(2 * entry_count * sizeof *places);
    const size_t place_count = durable_places(disk, places);
    const struct luck luck = draw_luck(disk, entry_count);
    struct entry **lost_folders = disk_must_alloc(entry_count * sizeof *lost_folders);
    size_t index = 0, lost_folder_count = 0;
    for (struct entry *entry = disk->entries; entry; entry = entry->next) {
        if (draw_fate(disk, luck, index++) != DROPPED) { /* an entry cannot be torn */
            if (entry->kind != ENTRY_MKDIR) {
                keep_entry(entry, places, place_count);
            }
            continue;
        }
        disk->stats->dropped_entries++;
        if (entry->kind == ENTRY_MKDIR) {
            lost_folders[lost_folder_count++] = entry;
        }
    }
    disk->stats->pending_entries += entry_count;
    settle_places(places, place_count);
    for (size_t i = 0; i < lost_folder_count; i++) { /* with all that is in them */
        nftw(lost_folders[i]->path, remove_any, 16, FTW_DEPTH | FTW_PHYS);
    }
    free(places);
    free(lost_folders);
}

void disk_lose_power(struct disk *disk, const char *operation, const char *path)
{
    snprintf(disk->stats->lost_during, sizeof disk->stats->lost_during, "%s %s", operation, path);
    for (struct disk_file *file = disk->files; file; file = file->next) {
        lose_content(disk, file);
    }
    lose_entries(disk);
    _exit(DISK_POWER_LOST); /* with the lock (invariant 3) */
}
