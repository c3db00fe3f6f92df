/* What a request writes itself: keys, members, models, queues, jobs, settings. What it asks of the workflow is written there. */
#pragma once

#include "api/router.h"

/* Durable once it has returned OK (REQ-1); a failpoint stands on either side of the commit. After it nothing may fail any more:
 * whatever the answer needs is made by `fn`. */
qr_rc qr_request_write(const struct qr_request *request, qr_tx_fn *fn, void *arg, qr_err *err);
