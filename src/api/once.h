/* A POST with an Idempotency-Key: sent again it has the first one's answer, and is not done again. */
#pragma once

#include "api/router.h"

/* Whether it counts on this route: not where the answer has a secret, since no such answer is stored. */
bool qr_once_is_for(const struct qr_route *route);

/* Calls the route, once. `idempotency_mismatch` where the key came with another request, `idempotency_pending` while the
 * first one is under way, or when its process ended before it was answered. */
qr_rc qr_once_call(const struct qr_request *request, const struct qr_route *route, struct qr_reply *reply, qr_err *err);
