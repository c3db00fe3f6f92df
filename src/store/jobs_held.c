/* Finds them by the index of what is put off in a queue (job_listed), as jobs_refused.c does. */
#include "store/jobs_held.h"

#include "store/ids.h"

/* Deletes are held by nothing (DEL-1). */
static const enum qr_queue queues[] = {QR_QUEUE_EXPAND, QR_QUEUE_CONVERT, QR_QUEUE_EMBED, QR_QUEUE_ASSETS};

/* Locked rows are somebody's who runs or cancels them: never waited for (L1). */
static qr_rc forward_queue(struct qr_tx *tx, enum qr_queue queue, qr_uuid base_id, int64_t *ret_count, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(
        tx,
        "UPDATE job SET state = 3, run_at = ?3 WHERE id IN (SELECT id FROM job WHERE state = 2 AND id IN "
        "(SELECT id FROM (SELECT id, base_id, code FROM job WHERE queue = ?1 AND state = 2 ORDER BY id LIMIT ?4) "
        "AS looked_at WHERE base_id = ?2 AND code IN (?6, ?7) ORDER BY id LIMIT ?5) /*pg FOR UPDATE SKIP LOCKED */)",
        QR_VALS(qr_val_i64(queue), qr_val_uuid(&base_id), qr_val_i64(now_ms), qr_val_i64(QR_HELD_LOOKED_AT_MAX),
                qr_val_i64(QR_HELD_FORWARD_MAX), qr_val_text(qr_str_of(qr_code_info(QR_CODE_BASE_FAILED)->name)),
                qr_val_text(qr_str_of(qr_code_info(QR_CODE_INDEX_LOST)->name))),
        ret_count, err);
}

qr_rc qr_jobs_forward_held(struct qr_tx *tx, qr_uuid base_id, int64_t *ret_count, qr_err *err)
{
    *ret_count = 0;
    for (size_t i = 0; i < QR_COUNT(queues); i++) {
        int64_t count;
        QR_TRY(forward_queue(tx, queues[i], base_id, &count, err));
        *ret_count += count;
    }
    return *ret_count ? qr_tx_notify(tx, QR_JOBS_CHANNEL, err) : QR_OK;
}
