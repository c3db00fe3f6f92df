/* By the byte positions in the canonical text: they say how much two neighbours have in common, or lie apart. */
#include "search/passage.h"

#include "base/buf.h"

static void add_behind(struct qr_buf *text, int64_t *end, const struct qr_chunk *chunk)
{
    if (chunk->start > *end) {
        qr_buf_add_text(text, chunk->start - *end > 1 ? "\n\n" : "\n");
        qr_buf_add(text, chunk->text);
    } else if (chunk->end > *end) {
        const size_t common = (size_t)(*end - chunk->start);
        qr_buf_add(text, (qr_str){chunk->text.ptr + common, chunk->text.len - QR_MIN(common, chunk->text.len)});
    }
    *end = QR_MAX(*end, chunk->end);
}

qr_rc qr_passage_join(const struct qr_chunk *chunks, size_t count, struct qr_arena *arena, struct qr_chunk *ret_passage,
                      qr_err *err)
{
    *ret_passage = chunks[0];
    if (count == 1) {
        return QR_OK;
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_buf_add(&text, chunks[0].text);
    for (size_t i = 1; i < count; i++) {
        add_behind(&text, &ret_passage->end, &chunks[i]);
        ret_passage->line_end = QR_MAX(ret_passage->line_end, chunks[i].line_end);
        ret_passage->token_count += chunks[i].token_count;
    }
    QR_TRY(qr_buf_check(&text, err));
    ret_passage->text = (qr_str){qr_arena_copy(arena, qr_buf_str(&text)), text.len};
    return ret_passage->text.ptr ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a passage");
}
