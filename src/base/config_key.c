/* Owns the table of settings and the forms of their values. Pure. */
#include "base/config_key.h"

#include <assert.h>
#include <ctype.h>

static const struct qr_config_key keys[] = {
#define QR_KEY(id, ...) [QR_CONFIG_##id] = {__VA_ARGS__},
#include "base/config_keys.h"
#undef QR_KEY
};

const struct qr_config_key *qr_config_key(enum qr_config_id id)
{
    assert(id < QR_CONFIG_COUNT);
    return &keys[id];
}

qr_str qr_config_quotable(qr_str text)
{
    const bool may_be_url = text.len && (memmem(text.ptr, text.len, "://", 3) || memchr(text.ptr, '@', text.len));
    return may_be_url ? QR_STR("(not shown)") : text;
}

qr_rc qr_config_require(qr_str name, enum qr_config_id *ret_id, qr_err *err)
{
    enum { SHOWN_BYTES_MAX = 100 };
    struct qr_nearest nearest = qr_nearest_to(name);
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        if (qr_str_equal(name, qr_str_of(keys[id].name))) {
            *ret_id = id;
            return QR_OK;
        }
        qr_nearest_offer(&nearest, qr_str_of(keys[id].name));
    }
    const qr_str shown = qr_config_quotable(qr_utf8_prefix(name, SHOWN_BYTES_MAX));
    if (nearest.name.ptr) {
        return qr_fail(err, QR_CODE_UNKNOWN_FIELD, "no setting is called \"%.*s\"; did you mean %s?", QR_STR_ARG(shown),
                       nearest.name.ptr);
    }
    return qr_fail(err, QR_CODE_UNKNOWN_FIELD, "no setting is called \"%.*s\"; `quire help config` lists them",
                   QR_STR_ARG(shown));
}

void qr_config_env_name(const struct qr_config_key *key, char ret_name[static QR_CONFIG_ENV_SIZE])
{
    static const char prefix[] = "QUIRE_";
    size_t len = sizeof prefix - 1;
    assert(len + strlen(key->name) < QR_CONFIG_ENV_SIZE);
    memcpy(ret_name, prefix, len);
    for (const char *c = key->name; *c; c++) {
        ret_name[len++] = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
    }
    ret_name[len] = '\0';
}

/* ---- sizes ---- */

static const struct {
    const char *name;
    int64_t bytes;
} units[] = {{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}};

/* "64MB", "64 mb", "67108864" */
static bool parse_size(qr_str text, int64_t *ret_bytes)
{
    size_t digits = 0;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9') {
        digits++;
    }
    int64_t count, unit_bytes = 1;
    if (!qr_str_to_i64((qr_str){text.ptr, digits}, &count)) {
        return false;
    }
    const qr_str unit = qr_str_trim((qr_str){text.ptr + digits, text.len - digits});
    size_t i = 0;
    while (unit.len && i < QR_COUNT(units) && !qr_str_equal_any_case(unit, qr_str_of(units[i].name))) {
        i++;
    }
    if (i == QR_COUNT(units)) {
        return false;
    }
    if (unit.len) {
        unit_bytes = units[i].bytes;
    }
    return !QR_MUL_OVERFLOWS(count, unit_bytes, ret_bytes);
}

static void add_size(struct qr_buf *out, int64_t bytes)
{
    size_t i = 0;
    while (bytes % units[i].bytes != 0) {
        i++;
    }
    qr_buf_printf(out, "%lld%s", (long long)(bytes / units[i].bytes), units[i].name);
}

/* ---- values ---- */

static bool parse_choice(const char *choices, qr_str text, int64_t *ret_position)
{
    qr_str rest = qr_str_of(choices);
    for (int64_t position = 0; rest.len; position++) {
        if (qr_str_equal(qr_str_split(&rest, ' '), text)) {
            *ret_position = position;
            return true;
        }
    }
    return false;
}

bool qr_config_is_plain(qr_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == '\x7f') {
            return false;
        }
    }
    return text.len > 0 && text.len <= QR_CONFIG_VALUE_BYTES_MAX && qr_utf8_valid(text);
}

static bool parse(const struct qr_config_key *key, qr_str text, int64_t *ret_number)
{
    *ret_number = 0;
    if (!qr_config_is_plain(text)) {
        return false;
    }
    switch (key->type) {
    case QR_TYPE_STRING:
    case QR_TYPE_PATH:
        return true;
    case QR_TYPE_INTEGER:
        return qr_str_to_i64(text, ret_number) && *ret_number >= key->min && *ret_number <= key->max;
    case QR_TYPE_SIZE:
        return parse_size(text, ret_number) && *ret_number >= key->min && *ret_number <= key->max;
    case QR_TYPE_BOOL:
        return parse_choice("false true", text, ret_number);
    case QR_TYPE_ENUM:
        return parse_choice(key->choices, text, ret_number);
    }
    return false;
}

