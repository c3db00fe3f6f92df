#include "support/json_schema.h"

#include "base/uuid.h"

#include <stdio.h>

struct check {
    const json_t *document;
    struct qr_buf path;
    struct qr_buf *wrong;
};

static bool fits(struct check *check, const json_t *schema, const json_t *value);

static bool fail(struct check *check, const char *why, const char *what)
{
    qr_buf_clear(check->wrong);
    qr_buf_printf(check->wrong, "%s: %s %s", check->path.len ? check->path.data : "it", why, what);
    return false;
}

const json_t *json_schema_resolve(const json_t *document, const json_t *schema)
{
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    qr_str rest = qr_str_of(ref);
    if (!ref) {
        return schema;
    }
    (void)qr_str_split(&rest, '/'); /* the '#' */
    const json_t *found = document;
    while (rest.len) {
        char name[64];
        const qr_str part = qr_str_split(&rest, '/');
        snprintf(name, sizeof name, "%.*s", QR_STR_ARG(part));
        found = json_object_get(found, name);
    }
    return found;
}

/* ---- types ---- */

static bool is_of(const json_t *value, const char *type)
{
    return strcmp(type, "string") == 0    ? json_is_string(value)
           : strcmp(type, "integer") == 0 ? json_is_integer(value)
           : strcmp(type, "number") == 0  ? json_is_number(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
           : strcmp(type, "null") == 0    ? json_is_null(value)
           : strcmp(type, "array") == 0   ? json_is_array(value)
                                          : strcmp(type, "object") == 0 && json_is_object(value);
}

static bool fits_type(struct check *check, const json_t *type, const json_t *value)
{
    const json_t *one;
    size_t i;
    json_array_foreach(type, i, one)
    {
        if (is_of(value, json_string_value(one))) {
            return true;
        }
    }
    return (json_is_string(type) && is_of(value, json_string_value(type))) || fail(check, "is not of the type", "");
}

static bool fits_enum(struct check *check, const json_t *words, const json_t *value)
{
    const json_t *word;
    size_t i;
    json_array_foreach(words, i, word)
    {
        if (json_equal(word, value)) {
            return true;
        }
    }
    return fail(check, "is none of the words:", json_is_string(value) ? json_string_value(value) : "no text");
}

/* 2026-01-31T23:59:59.123Z */
static bool is_time(const char *text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    for (size_t i = 0; form[i]; i++) {
        const bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == 'd' ? !is_digit : text[i] != form[i]) {
            return false;
        }
    }
    return text[strlen(text) - 1] == 'Z';
}

static bool fits_format(struct check *check, const char *format, const json_t *value)
{
    const char *text = json_string_value(value);
    qr_uuid id;
    if (!text) {
        return true;
    }
    if (strcmp(format, "uuid") == 0) {
        return qr_uuid_parse(qr_str_of(text), &id) || fail(check, "is not an id:", text);
    }
    return strcmp(format, "date-time") == 0 ? is_time(text) || fail(check, "is not a time:", text)
                                            : fail(check, "has an unknown format:", format);
}

/* ---- bounds ---- */

static bool fits_bound(struct check *check, const char *keyword, const json_t *bound, const json_t *value)
{
    const bool is_min = strncmp(keyword, "min", 3) == 0;
    const char *of = keyword + 3;
    double actual;
    if (strcmp(of, "Length") == 0 && json_is_string(value)) {
        actual = (double)json_string_length(value); /* in bytes: our bounds are those */
    } else if (strcmp(of, "Items") == 0 && json_is_array(value)) {
        actual = (double)json_array_size(value);
    } else if (strcmp(of, "imum") == 0 && json_is_number(value)) {
        actual = json_number_value(value);
    } else {
        return true;
    }
    const double limit = json_number_value(bound);
    return (is_min ? actual >= limit : actual <= limit) || fail(check, "is out of bounds:", keyword);
}

/* ---- objects and lists ---- */

