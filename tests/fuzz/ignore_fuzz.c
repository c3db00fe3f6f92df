/* Any bytes as an ignore file and paths: the first line is a path, the rest the file. */
#include "source/ignore.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qr_str text = {(const char *)data, size};
    const qr_str path = qr_str_split(&text, '\n');
    const char *slash = path.len ? memchr(path.ptr, '/', path.len) : NULL;
    const qr_str folder = {path.ptr, slash ? (size_t)(slash - path.ptr) : 0};
    struct qr_arena arena;
    struct qr_ignore ignore;
    qr_err err = {0};
    qr_arena_init(&arena, 0);
    qr_ignore_init(&ignore, &arena);
    if (qr_ignore_add_file(&ignore, text, (qr_str){0}, QR_IGNORE_GIT, &err) == QR_OK &&
        qr_ignore_add_file(&ignore, text, folder, QR_IGNORE_QUIRE, &err) == QR_OK && path.len) {
        for (size_t i = 0; i < ignore.count; i++) {
            require(ignore.rules[i].pattern.len > 0);
        }
        const struct qr_ignore_rule *rule = qr_ignore_find(&ignore, path, false);
        require(!rule || !rule->folders_only);
        (void)qr_ignore_find(&ignore, path, true);
    }
    require(err.rc == QR_OK || err.rc == QR_TOO_LARGE);
    qr_arena_done(&arena);
    return 0;
}
