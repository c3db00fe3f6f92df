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

static qr_str title_of(const struct qr_item *item, qr_str text)
{
    const qr_str heading = qr_convert_title(text);
    return heading.len ? heading : qr_str_of(item->name);
}

/* An empty text is one empty batch, which clears what an attempt before this one left. */
static qr_rc write_pieces(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation, qr_str text,
                          const struct qr_piece *pieces, size_t count, qr_err *err)
{
    const struct qr_index_guard guard = qr_attempt_guard(attempt);
    const qr_str title = title_of(item, text);
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

/* A note is what was typed, whatever it is called. */
static const char *structure_of(const struct qr_item *item, qr_str text)
{
    return qr_convert_structure(item->type != QR_ITEM_NOTE ? qr_str_of(item->name) : (qr_str){0}, text);
}

static qr_rc split(const struct qr_attempt *attempt, const struct qr_item *item, qr_str text, struct qr_arena *arena,
                   struct qr_piece **ret_pieces, size_t *ret_count, int64_t *ret_token_count, qr_err *err)
{
    const struct qr_settings *settings = &attempt->settings;
    const bool by_separator = strcmp(settings->chunking.strategy, "separator") == 0;
    const struct qr_split_options options = {
        .size_tokens = settings->chunking.size_tokens,
        .overlap_tokens = settings->chunking.overlap_tokens,
        .mime = structure_of(item, text),
        .separator = by_separator ? qr_str_of(settings->chunking.separator) : (qr_str){0},
    };
    QR_TRY(qr_split(text, &options, arena, ret_pieces, ret_count, err));
    *ret_token_count = 0;
    for (size_t i = 0; i < *ret_count; i++) {
        *ret_token_count += (*ret_pieces)[i].token_count;
    }
    return QR_OK;
}

qr_rc qr_write_text_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation, qr_str text,
                           int64_t *ret_chunk_count, int64_t *ret_token_count, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_piece *pieces;
    size_t count;
    QR_TRY(split(attempt, item, text, &arena, &pieces, &count, ret_token_count, err));
    QR_TRY(write_pieces(attempt, item, generation, text, pieces, count, err));
    *ret_chunk_count = (int64_t)count;
    return QR_OK;
}

qr_rc qr_split_text_chunks(struct qr_attempt *attempt, const struct qr_item *item, qr_str text,
                           struct qr_chunk **ret_chunks, size_t *ret_count, int64_t *ret_token_count, qr_err *err)
{
    struct qr_arena *arena = attempt->run->arena;
    struct qr_piece *pieces;
    size_t count;
    QR_TRY(split(attempt, item, text, arena, &pieces, &count, ret_token_count, err));
    struct qr_chunk *chunks = qr_arena_array(arena, count + 1, sizeof chunks[0]);
    if (!chunks) {
        return qr_handler_out_of_memory(err);
    }
    const qr_str title = title_of(item, text);
    for (size_t i = 0; i < count; i++) {
        fill(&chunks[i], i, &pieces[i], text, title);
    }
    *ret_chunks = chunks;
    *ret_count = count;
    return QR_OK;
}

void qr_reach_chunks(const struct qr_attempt *attempt, struct qr_stage_result *result)
{
    const bool embeds = qr_embedding_is_on(&attempt->live) || qr_embedding_is_on(&attempt->settings.embedding);
    result->reached = !embeds && (attempt->item.wanted & QR_WANT_INDEX) ? QR_REACHED_INDEX : QR_REACHED_CHUNKS;
    result->vector_epoch = attempt->base.vector_epoch;
}
