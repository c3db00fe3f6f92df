/* Owns the SQLite VFS "fault": counts the calls of the default VFS and fails the planned ones before they do anything.
 *
 * Every call that can fail goes through `fails`, which takes the only decision, under the one lock. */
#include "support/fault_vfs.h"

#include "base/thread.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct vfs_file {
    sqlite3_file base;
    enum fault_file type;
    /* the default VFS's file follows */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault_plan current;
static uint64_t matched_count, failed_count, calls[FAULT_KIND_COUNT];
static struct fault_sync sync_mode;
static sqlite3_vfs *default_vfs;
static sqlite3_vfs fault_vfs;

static struct vfs_file *own(sqlite3_file *file)
{
    return QR_CONTAINER_OF(file, struct vfs_file, base);
}

static sqlite3_file *real(sqlite3_file *file)
{
    return (sqlite3_file *)(own(file) + 1);
}

/* Counts the call; true when it is to fail. */
static bool fails(enum fault_kind kind, enum fault_file file)
{
    QR_LOCKED(&lock);
    calls[kind]++;
    if ((current.kind != FAULT_ANY && current.kind != kind) ||
        (current.file != FAULT_FILE_ANY && current.file != file)) {
        return false;
    }
    matched_count++;
    if (!current.nth || matched_count < current.nth || (matched_count > current.nth && !current.for_good)) {
        return false;
    }
    failed_count++;
    return true;
}

static int full_or(int error)
{
    QR_LOCKED(&lock);
    return current.disk_full ? SQLITE_FULL : error;
}

static int file_close(sqlite3_file *file)
{
    return real(file)->pMethods->xClose(real(file));
}

static int file_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    if (fails(FAULT_READ, own(file)->type)) {
        return SQLITE_IOERR_READ;
    }
    return real(file)->pMethods->xRead(real(file), bytes, len, at);
}

static int file_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    if (fails(FAULT_WRITE, own(file)->type)) {
        real(file)->pMethods->xWrite(real(file), bytes, len / 2, at);
        return full_or(SQLITE_IOERR_WRITE);
    }
    return real(file)->pMethods->xWrite(real(file), bytes, len, at);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    if (fails(FAULT_TRUNCATE, own(file)->type)) {
        return full_or(SQLITE_IOERR_TRUNCATE);
    }
    return real(file)->pMethods->xTruncate(real(file), size);
}

