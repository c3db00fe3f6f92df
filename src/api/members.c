/* /api/v1/bases/{b}/members: which keys have a role in a base. Keys are named by their id alone, so that an owner cannot find
 * out what keys there are. */
#include "api/keys.h"

#include "api/jobs.h"
#include "api/write.h"
#include "store/members.h"

static json_t *member_json(const struct qr_member *member)
{
    return json_pack("{s:o, s:o, s:s, s:s, s:o}", "base_id", qr_json_uuid(member->base_id), "key_id",
                     qr_json_uuid(member->key_id), "name", member->key_name, "role", qr_role_name(member->role),
                     "added_at", qr_json_time(member->added_ms));
}

/* ---- the list ---- */

struct listing {
    const struct qr_request *request;
    struct qr_arena *arena;
    qr_uuid after;
    int limit;
    struct qr_member *members;
    size_t count;
};

static qr_rc load_listing(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct listing *listing = arg;
    struct qr_base base;
    qr_arena_reset(listing->arena);
    QR_TRY(qr_request_base(tx, listing->request, listing->arena, &base, err));
    return qr_members_of_base(tx, base.id, listing->after, listing->limit + 1, listing->arena, &listing->members,
                              &listing->count, err);
}

qr_rc qr_route_members_list(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct listing listing = {.request = request, .arena = &arena};
    QR_TRY(qr_request_limit(request, &listing.limit, err));
    QR_TRY(qr_request_cursor_id(request, &listing.after, err));
    QR_TRY(qr_db_read(request->quire->db, load_listing, &listing, err));
    const size_t page = QR_MIN(listing.count, (size_t)listing.limit);
    QR_JSON *data = json_array();
    for (size_t i = 0; i < page; i++) {
        if (json_array_append_new(data, member_json(&listing.members[i])) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    const qr_uuid next = listing.count > page ? listing.members[page - 1].key_id : (qr_uuid){0};
    return qr_reply_with(reply, 200, json_pack("{s:O, s:o}", "data", data, "next_cursor", qr_json_uuid(next)), err);
}

/* ---- one of them, and changing ---- */

struct change {
    const struct qr_request *request;
    qr_uuid key_id;
    enum qr_role role; /* QR_ROLE_NONE = it is taken away */
    json_t *body;
};

/* The member as it is now. */
static qr_rc answer_member(struct qr_tx *tx, qr_uuid base_id, struct change *change, struct qr_arena *arena,
                           qr_err *err)
{
    struct qr_member member;
    bool found;
    QR_TRY(qr_member_find(tx, base_id, change->key_id, arena, &found, &member, err));
    if (!found) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "the key has no role in this base");
    }
    json_decref(change->body);
    change->body = member_json(&member);
    return change->body ? QR_OK : qr_answer_out_of_memory(err);
}

static qr_rc show_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct change *change = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_base base;
    qr_arena_init(&arena, 0);
    QR_TRY(qr_request_base(tx, change->request, &arena, &base, err));
    return answer_member(tx, base.id, change, &arena, err);
}

static qr_rc change_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct change *change = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_base base;
    qr_arena_init(&arena, 0);
    QR_TRY(qr_request_base(tx, change->request, &arena, &base, err));
    if (change->role != QR_ROLE_NONE) {
        QR_TRY(qr_member_set(tx, base.id, change->key_id, change->role, err));
        QR_TRY(answer_member(tx, base.id, change, &arena, err));
    } else {
        QR_TRY(answer_member(tx, base.id, change, &arena, err));
        QR_TRY(qr_member_remove(tx, base.id, change->key_id, err));
    }
    return QR_OK;
}

static qr_rc read_key_id(const struct qr_request *request, qr_uuid *ret_id, qr_err *err)
{
    return qr_uuid_parse(request->params[1], ret_id)
               ? QR_OK
               : qr_fail(err, QR_CODE_NOT_FOUND, "there is no such key: it is named by its whole id");
}

static qr_rc change_member(const struct qr_request *request, enum qr_role role, struct qr_reply *reply, qr_err *err)
{
    struct change change = {.request = request, .role = role};
    QR_TRY(read_key_id(request, &change.key_id, err));
    const qr_rc rc = qr_request_write(request, change_in_tx, &change, err);
    return qr_reply_made(reply, rc, 200, change.body, err);
}

qr_rc qr_route_members_show(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct change change = {.request = request};
    QR_TRY(read_key_id(request, &change.key_id, err));
    const qr_rc rc = qr_db_read(request->quire->db, show_in_tx, &change, err);
    return qr_reply_made(reply, rc, 200, change.body, err);
}

qr_rc qr_route_members_set(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    enum qr_role role;
    QR_TRY(qr_json_role(json_object_get(request->body, "role"), "role", &role, err));
    return change_member(request, role, reply, err);
}

qr_rc qr_route_members_delete(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    return change_member(request, QR_ROLE_NONE, reply, err);
}
