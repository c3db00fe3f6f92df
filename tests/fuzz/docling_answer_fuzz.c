/* Whatever docling-serve answers: a task can be asked about, a result is text, or it is an error that says so. */
#include "convert/docling_wire.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    const qr_str answer = {(const char *)bytes, size_bytes};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_docling_task task;
    qr_err err = {0};
    if (qr_docling_read_task(answer, &task, &err) == QR_OK) {
        require(qr_docling_is_task_id(task.id) && !strchr(task.id, '/') && !strchr(task.id, '%'));
        require(qr_utf8_valid(qr_str_of(task.reason)) && strlen(task.reason) < sizeof task.reason);
    } else {
        require(err.code == QR_CODE_UNAVAILABLE);
    }
    err = (qr_err){0};
    if (qr_docling_read_result(answer, &out, &err) == QR_OK) {
        require(qr_utf8_valid(qr_buf_str(&out)));
    } else {
        require((err.code == QR_CODE_UNAVAILABLE || err.code == QR_CODE_CONVERSION_FAILED) && out.len == 0);
    }
    return 0;
}