static int file_sync(sqlite3_file *file, int flags)
{
    if (fails(FAULT_SYNC, own(file)->type)) {
        return SQLITE_IOERR_FSYNC;
    }
    struct fault_sync mode;
    {
        QR_LOCKED(&lock);
        mode = sync_mode;
    }
    if (mode.delay_us > 0) {
        const struct timespec delay = {mode.delay_us / 1000000, mode.delay_us % 1000000 * 1000};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &delay, NULL);
    }
    return mode.skip ? SQLITE_OK : real(file)->pMethods->xSync(real(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    return real(file)->pMethods->xFileSize(real(file), ret_size);
}

static int file_lock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xLock(real(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xUnlock(real(file), level);
}

static int file_check_reserved(sqlite3_file *file, int *ret_reserved)
{
    return real(file)->pMethods->xCheckReservedLock(real(file), ret_reserved);
}

static int file_control(sqlite3_file *file, int operation, void *arg)
{
    return real(file)->pMethods->xFileControl(real(file), operation, arg);
}

static int file_sector_size(sqlite3_file *file)
{
    return real(file)->pMethods->xSectorSize(real(file));
}

static int file_characteristics(sqlite3_file *file)
{
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int file_shm_map(sqlite3_file *file, int region, int region_size, int extend, void volatile **ret_memory)
{
    if (fails(FAULT_SHM_MAP, own(file)->type)) {
        *ret_memory = NULL;
        return SQLITE_IOERR_SHMMAP;
    }
    return real(file)->pMethods->xShmMap(real(file), region, region_size, extend, ret_memory);
}

static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    if ((flags & SQLITE_SHM_LOCK) && fails(FAULT_SHM_LOCK, own(file)->type)) { /* an unlock cannot fail */
        return SQLITE_IOERR_SHMLOCK;
    }
    return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    real(file)->pMethods->xShmBarrier(real(file));
}

static int file_shm_unmap(sqlite3_file *file, int delete_it)
{
    return real(file)->pMethods->xShmUnmap(real(file), delete_it);
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 2, /* no memory-mapped database: every read and write is seen */
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static enum fault_file type_of(int open_flags)
{
    return open_flags & SQLITE_OPEN_MAIN_DB ? FAULT_FILE_DATABASE
           : open_flags & SQLITE_OPEN_WAL   ? FAULT_FILE_LOG
                                            : FAULT_FILE_ANY;
}

static int vfs_open(sqlite3_vfs *vfs QR_UNUSED, const char *path, sqlite3_file *file, int flags, int *ret_flags)
{
    own(file)->base.pMethods = NULL;
    own(file)->type = type_of(flags);
    if (fails(FAULT_OPEN, own(file)->type)) {
        return SQLITE_CANTOPEN;
    }
    memset(real(file), 0, (size_t)default_vfs->szOsFile);
    const int rc = default_vfs->xOpen(default_vfs, path, real(file), flags, ret_flags);
    if (rc == SQLITE_OK) {
        file->pMethods = &file_methods;
    }
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs QR_UNUSED, const char *path, int sync_folder)
{
    if (fails(FAULT_DELETE, FAULT_FILE_ANY)) {
        return SQLITE_IOERR_DELETE;
    }
    return default_vfs->xDelete(default_vfs, path, sync_folder);
}

void fault_vfs_register(void)
{
    QR_LOCKED(&lock);
    if (default_vfs) {
        return;
    }
    default_vfs = sqlite3_vfs_find("unix");
    fault_vfs = *default_vfs;
    fault_vfs.zName = "fault";
    fault_vfs.pNext = NULL;
    fault_vfs.szOsFile = (int)sizeof(struct vfs_file) + default_vfs->szOsFile;
    fault_vfs.xOpen = vfs_open;
    fault_vfs.xDelete = vfs_delete;
    if (sqlite3_vfs_register(&fault_vfs, 0) != SQLITE_OK) {
        abort();
    }
}

void fault_vfs_plan(const struct fault_plan *plan)
{
    QR_LOCKED(&lock);
    current = *plan;
    matched_count = 0;
    failed_count = 0;
}

void fault_vfs_heal(void)
{
    QR_LOCKED(&lock);
    current.nth = 0;
}

uint64_t fault_vfs_matched(void)
{
    QR_LOCKED(&lock);
    return matched_count;
}

uint64_t fault_vfs_failed(void)
{
    QR_LOCKED(&lock);
    return failed_count;
}

uint64_t fault_vfs_calls(enum fault_kind kind)
{
    QR_LOCKED(&lock);
    uint64_t sum = 0;
    for (int i = 0; i < FAULT_KIND_COUNT; i++) {
        sum += kind == FAULT_ANY || (int)kind == i ? calls[i] : 0;
    }
    return sum;
}

const char *fault_kind_name(enum fault_kind kind)
{
    static const char *const names[] = {
        [FAULT_READ] = "read",         [FAULT_WRITE] = "write",       [FAULT_SYNC] = "sync",
        [FAULT_TRUNCATE] = "truncate", [FAULT_OPEN] = "open",         [FAULT_DELETE] = "delete",
        [FAULT_SHM_MAP] = "shm map",   [FAULT_SHM_LOCK] = "shm lock", [FAULT_ANY] = "any",
    };
    return names[kind];
}

void fault_vfs_set_sync(struct fault_sync sync)
{
    QR_LOCKED(&lock);
    sync_mode = sync;
}
