/* Decides who may do what. Handlers are called only for whom this file lets in; what they list, and which paths and settings
 * a caller may name, they ask of it (api/access_machine.c). */
#include "api/access.h"

#include "api/lookup.h"
#include "api/router.h"
#include "store/keys.h"
#include "store/members.h"
#include "store/runs.h"

#include <assert.h>
#include <stdio.h>

enum { NAMED_BASES_MAX = 64 }; /* of one body; what it asks for may allow fewer */

_Static_assert(QR_RIGHT_VIEWER - QR_RIGHT_KEY == (int)QR_ROLE_VIEWER, "roles and rights are the same scale");
_Static_assert(QR_RIGHT_OWNER - QR_RIGHT_KEY == (int)QR_ROLE_OWNER, "roles and rights are the same scale");

static enum qr_right right_of_role(enum qr_role role)
{
    return (enum qr_right)(QR_RIGHT_KEY + role);
}

static const struct qr_right_info rights[] = {
    [QR_RIGHT_UNSAID] = {"nobody", "what nobody has"},
    [QR_RIGHT_OPEN] = {"open", "nothing"},
    [QR_RIGHT_KEY] = {"key", "a key"},
    [QR_RIGHT_VIEWER] = {"viewer", "the role viewer in the base"},
    [QR_RIGHT_EDITOR] = {"editor", "the role editor in the base"},
    [QR_RIGHT_OWNER] = {"owner", "the role owner of the base"},
    [QR_RIGHT_ADMIN] = {"admin", "an admin key"},
    [QR_RIGHT_LOCAL] = {"local", "the local owner, at the data folder's socket"},
};

const struct qr_right_info *qr_right_info(enum qr_right right)
{
    assert((size_t)right < QR_COUNT(rights));
    return &rights[right];
}

/* ---- refusals ---- */

static qr_rc refuse_role(enum qr_right needed, qr_err *err)
{
    return qr_fail(err, QR_CODE_FORBIDDEN, "this needs %s", qr_right_info(needed)->needs);
}

static qr_rc refuse_stranger(bool has_authorization, qr_err *err)
{
    return qr_fail(err, QR_CODE_UNAUTHORIZED, "%s",
                   has_authorization ? "the key is not valid" : "this needs a key: Authorization: Bearer qk_…");
}

/* ---- who ---- */

struct entry {
    struct qr_request *request;
    const struct qr_route *route;
    bool is_use_new;
};

/* Of the other end of a connection; a server that has no key listens on no other address. Asked here too, so that nobody is
 * let in who comes from elsewhere, whatever the server does. */
bool qr_access_is_loopback(const char *address)
{
    return !address || strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 ||
           strncmp(address, "::ffff:127.", 11) == 0;
}

static void set_key(struct qr_caller *caller, const struct qr_key *key)
{
    caller->right = key->is_admin ? QR_RIGHT_ADMIN : QR_RIGHT_KEY;
    caller->key_id = key->id;
    snprintf(caller->key_name, sizeof caller->key_name, "%s", key->name);
}

qr_rc qr_access_who(struct qr_tx *tx, const struct quire_request *from, struct qr_caller *caller, bool *ret_is_use_new,
                    qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    bool is_any, found = false;
    struct qr_key key;
    qr_str secret;
    qr_arena_init(&arena, 0);
    *caller = (struct qr_caller){.right = QR_RIGHT_OPEN};
    *ret_is_use_new = false;
    QR_TRY(qr_keys_is_any(tx, &is_any, err));
    if (!is_any && qr_access_is_loopback(from->remote_address)) {
        caller->right = QR_RIGHT_LOCAL; /* whatever key is sent: clients that cannot do without one send anything */
        return QR_OK;
    }
    if (qr_secret_of_header(from->authorization, &secret)) {
        QR_TRY(qr_key_find_secret(tx, secret, &arena, &found, &key, ret_is_use_new, err));
    }
    if (found) {
        set_key(caller, &key);
    }
    return QR_OK;
}

/* ---- whether, in a base ---- */

