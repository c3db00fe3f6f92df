/* The audit log, <data>/audit.log: a line of JSON for each request of somebody known that changes something or was refused
 * it (KEY-8). Never a secret, never content. It is bounded: a file that is full becomes audit.log.1, and so on to .4. */
#pragma once

#include "api/router.h"

enum {
    QR_AUDIT_FILE_BYTES_MAX = 16 << 20,
    QR_AUDIT_FILES_KEPT = 4, /* beside the one that is written */
};

/* Whether requests to the route are changes: a viewer may make none. */
bool qr_audit_is_change(const struct qr_route *route);
/* Writes the line; `reply` is what is answered. A line that cannot be written is counted, and the next one tells how many. */
void qr_audit_note(const struct qr_request *request, const struct qr_route *route, const struct qr_reply *reply);
