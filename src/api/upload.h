/* Files that come with a request, written to the data folder as they come.
 *
 * U1  Nothing is left of an upload that was given up: what was written is removed with it (and W1, A2 for a process that
 *     is killed).
 * U2  Names are for people: no file of ours is ever called by one. */
#pragma once

#include "api/instance.h"
#include "api/multipart.h"
#include "artifact/artifact_writer.h"

enum {
    QR_UPLOAD_FILES_MAX = 500,
    QR_UPLOAD_DEPTH_MAX = 32,
    QR_UPLOAD_NAME_BYTES_MAX = 4096,
    QR_UPLOAD_ROW_BYTES_MAX = 16 << 20,    /* of small files, in memory until they are rows */
    QR_UPLOAD_MEMORY_BYTES_MAX = 64 << 20, /* where the database holds all bytes */
};

struct qr_upload_file {
    const char *name; /* relative, its folders before it: "reports/2026/june.md" */
    struct qr_new_artifact bytes;
};

/* What has become of the files, once they have come. */
enum qr_upload_fate {
    QR_UPLOAD_UNUSED,   /* no item has them: they go with the upload (U1) */
    QR_UPLOAD_TAKEN,    /* they belong to items now */
    QR_UPLOAD_IN_DOUBT, /* the write has failed, and its outcome may not be known: their rows tell */
};

struct qr_upload {
    struct quire *quire;
    struct qr_arena arena;
    struct qr_multipart multipart; /* not of one file alone */
    bool is_one_file;
    struct qr_artifact_writer writer; /* of the file that comes */
    bool is_writing;
    struct qr_upload_file *files; /* in the arena */
    size_t count;
    int64_t size_bytes, row_bytes; /* of all; of those in memory */
    enum qr_upload_fate fate;      /* set by whoever writes items */
};

/* Of multipart/form-data; NULL: the body is one file, which has no name. */
qr_rc qr_upload_init(struct qr_upload *upload, struct quire *quire, const char *content_type, qr_err *err);
/* U1 */
void qr_upload_done(struct qr_upload *upload);
/* `payload_too_large`, `invalid_value`, `bad_request`, `disk_full`, … */
qr_rc qr_upload_add(struct qr_upload *upload, qr_str bytes, qr_err *err);
/* The files are whole and durable. */
qr_rc qr_upload_finish(struct qr_upload *upload, qr_err *err);