qr_rc qr_config_parse_value(const struct qr_config_key *key, qr_str text, int64_t *ret_number, qr_err *err)
{
    enum { SHOWN_BYTES_MAX = 100 };
    int64_t number;
    if (parse(key, text, &number)) {
        *ret_number = number;
        return QR_OK;
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf allowed = {0};
    qr_config_add_allowed(&allowed, key);
    QR_TRY(qr_buf_check(&allowed, err));
    if (key->secret) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the value of %s (not shown) is not allowed; allowed: %s", key->name,
                       allowed.data);
    }
    const qr_str shown = qr_config_quotable(qr_utf8_prefix(text, SHOWN_BYTES_MAX));
    return qr_fail(err, QR_CODE_INVALID_VALUE, "%s = \"%.*s%s\" is not allowed; allowed: %s", key->name,
                   QR_STR_ARG(shown), shown.len < text.len ? "…" : "", allowed.data);
}

/* ---- for people ---- */

static void add_choices(struct qr_buf *out, const char *choices)
{
    qr_str rest = qr_str_of(choices);
    for (bool first = true; rest.len; first = false) {
        const qr_str choice = qr_str_split(&rest, ' ');
        qr_buf_add_text(out, first ? "" : rest.len ? ", " : " or ");
        qr_buf_add(out, choice);
    }
}

void qr_config_add_allowed(struct qr_buf *out, const struct qr_config_key *key)
{
    switch (key->type) {
    case QR_TYPE_STRING:
        qr_buf_add_text(out, key->choices);
        break;
    case QR_TYPE_PATH:
        qr_buf_printf(out, "a path of up to %d bytes; ~/ is the home folder", (int)QR_CONFIG_VALUE_BYTES_MAX);
        break;
    case QR_TYPE_INTEGER:
        qr_buf_printf(out, "%lld to %lld%s%s", (long long)key->min, (long long)key->max, key->unit[0] ? " " : "",
                      key->unit);
        break;
    case QR_TYPE_SIZE:
        add_size(out, key->min);
        qr_buf_add_text(out, " to ");
        add_size(out, key->max);
        break;
    case QR_TYPE_BOOL:
        qr_buf_add_text(out, "true or false");
        break;
    case QR_TYPE_ENUM:
        add_choices(out, key->choices);
        break;
    }
}

void qr_config_add_default(struct qr_buf *out, const struct qr_config_key *key)
{
    switch (key->type) {
    case QR_TYPE_INTEGER:
        qr_buf_printf(out, "%lld", (long long)key->number);
        break;
    case QR_TYPE_SIZE:
        add_size(out, key->number);
        break;
    case QR_TYPE_BOOL:
        qr_buf_add_text(out, key->number ? "true" : "false");
        break;
    case QR_TYPE_STRING:
    case QR_TYPE_PATH:
    case QR_TYPE_ENUM:
        qr_buf_add_text(out, key->text);
        break;
    }
}

static bool has_any(qr_str text, const char *characters)
{
    for (size_t i = 0; i < text.len; i++) {
        if (strchr(characters, text.ptr[i])) {
            return true;
        }
    }
    return false;
}

/* A port is a number. Behind the ':' of "postgresql://user:password", where the host was forgotten, there is something
 * else. */
static bool is_host(qr_str text)
{
    const char *colon = text.len ? memrchr(text.ptr, ':', text.len) : NULL;
    const char *bracket = text.len ? memrchr(text.ptr, ']', text.len) : NULL; /* of an IPv6 address */
    if (!colon || (bracket && bracket > colon)) {
        return true;
    }
    for (const char *at = colon + 1; at < text.ptr + text.len; at++) {
        if ((*at < '0' || *at > '9') && *at != ',') {
            return false;
        }
    }
    return true;
}

/* Shows user, host, port and database of "USER:PASSWORD@HOST:PORT/DATABASE?…"; false when it is not plain which is which:
 * a password that was not escaped may hold any of the separators. Parameters are never shown: any may be a secret. */
static bool add_place(struct qr_buf *out, qr_str rest)
{
    const char *at = rest.len ? memrchr(rest.ptr, '@', rest.len) : NULL;
    qr_str user = {rest.ptr, at ? (size_t)(at - rest.ptr) : 0};
    qr_str place = {rest.ptr + user.len + (at ? 1 : 0), rest.len - user.len - (at ? 1 : 0)};
    const size_t whole_len = place.len;
    for (const char *stop = "?#;&"; *stop; stop++) {
        qr_str tail = place;
        place = qr_str_split(&tail, *stop);
    }
    qr_str path = place;
    if (has_any(user, "/?#;&@") || !is_host(qr_str_split(&path, '/'))) {
        return false;
    }
    const qr_str name = qr_str_split(&user, ':');
    qr_buf_add(out, name);
    qr_buf_add_text(out, !at ? "" : at > rest.ptr + name.len ? ":***@" : "@");
    qr_buf_add(out, place);
    qr_buf_add_text(out, place.len < whole_len ? "?***" : "");
    return true;
}

void qr_config_add_shown(struct qr_buf *out, const struct qr_config_key *key, qr_str text)
{
    if (!key->secret || !has_any(text, ":@")) {
        qr_buf_add(out, text); /* "sqlite" */
        return;
    }
    const char *scheme_end = memmem(text.ptr, text.len, "://", 3);
    const size_t scheme_len = scheme_end ? (size_t)(scheme_end + 3 - text.ptr) : 0;
    qr_buf_add(out, (qr_str){text.ptr, scheme_len});
    if (!add_place(out, (qr_str){text.ptr + scheme_len, text.len - scheme_len})) {
        qr_buf_add_text(out, "***");
    }
}