qr_rc qr_caller_right(struct qr_tx *tx, const struct qr_caller *caller, qr_uuid base_id, enum qr_right *ret_right,
                      qr_err *err)
{
    enum qr_role role = QR_ROLE_NONE;
    if (caller->right == QR_RIGHT_KEY) {
        QR_TRY(qr_member_role(tx, base_id, caller->key_id, &role, err));
        *ret_right = right_of_role(role);
    } else {
        *ret_right = caller->right;
    }
    return QR_OK;
}

static qr_rc check_base(struct qr_tx *tx, const struct qr_caller *caller, qr_str name, enum qr_right needed,
                        qr_uuid *ret_id, qr_err *err)
{
    enum qr_role role;
    QR_TRY(qr_member_find_base(tx, caller->key_id, name, ret_id, &role, err));
    if (role == QR_ROLE_NONE) {
        return qr_base_unknown(name, err); /* KEY-4 */
    }
    return right_of_role(role) >= needed ? QR_OK : refuse_role(needed, err);
}

qr_rc qr_access_find_base(struct qr_tx *tx, const struct qr_request *request, qr_str name, qr_uuid *ret_id, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_base base;
    qr_arena_init(&arena, 0);
    if (qr_caller_is_member(&request->caller)) {
        return check_base(tx, &request->caller, name, QR_RIGHT_VIEWER, ret_id, err);
    }
    QR_TRY(qr_find_base(tx, name, &arena, &base, err));
    *ret_id = base.id;
    return QR_OK;
}

/* {b}: an id, or a name. From here on it is the id: the name may be another base's by the time the handler looks. */
static qr_rc check_path_base(struct qr_tx *tx, struct entry *entry, qr_err *err)
{
    struct qr_request *request = entry->request;
    QR_CLEANUP(qr_buf_done) struct qr_buf name = {0};
    qr_uuid id;
    QR_TRY(qr_url_decode(&name, request->params[0], err));
    QR_TRY(check_base(tx, &request->caller, qr_buf_str(&name), entry->route->needs, &id, err));
    qr_uuid_format(id, request->base_id);
    return QR_OK;
}

/* {r}: a run belongs to a base for ever. One that does not exist is looked for as long as one of somebody else's. */
static qr_rc check_run(struct qr_tx *tx, struct entry *entry, qr_err *err)
{
    qr_uuid id = {0};
    struct qr_run run = {0};
    enum qr_right right;
    bool found;
    (void)qr_uuid_parse(entry->request->params[0], &id);
    QR_TRY(qr_run_find(tx, id, &found, &run, err));
    QR_TRY(qr_caller_right(tx, &entry->request->caller, found ? run.base_id : (qr_uuid){0}, &right, err));
    if (right < QR_RIGHT_VIEWER) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such run");
    }
    return right >= entry->route->needs ? QR_OK : refuse_role(entry->route->needs, err);
}

static bool pattern_has(const struct qr_route *route, const char *param)
{
    return strstr(route->pattern, param) != NULL;
}

/* Whether the body says which bases it is about. */
static bool names_bases(const struct qr_route *route)
{
    return strstr(route->fields, "base_ids") != NULL;
}

static qr_rc check_key(struct qr_tx *tx, struct entry *entry, qr_err *err)
{
    const struct qr_route *route = entry->route;
    if (route->needs >= QR_RIGHT_ADMIN) {
        return refuse_role(route->needs, err);
    }
    if (route->needs <= QR_RIGHT_KEY || names_bases(route)) {
        return QR_OK; /* qr_access_check_named has the rest */
    }
    if (pattern_has(route, "{b}")) {
        return check_path_base(tx, entry, err);
    }
    return pattern_has(route, "{r}") ? check_run(tx, entry, err) : refuse_role(QR_RIGHT_ADMIN, err);
}

/* ---- the decision ---- */

