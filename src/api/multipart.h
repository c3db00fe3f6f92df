/* Reads a body of the type multipart/form-data, in whatever pieces it comes, in memory that does not grow with it. The bytes
 * are foreign: what is not plainly such a body is refused. */
#pragma once

#include "base/buf.h"

enum {
    QR_MULTIPART_HEAD_BYTES_MAX = 8 << 10, /* the headers of one part */
    QR_MULTIPART_BOUNDARY_BYTES_MAX = 200, /* 70 by the standard */
};

/* Who is told. */
struct qr_multipart_sink {
    /* `filename` is as sent, unescaped, and good for the call; ptr NULL = the part is no file. */
    qr_rc (*begin)(void *arg, qr_str filename, qr_err *err);
    qr_rc (*bytes)(void *arg, qr_str bytes, qr_err *err);
    qr_rc (*end)(void *arg, qr_err *err);
};

enum qr_multipart_state { QR_MULTIPART_DELIMITER, QR_MULTIPART_HEAD, QR_MULTIPART_BODY, QR_MULTIPART_END };

struct qr_multipart {
    const struct qr_multipart_sink *sink;
    void *arg;
    struct qr_buf delimiter; /* CR LF and two dashes before the boundary */
    struct qr_buf held;      /* what could not be told apart yet */
    enum qr_multipart_state state;
};

/* `unsupported_media_type` unless the type is multipart/form-data with a boundary. On failure there is nothing to release. */
qr_rc qr_multipart_init(struct qr_multipart *multipart, const char *content_type, const struct qr_multipart_sink *sink,
                        void *arg, qr_err *err);
void qr_multipart_done(struct qr_multipart *multipart);
/* `bad_request`, or what the sink fails with; then it is over. */
qr_rc qr_multipart_add(struct qr_multipart *multipart, qr_str bytes, qr_err *err);
/* The body has ended: `bad_request` when that cuts it. */
qr_rc qr_multipart_finish(const struct qr_multipart *multipart, qr_err *err);
