/* What a request writes itself: keys, members, models, queues, jobs, settings. What it asks of the workflow is written there. */
#pragma once

#include "api/router.h"

/* Durable once it has returned OK (REQ-1); a failpoint stands on either side of the commit. After it nothing may fail any more:
 * whatever the answer needs is made by `fn`. */
qr_rc qr_request_write(const struct qr_request *request, qr_tx_fn *fn, void *arg, qr_err *err);
/* Answers with what a transaction has made; `rc` is what it returned, and `body` is taken also where it failed. */
qr_rc qr_reply_made(struct qr_reply *reply, qr_rc rc, int status, json_t *body, qr_err *err);
