/* What routes share. A base or item that is deleting is not there for anybody who asks (I4). */
#include "api/lookup.h"

enum { LIMIT_DEFAULT = 50, LIMIT_MAX = 200 };

qr_rc qr_check_name(const char *name, qr_err *err)
{
    const size_t len = strlen(name);
    qr_uuid id;
    if (len == 0 || len > QR_BASE_NAME_BYTES_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "name has 1 to %d bytes", (int)QR_BASE_NAME_BYTES_MAX);
    }
    for (const char *at = name; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f || *at == '/') {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "name has no slash and no control characters");
        }
    }
    if (qr_uuid_parse(qr_str_of(name), &id)) { /* once that one is gone, who asks for it would get this one */
        return qr_fail(err, QR_CODE_INVALID_VALUE, "name has the form of an id");
    }
    return QR_OK;
}

qr_rc qr_answer_out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer");
}

/* ---- what the path names ---- */

qr_rc qr_base_unknown(qr_str name, qr_err *err)
{
    return qr_fail(err, QR_CODE_NOT_FOUND, "there is no base %.*s",
                   QR_STR_ARG(qr_utf8_prefix(name, QR_BASE_NAME_BYTES_MAX)));
}

qr_rc qr_find_base(struct qr_tx *tx, qr_str name, struct qr_arena *arena, struct qr_base *ret_base, qr_err *err)
{
    qr_uuid id;
    bool found = false;
    if (qr_uuid_parse(name, &id)) {
        QR_TRY(qr_base_find(tx, id, arena, &found, ret_base, err));
        found = found && ret_base->status != QR_BASE_DELETING;
    }
    if (!found) {
        QR_TRY(qr_base_find_name(tx, name, arena, &found, ret_base, err));
    }
    return found ? QR_OK : qr_base_unknown(name, err);
}

qr_rc qr_request_base(struct qr_tx *tx, const struct qr_request *request, struct qr_arena *arena,
                      struct qr_base *ret_base, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf name = {0};
    QR_TRY(qr_url_decode(&name, request->params[0], err));
    return qr_find_base(tx, qr_buf_str(&name), arena, ret_base, err);
}

qr_rc qr_request_item(struct qr_tx *tx, const struct qr_request *request, const struct qr_base *base,
                      struct qr_arena *arena, struct qr_item *ret_item, qr_err *err)
{
    qr_uuid id;
    bool found, is_deleting = true;
    QR_TRY(qr_item_find_prefix(tx, base->id, request->params[1], &id, err));
    QR_TRY(qr_item_find(tx, id, arena, &found, ret_item, err));
    if (found) {
        QR_TRY(qr_item_path_is_deleting(tx, ret_item->path, &is_deleting, err));
    }
    return is_deleting ? qr_fail(err, QR_CODE_NOT_FOUND, "there is no item %.*s in the base %s",
                                 QR_STR_ARG(request->params[1]), base->name)
                       : QR_OK;
}

struct ids {
    const struct qr_request *request;
    bool with_item;
    qr_uuid base_id, item_id;
};

static qr_rc find_ids(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct ids *ids = arg;
    struct qr_base base;
    struct qr_item item = {0};
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_TRY(qr_request_base(tx, ids->request, &arena, &base, err));
    if (ids->with_item) {
        QR_TRY(qr_request_item(tx, ids->request, &base, &arena, &item, err));
    }
    ids->base_id = base.id;
    ids->item_id = item.id;
    return QR_OK;
}

qr_rc qr_request_base_id(const struct qr_request *request, qr_uuid *ret_id, qr_err *err)
{
    struct ids ids = {.request = request};
    QR_TRY(qr_db_read(request->quire->db, find_ids, &ids, err));
    *ret_id = ids.base_id;
    return QR_OK;
}

