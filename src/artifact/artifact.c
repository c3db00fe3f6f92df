/* Owns the rows of artifacts. The files of larger ones are artifact_files.c's; a row names its file. */
#include "artifact/artifact.h"

#include "artifact/artifact_files.h"
#include "base/failpoint.h"
#include "base/hash.h"

#include <assert.h>

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an artifact");
}

static struct qr_val uuid_val(const qr_uuid *id)
{
    return qr_val_blob(id->bytes, QR_UUID_BYTES);
}

static qr_uuid uuid_at(const struct qr_rows *rows, int column)
{
    qr_uuid id = {0};
    const qr_str bytes = qr_rows_str(rows, column);
    if (bytes.len == QR_UUID_BYTES) {
        memcpy(id.bytes, bytes.ptr, QR_UUID_BYTES);
    }
    return id;
}

/* ---- making one ---- */

/* Once the file is written it is this attempt's to remove, until a row adopts it. */
static qr_rc write_file(const struct qr_artifacts *artifacts, qr_uuid id, qr_str bytes, struct qr_arena *arena,
                        const char **ret_file, qr_err *err)
{
    char *file = qr_arena_alloc(arena, QR_ARTIFACT_FILE_SIZE);
    if (!file) {
        return out_of_memory(err);
    }
    qr_artifact_file_name(id, file);
    QR_TRY(qr_artifact_file_write(artifacts, file, bytes, err));
    const qr_rc rc = QR_FAILPOINT_RC("artifact.file.written", err);
    if (rc != QR_OK) {
        qr_artifact_file_unlink(artifacts, file);
        return rc;
    }
    *ret_file = file;
    return QR_OK;
}

qr_rc qr_artifact_prepare(const struct qr_artifacts *artifacts, qr_uuid new_id, enum qr_artifact_kind kind,
                          qr_str bytes, struct qr_arena *arena, struct qr_new_artifact *ret_artifact, qr_err *err)
{
    struct qr_new_artifact artifact = {.id = new_id, .kind = kind, .size_bytes = (int64_t)bytes.len};
    qr_hash_128(bytes, artifact.hash);
    if (artifacts->dir && bytes.len > QR_ARTIFACT_ROW_BYTES_MAX) {
        QR_TRY(write_file(artifacts, new_id, bytes, arena, &artifact.file, err));
    } else {
        artifact.bytes = bytes;
    }
    *ret_artifact = artifact;
    return QR_OK;
}

void qr_artifact_discard(const struct qr_artifacts *artifacts, const struct qr_new_artifact *artifact)
{
    if (artifact->file) {
        qr_artifact_file_unlink(artifacts, artifact->file);
    }
}

qr_rc qr_artifact_adopt(struct qr_tx *tx, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                        const struct qr_new_artifact *artifact, qr_err *err)
{
    assert(artifact->kind >= QR_ARTIFACT_SOURCE && artifact->kind <= QR_ARTIFACT_ASSET && generation > 0);
    if (artifact->kind != QR_ARTIFACT_ASSET) {
        QR_TRY(qr_tx_exec(tx, "DELETE FROM artifact WHERE item_id = ?1 AND kind = ?2 AND generation = ?3",
                          QR_VALS(uuid_val(&item_id), qr_val_i64(artifact->kind), qr_val_i64(generation)), NULL, err));
    }
    const qr_str bytes = artifact->bytes.len ? artifact->bytes : QR_STR("");
    return qr_tx_exec(tx,
                      "INSERT INTO artifact (id, base_id, item_id, generation, kind, size_bytes, hash, file, bytes) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                      QR_VALS(uuid_val(&artifact->id), uuid_val(&base_id), uuid_val(&item_id), qr_val_i64(generation),
                              qr_val_i64(artifact->kind), qr_val_i64(artifact->size_bytes),
                              qr_val_blob(artifact->hash, QR_HASH_BYTES),
                              qr_val_text(artifact->file ? qr_str_of(artifact->file) : QR_STR("")),
                              artifact->file ? qr_val_null() : qr_val_blob(bytes.ptr, bytes.len)),
                      NULL, err);
}

/* ---- finding and reading ---- */

#define ARTIFACT_COLUMNS "id, item_id, generation, kind, size_bytes, hash, file"

