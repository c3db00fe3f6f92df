/* Owns the rows of the vector cache. A vector is stored as 32-bit floats, the lowest byte first, so that a database can be
 * moved to any machine. */
#include "store/vectors.h"

#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>

static void pack(const float *vector, int dimension, unsigned char *ret_bytes)
{
    for (int i = 0; i < dimension; i++) {
        uint32_t bits;
        memcpy(&bits, &vector[i], sizeof bits);
        for (int b = 0; b < 4; b++) {
            *ret_bytes++ = (unsigned char)(bits >> (8 * b));
        }
    }
}

static void unpack(const unsigned char *bytes, int dimension, float *ret_vector)
{
    for (int i = 0; i < dimension; i++, bytes += 4) {
        const uint32_t bits =
            (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
        memcpy(&ret_vector[i], &bits, sizeof bits);
    }
}

void qr_vector_key(const char *fingerprint, qr_str text, unsigned char ret_key[static QR_VECTOR_KEY_BYTES])
{
    _Static_assert((int)QR_VECTOR_KEY_BYTES == (int)QR_HASH_256_BYTES, "a key is one hash");
    qr_hash_256(qr_str_of(fingerprint), text, ret_key);
}

/* Copies the vector of the row, where it has the length that it must have. */
static bool read_vector(const struct qr_rows *rows, int dimension, float *ret_vector)
{
    const qr_str bytes = qr_rows_str(rows, 0);
    if (bytes.len != (size_t)dimension * sizeof(float)) {
        return false;
    }
    unpack((const unsigned char *)bytes.ptr, dimension, ret_vector);
    return true;
}

/* Also where the clock was set back; and where there is no row of its use, it gets one. */
static bool is_long_ago(const struct qr_rows *rows, int column, int64_t now_ms)
{
    const int64_t used_ms = qr_rows_i64(rows, column);
    return qr_rows_is_null(rows, column) || used_ms > now_ms || now_ms - used_ms >= QR_VECTOR_TOUCH_MS;
}

/* While a round of pruning is under way every use is written down: the round may have passed the one who uses it. */
qr_rc qr_vector_use(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], int dimension,
                    float *ret_vector, struct qr_vector_found *ret_found, qr_err *err)
{
    assert(dimension > 0);
    struct qr_vector_found found = {0};
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT c.vector, c.kept_bytes, u.used_at, r.phase FROM vector_round r, vector_cache c "
                       "LEFT JOIN vector_use u ON u.key = c.key WHERE r.id = 1 AND c.key = ?1 AND c.dimension = ?2",
                       QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES), qr_val_i64(dimension)), err));
    if (qr_rows_next(&rows) && read_vector(&rows, dimension, ret_vector)) {
        found = (struct qr_vector_found){
            .is_found = true, .is_in_round = qr_rows_i64(&rows, 3) != 0, .kept_bytes = qr_rows_i64(&rows, 1)};
        found.is_to_be_touched = found.is_in_round || is_long_ago(&rows, 2, now_ms);
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_found = found;
    return QR_OK;
}

qr_rc qr_vector_touch(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], const float *vector,
                      int dimension, int64_t kept_bytes, qr_err *err)
{
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "UPDATE vector_use SET used_at = ?2, round = (SELECT number FROM vector_round WHERE id = 1) "
                      "WHERE key = ?1",
                      QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES), qr_val_i64(now_ms)), &changes, err));
    return changes > 0 ? QR_OK : qr_vector_add(tx, key, vector, dimension, kept_bytes, err);
}

/* What is added while a round is under way is in use for it. The lock is one that all may have at a time, but for who begins a
 * round: that one waits for those who have seen the number before (V1 of store/vector_rounds.h). */
static qr_rc note_use(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], int64_t size_bytes,
                      int64_t now_ms, qr_err *err)
{
    return qr_tx_exec(tx,
                      "INSERT INTO vector_use (key, used_at, size_bytes, round) VALUES (?1, ?2, ?3, "
                      "(SELECT number FROM vector_round WHERE id = 1 /*pg FOR KEY SHARE */)) ON CONFLICT (key) DO "
                      "UPDATE SET used_at = excluded.used_at, size_bytes = excluded.size_bytes, round = excluded.round",
                      QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES), qr_val_i64(now_ms), qr_val_i64(size_bytes)), NULL,
                      err);
}

qr_rc qr_vector_add(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], const float *vector,
                    int dimension, int64_t kept_bytes, qr_err *err)
{
    assert(dimension > 0);
    const size_t size_bytes = (size_t)dimension * sizeof(float);
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_CLEANUP(qr_free_ptr) unsigned char *bytes = qr_alloc(size_bytes);
    if (!bytes) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a vector");
    }
    pack(vector, dimension, bytes);
    QR_TRY(note_use(tx, key, (int64_t)size_bytes + QR_VECTOR_ENTRY_BYTES, now_ms, err));
    return qr_tx_exec(tx,
                      "INSERT INTO vector_cache (key, dimension, vector, added_at, kept_bytes) "
                      "VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (key) DO UPDATE SET dimension = excluded.dimension, "
                      "vector = excluded.vector, added_at = excluded.added_at, kept_bytes = excluded.kept_bytes "
                      "WHERE vector_cache.dimension <> excluded.dimension",
                      QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES), qr_val_i64(dimension),
                              qr_val_blob(bytes, size_bytes), qr_val_i64(now_ms), qr_val_i64(kept_bytes)),
                      NULL, err);
}

qr_rc qr_vector_is_shortened(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES],
                             bool *ret_is_shortened, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx, "SELECT 1 FROM vector_cache WHERE key = ?1 AND kept_bytes > 0",
                         QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES)), ret_is_shortened, &ignored, err);
}

qr_rc qr_vector_exists(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], bool *ret_exists,
                       qr_err *err)
{
    int64_t one;
    return qr_tx_get_i64(tx, "SELECT 1 FROM vector_cache WHERE key = ?1",
                         QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES)), ret_exists, &one, err);
}

qr_rc qr_vector_count_add(struct qr_tx *tx, const struct qr_vector_count *count, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE vector_count SET hits = hits + ?1, misses = misses + ?2 WHERE id = 1",
                      QR_VALS(qr_val_i64(count->hits), qr_val_i64(count->misses)), NULL, err);
}

qr_rc qr_vector_count_load(struct qr_tx *tx, struct qr_vector_count *ret_count, qr_err *err)
{
    QR_ROWS(rows);
    *ret_count = (struct qr_vector_count){0};
    QR_TRY(qr_tx_query(tx, &rows, "SELECT hits, misses FROM vector_count WHERE id = 1", QR_NO_VALS, err));
    if (qr_rows_next(&rows)) {
        *ret_count = (struct qr_vector_count){qr_rows_i64(&rows, 0), qr_rows_i64(&rows, 1)};
    }
    return qr_rows_end(&rows, err);
}
