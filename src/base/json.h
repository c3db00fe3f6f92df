/* JSON on jansson, with limits on foreign text. Objects are jansson's json_t; who gets one releases it with
 * json_decref. */
#pragma once

#include "base/buf.h"

#include <jansson.h>

struct qr_json_limits {
    size_t size_bytes_max;
    unsigned depth_max;
    size_t values_max; /* of all kinds together. A value of 3 bytes ("{},") takes some 300 in memory */
};

/* What a request may hold at most. */
static const struct qr_json_limits QR_JSON_REQUEST_LIMITS = {
    .size_bytes_max = 64 << 20, .depth_max = 64, .values_max = 1 << 20};

/* Parses one value. `bad_request` (with line and column, without quoting the text: it may hold a secret) for anything
 * that is not strict JSON: duplicate keys, NUL (also as \u0000), invalid UTF-8, numbers that do not fit, text behind
 * the value, nesting beyond the limit; `payload_too_large` beyond the size or the number of values. */
qr_rc qr_json_parse(qr_str text, const struct qr_json_limits *limits, json_t **ret_value, qr_err *err);

/* Appends the compact form, keys in insertion order. */
qr_rc qr_json_write(const json_t *value, struct qr_buf *out, qr_err *err);

/* Appends a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. Controls, the C1 ones and the Unicode
 * line ends too, are escaped: it stays one line on every terminal. */
void qr_json_add_string(struct qr_buf *out, qr_str text);

/* {"error": {"code", "message", "details"?}}: the shape of every error; NULL when out of memory. `details` may be NULL,
 * and is taken also then. */
json_t *qr_json_error(const qr_err *err, json_t *details);

/* `unknown_field` unless every key of the object is one of `fields`, names between single spaces; the message offers the
 * nearest. `path` is where the object stands, with a dot behind it ("chunking."), "" for the outermost. */
qr_rc qr_json_require_fields(const json_t *object, const char *path, const char *fields, qr_err *err);

static inline void qr_json_decref_ptr(json_t **value)
{
    json_decref(*value);
}
#define QR_JSON QR_CLEANUP(qr_json_decref_ptr) json_t
