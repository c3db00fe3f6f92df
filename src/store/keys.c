/* Owns the tables `api_key` and `key_secret`. A key in force has just one secret without an end. */
#include "store/keys.h"

#include "store/ids.h"

#include <assert.h>

#define COLUMNS                                                                                                        \
    "k.id, k.name, k.is_admin, k.created_at, k.used_at, k.expires_at, COALESCE((SELECT s.prefix FROM key_secret s "    \
    "WHERE s.key_id = k.id AND s.ends_at = 0), '')"

/* ---- reading ---- */

static qr_rc read_key(const struct qr_rows *rows, struct qr_arena *arena, struct qr_key *ret_key, qr_err *err)
{
    const struct qr_key key = {
        .id = qr_rows_uuid(rows, 0),
        .name = qr_arena_copy(arena, qr_rows_str(rows, 1)),
        .is_admin = qr_rows_i64(rows, 2) != 0,
        .created_ms = qr_rows_i64(rows, 3),
        .used_ms = qr_rows_i64(rows, 4),
        .expires_ms = qr_rows_i64(rows, 5),
        .prefix = qr_arena_copy(arena, qr_rows_str(rows, 6)),
    };
    if (!key.name || !key.prefix) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a key");
    }
    *ret_key = key;
    return QR_OK;
}

static qr_rc find_one(struct qr_tx *tx, const char *sql, struct qr_val value, struct qr_arena *arena, bool *ret_found,
                      struct qr_key *ret_key, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, &value, 1, err));
    const bool found = qr_rows_next(&rows);
    if (found) {
        QR_TRY(read_key(&rows, arena, ret_key, err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_found = found;
    return QR_OK;
}

qr_rc qr_key_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_key *ret_key,
                  qr_err *err)
{
    return find_one(tx, "SELECT " COLUMNS " FROM api_key k WHERE k.id = ?1 AND k.revoked_at = 0", qr_val_uuid(&id),
                    arena, ret_found, ret_key, err);
}

qr_rc qr_key_find_name(struct qr_tx *tx, qr_str name, struct qr_arena *arena, bool *ret_found, struct qr_key *ret_key,
                       qr_err *err)
{
    return find_one(tx, "SELECT " COLUMNS " FROM api_key k WHERE k.name = ?1 AND k.revoked_at = 0", qr_val_text(name),
                    arena, ret_found, ret_key, err);
}

qr_rc qr_keys_list(struct qr_tx *tx, qr_uuid after, int limit, struct qr_arena *arena, struct qr_key **ret_keys,
                   size_t *ret_count, qr_err *err)
{
    assert(limit > 0);
    struct qr_key *keys = qr_arena_array(arena, (size_t)limit, sizeof keys[0]);
    if (!keys) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a list of keys");
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT " COLUMNS " FROM api_key k WHERE k.id > ?1 AND k.revoked_at = 0 ORDER BY k.id LIMIT ?2",
                       QR_VALS(qr_val_uuid(&after), qr_val_i64(limit)), err));
    size_t count = 0;
    while (qr_rows_next(&rows)) {
        assert(count < (size_t)limit);
        QR_TRY(read_key(&rows, arena, &keys[count++], err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_keys = keys;
    *ret_count = count;
    return QR_OK;
}

qr_rc qr_keys_is_any(struct qr_tx *tx, bool *ret_is, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx, "SELECT 1 FROM api_key LIMIT 1", QR_NO_VALS, ret_is, &ignored, err);
}

/* ---- making and ending ---- */

static qr_rc add_secret(struct qr_tx *tx, qr_uuid key_id, const struct qr_secret *secret, qr_err *err)
{
    const qr_str text = qr_str_of(secret->text);
    unsigned char hash[QR_SECRET_HASH_BYTES];
    qr_secret_hash(text, hash);
    QR_TRY(qr_tx_exec(
        tx, "INSERT INTO key_secret (hash, prefix, key_id) VALUES (?1, ?2, ?3)",
        QR_VALS(qr_val_blob(hash, sizeof hash), qr_val_text(qr_secret_prefix(text)), qr_val_uuid(&key_id)), NULL, err));
    return qr_tx_notify(tx, QR_KEYS_CHANNEL, err);
}

static qr_rc check_count(struct qr_tx *tx, qr_err *err)
{
    int64_t count = 0;
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM api_key WHERE revoked_at = 0", QR_NO_VALS, NULL, &count, err));
    return count < QR_KEYS_MAX
               ? QR_OK
               : qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "there are %d keys, which is the most", (int)QR_KEYS_MAX);
}

