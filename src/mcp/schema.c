/* Checks arguments by the tool's own input schema, so that what a client is told and what holds are one. Of JSON Schema it knows
 * just what these schemas use: type, enum, minimum, maximum, minLength, maxLength, items, minItems, maxItems, required. */
#include "mcp/call.h"

#include <assert.h>

static bool has_type(const json_t *value, const char *type)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return strcmp(type, "string") == 0;
    case JSON_INTEGER:
        return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
    case JSON_REAL:
        return strcmp(type, "number") == 0;
    case JSON_TRUE:
    case JSON_FALSE:
        return strcmp(type, "boolean") == 0;
    case JSON_ARRAY:
        return strcmp(type, "array") == 0;
    case JSON_OBJECT:
        return strcmp(type, "object") == 0;
    case JSON_NULL:
        return false;
    }
    return false;
}

/* How much there is of it, by which it is limited. */
static json_int_t size_of(const json_t *value)
{
    return json_is_integer(value)  ? json_integer_value(value)
           : json_is_string(value) ? (json_int_t)json_string_length(value)
                                   : (json_int_t)json_array_size(value);
}

static qr_rc check_size(const char *name, const json_t *schema, const json_t *value, qr_err *err)
{
    const bool is_number = json_is_integer(value), is_text = json_is_string(value);
    const char *least = is_number ? "minimum" : is_text ? "minLength" : "minItems";
    const char *most = is_number ? "maximum" : is_text ? "maxLength" : "maxItems";
    const json_int_t min = mcp_number(schema, least, INT64_MIN), max = mcp_number(schema, most, INT64_MAX);
    if (size_of(value) >= min && size_of(value) <= max) {
        return QR_OK;
    }
    const char *what = is_number ? "is a whole number" : is_text ? "has a length" : "has so many entries:";
    return max == INT64_MAX ? qr_fail(err, QR_CODE_INVALID_VALUE, "%s %s from %lld on", name, what, (long long)min)
                            : qr_fail(err, QR_CODE_INVALID_VALUE, "%s %s from %lld to %lld", name, what,
                                      (long long)QR_MAX(min, 0), (long long)max);
}

static qr_rc check_choice(const char *name, const json_t *choices, const json_t *value, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf list = {0};
    const json_t *choice;
    size_t i;
    json_array_foreach(choices, i, choice)
    {
        if (json_equal(choice, value)) {
            return QR_OK;
        }
        qr_buf_printf(&list, "%s%s", i ? ", " : "", json_string_value(choice));
    }
    QR_TRY(qr_buf_check(&list, err));
    return qr_fail(err, QR_CODE_INVALID_VALUE, "%s is one of %s", name, list.data);
}

static qr_rc check_value(const char *name, const json_t *schema, const json_t *value, qr_err *err)
{
    const char *type = mcp_text(schema, "type");
    const json_t *choices = json_object_get(schema, "enum"), *items = json_object_get(schema, "items"), *member;
    size_t i;
    assert(type);
    if (!has_type(value, type)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s must be of the type %s", name, type);
    }
    if (choices) {
        QR_TRY(check_choice(name, choices, value, err));
    }
    json_array_foreach(value, i, member)
    {
        QR_TRY(items ? check_value(name, items, member, err) : QR_OK);
    }
    return json_is_integer(value) || json_is_string(value) || json_is_array(value)
               ? check_size(name, schema, value, err)
               : QR_OK;
}

static qr_rc check_required(const json_t *schema, const json_t *args, qr_err *err)
{
    const json_t *name;
    size_t i;
    json_array_foreach(json_object_get(schema, "required"), i, name)
    {
        if (!json_object_get(args, json_string_value(name))) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "the argument %s is missing", json_string_value(name));
        }
    }
    return QR_OK;
}

static qr_rc check_names(const json_t *properties, const json_t *args, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf names = {0};
    const char *name;
    json_t *property;
    json_object_foreach((json_t *)properties, name, property)
    {
        qr_buf_printf(&names, "%s%s", names.len ? " " : "", name);
    }
    QR_TRY(qr_buf_check(&names, err));
    return qr_json_require_fields(args, "", qr_buf_str(&names).ptr, err);
}

qr_rc mcp_check_args(const char *input_schema, const json_t *args, qr_err *err)
{
    QR_JSON *schema = json_loads(input_schema, 0, NULL);
    const json_t *properties = json_object_get(schema, "properties");
    const char *name;
    json_t *value;
    if (!schema) {
        return mcp_out_of_memory(err);
    }
    QR_TRY(check_names(properties, args, err));
    QR_TRY(check_required(schema, args, err));
    json_object_foreach((json_t *)args, name, value)
    {
        QR_TRY(check_value(name, json_object_get(properties, name), value, err));
    }
    return QR_OK;
}
