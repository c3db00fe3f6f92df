/* Foreign bytes to canonical text, in isolation. */
#pragma once

#include "convert/convert.h"
#include "handler/common.h"

/* Converts the bytes by the context's reader. A file that kills the reader or takes too long is tried again like any
 * failure that may pass, QR_JOB_CRASHES_MAX times in all; then it is `crashed_worker` (ISOL-2). `name` as for qr_convert. */
qr_rc qr_attempt_convert(struct qr_attempt *attempt, qr_str bytes, const char *name, struct qr_converted *ret,
                         qr_err *err);
