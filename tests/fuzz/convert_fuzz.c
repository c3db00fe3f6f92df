/* Any bytes as a text file: refused, or canonical, and canonical text stays as it is. */
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

static qr_rc convert(qr_str bytes, struct qr_arena *arena, qr_str *ret_text)
{
    const char *mime, *title;
    struct qr_warning *warnings;
    size_t warning_count;
    qr_err err = {0};
    const qr_rc rc = qr_convert_text(bytes, arena, ret_text, &mime, &title, &warnings, &warning_count, &err);
    require(rc == QR_OK || err.code == QR_CODE_UNSUPPORTED_TYPE);
    if (rc == QR_OK) {
        require(!title || (title[0] && qr_utf8_valid(qr_str_of(title))));
        require((warning_count == 1) == qr_is_blank(*ret_text));
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    qr_str text, again;
    if (convert((qr_str){(const char *)data, size}, &arena, &text) == QR_OK) {
        require(qr_utf8_valid(text) && !memchr(text.ptr, '\r', text.len) && !memchr(text.ptr, '\0', text.len));
        require(convert(text, &arena, &again) == QR_OK && qr_str_equal(text, again));
    }
    qr_arena_done(&arena);
    return 0;
}
