/* How the end of an attempt is recorded. */
#pragma once

#include "job/runner_internal.h"

/* What one ended task becomes. */
struct qr_ending {
    struct task *task;
    const struct qr_outcome *outcome; /* the handler's, or that it is stuck */
    bool is_too_late;                 /* past its time limit */
    bool without_plan;
    bool is_lost; /* the fence did not match; nothing was changed */
    qr_rc rc;     /* QR_OK: recorded; QR_LOST: thrown away; else the round fails */
    enum qr_job_state state;
};

/* Records all of them in the transaction of a round. What each `rc` says is anew each time this runs. */
qr_rc qr_record_endings(struct qr_tx *tx, struct qr_ending *endings, size_t count, qr_err *err);
