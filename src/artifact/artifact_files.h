/* The files of larger artifacts. Private to src/artifact/.
 *
 * A file is called FF/ID below the artifact folder: ID is the artifact's id, FF its last byte, which is random, so that
 * 256 folders share the files evenly. */
#pragma once

#include "artifact/artifact.h"

enum { QR_ARTIFACT_FOLDERS = 256, QR_ARTIFACT_FILE_SIZE = 3 + QR_UUID_TEXT_SIZE };

static inline const struct qr_io *qr_artifact_io(const struct qr_artifacts *artifacts)
{
    return artifacts->io ? artifacts->io : qr_io_system();
}

void qr_artifact_file_name(qr_uuid id, char ret_file[static QR_ARTIFACT_FILE_SIZE]);

/* Durable on QR_OK; a failure leaves no file. */
qr_rc qr_artifact_file_write(const struct qr_artifacts *artifacts, const char *file, qr_str bytes, qr_err *err);
/* The same of a file that is written and synced at `path`, which is on the same disk. */
qr_rc qr_artifact_file_take(const struct qr_artifacts *artifacts, const char *path, const char *file, qr_err *err);
/* Appends the whole file, which has that size; `not_found` where there is none. */
qr_rc qr_artifact_file_read(const struct qr_artifacts *artifacts, const char *file, int64_t size_bytes,
                            struct qr_buf *out, qr_err *err);
/* Whether it is gone; what is not is left to the sweep, as is what comes back after a power loss: this is not durable. */
qr_rc qr_artifact_file_read_part(const struct qr_artifacts *artifacts, const char *file, int64_t offset, size_t len_max,
                                 struct qr_buf *out, qr_err *err);
bool qr_artifact_file_unlink(const struct qr_artifacts *artifacts, const char *file);
