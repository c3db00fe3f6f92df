/* See notation.h. Pure; notations are our own, so what is wrong in one is a defect. */
#include "api/notation.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>

enum { NAME_SIZE = 64 };

/* ---- words ---- */

static void read_name(const char **at, char ret_name[static NAME_SIZE])
{
    size_t len = 0;
    while (isalnum((unsigned char)**at) || **at == '_') {
        assert(len < NAME_SIZE - 1);
        ret_name[len++] = *(*at)++;
    }
    assert(len > 0);
    ret_name[len] = '\0';
}

static void expect(const char **at, char c)
{
    assert(**at == c);
    (*at)++;
}

static json_t *word_json(const char *name)
{
    static const struct {
        const char *name, *type, *format;
    } words[] = {{"text", "string", NULL},  {"int", "integer", NULL},       {"number", "number", NULL},
                 {"bool", "boolean", NULL}, {"null", "null", NULL},         {"object", "object", NULL},
                 {"id", "string", "uuid"},  {"time", "string", "date-time"}};
    for (size_t i = 0; i < QR_COUNT(words); i++) {
        if (strcmp(words[i].name, name) == 0) {
            return words[i].format ? json_pack("{s:s, s:s}", "type", words[i].type, "format", words[i].format)
                                   : json_pack("{s:s}", "type", words[i].type);
        }
    }
    assert(strcmp(name, "any") == 0);
    return json_object();
}

/* ---- one type ---- */

/* (min..max): the names of the bounds depend on what is bounded. */
static json_t *add_bounds(const char **at, json_t *schema)
{
    static const struct {
        const char *type, *min, *max;
    } names[] = {{"string", "minLength", "maxLength"},
                 {"array", "minItems", "maxItems"},
                 {"integer", "minimum", "maximum"},
                 {"number", "minimum", "maximum"}};
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (**at != '(') {
        return schema;
    }
    size_t kind = 0;
    while (type && strcmp(names[kind].type, type) != 0) {
        kind++;
        assert(kind < QR_COUNT(names));
    }
    const char *const bounds[] = {names[kind].min, names[kind].max};
    bool ok = schema != NULL;
    expect(at, '(');
    for (size_t i = 0; i < QR_COUNT(bounds); i++) {
        char *end;
        const long long bound = strtoll(*at, &end, 10);
        ok = ok && (end == *at || json_object_set_new(schema, bounds[i], json_integer(bound)) == 0);
        *at = end;
        if (i == 0) {
            expect(at, '.');
            expect(at, '.');
        }
    }
    expect(at, ')');
    if (!ok) {
        json_decref(schema);
    }
    return ok ? schema : NULL;
}

static json_t *read_type(const char **at);

static json_t *read_one(const char **at)
{
    char name[NAME_SIZE];
    json_t *schema;
    if (**at == '[' || **at == '{') {
        const bool is_list = *(*at)++ == '[';
        json_t *inner = read_type(at);
        expect(at, is_list ? ']' : '}');
        schema = json_pack("{s:s, s:o}", "type", is_list ? "array" : "object",
                           is_list ? "items" : "additionalProperties", inner);
    } else {
        read_name(at, name);
        schema = isupper((unsigned char)name[0])
                     ? json_pack("{s:o}", "$ref", json_sprintf("#/components/schemas/%s", name))
                     : word_json(name);
    }
    return add_bounds(at, schema);
}

/* ---- one or the other ---- */

struct choice {
    json_t *words;  /* all 'word' */
    json_t *others; /* schemas, without null */
    bool has_null;
};

static bool read_choice(const char **at, struct choice *choice)
{
    if (**at == '\'') {
        const char *end = strchr(++*at, '\'');
        assert(end);
        const bool ok = json_array_append_new(choice->words, json_stringn(*at, (size_t)(end - *at))) == 0;
        *at = end + 1;
        return ok;
    }
    json_t *schema = read_one(at);
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (type && strcmp(type, "null") == 0) {
        choice->has_null = true;
        json_decref(schema);
        return true;
    }
    return json_array_append_new(choice->others, schema) == 0;
}

