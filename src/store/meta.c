/* Owns the table `meta`. */
#include "store/meta.h"

qr_rc qr_meta_find(struct qr_tx *tx, const char *key, bool *ret_found, struct qr_buf *out, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT value FROM meta WHERE key = ?1", QR_VALS(qr_val_text(qr_str_of(key))), err));
    const bool found = qr_rows_next(&rows);
    if (found) {
        qr_buf_add(out, qr_rows_str(&rows, 0));
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_found = found;
    return qr_buf_check(out, err);
}

qr_rc qr_meta_add(struct qr_tx *tx, const char *key, const char *value, qr_err *err)
{
    return qr_tx_exec(tx, "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING",
                      QR_VALS(qr_val_text(qr_str_of(key)), qr_val_text(qr_str_of(value))), NULL, err);
}
