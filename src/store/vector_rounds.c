/* Owns the one row of `vector_round`, and the marks in `vector_use`. The invariants are in vector_rounds.h. */
#include "store/vector_rounds.h"

#include "store/ids.h"

#include <stdio.h>
#include <string.h>

/* ---- the row ---- */

#define ROUND_SELECT                                                                                                   \
    "SELECT number, phase, to_bytes, looked_at, base_id, item_id, generation, ordinal, excess_bytes, began_at, "       \
    "ended_at, freed_count, freed_bytes, put_off, used_at, key FROM vector_round WHERE id = 1"

static qr_rc load(struct qr_tx *tx, const char *sql, struct qr_vector_round *ret_round, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, QR_NO_VALS, err));
    *ret_round = (struct qr_vector_round){0};
    if (qr_rows_next(&rows)) {
        *ret_round = (struct qr_vector_round){
            .number = qr_rows_i64(&rows, 0),
            .phase = (enum qr_round_phase)qr_rows_i64(&rows, 1),
            .to_bytes = qr_rows_i64(&rows, 2),
            .looked_ms = qr_rows_i64(&rows, 3),
            .place = {.base_id = qr_rows_uuid(&rows, 4),
                      .item_id = qr_rows_uuid(&rows, 5),
                      .generation = qr_rows_i64(&rows, 6),
                      .ordinal = qr_rows_i64(&rows, 7)},
            .excess_bytes = qr_rows_i64(&rows, 8),
            .began_ms = qr_rows_i64(&rows, 9),
            .ended_ms = qr_rows_i64(&rows, 10),
            .freed_count = qr_rows_i64(&rows, 11),
            .freed_bytes = qr_rows_i64(&rows, 12),
            .evicted_upto_ms = qr_rows_i64(&rows, 14),
        };
        snprintf(ret_round->put_off, sizeof ret_round->put_off, "%.*s", QR_STR_ARG(qr_rows_str(&rows, 13)));
        const qr_str key = qr_rows_str(&rows, 15);
        if (key.len == QR_VECTOR_KEY_BYTES) {
            memcpy(ret_round->evicted_upto_key, key.ptr, key.len);
        }
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_round_load(struct qr_tx *tx, struct qr_vector_round *ret_round, qr_err *err)
{
    return load(tx, ROUND_SELECT, ret_round, err);
}

/* Not in the way of those who add entries. */
qr_rc qr_round_lock(struct qr_tx *tx, struct qr_vector_round *ret_round, qr_err *err)
{
    return load(tx, ROUND_SELECT " /*pg FOR NO KEY UPDATE */", ret_round, err);
}

/* A statement about the row that takes the time as ?1, and one more value. */
static qr_rc change(struct qr_tx *tx, const char *sql, struct qr_val value, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(tx, sql, QR_VALS(qr_val_i64(now_ms), value), NULL, err);
}

qr_rc qr_round_note_look(struct qr_tx *tx, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(tx, "UPDATE vector_round SET looked_at = ?1 WHERE id = 1", QR_VALS(qr_val_i64(now_ms)), NULL,
                      err);
}

/* V1: the lock waits for all who are about to add entries with the number from before. */
qr_rc qr_round_begin(struct qr_tx *tx, int64_t to_bytes, qr_err *err)
{
    struct qr_vector_round round;
    QR_TRY(load(tx, ROUND_SELECT " /*pg FOR UPDATE */", &round, err));
    if (round.phase != QR_ROUND_NONE) {
        return change(tx,
                      "UPDATE vector_round SET looked_at = ?1, excess_bytes = excess_bytes + CASE WHEN to_bytes > ?2 "
                      "THEN to_bytes - ?2 ELSE 0 END, to_bytes = CASE WHEN to_bytes > ?2 THEN ?2 ELSE to_bytes END "
                      "WHERE id = 1",
                      qr_val_i64(to_bytes), err);
    }
    return change(tx,
                  "UPDATE vector_round SET number = number + 1, phase = 1, to_bytes = ?2, looked_at = ?1, base_id = "
                  "NULL, item_id = NULL, generation = 0, ordinal = 0, excess_bytes = 0, freed_count = 0, freed_bytes = "
                  "0, began_at = ?1, ended_at = 0, put_off = '' WHERE id = 1",
                  qr_val_i64(to_bytes), err);
}

qr_rc qr_round_go_to(struct qr_tx *tx, const struct qr_round_place *place, qr_err *err)
{
    return qr_tx_exec(tx,
                      "UPDATE vector_round SET base_id = ?1, item_id = ?2, generation = ?3, ordinal = ?4 WHERE id = 1",
                      QR_VALS(qr_val_uuid_or_null(&place->base_id), qr_val_uuid_or_null(&place->item_id),
                              qr_val_i64(place->generation), qr_val_i64(place->ordinal)),
                      NULL, err);
}

qr_rc qr_round_put_off(struct qr_tx *tx, const char *why, qr_err *err)
{
    return change(tx, "UPDATE vector_round SET phase = 0, ended_at = ?1, put_off = ?2 WHERE id = 1",
                  qr_val_text(qr_str_of(why)), err);
}

/* ---- marking ---- */

enum { KEYS_A_STATEMENT = 16 };

/* Fewer are filled up with the last one. */
qr_rc qr_round_mark(struct qr_tx *tx, const struct qr_vector_round *round,
                    const unsigned char (*keys)[QR_VECTOR_KEY_BYTES], size_t count, qr_err *err)
{
    for (size_t from = 0; from < count; from += KEYS_A_STATEMENT) {
        struct qr_val vals[1 + KEYS_A_STATEMENT] = {qr_val_i64(round->number)};
        for (size_t i = 0; i < KEYS_A_STATEMENT; i++) {
            vals[1 + i] = qr_val_blob(keys[QR_MIN(from + i, count - 1)], QR_VECTOR_KEY_BYTES);
        }
        QR_TRY(qr_tx_exec(tx,
                          "UPDATE vector_use SET round = ?1 WHERE round <> ?1 AND key IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, "
                          "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
                          vals, QR_COUNT(vals), NULL, err));
    }
    return QR_OK;
}

/* ---- evicting ---- */

qr_rc qr_round_begin_evicting(struct qr_tx *tx, int64_t excess_bytes, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE vector_round SET phase = 2, excess_bytes = ?1, used_at = ?2, key = NULL WHERE id = 1",
                      QR_VALS(qr_val_i64(excess_bytes), qr_val_i64(INT64_MIN)), NULL, err);
}

