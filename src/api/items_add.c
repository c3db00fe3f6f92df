/* POST /api/v1/bases/{b}/items: every payload is checked before anything is created (ADD-1). */
#include "api/items.h"

enum {
    ITEMS_MAX = 500,
    NAME_BYTES_MAX = 1000,
    PATH_BYTES_MAX = 4096,
    URL_BYTES_MAX = 8192,
    ATTRIBUTES_BYTES_MAX = 64 << 10,
    PATTERNS_MAX = 200, /* of include, and of exclude */
};

/* ---- payloads ---- */

static const struct payload {
    const char *fields;
    const char *source_field; /* NULL = it has none */
} payloads[] = {
    [QR_ITEM_DIRECTORY] = {"type path include exclude attributes", "path"},
    [QR_ITEM_FILE] = {"type path copy attributes", "path"},
    [QR_ITEM_NOTE] = {"type name content attributes", NULL},
    [QR_ITEM_URL] = {"type url attributes", "url"},
};

struct reading {
    const json_t *object;
    char where[32]; /* "items[2]." */
    struct qr_arena *arena;
};

static qr_rc require_text(const struct reading *reading, const char *name, size_t bytes_min, size_t bytes_max,
                          qr_str *ret_text, qr_err *err)
{
    const char *text;
    QR_TRY(qr_field_text(reading->object, reading->where, name, &text, err));
    if (!text) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s%s is missing", reading->where, name);
    }
    if (strlen(text) < bytes_min || strlen(text) > bytes_max) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s%s must have %zu to %zu bytes", reading->where, name, bytes_min,
                       bytes_max);
    }
    *ret_text = qr_str_of(text);
    return QR_OK;
}

static qr_rc read_path(const struct reading *reading, qr_str *ret_path, qr_err *err)
{
    QR_TRY(require_text(reading, "path", 1, PATH_BYTES_MAX, ret_path, err));
    if (ret_path->ptr[0] != '/') {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%spath must be absolute: it begins with a slash", reading->where);
    }
    while (ret_path->len > 1 && ret_path->ptr[ret_path->len - 1] == '/') {
        ret_path->len--;
    }
    return QR_OK;
}

static qr_rc read_url(const struct reading *reading, qr_str *ret_url, qr_err *err)
{
    QR_TRY(require_text(reading, "url", 1, URL_BYTES_MAX, ret_url, err));
    qr_str rest = *ret_url;
    const qr_str scheme = qr_str_split(&rest, ':');
    if (!qr_str_starts_with(rest, QR_STR("//")) ||
        (!qr_str_equal(scheme, QR_STR("http")) && !qr_str_equal(scheme, QR_STR("https")))) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%surl must begin with http:// or https://", reading->where);
    }
    rest = (qr_str){rest.ptr + 2, rest.len - 2};
    const qr_str host = {rest.ptr, strcspn(rest.ptr, "/?#")};
    return memchr(host.ptr, '@', host.len) /* it is kept, listed and shown */
               ? qr_fail(err, QR_CODE_INVALID_VALUE, "%surl must be without user and password", reading->where)
               : QR_OK;
}

static qr_rc check_patterns(const struct reading *reading, const char *name, qr_err *err)
{
    const json_t *patterns = json_object_get(reading->object, name), *pattern;
    size_t i;
    if (patterns && (!json_is_array(patterns) || json_array_size(patterns) > PATTERNS_MAX)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s%s must be an array of at most %d texts", reading->where, name,
                       (int)PATTERNS_MAX);
    }
    json_array_foreach(patterns, i, pattern)
    {
        if (!json_is_string(pattern) || json_string_length(pattern) == 0) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "%s%s[%zu] must be a text that is not empty", reading->where,
                           name, i);
        }
    }
    return QR_OK;
}

/* How it is added, as it is kept with the item. */
static qr_rc read_options(const struct reading *reading, qr_str *ret_options, qr_err *err)
{
    static const char *const names[] = {"include", "exclude", "copy"};
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_JSON *options = json_object();
    bool copy = false;
    QR_TRY(check_patterns(reading, "include", err));
    QR_TRY(check_patterns(reading, "exclude", err));
    QR_TRY(qr_field_bool(reading->object, reading->where, "copy", &copy, err));
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        json_t *value = json_object_get(reading->object, names[i]);
        if (value && json_object_set(options, names[i], value) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    if (options && json_object_size(options) == 0) {
        return QR_OK;
    }
    QR_TRY(qr_json_write(options, &text, err));
    *ret_options = (qr_str){qr_arena_copy(reading->arena, qr_buf_str(&text)), text.len};
    return ret_options->ptr ? QR_OK : qr_answer_out_of_memory(err);
}

static qr_rc read_attributes(const struct reading *reading, qr_str *ret_attributes, qr_err *err)
{
    const char *text;
    QR_TRY(qr_field_object(reading->object, reading->where, "attributes", reading->arena, &text, err));
    *ret_attributes = qr_str_of(text);
    return ret_attributes->len <= ATTRIBUTES_BYTES_MAX
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "%sattributes has at most %d bytes", reading->where,
                         (int)ATTRIBUTES_BYTES_MAX);
}