/* The artifact in the first of the rows, if there is one. */
static qr_rc take_artifact(struct qr_rows *rows, struct qr_arena *arena, bool *ret_found,
                           struct qr_artifact *ret_artifact, qr_err *err)
{
    const bool found = qr_rows_next(rows);
    if (found) {
        struct qr_artifact artifact = {
            .id = uuid_at(rows, 0),
            .item_id = uuid_at(rows, 1),
            .generation = qr_rows_i64(rows, 2),
            .kind = (enum qr_artifact_kind)qr_rows_i64(rows, 3),
            .size_bytes = qr_rows_i64(rows, 4),
            .file = qr_arena_copy(arena, qr_rows_str(rows, 6)),
        };
        const qr_str hash = qr_rows_str(rows, 5);
        memcpy(artifact.hash, hash.ptr, QR_MIN(hash.len, sizeof artifact.hash));
        if (!artifact.file) {
            return out_of_memory(err);
        }
        *ret_artifact = artifact;
    }
    QR_TRY(qr_rows_end(rows, err));
    *ret_found = found;
    return QR_OK;
}

qr_rc qr_artifact_find(struct qr_tx *tx, qr_uuid item_id, enum qr_artifact_kind kind, int64_t generation_max,
                       struct qr_arena *arena, bool *ret_found, struct qr_artifact *ret_artifact, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT " ARTIFACT_COLUMNS " FROM artifact WHERE item_id = ?1 AND kind = ?2 AND (?3 = 0 OR "
                       "generation <= ?3) ORDER BY generation DESC, id DESC LIMIT 1",
                       QR_VALS(uuid_val(&item_id), qr_val_i64(kind), qr_val_i64(generation_max)), err));
    return take_artifact(&rows, arena, ret_found, ret_artifact, err);
}

qr_rc qr_artifact_find_id(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found,
                          struct qr_artifact *ret_artifact, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(
        qr_tx_query(tx, &rows, "SELECT " ARTIFACT_COLUMNS " FROM artifact WHERE id = ?1", QR_VALS(uuid_val(&id)), err));
    return take_artifact(&rows, arena, ret_found, ret_artifact, err);
}

struct row_read {
    qr_uuid id;
    struct qr_buf *out; /* NULL = only look whether it is there */
    size_t start;       /* where the bytes begin in `out` */
    bool found;
};

static void cut(struct qr_buf *buf, size_t len)
{
    if (buf->len > len) {
        buf->len = len;
        buf->data[len] = '\0';
    }
}

static qr_rc read_row(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct row_read *read = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       read->out ? "SELECT bytes FROM artifact WHERE id = ?1" : "SELECT 1 FROM artifact WHERE id = ?1",
                       QR_VALS(uuid_val(&read->id)), err));
    read->found = qr_rows_next(&rows);
    if (read->found && read->out) {
        cut(read->out, read->start);
        qr_buf_add(read->out, qr_rows_str(&rows, 0));
        QR_TRY(qr_buf_check(read->out, err));
    }
    return qr_rows_end(&rows, err);
}

static qr_rc removed_meanwhile(qr_err *err)
{
    return qr_fail(err, QR_CODE_NOT_FOUND, "the artifact was removed meanwhile");
}

static qr_rc read_bytes(const struct qr_artifacts *artifacts, struct qr_db *db, const struct qr_artifact *artifact,
                        struct qr_buf *out, qr_err *err)
{
    struct row_read read = {.id = artifact->id, .out = out, .start = out->len};
    if (artifact->file[0] == '\0') {
        QR_TRY(qr_db_read(db, read_row, &read, err));
        return read.found ? QR_OK : removed_meanwhile(err);
    }
    if (!artifacts->dir) {
        return qr_fail(err, QR_CODE_DATA_CORRUPT, "the artifact %s is a file, and there is no folder for files",
                       artifact->file);
    }
    const qr_rc rc = qr_artifact_file_read(artifacts, artifact->file, artifact->size_bytes, out, err);
    if (rc != QR_NOT_FOUND) {
        return rc;
    }
    /* A3: a row goes before its file, so a row that is still there has lost its bytes */
    read.out = NULL;
    QR_TRY(qr_db_read(db, read_row, &read, err));
    return read.found ? qr_fail(err, QR_CODE_DATA_CORRUPT, "the file of the artifact %s is missing", artifact->file)
                      : removed_meanwhile(err);
}

static qr_rc check_bytes(const struct qr_artifact *artifact, qr_str bytes, qr_err *err)
{
    unsigned char hash[QR_HASH_BYTES];
    qr_hash_128(bytes, hash);
    if ((int64_t)bytes.len != artifact->size_bytes || memcmp(hash, artifact->hash, sizeof hash) != 0) {
        char id[QR_UUID_TEXT_SIZE];
        qr_uuid_format(artifact->id, id);
        return qr_fail(err, QR_CODE_DATA_CORRUPT, "the bytes of the artifact %s are not those that were stored", id);
    }
    return QR_OK;
}

