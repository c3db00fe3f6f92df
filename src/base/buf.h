/* A growing buffer with a sticky error: append freely, look once at the end. */
#pragma once

#include "base/compiler.h"
#include "base/err.h"
#include "base/str.h"

struct qr_buf {
    char *data; /* NUL behind the last byte whenever not NULL */
    size_t len, capacity, len_max;
    qr_code failed; /* QR_CODE_NONE, or why the content is incomplete */
};

void qr_buf_init(struct qr_buf *buf, size_t len_max); /* len_max 0 = no limit */
void qr_buf_done(struct qr_buf *buf);
void qr_buf_clear(struct qr_buf *buf); /* empties it and forgives; keeps the memory */

void qr_buf_add(struct qr_buf *buf, qr_str text);
void qr_buf_add_char(struct qr_buf *buf, char c);
void qr_buf_add_text(struct qr_buf *buf, const char *text);
void qr_buf_printf(struct qr_buf *buf, const char *fmt, ...) QR_PRINTF(2, 3);

/* Room for `size_bytes` more behind the content, to be filled by the caller and then counted by qr_buf_grown; NULL when
 * that fails. */
char *qr_buf_reserve(struct qr_buf *buf, size_t size_bytes) QR_MUST_USE;
void qr_buf_grown(struct qr_buf *buf, size_t size_bytes);

static inline qr_str qr_buf_str(const struct qr_buf *buf)
{
    return (qr_str){buf->data ? buf->data : "", buf->len};
}

/* The verdict on everything appended so far. */
qr_rc qr_buf_check(const struct qr_buf *buf, qr_err *err);

/* The content as memory of the caller's (qr_free); NULL when the buffer failed or memory ran out. Leaves the buffer
 * empty. */
char *qr_buf_take(struct qr_buf *buf, size_t *ret_len) QR_MUST_USE;
