/* /api/v1/keys: making, listing, rotating and ending keys. A secret is in the answer that made it and nowhere else. */
#include "api/keys.h"

#include "api/jobs.h"
#include "api/write.h"
#include "store/keys.h"
#include "store/members.h"

enum {
    ROLES_MAX = 200, /* of one request; more come by PUT …/members */
    ROLES_SHOWN_MAX = 200,
    LASTS_S_MAX = 10 * 366 * 86400,
    GRACE_S_MAX = 7 * 86400,
};

/* ---- how a key looks ---- */

static qr_rc roles_json(struct qr_tx *tx, qr_uuid key_id, struct qr_arena *arena, json_t **ret_roles, qr_err *err)
{
    struct qr_member *members;
    size_t count;
    char id[QR_UUID_TEXT_SIZE];
    QR_TRY(qr_members_of_key(tx, key_id, (qr_uuid){0}, ROLES_SHOWN_MAX, arena, &members, &count, err));
    QR_JSON *roles = json_object();
    for (size_t i = 0; i < count; i++) {
        qr_uuid_format(members[i].base_id, id);
        if (json_object_set_new(roles, id, json_string(qr_role_name(members[i].role))) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    if (!roles) {
        return qr_answer_out_of_memory(err);
    }
    *ret_roles = json_incref(roles);
    return QR_OK;
}

static qr_rc key_json(struct qr_tx *tx, const struct qr_key *key, struct qr_arena *arena, json_t **ret_json,
                      qr_err *err)
{
    json_t *roles = NULL;
    QR_TRY(roles_json(tx, key->id, arena, &roles, err));
    *ret_json =
        json_pack("{s:o, s:s, s:b, s:s, s:o, s:o, s:o, s:o}", "id", qr_json_uuid(key->id), "name", key->name, "admin",
                  key->is_admin, "prefix", key->prefix, "roles", roles, "created_at", qr_json_time(key->created_ms),
                  "last_used_at", qr_json_time(key->used_ms), "expires_at", qr_json_time(key->expires_ms));
    return *ret_json ? QR_OK : qr_answer_out_of_memory(err);
}

/* ---- the list ---- */

struct listing {
    struct qr_arena *arena;
    qr_uuid after;
    int limit;
    json_t *data;
    qr_uuid next; /* all zero = there is no more */
};

static qr_rc load_listing(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct listing *listing = arg;
    struct qr_key *keys;
    size_t count;
    qr_arena_reset(listing->arena);
    json_array_clear(listing->data);
    QR_TRY(qr_keys_list(tx, listing->after, listing->limit + 1, listing->arena, &keys, &count, err));
    const size_t page = QR_MIN(count, (size_t)listing->limit);
    for (size_t i = 0; i < page; i++) {
        json_t *json;
        QR_TRY(key_json(tx, &keys[i], listing->arena, &json, err));
        if (json_array_append_new(listing->data, json) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    listing->next = count > page ? keys[page - 1].id : (qr_uuid){0};
    return QR_OK;
}

qr_rc qr_route_keys_list(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_JSON *data = json_array();
    struct listing listing = {.arena = &arena, .data = data};
    QR_TRY(qr_request_limit(request, &listing.limit, err));
    QR_TRY(qr_request_cursor_id(request, &listing.after, err));
    QR_TRY(qr_db_read(request->quire->db, load_listing, &listing, err));
    return qr_reply_with(reply, 200, json_pack("{s:O, s:o}", "data", data, "next_cursor", qr_json_uuid(listing.next)),
                         err);
}

/* ---- the body ---- */

qr_rc qr_json_role(const json_t *value, const char *field, enum qr_role *ret_role, qr_err *err)
{
    *ret_role = json_is_string(value) ? qr_role_find(qr_str_of(json_string_value(value))) : QR_ROLE_NONE;
    return *ret_role != QR_ROLE_NONE ? QR_OK
                                     : qr_fail(err, QR_CODE_INVALID_VALUE, "%s is viewer, editor or owner", field);
}

static qr_rc read_seconds(const json_t *body, const char *name, int64_t min, int64_t max, int64_t *ret_ms, qr_err *err)
{
    const json_t *value = json_object_get(body, name);
    const json_int_t seconds = json_integer_value(value);
    *ret_ms = 0;
    if (!value || json_is_null(value)) {
        return QR_OK;
    }
    if (!json_is_integer(value) || seconds < min || seconds > max) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s is a number of seconds from %lld to %lld", name, (long long)min,
                       (long long)max);
    }
    *ret_ms = 1000 * (int64_t)seconds;
    return QR_OK;
}

/* One that looks like a secret would be shown to everybody if it were one. */
static qr_rc read_name(const json_t *body, const char **ret_name, qr_err *err)
{
    QR_TRY(qr_field_text(body, "", "name", ret_name, err));
    if (!*ret_name) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "name is missing");
    }
    if (strncmp(*ret_name, "qk_", 3) == 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "name does not begin as a secret does");
    }
    return qr_check_name(*ret_name, err);
}

static qr_rc check_roles(const json_t *roles, qr_err *err)
{
    const char *base;
    json_t *role;
    enum qr_role ignored;
    if (roles && (!json_is_object(roles) || json_object_size(roles) > ROLES_MAX)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "roles is an object of at most %d bases and their roles",
                       (int)ROLES_MAX);
    }
    json_object_foreach((json_t *)roles, base, role)
    {
        QR_TRY(qr_json_role(role, "each of roles", &ignored, err));
    }
    return QR_OK;
}

