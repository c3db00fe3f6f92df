/* The reader of answers: a state machine over lines (status, headers, sizes of chunks) and counted bytes (bodies). */
#include "http/response.h"

#include <assert.h>

void qr_http_response_init(struct qr_http_response *response, size_t body_bytes_max)
{
    assert(body_bytes_max <= SIZE_MAX / 32); /* sixteen times as many can be counted */
    *response = (struct qr_http_response){.body_bytes_max = body_bytes_max};
    qr_buf_init(&response->body, 0);
    qr_buf_init(&response->line, 0);
}

void qr_http_response_done(struct qr_http_response *response)
{
    qr_buf_done(&response->body);
    qr_buf_done(&response->line);
}

static qr_rc fail_form(qr_err *err, const char *what)
{
    return qr_fail(err, QR_CODE_UNAVAILABLE, "the answer is not proper HTTP: %s", what);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- the head ---- */

/* HTTP/1.1 200 OK */
static qr_rc take_status(struct qr_http_response *response, qr_str line, qr_err *err)
{
    const qr_str version = QR_STR("HTTP/1.");
    const size_t code_at = version.len + 2; /* the last digit of the version and a space */
    if (!qr_str_starts_with(line, version) || line.len < code_at + 3 || !is_digit(line.ptr[version.len]) ||
        line.ptr[code_at - 1] != ' ' || (line.len > code_at + 3 && line.ptr[code_at + 3] != ' ')) {
        return fail_form(err, "it does not begin with a status");
    }
    int64_t status;
    if (!is_digit(line.ptr[code_at]) || !qr_str_to_i64((qr_str){line.ptr + code_at, 3}, &status) || status < 100 ||
        status > 599 || status == 101) {
        return fail_form(err, "there is no such status");
    }
    response->status = (int)status;
    response->has_length = response->is_chunked = false;
    response->part = QR_HTTP_HEADERS;
    return QR_OK;
}

static qr_rc fail_size(const struct qr_http_response *response, qr_err *err)
{
    return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "the answer has more than %zu bytes", response->body_bytes_max);
}

static qr_rc take_length(struct qr_http_response *response, qr_str value, qr_err *err)
{
    int64_t length;
    if (response->has_length || value.len == 0 || !is_digit(value.ptr[0]) || !qr_str_to_i64(value, &length)) {
        return fail_form(err, "its length is not one number");
    }
    if ((uint64_t)length > response->body_bytes_max) {
        return fail_size(response, err);
    }
    response->has_length = true;
    response->left_bytes = (size_t)length;
    return QR_OK;
}

static qr_rc take_header(struct qr_http_response *response, qr_str line, qr_err *err)
{
    qr_str value = line;
    const qr_str name = qr_str_split(&value, ':');
    if (name.len == 0 || name.len == line.len || memchr(name.ptr, ' ', name.len) || memchr(name.ptr, '\t', name.len)) {
        return fail_form(err, "a header has no name");
    }
    value = qr_str_trim(value);
    if (qr_str_equal_any_case(name, QR_STR("Content-Length"))) {
        return take_length(response, value, err);
    }
    if (qr_str_equal_any_case(name, QR_STR("Transfer-Encoding"))) {
        if (response->is_chunked || !qr_str_equal_any_case(value, QR_STR("chunked"))) {
            return fail_form(err, "its encoding is unknown");
        }
        response->is_chunked = true;
    }
    return QR_OK;
}

static qr_rc end_headers(struct qr_http_response *response, qr_err *err)
{
    if (response->is_chunked && response->has_length) {
        return fail_form(err, "it has a length and chunks");
    }
    if (response->status < 200) { /* interim: the answer itself follows */
        response->part = QR_HTTP_STATUS_LINE;
    } else if (response->status == 204 || response->status == 304) {
        response->part = QR_HTTP_COMPLETE;
    } else if (response->is_chunked) {
        response->part = QR_HTTP_CHUNK_SIZE;
    } else if (response->has_length) {
        response->part = response->left_bytes ? QR_HTTP_BODY : QR_HTTP_COMPLETE;
    } else {
        response->part = QR_HTTP_BODY_TO_CLOSE;
    }
    return QR_OK;
}

/* ---- chunks ---- */

/* 1f4;extension */
static qr_rc take_chunk_size(struct qr_http_response *response, qr_str line, qr_err *err)
{
    const qr_str digits = qr_str_trim(qr_str_split(&line, ';'));
    size_t size = 0;
    if (digits.len == 0) {
        return fail_form(err, "a chunk has no size");
    }
    for (size_t i = 0; i < digits.len; i++) {
        const int digit = qr_hex_digit(digits.ptr[i]);
        if (digit < 0) {
            return fail_form(err, "a chunk has no size");
        }
        size = size * 16 + (size_t)digit;
        if (size > response->body_bytes_max - response->body.len) {
            return fail_size(response, err);
        }
    }
    response->left_bytes = size;
    response->part = size ? QR_HTTP_CHUNK : QR_HTTP_TRAILERS;
    return QR_OK;
}

