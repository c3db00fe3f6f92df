/* Owns the files of larger artifacts: their names, and the sweep over what no row knows.
 *
 * The sweep looks at a file's age before it asks the database: a file that was written and is about to be adopted is
 * young (A2). Its cursor is the number of a folder in the upper bits; in the lower ones 0 at its beginning, else one more
 * than the number of its entries that were looked at and stay. */
#include "artifact/artifact_files.h"

#include "base/failpoint.h"
#include "base/fs.h"
#include "base/mem.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    AGE_MS_MIN = 60 * 60 * 1000,
    POSITION_BITS = 24,
    POSITION_MAX = (1 << POSITION_BITS) - 1,
    SWEEP_MAX = 1000, /* files in one question to the database */
};

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an artifact");
}

static char *path_of(const struct qr_artifacts *artifacts, const char *file)
{
    struct qr_buf path;
    qr_buf_init(&path, 0);
    qr_buf_printf(&path, "%s/%s", artifacts->dir, file);
    size_t ignored;
    char *taken = qr_buf_take(&path, &ignored);
    qr_buf_done(&path);
    return taken;
}

void qr_artifact_file_name(qr_uuid id, char ret_file[static QR_ARTIFACT_FILE_SIZE])
{
    char text[QR_UUID_TEXT_SIZE];
    qr_uuid_format(id, text);
    snprintf(ret_file, QR_ARTIFACT_FILE_SIZE, "%02x/%s", id.bytes[QR_UUID_BYTES - 1], text);
}

/* ---- one file ---- */

/* With its folder, which is made where it is missing; also synced where it is there: another thread may have made it, and
 * not yet. */
static qr_rc make_room(const struct qr_artifacts *artifacts, const char *file, char **ret_path, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *path = path_of(artifacts, file);
    if (!path) {
        return out_of_memory(err);
    }
    char *name = strrchr(path, '/');
    *name = '\0';
    QR_TRY(qr_fs_make_dirs(qr_artifact_io(artifacts), path, 0700, err));
    *name = '/';
    *ret_path = path;
    path = NULL;
    return QR_OK;
}

qr_rc qr_artifact_file_write(const struct qr_artifacts *artifacts, const char *file, qr_str bytes, qr_err *err)
{
    const struct qr_io *io = qr_artifact_io(artifacts);
    QR_CLEANUP(qr_free_ptr) char *path = NULL;
    QR_TRY(make_room(artifacts, file, &path, err));
    const qr_rc rc = qr_fs_replace(io, path, bytes, 0600, err);
    if (rc != QR_OK) { /* the folder's sync may have failed behind the rename */
        (void)TEMP_FAILURE_RETRY(io->unlink(io, path));
    }
    return rc;
}

qr_rc qr_artifact_file_take(const struct qr_artifacts *artifacts, const char *path, const char *file, qr_err *err)
{
    const struct qr_io *io = qr_artifact_io(artifacts);
    QR_CLEANUP(qr_free_ptr) char *to = NULL;
    QR_TRY(make_room(artifacts, file, &to, err));
    const qr_rc rc = qr_fs_move(io, path, to, err);
    if (rc != QR_OK) { /* it may have come that far */
        (void)TEMP_FAILURE_RETRY(io->unlink(io, to));
    }
    return rc;
}

qr_rc qr_artifact_file_read(const struct qr_artifacts *artifacts, const char *file, int64_t size_bytes,
                            struct qr_buf *out, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *path = path_of(artifacts, file);
    if (!path) {
        return out_of_memory(err);
    }
    return qr_fs_read(qr_artifact_io(artifacts), path, (size_t)size_bytes, out, err);
}

