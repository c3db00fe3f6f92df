/* The disk that loses power is only worth something if it really drops, tears and reorders what was not synced, and
 * never touches what was. */
#include "support/disk.h"
#include "support/test.h"

#include "base/compiler.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SECTOR = 512,
    FILE_BYTES = 8 * SECTOR,
    LOSSES = 120,
    OPERATIONS_BEFORE = 4, /* create or truncate, write, sync, sync of the folder */
    CRASH_HERE = 1000,
};

struct scene {
    struct disk_io io;
    const char *path, *temp, *folder;
};

static void put(struct scene *scene, const char *path, char fill, bool sync)
{
    char bytes[FILE_BYTES];
    memset(bytes, fill, sizeof bytes);
    const struct qr_io *io = &scene->io.io;
    const int fd = io->open(io, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    QR_CHECK(fd >= 0);
    QR_CHECK_INT(FILE_BYTES, io->write(io, fd, bytes, sizeof bytes));
    QR_CHECK(!sync || io->fsync(io, fd) == 0);
    io->close(io, fd);
}

static void sync_folder(struct scene *scene)
{
    const struct qr_io *io = &scene->io.io;
    const int fd = io->open(io, scene->folder, O_RDONLY | O_DIRECTORY, 0);
    QR_CHECK(fd >= 0 && io->fsync(io, fd) == 0);
    io->close(io, fd);
}

/* Begins with a durable file full of 'a', plays the scene in a child and loses power at its end. */
static void play_with(struct qr_test *t, struct disk_options options, void (*fn)(struct scene *scene))
{
    struct disk_stats *stats = options.stats;
    struct scene scene = {.path = qr_test_path(t, "file"), .temp = qr_test_path(t, "temp"), .folder = t->dir};
    unlink(scene.temp);
    *stats = (struct disk_stats){0};
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        options.crash_at = CRASH_HERE;
        struct disk *disk = disk_create(&options);
        disk_io_init(&scene.io, disk);
        put(&scene, scene.path, 'a', true);
        sync_folder(&scene);
        QR_CHECK_INT(OPERATIONS_BEFORE, stats->operations);
        fn(&scene);
        stats->operations = CRASH_HERE - 1;
        disk_mkdir(disk, qr_test_path(t, "last"), 0755);
        _exit(1);
    }
    int status;
    QR_CHECK(waitpid(child, &status, 0) == child);
    QR_CHECK(WIFEXITED(status));
    QR_CHECK_INT(DISK_POWER_LOST, WEXITSTATUS(status));
    rmdir(qr_test_path(t, "last"));
}

static void play(struct qr_test *t, uint64_t seed, void (*fn)(struct scene *scene), struct disk_stats *stats)
{
    play_with(t, (struct disk_options){.seed = seed, .stats = stats}, fn);
}

/* How many sectors are full of `fill`; -1 when there is no file. */
static int sectors_of(const char *path, char fill, off_t *ret_size)
{
    char bytes[FILE_BYTES] = {0};
    const int fd = open(path, O_RDONLY);
    if (fd < 0) {
        return -1;
    }
    *ret_size = lseek(fd, 0, SEEK_END);
    const ssize_t len = pread(fd, bytes, sizeof bytes, 0);
    close(fd);
    int count = 0;
    for (ssize_t at = 0; at + SECTOR <= len; at += SECTOR) {
        bool full = true;
        for (int i = 0; i < SECTOR; i++) {
            full = full && bytes[at + i] == fill;
        }
        count += full;
    }
    return count;
}

static void overwrite_unsynced(struct scene *scene)
{
    char bytes[FILE_BYTES];
    memset(bytes, 'b', sizeof bytes);
    const struct qr_io *io = &scene->io.io;
    const int fd = io->open(io, scene->path, O_WRONLY, 0);
    io->write(io, fd, bytes, sizeof bytes);
    io->close(io, fd);
}

