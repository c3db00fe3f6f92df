/* Any bytes as a file of any text format, which the first byte chooses: refused, or canonical, with marks in order. */
#include "convert/convert.h"
#include "model/markdown.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void require_canonical(const struct qr_converted *converted)
{
    const qr_str text = converted->text;
    require(qr_utf8_valid(text) && !memchr(text.ptr, '\r', text.len) && !memchr(text.ptr, '\0', text.len));
    require(!qr_str_starts_with(text, QR_STR("\xEF\xBB\xBF")));
    require(!converted->title || (converted->title[0] && qr_utf8_valid(qr_str_of(converted->title))));
    require(converted->mime && converted->source_mime && converted->charset);
    require(converted->line_count == 0 && converted->page_count == 0);
    bool is_empty = false;
    for (size_t i = 0; i < converted->warning_count; i++) {
        is_empty = is_empty || strcmp(converted->warnings[i].code, "empty") == 0;
        require(converted->warnings[i].message != NULL);
    }
    require(is_empty == qr_is_blank(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a.txt", "a.md", "a.rst", "a.org", "a.json", "a.adoc", "a.tex", "a.c"};
    const char *name = names[size ? data[0] % QR_COUNT(names) : 0];
    const qr_str bytes = size ? (qr_str){(const char *)data + 1, size - 1} : (qr_str){"", 0};
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_converted converted, again;
    qr_err err = {0};
    const qr_rc rc = qr_convert(bytes, name, &arena, &converted, &err);
    require(rc == QR_OK || err.code == QR_CODE_UNSUPPORTED_TYPE || err.code == QR_CODE_LIMIT_EXCEEDED);
    /* a.txt may be HTML by its content, which html_fuzz.c is for; escapes may be ISO-2022-JP once more */
    if (rc == QR_OK && strcmp(converted.source_mime, "text/html") != 0) {
        require_canonical(&converted);
        if (!memchr(converted.text.ptr, '\x1B', converted.text.len) &&
            qr_convert(converted.text, name, &arena, &again, &err) == QR_OK) {
            require(qr_str_equal(converted.text, again.text));
        }
    }
    qr_arena_done(&arena);
    return 0;
}
