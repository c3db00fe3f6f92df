/* Makes words before a write, and keeps them until FTS5 takes them. */
#include "index/made_words.h"

#include "base/mem.h"
#include "index/tokenizer.h"
#include "text/tokens.h"

#include <stdlib.h>

enum { ROWS_MAX = 1024, ROWS_BYTES_MAX = 1 << 20 }; /* of a store: a few times what is caught up with at once */

/* ---- of a write ---- */

qr_rc qr_made_words_init(struct made_words *words, size_t room, qr_err *err)
{
    *words = (struct made_words){.chunks = qr_alloc_array(QR_MAX(room, 1u), sizeof *words->chunks)};
    return words->chunks ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the words of chunks");
}

void qr_made_words_done(struct made_words *words)
{
    qr_free(words->chunks);
    qr_buf_done(&words->text);
}

static qr_rc add_word(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    struct qr_buf *out = arg;
    char *room = qr_buf_reserve(out, token->text.len + 1);
    if (room) {
        room[0] = qr_token_is_same_place(token) ? INDEX_OTHER_WORD : INDEX_NEXT_WORD;
        memcpy(room + 1, token->text.ptr, token->text.len);
        qr_buf_grown(out, token->text.len + 1);
    }
    return QR_OK;
}

static qr_rc add_chunk(struct made_words *words, struct qr_tokenizer *tokenizer, const struct qr_chunk *chunk,
                       qr_err *err)
{
    const qr_str columns[MADE_COLUMNS] = {chunk->title, chunk->heading, chunk->text};
    struct made_chunk *made = &words->chunks[words->count++];
    made->offset = words->text.len;
    for (size_t i = 0; i < MADE_COLUMNS; i++) {
        const size_t start = words->text.len;
        qr_buf_add_char(&words->text, INDEX_WORDS_SIGN);
        QR_TRY(qr_tokenize(tokenizer, columns[i], QR_TOKENS_OF_DOCUMENT, QR_BIT(made->language), add_word, &words->text,
                           err));
        QR_TRY(qr_buf_check(&words->text, err));
        made->lens[i] = words->text.len - start;
    }
    return QR_OK;
}

/* As qr_index_common_language and qr_index_chunk_language say, looking at each chunk once. */
static void find_languages(struct made_chunk *made, const struct qr_chunk *chunks, size_t count)
{
    enum qr_language common = QR_LANGUAGE_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        made[i].language = qr_language_detect(chunks[i].text);
        common = common != QR_LANGUAGE_UNKNOWN ? common : made[i].language;
    }
    if (common == QR_LANGUAGE_UNKNOWN && count) {
        common = qr_language_detect(chunks[0].title);
    }
    for (size_t i = 0; i < count; i++) {
        made[i].language = made[i].language != QR_LANGUAGE_UNKNOWN ? made[i].language : common;
    }
}

qr_rc qr_made_words_add(struct made_words *words, struct qr_tokenizer *tokenizer, const struct qr_chunk *chunks,
                        size_t count, qr_err *err)
{
    find_languages(words->chunks + words->count, chunks, count);
    for (size_t i = 0; i < count; i++) {
        QR_TRY(add_chunk(words, tokenizer, &chunks[i], err));
    }
    return QR_OK;
}

/* ---- of rows ---- */

void qr_made_rows_done(struct made_rows *made)
{
    qr_free(made->rows);
    qr_buf_done(&made->text);
}

static void cut_to(struct made_rows *made, size_t count)
{
    if (count < made->count) {
        made->text.len = made->rows[count].offset;
        made->count = count;
    }
}

void qr_made_rows_put(struct made_rows *made, int64_t id, const struct made_words *words, size_t at)
{
    const struct made_chunk *chunk = &words->chunks[at];
    const size_t len = chunk->lens[0] + chunk->lens[1] + chunk->lens[2];
    size_t before = made->count;
    while (before > 0 && made->rows[before - 1].id >= id) {
        before--;
    }
    cut_to(made, before); /* M1 */
    if (!made->rows && !(made->rows = qr_alloc_array(ROWS_MAX, sizeof *made->rows))) {
        return;
    }
    char *room =
        made->count < ROWS_MAX && made->text.len + len <= ROWS_BYTES_MAX ? qr_buf_reserve(&made->text, len) : NULL;
    if (!room) {
        made->text.failed = QR_CODE_NONE; /* nothing of it is incomplete */
        return;
    }
    struct made_chunk *row = &made->rows[made->count++];
    *row = *chunk;
    row->id = id;
    row->offset = made->text.len;
    memcpy(room, words->text.data + chunk->offset, len);
    qr_buf_grown(&made->text, len);
}

void qr_made_rows_forget(struct made_rows *made, int64_t upto_id)
{
    size_t gone = 0;
    while (gone < made->count && made->rows[gone].id <= upto_id) {
        gone++;
    }
    if (gone == 0) {
        return;
    }
    const size_t bytes = gone < made->count ? made->rows[gone].offset : made->text.len;
    made->count -= gone;
    made->text.len -= bytes;
    memmove(made->text.data, made->text.data + bytes, made->text.len);
    memmove(made->rows, made->rows + gone, made->count * sizeof *made->rows);
    for (size_t i = 0; i < made->count; i++) {
        made->rows[i].offset -= bytes;
    }
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t left = ((const struct made_chunk *)a)->id, right = ((const struct made_chunk *)b)->id;
    return (left > right) - (left < right);
}

const struct made_chunk *qr_made_rows_find(const struct made_rows *made, int64_t id)
{
    const struct made_chunk wanted = {.id = id};
    return made->count ? bsearch(&wanted, made->rows, made->count, sizeof wanted, compare_ids) : NULL;
}
