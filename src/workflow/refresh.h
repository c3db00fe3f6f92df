/* Looking at sources again. */
#pragma once

#include "workflow/workflow.h"

/* `refresh-source` of the item; one at a time. */
qr_rc qr_enqueue_refresh(struct qr_change *change, const struct qr_item *item, qr_err *err);