qr_rc qr_artifact_file_read_part(const struct qr_artifacts *artifacts, const char *file, int64_t offset, size_t len_max,
                                 struct qr_buf *out, qr_err *err)
{
    const struct qr_io *io = qr_artifact_io(artifacts);
    QR_CLEANUP(qr_free_ptr) char *path = path_of(artifacts, file);
    if (!path) {
        return out_of_memory(err);
    }
    const int fd = (int)TEMP_FAILURE_RETRY(io->open(io, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    if (fd < 0) {
        return qr_fail_errno(err, errno, "cannot open the file of the artifact %s", file);
    }
    const int errnum = qr_fs_read_part(fd, offset, len_max, out);
    io->close(io, fd);
    return errnum ? qr_fail_errno(err, errnum, "cannot read the file of the artifact %s", file) : QR_OK;
}

bool qr_artifact_file_unlink(const struct qr_artifacts *artifacts, const char *file)
{
    const struct qr_io *io = qr_artifact_io(artifacts);
    QR_CLEANUP(qr_free_ptr) char *path = path_of(artifacts, file);
    return path && atomic_load(&artifacts->keepers) == 0 && QR_FAILPOINT_RC("artifact.unlink", NULL) == QR_OK &&
           (TEMP_FAILURE_RETRY(io->unlink(io, path)) == 0 || errno == ENOENT);
}

/* False where it cannot be opened. */
static bool stat_path(const struct qr_io *io, const char *path, struct stat *ret_stat)
{
    const int fd = (int)TEMP_FAILURE_RETRY(io->open(io, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    if (fd < 0) {
        return false;
    }
    const int result = (int)TEMP_FAILURE_RETRY(io->fstat(io, fd, ret_stat));
    io->close(io, fd);
    return result == 0;
}

bool qr_artifact_is_there(const struct qr_artifacts *artifacts, const struct qr_artifact *artifact)
{
    if (artifact->file[0] == '\0') {
        return true;
    }
    struct stat stat;
    QR_CLEANUP(qr_free_ptr) char *path = artifacts->dir ? path_of(artifacts, artifact->file) : NULL;
    return path && stat_path(qr_artifact_io(artifacts), path, &stat) && S_ISREG(stat.st_mode) &&
           stat.st_size == artifact->size_bytes;
}

/* ---- the sweep ---- */

/* A file that is old enough to be asked about. */
struct candidate {
    char file[QR_ARTIFACT_FILE_SIZE];
    bool has_row;
};

struct sweep {
    const struct qr_artifacts *artifacts;
    int64_t now_ms;
    struct candidate candidates[SWEEP_MAX];
    size_t count;
    int64_t removed;
};

static qr_rc ask_for_rows(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct sweep *sweep = arg;
    for (size_t i = 0; i < sweep->count; i++) {
        struct candidate *candidate = &sweep->candidates[i];
        int64_t ignored;
        QR_TRY(qr_tx_get_i64(tx, "SELECT 1 FROM artifact WHERE file = ?1 AND file <> ''",
                             QR_VALS(qr_val_text(qr_str_of(candidate->file))), &candidate->has_row, &ignored, err));
    }
    return QR_OK;
}

/* What a process that was killed left half written. Its name has no time in it, so the file's own counts. */
static bool remove_if_stale(struct sweep *sweep, const char *folder, const char *name)
{
    const struct qr_io *io = qr_artifact_io(sweep->artifacts);
    struct stat stat;
    struct qr_buf path;
    qr_buf_init(&path, 0);
    qr_buf_printf(&path, "%s/%s", folder, name);
    const bool is_stale = path.failed == QR_CODE_NONE && stat_path(io, path.data, &stat) &&
                          (int64_t)stat.st_mtim.tv_sec * 1000 < sweep->now_ms - AGE_MS_MIN;
    const bool removed = is_stale && TEMP_FAILURE_RETRY(io->unlink(io, path.data)) == 0;
    qr_buf_done(&path);
    sweep->removed += removed;
    return removed;
}

/* Looks at one entry; false when it is gone. */
static bool look_at(struct sweep *sweep, const char *folder, unsigned number, const char *name)
{
    qr_uuid id;
    if (qr_str_starts_with(qr_str_of(name), QR_STR(QR_FS_TEMP_PREFIX))) {
        return !remove_if_stale(sweep, folder, name);
    }
    /* whatever else is there is not ours to remove */
    if (qr_uuid_parse(qr_str_of(name), &id) && id.bytes[QR_UUID_BYTES - 1] == number &&
        qr_uuid_time_ms(id) < sweep->now_ms - AGE_MS_MIN) {
        assert(sweep->count < SWEEP_MAX);
        qr_artifact_file_name(id, sweep->candidates[sweep->count++].file);
    }
    return true;
}

/* Goes through a folder from its `position` on; *ret_looked at most `limit`. *ret_kept of them are still there. True when
 * it came to the end. */
static bool look_through(struct sweep *sweep, const char *folder, unsigned number, uint32_t position, int limit,
                         int *ret_looked, uint32_t *ret_kept)
{
    int looked = 0;
    uint32_t kept = 0;
    bool at_end = true;
    DIR *dir = opendir(folder); /* one that cannot be opened has nothing to sweep: check tells what is wrong */
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (position > 0) {
            position--;
            continue;
        }
        if (looked == limit) {
            at_end = false;
            break;
        }
        looked++;
        kept += look_at(sweep, folder, number, entry->d_name);
    }
    if (dir) {
        closedir(dir);
    }
    *ret_looked = looked;
    *ret_kept = kept;
    return at_end;
}

/* Removes the candidates without a row. */
static qr_rc remove_unknown(struct sweep *sweep, struct qr_db *db, int64_t *ret_removed, qr_err *err)
{
    *ret_removed = 0;
    if (sweep->count == 0) {
        return QR_OK;
    }
    QR_TRY(qr_db_read(db, ask_for_rows, sweep, err));
    for (size_t i = 0; i < sweep->count; i++) {
        if (!sweep->candidates[i].has_row) {
            *ret_removed += qr_artifact_file_unlink(sweep->artifacts, sweep->candidates[i].file);
        }
    }
    sweep->count = 0;
    return QR_OK;
}

/* Sweeps one folder, from the cursor on; the cursor is moved only when all went well. */
static qr_rc sweep_folder(struct sweep *sweep, struct qr_db *db, uint32_t *cursor, int limit, int *ret_looked,
                          qr_err *err)
{
    const unsigned number = *cursor >> POSITION_BITS;
    const uint32_t low = *cursor & POSITION_MAX, position = low ? low - 1 : 0;
    uint32_t kept;
    int64_t removed;
    char name[3];
    snprintf(name, sizeof name, "%02x", number & 0xFFU);
    QR_CLEANUP(qr_free_ptr) char *folder = path_of(sweep->artifacts, name);
    if (!folder) {
        return out_of_memory(err);
    }
    const bool at_end = look_through(sweep, folder, number, position, limit, ret_looked, &kept);
    QR_TRY(remove_unknown(sweep, db, &removed, err));
    sweep->removed += removed;
    const uint64_t next = at_end ? ((uint64_t)number + 1) << POSITION_BITS
                                 : ((uint64_t)number << POSITION_BITS) + 1 + position + kept - (uint64_t)removed;
    *cursor = (uint32_t)next; /* behind the last folder it is 0 again */
    return QR_OK;
}

qr_rc qr_artifacts_sweep(const struct qr_artifacts *artifacts, struct qr_db *db, int64_t now_ms, uint32_t *cursor,
                         int limit, int64_t *ret_removed, qr_err *err)
{
    *ret_removed = 0;
    if (!artifacts->dir) {
        *cursor = 0;
        return QR_OK;
    }
    QR_CLEANUP(qr_free_ptr) struct sweep *sweep = qr_alloc_zero(sizeof *sweep);
    if (!sweep) {
        return out_of_memory(err);
    }
    sweep->artifacts = artifacts;
    sweep->now_ms = now_ms;
    do {
        int looked = 0;
        const qr_rc rc = sweep_folder(sweep, db, cursor, QR_MIN(limit, (int)SWEEP_MAX), &looked, err);
        *ret_removed = sweep->removed;
        QR_TRY(rc);
        limit -= looked;
    } while (limit > 0 && *cursor != 0);
    return QR_OK;
}

/* ---- the list ---- */

qr_rc qr_artifacts_list_files(struct qr_tx *tx, const char *after, int limit, struct qr_arena *arena,
                              const char ***ret_files, size_t *ret_count, qr_err *err)
{
    const char **files = qr_arena_alloc(arena, (size_t)limit * sizeof *files);
    size_t count = 0;
    QR_ROWS(rows);
    if (!files) {
        return out_of_memory(err);
    }
    QR_TRY(qr_tx_query(tx, &rows, "SELECT file FROM artifact WHERE file > ?1 AND file <> '' ORDER BY file LIMIT ?2",
                       QR_VALS(qr_val_text(qr_str_of(after)), qr_val_i64(limit)), err));
    while (count < (size_t)limit && qr_rows_next(&rows)) {
        files[count] = qr_arena_copy(arena, qr_rows_str(&rows, 0));
        if (!files[count++]) {
            return out_of_memory(err);
        }
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_files = files;
    *ret_count = count;
    return QR_OK;
}
