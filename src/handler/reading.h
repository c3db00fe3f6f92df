/* Foreign bytes to canonical text, in isolation. */
#pragma once

#include "convert/reader.h"
#include "handler/common.h"

/* Converts the bytes by the context's reader. A file that kills the reader or takes too long is tried again like any
 * failure that may pass, QR_JOB_CRASHES_MAX times in all; then it is `crashed_worker` (ISOL-2). `name` as for qr_convert. */
qr_rc qr_attempt_convert(struct qr_attempt *attempt, qr_str bytes, const char *name, struct qr_converted *ret,
                         qr_err *err);
/* The same as one of several, for qr_reader_convert_several: what comes out of that is final. */
struct qr_reader_file qr_attempt_reader_file(struct qr_attempt *attempt, qr_str bytes, const char *name);