struct candidates {
    struct {
        unsigned char key[QR_VECTOR_KEY_BYTES];
        int64_t used_ms, size_bytes;
        bool is_marked;
    } entries[QR_ROUND_EVICT_MAX];
    size_t count;
};

/* Those used longest ago, behind the ones that were looked at. */
static qr_rc load_candidates(struct qr_tx *tx, const struct qr_vector_round *round, struct candidates *candidates,
                             qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(
        qr_tx_query(tx, &rows,
                    "SELECT key, used_at, size_bytes, round FROM vector_use WHERE (used_at, key) > (?1, ?2) "
                    "ORDER BY used_at, key LIMIT ?3",
                    QR_VALS(qr_val_i64(round->evicted_upto_ms),
                            qr_val_blob(round->evicted_upto_key, QR_VECTOR_KEY_BYTES), qr_val_i64(QR_ROUND_EVICT_MAX)),
                    err));
    candidates->count = 0;
    while (qr_rows_next(&rows)) {
        const qr_str key = qr_rows_str(&rows, 0);
        if (key.len == QR_VECTOR_KEY_BYTES) {
            const size_t i = candidates->count++;
            memcpy(candidates->entries[i].key, key.ptr, key.len);
            candidates->entries[i].used_ms = qr_rows_i64(&rows, 1);
            candidates->entries[i].size_bytes = qr_rows_i64(&rows, 2);
            candidates->entries[i].is_marked = qr_rows_i64(&rows, 3) == round->number;
        }
    }
    return qr_rows_end(&rows, err);
}

