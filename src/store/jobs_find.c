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
    return qr_tx_get_i64(
        tx, "SELECT fence FROM job WHERE id = ?1 AND state = 4 AND fence = ?2 AND worker_id = ?3 /*pg FOR UPDATE */",
        QR_VALS(qr_val_uuid(&id), qr_val_i64(fence), qr_val_uuid(&worker_id)), ret_is_held, &ignored, err);
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

/* What of the old job the copy needs besides what SQL copies. */
struct original {
    qr_uuid id;
    enum qr_job_state state;
    bool has_idempotency_key, has_serial_key;
    unsigned char idempotency_key[QR_KEY_HASH_BYTES], serial_key[QR_KEY_HASH_BYTES];
};

static qr_rc load_original(struct qr_tx *tx, struct original *original, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT state, idempotency_key, serial_key FROM job WHERE id = ?1",
                       QR_VALS(qr_val_uuid(&original->id)), err));
    if (!qr_rows_next(&rows)) {
        QR_TRY(qr_rows_end(&rows, err));
        return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such job");
    }
    original->state = (enum qr_job_state)qr_rows_i64(&rows, 0);
    original->has_idempotency_key = qr_rows_key(&rows, 1, original->idempotency_key);
    original->has_serial_key = qr_rows_key(&rows, 2, original->serial_key);
    return qr_rows_end(&rows, err);
}

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

/* Nothing is inserted where a unique index forbids it (J2). */
static qr_rc insert_copy(struct qr_tx *tx, const struct original *original, qr_uuid new_id, enum qr_job_state state,
                         bool *ret_inserted, qr_err *err)
{
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(
        tx,
        "INSERT INTO job (id, queue, type, base_id, item_id, generation, state, priority, run_at, idempotency_key, "
        "serial_key, args, time_limit, created_at) SELECT ?2, queue, type, base_id, item_id, generation, ?3, priority, "
        "?4, idempotency_key, serial_key, args, time_limit, ?5 FROM job WHERE id = ?1 ON CONFLICT DO NOTHING",
        QR_VALS(qr_val_uuid(&original->id), qr_val_uuid(&new_id), qr_val_i64(state), qr_val_i64(now_ms),
                qr_val_i64(now_ms)),
        &changes, err));
    *ret_inserted = changes == 1;
    return QR_OK;
}

/* One try; *ret_done is false when the job that stood in the way has just ended. */
static qr_rc try_again(struct qr_tx *tx, const struct original *original, qr_uuid new_id, qr_uuid *ret_id,
                       bool *ret_existed, bool *ret_done, qr_err *err)
{
    *ret_id = new_id;
    *ret_existed = false;
    QR_TRY(insert_copy(tx, original, new_id, QR_JOB_QUEUED, ret_done, err));
    if (!*ret_done && original->has_idempotency_key) {
        QR_TRY(
            qr_jobs_find_open(tx, qr_val_blob(original->idempotency_key, QR_KEY_HASH_BYTES), ret_existed, ret_id, err));
        *ret_done = *ret_existed;
    }
    if (*ret_done || !original->has_serial_key) {
        return QR_OK;
    }
    bool is_held;
    QR_TRY(qr_jobs_lock_active(tx, qr_val_blob(original->serial_key, QR_KEY_HASH_BYTES), &is_held, err));
    return is_held ? insert_copy(tx, original, new_id, QR_JOB_BLOCKED, ret_done, err) : QR_OK;
}

qr_rc qr_jobs_add_again(struct qr_tx *tx, qr_uuid id, qr_uuid new_id, qr_uuid *ret_id, bool *ret_existed, qr_err *err)
{
    enum { TRIES_MAX = 20 }; /* each needs another job of the key to end in just that moment */
    struct original original = {.id = id};
    QR_TRY(load_original(tx, &original, err));
    QR_TRY(require_retryable(original.state, err));
    bool done = false;
    for (int tries = 0; !done && tries < TRIES_MAX; tries++) {
        QR_TRY(try_again(tx, &original, new_id, ret_id, ret_existed, &done, err));
    }
    if (!done) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "too many jobs of one key begin and end at the same time");
    }
    return qr_tx_notify(tx, QR_JOBS_CHANNEL, err);
}
