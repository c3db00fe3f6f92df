/* Owns the rows of embedding models. */
#include "store/models.h"

static qr_rc find(struct qr_tx *tx, const char *fingerprint, bool *ret_found, int64_t *ret_dimension,
                  bool *ret_has_shortened, qr_err *err)
{
    QR_ROWS(rows);
    *ret_found = false;
    QR_TRY(qr_tx_query(tx, &rows, "SELECT dimension, has_shortened FROM embedding_model WHERE fingerprint = ?1",
                       QR_VALS(qr_val_text(qr_str_of(fingerprint))), err));
    if (qr_rows_next(&rows)) {
        *ret_found = true;
        *ret_dimension = qr_rows_i64(&rows, 0);
        *ret_has_shortened = qr_rows_i64(&rows, 1) != 0;
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_model_dimension(struct qr_tx *tx, const char *fingerprint, int *ret_dimension, qr_err *err)
{
    bool found, ignored;
    int64_t dimension = 0;
    QR_TRY(find(tx, fingerprint, &found, &dimension, &ignored, err));
    *ret_dimension = found ? (int)dimension : 0;
    return QR_OK;
}

qr_rc qr_model_has_shortened(struct qr_tx *tx, const char *fingerprint, bool *ret_has, qr_err *err)
{
    bool found, has = false;
    int64_t ignored;
    QR_TRY(find(tx, fingerprint, &found, &ignored, &has, err));
    *ret_has = found && has;
    return QR_OK;
}

qr_rc qr_model_note(struct qr_tx *tx, const char *fingerprint, int dimension, bool has_shortened, qr_err *err)
{
    bool found, has = false;
    int64_t before = 0, now_ms;
    QR_TRY(find(tx, fingerprint, &found, &before, &has, err));
    if (found && before != dimension) {
        return qr_fail(err, QR_CODE_DIMENSION_MISMATCH, "the model's vectors have %d dimensions now, and %lld before",
                       dimension, (long long)before);
    }
    if (found && (has || !has_shortened)) {
        return QR_OK;
    }
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(tx,
                      "INSERT INTO embedding_model (fingerprint, dimension, has_shortened, added_at) "
                      "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (fingerprint) DO UPDATE SET has_shortened = "
                      "CASE WHEN excluded.has_shortened = 1 THEN 1 ELSE embedding_model.has_shortened END",
                      QR_VALS(qr_val_text(qr_str_of(fingerprint)), qr_val_i64(dimension), qr_val_i64(has_shortened),
                              qr_val_i64(now_ms)),
                      NULL, err);
}

qr_rc qr_model_set_dimension(struct qr_tx *tx, const char *fingerprint, int dimension, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE embedding_model SET dimension = ?2 WHERE fingerprint = ?1",
                      QR_VALS(qr_val_text(qr_str_of(fingerprint)), qr_val_i64(dimension)), NULL, err);
}

qr_rc qr_model_set_pace(struct qr_tx *tx, const char *fingerprint, int64_t texts_a_minute, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE embedding_model SET texts_a_minute = ?2 WHERE fingerprint = ?1",
                      QR_VALS(qr_val_text(qr_str_of(fingerprint)), qr_val_i64(texts_a_minute)), NULL, err);
}

qr_rc qr_model_pace(struct qr_tx *tx, const char *fingerprint, int64_t *ret_texts_a_minute, qr_err *err)
{
    *ret_texts_a_minute = 0;
    return qr_tx_get_i64(tx, "SELECT texts_a_minute FROM embedding_model WHERE fingerprint = ?1",
                         QR_VALS(qr_val_text(qr_str_of(fingerprint))), NULL, ret_texts_a_minute, err);
}