/* V2: the mark is looked at once more by the statement that takes the row away, since somebody may have used it meanwhile. */
static qr_rc evict_entry(struct qr_tx *tx, const struct qr_vector_round *round,
                         const unsigned char key[static QR_VECTOR_KEY_BYTES], bool *ret_is_gone, qr_err *err)
{
    int64_t changes;
    QR_TRY(qr_tx_exec(tx, "DELETE FROM vector_use WHERE key = ?1 AND round <> ?2",
                      QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES), qr_val_i64(round->number)), &changes, err));
    *ret_is_gone = changes > 0;
    return *ret_is_gone ? qr_tx_exec(tx, "DELETE FROM vector_cache WHERE key = ?1",
                                     QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES)), NULL, err)
                        : QR_OK;
}

qr_rc qr_round_evict(struct qr_tx *tx, const struct qr_vector_round *round, bool *ret_is_over, qr_err *err)
{
    struct candidates candidates;
    int64_t freed_count = 0, freed_bytes = 0;
    size_t i = 0;
    QR_TRY(load_candidates(tx, round, &candidates, err));
    for (; i < candidates.count && freed_bytes < round->excess_bytes; i++) {
        bool is_gone = false;
        if (!candidates.entries[i].is_marked) {
            QR_TRY(evict_entry(tx, round, candidates.entries[i].key, &is_gone, err));
        }
        freed_count += is_gone;
        freed_bytes += is_gone ? candidates.entries[i].size_bytes : 0;
    }
    *ret_is_over = freed_bytes >= round->excess_bytes || candidates.count < QR_ROUND_EVICT_MAX;
    QR_TRY(qr_tx_exec(tx,
                      "UPDATE vector_round SET excess_bytes = excess_bytes - ?1, freed_bytes = freed_bytes + ?1, "
                      "freed_count = freed_count + ?2 WHERE id = 1",
                      QR_VALS(qr_val_i64(freed_bytes), qr_val_i64(freed_count)), NULL, err));
    if (*ret_is_over) {
        return qr_round_put_off(tx, "", err);
    }
    return qr_tx_exec(tx, "UPDATE vector_round SET used_at = ?1, key = ?2 WHERE id = 1",
                      QR_VALS(qr_val_i64(candidates.entries[i - 1].used_ms),
                              qr_val_blob(candidates.entries[i - 1].key, QR_VECTOR_KEY_BYTES)),
                      NULL, err);
}

/* ---- looking ---- */

qr_rc qr_vector_totals(struct qr_tx *tx, struct qr_vector_totals *ret_totals, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT count(*), CAST(coalesce(sum(size_bytes), 0) AS BIGINT) FROM vector_use",
                       QR_NO_VALS, err));
    *ret_totals = (struct qr_vector_totals){0};
    if (qr_rows_next(&rows)) {
        *ret_totals = (struct qr_vector_totals){qr_rows_i64(&rows, 0), qr_rows_i64(&rows, 1)};
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_model_next(struct qr_tx *tx, const char *after, bool *ret_found,
                    char ret_fingerprint[static QR_FINGERPRINT_SIZE], qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT fingerprint FROM embedding_model WHERE fingerprint > ?1 ORDER BY fingerprint LIMIT 1",
                       QR_VALS(qr_val_text(qr_str_of(after))), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        snprintf(ret_fingerprint, QR_FINGERPRINT_SIZE, "%.*s", QR_STR_ARG(qr_rows_str(&rows, 0)));
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_items_chunked(struct qr_tx *tx, qr_uuid base_id, qr_uuid after, int limit, struct qr_chunked_item *ret_items,
                       size_t *ret_count, qr_err *err)
{
    size_t count = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id, generation, live_generation, chunk_count FROM item WHERE base_id = ?1 AND id > ?2 "
                       "AND is_container = 0 AND status <> 8 ORDER BY base_id, id LIMIT ?3",
                       QR_VALS(qr_val_uuid(&base_id), qr_val_uuid(&after), qr_val_i64(limit)), err));
    while (qr_rows_next(&rows)) {
        ret_items[count++] = (struct qr_chunked_item){.id = qr_rows_uuid(&rows, 0),
                                                      .generation = qr_rows_i64(&rows, 1),
                                                      .live_generation = qr_rows_i64(&rows, 2),
                                                      .chunk_count = qr_rows_i64(&rows, 3)};
    }
    *ret_count = count;
    return qr_rows_end(&rows, err);
}
