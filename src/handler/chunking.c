/* Chunks: what chunk-document, small documents and rebuilds do alike. */
#include "handler/chunking.h"

#include "chunk/split.h"
#include "convert/convert.h"

enum { CHUNKS_A_BATCH = 200 };

static void fill(struct qr_chunk *chunk, size_t ordinal, const struct qr_piece *piece, qr_str text, qr_str title)
{
    *chunk = (struct qr_chunk){
        .ordinal = (int64_t)ordinal,
        .text = {text.ptr + piece->start, (size_t)(piece->end - piece->start)},
        .start = piece->start,
        .end = piece->end,
        .line_start = piece->line_start,
        .line_end = piece->line_end,
        .heading = piece->heading,
        .token_count = piece->token_count,
        .title = title,
    };
}

/* An empty text is one empty batch, which clears what an attempt before this one left. */
static qr_rc write_pieces(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation, qr_str text,
                          const struct qr_piece *pieces, size_t count, qr_err *err)
{
    const struct qr_index_guard guard = qr_attempt_guard(attempt);
    const qr_str heading = qr_convert_title(text);
    const qr_str title = heading.len ? heading : qr_str_of(item->name);
    struct qr_chunk chunks[CHUNKS_A_BATCH];
    size_t at = 0;
    do {
        const size_t batch = QR_MIN(count - at, (size_t)CHUNKS_A_BATCH);
        for (size_t i = 0; i < batch; i++) {
            fill(&chunks[i], at + i, &pieces[at + i], text, title);
        }
        QR_TRY(qr_attempt_go_on(attempt, err));
        QR_TRY(qr_index_write_chunks(attempt->context->index, item->base_id, item->id, generation, chunks, batch,
                                     &guard, err));
        at += batch;
    } while (at < count);
    return QR_OK;
}

qr_rc qr_write_text_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation, qr_str text,
                           int64_t *ret_chunk_count, int64_t *ret_token_count, qr_err *err)
{
    const struct qr_settings *settings = &attempt->settings;
    const bool by_separator = strcmp(settings->chunking.strategy, "separator") == 0;
    const struct qr_split_options options = {
        .size_tokens = settings->chunking.size_tokens,
        .overlap_tokens = settings->chunking.overlap_tokens,
        .separator = by_separator ? qr_str_of(settings->chunking.separator) : (qr_str){0},
    };
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_piece *pieces;
    size_t count;
    int64_t token_count = 0;
    QR_TRY(qr_split(text, &options, &arena, &pieces, &count, err));
    QR_TRY(write_pieces(attempt, item, generation, text, pieces, count, err));
    for (size_t i = 0; i < count; i++) {
        token_count += pieces[i].token_count;
    }
    *ret_chunk_count = (int64_t)count;
    *ret_token_count = token_count;
    return QR_OK;
}

enum qr_reached qr_reached_with_chunks(const struct qr_attempt *attempt)
{
    const bool is_all = !qr_settings_embed(&attempt->settings) && (attempt->item.wanted & QR_WANT_INDEX);
    return is_all ? QR_REACHED_INDEX : QR_REACHED_CHUNKS;
}
