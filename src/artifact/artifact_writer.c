/* Writes an artifact as it comes (artifact/artifact_writer.h). */
#include "artifact/artifact_writer.h"

#include "artifact/artifact_files.h"
#include "base/failpoint.h"
#include "base/fs.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an artifact");
}

qr_rc qr_artifact_writer_init(struct qr_artifact_writer *writer, const struct qr_artifacts *artifacts, qr_uuid new_id,
                              enum qr_artifact_kind kind, size_t row_bytes_max, qr_err *err)
{
    *writer = (struct qr_artifact_writer){.artifacts = artifacts,
                                          .id = new_id,
                                          .kind = kind,
                                          .row_bytes_max = row_bytes_max,
                                          .hash = qr_hash_stream_create(),
                                          .fd = -1};
    return writer->hash ? QR_OK : out_of_memory(err);
}

static void close_temp(struct qr_artifact_writer *writer)
{
    const struct qr_io *io = qr_artifact_io(writer->artifacts);
    if (writer->fd >= 0) {
        io->close(io, writer->fd);
        writer->fd = -1;
    }
}

void qr_artifact_writer_done(struct qr_artifact_writer *writer)
{
    close_temp(writer);
    if (writer->temp) { /* W1 */
        const struct qr_io *io = qr_artifact_io(writer->artifacts);
        (void)TEMP_FAILURE_RETRY(io->unlink(io, writer->temp));
        qr_free(writer->temp);
        writer->temp = NULL;
    }
    qr_buf_done(&writer->small);
    qr_hash_stream_free(writer->hash);
    writer->hash = NULL;
}

/* ---- the bytes ---- */

/* Beside the artifact folder, where the next opening looks for what was left (qr_fs_sweep, qr_artifacts_settle_left). */
static char *path_beside(const struct qr_artifacts *artifacts, const char *prefix, const char *name)
{
    const qr_str folder = qr_path_parent(qr_str_of(artifacts->dir));
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    size_t ignored;
    qr_buf_printf(&path, "%.*s/%s%s", QR_STR_ARG(folder), prefix, name);
    return qr_buf_take(&path, &ignored);
}

static char *path_of_id(const struct qr_artifacts *artifacts, const char *prefix, qr_uuid id)
{
    char text[QR_UUID_TEXT_SIZE];
    qr_uuid_format(id, text);
    return path_beside(artifacts, prefix, text);
}