QR_TEST(an_unsynced_write_is_dropped_kept_or_torn_at_sectors)
{
    struct disk_stats *stats = disk_stats_map();
    int dropped = 0, kept = 0, torn = 0;
    for (uint64_t seed = 0; seed < LOSSES; seed++) {
        play(t, seed, overwrite_unsynced, stats);
        off_t size = 0;
        const int old = sectors_of(qr_test_path(t, "file"), 'a', &size);
        const int new = sectors_of(qr_test_path(t, "file"), 'b', &size);
        QR_CHECK_INT(FILE_BYTES, size);
        QR_CHECK_INT(FILE_BYTES / SECTOR, old + new);
        QR_CHECK_INT(1, stats->pending_writes);
        QR_CHECK(new == 0 || stats->dropped_writes == 0);
        QR_CHECK(old == 0 || stats->dropped_writes + stats->torn_writes == 1);
        dropped += new == 0;
        kept += old == 0;
        torn += old && new;
    }
    QR_CHECK(dropped > LOSSES / 10 && kept > LOSSES / 10 && torn > LOSSES / 10);
    disk_stats_unmap(stats);
}

static void overwrite_synced(struct scene *scene)
{
    put(scene, scene->path, 'b', true);
}

QR_TEST(a_synced_write_is_never_touched)
{
    struct disk_stats *stats = disk_stats_map();
    for (uint64_t seed = 0; seed < LOSSES / 4; seed++) {
        play(t, seed, overwrite_synced, stats);
        off_t size = 0;
        QR_CHECK_INT(FILE_BYTES / SECTOR, sectors_of(qr_test_path(t, "file"), 'b', &size));
        QR_CHECK_INT(FILE_BYTES, size);
        QR_CHECK_INT(0, stats->pending_writes);
    }
    disk_stats_unmap(stats);
}

static void replace_without_sync(struct scene *scene)
{
    put(scene, scene->temp, 'b', false);
    QR_CHECK(scene->io.io.rename(&scene->io.io, scene->temp, scene->path) == 0);
}

QR_TEST(a_rename_may_survive_without_the_content)
{
    struct disk_stats *stats = disk_stats_map();
    int old = 0, renamed_whole = 0, renamed_without_content = 0, temp_left = 0;
    for (uint64_t seed = 0; seed < LOSSES; seed++) {
        play(t, seed, replace_without_sync, stats);
        off_t size = 0;
        if (sectors_of(qr_test_path(t, "file"), 'a', &size) == FILE_BYTES / SECTOR) {
            old++;
        } else if (sectors_of(qr_test_path(t, "file"), 'b', &size) == FILE_BYTES / SECTOR) {
            renamed_whole++;
        } else {
            renamed_without_content++;
        }
        temp_left += access(qr_test_path(t, "temp"), F_OK) == 0;
    }
    QR_CHECK(old > LOSSES / 10 && renamed_whole > LOSSES / 20 && renamed_without_content > LOSSES / 10);
    QR_CHECK(temp_left > 0 && temp_left < LOSSES);
    disk_stats_unmap(stats);
}

static void replace_and_sync_the_folder(struct scene *scene)
{
    put(scene, scene->temp, 'b', true);
    QR_CHECK(scene->io.io.rename(&scene->io.io, scene->temp, scene->path) == 0);
    sync_folder(scene);
}

QR_TEST(a_rename_is_durable_after_the_sync_of_its_folder)
{
    struct disk_stats *stats = disk_stats_map();
    for (uint64_t seed = 0; seed < LOSSES / 4; seed++) {
        play(t, seed, replace_and_sync_the_folder, stats);
        off_t size = 0;
        QR_CHECK_INT(FILE_BYTES / SECTOR, sectors_of(qr_test_path(t, "file"), 'b', &size));
        QR_CHECK(access(qr_test_path(t, "temp"), F_OK) != 0);
    }
    disk_stats_unmap(stats);
}

