/* How the end of an attempt is recorded. */
#pragma once

#include "job/runner_internal.h"

/* What one ended task becomes. */
struct qr_ending {
    struct task *task;
    const struct qr_outcome *outcome; /* the handler's, or that it is stuck */
    enum qr_job_state state;
    bool is_too_late; /* past its time limit */
    bool without_plan;
    bool is_lost; /* the fence did not match: nothing was changed, the outcome is thrown away */
};

/* Before the transaction: says what each is to become. */
void qr_judge_endings(struct qr_ending *endings, size_t count);

/* Records all of them in the transaction of a round; an error: the round fails. What each says is anew each time this
 * runs. */
qr_rc qr_record_endings(struct qr_tx *tx, struct qr_ending *endings, size_t count, qr_err *err);
