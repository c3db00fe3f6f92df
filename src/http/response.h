/* Reads the answer to an HTTP/1.1 request, in whatever pieces it comes. The bytes are foreign: limits hold for all of
 * them, and what is not plainly one answer is refused. */
#pragma once

#include "base/buf.h"

enum {
    QR_HTTP_LINE_BYTES_MAX = 8 * 1024,
    QR_HTTP_HEAD_BYTES_MAX = 32 * 1024, /* status line, headers and trailers together, interim answers included */
};

enum qr_http_part {
    QR_HTTP_STATUS_LINE,
    QR_HTTP_HEADERS,
    QR_HTTP_BODY,          /* of a known length */
    QR_HTTP_BODY_TO_CLOSE, /* as long as the connection */
    QR_HTTP_CHUNK_SIZE,
    QR_HTTP_CHUNK,
    QR_HTTP_CHUNK_END,
    QR_HTTP_TRAILERS,
    QR_HTTP_COMPLETE,
};

struct qr_http_response {
    int status; /* from the headers on */
    struct qr_buf body;
    enum qr_http_part part; /* that comes next */
    /* the reader's own */
    struct qr_buf line;
    size_t head_bytes;
    size_t body_bytes_max;
    size_t left_bytes; /* of the body or the chunk */
    bool has_length, is_chunked;
};

void qr_http_response_init(struct qr_http_response *response, size_t body_bytes_max);
void qr_http_response_done(struct qr_http_response *response);

/* Takes the next bytes; those behind the end are ignored. `payload_too_large` for a body beyond the limit,
 * `unavailable` for what is not HTTP. After a failure the answer is not to be used. */
qr_rc qr_http_response_add(struct qr_http_response *response, qr_str bytes, qr_err *err);
/* The other end has closed the connection: `unavailable` when that cuts the answer. */
qr_rc qr_http_response_end(struct qr_http_response *response, qr_err *err);
