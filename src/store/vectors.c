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

qr_rc qr_vector_find(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], int dimension,
                     float *ret_vector, bool *ret_found, qr_err *err)
{
    assert(dimension > 0);
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT vector FROM vector_cache WHERE key = ?1 AND dimension = ?2",
                       QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES), qr_val_i64(dimension)), err));
    bool found = false;
    if (qr_rows_next(&rows)) {
        const qr_str bytes = qr_rows_str(&rows, 0);
        found = bytes.len == (size_t)dimension * sizeof(float);
        if (found) {
            unpack((const unsigned char *)bytes.ptr, dimension, ret_vector);
        }
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_found = found;
    return QR_OK;
}

qr_rc qr_vector_add(struct qr_tx *tx, const unsigned char key[static QR_VECTOR_KEY_BYTES], const float *vector,
                    int dimension, qr_err *err)
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
    return qr_tx_exec(tx,
                      "INSERT INTO vector_cache (key, dimension, vector, added_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT "
                      "(key) DO NOTHING",
                      QR_VALS(qr_val_blob(key, QR_VECTOR_KEY_BYTES), qr_val_i64(dimension),
                              qr_val_blob(bytes, size_bytes), qr_val_i64(now_ms)),
                      NULL, err);
}
