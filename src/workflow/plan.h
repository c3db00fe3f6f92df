/* The plan: what follows when a handler reports a part or an attempt ends. The only place that decides it, and it writes it
 * in the transaction that records the part or the end (JOB-1). */
#pragma once

#include "job/handler.h"
#include "workflow/workflow.h"

/* For the runner and the beat; `workflow` must outlive them. `before` is left to the owner: it has the index. */
struct qr_plan qr_workflow_plan(const struct qr_workflow *workflow);
