/* Owns the SQLite VFS "powerloss": the default VFS, except that database, log and journal are written through a
 * disk that loses power.
 *
 * It makes durable exactly what the default VFS would: the first sync of a journal or log that was opened to be created
 * also syncs its folder; a database file's own name is durable only after some sync of the folder. Reads, locks and
 * shared memory go to the default VFS, which sees the same real files. */
#include "support/disk.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct vfs_file {
    sqlite3_file base;
    struct disk_handle handle;
    const char *path; /* SQLite's, as long as the file is open */
    bool sync_folder_next;
    /* the default VFS's file follows */
};

/* SQLite knows VFSs by process-wide names, so there is one. */
static struct disk *the_disk;
static sqlite3_vfs *default_vfs;
static sqlite3_vfs powerloss_vfs;

static struct vfs_file *own(sqlite3_file *file)
{
    return QR_CONTAINER_OF(file, struct vfs_file, base);
}

static sqlite3_file *real(sqlite3_file *file)
{
    return (sqlite3_file *)(own(file) + 1);
}

static void sync_folder_of(const char *path)
{
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = '\0';
    }
    disk_sync_folder(the_disk, slash ? folder : ".");
}

static int file_close(sqlite3_file *file)
{
    const int rc = real(file)->pMethods->xClose(real(file));
    disk_close(the_disk, &own(file)->handle);
    return rc;
}

static int file_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    disk_read_begin(the_disk);
    const int rc = real(file)->pMethods->xRead(real(file), bytes, len, at);
    disk_read_end(the_disk);
    return rc;
}

static int file_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    return disk_write(the_disk, &own(file)->handle, bytes, (size_t)len, at) ? SQLITE_IOERR_WRITE : SQLITE_OK;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return disk_truncate(the_disk, &own(file)->handle, size) ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

static int file_sync(sqlite3_file *file, int flags QR_UNUSED)
{
    if (disk_sync(the_disk, &own(file)->handle)) {
        return SQLITE_IOERR_FSYNC;
    }
    if (own(file)->sync_folder_next) {
        own(file)->sync_folder_next = false;
        sync_folder_of(own(file)->path);
    }
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    disk_read_begin(the_disk);
    const int rc = real(file)->pMethods->xFileSize(real(file), ret_size);
    disk_read_end(the_disk);
    return rc;
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
    if (operation == SQLITE_FCNTL_SIZE_HINT || operation == SQLITE_FCNTL_CHUNK_SIZE) {
        return SQLITE_OK; /* hints by which the default VFS would write behind the disk's back */
    }
    return real(file)->pMethods->xFileControl(real(file), operation, arg);
}

static int file_sector_size(sqlite3_file *file)
{
    return real(file)->pMethods->xSectorSize(real(file));
}

/* As the default VFS: a write never damages its neighbours. Atomic batches of the file system are not modelled. */
static int file_characteristics(sqlite3_file *file)
{
    return real(file)->pMethods->xDeviceCharacteristics(real(file)) & SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int file_shm_map(sqlite3_file *file, int region, int region_size, int extend, void volatile **ret_memory)
{
    return real(file)->pMethods->xShmMap(real(file), region, region_size, extend, ret_memory);
}

static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
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
    .iVersion = 2, /* no memory-mapped database: every write is seen */
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

static int vfs_open(sqlite3_vfs *vfs QR_UNUSED, const char *path, sqlite3_file *file, int flags, int *ret_flags)
{
    const int journals = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL;
    if (!(flags & (SQLITE_OPEN_MAIN_DB | journals)) || (flags & SQLITE_OPEN_READONLY)) {
        return default_vfs->xOpen(default_vfs, path, file, flags, ret_flags); /* temporary, or not written */
    }
    memset(own(file), 0, sizeof(struct vfs_file));
    const bool created = access(path, F_OK) != 0;
    const int rc = default_vfs->xOpen(default_vfs, path, real(file), flags, ret_flags);
    if (rc != SQLITE_OK) {
        return rc;
    }
    own(file)->path = path;
    own(file)->sync_folder_next = (flags & journals) && (flags & SQLITE_OPEN_CREATE);
    if (disk_open(the_disk, path, created, &own(file)->handle)) {
        real(file)->pMethods->xClose(real(file));
        return SQLITE_CANTOPEN;
    }
    file->pMethods = &file_methods;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs QR_UNUSED, const char *path, int sync_folder)
{
    if (disk_unlink(the_disk, path)) {
        return errno == ENOENT ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
    }
    if (sync_folder) {
        sync_folder_of(path);
    }
    return SQLITE_OK;
}

void disk_vfs_register(struct disk *disk)
{
    the_disk = disk;
    default_vfs = sqlite3_vfs_find("unix");
    powerloss_vfs = *default_vfs;
    powerloss_vfs.zName = "powerloss";
    powerloss_vfs.pNext = NULL;
    powerloss_vfs.szOsFile = (int)sizeof(struct vfs_file) + default_vfs->szOsFile;
    powerloss_vfs.xOpen = vfs_open;
    powerloss_vfs.xDelete = vfs_delete;
    if (sqlite3_vfs_register(&powerloss_vfs, 0) != SQLITE_OK) {
        abort();
    }
}