qr_rc qr_request_item_id(const struct qr_request *request, qr_uuid *ret_base_id, qr_uuid *ret_item_id, qr_err *err)
{
    struct ids ids = {.request = request, .with_item = true};
    QR_TRY(qr_db_read(request->quire->db, find_ids, &ids, err));
    *ret_base_id = ids.base_id;
    *ret_item_id = ids.item_id;
    return QR_OK;
}

/* ---- lists ---- */

qr_rc qr_request_limit(const struct qr_request *request, int *ret_limit, qr_err *err)
{
    const char *text = qr_request_query(request, "limit");
    int64_t limit = LIMIT_DEFAULT;
    if (text && (!qr_str_to_i64(qr_str_of(text), &limit) || limit < 1 || limit > LIMIT_MAX)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "limit is a number from 1 to %d", (int)LIMIT_MAX);
    }
    *ret_limit = (int)limit;
    return QR_OK;
}

qr_rc qr_cursor_unknown(qr_err *err)
{
    return qr_fail(err, QR_CODE_INVALID_VALUE, "cursor is not one that a list has answered with");
}

qr_rc qr_request_cursor_id(const struct qr_request *request, qr_uuid *ret_id, qr_err *err)
{
    const char *text = qr_request_query(request, "cursor");
    *ret_id = (qr_uuid){0};
    return !text || qr_uuid_parse(qr_str_of(text), ret_id) ? QR_OK : qr_cursor_unknown(err);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

qr_rc qr_request_cursor(const struct qr_request *request, struct qr_arena *arena, qr_str *ret_bytes, qr_err *err)
{
    const char *given = qr_request_query(request, "cursor");
    const qr_str text = qr_str_of(given);
    char *bytes = qr_arena_alloc(arena, text.len / 2 + 1);
    if (!bytes) {
        return qr_answer_out_of_memory(err);
    }
    if (given && (text.len == 0 || text.len % 2)) {
        return qr_cursor_unknown(err);
    }
    for (size_t i = 0; i < text.len; i++) {
        if (digit_of(text.ptr[i]) < 0) {
            return qr_cursor_unknown(err);
        }
        bytes[i / 2] = (char)((unsigned char)bytes[i / 2] << 4 | digit_of(text.ptr[i]));
    }
    *ret_bytes = (qr_str){bytes, text.len / 2};
    return QR_OK;
}

json_t *qr_json_cursor(qr_str bytes)
{
    if (bytes.len == 0) {
        return json_null();
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    for (size_t i = 0; i < bytes.len; i++) {
        qr_buf_printf(&text, "%02x", (unsigned char)bytes.ptr[i]);
    }
    return text.failed == QR_CODE_NONE ? json_string(text.data) : NULL;
}

/* ---- fields of the body ---- */

qr_rc qr_field_text(const json_t *object, const char *where, const char *name, const char **ret_text, qr_err *err)
{
    const json_t *value = json_object_get(object, name);
    *ret_text = json_string_value(value);
    return value && !*ret_text ? qr_fail(err, QR_CODE_INVALID_VALUE, "%s%s must be a text", where, name) : QR_OK;
}

qr_rc qr_field_bool(const json_t *object, const char *where, const char *name, bool *ret_value, qr_err *err)
{
    const json_t *value = json_object_get(object, name);
    if (value && !json_is_boolean(value)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s%s must be true or false", where, name);
    }
    *ret_value = value ? json_is_true(value) : *ret_value;
    return QR_OK;
}

qr_rc qr_field_object(const json_t *object, const char *where, const char *name, struct qr_arena *arena,
                      const char **ret_text, qr_err *err)
{
    const json_t *value = json_object_get(object, name);
    *ret_text = NULL;
    if (!value) {
        return QR_OK;
    }
    if (!json_is_object(value)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s%s must be an object", where, name);
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_TRY(qr_json_write(value, &text, err));
    *ret_text = qr_arena_copy(arena, qr_buf_str(&text));
    return *ret_text ? QR_OK : qr_answer_out_of_memory(err);
}
