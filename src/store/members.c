/* Owns the table `member`. */
#include "store/members.h"

#include "store/ids.h"
#include "store/keys.h"

#include <assert.h>

#define COLUMNS "m.base_id, m.key_id, m.role, k.name, m.added_at"

/* ---- one ---- */

qr_rc qr_member_set(struct qr_tx *tx, qr_uuid base_id, qr_uuid key_id, enum qr_role role, qr_err *err)
{
    assert(role >= QR_ROLE_VIEWER && role <= QR_ROLE_OWNER);
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO member (base_id, key_id, role, added_at) "
                      "SELECT b.id, k.id, ?3, ?4 FROM base b, api_key k "
                      "WHERE b.id = ?1 AND b.status <> 3 AND k.id = ?2 AND k.revoked_at = 0 "
                      "ON CONFLICT (base_id, key_id) DO UPDATE SET role = excluded.role",
                      QR_VALS(qr_val_uuid(&base_id), qr_val_uuid(&key_id), qr_val_i64(role), qr_val_i64(now_ms)),
                      &changes, err));
    return changes ? qr_tx_notify(tx, QR_KEYS_CHANNEL, err) : qr_fail(err, QR_CODE_NOT_FOUND, "there is no such key");
}

qr_rc qr_member_remove(struct qr_tx *tx, qr_uuid base_id, qr_uuid key_id, qr_err *err)
{
    int64_t changes;
    QR_TRY(qr_tx_exec(tx, "DELETE FROM member WHERE base_id = ?1 AND key_id = ?2",
                      QR_VALS(qr_val_uuid(&base_id), qr_val_uuid(&key_id)), &changes, err));
    return changes ? qr_tx_notify(tx, QR_KEYS_CHANNEL, err)
                   : qr_fail(err, QR_CODE_NOT_FOUND, "the key has no role in this base");
}

qr_rc qr_member_role(struct qr_tx *tx, qr_uuid base_id, qr_uuid key_id, enum qr_role *ret_role, qr_err *err)
{
    int64_t role = QR_ROLE_NONE;
    QR_TRY(qr_tx_get_i64(tx,
                         "SELECT m.role FROM member m JOIN base b ON b.id = m.base_id AND b.status <> 3 "
                         "WHERE m.base_id = ?1 AND m.key_id = ?2",
                         QR_VALS(qr_val_uuid(&base_id), qr_val_uuid(&key_id)), NULL, &role, err));
    *ret_role = (enum qr_role)role;
    return QR_OK;
}

static qr_rc find_named(struct qr_tx *tx, qr_uuid key_id, qr_str name, qr_uuid *ret_base_id, enum qr_role *ret_role,
                        qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT m.base_id, m.role FROM base b JOIN member m ON m.base_id = b.id AND m.key_id = ?1 "
                       "WHERE b.name = ?2 AND b.status <> 3",
                       QR_VALS(qr_val_uuid(&key_id), qr_val_text(name)), err));
    if (qr_rows_next(&rows)) {
        *ret_base_id = qr_rows_uuid(&rows, 0);
        *ret_role = (enum qr_role)qr_rows_i64(&rows, 1);
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_member_find_base(struct qr_tx *tx, qr_uuid key_id, qr_str name, qr_uuid *ret_base_id, enum qr_role *ret_role,
                          qr_err *err)
{
    qr_uuid id = {0};
    enum qr_role role = QR_ROLE_NONE;
    if (qr_uuid_parse(name, &id)) {
        QR_TRY(qr_member_role(tx, id, key_id, &role, err));
    }
    if (role == QR_ROLE_NONE) {
        QR_TRY(find_named(tx, key_id, name, &id, &role, err));
    }
    *ret_base_id = id;
    *ret_role = role;
    return QR_OK;
}

/* ---- whole rows ---- */

static qr_rc read_member(const struct qr_rows *rows, struct qr_arena *arena, struct qr_member *ret_member, qr_err *err)
{
    const struct qr_member member = {.base_id = qr_rows_uuid(rows, 0),
                                     .key_id = qr_rows_uuid(rows, 1),
                                     .role = (enum qr_role)qr_rows_i64(rows, 2),
                                     .key_name = qr_arena_copy(arena, qr_rows_str(rows, 3)),
                                     .added_ms = qr_rows_i64(rows, 4)};
    if (!member.key_name) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a member");
    }
    *ret_member = member;
    return QR_OK;
}

qr_rc qr_member_find(struct qr_tx *tx, qr_uuid base_id, qr_uuid key_id, struct qr_arena *arena, bool *ret_found,
                     struct qr_member *ret_member, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT " COLUMNS " FROM member m JOIN api_key k ON k.id = m.key_id "
                       "WHERE m.base_id = ?1 AND m.key_id = ?2",
                       QR_VALS(qr_val_uuid(&base_id), qr_val_uuid(&key_id)), err));
    const bool found = qr_rows_next(&rows);
    if (found) {
        QR_TRY(read_member(&rows, arena, ret_member, err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_found = found;
    return QR_OK;
}

static qr_rc list(struct qr_tx *tx, const char *sql, qr_uuid of, qr_uuid after, int limit, struct qr_arena *arena,
                  struct qr_member **ret_members, size_t *ret_count, qr_err *err)
{
    assert(limit > 0);
    struct qr_member *members = qr_arena_array(arena, (size_t)limit, sizeof members[0]);
    if (!members) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a list of members");
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, QR_VALS(qr_val_uuid(&of), qr_val_uuid(&after), qr_val_i64(limit)), err));
    size_t count = 0;
    while (qr_rows_next(&rows)) {
        assert(count < (size_t)limit);
        QR_TRY(read_member(&rows, arena, &members[count++], err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_members = members;
    *ret_count = count;
    return QR_OK;
}

qr_rc qr_members_of_base(struct qr_tx *tx, qr_uuid base_id, qr_uuid after, int limit, struct qr_arena *arena,
                         struct qr_member **ret_members, size_t *ret_count, qr_err *err)
{
    return list(tx,
                "SELECT " COLUMNS " FROM member m JOIN api_key k ON k.id = m.key_id "
                "WHERE m.base_id = ?1 AND m.key_id > ?2 AND k.revoked_at = 0 ORDER BY m.key_id LIMIT ?3",
                base_id, after, limit, arena, ret_members, ret_count, err);
}

qr_rc qr_members_of_key(struct qr_tx *tx, qr_uuid key_id, qr_uuid after, int limit, struct qr_arena *arena,
                        struct qr_member **ret_members, size_t *ret_count, qr_err *err)
{
    return list(tx,
                "SELECT " COLUMNS " FROM member m JOIN api_key k ON k.id = m.key_id "
                "JOIN base b ON b.id = m.base_id AND b.status <> 3 "
                "WHERE m.key_id = ?1 AND m.base_id > ?2 ORDER BY m.base_id LIMIT ?3",
                key_id, after, limit, arena, ret_members, ret_count, err);
}
