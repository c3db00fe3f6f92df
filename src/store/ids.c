/* Ids in statements and rows. */
#include "store/ids.h"

struct qr_val qr_val_uuid_or_null(const qr_uuid *id)
{
    return qr_uuid_is_zero(*id) ? qr_val_null() : qr_val_uuid(id);
}

qr_uuid qr_rows_uuid(const struct qr_rows *rows, int column)
{
    qr_uuid id = {0};
    const qr_str bytes = qr_rows_str(rows, column);
    if (bytes.len == QR_UUID_BYTES) {
        memcpy(id.bytes, bytes.ptr, QR_UUID_BYTES);
    }
    return id;
}

qr_rc qr_find_by_prefix(struct qr_tx *tx, const char *sql, const qr_uuid *scope, qr_str prefix, const char *what,
                        qr_uuid *ret_id, qr_err *err)
{
    const qr_str shown = qr_utf8_prefix(prefix, QR_UUID_TEXT_SIZE - 1);
    qr_uuid first, last;
    size_t count = 0;
    if (qr_uuid_prefix_range(prefix, &first, &last)) {
        const struct qr_val vals[] = {qr_val_uuid(&first), qr_val_uuid(&last), qr_val_uuid(scope ? scope : &first)};
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows, sql, vals, scope ? 3 : 2, err));
        while (qr_rows_next(&rows)) {
            *ret_id = qr_rows_uuid(&rows, 0);
            count++;
        }
        QR_TRY(qr_rows_end(&rows, err));
    }
    if (count > 1) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the ids of several %ss begin with %.*s: give more of it", what,
                       QR_STR_ARG(shown));
    }
    return count == 1 ? QR_OK : qr_fail(err, QR_CODE_NOT_FOUND, "there is no %s %.*s", what, QR_STR_ARG(shown));
}
