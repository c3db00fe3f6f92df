/* KEY=VALUE… of a command line as a JSON object: a dot in a key leads one object deeper. */
#include "cli/assign.h"

/* As JSON where it is (numbers, true, lists), else as text; nothing stands for null, which takes a setting away. */
static json_t *value_of(qr_str text)
{
    json_t *value = NULL;
    if (text.len == 0) {
        return json_null();
    }
    return qr_json_parse(text, &QR_JSON_REQUEST_LIMITS, &value, NULL) == QR_OK ? value
                                                                               : json_stringn(text.ptr, text.len);
}

static qr_rc set(json_t *object, qr_str key, qr_str text, qr_err *err)
{
    char name[128];
    while (memchr(key.ptr, '.', key.len)) {
        const qr_str part = qr_str_split(&key, '.');
        snprintf(name, sizeof name, "%.*s", QR_STR_ARG(part));
        json_t *next = json_object_get(object, name);
        if (!json_is_object(next)) {
            next = json_object();
            json_object_set_new(object, name, next);
        }
        object = next;
    }
    snprintf(name, sizeof name, "%.*s", QR_STR_ARG(key));
    return json_object_set_new(object, name, value_of(text)) == 0
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "%s is not UTF-8", name);
}

qr_rc cli_read_assignments(const char *const *words, size_t count, json_t **ret_object, qr_err *err)
{
    QR_JSON *object = json_object();
    for (size_t i = 0; i < count; i++) {
        qr_str value = qr_str_of(words[i]);
        if (!strchr(words[i], '=')) {
            return qr_fail(err, QR_CODE_USAGE, "%s is not KEY=VALUE", words[i]);
        }
        const qr_str key = qr_str_split(&value, '=');
        QR_TRY(set(object, key, value, err));
    }
    *ret_object = json_incref(object);
    return object ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
}
