#include "handler/reading.h"

#include <assert.h>
#include <stdio.h>

static bool is_cancelled(void *arg)
{
    const struct qr_attempt *attempt = arg;
    return qr_job_is_cancelled(attempt->run);
}

/* Once or twice it may have been the machine: out of memory as a whole, somebody's kill, a computer that was asleep. */
static qr_rc judge(const struct qr_attempt *attempt, qr_err *err)
{
    char message[QR_ERR_MSG_SIZE];
    const bool is_last = attempt->run->job->attempts + 1 >= QR_JOB_CRASHES_MAX;
    snprintf(message, sizeof message, "%s", err->msg);
    if (is_last) {
        return qr_fail(err, QR_CODE_CRASHED_WORKER, "%s; it was tried %d times", message, (int)QR_JOB_CRASHES_MAX);
    }
    return qr_fail(err, err->code == QR_CODE_TIMEOUT ? QR_CODE_TIMEOUT : QR_CODE_UNAVAILABLE, "%s", message);
}

static struct qr_reader_limits limits_of(struct qr_attempt *attempt)
{
    return (struct qr_reader_limits){.is_cancelled = is_cancelled, .arg = attempt};
}

struct qr_reader_file qr_attempt_reader_file(struct qr_attempt *attempt, qr_str bytes, const char *name)
{
    return (struct qr_reader_file){
        .bytes = bytes, .name = name, .limits = limits_of(attempt), .arena = attempt->run->arena};
}

qr_rc qr_attempt_convert(struct qr_attempt *attempt, qr_str bytes, const char *name, struct qr_converted *ret,
                         qr_err *err)
{
    assert(attempt->context->reader);
    const struct qr_reader_limits limits = limits_of(attempt);
    const qr_rc rc = qr_reader_convert(attempt->context->reader, bytes, name, &limits, attempt->run->arena, ret, err);
    return rc != QR_OK && (err->code == QR_CODE_CRASHED_WORKER || err->code == QR_CODE_TIMEOUT) ? judge(attempt, err)
                                                                                                : rc;
}
