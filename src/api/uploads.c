/* POST /api/v1/bases/{b}/uploads: files that came with the request, and the folders that their names tell of. All in one
 * transaction: after a crash there is all of an upload or nothing. */
#include "api/items.h"
#include "api/upload.h"
#include "base/map.h"

enum { PLACES_MAX = 2 * QR_UPLOAD_FILES_MAX }; /* files, and as many folders */

struct uploading {
    const struct qr_upload *upload;
    struct qr_arena *arena;
    struct qr_map places; /* "reports/2026" → 1 + its index */
    struct qr_add_item *items;
    size_t count;
};

/* Adds the folder or file at `path`, which is in the folder `parent`. */
static qr_rc add_place(struct uploading *uploading, qr_str path, qr_str name, size_t parent,
                       const struct qr_new_artifact *owned, size_t *ret_place, qr_err *err)
{
    if (uploading->count == PLACES_MAX) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "an upload makes at most %d files and folders", (int)PLACES_MAX);
    }
    uploading->items[uploading->count++] = (struct qr_add_item){
        .type = owned ? QR_ITEM_FILE : QR_ITEM_DIRECTORY, .name = name, .parent = parent, .owned = owned};
    *ret_place = uploading->count;
    return qr_map_put(&uploading->places, path, (void *)(uintptr_t)uploading->count) ? QR_OK
                                                                                     : qr_answer_out_of_memory(err);
}

static qr_rc add_file(struct uploading *uploading, const struct qr_upload_file *file, qr_err *err)
{
    const qr_str whole = qr_str_of(file->name);
    qr_str rest = whole;
    size_t parent = 0;
    for (;;) {
        const qr_str name = qr_str_split(&rest, '/');
        const qr_str path = {whole.ptr, (size_t)(name.ptr - whole.ptr) + name.len};
        size_t place = (size_t)(uintptr_t)qr_map_find(&uploading->places, path);
        const bool is_file = rest.len == 0;
        const bool was_file = place && uploading->items[place - 1].owned;
        if (place && (is_file || was_file)) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "two files of the upload have the name %.*s", QR_STR_ARG(path));
        }
        if (!place) {
            QR_TRY(add_place(uploading, path, name, parent, is_file ? &file->bytes : NULL, &place, err));
        }
        if (is_file) {
            return QR_OK;
        }
        parent = place;
    }
}

static qr_rc add_files(struct uploading *uploading, qr_err *err)
{
    uploading->items = qr_arena_array(uploading->arena, PLACES_MAX, sizeof uploading->items[0]);
    if (!uploading->items) {
        return qr_answer_out_of_memory(err);
    }
    for (size_t i = 0; i < uploading->upload->count; i++) {
        QR_TRY(add_file(uploading, &uploading->upload->files[i], err));
    }
    return uploading->count ? QR_OK : qr_fail(err, QR_CODE_BAD_REQUEST, "the upload holds no file");
}

static qr_rc read_process(const struct qr_request *request, bool *ret_is_manual, qr_err *err)
{
    const char *process = qr_request_query(request, "process");
    *ret_is_manual = process && strcmp(process, "manual") == 0;
    return !process || *ret_is_manual || strcmp(process, "auto") == 0
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "process is one of auto, manual");
}

static qr_rc add(const struct qr_request *request, struct uploading *uploading, struct qr_reply *reply, qr_err *err)
{
    struct qr_add add = {0};
    QR_TRY(read_process(request, &add.is_manual, err));
    QR_TRY(qr_request_base_id(request, &add.base_id, err));
    QR_TRY(add_files(uploading, err));
    add.items = uploading->items;
    add.count = uploading->count;
    const qr_rc rc = qr_add_and_answer(request, &add, uploading->arena, reply, err);
    request->upload->fate = rc == QR_OK ? QR_UPLOAD_TAKEN : QR_UPLOAD_IN_DOUBT;
    return rc;
}

qr_rc qr_route_uploads(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct uploading uploading = {.upload = request->upload, .arena = &arena};
    qr_map_init(&uploading.places, 0);
    const qr_rc rc = add(request, &uploading, reply, err);
    qr_map_done(&uploading.places);
    return rc;
}
