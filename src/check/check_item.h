/* One item, looked at closely. Private to src/check/. */
#pragma once

#include "check/check_internal.h"

static inline bool qr_check_status_is_known(int64_t status)
{
    return status >= QR_ITEM_IDLE && status <= QR_ITEM_DELETING && status != QR_ITEM_READING &&
           status != QR_ITEM_EMBEDDING; /* those two are derived, never stored */
}

/* Whether its row alone gives no reason to examine it. */
bool qr_check_looks_right(const struct qr_check_item *item);
/* Reports what is wrong with it, all of it in one snapshot, and repairs what can be. */
qr_rc qr_check_examine(struct qr_checker *checker, qr_uuid id, qr_err *err);
/* A code of the table, or none. */
bool qr_check_code_is_known(qr_str code);