static qr_rc decide(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct entry *entry = arg;
    const struct qr_caller *caller = &entry->request->caller;
    const struct qr_route *route = entry->route;
    QR_TRY(qr_access_who(tx, entry->request->from, &entry->request->caller, &entry->is_use_new, err));
    if (caller->right >= route->needs) {
        return QR_OK;
    }
    if (caller->right == QR_RIGHT_OPEN) {
        return refuse_stranger(entry->request->from->authorization != NULL, err);
    }
    return caller->right == QR_RIGHT_ADMIN ? refuse_role(route->needs, err) : check_key(tx, entry, err);
}

static qr_rc note_use(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_caller *caller = arg;
    return qr_key_note_use(tx, caller->key_id, err);
}

qr_rc qr_access_enter(struct qr_request *request, const struct qr_route *route, qr_err *err)
{
    struct entry entry = {.request = request, .route = route};
    if (route->needs == QR_RIGHT_UNSAID) {
        return qr_fail(err, QR_CODE_INTERNAL, "nobody has said who may ask for %s", route->pattern);
    }
    if (request->from->is_local_owner || route->needs == QR_RIGHT_OPEN) { /* nobody is asked, not even the database */
        request->caller.right = request->from->is_local_owner ? QR_RIGHT_LOCAL : QR_RIGHT_OPEN;
        return QR_OK;
    }
    const qr_rc rc = qr_db_read(request->quire->db, decide, &entry, err);
    if (entry.is_use_new) { /* when it was used last is nothing that a request may fail for */
        (void)qr_db_write(request->quire->db, QR_RELAXED, note_use, &request->caller, NULL);
    }
    if (rc == QR_OK && request->base_id[0]) {
        request->params[0] = qr_str_of(request->base_id);
    }
    return rc;
}

static qr_rc find_out_who(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct entry *entry = arg;
    return qr_access_who(tx, entry->request->from, &entry->request->caller, &entry->is_use_new, err);
}

bool qr_access_is_stranger(struct quire *quire, const struct quire_request *from)
{
    struct qr_request request = {.quire = quire, .from = from};
    struct entry entry = {.request = &request};
    return !from->is_local_owner && qr_db_read(quire->db, find_out_who, &entry, NULL) == QR_OK &&
           request.caller.right == QR_RIGHT_OPEN;
}

/* ---- bases that the body names ---- */

struct naming {
    const struct qr_request *request;
    enum qr_right needed;
    json_t *list;
    qr_uuid ids[NAMED_BASES_MAX];
};

static bool are_names(const json_t *list)
{
    const json_t *name;
    size_t i;
    json_array_foreach(list, i, name)
    {
        if (!json_is_string(name)) {
            return false;
        }
    }
    return json_is_array(list) && json_array_size(list) <= NAMED_BASES_MAX;
}

static qr_rc check_each(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct naming *naming = arg;
    const json_t *name;
    size_t i;
    json_array_foreach(naming->list, i, name)
    {
        QR_TRY(check_base(tx, &naming->request->caller, qr_str_of(json_string_value(name)), naming->needed,
                          &naming->ids[i], err));
    }
    return QR_OK;
}

/* As in the path: what was decided about is what the handler gets. */
static qr_rc put_ids(struct naming *naming, qr_err *err)
{
    char text[QR_UUID_TEXT_SIZE];
    for (size_t i = 0; i < json_array_size(naming->list); i++) {
        qr_uuid_format(naming->ids[i], text);
        if (json_array_set_new(naming->list, i, json_string(text)) != 0) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
        }
    }
    return QR_OK;
}

qr_rc qr_access_check_named(const struct qr_request *request, const struct qr_route *route, json_t *body, qr_err *err)
{
    struct naming naming = {.request = request, .needed = route->needs, .list = json_object_get(body, "base_ids")};
    if (!qr_caller_is_member(&request->caller) || route->needs <= QR_RIGHT_KEY || !names_bases(route)) {
        return QR_OK;
    }
    if (!are_names(naming.list)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "base_ids is a list of at most %d ids or names of bases",
                       (int)NAMED_BASES_MAX);
    }
    QR_TRY(qr_db_read(request->quire->db, check_each, &naming, err));
    return put_ids(&naming, err);
}
