/* Owns the error table. Pure. */
#include "base/err.h"

#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#undef qr_fail /* the analyzer has macros in their place */
#undef qr_fail_errno

static const struct qr_code_info codes[] = {
#define QR_CODE(id, name, rc, http_status, exit_code, policy, advice)                                                  \
    [QR_CODE_##id] = {name, rc, http_status, exit_code, policy, advice},
#include "base/err_codes.h"
#undef QR_CODE
};

const struct qr_code_info *qr_code_info(qr_code code)
{
    assert(code < QR_CODE_COUNT);
    return &codes[code];
}

qr_code qr_code_find(const char *name)
{
    for (qr_code code = 0; code < QR_CODE_COUNT; code++) {
        if (strcmp(codes[code].name, name) == 0) {
            return code;
        }
    }
    return QR_CODE_COUNT;
}

const char *qr_policy_name(enum qr_policy policy)
{
    switch (policy) {
    case QR_POLICY_RETRY:
        return "retry";
    case QR_POLICY_SKIP:
        return "skip";
    case QR_POLICY_WAIT:
        return "wait";
    case QR_POLICY_FAIL:
        return "fail";
    }
    return "fail";
}

/* A message that filled its room may have been cut inside a character. */
static void end_at_character(char msg[static QR_ERR_MSG_SIZE])
{
    size_t len = strlen(msg);
    if (len < QR_ERR_MSG_SIZE - 1) {
        return;
    }
    while (len > 0 && (msg[len - 1] & 0x80) != 0) {
        len--; /* a whole character at the very end is lost with it: nobody misses it */
        if ((msg[len] & 0xC0) == 0xC0) {
            break;
        }
    }
    msg[len] = '\0';
}

/* A message goes to databases, to JSON and to terminals, and may quote anything: a name of a file, a foreign program. So
 * whatever is not UTF-8 and all control characters become '?', and white space a space: it stays one line of text. */
static void make_text(char msg[static QR_ERR_MSG_SIZE])
{
    end_at_character(msg);
    size_t len = 0;
    for (qr_str rest = qr_str_of(msg); rest.len > 0;) {
        const size_t char_len = qr_utf8_char_len(rest);
        const unsigned char first = (unsigned char)rest.ptr[0];
        const bool is_space = first >= '\t' && first <= '\r';
        const bool is_c1 = char_len == 2 && first == 0xC2 && (unsigned char)rest.ptr[1] < 0xA0;
        if (char_len == 0 || first < ' ' || first == 0x7F || is_c1) {
            msg[len++] = is_space ? ' ' : '?';
        } else {
            memmove(msg + len, rest.ptr, char_len);
            len += char_len;
        }
        const size_t used = QR_MAX(char_len, (size_t)1);
        rest = (qr_str){rest.ptr + used, rest.len - used};
    }
    msg[len] = '\0';
}

qr_rc qr_failv(qr_err *err, qr_code code, const char *fmt, va_list args)
{
    const qr_rc rc = qr_code_info(code)->rc;
    if (err) {
        /* formatted aside first: an argument may be the old message itself */
        char msg[QR_ERR_MSG_SIZE];
        vsnprintf(msg, sizeof msg, fmt, args);
        make_text(msg);
        err->rc = rc;
        err->code = code;
        memcpy(err->msg, msg, sizeof msg);
    }
    return rc;
}

qr_rc qr_fail(qr_err *err, qr_code code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const qr_rc rc = qr_failv(err, code, fmt, args);
    va_end(args);
    return rc;
}

static qr_code code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
        return QR_CODE_DISK_FULL;
    case ENOMEM:
        return QR_CODE_OUT_OF_MEMORY;
    case ENOENT:
    case ENOTDIR:
        return QR_CODE_NOT_FOUND;
    case EACCES:
    case EPERM:
        return QR_CODE_FORBIDDEN;
    case EROFS:
        return QR_CODE_DATA_READONLY;
    case EEXIST:
    case ENOTEMPTY:
        return QR_CODE_ALREADY_EXISTS;
    case ENAMETOOLONG:
    case EINVAL:
    case ELOOP:
    case EISDIR:
    case ENOEXEC:
        return QR_CODE_INVALID_VALUE;
    case EFBIG:
    case E2BIG:
        return QR_CODE_PAYLOAD_TOO_LARGE;
    case ETIMEDOUT:
        return QR_CODE_TIMEOUT;
    case EAGAIN:
    case EMFILE:
    case ENFILE:
        return QR_CODE_UNAVAILABLE;
    default:
        return QR_CODE_IO_ERROR;
    }
}

qr_rc qr_fail_errno(qr_err *err, int errnum, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const qr_rc rc = qr_failv(err, code_of_errno(errnum), fmt, args);
    va_end(args);
    if (err) {
        const size_t used = strlen(err->msg);
        char reason[128];
        snprintf(err->msg + used, sizeof err->msg - used, ": %s", strerror_r(errnum, reason, sizeof reason));
        make_text(err->msg);
    }
    return rc;
}

void qr_err_prefix(qr_err *err, const char *fmt, ...)
{
    if (!err) {
        return;
    }
    char msg[QR_ERR_MSG_SIZE]; /* aside, as above */
    va_list args;
    va_start(args, fmt);
    vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    const size_t used = strlen(msg);
    snprintf(msg + used, sizeof msg - used, ": %.*s", (int)(sizeof msg - used), err->msg);
    make_text(msg);
    memcpy(err->msg, msg, sizeof msg);
}
