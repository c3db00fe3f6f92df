/* Targets and headers of requests: what the guard lets through is what it says. The first line is the target, each further
 * one a header. */
#include "http/guard.h"

#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADERS_MAX = 32 };

static void check_target(qr_str target)
{
    qr_err err;
    if (qr_guard_target(target, &err) != QR_OK) {
        return;
    }
    const char *query = memchr(target.ptr, '?', target.len);
    const qr_str path = {target.ptr, query ? (size_t)(query - target.ptr) : target.len};
    assert(path.len && path.ptr[0] == '/' && !memchr(target.ptr, '\0', target.len));
    assert(!memmem(path.ptr, path.len, "/../", 4) && !qr_str_ends_with(path, QR_STR("/..")));
    assert(!memmem(path.ptr, path.len, "%00", 3) && !memmem(path.ptr, path.len, "/%2e%2e/", 8));
}

static size_t count_of(const struct quire_header *headers, size_t count, const char *name)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += strcasecmp(headers[i].name, name) == 0;
    }
    return found;
}

static void check_headers(const struct quire_header *headers, size_t count)
{
    qr_err err;
    if (qr_guard_headers(headers, count, true, &err) == QR_OK) {
        assert(count_of(headers, count, "Host") == 1);
        assert(count_of(headers, count, "Content-Length") + count_of(headers, count, "Transfer-Encoding") <= 1);
        const struct qr_guard_hosts hosts = {.names = "a.example", .is_loopback = true};
        if (qr_guard_site(headers, count, &hosts, &err) == QR_OK) {
            const char *host = qr_guard_find(headers, count, "Host");
            assert(strncmp(host, "127.", 4) == 0 || strncasecmp(host, "localhost", 9) == 0 ||
                   strncmp(host, "[::1]", 5) == 0 || strncasecmp(host, "a.example", 9) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct quire_header headers[HEADERS_MAX];
    size_t count = 0;
    qr_str rest = {(const char *)data, size};
    check_target(qr_str_split(&rest, '\n'));
    char *text = malloc(rest.len + 1); /* what comes from libmicrohttpd ends with a NUL */
    assert(text);
    memcpy(text, rest.ptr, rest.len);
    text[rest.len] = '\0';
    for (char *line = text; line && count < HEADERS_MAX; count++) {
        char *end = strchr(line, '\n');
        if (end) {
            *end = '\0';
        }
        char *colon = strchr(line, ':');
        if (colon) {
            *colon = '\0';
        }
        headers[count] = (struct quire_header){line, colon ? colon + 1 : ""};
        line = end ? end + 1 : NULL;
    }
    check_headers(headers, count);
    free(text);
    return 0;
}
