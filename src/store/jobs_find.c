/* The statements behind store/jobs_find.h. None of them is repeated by a healthy runner. */
#include "store/jobs_find.h"

#include "store/jobs_row.h"

/* ---- by the beginning of an id ---- */

enum { PREFIX_CHARS_MAX = QR_UUID_TEXT_SIZE - 1 };

static int hex_digit(char c)
{
    const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The first and the last id that begin like this; false when none can. */
static bool prefix_range(qr_str prefix, qr_uuid *ret_first, qr_uuid *ret_last)
{
    if (prefix.len == 0 || prefix.len > PREFIX_CHARS_MAX) {
        return false;
    }
    memset(ret_first, 0, sizeof *ret_first);
    memset(ret_last, 0xff, sizeof *ret_last);
    size_t digit_count = 0;
    for (size_t i = 0; i < prefix.len; i++) {
        const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        const int digit = hex_digit(prefix.ptr[i]);
        if (is_dash ? prefix.ptr[i] != '-' : digit < 0) {
            return false;
        }
        if (!is_dash) {
            const unsigned shift = digit_count % 2 ? 0 : 4;
            unsigned char *first = &ret_first->bytes[digit_count / 2], *last = &ret_last->bytes[digit_count / 2];
            *first = (unsigned char)(*first | ((unsigned)digit << shift));
            *last = (unsigned char)(*last & ~((0xfU ^ (unsigned)digit) << shift));
            digit_count++;
        }
    }
    return true;
}

qr_rc qr_jobs_find_prefix(struct qr_tx *tx, qr_str prefix, qr_uuid *ret_id, qr_err *err)
{
    const qr_str shown = qr_utf8_prefix(prefix, PREFIX_CHARS_MAX);
    qr_uuid first, last;
    size_t count = 0;
    if (prefix_range(prefix, &first, &last)) {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows, "SELECT id FROM job WHERE id >= ?1 AND id <= ?2 ORDER BY id LIMIT 2",
                           QR_VALS(qr_val_uuid(&first), qr_val_uuid(&last)), err));
        while (qr_rows_next(&rows)) {
            *ret_id = qr_rows_uuid(&rows, 0);
            count++;
        }
        QR_TRY(qr_rows_end(&rows, err));
    }
    if (count > 1) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the ids of several jobs begin with %.*s: give more of it",
                       QR_STR_ARG(shown));
    }
    return count == 1 ? QR_OK : qr_fail(err, QR_CODE_NOT_FOUND, "there is no job %.*s", QR_STR_ARG(shown));
}

/* ---- who holds it ---- */

qr_rc qr_jobs_is_held(struct qr_tx *tx, qr_uuid id, int64_t fence, qr_uuid worker_id, bool *ret_is_held, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx, "SELECT fence FROM job WHERE id = ?1 AND state = 4 AND fence = ?2 AND worker_id = ?3",
                         QR_VALS(qr_val_uuid(&id), qr_val_i64(fence), qr_val_uuid(&worker_id)), ret_is_held, &ignored,
                         err);
}

/* ---- why it waits ---- */

qr_rc qr_jobs_find_blocker(struct qr_tx *tx, qr_uuid id, bool *ret_found, qr_uuid *ret_id, enum qr_job_state *ret_state,
                           qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id, state FROM job WHERE serial_key = (SELECT serial_key FROM job WHERE id = ?1) "
                       "AND serial_key IS NOT NULL AND state IN " QR_JOB_ACTIVE_SQL " AND id <> ?1",
                       QR_VALS(qr_val_uuid(&id)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        *ret_id = qr_rows_uuid(&rows, 0);
        *ret_state = (enum qr_job_state)qr_rows_i64(&rows, 1);
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_workers_count_live(struct qr_tx *tx, int64_t *ret_count, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_get_i64(tx, "SELECT count(*) FROM worker WHERE dead = 0 AND lease_until >= ?1",
                         QR_VALS(qr_val_i64(now_ms)), NULL, ret_count, err);
}

/* ---- once more ---- */

static qr_rc require_retryable(enum qr_job_state state, qr_err *err)
{
    if (qr_job_state_is_open(state)) {
        return qr_fail(err, QR_CODE_NOT_TERMINAL, "the job is %s: it has not ended yet", qr_job_state_name(state));
    }
    if (state != QR_JOB_FAILED && state != QR_JOB_CANCELLED) {
        return qr_fail(err, QR_CODE_NOT_FAILED, "the job is %s: only a failed or cancelled one is retried",
                       qr_job_state_name(state));
    }
    return QR_OK;
}

qr_rc qr_jobs_add_again(struct qr_tx *tx, qr_uuid id, qr_uuid new_id, qr_uuid *ret_id, bool *ret_existed, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_job job;
    bool found;
    QR_TRY(qr_jobs_find(tx, id, &arena, &found, &job, err));
    if (!found) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such job");
    }
    QR_TRY(require_retryable(job.state, err));
    const struct qr_new_job copy = {
        .spec = {.queue = job.queue,
                 .type = job.type,
                 .base_id = job.base_id,
                 .item_id = job.item_id,
                 .generation = job.generation,
                 .priority = (int)job.priority,
                 .args = qr_str_of(job.args),
                 .time_limit_ms = job.time_limit_ms},
        .id = new_id,
        .idempotency_key = job.idempotency_key,
        .serial_key = job.serial_key,
    };
    return qr_jobs_add_new(tx, &copy, ret_id, ret_existed, err);
}