static bool fits_below(struct check *check, const json_t *schema, const json_t *value, const char *name)
{
    const size_t len = check->path.len;
    qr_buf_printf(&check->path, ".%s", name);
    const bool ok = fits(check, schema, value);
    check->path.len = len;
    check->path.data[len] = '\0';
    return ok;
}

static bool fits_object(struct check *check, const json_t *schema, const json_t *value)
{
    const json_t *properties = json_object_get(schema, "properties"), *name;
    const json_t *others = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *member;
    size_t i;
    json_array_foreach(json_object_get(schema, "required"), i, name)
    {
        if (!json_object_get(value, json_string_value(name))) {
            return fail(check, "lacks the field", json_string_value(name));
        }
    }
    json_object_foreach((json_t *)value, key, member)
    {
        const json_t *known = json_object_get(properties, key);
        if (!known && json_is_object(others)) {
            known = others;
        }
        if (!known && (json_is_false(others) || (properties && !others))) {
            return fail(check, "has a field that nobody has described:", key);
        }
        if (known && !fits_below(check, known, member, key)) {
            return false;
        }
    }
    return true;
}

static bool fits_items(struct check *check, const json_t *schema, const json_t *value)
{
    const json_t *member;
    size_t i;
    json_array_foreach(value, i, member)
    {
        char index[32];
        snprintf(index, sizeof index, "%zu", i);
        if (!fits_below(check, schema, member, index)) {
            return false;
        }
    }
    return true;
}

static bool fits_any(struct check *check, const json_t *choices, const json_t *value)
{
    struct qr_buf *wrong = check->wrong;
    QR_CLEANUP(qr_buf_done) struct qr_buf reasons = {0}, reason = {0};
    const json_t *choice;
    size_t i;
    bool ok = false;
    check->wrong = &reason;
    json_array_foreach(choices, i, choice)
    {
        ok = ok || fits(check, choice, value);
        qr_buf_printf(&reasons, " [%s]", ok ? "" : reason.data);
    }
    check->wrong = wrong;
    return ok || fail(check, "fits none of several:", reasons.data);
}

/* ---- the whole ---- */

static bool fits_keyword(struct check *check, const json_t *schema, const char *keyword, const json_t *rule,
                         const json_t *value)
{
    static const char *const elsewhere[] = {"description", "properties", "required", "additionalProperties"};
    if (strcmp(keyword, "type") == 0) {
        return fits_type(check, rule, value) && (!json_is_object(value) || fits_object(check, schema, value));
    }
    if (strcmp(keyword, "enum") == 0) {
        return fits_enum(check, rule, value);
    }
    if (strcmp(keyword, "anyOf") == 0) {
        return fits_any(check, rule, value);
    }
    if (strcmp(keyword, "items") == 0) {
        return !json_is_array(value) || fits_items(check, rule, value);
    }
    if (strcmp(keyword, "format") == 0) {
        return fits_format(check, json_string_value(rule), value);
    }
    if (strncmp(keyword, "min", 3) == 0 || strncmp(keyword, "max", 3) == 0) {
        return fits_bound(check, keyword, rule, value);
    }
    for (size_t i = 0; i < QR_COUNT(elsewhere); i++) {
        if (strcmp(keyword, elsewhere[i]) == 0) {
            return true;
        }
    }
    return fail(check, "has a schema with an unknown keyword:", keyword);
}

static bool fits(struct check *check, const json_t *schema, const json_t *value)
{
    const json_t *resolved = json_schema_resolve(check->document, schema);
    const char *keyword;
    json_t *rule;
    if (!json_is_object(resolved)) {
        return fail(check, "has no schema", "");
    }
    json_object_foreach((json_t *)resolved, keyword, rule)
    {
        if (!fits_keyword(check, resolved, keyword, rule, value)) {
            return false;
        }
    }
    return true;
}

bool json_schema_fits(const json_t *document, const json_t *schema, const json_t *value, struct qr_buf *wrong)
{
    struct check check = {.document = document, .wrong = wrong};
    const bool ok = fits(&check, schema, value);
    qr_buf_done(&check.path);
    return ok;
}
