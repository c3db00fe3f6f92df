/* The checks of http/guard.h. */
#include "http/guard.h"

#include "base/buf.h"

#include <ctype.h>
#include <strings.h>

const char *qr_guard_find(const struct quire_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(headers[i].name, name) == 0) {
            return headers[i].value;
        }
    }
    return NULL;
}

/* ---- the target (G2) ---- */

static qr_rc decode(qr_str path, struct qr_buf *out, qr_err *err)
{
    while (path.len) {
        const char *coded = memchr(path.ptr, '%', path.len);
        const size_t plain = coded ? (size_t)(coded - path.ptr) : path.len;
        qr_buf_add(out, (qr_str){path.ptr, plain});
        path = (qr_str){path.ptr + plain, path.len - plain};
        if (coded) {
            const int high = path.len > 2 ? qr_hex_digit(path.ptr[1]) : -1;
            const int low = high >= 0 ? qr_hex_digit(path.ptr[2]) : -1;
            if (low < 0) {
                return qr_fail(err, QR_CODE_BAD_REQUEST,
                               "a '%%' in the path is not followed by two hexadecimal digits");
            }
            qr_buf_add_char(out, (char)(high << 4 | low));
            path = (qr_str){path.ptr + 3, path.len - 3};
        }
    }
    return qr_buf_check(out, err);
}

static bool has_control(qr_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f) {
            return true;
        }
    }
    return false;
}

static bool climbs(qr_str path)
{
    while (path.len) {
        const qr_str part = qr_str_split(&path, '/');
        if (qr_str_equal(part, QR_STR(".")) || qr_str_equal(part, QR_STR(".."))) {
            return true;
        }
    }
    return false;
}

qr_rc qr_guard_target(qr_str target, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf decoded = {0};
    qr_str query = target;
    const qr_str path = qr_str_split(&query, '?');
    if (target.len > QR_GUARD_TARGET_BYTES_MAX) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "the path is too long");
    }
    if (path.len == 0 || path.ptr[0] != '/') {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "the path does not begin with a slash");
    }
    if (has_control(target)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "the path holds a control character");
    }
    QR_TRY(decode(path, &decoded, err));
    const qr_str text = qr_buf_str(&decoded);
    if (has_control(text) || !qr_utf8_valid(text)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "what the path stands for is not text");
    }
    if (climbs(text)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "a part of the path is . or ..");
    }
    return QR_OK;
}

/* ---- the headers (G1) ---- */

/* That have one value, and whose second one would be another's meaning. */
static const char *const once[] = {
    "Host",         "Content-Length", "Transfer-Encoding", "Content-Type", "Authorization", "Idempotency-Key",
    "Origin",       "If-Match",       "If-Range",          "Range",        "Expect",        "Sec-Fetch-Site",
    "Last-Event-ID"};

static bool is_name(const char *name)
{
    if (!*name) {
        return false;
    }
    for (; *name; name++) {
        if (!isalnum((unsigned char)*name) && !strchr("!#$%&'*+-.^_`|~", *name)) {
            return false;
        }
    }
    return true;
}

static bool is_value(const char *value)
{
    for (; *value; value++) {
        if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) <= 18;
}

static qr_rc check_form(const struct quire_header *headers, size_t count, qr_err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_name(headers[i].name) || !is_value(headers[i].value)) {
            return qr_fail(err, QR_CODE_BAD_REQUEST, "a header is malformed");
        }
    }
    for (size_t i = 0; i < QR_COUNT(once); i++) {
        size_t found = 0;
        for (size_t k = 0; k < count; k++) {
            found += strcasecmp(headers[k].name, once[i]) == 0;
        }
        if (found > 1) {
            return qr_fail(err, QR_CODE_BAD_REQUEST, "the header %s is given more than once", once[i]);
        }
    }
    return QR_OK;
}

qr_rc qr_guard_headers(const struct quire_header *headers, size_t count, bool is_http_1_1, qr_err *err)
{
    QR_TRY(check_form(headers, count, err));
    const char *length = qr_guard_find(headers, count, "Content-Length");
    const char *encoding = qr_guard_find(headers, count, "Transfer-Encoding");
    const char *host = qr_guard_find(headers, count, "Host");
    const char *expect = qr_guard_find(headers, count, "Expect");
    if (length && encoding) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "Content-Length and Transfer-Encoding are both given");
    }
    if (length && !is_number(length)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "Content-Length is not a number");
    }
    if (encoding && (!is_http_1_1 || strcasecmp(encoding, "chunked") != 0)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "Transfer-Encoding must be chunked, in HTTP/1.1");
    }
    if (expect && strcasecmp(expect, "100-continue") != 0) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "Expect must be 100-continue");
    }
    if ((is_http_1_1 && !host) || (host && (!*host || strpbrk(host, " \t,/\\@?#%")))) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "Host is missing or malformed");
    }
    return QR_OK;
}

/* ---- who is meant (G3) ---- */

/* "[::1]:7700" → "[::1]" */
static qr_str without_port(qr_str host)
{
    const char *end = host.len && host.ptr[0] == '[' ? memchr(host.ptr, ']', host.len) : NULL;
    if (end) {
        return (qr_str){host.ptr, (size_t)(end - host.ptr) + 1};
    }
    return qr_str_split(&host, ':');
}

static bool is_loopback_name(qr_str name)
{
    if (qr_str_equal_any_case(name, QR_STR("localhost")) || qr_str_equal_any_case(name, QR_STR("[::1]"))) {
        return true;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] != '.' && !isdigit((unsigned char)name.ptr[i])) {
            return false; /* 127.0.0.1.example.org */
        }
    }
    return qr_str_starts_with(name, QR_STR("127."));
}

static bool is_our_host(qr_str name, const struct qr_guard_hosts *hosts)
{
    qr_str names = qr_str_of(hosts->names);
    bool has_names = false;
    while (names.len) {
        const size_t len = strcspn(names.ptr, " ,");
        const qr_str one = {names.ptr, QR_MIN(len, names.len)};
        has_names = has_names || one.len;
        if (one.len && qr_str_equal_any_case(name, one)) {
            return true;
        }
        const size_t step = QR_MIN(one.len + 1, names.len);
        names = (qr_str){names.ptr + step, names.len - step};
    }
    return hosts->is_loopback ? is_loopback_name(name) : !has_names;
}

/* "http://localhost:7700" is the same site as "Host: localhost:7700". */
static bool is_our_origin(const char *origin, const char *host)
{
    const char *name = strstr(origin, "://");
    return name && host && strcasecmp(name + 3, host) == 0;
}

qr_rc qr_guard_site(const struct quire_header *headers, size_t count, const struct qr_guard_hosts *hosts, qr_err *err)
{
    const char *host = qr_guard_find(headers, count, "Host");
    const char *origin = qr_guard_find(headers, count, "Origin");
    const char *site = qr_guard_find(headers, count, "Sec-Fetch-Site");
    if (host && !is_our_host(without_port(qr_str_of(host)), hosts)) {
        return qr_fail(err, QR_CODE_FOREIGN_HOST, "this server does not go by the name in Host");
    }
    if (qr_guard_find(headers, count, "Authorization")) {
        return QR_OK;
    }
    if ((origin && !is_our_origin(origin, host)) ||
        (site && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0)) {
        return qr_fail(err, QR_CODE_CROSS_SITE, "a browser sends this on behalf of another site");
    }
    return QR_OK;
}
