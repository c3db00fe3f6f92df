/* Ids in statements and rows. Private to src/store/. */
#pragma once

#include "base/uuid.h"
#include "db/db.h"

static inline struct qr_val qr_val_uuid(const qr_uuid *id)
{
    return qr_val_blob(id->bytes, QR_UUID_BYTES);
}

/* All zero = NULL. */
struct qr_val qr_val_uuid_or_null(const qr_uuid *id);

/* All zero for NULL, and for anything that is not an id. */
qr_uuid qr_rows_uuid(const struct qr_rows *rows, int column);

/* The one row whose id, as text, begins like this. The statement takes the first and the last such id as ?1 and ?2, with a
 * scope it as ?3, and gives at most two ids. `not_found`, also when it cannot be the beginning of an id; `invalid_value`
 * when there are several. `what`: "job". */
qr_rc qr_find_by_prefix(struct qr_tx *tx, const char *sql, const qr_uuid *scope, qr_str prefix, const char *what,
                        qr_uuid *ret_id, qr_err *err);
