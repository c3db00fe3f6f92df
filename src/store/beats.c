/* Owns the table `beat_slot`. */
#include "store/beats.h"

qr_rc qr_beats_take(struct qr_tx *tx, const char *name, int64_t slot_ms, bool *ret_taken, qr_err *err)
{
    int64_t changes;
    QR_TRY(qr_tx_exec(tx, "INSERT INTO beat_slot (name, slot) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                      QR_VALS(qr_val_text(qr_str_of(name)), qr_val_i64(slot_ms)), &changes, err));
    *ret_taken = changes > 0;
    return QR_OK;
}

qr_rc qr_beats_is_ahead(struct qr_tx *tx, const char *name, int64_t slot_ms, bool *ret_is_ahead, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx, "SELECT slot FROM beat_slot WHERE name = ?1 AND slot > ?2 LIMIT 1",
                         QR_VALS(qr_val_text(qr_str_of(name)), qr_val_i64(slot_ms)), ret_is_ahead, &ignored, err);
}

qr_rc qr_beats_prune(struct qr_tx *tx, int64_t before_ms, int64_t *ret_count, qr_err *err)
{
    return qr_tx_exec(tx,
                      "DELETE FROM beat_slot WHERE (name, slot) IN (SELECT name, slot FROM beat_slot WHERE slot < ?1 "
                      "LIMIT ?2)",
                      QR_VALS(qr_val_i64(before_ms), qr_val_i64(QR_BEAT_PRUNE_MAX)), ret_count, err);
}
