/* Parts of items for the next generation; the plan decides about each under the base lock. */
#include "handler/raise.h"

#include "base/failpoint.h"

qr_rc qr_raise_report(struct qr_raising *raising, qr_err *err)
{
    if (raising->count == 0) {
        return QR_OK;
    }
    struct qr_raise_part part = {
        .ids = raising->ids, .count = raising->count, .reason = raising->reason, .only_failed = raising->only_failed};
    QR_TRY(qr_attempt_go_on(raising->attempt, err));
    QR_TRY(qr_job_report_part(raising->attempt->run, QR_DURABLE, &part, err));
    QR_FAILPOINT("raise.batch.committed", err);
    raising->done += (int64_t)raising->count;
    raising->count = 0;
    qr_job_progress(raising->attempt->run, raising->done, 0);
    return QR_OK;
}

qr_rc qr_raise_add(struct qr_raising *raising, qr_uuid id, qr_err *err)
{
    if (raising->count == QR_RAISE_BATCH_MAX) {
        QR_TRY(qr_raise_report(raising, err));
    }
    raising->ids[raising->count++] = id;
    return QR_OK;
}

qr_rc qr_raise_if_failed(struct qr_raising *raising, const struct qr_item *item, qr_err *err)
{
    return qr_item_has_failed_itself(item) ? qr_raise_add(raising, item->id, err) : QR_OK;
}
