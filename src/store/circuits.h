/* Which endpoints refuse to be asked, as the processes last saw it (AGAIN-2). A row is word for people: what is sent is decided
 * in memory (remote/endpoint.h), by each process for itself. */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "db/db.h"

struct qr_circuit_row {
    unsigned char id[QR_HASH_BYTES]; /* of the endpoint */
    const char *url, *code, *message;
    int64_t since_ms, next_try_ms;
};

/* Writes it down; one that is there keeps its `since_ms`. To be run inside a write function, as the next. */
qr_rc qr_circuit_save(struct qr_tx *tx, const struct qr_circuit_row *row, qr_err *err);
qr_rc qr_circuit_remove(struct qr_tx *tx, const unsigned char id[static QR_HASH_BYTES], qr_err *err);
/* The row, its texts in the arena; *ret_found is false where the endpoint is not known to refuse. */
qr_rc qr_circuit_find(struct qr_tx *tx, const unsigned char id[static QR_HASH_BYTES], struct qr_arena *arena,
                      bool *ret_found, struct qr_circuit_row *ret_row, qr_err *err);
/* Whether any endpoint is known to refuse. */
qr_rc qr_circuit_is_any(struct qr_tx *tx, bool *ret_is, qr_err *err);
