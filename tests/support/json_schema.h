/* A checker of JSON Schemas, of what our own use: type, enum, properties, required, additionalProperties, items, anyOf, $ref,
 * bounds, format. A keyword that it does not know fails the check. It is stricter than the standard in one thing: a field
 * that a schema with properties does not name is wrong even where nothing is said of additional ones. */
#pragma once

#include "base/json.h"

/* Whether the value fits; else `wrong` gets where and why. `document` is what a $ref points into. */
bool json_schema_fits(const json_t *document, const json_t *schema, const json_t *value, struct qr_buf *wrong);
/* The schema itself, which may be a $ref. */
const json_t *json_schema_resolve(const json_t *document, const json_t *schema);
