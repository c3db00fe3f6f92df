/* A ledger that shows whether anything was lost, doubled, torn or reordered: what the crash tests write and check.
 *
 * Each write function takes the next ticket, which is a counter that all share, and adds two rows: a line with a
 * payload that follows from its producer and number, and that line's twin. A producer numbers its lines 1, 2, 3 … and
 * waits for each. So after any crash the tickets must be 1 … n, every producer's numbers 1 … k, every line must have
 * its twin, and k must not be below what the producer was answered. */
#pragma once

#include "db/db.h"

enum { LEDGER_PRODUCERS_MAX = 64 };

extern const struct qr_migration ledger_migrations[];
extern const size_t ledger_migration_count;

struct ledger_line {
    int64_t producer; /* 0 … LEDGER_PRODUCERS_MAX-1 */
    int64_t number;
    size_t payload_bytes_max;
    bool fail; /* after all its changes; must leave nothing */
};
/* arg: struct ledger_line. One that fails on purpose gives QR_STALE. */
qr_tx_fn ledger_add;

/* How far each producer has come. */
struct ledger_state {
    int64_t line_count;
    int64_t last_number[LEDGER_PRODUCERS_MAX];
};

/* Reads the whole ledger. `data_corrupt` when it is not one that any order of whole writes could have left. */
qr_rc ledger_load(struct qr_db *db, struct ledger_state *ret_state, qr_err *err);

/* How many of the acknowledged lines (numbers 1 … acknowledged[producer]) are missing. */
int64_t ledger_count_lost(const struct ledger_state *state, const int64_t acknowledged[static LEDGER_PRODUCERS_MAX]);
