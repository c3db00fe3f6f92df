/* What docling-serve answers (its API v1). Pure.
 *
 *     POST /v1/convert/file/async      the file and options as a form  → {"task_id", "task_status", …}
 *     GET  /v1/status/poll/{task_id}   {"task_id", "task_status", "task_position"?, "error_message"?}; 404: no such task
 *     GET  /v1/result/{task_id}        {"document": {"md_content", …}, "status", "errors", "processing_time"}; 404: gone
 *
 * It has no way to end a task, and does not tell since when one runs. A result is kept for some minutes after it was fetched
 * once, or until the server ends. */
#pragma once

#include "base/buf.h"

enum { QR_DOCLING_TASK_SIZE = 200 };

enum qr_docling_state {
    QR_DOCLING_WAITS, /* in its queue */
    QR_DOCLING_RUNS,
    QR_DOCLING_ENDED, /* there is a result to be fetched */
    QR_DOCLING_FAILED,
};

struct qr_docling_task {
    char id[QR_DOCLING_TASK_SIZE]; /* letters, digits, - _ . */
    enum qr_docling_state state;
    char reason[300]; /* of a failure, fit to show; "" = it does not say */
};

/* `unavailable`: it is no such answer. */
qr_rc qr_docling_read_task(qr_str answer, struct qr_docling_task *ret_task, qr_err *err);
/* Appends the Markdown. QR_INVALID with `conversion_failed`: it could not be converted; `unavailable`: it is no such answer. */
qr_rc qr_docling_read_result(qr_str answer, struct qr_buf *out, qr_err *err);
bool qr_docling_is_task_id(const char *text);
