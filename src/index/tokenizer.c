/* Between FTS5 and the tokenizer; and what language a chunk is in. */
#include "index/tokenizer.h"

#include "text/tokens.h"

static qr_rc create(void **ret_self, qr_err *err)
{
    struct qr_tokenizer *tokenizer;
    QR_TRY(qr_tokenizer_create(&tokenizer, err));
    *ret_self = tokenizer;
    return QR_OK;
}

static void release(void *self)
{
    qr_tokenizer_free(self);
}

typedef qr_rc word_fn(void *arg, qr_str word, size_t start, size_t end, bool is_same_place);

struct receiver {
    word_fn *fn;
    void *arg;
    size_t offset; /* of the tokenized text in the one given */
};

static qr_rc pass_on(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    const struct receiver *receiver = arg;
    return receiver->fn(receiver->arg, token->text, receiver->offset + token->start, receiver->offset + token->end,
                        qr_token_is_same_place(token));
}

/* Takes the language from the beginning of the text. */
static enum qr_language take_language(qr_str *text)
{
    if (text->len == 0 || text->ptr[0] != INDEX_LANGUAGE_SIGN) {
        return QR_LANGUAGE_UNKNOWN;
    }
    qr_str rest = {text->ptr + 1, text->len - 1};
    const qr_str code = qr_str_split(&rest, INDEX_LANGUAGE_SIGN);
    *text = rest;
    return qr_language_find(code);
}

static qr_rc split_query(qr_str query, word_fn *fn, void *arg)
{
    bool is_same_place = false;
    for (size_t start = 0; start < query.len;) {
        size_t end = start;
        while (end < query.len && query.ptr[end] != INDEX_NEXT_WORD && query.ptr[end] != INDEX_OTHER_WORD) {
            end++;
        }
        if (end > start) {
            QR_TRY(fn(arg, (qr_str){query.ptr + start, end - start}, start, end, is_same_place));
        }
        is_same_place = end < query.len && query.ptr[end] == INDEX_OTHER_WORD;
        start = end + 1;
    }
    return QR_OK;
}

static qr_rc tokenize(void *self, qr_str text, bool is_query, word_fn *fn, void *arg, qr_err *err)
{
    if (is_query) {
        return split_query(text, fn, arg);
    }
    if (text.len && text.ptr[0] == INDEX_WORDS_SIGN) {
        return split_query((qr_str){text.ptr + 1, text.len - 1}, fn, arg);
    }
    qr_str body = text;
    const enum qr_language language = take_language(&body);
    struct receiver receiver = {.fn = fn, .arg = arg, .offset = text.len - body.len};
    return qr_tokenize(self, body, QR_TOKENS_OF_DOCUMENT, QR_BIT(language), pass_on, &receiver, err);
}

const struct qr_db_tokenizer qr_index_tokenizer = {.create = create, .free = release, .tokenize = tokenize};

/* ---- languages of chunks ---- */

enum qr_language qr_index_common_language(const struct qr_chunk *chunks, size_t count)
{
    enum qr_language language = QR_LANGUAGE_UNKNOWN;
    for (size_t i = 0; i < count && language == QR_LANGUAGE_UNKNOWN; i++) {
        language = qr_language_detect(chunks[i].text);
    }
    return language == QR_LANGUAGE_UNKNOWN && count ? qr_language_detect(chunks[0].title) : language;
}

enum qr_language qr_index_chunk_language(const struct qr_chunk *chunk, enum qr_language common)
{
    const enum qr_language language = qr_language_detect(chunk->text);
    return language != QR_LANGUAGE_UNKNOWN ? language : common;
}
