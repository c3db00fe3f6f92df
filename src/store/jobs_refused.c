/* Finds them by the index of what is put off in a queue (job_listed): an index of their own would cost every write of every job,
 * for something that happens after somebody has corrected a key. */
#include "store/jobs_refused.h"

#include "store/ids.h"

/* Those whose jobs ask servers. */
static const enum qr_queue queues[] = {QR_QUEUE_EMBED, QR_QUEUE_ASSETS, QR_QUEUE_CONVERT};

static const char *refused_code(void)
{
    return qr_code_info(QR_CODE_ENDPOINT_REFUSED)->name;
}

/* Locked rows are somebody's who runs, cancels or forwards them: never waited for (L1). */
static qr_rc forward_range(struct qr_tx *tx, enum qr_queue queue, qr_uuid first, qr_uuid last, int64_t *ret_count,
                           qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "UPDATE job SET state = 3, run_at = ?4 WHERE id IN (SELECT id FROM job WHERE queue = ?1 AND "
                      "state = 2 AND id >= ?2 AND id <= ?3 AND code = ?5 /*pg FOR UPDATE SKIP LOCKED */)",
                      QR_VALS(qr_val_i64(queue), qr_val_uuid(&first), qr_val_uuid(&last), qr_val_i64(now_ms),
                              qr_val_text(qr_str_of(refused_code()))),
                      ret_count, err));
    return *ret_count ? qr_tx_notify(tx, QR_JOBS_CHANNEL, err) : QR_OK;
}

/* The last of a step; *ret_more: there may be others behind it. */
static qr_rc find_end_of_step(struct qr_tx *tx, enum qr_queue queue, qr_uuid after, qr_uuid *ret_last, bool *ret_more,
                              qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id FROM job WHERE queue = ?1 AND state = 2 AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?3",
                       QR_VALS(qr_val_i64(queue), qr_val_uuid(&after), qr_val_i64(QR_JOB_BATCH_MAX - 1)), err));
    *ret_more = qr_rows_next(&rows);
    memset(ret_last->bytes, 0xff, sizeof ret_last->bytes);
    *ret_last = *ret_more ? qr_rows_uuid(&rows, 0) : *ret_last;
    return qr_rows_end(&rows, err);
}

qr_rc qr_jobs_forward_refused(struct qr_tx *tx, const struct qr_refused_cursor *at, struct qr_refused_cursor *ret_next,
                              bool *ret_more, int64_t *ret_count, qr_err *err)
{
    const enum qr_queue queue = queues[at->queue_index];
    qr_uuid last;
    bool has_more;
    QR_TRY(find_end_of_step(tx, queue, at->after, &last, &has_more, err));
    QR_TRY(forward_range(tx, queue, at->after, last, ret_count, err));
    if (has_more) {
        *ret_next = (struct qr_refused_cursor){at->queue_index, last};
        *ret_more = true;
    } else {
        *ret_more = at->queue_index + 1 < (int)QR_COUNT(queues);
        *ret_next = (struct qr_refused_cursor){.queue_index = *ret_more ? at->queue_index + 1 : 0};
    }
    return QR_OK;
}

/* ---- one that tries ---- */

struct tries {
    struct {
        qr_uuid id, base_id;
    } of[QR_REFUSED_TRIES_MAX];
    size_t count;
};

static void offer(struct tries *tries, qr_uuid id, qr_uuid base_id)
{
    for (size_t i = 0; i < tries->count; i++) {
        if (qr_uuid_equal(tries->of[i].base_id, base_id)) {
            return;
        }
    }
    if (tries->count < QR_REFUSED_TRIES_MAX) {
        tries->of[tries->count].id = id;
        tries->of[tries->count++].base_id = base_id;
    }
}

static qr_rc find_tries(struct qr_tx *tx, enum qr_queue queue, struct tries *tries, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(
        tx, &rows,
        "SELECT id, base_id FROM (SELECT id, base_id, code FROM job WHERE queue = ?1 AND state = 2 "
        "ORDER BY id LIMIT ?2) AS looked_at WHERE code = ?3 ORDER BY id",
        QR_VALS(qr_val_i64(queue), qr_val_i64(QR_REFUSED_LOOKED_AT_MAX), qr_val_text(qr_str_of(refused_code()))), err));
    while (qr_rows_next(&rows)) {
        offer(tries, qr_rows_uuid(&rows, 0), qr_rows_uuid(&rows, 1));
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_jobs_try_refused(struct qr_tx *tx, int64_t *ret_count, qr_err *err)
{
    *ret_count = 0;
    for (size_t i = 0; i < QR_COUNT(queues); i++) {
        struct tries tries = {.count = 0};
        QR_TRY(find_tries(tx, queues[i], &tries, err));
        for (size_t k = 0; k < tries.count; k++) {
            int64_t count;
            QR_TRY(forward_range(tx, queues[i], tries.of[k].id, tries.of[k].id, &count, err));
            *ret_count += count;
        }
    }
    return QR_OK;
}
