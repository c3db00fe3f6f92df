/* Values of the settings. Pure. */
#include "model/settings_read.h"

qr_rc qr_section_out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the settings of a base");
}

/* ---- values ---- */

qr_rc qr_section_text(const struct qr_section *section, const char *name, size_t len_max, const char **setting)
{
    const json_t *value = json_object_get(section->object, name);
    if (!value) {
        return QR_OK;
    }
    if (!json_is_string(value) || json_string_length(value) > len_max) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must be text of at most %zu bytes", section->path,
                       name, len_max);
    }
    *setting = qr_arena_copy(section->arena, qr_str_of(json_string_value(value)));
    return *setting ? QR_OK : qr_section_out_of_memory(section->err);
}

qr_rc qr_section_name(const struct qr_section *section, const char *name, const char **setting)
{
    QR_TRY(qr_section_text(section, name, QR_NAME_BYTES_MAX, setting));
    for (const char *c = *setting; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7F) {
            return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must have no control characters in it",
                           section->path, name);
        }
    }
    return QR_OK;
}

qr_rc qr_section_word(const struct qr_section *section, const char *name, const char *words, const char **setting)
{
    const json_t *value = json_object_get(section->object, name);
    if (!value) {
        return QR_OK;
    }
    qr_str rest = qr_str_of(words);
    while (rest.len && json_is_string(value)) {
        const qr_str word = qr_str_split(&rest, ' ');
        if (qr_str_equal(word, qr_str_of(json_string_value(value)))) {
            *setting = qr_arena_copy(section->arena, word);
            return *setting ? QR_OK : qr_section_out_of_memory(section->err);
        }
    }
    return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must be one of: %s", section->path, name, words);
}

qr_rc qr_section_number(const struct qr_section *section, const char *name, int64_t min, int64_t max, int64_t *setting)
{
    const json_t *value = json_object_get(section->object, name);
    if (!value) {
        return QR_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must be a whole number from %lld to %lld",
                       section->path, name, (long long)min, (long long)max);
    }
    *setting = json_integer_value(value);
    return QR_OK;
}

qr_rc qr_section_part(const struct qr_section *section, const char *name, double *setting)
{
    const json_t *value = json_object_get(section->object, name);
    if (!value) {
        return QR_OK;
    }
    if (!json_is_number(value) || !(json_number_value(value) >= 0 && json_number_value(value) <= 1)) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must be a number from 0 to 1", section->path, name);
    }
    *setting = json_number_value(value);
    return QR_OK;
}

qr_rc qr_section_list(const struct qr_section *section, const char *name, size_t count_max, size_t len_max,
                      const char ***ret_list, size_t *ret_count)
{
    const json_t *value = json_object_get(section->object, name);
    const size_t count = json_array_size(value);
    bool is_right = !value || (json_is_array(value) && count <= count_max);
    const char **list = qr_arena_array(section->arena, (is_right ? count : 0) + 1, sizeof list[0]);
    if (!list) {
        return qr_section_out_of_memory(section->err);
    }
    for (size_t i = 0; is_right && i < count; i++) {
        const json_t *text = json_array_get(value, i);
        const size_t len = json_string_length(text); /* 0 where it is none */
        is_right = len > 0 && len <= len_max;
        list[i] = is_right ? qr_arena_copy(section->arena, qr_str_of(json_string_value(text))) : NULL;
        if (is_right && !list[i]) {
            return qr_section_out_of_memory(section->err);
        }
    }
    if (!is_right) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                       "%s%s must be a list of at most %zu texts of 1 to %zu bytes", section->path, name, count_max,
                       len_max);
    }
    *ret_list = list;
    *ret_count = count;
    return QR_OK;
}

/* ---- sections ---- */

qr_rc qr_section_open(const struct qr_section *above, const char *name, const char *path, const char *fields,
                      struct qr_section *ret_section)
{
    const json_t *object = json_object_get(above->object, name);
    if (object && !json_is_object(object)) {
        return qr_fail(above->err, QR_CODE_INVALID_VALUE, "%s must be an object with the fields: %s", name, fields);
    }
    *ret_section = (struct qr_section){object, path, above->arena, above->err};
    return object ? qr_json_require_fields(object, path, fields, above->err) : QR_OK;
}

