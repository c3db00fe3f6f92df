/* A short notation of JSON Schemas, so that a table of them fits on a few pages.
 *
 *     "id:id name:text(1..200) error?:Problem|null tags:[text] mode?:'auto'|'text' counts:{int}"
 *
 * Fields stand between spaces; one with a '?' may be absent. A type is
 *     text int number bool null any object    as in JSON; `object` has any fields
 *     id time                                 text: a UUID, a time of RFC 3339
 *     'word'                                  this very text
 *     Name                                    another schema
 *     [type] {type}                           a list of these; an object whose fields all are
 *     a|b                                     one or the other
 * and (1..200) behind a number, text or list bounds its value, length or count; either side may be left out. A schema that
 * begins with '=' is the type behind it, instead of an object with fields; "+Name" stands for the fields of another. */
#pragma once

#include "base/json.h"

/* Who may meet fields that a schema does not name. */
enum qr_openness {
    QR_SCHEMA_ANSWER,  /* a client: later versions may say more */
    QR_SCHEMA_REQUEST, /* nobody: they are refused */
    QR_SCHEMA_FOREIGN, /* the server: the shape is not ours */
};

struct qr_schema {
    const char *name;
    enum qr_openness openness;
    const char *notation;
    const char *doc;
};

/* The JSON Schema of a type; NULL when out of memory. What is not in the notation is a defect. */
json_t *qr_notation_type(const char *type);
/* The JSON Schema of schemas[index]; the others are those that its "+Name" may stand for. */
json_t *qr_notation_schema(const struct qr_schema *schemas, size_t count, size_t index);
