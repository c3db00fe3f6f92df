/* POST /api/v1/backup: copies the data folder while it is in use. */
#include "api/backup.h"
#include "api/lookup.h"

#include <stdio.h>

/* DATA/backups/TIME, where an admin from elsewhere may put one: where else something may be written on this machine is its owner's
 * business. */
static qr_rc default_path(const struct quire *quire, struct qr_buf *out, qr_err *err)
{
    char now[QR_TIME_TEXT_SIZE];
    qr_time_format(qr_clock_wall_ms(quire->clock), now);
    qr_buf_printf(out, "%s/backups", qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR));
    QR_TRY(qr_buf_check(out, err));
    QR_TRY(qr_fs_make_dirs(quire->io, out->data, 0700, err));
    qr_buf_printf(out, "/%s", now);
    return qr_buf_check(out, err);
}

static qr_rc choose_path(const struct qr_request *request, struct qr_buf *out, qr_err *err)
{
    const char *path;
    QR_TRY(qr_field_text(request->body, "", "path", &path, err));
    if (!path) {
        return default_path(request->quire, out, err);
    }
    if (request->caller.right < QR_RIGHT_LOCAL) {
        return qr_fail(err, QR_CODE_FORBIDDEN, "a path of this machine is for its owner to name; leave it out");
    }
    qr_buf_add_text(out, path);
    return qr_buf_check(out, err);
}

qr_rc qr_route_backup(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    struct qr_backup_result result;
    QR_TRY(choose_path(request, &path, err));
    QR_TRY(qr_backup_make(request->quire, path.data, &result, err));
    return qr_reply_with(reply, 201,
                         json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "path", path.data, "bytes",
                                   (json_int_t)result.size_bytes, "index_stores", (json_int_t)result.stores,
                                   "index_stores_left_out", (json_int_t)result.left_out, "artifacts",
                                   (json_int_t)result.artifacts, "artifacts_missing", (json_int_t)result.missing,
                                   "held_ms", (json_int_t)result.held_ms, "took_ms", (json_int_t)result.took_ms),
                         err);
}
