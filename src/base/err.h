/* Errors. Fallible functions return a qr_rc and fill an optional qr_err; err_codes.h is the one table behind both. */
#pragma once

#include "base/compiler.h"

#include <stdarg.h>

/* The class of a failure: what code branches on. */
typedef enum qr_rc {
    QR_OK = 0,
    QR_NOMEM,
    QR_IO,
    QR_FULL, /* no space left */
    QR_CORRUPT,
    QR_INVALID, /* the caller's input */
    QR_TOO_LARGE,
    QR_NOT_FOUND,
    QR_CONFLICT,
    QR_DENIED,
    QR_UNAVAILABLE, /* try later */
    QR_TIMEOUT,
    QR_CANCELLED,
    QR_STALE, /* a newer generation is wanted */
    QR_LOST,  /* the fence no longer matches: throw the result away */
    QR_BUG,
} qr_rc;

/* The stable word of a failure: what people and programs see. */
typedef enum qr_code {
#define QR_CODE(id, name, rc, http_status, exit_code, policy, advice) QR_CODE_##id,
#include "base/err_codes.h"
#undef QR_CODE
    QR_CODE_COUNT,
} qr_code;

/* What the job runner does with a job that failed this way. */
enum qr_policy {
    QR_POLICY_FAIL,
    QR_POLICY_RETRY,
    QR_POLICY_SKIP,
    QR_POLICY_WAIT, /* it is not its fault: put off, no attempt is counted */
};

struct qr_code_info {
    const char *name;
    qr_rc rc;
    int http_status;
    int exit_code;
    enum qr_policy policy;
    const char *advice;
};

enum { QR_ERR_MSG_SIZE = 480 };

typedef struct qr_err {
    qr_rc rc;
    qr_code code;
    char msg[QR_ERR_MSG_SIZE]; /* one sentence, safe to show: never a secret (I10) */
} qr_err;

const struct qr_code_info *qr_code_info(qr_code code);

/* The code with this name, or QR_CODE_COUNT. */
qr_code qr_code_find(const char *name);

const char *qr_policy_name(enum qr_policy policy);

/* Records the failure and returns its class: `return qr_fail(err, QR_CODE_NOT_FOUND, "no base %s", name);` */
qr_rc qr_fail(qr_err *err, qr_code code, const char *fmt, ...) QR_PRINTF(3, 4);
qr_rc qr_failv(qr_err *err, qr_code code, const char *fmt, va_list args) QR_PRINTF(3, 0);

/* The failure that an errno stands for; `what` says what was attempted on which file. ENOSPC is disk_full and so on, in
 * one place, so that a full disk is never mistaken for a broken one. */
qr_rc qr_fail_errno(qr_err *err, int errnum, const char *fmt, ...) QR_PRINTF(3, 4);

/* Puts `fmt: ` in front of the message, keeping the code: context on the way up. */
void qr_err_prefix(qr_err *err, const char *fmt, ...) QR_PRINTF(2, 3);

#ifdef __clang_analyzer__ /* it cannot know that no failure has the class QR_OK */
#define qr_fail(...)       (qr_fail(__VA_ARGS__), QR_BUG)
#define qr_fail_errno(...) (qr_fail_errno(__VA_ARGS__), QR_BUG)
#endif