/* Together with a new one, so that there is still any. */
static qr_rc forget_ended(struct qr_tx *tx, int64_t now_ms, qr_err *err)
{
    const int64_t kept_ms = INT64_C(86400000) * QR_KEY_ENDED_KEPT_DAYS;
    return qr_tx_exec(tx, "DELETE FROM api_key WHERE revoked_at > 0 AND revoked_at < ?1",
                      QR_VALS(qr_val_i64(now_ms - kept_ms)), NULL, err);
}

qr_rc qr_key_add(struct qr_tx *tx, const struct qr_key_new *key, qr_err *err)
{
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(check_count(tx, err));
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO api_key (id, name, is_admin, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5) "
                      "ON CONFLICT (name) WHERE revoked_at = 0 DO NOTHING",
                      QR_VALS(qr_val_uuid(&key->id), qr_val_text(key->name), qr_val_i64(key->is_admin),
                              qr_val_i64(now_ms), qr_val_i64(key->lasts_ms ? now_ms + key->lasts_ms : 0)),
                      &changes, err));
    if (!changes) {
        return qr_fail(err, QR_CODE_ALREADY_EXISTS, "a key of that name exists");
    }
    QR_TRY(forget_ended(tx, now_ms, err));
    return add_secret(tx, key->id, key->secret, err);
}

static qr_rc is_gone(qr_err *err)
{
    return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such key");
}

qr_rc qr_key_end(struct qr_tx *tx, qr_uuid id, qr_err *err)
{
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx, "UPDATE api_key SET revoked_at = ?2 WHERE id = ?1 AND revoked_at = 0",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(now_ms)), &changes, err));
    if (!changes) {
        return is_gone(err);
    }
    QR_TRY(qr_tx_exec(tx, "DELETE FROM key_secret WHERE key_id = ?1", QR_VALS(qr_val_uuid(&id)), NULL, err));
    QR_TRY(qr_tx_exec(tx, "DELETE FROM member WHERE key_id = ?1", QR_VALS(qr_val_uuid(&id)), NULL, err));
    return qr_tx_notify(tx, QR_KEYS_CHANNEL, err);
}

qr_rc qr_key_rotate(struct qr_tx *tx, qr_uuid id, const struct qr_secret *secret, int64_t grace_ms, qr_err *err)
{
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    /* the row is changed so that of two rotations at once one waits for the other: there is one secret without an end */
    QR_TRY(qr_tx_exec(tx, "UPDATE api_key SET used_at = used_at WHERE id = ?1 AND revoked_at = 0",
                      QR_VALS(qr_val_uuid(&id)), &changes, err));
    if (!changes) {
        return is_gone(err);
    }
    QR_TRY(qr_tx_exec(tx, "DELETE FROM key_secret WHERE key_id = ?1 AND (ends_at > 0 OR ?2 = 0)",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(grace_ms)), NULL, err));
    QR_TRY(qr_tx_exec(tx, "UPDATE key_secret SET ends_at = ?2 WHERE key_id = ?1",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(now_ms + grace_ms)), NULL, err));
    return add_secret(tx, id, secret, err);
}

/* ---- who has a secret ---- */

/* Found by what is no secret, and then compared in constant time: how long it takes tells nothing about the rest. */
qr_rc qr_key_find_secret(struct qr_tx *tx, qr_str secret, struct qr_arena *arena, bool *ret_found,
                         struct qr_key *ret_key, bool *ret_is_use_new, qr_err *err)
{
    unsigned char hash[QR_SECRET_HASH_BYTES];
    int64_t now_ms;
    bool found = false;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    qr_secret_hash(secret, hash);
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT " COLUMNS ", c.hash FROM key_secret c JOIN api_key k ON k.id = c.key_id "
                       "WHERE c.prefix = ?1 AND (c.ends_at = 0 OR c.ends_at > ?2) AND k.revoked_at = 0 "
                       "AND (k.expires_at = 0 OR k.expires_at > ?2)",
                       QR_VALS(qr_val_text(qr_secret_prefix(secret)), qr_val_i64(now_ms)), err));
    while (qr_rows_next(&rows)) {
        const qr_str kept = qr_rows_str(&rows, 7);
        if (kept.len == sizeof hash && qr_secret_hash_equal((const unsigned char *)kept.ptr, hash)) {
            found = true;
            QR_TRY(read_key(&rows, arena, ret_key, err));
        }
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_found = found;
    *ret_is_use_new = found && now_ms - ret_key->used_ms >= QR_KEY_USED_STEP_MS;
    return QR_OK;
}

qr_rc qr_key_note_use(struct qr_tx *tx, qr_uuid id, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(tx, "UPDATE api_key SET used_at = ?2 WHERE id = ?1 AND used_at < ?2",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(now_ms)), NULL, err);
}
