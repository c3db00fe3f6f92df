/* Owns the fault that is armed and the counters; one of each a process, because allocators are. */
#include "support/fault.h"

#include "base/mem.h"
#include "support/test.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SWEEP_POINTS_MAX = 1000000 };

static _Atomic enum qr_fault_kind armed_kind;
static _Atomic bool armed;
static _Atomic uint64_t armed_n, calls;
static _Atomic bool fired;
static _Atomic int64_t blocks, files;

/* Counts one call of the kind; true when it is the one to fail. */
static bool is_due(enum qr_fault_kind kind)
{
    if (!armed || armed_kind != kind) {
        return false;
    }
    const uint64_t call = atomic_fetch_add(&calls, 1) + 1;
    if (call != armed_n) {
        return false;
    }
    fired = true;
    return true;
}

void qr_fault_arm(enum qr_fault_kind kind, uint64_t n)
{
    armed_kind = kind;
    armed_n = n;
    calls = 0;
    fired = false;
    armed = true;
}

void qr_fault_disarm(void)
{
    armed = false;
}

bool qr_fault_fired(void)
{
    return fired;
}

uint64_t qr_fault_calls(void)
{
    return calls;
}

int64_t qr_fault_blocks(void)
{
    return blocks;
}

int64_t qr_fault_files(void)
{
    return files;
}

/* ---- memory ---- */

static void *faulty_alloc(size_t size_bytes)
{
    void *block = is_due(QR_FAULT_MEMORY) ? NULL : malloc(size_bytes);
    blocks += block != NULL;
    return block;
}

static void *faulty_resize(void *old, size_t size_bytes)
{
    void *block = is_due(QR_FAULT_MEMORY) ? NULL : realloc(old, size_bytes);
    blocks += block && !old;
    return block;
}

static void faulty_release(void *block)
{
    blocks -= block != NULL;
    free(block);
}

/* SQLite's own allocator keeps the sizes it wants to know, so it stays underneath. */
static sqlite3_mem_methods sqlite_memory;

static void *faulty_sqlite_alloc(int size_bytes)
{
    void *block = is_due(QR_FAULT_MEMORY) ? NULL : sqlite_memory.xMalloc(size_bytes);
    blocks += block != NULL;
    return block;
}

static void *faulty_sqlite_resize(void *old, int size_bytes)
{
    return is_due(QR_FAULT_MEMORY) ? NULL : sqlite_memory.xRealloc(old, size_bytes); /* never from NULL */
}

static void faulty_sqlite_release(void *block)
{
    blocks -= block != NULL;
    sqlite_memory.xFree(block);
}

static void install_sqlite(void)
{
    int failed = sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_memory);
    sqlite3_mem_methods faulty = sqlite_memory;
    faulty.xMalloc = faulty_sqlite_alloc;
    faulty.xRealloc = faulty_sqlite_resize;
    faulty.xFree = faulty_sqlite_release;
    failed |= sqlite3_config(SQLITE_CONFIG_MALLOC, &faulty);
    failed |= sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0); /* else most allocations would not come to us */
    failed |= sqlite3_initialize();                          /* what it keeps for ever is not a leak */
    assert(!failed);
}

void qr_fault_memory_install(void)
{
    static const struct qr_mem_hooks hooks = {faulty_alloc, faulty_resize, faulty_release};
    static bool installed;
    if (!installed) {
        installed = true;
        qr_mem_set_hooks(&hooks);
        json_set_alloc_funcs(faulty_alloc, faulty_release);
        install_sqlite();
    }
}

/* ---- files ---- */

/* True with errno set when this call is to fail. A call has one kind of fault only, since only one is armed. */
static bool io_fails(void)
{
    static const struct {
        enum qr_fault_kind kind;
        int errnum;
    } failures[] = {{QR_FAULT_IO_EIO, EIO}, {QR_FAULT_IO_ENOSPC, ENOSPC}, {QR_FAULT_IO_EINTR, EINTR}};
    for (size_t i = 0; i < QR_COUNT(failures); i++) {
        if (is_due(failures[i].kind)) {
            errno = failures[i].errnum;
            return true;
        }
    }
    return false;
}

static int faulty_open(const struct qr_io *io QR_UNUSED, const char *path, int flags, mode_t mode)
{
    const int fd = io_fails() ? -1 : qr_io_system()->open(qr_io_system(), path, flags, mode);
    files += fd >= 0;
    return fd;
}

static int faulty_close(const struct qr_io *io QR_UNUSED, int fd)
{
    const bool fails = io_fails();
    const int errnum = errno;
    files--;
    if (close(fd)) {
        QR_FAIL("close of file %d, which is not open", fd);
    }
    errno = errnum;
    return fails ? -1 : 0;
}

