/* Facts about an instance, one row each: instance_id (a UUIDv7), created_at (RFC 3339). */
#pragma once

#include "base/buf.h"
#include "db/db.h"

/* Appends the value; *ret_found says whether there is one. */
qr_rc qr_meta_find(struct qr_tx *tx, const char *key, bool *ret_found, struct qr_buf *out, qr_err *err);

/* Writes a fact that never changes: an existing value stays. */
qr_rc qr_meta_add(struct qr_tx *tx, const char *key, const char *value, qr_err *err);
