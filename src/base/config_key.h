/* Settings one by one: what config_keys.h says about each, and how a value is read and shown. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum qr_config_id {
#define QR_KEY(id, ...) QR_CONFIG_##id,
#include "base/config_keys.h"
#undef QR_KEY
    QR_CONFIG_COUNT,
};

enum qr_config_type {
    QR_TYPE_STRING,
    QR_TYPE_PATH,
    QR_TYPE_INTEGER,
    QR_TYPE_SIZE, /* bytes; KB, MB and GB are powers of 1024 */
    QR_TYPE_BOOL, /* true or false */
    QR_TYPE_ENUM,
};

/* When another value takes effect. */
enum qr_config_when { QR_CONFIG_AT_START, QR_CONFIG_AT_RELOAD };

struct qr_config_key {
    const char *name; /* "section.key" */
    enum qr_config_type type;
    const char *text;    /* default of strings, paths and choices */
    int64_t number;      /* default of numbers and sizes */
    int64_t min, max;    /* of numbers and sizes, both included */
    const char *unit;    /* "ms", or "" */
    const char *choices; /* separated by spaces; of a string, what is allowed, in words */
    bool secret;         /* holds a password: shown without it */
    enum qr_config_when when;
    const char *doc;
};

enum {
    QR_CONFIG_VALUE_BYTES_MAX = 4096, /* the longest path there is */
    QR_CONFIG_ENV_SIZE = 64,          /* of a variable's name with its NUL */
};

const struct qr_config_key *qr_config_key(enum qr_config_id id);
/* A wrong name or value as an error may repeat it: a url that slipped into the wrong place is not shown, it may hold a
 * password (I10). */
qr_str qr_config_quotable(qr_str text);

/* The key with this name, or `unknown_field` with the nearest one. */
qr_rc qr_config_require(qr_str name, enum qr_config_id *ret_id, qr_err *err);
/* "QUIRE_SECTION_KEY" */
void qr_config_env_name(const struct qr_config_key *key, char ret_name[static QR_CONFIG_ENV_SIZE]);

/* UTF-8 without control characters, not empty and not too long: a line break or an escape sequence would break tables,
 * logs and terminals. */
bool qr_config_is_plain(qr_str text);

/* Reads a value: a number as it is, a size in bytes, false and true as 0 and 1, a choice as its position, other text as
 * 0. `invalid_value` names key, value and what is allowed, but never a secret. */
qr_rc qr_config_parse_value(const struct qr_config_key *key, qr_str text, int64_t *ret_number, qr_err *err);

/* What is allowed, for people: "1 to 64", "debug, info, warn or error". */
void qr_config_add_allowed(struct qr_buf *out, const struct qr_config_key *key);
/* The default as it would be written in the file. */
void qr_config_add_default(struct qr_buf *out, const struct qr_config_key *key);
/* The value as it may be shown: without passwords. */
void qr_config_add_shown(struct qr_buf *out, const struct qr_config_key *key, qr_str text);
