/* What belongs to nobody, and what is too old (RECOV-5). */
#pragma once

#include "handler/context.h"

/* A purge that names no item: files that no row knows, events that are older than a week, work that converters left. */
void qr_sweep(struct qr_job_run *run, struct qr_outcome *ret_outcome);
