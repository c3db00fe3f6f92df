/* Reporting items that get the next generation: what reindex-subtree and restore-base do alike. */
#pragma once

#include "handler/common.h"

struct qr_raising {
    struct qr_attempt *attempt;
    const char *reason;
    bool only_failed;
    qr_uuid ids[QR_RAISE_BATCH_MAX];
    size_t count;
    int64_t done;
};

/* Reported when a part is full, and at the end by qr_raise_report. */
qr_rc qr_raise_add(struct qr_raising *raising, qr_uuid id, qr_err *err);
qr_rc qr_raise_report(struct qr_raising *raising, qr_err *err);
/* Adds it where an explicit attempt may mend it: a failed leaf, or a container whose expansion failed (RETRY-3). */
qr_rc qr_raise_if_failed(struct qr_raising *raising, const struct qr_item *item, qr_err *err);