qr_rc qr_artifact_read(const struct qr_artifacts *artifacts, struct qr_db *db, const struct qr_artifact *artifact,
                       struct qr_buf *out, qr_err *err)
{
    const size_t start = out->len;
    qr_rc rc = read_bytes(artifacts, db, artifact, out, err);
    if (rc == QR_OK) {
        rc = check_bytes(artifact, (qr_str){qr_buf_str(out).ptr + start, out->len - start}, err);
    }
    if (rc != QR_OK) {
        cut(out, start);
    }
    return rc;
}

struct part_read {
    qr_uuid id;
    int64_t offset;
    size_t len_max;
    struct qr_buf *out;
    size_t start;
    bool found;
};

static qr_rc read_row_part(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct part_read *read = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(
        tx, &rows, "SELECT substr(bytes, CAST(?2 AS INTEGER), CAST(?3 AS INTEGER)) FROM artifact WHERE id = ?1",
        QR_VALS(uuid_val(&read->id), qr_val_i64(read->offset + 1), qr_val_i64((int64_t)read->len_max)), err));
    read->found = qr_rows_next(&rows);
    if (read->found) {
        cut(read->out, read->start);
        qr_buf_add(read->out, qr_rows_str(&rows, 0));
        QR_TRY(qr_buf_check(read->out, err));
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_artifact_read_part(const struct qr_artifacts *artifacts, struct qr_db *db, const struct qr_artifact *artifact,
                            int64_t offset, size_t len_max, struct qr_buf *out, qr_err *err)
{
    struct part_read read = {artifact->id, offset, len_max, out, out->len, false};
    if (offset >= artifact->size_bytes) {
        return QR_OK;
    }
    if (artifact->file[0]) {
        return qr_artifact_file_read_part(artifacts, artifact->file, offset, len_max, out, err);
    }
    QR_TRY(qr_db_read(db, read_row_part, &read, err));
    return read.found ? QR_OK : removed_meanwhile(err);
}

/* ---- removing ---- */

/* The names of files whose rows are gone. */
struct files {
    struct qr_arena *arena;
    const char **names;
    size_t count, capacity;
};

static bool make_room(struct files *files)
{
    if (files->count < files->capacity) {
        return true;
    }
    const size_t capacity = QR_MAX((size_t)16, files->capacity * 2);
    const char **names = qr_arena_array(files->arena, capacity, sizeof names[0]);
    if (!names) {
        return false;
    }
    if (files->count) {
        memcpy(names, files->names, files->count * sizeof names[0]);
    }
    files->names = names;
    files->capacity = capacity;
    return true;
}

/* Runs a statement that removes rows and returns their files. */
static qr_rc remove_rows(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                         struct files *files, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, vals, val_count, err));
    while (qr_rows_next(&rows)) {
        const qr_str file = qr_rows_str(&rows, 0);
        if (file.len == 0) {
            continue;
        }
        const char *name = qr_arena_copy(files->arena, file);
        if (!name || !make_room(files)) {
            return out_of_memory(err);
        }
        files->names[files->count++] = name;
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_artifacts_remove(struct qr_tx *tx, const qr_uuid *item_ids, size_t count, struct qr_arena *arena,
                          const char ***ret_files, size_t *ret_file_count, qr_err *err)
{
    struct files files = {.arena = arena};
    for (size_t i = 0; i < count; i++) {
        QR_TRY(remove_rows(tx, "DELETE FROM artifact WHERE item_id = ?1 RETURNING file",
                           QR_VALS(uuid_val(&item_ids[i])), &files, err));
    }
    *ret_files = files.names;
    *ret_file_count = files.count;
    return QR_OK;
}

qr_rc qr_artifacts_purge(struct qr_tx *tx, qr_uuid item_id, int64_t live_generation, int64_t wanted_generation,
                         struct qr_arena *arena, const char ***ret_files, size_t *ret_file_count, qr_err *err)
{
    struct files files = {.arena = arena};
    /* kind 1, the source, stays until there is a newer one: an attempt of any generation reads it */
    QR_TRY(remove_rows(tx,
                       "DELETE FROM artifact WHERE item_id = ?1 AND generation <> ?2 AND generation <> ?3 AND (kind <> "
                       "1 OR generation < (SELECT max(newest.generation) FROM artifact newest WHERE newest.item_id = "
                       "?1 AND newest.kind = 1)) RETURNING file",
                       QR_VALS(uuid_val(&item_id), qr_val_i64(live_generation), qr_val_i64(wanted_generation)), &files,
                       err));
    *ret_files = files.names;
    *ret_file_count = files.count;
    return QR_OK;
}

void qr_artifacts_unlink(const struct qr_artifacts *artifacts, const char *const *files, size_t count)
{
    for (size_t i = 0; artifacts->dir && i < count; i++) {
        qr_artifact_file_unlink(artifacts, files[i]);
    }
}
