/* What comes with a request goes to disk (api/upload.h). */
#include "api/upload.h"

/* ---- names ---- */

static bool is_good_part(qr_str part)
{
    enum { PART_BYTES_MAX = 255 };
    if (part.len == 0 || part.len > PART_BYTES_MAX || qr_str_equal(part, QR_STR(".")) ||
        qr_str_equal(part, QR_STR(".."))) {
        return false;
    }
    for (size_t i = 0; i < part.len; i++) {
        if ((unsigned char)part.ptr[i] < ' ' || part.ptr[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Backslashes are slashes: there are browsers that send a path as their system writes it. */
static qr_rc read_name(struct qr_upload *upload, qr_str filename, const char **ret_name, qr_err *err)
{
    char *name = qr_arena_copy(&upload->arena, filename);
    if (!name) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an upload");
    }
    for (char *at = name; *at; at++) {
        *at = *at == '\\' ? '/' : *at;
    }
    qr_str rest = {name, filename.len};
    size_t depth = 0;
    bool is_good = filename.len > 0 && filename.len <= QR_UPLOAD_NAME_BYTES_MAX && qr_utf8_valid(filename) &&
                   !qr_str_ends_with(rest, QR_STR("/"));
    while (is_good && rest.len) {
        is_good = is_good_part(qr_str_split(&rest, '/')) && ++depth <= QR_UPLOAD_DEPTH_MAX;
    }
    if (!is_good) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "the name of file %zu is not a relative path: no . or .., no empty part, at most %d folders",
                       upload->count + 1, (int)QR_UPLOAD_DEPTH_MAX - 1);
    }
    *ret_name = name;
    return QR_OK;
}

/* ---- files ---- */

static qr_rc begin_file(struct qr_upload *upload, const char *name, qr_err *err)
{
    struct quire *quire = upload->quire;
    if (upload->count == QR_UPLOAD_FILES_MAX) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "an upload has at most %d files", (int)QR_UPLOAD_FILES_MAX);
    }
    const int64_t row_bytes_left =
        QR_UPLOAD_ROW_BYTES_MAX - QR_MIN(upload->row_bytes, (int64_t)QR_UPLOAD_ROW_BYTES_MAX);
    QR_TRY(qr_artifact_writer_init(&upload->writer, &quire->artifacts, qr_uuid_next(&quire->ids), QR_ARTIFACT_SOURCE,
                                   (size_t)QR_MIN(row_bytes_left, (int64_t)QR_ARTIFACT_ROW_BYTES_MAX), err));
    upload->is_writing = true;
    upload->files[upload->count].name = name;
    return QR_OK;
}

static qr_rc begin_part(void *arg, qr_str filename, qr_err *err)
{
    struct qr_upload *upload = arg;
    const char *name = NULL;
    if (!filename.ptr) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "a part of the upload is no file: it has no filename");
    }
    QR_TRY(read_name(upload, filename, &name, err));
    return begin_file(upload, name, err);
}

static qr_rc take_bytes(void *arg, qr_str bytes, qr_err *err)
{
    struct qr_upload *upload = arg;
    upload->size_bytes += (int64_t)bytes.len;
    if (!upload->quire->artifacts.dir && upload->size_bytes > QR_UPLOAD_MEMORY_BYTES_MAX) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "on PostgreSQL an upload has at most %d MB",
                       QR_UPLOAD_MEMORY_BYTES_MAX >> 20);
    }
    const int64_t limit = qr_config_number(qr_instance_config(upload->quire), QR_CONFIG_SERVER_UPLOAD_LIMIT);
    if (upload->size_bytes > limit) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "an upload has at most %lld bytes", (long long)limit);
    }
    return qr_artifact_writer_add(&upload->writer, bytes, err);
}

static qr_rc end_file(void *arg, qr_err *err)
{
    struct qr_upload *upload = arg;
    struct qr_upload_file *file = &upload->files[upload->count];
    const qr_rc rc = qr_artifact_writer_finish(&upload->writer, &upload->arena, &file->bytes, err);
    qr_artifact_writer_done(&upload->writer);
    upload->is_writing = false;
    if (rc == QR_OK) {
        upload->count++;
        upload->row_bytes += (int64_t)file->bytes.bytes.len;
    }
    return rc;
}

/* ---- the whole ---- */

static qr_rc begin(struct qr_upload *upload, const char *content_type, qr_err *err)
{
    static const struct qr_multipart_sink sink = {begin_part, take_bytes, end_file};
    upload->files = qr_arena_array(&upload->arena, QR_UPLOAD_FILES_MAX, sizeof upload->files[0]);
    if (!upload->files) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an upload");
    }
    upload->is_one_file = !content_type;
    return upload->is_one_file ? begin_file(upload, "", err)
                               : qr_multipart_init(&upload->multipart, content_type, &sink, upload, err);
}

qr_rc qr_upload_init(struct qr_upload *upload, struct quire *quire, const char *content_type, qr_err *err)
{
    *upload = (struct qr_upload){.quire = quire};
    qr_arena_init(&upload->arena, 0);
    const qr_rc rc = begin(upload, content_type, err);
    if (rc != QR_OK) {
        qr_arena_done(&upload->arena);
    }
    return rc;
}

static void settle(const struct qr_upload *upload, const struct qr_new_artifact *bytes)
{
    const struct qr_artifacts *artifacts = &upload->quire->artifacts;
    switch (upload->fate) {
    case QR_UPLOAD_IN_DOUBT:
        qr_artifact_settle_by_row(artifacts, upload->quire->db, bytes);
        break;
    case QR_UPLOAD_UNUSED:
        qr_artifact_discard(artifacts, bytes);
        qr_artifact_settle(artifacts, bytes);
        break;
    case QR_UPLOAD_TAKEN:
        qr_artifact_settle(artifacts, bytes);
        break;
    }
}

void qr_upload_done(struct qr_upload *upload)
{
    if (upload->is_writing) {
        qr_artifact_writer_done(&upload->writer);
    }
    for (size_t i = 0; i < upload->count; i++) {
        settle(upload, &upload->files[i].bytes);
    }
    qr_multipart_done(&upload->multipart);
    qr_arena_done(&upload->arena);
}

qr_rc qr_upload_add(struct qr_upload *upload, qr_str bytes, qr_err *err)
{
    return upload->is_one_file ? take_bytes(upload, bytes, err) : qr_multipart_add(&upload->multipart, bytes, err);
}

qr_rc qr_upload_finish(struct qr_upload *upload, qr_err *err)
{
    return upload->is_one_file ? end_file(upload, err) : qr_multipart_finish(&upload->multipart, err);
}
