/* Which key has which role in which base. A base that is removed takes its members along, a key that is ended its roles. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"
#include "db/db.h"
#include "model/role.h"

struct qr_member {
    qr_uuid base_id, key_id;
    enum qr_role role;
    const char *key_name;
    int64_t added_ms;
};

/* Gives the key the role, in place of one that it has. `not_found` unless the key is in force and the base is there. */
qr_rc qr_member_set(struct qr_tx *tx, qr_uuid base_id, qr_uuid key_id, enum qr_role role, qr_err *err);
/* `not_found` when it has none. */
qr_rc qr_member_remove(struct qr_tx *tx, qr_uuid base_id, qr_uuid key_id, qr_err *err);

qr_rc qr_member_find(struct qr_tx *tx, qr_uuid base_id, qr_uuid key_id, struct qr_arena *arena, bool *ret_found,
                     struct qr_member *ret_member, qr_err *err);
/* QR_ROLE_NONE: it has none, or the base is deleting. */
qr_rc qr_member_role(struct qr_tx *tx, qr_uuid base_id, qr_uuid key_id, enum qr_role *ret_role, qr_err *err);
/* The base of that id or name in which the key has a role. One without a role and one that does not exist are looked for in
 * the same way, so they take the same time. QR_ROLE_NONE: there is none. */
qr_rc qr_member_find_base(struct qr_tx *tx, qr_uuid key_id, qr_str name, qr_uuid *ret_base_id, enum qr_role *ret_role,
                          qr_err *err);

/* Of a base, by key id above `after`. */
qr_rc qr_members_of_base(struct qr_tx *tx, qr_uuid base_id, qr_uuid after, int limit, struct qr_arena *arena,
                         struct qr_member **ret_members, size_t *ret_count, qr_err *err);
/* Of a key, by base id above `after`, without bases that are deleting. */
qr_rc qr_members_of_key(struct qr_tx *tx, qr_uuid key_id, qr_uuid after, int limit, struct qr_arena *arena,
                        struct qr_member **ret_members, size_t *ret_count, qr_err *err);
