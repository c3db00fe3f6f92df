/* multipart/form-data in whatever pieces it comes: each split gives the same files, or the same refusal. The first line is
 * the boundary, the rest the body. */
#include "api/multipart.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static qr_rc begin(void *arg, qr_str filename, qr_err *err)
{
    qr_buf_add_text(arg, filename.ptr ? "[=" : "[|");
    qr_buf_add(arg, filename);
    qr_buf_add_text(arg, "]");
    return qr_buf_check(arg, err);
}

static qr_rc take(void *arg, qr_str bytes, qr_err *err)
{
    assert(bytes.len > 0);
    qr_buf_add(arg, bytes);
    return qr_buf_check(arg, err);
}

static qr_rc end(void *arg, qr_err *err)
{
    qr_buf_add_text(arg, "\n");
    return qr_buf_check(arg, err);
}

static qr_rc read_body(qr_str boundary, qr_str body, size_t step, struct qr_buf *out)
{
    static const struct qr_multipart_sink sink = {begin, take, end};
    struct qr_buf type = {0};
    struct qr_multipart multipart;
    qr_err err;
    qr_buf_add_text(&type, "multipart/form-data; boundary=");
    qr_buf_add(&type, boundary);
    qr_rc rc = qr_multipart_init(&multipart, qr_buf_str(&type).ptr, &sink, out, &err);
    const bool is_open = rc == QR_OK;
    while (rc == QR_OK && body.len) {
        const qr_str piece = {body.ptr, QR_MIN(step, body.len)};
        rc = qr_multipart_add(&multipart, piece, &err);
        body = (qr_str){body.ptr + piece.len, body.len - piece.len};
    }
    if (rc == QR_OK) {
        rc = qr_multipart_finish(&multipart, &err);
    }
    if (is_open) {
        qr_multipart_done(&multipart);
    }
    qr_buf_done(&type);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qr_str body = {(const char *)data, size};
    const qr_str boundary = qr_str_split(&body, '\n');
    static const size_t steps[] = {1, 7, 4096};
    struct qr_buf whole = {0};
    const qr_rc rc = read_body(boundary, body, SIZE_MAX, &whole);
    for (size_t i = 0; i < QR_COUNT(steps); i++) {
        struct qr_buf again = {0};
        assert(read_body(boundary, body, steps[i], &again) == rc);
        assert(rc != QR_OK || qr_str_equal(qr_buf_str(&whole), qr_buf_str(&again)));
        qr_buf_done(&again);
    }
    qr_buf_done(&whole);
    return 0;
}
