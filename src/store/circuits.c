/* Owns the table `circuit`. */
#include "store/circuits.h"

qr_rc qr_circuit_save(struct qr_tx *tx, const struct qr_circuit_row *row, qr_err *err)
{
    return qr_tx_exec(tx,
                      "INSERT INTO circuit (id, url, code, message, since, next_try) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
                      "ON CONFLICT (id) DO UPDATE SET code = excluded.code, message = excluded.message, "
                      "next_try = excluded.next_try",
                      QR_VALS(qr_val_blob(row->id, sizeof row->id), qr_val_text(qr_str_of(row->url)),
                              qr_val_text(qr_str_of(row->code)), qr_val_text(qr_str_of(row->message)),
                              qr_val_i64(row->since_ms), qr_val_i64(row->next_try_ms)),
                      NULL, err);
}

qr_rc qr_circuit_remove(struct qr_tx *tx, const unsigned char id[static QR_HASH_BYTES], qr_err *err)
{
    return qr_tx_exec(tx, "DELETE FROM circuit WHERE id = ?1", QR_VALS(qr_val_blob(id, QR_HASH_BYTES)), NULL, err);
}

qr_rc qr_circuit_find(struct qr_tx *tx, const unsigned char id[static QR_HASH_BYTES], struct qr_arena *arena,
                      bool *ret_found, struct qr_circuit_row *ret_row, qr_err *err)
{
    QR_ROWS(rows);
    struct qr_circuit_row row = {.url = "", .code = "", .message = ""};
    QR_TRY(qr_tx_query(tx, &rows, "SELECT url, code, message, since, next_try FROM circuit WHERE id = ?1",
                       QR_VALS(qr_val_blob(id, QR_HASH_BYTES)), err));
    const bool found = qr_rows_next(&rows);
    if (found) {
        row = (struct qr_circuit_row){.url = qr_arena_copy(arena, qr_rows_str(&rows, 0)),
                                      .code = qr_arena_copy(arena, qr_rows_str(&rows, 1)),
                                      .message = qr_arena_copy(arena, qr_rows_str(&rows, 2)),
                                      .since_ms = qr_rows_i64(&rows, 3),
                                      .next_try_ms = qr_rows_i64(&rows, 4)};
        memcpy(row.id, id, QR_HASH_BYTES);
    }
    QR_TRY(qr_rows_end(&rows, err));
    if (!row.url || !row.code || !row.message) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an endpoint's circuit");
    }
    *ret_found = found;
    *ret_row = row;
    return QR_OK;
}

qr_rc qr_circuit_is_any(struct qr_tx *tx, bool *ret_is, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx, "SELECT 1 FROM circuit LIMIT 1", QR_NO_VALS, ret_is, &ignored, err);
}