/* ---- lines and bytes ---- */

static qr_rc take_line(struct qr_http_response *response, qr_str line, qr_err *err)
{
    switch (response->part) {
    case QR_HTTP_STATUS_LINE:
        return take_status(response, line, err);
    case QR_HTTP_HEADERS:
        return line.len ? take_header(response, line, err) : end_headers(response, err);
    case QR_HTTP_CHUNK_SIZE:
        return take_chunk_size(response, line, err);
    case QR_HTTP_CHUNK_END:
        response->part = QR_HTTP_CHUNK_SIZE;
        return line.len ? fail_form(err, "a chunk is longer than its size") : QR_OK;
    case QR_HTTP_TRAILERS:
        response->part = line.len ? QR_HTTP_TRAILERS : QR_HTTP_COMPLETE;
        return QR_OK;
    case QR_HTTP_BODY:
    case QR_HTTP_BODY_TO_CLOSE:
    case QR_HTTP_CHUNK:
    case QR_HTTP_COMPLETE:
        break;
    }
    return qr_fail(err, QR_CODE_INTERNAL, "a body was read as a line");
}

/* Takes bytes up to the end of a line, and the line once it is whole. */
static qr_rc add_to_line(struct qr_http_response *response, qr_str *bytes, qr_err *err)
{
    const char *end = memchr(bytes->ptr, '\n', bytes->len);
    const size_t len = end ? (size_t)(end - bytes->ptr) + 1 : bytes->len;
    const bool is_sized = response->part == QR_HTTP_CHUNK_SIZE || response->part == QR_HTTP_CHUNK_END;
    response->head_bytes += is_sized ? 0 : len; /* as many chunks as the body has room for */
    if (response->line.len + len > QR_HTTP_LINE_BYTES_MAX || response->head_bytes > QR_HTTP_HEAD_BYTES_MAX) {
        return fail_form(err, "its head is too long");
    }
    qr_buf_add(&response->line, (qr_str){bytes->ptr, len});
    QR_TRY(qr_buf_check(&response->line, err));
    *bytes = (qr_str){bytes->ptr + len, bytes->len - len};
    if (!end) {
        return QR_OK;
    }
    qr_str line = {response->line.data, response->line.len - 1};
    line.len -= line.len && line.ptr[line.len - 1] == '\r';
    if (memchr(line.ptr, '\r', line.len) || memchr(line.ptr, '\0', line.len)) {
        return fail_form(err, "a line holds what no line holds");
    }
    const qr_rc rc = take_line(response, line, err);
    qr_buf_clear(&response->line);
    return rc;
}

static qr_rc add_to_body(struct qr_http_response *response, qr_str *bytes, qr_err *err)
{
    const bool is_counted = response->part != QR_HTTP_BODY_TO_CLOSE;
    const size_t len = is_counted ? QR_MIN(bytes->len, response->left_bytes) : bytes->len;
    if (len > response->body_bytes_max - response->body.len) {
        return fail_size(response, err);
    }
    qr_buf_add(&response->body, (qr_str){bytes->ptr, len});
    QR_TRY(qr_buf_check(&response->body, err));
    *bytes = (qr_str){bytes->ptr + len, bytes->len - len};
    if (is_counted) {
        response->left_bytes -= len;
        if (response->left_bytes == 0) {
            response->part = response->part == QR_HTTP_CHUNK ? QR_HTTP_CHUNK_END : QR_HTTP_COMPLETE;
        }
    }
    return QR_OK;
}

qr_rc qr_http_response_add(struct qr_http_response *response, qr_str bytes, qr_err *err)
{
    while (bytes.len && response->part != QR_HTTP_COMPLETE) {
        const bool is_body = response->part == QR_HTTP_BODY || response->part == QR_HTTP_BODY_TO_CLOSE ||
                             response->part == QR_HTTP_CHUNK;
        QR_TRY(is_body ? add_to_body(response, &bytes, err) : add_to_line(response, &bytes, err));
    }
    return QR_OK;
}

qr_rc qr_http_response_end(struct qr_http_response *response, qr_err *err)
{
    if (response->part == QR_HTTP_BODY_TO_CLOSE) {
        response->part = QR_HTTP_COMPLETE;
    }
    return response->part == QR_HTTP_COMPLETE ? QR_OK
                                              : qr_fail(err, QR_CODE_UNAVAILABLE, "the connection ended too early");
}
