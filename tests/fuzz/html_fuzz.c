/* Any bytes as a web page: refused, or canonical Markdown with the lines of the source in order. */
#include "convert/convert.h"

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
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_converted converted;
    qr_err err = {0};
    const qr_rc rc = qr_convert((qr_str){(const char *)data, size}, "a.html", &arena, &converted, &err);
    require(rc == QR_OK || err.code == QR_CODE_UNSUPPORTED_TYPE || err.code == QR_CODE_LIMIT_EXCEEDED);
    if (rc == QR_OK) {
        const qr_str text = converted.text;
        require(qr_utf8_valid(text) && !memchr(text.ptr, '\r', text.len) && !memchr(text.ptr, '\0', text.len));
        require(!converted.title || (converted.title[0] && qr_utf8_valid(qr_str_of(converted.title))));
        for (size_t i = 0; i < converted.line_count; i++) {
            const struct qr_line_mark *mark = &converted.lines[i];
            require(mark->offset < text.len && mark->line >= 1);
            require(i == 0 || (mark[0].offset > mark[-1].offset && mark[0].line > mark[-1].line));
        }
        require(text.len == 0 || converted.line_count > 0);
    }
    qr_arena_done(&arena);
    return 0;
}