/* ---- services elsewhere ---- */

/* ":8080", or nothing. */
static bool is_port(qr_str text)
{
    enum { PORT_MAX = 65535 };
    int64_t port;
    if (text.len == 0) {
        return true;
    }
    const qr_str digits = {text.ptr + 1, text.len - 1};
    return text.ptr[0] == ':' && digits.len > 0 && digits.ptr[0] != '+' && qr_str_to_i64(digits, &port) && port >= 1 &&
           port <= PORT_MAX;
}

/* "host", "host:8080", "[::1]:8080" */
static bool is_host_and_port(qr_str text)
{
    const char *colon = memchr(text.ptr, ':', text.len);
    size_t host_len = colon ? (size_t)(colon - text.ptr) : text.len;
    if (text.len > 0 && text.ptr[0] == '[') {
        const char *bracket = memchr(text.ptr, ']', text.len);
        host_len = bracket ? (size_t)(bracket - text.ptr) + 1 : 0;
    }
    return host_len > 0 && is_port((qr_str){text.ptr + host_len, text.len - host_len});
}

/* What stands behind the scheme; "" = it is not of the web. */
static const char *host_of(const char *url)
{
    return strncmp(url, "https://", 8) == 0 ? url + 8 : strncmp(url, "http://", 7) == 0 ? url + 7 : "";
}

static bool is_web_address(const char *url)
{
    const char *host = host_of(url);
    for (const char *c = host; *c; c++) {
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7F || *c == '@' || *c == '?' || *c == '#') {
            return false; /* a user's name and password would be stored and shown */
        }
    }
    return is_host_and_port((qr_str){host, strcspn(host, "/")});
}

static qr_str without_slashes(qr_str path)
{
    while (qr_str_ends_with(path, QR_STR("/"))) {
        path.len--;
    }
    return path;
}

static bool is_variable_name(const char *name)
{
    for (const char *c = name; *c; c++) {
        const bool is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        if (!is_letter && !(*c >= '0' && *c <= '9' && c > name)) {
            return false;
        }
    }
    return true;
}

qr_rc qr_section_key_place(const struct qr_section *section, const char **env, const char **file)
{
    QR_TRY(qr_section_text(section, "api_key_env", QR_NAME_BYTES_MAX, env));
    QR_TRY(qr_section_text(section, "api_key_file", QR_PATH_BYTES_MAX, file));
    if (!is_variable_name(*env)) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                       "%sapi_key_env must be the name of an environment variable; the key itself is never a setting",
                       section->path);
    }
    if (**file && **file != '/') {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                       "%sapi_key_file must be an absolute path; the key itself is never a setting", section->path);
    }
    if (**env && **file) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE, "only one of %sapi_key_env and %sapi_key_file can be given",
                       section->path, section->path);
    }
    return QR_OK;
}

qr_rc qr_section_url(const struct qr_section *section, const char *example, const char *operation, const char **url)
{
    QR_TRY(qr_section_text(section, "url", QR_URL_BYTES_MAX, url));
    if (**url == '\0') {
        return QR_OK;
    }
    if (!is_web_address(*url)) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                       "%surl must be such as \"%s\", with a port up to 65535 and without user and password",
                       section->path, example);
    }
    const char *path_begin = host_of(*url) + strcspn(host_of(*url), "/");
    qr_str path = without_slashes(qr_str_of(path_begin));
    if (operation[0] && qr_str_ends_with(path, qr_str_of(operation))) {
        path = without_slashes((qr_str){path.ptr, path.len - strlen(operation)});
    }
    *url = qr_arena_copy(section->arena, (qr_str){*url, (size_t)(path_begin - *url) + path.len});
    return *url ? QR_OK : qr_section_out_of_memory(section->err);
}

qr_rc qr_section_endpoint_limits(const struct qr_section *section, int64_t *requests_a_minute, int64_t *tokens_a_minute,
                                 int64_t *in_flight)
{
    QR_TRY(qr_section_number(section, "requests_a_minute", 0, INT32_MAX, requests_a_minute));
    QR_TRY(qr_section_number(section, "tokens_a_minute", 0, INT32_MAX, tokens_a_minute));
    return qr_section_number(section, "in_flight", 0, QR_IN_FLIGHT_SETTING_MAX, in_flight);
}