static void unlink_and_create_again(struct scene *scene)
{
    const struct qr_io *io = &scene->io.io;
    QR_CHECK(io->unlink(io, scene->path) == 0);
    put(scene, scene->path, 'b', true);
}

QR_TEST(a_name_goes_back_to_any_file_it_stood_for_since_the_sync)
{
    struct disk_stats *stats = disk_stats_map();
    int old = 0, none = 0, new = 0;
    for (uint64_t seed = 0; seed < LOSSES; seed++) {
        play(t, seed, unlink_and_create_again, stats);
        off_t size = 0;
        const int new_sectors = sectors_of(qr_test_path(t, "file"), 'b', &size);
        none += new_sectors < 0;
        new += new_sectors == FILE_BYTES / SECTOR;
        old += sectors_of(qr_test_path(t, "file"), 'a', &size) == FILE_BYTES / SECTOR;
    }
    QR_CHECK_INT(LOSSES, old + none + new);
    QR_CHECK(old > LOSSES / 10 && none > LOSSES / 10 && new > LOSSES / 10);
    disk_stats_unmap(stats);
}

static void shrink_and_write(struct scene *scene)
{
    const struct qr_io *io = &scene->io.io;
    const int fd = io->open(io, scene->path, O_WRONLY, 0);
    QR_CHECK(fd >= 0 && io->ftruncate(io, fd, SECTOR) == 0);
    QR_CHECK_INT(1, io->write(io, fd, "b", 1));
    io->close(io, fd);
}

QR_TEST(an_unsynced_truncate_may_come_undone)
{
    struct disk_stats *stats = disk_stats_map();
    int long_again = 0, stayed_short = 0;
    for (uint64_t seed = 0; seed < LOSSES; seed++) {
        play(t, seed, shrink_and_write, stats);
        off_t size = 0;
        const int sectors = sectors_of(qr_test_path(t, "file"), 'a', &size);
        QR_CHECK(size == FILE_BYTES || size == SECTOR);
        QR_CHECK(size == SECTOR || sectors >= FILE_BYTES / SECTOR - 1);
        long_again += size == FILE_BYTES;
        stayed_short += size == SECTOR;
    }
    QR_CHECK(long_again > LOSSES / 10 && stayed_short > LOSSES / 10);
    disk_stats_unmap(stats);
}

static void overwrite_and_sync_twice(struct scene *scene)
{
    char bytes[FILE_BYTES];
    memset(bytes, 'b', sizeof bytes);
    const struct qr_io *io = &scene->io.io;
    const int fd = io->open(io, scene->path, O_WRONLY, 0);
    QR_CHECK_INT(FILE_BYTES, io->write(io, fd, bytes, sizeof bytes));
    const int other_fd = io->open(io, scene->path, O_WRONLY, 0);
    QR_CHECK(io->fsync(io, fd) != 0);
    QR_CHECK(io->fsync(io, fd) == 0);       /* told once */
    QR_CHECK(io->fsync(io, other_fd) != 0); /* but everybody who had it open */
    QR_CHECK_INT(SECTOR, io->write(io, fd, memset(bytes, 'c', SECTOR), SECTOR));
    QR_CHECK(io->fsync(io, fd) == 0);
    io->close(io, fd);
    io->close(io, other_fd);
}

QR_TEST(what_a_failed_sync_gave_up_is_gone_although_later_syncs_succeed)
{
    struct disk_stats *stats = disk_stats_map();
    for (uint64_t seed = 0; seed < LOSSES / 4; seed++) {
        play_with(t, (struct disk_options){.seed = seed, .fail_sync_at = OPERATIONS_BEFORE + 1, .stats = stats},
                  overwrite_and_sync_twice);
        off_t size = 0;
        QR_CHECK_INT(FILE_BYTES / SECTOR, sectors_of(qr_test_path(t, "file"), 'a', &size));
        QR_CHECK_INT(FILE_BYTES + SECTOR, size);
        QR_CHECK_INT(2, stats->failed_syncs);
    }
    disk_stats_unmap(stats);
}