static ssize_t faulty_read(const struct qr_io *io QR_UNUSED, int fd, void *bytes, size_t size_bytes)
{
    if (io_fails()) {
        return -1;
    }
    if (size_bytes > 1 && is_due(QR_FAULT_IO_SHORT)) {
        size_bytes /= 2;
    }
    return read(fd, bytes, size_bytes);
}

static ssize_t faulty_write(const struct qr_io *io QR_UNUSED, int fd, const void *bytes, size_t size_bytes)
{
    if (io_fails()) {
        const int errnum = errno;
        const ssize_t written = errnum == ENOSPC ? write(fd, bytes, size_bytes / 2) : 0;
        (void)written;
        errno = errnum;
        return -1;
    }
    if (size_bytes > 1 && is_due(QR_FAULT_IO_SHORT)) {
        size_bytes /= 2;
    }
    return write(fd, bytes, size_bytes);
}

static int faulty_fsync(const struct qr_io *io QR_UNUSED, int fd)
{
    return io_fails() ? -1 : fsync(fd);
}

static int faulty_ftruncate(const struct qr_io *io QR_UNUSED, int fd, off_t size_bytes)
{
    return io_fails() ? -1 : ftruncate(fd, size_bytes);
}

static int faulty_fstat(const struct qr_io *io QR_UNUSED, int fd, struct stat *ret_stat)
{
    return io_fails() ? -1 : fstat(fd, ret_stat);
}

static int faulty_rename(const struct qr_io *io QR_UNUSED, const char *from, const char *to)
{
    return io_fails() ? -1 : rename(from, to);
}

static int faulty_unlink(const struct qr_io *io QR_UNUSED, const char *path)
{
    return io_fails() ? -1 : unlink(path);
}

static int faulty_mkdir(const struct qr_io *io QR_UNUSED, const char *path, mode_t mode)
{
    return io_fails() ? -1 : mkdir(path, mode);
}

static int faulty_rmdir(const struct qr_io *io QR_UNUSED, const char *path)
{
    return io_fails() ? -1 : rmdir(path);
}

static int faulty_flock(const struct qr_io *io QR_UNUSED, int fd, int operation)
{
    return io_fails() ? -1 : qr_io_system()->flock(qr_io_system(), fd, operation);
}

const struct qr_io *qr_fault_io(void)
{
    static const struct qr_io faulty_io = {
        .open = faulty_open,
        .close = faulty_close,
        .read = faulty_read,
        .write = faulty_write,
        .fsync = faulty_fsync,
        .ftruncate = faulty_ftruncate,
        .fstat = faulty_fstat,
        .rename = faulty_rename,
        .unlink = faulty_unlink,
        .mkdir = faulty_mkdir,
        .rmdir = faulty_rmdir,
        .flock = faulty_flock,
    };
    return &faulty_io;
}

/* ---- the sweep ---- */

static const char *kind_name(enum qr_fault_kind kind)
{
    static const char *const names[] = {
        [QR_FAULT_MEMORY] = "allocations",
        [QR_FAULT_IO_EIO] = "calls with EIO",
        [QR_FAULT_IO_ENOSPC] = "calls with ENOSPC",
        [QR_FAULT_IO_EINTR] = "calls with EINTR",
        [QR_FAULT_IO_SHORT] = "short reads and writes",
    };
    return names[kind];
}

static bool run_failing(enum qr_fault_kind kind, uint64_t n, void (*scenario)(void *arg), void *arg)
{
    const int64_t blocks_before = blocks, files_before = files;
    qr_test_set_context("failing %s no. %llu", kind_name(kind), (unsigned long long)n);
    qr_fault_arm(kind, n);
    scenario(arg);
    qr_fault_disarm();
    QR_CHECK_INT(blocks_before, qr_fault_blocks());
    QR_CHECK_INT(files_before, qr_fault_files());
    return qr_fault_fired();
}

static uint64_t sweep(enum qr_fault_kind kind, uint64_t stride, void (*scenario)(void *arg), void *arg)
{
    run_failing(kind, 0, scenario, arg);
    uint64_t points = 0;
    while (run_failing(kind, 1 + points * stride, scenario, arg)) {
        points++;
        QR_CHECK(points < SWEEP_POINTS_MAX);
    }
    qr_test_set_context("%s", "");
    printf("     failed %llu %s in turn\n", (unsigned long long)points, kind_name(kind));
    QR_CHECK(points > 0);
    return points;
}

uint64_t qr_fault_sweep(enum qr_fault_kind kind, void (*scenario)(void *arg), void *arg)
{
    return sweep(kind, 1, scenario, arg);
}

uint64_t qr_fault_sweep_sparsely(enum qr_fault_kind kind, void (*scenario)(void *arg), void *arg)
{
    return sweep(kind, getenv("QUIRE_TEST_LONG") ? 1 : 7, scenario, arg);
}