static qr_rc read_payload(const struct reading *reading, struct qr_add_item *item, qr_err *err)
{
    const char *type;
    if (!json_is_object(reading->object)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%stype is missing: an item is an object", reading->where);
    }
    QR_TRY(qr_field_text(reading->object, reading->where, "type", &type, err));
    item->type = type ? qr_item_type_find(qr_str_of(type)) : 0;
    if (!item->type) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%stype is one of directory, file, note, url", reading->where);
    }
    const struct payload *payload = &payloads[item->type];
    QR_TRY(qr_json_require_fields(reading->object, reading->where, payload->fields, err));
    if (item->type == QR_ITEM_NOTE) {
        QR_TRY(require_text(reading, "name", 1, NAME_BYTES_MAX, &item->name, err));
        QR_TRY(require_text(reading, "content", 0, SIZE_MAX, &item->content, err)); /* the body's limit is enough */
    } else if (item->type == QR_ITEM_URL) {
        QR_TRY(read_url(reading, &item->source, err));
    } else {
        QR_TRY(read_path(reading, &item->source, err));
    }
    QR_TRY(read_options(reading, &item->options, err));
    return read_attributes(reading, &item->attributes, err);
}

/* ---- the request ---- */

static qr_rc read_word(const json_t *body, const char *name, const char *const *words, size_t count, size_t *ret_index,
                       qr_err *err)
{
    const char *text;
    QR_TRY(qr_field_text(body, "", name, &text, err));
    *ret_index = 0;
    for (size_t i = 0; text && i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret_index = i;
            return QR_OK;
        }
    }
    return text ? qr_fail(err, QR_CODE_INVALID_VALUE, "%s is one of %s, %s%s%s", name, words[0], words[1],
                          count > 2 ? ", " : "", count > 2 ? words[2] : "")
                : QR_OK;
}

/* *ret_items: those of `add`, to be checked further. */
static qr_rc read_request(const json_t *body, struct qr_arena *arena, struct qr_add *add,
                          struct qr_add_item **ret_items, qr_err *err)
{
    static const char *const processes[] = {"auto", "manual"};
    static const char *const conflicts[] = {
        [QR_CONFLICT_CREATE] = "create", [QR_CONFLICT_SKIP] = "skip", [QR_CONFLICT_UPDATE] = "update"};
    const json_t *list = json_object_get(body, "items");
    size_t process, conflict;
    QR_TRY(read_word(body, "process", processes, QR_COUNT(processes), &process, err));
    QR_TRY(read_word(body, "on_conflict", conflicts, QR_COUNT(conflicts), &conflict, err));
    if (!json_is_array(list) || json_array_size(list) > ITEMS_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "items must be an array of at most %d items", (int)ITEMS_MAX);
    }
    const size_t count = json_array_size(list);
    struct qr_add_item *items = qr_arena_array(arena, count + 1, sizeof items[0]);
    if (!items) {
        return qr_answer_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        struct reading reading = {.object = json_array_get(list, i), .arena = arena};
        snprintf(reading.where, sizeof reading.where, "items[%zu].", i);
        QR_TRY(read_payload(&reading, &items[i], err));
    }
    add->items = *ret_items = items;
    add->count = count;
    add->is_manual = process == 1;
    add->on_conflict = (enum qr_on_conflict)conflict;
    return QR_OK;
}

/* Paths are of the machine that serves (KEY-7). */
static qr_rc check_paths(const struct qr_request *request, struct qr_arena *arena, struct qr_add_item *items,
                         size_t count, qr_err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i].type == QR_ITEM_FILE || items[i].type == QR_ITEM_DIRECTORY) {
            QR_TRY(qr_access_check_path(request, arena, &items[i], err));
        }
    }
    return QR_OK;
}

/* ---- the answer ---- */

struct result {
    const struct qr_added *added;
    size_t count;
    json_t *items;
};

static qr_rc load_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct result *result = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    json_array_clear(result->items);
    for (size_t i = 0; i < result->count; i++) {
        struct qr_item item;
        json_t *json = NULL;
        bool found;
        QR_TRY(qr_item_find(tx, result->added[i].id, &arena, &found, &item, err));
        if (found) {
            QR_TRY(qr_json_item(tx, &item, &arena, &json, err));
        } else { /* deleted since */
            json = json_pack("{s:o}", "id", qr_json_uuid(result->added[i].id));
        }
        if (json_object_set_new(json, "result", json_string(result->added[i].what)) != 0) {
            json_decref(json);
            return qr_answer_out_of_memory(err);
        }
        if (json_array_append_new(result->items, json) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    return QR_OK;
}

/* It is done: whatever fails now must not look as if it were not, so at least the ids are the answer. */
static json_t *result_json(struct quire *quire, const struct qr_added *added, size_t count)
{
    struct result result = {added, count, json_array()};
    if (qr_db_read(quire->db, load_items, &result, NULL) != QR_OK) {
        json_array_clear(result.items);
        for (size_t i = 0; i < count; i++) {
            (void)json_array_append_new(
                result.items, json_pack("{s:o, s:s}", "id", qr_json_uuid(added[i].id), "result", added[i].what));
        }
    }
    return json_pack("{s:o}", "items", result.items);
}

qr_rc qr_add_and_answer(const struct qr_request *request, const struct qr_add *add, struct qr_arena *arena,
                        struct qr_reply *reply, qr_err *err)
{
    struct qr_added *added = NULL;
    qr_err failure = {0};
    const qr_rc rc = qr_workflow_add(&request->quire->workflow, add, arena, &added, &failure);
    if (rc != QR_OK && failure.code == QR_CODE_ENQUEUE_FAILED) {
        reply->details = result_json(request->quire, added, add->count); /* ADD-4 */
    }
    if (rc != QR_OK) {
        *err = failure;
        return rc;
    }
    return qr_reply_with(reply, 202, result_json(request->quire, added, add->count), err);
}

qr_rc qr_route_items_add(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_add add = {0};
    struct qr_add_item *items = NULL;
    QR_TRY(read_request(request->body, &arena, &add, &items, err));
    QR_TRY(check_paths(request, &arena, items, add.count, err));
    QR_TRY(qr_request_base_id(request, &add.base_id, err));
    return qr_add_and_answer(request, &add, &arena, reply, err);
}