/* {"type": ["integer", "null"]} is shorter than a choice of two. */
static json_t *with_null(json_t *schema)
{
    json_t *type = json_object_get(schema, "type"), *words = json_object_get(schema, "enum");
    if (!type) {
        return json_pack("{s:[O, {s:s}]}", "anyOf", schema, "type", "null");
    }
    const bool ok = json_object_set_new(schema, "type", json_pack("[O, s]", type, "null")) == 0 &&
                    (!words || json_array_append_new(words, json_null()) == 0);
    return ok ? json_incref(schema) : NULL;
}

static json_t *choice_json(const struct choice *choice)
{
    if (json_array_size(choice->words)) {
        json_t *word = json_pack("{s:s, s:O}", "type", "string", "enum", choice->words);
        if (json_array_append_new(choice->others, word) != 0) {
            return NULL;
        }
    }
    if (json_array_size(choice->others) == 1) {
        json_t *only = json_array_get(choice->others, 0);
        return choice->has_null ? with_null(only) : json_incref(only);
    }
    if (choice->has_null && json_array_append_new(choice->others, json_pack("{s:s}", "type", "null")) != 0) {
        return NULL;
    }
    return json_array_size(choice->others) ? json_pack("{s:O}", "anyOf", choice->others)
                                           : json_pack("{s:s}", "type", "null");
}

static json_t *read_type(const char **at)
{
    QR_JSON *words = json_array();
    QR_JSON *others = json_array();
    struct choice choice = {.words = words, .others = others};
    bool ok = words && others;
    for (;;) {
        ok = read_choice(at, &choice) && ok;
        if (**at != '|') {
            break;
        }
        (*at)++;
    }
    return ok ? choice_json(&choice) : NULL;
}

json_t *qr_notation_type(const char *type)
{
    json_t *schema = read_type(&type);
    assert(*type == '\0' || *type == ' ');
    return schema;
}

/* ---- fields ---- */

struct fields {
    const struct qr_schema *schemas;
    size_t count;
    json_t *properties, *required;
};

static bool read_fields(const char *at, struct fields *fields);

static bool read_fields_of(const char **at, struct fields *fields)
{
    char name[NAME_SIZE];
    expect(at, '+');
    read_name(at, name);
    for (size_t i = 0; i < fields->count; i++) {
        if (strcmp(fields->schemas[i].name, name) == 0) {
            return read_fields(fields->schemas[i].notation, fields);
        }
    }
    assert(!"the schema whose fields are wanted exists");
    return false;
}

static bool read_field(const char **at, struct fields *fields)
{
    char name[NAME_SIZE];
    read_name(at, name);
    const bool is_optional = **at == '?';
    *at += is_optional;
    expect(at, ':');
    return json_object_set_new(fields->properties, name, read_type(at)) == 0 &&
           (is_optional || json_array_append_new(fields->required, json_string(name)) == 0);
}

static bool read_fields(const char *at, struct fields *fields)
{
    while (*at) {
        if (!(*at == '+' ? read_fields_of(&at, fields) : read_field(&at, fields))) {
            return false;
        }
        assert(*at == ' ' || *at == '\0');
        at += *at == ' ';
    }
    return true;
}

static json_t *object_json(const struct fields *fields, enum qr_openness openness)
{
    QR_JSON *schema = json_pack("{s:s, s:O}", "type", "object", "properties", fields->properties);
    if (!schema || (json_array_size(fields->required) && json_object_set(schema, "required", fields->required) != 0) ||
        (openness != QR_SCHEMA_ANSWER &&
         json_object_set_new(schema, "additionalProperties", json_boolean(openness == QR_SCHEMA_FOREIGN)) != 0)) {
        return NULL;
    }
    return json_incref(schema);
}

static json_t *read_object(const struct qr_schema *schemas, size_t count, const struct qr_schema *row)
{
    QR_JSON *properties = json_object();
    QR_JSON *required = json_array();
    struct fields fields = {.schemas = schemas, .count = count, .properties = properties, .required = required};
    return properties && required && read_fields(row->notation, &fields) ? object_json(&fields, row->openness) : NULL;
}

json_t *qr_notation_schema(const struct qr_schema *schemas, size_t count, size_t index)
{
    const struct qr_schema *row = &schemas[index];
    QR_JSON *schema = row->notation[0] == '=' ? qr_notation_type(row->notation + 1) : read_object(schemas, count, row);
    return schema && json_object_set_new(schema, "description", json_string(row->doc)) == 0 ? json_incref(schema)
                                                                                            : NULL;
}