/* ---- making ---- */

struct making {
    struct qr_key_new key;
    const json_t *roles;
    struct qr_arena *arena;
    json_t *body;
};

static qr_rc add_roles(struct qr_tx *tx, const struct making *making, qr_err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)making->roles, name, value)
    {
        struct qr_base base;
        enum qr_role role;
        QR_TRY(qr_json_role(value, "each of roles", &role, err));
        QR_TRY(qr_find_base(tx, qr_str_of(name), making->arena, &base, err));
        QR_TRY(qr_member_set(tx, base.id, making->key.id, role, err));
    }
    return QR_OK;
}

/* The answer is made in the transaction: a key whose secret nobody got would be of no use. */
static qr_rc answer_key(struct qr_tx *tx, qr_uuid id, const struct qr_secret *secret, struct qr_arena *arena,
                        json_t **body, qr_err *err)
{
    struct qr_key key;
    bool found;
    QR_TRY(qr_key_find(tx, id, arena, &found, &key, err));
    if (!found) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such key");
    }
    json_decref(*body);
    *body = NULL;
    QR_TRY(key_json(tx, &key, arena, body, err));
    return !secret || json_object_set_new(*body, "secret", json_string(secret->text)) == 0
               ? QR_OK
               : qr_answer_out_of_memory(err);
}

static qr_rc make_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct making *making = arg;
    qr_arena_reset(making->arena);
    QR_TRY(qr_key_add(tx, &making->key, err));
    QR_TRY(add_roles(tx, making, err));
    return answer_key(tx, making->key.id, making->key.secret, making->arena, &making->body, err);
}

static qr_rc finish(qr_rc rc, int status, json_t *body, struct qr_reply *reply, qr_err *err)
{
    if (rc == QR_OK) {
        qr_reply_header(reply, "Cache-Control", "no-store");
    }
    return qr_reply_made(reply, rc, status, body, err);
}

qr_rc qr_route_keys_add(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_CLEANUP(qr_secret_wipe) struct qr_secret secret;
    struct making making = {.key = {.id = qr_uuid_next(&request->quire->ids), .secret = &secret},
                            .roles = json_object_get(request->body, "roles"),
                            .arena = &arena};
    const char *name;
    qr_secret_make(request->quire->rand, &secret);
    QR_TRY(read_name(request->body, &name, err));
    making.key.name = qr_str_of(name);
    QR_TRY(qr_field_bool(request->body, "", "admin", &making.key.is_admin, err));
    QR_TRY(read_seconds(request->body, "expires_in_s", 1, LASTS_S_MAX, &making.key.lasts_ms, err));
    QR_TRY(check_roles(making.roles, err));
    const qr_rc rc = qr_request_write(request, make_in_tx, &making, err);
    return finish(rc, 201, making.body, reply, err);
}

/* ---- rotating and ending ---- */

struct change {
    const struct qr_request *request;
    const struct qr_secret *secret;
    int64_t grace_ms;
    struct qr_arena *arena;
    json_t *body;
};

/* {k}: an id, or a name. Never repeated in the error: it may be a secret. */
static qr_rc find_key(struct qr_tx *tx, const struct change *change, struct qr_key *ret_key, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf name = {0};
    qr_uuid id;
    bool found = false;
    QR_TRY(qr_url_decode(&name, change->request->params[0], err));
    if (qr_uuid_parse(qr_buf_str(&name), &id)) {
        QR_TRY(qr_key_find(tx, id, change->arena, &found, ret_key, err));
    }
    if (!found) {
        QR_TRY(qr_key_find_name(tx, qr_buf_str(&name), change->arena, &found, ret_key, err));
    }
    return found ? QR_OK : qr_fail(err, QR_CODE_NOT_FOUND, "there is no such key");
}

static qr_rc rotate_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct change *change = arg;
    struct qr_key key;
    qr_arena_reset(change->arena);
    QR_TRY(find_key(tx, change, &key, err));
    QR_TRY(qr_key_rotate(tx, key.id, change->secret, change->grace_ms, err));
    return answer_key(tx, key.id, change->secret, change->arena, &change->body, err);
}

static qr_rc end_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct change *change = arg;
    struct qr_key key;
    qr_arena_reset(change->arena);
    QR_TRY(find_key(tx, change, &key, err));
    QR_TRY(answer_key(tx, key.id, NULL, change->arena, &change->body, err));
    return qr_key_end(tx, key.id, err);
}

qr_rc qr_route_keys_rotate(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_CLEANUP(qr_secret_wipe) struct qr_secret secret;
    struct change change = {.request = request, .secret = &secret, .arena = &arena};
    qr_secret_make(request->quire->rand, &secret);
    QR_TRY(read_seconds(request->body, "grace_s", 0, GRACE_S_MAX, &change.grace_ms, err));
    const qr_rc rc = qr_request_write(request, rotate_in_tx, &change, err);
    return finish(rc, 200, change.body, reply, err);
}

qr_rc qr_route_keys_delete(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct change change = {.request = request, .arena = &arena};
    const qr_rc rc = qr_request_write(request, end_in_tx, &change, err);
    return finish(rc, 200, change.body, reply, err);
}
