/* Invariant: when data is not NULL, len < capacity and data[len] is NUL. After a failure nothing is appended any more,
 * so the content is always a prefix of what was asked for. */
#include "base/buf.h"

#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { CAPACITY_MIN = 64 };

void qr_buf_init(struct qr_buf *buf, size_t len_max)
{
    *buf = (struct qr_buf){.len_max = len_max};
}

void qr_buf_done(struct qr_buf *buf)
{
    qr_free(buf->data);
    *buf = (struct qr_buf){.len_max = buf->len_max};
}

void qr_buf_clear(struct qr_buf *buf)
{
    buf->len = 0;
    buf->failed = QR_CODE_NONE;
    if (buf->data) {
        buf->data[0] = '\0';
    }
}

char *qr_buf_reserve(struct qr_buf *buf, size_t size_bytes)
{
    if (buf->failed != QR_CODE_NONE) {
        return NULL;
    }
    size_t len, need;
    if (QR_ADD_OVERFLOWS(buf->len, size_bytes, &len) || QR_ADD_OVERFLOWS(len, 1, &need) ||
        (buf->len_max && len > buf->len_max)) {
        buf->failed = QR_CODE_PAYLOAD_TOO_LARGE;
        return NULL;
    }
    if (need > buf->capacity) {
        size_t capacity = QR_MAX(buf->capacity, (size_t)CAPACITY_MIN);
        while (capacity < need) {
            if (QR_MUL_OVERFLOWS(capacity, (size_t)2, &capacity)) {
                capacity = need;
            }
        }
        char *data = qr_resize(buf->data, capacity);
        if (!data) {
            buf->failed = QR_CODE_OUT_OF_MEMORY;
            return NULL;
        }
        buf->data = data;
        buf->capacity = capacity;
        buf->data[buf->len] = '\0';
    }
    return buf->data + buf->len;
}

void qr_buf_grown(struct qr_buf *buf, size_t size_bytes)
{
    assert(buf->data && size_bytes < buf->capacity - buf->len);
    buf->len += size_bytes;
    buf->data[buf->len] = '\0';
}

void qr_buf_add(struct qr_buf *buf, qr_str text)
{
    char *room = qr_buf_reserve(buf, text.len);
    if (room) {
        if (text.len) {
            memcpy(room, text.ptr, text.len);
        }
        qr_buf_grown(buf, text.len);
    }
}

void qr_buf_add_char(struct qr_buf *buf, char c)
{
    qr_buf_add(buf, (qr_str){&c, 1});
}

void qr_buf_add_text(struct qr_buf *buf, const char *text)
{
    qr_buf_add(buf, qr_str_of(text));
}

void qr_buf_printf(struct qr_buf *buf, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0 && buf->failed == QR_CODE_NONE) {
        buf->failed = QR_CODE_OUT_OF_MEMORY; /* or beyond INT_MAX bytes, which is no different here */
    }
    char *room = len < 0 ? NULL : qr_buf_reserve(buf, (size_t)len);
    if (room) {
        vsnprintf(room, (size_t)len + 1, fmt, again);
        qr_buf_grown(buf, (size_t)len);
    }
    va_end(again);
}

qr_rc qr_buf_check(const struct qr_buf *buf, qr_err *err)
{
    switch (buf->failed) {
    case QR_CODE_NONE:
        return QR_OK;
    case QR_CODE_PAYLOAD_TOO_LARGE:
        return qr_fail(err, buf->failed, "the result would be larger than %zu bytes", buf->len_max);
    default:
        return qr_fail(err, buf->failed, "out of memory after %zu bytes", buf->len);
    }
}

char *qr_buf_take(struct qr_buf *buf, size_t *ret_len)
{
    if (!qr_buf_reserve(buf, 0)) { /* also makes the empty content a block of its own */
        return NULL;
    }
    char *data = buf->data;
    if (ret_len) {
        *ret_len = buf->len;
    }
    *buf = (struct qr_buf){.len_max = buf->len_max};
    return data;
}
