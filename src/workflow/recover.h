/* What a restart finds and mends (RECOV-1 … RECOV-5), in bounded steps: the recovery tasks of the beat. */
#pragma once

#include "job/beat.h"
#include "workflow/workflow.h"

enum { QR_RECOVERY_TASKS = 4 };

struct qr_recovery_state {
    const struct qr_workflow *workflow;
    int rows_a_step;              /* 0 = thousands */
    struct qr_item_cursor cursor; /* of the look for items without a job */
    qr_uuid root_cursor, base_cursor;
};

/* Tasks for qr_beat_create; `state` must outlive the beat. */
void qr_recovery_tasks(struct qr_recovery_state *state, struct qr_beat_task ret_tasks[static QR_RECOVERY_TASKS]);
