/* Owns the table `idempotency` (store/idempotency.h). */
#include "store/idempotency.h"

enum { FORGET_MAX = 20 }; /* a request pays for a few old ones, so that there are never many */

static struct qr_val hash_val(const unsigned char *hash, size_t size)
{
    return qr_val_blob(hash, size);
}

static qr_rc forget_old(struct qr_tx *tx, int64_t now_ms, qr_err *err)
{
    return qr_tx_exec(tx,
                      "DELETE FROM idempotency WHERE key IN (SELECT key FROM idempotency WHERE created_at < ?1 "
                      "ORDER BY created_at LIMIT ?2)",
                      QR_VALS(qr_val_i64(now_ms - QR_IDEMPOTENCY_KEPT_MS), qr_val_i64(FORGET_MAX)), NULL, err);
}

static qr_rc find(struct qr_tx *tx, const unsigned char *key, const unsigned char *request, struct qr_arena *arena,
                  enum qr_idempotency_state *ret_state, struct qr_idempotency_answer *ret_answer, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT request, status, body FROM idempotency WHERE key = ?1",
                       QR_VALS(hash_val(key, QR_HASH_256_BYTES)), err));
    *ret_state = QR_IDEMPOTENCY_NEW;
    if (qr_rows_next(&rows)) {
        const bool is_same = qr_str_equal(qr_rows_str(&rows, 0), (qr_str){(const char *)request, QR_HASH_BYTES});
        ret_answer->status = (int)qr_rows_i64(&rows, 1);
        ret_answer->body = qr_arena_copy(arena, qr_rows_str(&rows, 2));
        *ret_state = !is_same             ? QR_IDEMPOTENCY_OTHER
                     : ret_answer->status ? QR_IDEMPOTENCY_DONE
                                          : QR_IDEMPOTENCY_PENDING;
        if (!ret_answer->body) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an answer");
        }
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_idempotency_begin(struct qr_tx *tx, const unsigned char key[static QR_HASH_256_BYTES],
                           const unsigned char request[static QR_HASH_BYTES], int64_t now_ms, struct qr_arena *arena,
                           enum qr_idempotency_state *ret_state, struct qr_idempotency_answer *ret_answer, qr_err *err)
{
    int64_t inserted = 0;
    QR_TRY(forget_old(tx, now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO idempotency (key, request, status, body, created_at) VALUES (?1, ?2, 0, '', ?3) "
                      "ON CONFLICT (key) DO NOTHING",
                      QR_VALS(hash_val(key, QR_HASH_256_BYTES), hash_val(request, QR_HASH_BYTES), qr_val_i64(now_ms)),
                      &inserted, err));
    if (inserted) {
        *ret_state = QR_IDEMPOTENCY_NEW;
        return QR_OK;
    }
    return find(tx, key, request, arena, ret_state, ret_answer, err);
}

qr_rc qr_idempotency_end(struct qr_tx *tx, const unsigned char key[static QR_HASH_256_BYTES], int status, qr_str body,
                         qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE idempotency SET status = ?2, body = ?3 WHERE key = ?1",
                      QR_VALS(hash_val(key, QR_HASH_256_BYTES), qr_val_i64(status), qr_val_text(body)), NULL, err);
}

qr_rc qr_idempotency_forget(struct qr_tx *tx, const unsigned char key[static QR_HASH_256_BYTES], qr_err *err)
{
    return qr_tx_exec(tx, "DELETE FROM idempotency WHERE key = ?1", QR_VALS(hash_val(key, QR_HASH_256_BYTES)), NULL,
                      err);
}
