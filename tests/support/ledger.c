/* Owns the tables of the ledger and the only judgement on them. */
#include "support/ledger.h"

#include "base/mem.h"

#include <assert.h>

enum { CHECKED_PAYLOAD_BYTES_MAX = 1 << 20 };

const struct qr_migration ledger_migrations[] = {
    {"ledger", "CREATE TABLE ticket (id INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;"
               "INSERT INTO ticket (id, last) VALUES (1, 0);"
               "CREATE TABLE line (ticket INTEGER PRIMARY KEY, producer INTEGER NOT NULL, number INTEGER NOT NULL, "
               "payload BLOB NOT NULL) STRICT;"},
    {"twins", "CREATE TABLE twin (producer INTEGER NOT NULL, number INTEGER NOT NULL, ticket INTEGER NOT NULL, "
              "PRIMARY KEY (producer, number)) STRICT;"
              "CREATE UNIQUE INDEX line_by_number ON line (producer, number);"},
};
const size_t ledger_migration_count = QR_COUNT(ledger_migrations);

/* The payload of a line: its bytes follow from producer and number, its length is told. */
static void fill_payload(char *bytes, size_t len, int64_t producer, int64_t number)
{
    struct qr_rand_seeded sequence;
    qr_rand_seeded_init(&sequence, (uint64_t)number * LEDGER_PRODUCERS_MAX + (uint64_t)producer);
    sequence.rand.fill(&sequence.rand, bytes, len);
}

static size_t choose_len(const struct ledger_line *line)
{
    struct qr_rand_seeded sequence;
    qr_rand_seeded_init(&sequence, ~((uint64_t)line->number * LEDGER_PRODUCERS_MAX + (uint64_t)line->producer));
    return qr_rand_below(&sequence.rand, line->payload_bytes_max + 1);
}

static qr_rc add_line(struct qr_tx *tx, const struct ledger_line *line, int64_t ticket, qr_err *err)
{
    const size_t len = choose_len(line);
    QR_CLEANUP(qr_free_ptr) char *payload = qr_alloc(len);
    if (!payload) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a payload");
    }
    fill_payload(payload, len, line->producer, line->number);
    return qr_tx_exec(
        tx, "INSERT INTO line (ticket, producer, number, payload) VALUES (?1, ?2, ?3, ?4)",
        QR_VALS(qr_val_i64(ticket), qr_val_i64(line->producer), qr_val_i64(line->number), qr_val_blob(payload, len)),
        NULL, err);
}

qr_rc ledger_add(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct ledger_line *line = arg;
    assert(line->producer >= 0 && line->producer < LEDGER_PRODUCERS_MAX);
    int64_t ticket = 0;
    QR_TRY(qr_tx_get_i64(tx, "UPDATE ticket SET last = last + 1 WHERE id = 1 RETURNING last", QR_NO_VALS, NULL, &ticket,
                         err));
    QR_TRY(add_line(tx, line, ticket, err));
    QR_TRY(qr_tx_exec(tx, "INSERT INTO twin (producer, number, ticket) VALUES (?1, ?2, ?3)",
                      QR_VALS(qr_val_i64(line->producer), qr_val_i64(line->number), qr_val_i64(ticket)), NULL, err));
    return line->fail ? qr_fail(err, QR_CODE_STALE, "on purpose") : QR_OK;
}

static qr_rc damaged(qr_err *err, const char *what, int64_t producer, int64_t number)
{
    return qr_fail(err, QR_CODE_DATA_CORRUPT, "%s: producer %lld, number %lld", what, (long long)producer,
                   (long long)number);
}

/* The lines in the order of their tickets: each is its producer's next, and nothing is left out. */
static qr_rc check_line(const struct qr_rows *rows, struct ledger_state *state, char *expected, qr_err *err)
{
    const int64_t producer = qr_rows_i64(rows, 1), number = qr_rows_i64(rows, 2);
    const qr_str payload = qr_rows_str(rows, 3);
    state->line_count++;
    if (producer < 0 || producer >= LEDGER_PRODUCERS_MAX || number < 1) {
        return damaged(err, "a line that nobody completed", producer, number);
    }
    if (qr_rows_i64(rows, 0) != state->line_count) {
        return damaged(err, "an earlier line is missing", producer, number);
    }
    if (number != ++state->last_number[producer]) {
        return damaged(err, "out of order", producer, number);
    }
    if (qr_rows_is_null(rows, 4) || qr_rows_i64(rows, 4) != state->line_count) {
        return damaged(err, "half a write: the twin is missing", producer, number);
    }
    if (payload.len > CHECKED_PAYLOAD_BYTES_MAX) {
        return damaged(err, "a payload that nobody wrote", producer, number);
    }
    fill_payload(expected, payload.len, producer, number);
    if (!qr_str_equal(payload, (qr_str){expected, payload.len})) {
        return damaged(err, "another payload than was written", producer, number);
    }
    return QR_OK;
}

static qr_rc check_counts(struct qr_tx *tx, int64_t line_count, qr_err *err)
{
    int64_t last_ticket = -1, twin_count = -1;
    QR_TRY(qr_tx_get_i64(tx, "SELECT last FROM ticket WHERE id = 1", QR_NO_VALS, NULL, &last_ticket, err));
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM twin", QR_NO_VALS, NULL, &twin_count, err));
    if (last_ticket != line_count || twin_count != line_count) {
        return qr_fail(err, QR_CODE_DATA_CORRUPT, "%lld lines, %lld twins, %lld tickets", (long long)line_count,
                       (long long)twin_count, (long long)last_ticket);
    }
    return QR_OK;
}

struct load {
    struct ledger_state *state;
    char *expected; /* scratch */
};

static qr_rc load(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct load *run = arg;
    *run->state = (struct ledger_state){0};
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT line.ticket, line.producer, line.number, line.payload, twin.ticket FROM line "
                       "LEFT JOIN twin ON twin.producer = line.producer AND twin.number = line.number "
                       "ORDER BY line.ticket",
                       QR_NO_VALS, err));
    while (qr_rows_next(&rows)) {
        QR_TRY(check_line(&rows, run->state, run->expected, err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    return check_counts(tx, run->state->line_count, err);
}

qr_rc ledger_load(struct qr_db *db, struct ledger_state *ret_state, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *expected = qr_alloc(CHECKED_PAYLOAD_BYTES_MAX);
    if (!expected) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a payload");
    }
    struct ledger_state state;
    struct load run = {&state, expected};
    QR_TRY(qr_db_read(db, load, &run, err));
    *ret_state = state;
    return QR_OK;
}

int64_t ledger_count_lost(const struct ledger_state *state, const int64_t acknowledged[static LEDGER_PRODUCERS_MAX])
{
    int64_t lost = 0;
    for (int i = 0; i < LEDGER_PRODUCERS_MAX; i++) {
        lost += QR_MAX(acknowledged[i] - state->last_number[i], 0);
    }
    return lost;
}
