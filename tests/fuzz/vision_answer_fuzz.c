/* Whatever a vision model answers becomes text that can be stored and shown, or an error; and pictures in any text are found
 * inside it. */
#include "base/base64.h"
#include "convert/pictures.h"
#include "convert/vision_wire.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_answer(qr_str answer)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_str text;
    qr_err err = {0};
    qr_arena_init(&arena, 0);
    if (qr_vision_read(answer, &arena, &text, &err) != QR_OK) {
        require(err.code == QR_CODE_UNAVAILABLE);
        return;
    }
    require(text.len <= QR_VISION_TEXT_BYTES_MAX && qr_utf8_valid(text) && strlen(text.ptr) == text.len);
    for (size_t i = 0; i < text.len; i++) {
        require((unsigned char)text.ptr[i] >= ' ' || text.ptr[i] == '\n' || text.ptr[i] == '\t');
    }
}

static void check_pictures(qr_str text)
{
    struct qr_pictures pictures = {.text = text};
    struct qr_embedded_picture picture = {0}, before = {0};
    while (qr_pictures_next(&pictures, &picture)) {
        QR_CLEANUP(qr_buf_done) struct qr_buf decoded = {0};
        require(picture.start >= before.end && picture.end < text.len && picture.line >= before.line);
        require(picture.base64.ptr >= text.ptr + picture.start &&
                picture.base64.ptr + picture.base64.len == text.ptr + picture.end);
        (void)!qr_base64_read(picture.base64, &decoded);
        (void)qr_picture_mime(qr_buf_str(&decoded));
        before = picture;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    const qr_str text = {(const char *)bytes, size_bytes};
    check_answer(text);
    if (size_bytes) {
        check_pictures(text);
    }
    return 0;
}