static qr_rc open_temp(struct qr_artifact_writer *writer, qr_err *err)
{
    const struct qr_io *io = qr_artifact_io(writer->artifacts);
    char *temp = path_of_id(writer->artifacts, QR_FS_TEMP_PREFIX, writer->id);
    if (!temp) {
        return out_of_memory(err);
    }
    writer->fd = (int)TEMP_FAILURE_RETRY(io->open(io, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    if (writer->fd < 0) {
        const qr_rc rc = qr_fail_errno(err, errno, "cannot make the file %s", temp);
        qr_free(temp);
        return rc;
    }
    writer->temp = temp;
    return QR_OK;
}

/* Else the disk has nothing to do while the bytes come, and all of it when they are synced. */
static void write_back(struct qr_artifact_writer *writer)
{
    enum { PART_BYTES = 8 << 20 };
    const struct qr_io *io = qr_artifact_io(writer->artifacts);
    if (io->write_back && writer->size_bytes - writer->begun_bytes >= PART_BYTES) {
        io->write_back(io, writer->fd, writer->begun_bytes, writer->size_bytes - writer->begun_bytes);
        writer->begun_bytes = writer->size_bytes;
    }
}

static qr_rc write_bytes(struct qr_artifact_writer *writer, qr_str bytes, qr_err *err)
{
    const struct qr_io *io = qr_artifact_io(writer->artifacts);
    while (bytes.len) {
        const ssize_t written = TEMP_FAILURE_RETRY(io->write(io, writer->fd, bytes.ptr, bytes.len));
        if (written <= 0) {
            return qr_fail_errno(err, written < 0 ? errno : EIO, "cannot write %s", writer->temp);
        }
        bytes = (qr_str){bytes.ptr + written, bytes.len - (size_t)written};
    }
    return QR_OK;
}

qr_rc qr_artifact_writer_add(struct qr_artifact_writer *writer, qr_str bytes, qr_err *err)
{
    const bool fits = bytes.len <= writer->row_bytes_max - QR_MIN(writer->small.len, writer->row_bytes_max);
    qr_hash_stream_add(writer->hash, bytes);
    writer->size_bytes += (int64_t)bytes.len;
    if (!writer->temp && (fits || !writer->artifacts->dir)) {
        qr_buf_add(&writer->small, bytes);
        return qr_buf_check(&writer->small, err);
    }
    if (!writer->temp) {
        QR_TRY(open_temp(writer, err));
        QR_TRY(write_bytes(writer, qr_buf_str(&writer->small), err));
        qr_buf_done(&writer->small);
    }
    QR_TRY(write_bytes(writer, bytes, err));
    write_back(writer);
    return QR_OK;
}

/* ---- marks (W2) ---- */

#define MARK_PREFIX ".quire-mark-"

static qr_rc set_mark(const struct qr_artifacts *artifacts, qr_uuid id, qr_err *err)
{
    const struct qr_io *io = qr_artifact_io(artifacts);
    QR_CLEANUP(qr_free_ptr) char *path = path_of_id(artifacts, MARK_PREFIX, id);
    if (!path) {
        return out_of_memory(err);
    }
    const int fd = (int)TEMP_FAILURE_RETRY(io->open(io, path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600));
    if (fd < 0) {
        return qr_fail_errno(err, errno, "cannot make the file %s", path);
    }
    io->close(io, fd); /* nothing is in it */
    return QR_OK;
}

static void remove_mark(const struct qr_artifacts *artifacts, qr_uuid id)
{
    const struct qr_io *io = qr_artifact_io(artifacts);
    QR_CLEANUP(qr_free_ptr) char *path = path_of_id(artifacts, MARK_PREFIX, id);
    if (path) { /* else it is left to the next opening */
        (void)TEMP_FAILURE_RETRY(io->unlink(io, path));
    }
}

void qr_artifact_settle(const struct qr_artifacts *artifacts, const struct qr_new_artifact *artifact)
{
    if (artifact->file) {
        remove_mark(artifacts, artifact->id);
    }
}

struct row_look {
    qr_uuid id;
    bool has_row;
};

static qr_rc look_for_row(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct row_look *look = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_artifact ignored;
    qr_arena_init(&arena, 0);
    return qr_artifact_find_id(tx, look->id, &arena, &look->has_row, &ignored, err);
}

static qr_rc settle_by_row(const struct qr_artifacts *artifacts, struct qr_db *db, qr_uuid id, qr_err *err)
{
    struct row_look look = {.id = id};
    QR_TRY(qr_db_read(db, look_for_row, &look, err));
    if (!look.has_row) {
        char file[QR_ARTIFACT_FILE_SIZE];
        qr_artifact_file_name(id, file);
        (void)qr_artifact_file_unlink(artifacts, file); /* it may never have been named */
    }
    remove_mark(artifacts, id);
    return QR_OK;
}

void qr_artifact_settle_by_row(const struct qr_artifacts *artifacts, struct qr_db *db,
                               const struct qr_new_artifact *artifact)
{
    if (artifact->file) {
        (void)settle_by_row(artifacts, db, artifact->id,
                            NULL); /* what cannot be asked now is left to the next opening */
    }
}

qr_rc qr_artifacts_settle_left(const struct qr_artifacts *artifacts, struct qr_db *db, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *folder = artifacts->dir ? path_beside(artifacts, "", "") : NULL;
    if (!folder) {
        return artifacts->dir ? out_of_memory(err) : QR_OK;
    }
    DIR *dir = opendir(folder);
    qr_rc rc = QR_OK;
    for (const struct dirent *entry; dir && rc == QR_OK && (entry = readdir(dir));) {
        qr_uuid id;
        qr_str name = qr_str_of(entry->d_name);
        if (qr_str_starts_with(name, QR_STR(MARK_PREFIX))) {
            name = (qr_str){name.ptr + strlen(MARK_PREFIX), name.len - strlen(MARK_PREFIX)};
            rc = qr_uuid_parse(name, &id) ? settle_by_row(artifacts, db, id, err) : QR_OK;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return rc;
}

/* ---- the end ---- */

static qr_rc sync_temp(struct qr_artifact_writer *writer, qr_err *err)
{
    const struct qr_io *io = qr_artifact_io(writer->artifacts);
    if (TEMP_FAILURE_RETRY(io->fsync(io, writer->fd)) != 0) {
        return qr_fail_errno(err, errno, "cannot sync %s", writer->temp);
    }
    const int fd = writer->fd;
    writer->fd = -1;
    return io->close(io, fd) == 0 ? QR_OK : qr_fail_errno(err, errno, "cannot close %s", writer->temp);
}

static qr_rc take_marked(struct qr_artifact_writer *writer, const char *file, qr_err *err)
{
    QR_TRY(qr_artifact_file_take(writer->artifacts, writer->temp, file, err));
    qr_free(writer->temp);
    writer->temp = NULL;
    const qr_rc rc = QR_FAILPOINT_RC("artifact.file.written", err);
    if (rc != QR_OK) {
        qr_artifact_file_unlink(writer->artifacts, file);
    }
    return rc;
}

/* A2: under its own name, durable, before a row says so. */
static qr_rc name_file(struct qr_artifact_writer *writer, struct qr_arena *arena, const char **ret_file, qr_err *err)
{
    char *file = qr_arena_alloc(arena, QR_ARTIFACT_FILE_SIZE);
    if (!file) {
        return out_of_memory(err);
    }
    qr_artifact_file_name(writer->id, file);
    QR_TRY(sync_temp(writer, err));
    QR_TRY(set_mark(writer->artifacts, writer->id, err));
    const qr_rc rc = take_marked(writer, file, err);
    if (rc != QR_OK) {
        remove_mark(writer->artifacts, writer->id);
        return rc;
    }
    *ret_file = file;
    return QR_OK;
}

qr_rc qr_artifact_writer_finish(struct qr_artifact_writer *writer, struct qr_arena *arena,
                                struct qr_new_artifact *ret_artifact, qr_err *err)
{
    struct qr_new_artifact artifact = {.id = writer->id, .kind = writer->kind, .size_bytes = writer->size_bytes};
    qr_hash_stream_result(writer->hash, artifact.hash);
    if (writer->temp) {
        QR_TRY(name_file(writer, arena, &artifact.file, err));
    } else {
        const char *copy = qr_arena_copy(arena, qr_buf_str(&writer->small));
        if (!copy) {
            return out_of_memory(err);
        }
        artifact.bytes = (qr_str){copy, writer->small.len};
        qr_buf_done(&writer->small);
    }
    *ret_artifact = artifact;
    return QR_OK;
}
