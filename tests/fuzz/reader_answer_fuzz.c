/* Any bytes as the answer of a reader that was taken over: what is accepted keeps what convert.h says, and is the same after
 * another round. */
#include "convert/reader_wire.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 16 };

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void require_text(const char *text)
{
    require(qr_utf8_valid(qr_str_of(text)));
}

static void check_converted(const struct qr_converted *converted)
{
    require(converted->text.len <= TEXT_MAX && qr_utf8_valid(converted->text));
    require(converted->text.ptr[converted->text.len] == '\0' && strlen(converted->text.ptr) == converted->text.len);
    require(!strchr(converted->text.ptr, '\r'));
    require(converted->mime[0] && converted->source_mime[0] && converted->charset[0]);
    require_text(converted->mime);
    require_text(converted->title ? converted->title : "");
    for (size_t i = 0; i < converted->page_count; i++) {
        require(converted->pages[i].offset <= converted->text.len && converted->pages[i].page >= 1);
        require(i == 0 || converted->pages[i].offset >= converted->pages[i - 1].offset);
    }
    for (size_t i = 0; i < converted->line_count; i++) {
        require(converted->lines[i].offset <= converted->text.len && converted->lines[i].line >= 1);
        require(i == 0 || converted->lines[i].line >= converted->lines[i - 1].line);
    }
    for (size_t i = 0; i < converted->warning_count; i++) {
        require(converted->warnings[i].code && converted->warnings[i].message);
        require_text(converted->warnings[i].message);
    }
}

/* What was accepted, sent once more. */
static void check_again(const struct qr_converted *converted, struct qr_arena *arena)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf answer = {0};
    struct qr_converted again;
    qr_answer_encode(converted, &answer);
    qr_buf_add(&answer, converted->text);
    qr_buf_add_char(&answer, '\0');
    require(answer.failed == QR_CODE_NONE && answer.len <= qr_answer_bytes_max(TEXT_MAX) + (1 << 20));
    require(qr_answer_parse(qr_buf_str(&answer), TEXT_MAX, arena, &again, NULL) == QR_OK);
    require(qr_str_equal(converted->text, again.text) && strcmp(converted->mime, again.mime) == 0);
    require(converted->page_count == again.page_count && converted->line_count == again.line_count);
    require(converted->warning_count == again.warning_count && !converted->title == !again.title);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_converted converted;
    qr_err err = {0};
    qr_arena_init(&arena, 0);
    const qr_rc rc = qr_answer_parse((qr_str){(const char *)data, size}, TEXT_MAX, &arena, &converted, &err);
    if (rc == QR_OK) {
        check_converted(&converted);
        check_again(&converted, &arena);
    } else {
        require(err.code != QR_CODE_NONE && qr_utf8_valid(qr_str_of(err.msg)));
    }
    return 0;
}
