/* Any bytes, tokenized as a document and as a query in the languages that the first bytes name: tokens are in order, inside the
 * text and of limited length, and each word of the query is a word of the document. Then what is built on characters:
 * graphemes, sentences, words and folding take every byte and end. */
#include "base/map.h"
#include "text/tokens.h"
#include "text/unicode.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

struct seen {
    qr_str text;
    size_t last_start;
    struct qr_map words;
    bool is_query, is_found, has_any;
};

static bool is_boundary(qr_str text, size_t at)
{
    return at == 0 || at == text.len || qr_utf8_char_len((qr_str){text.ptr + at, text.len - at}) > 0 ||
           qr_rune_at((qr_str){text.ptr + at, text.len - at}).code == 0xFFFD;
}

static qr_rc look_at(void *arg, const struct qr_token *token, qr_err *err)
{
    (void)err;
    struct seen *seen = arg;
    require(token->text.len > 0 && token->text.len <= QR_TOKEN_BYTES_MAX && qr_utf8_valid(token->text));
    require(!memchr(token->text.ptr, ' ', token->text.len) && !memchr(token->text.ptr, '|', token->text.len));
    require(!memchr(token->text.ptr, '"', token->text.len) && !memchr(token->text.ptr, '\0', token->text.len));
    require(token->start < token->end && token->end <= seen->text.len && token->start >= seen->last_start);
    require(is_boundary(seen->text, token->start) && is_boundary(seen->text, token->end));
    seen->last_start = token->start;
    if (!seen->is_query) {
        require(qr_map_put(&seen->words, token->text, seen));
        return QR_OK;
    }
    require(token->kind == QR_TOKEN_FORM || !seen->has_any || seen->is_found);
    require(token->kind != QR_TOKEN_FORM || seen->has_any);
    seen->is_found = (token->kind == QR_TOKEN_FORM && seen->is_found) || qr_map_find(&seen->words, token->text);
    seen->has_any = true;
    return QR_OK;
}

static void check_tokens(qr_str text, enum qr_language language, qr_languages others)
{
    static struct qr_tokenizer *tokenizer; /* making the stemmers takes longer than most texts */
    qr_err err = {0};
    struct seen seen = {.text = text};
    require(tokenizer || qr_tokenizer_create(&tokenizer, &err) == QR_OK);
    qr_map_init(&seen.words, 1);
    require(qr_tokenize(tokenizer, text, QR_TOKENS_OF_DOCUMENT, QR_BIT(language), look_at, &seen, &err) == QR_OK);
    seen.is_query = true;
    seen.last_start = 0;
    require(qr_tokenize(tokenizer, text, QR_TOKENS_OF_QUERY, QR_BIT(language) | others, look_at, &seen, &err) == QR_OK);
    require(!seen.has_any || seen.is_found);
    qr_map_done(&seen.words);
}

static void check_characters(qr_str text)
{
    for (qr_str left = text; left.len;) {
        const size_t len = qr_grapheme_len(left);
        require(len > 0 && len <= left.len);
        left = (qr_str){left.ptr + len, left.len - len};
    }
    for (qr_str left = text; left.len;) {
        const size_t len = qr_sentence_len(left);
        require(len > 0 && len <= left.len);
        left = (qr_str){left.ptr + len, left.len - len};
    }
    for (qr_str left = text; left.len;) {
        const size_t before = left.len;
        size_t start;
        const qr_str word = qr_word_next(&left, &start);
        require(word.len > 0 ? start + word.len + left.len == before : left.len == 0);
    }
    struct qr_buf folded;
    qr_buf_init(&folded, 0);
    qr_fold(&folded, text);
    require(folded.failed == QR_CODE_NONE && qr_utf8_valid(qr_buf_str(&folded)));
    qr_buf_done(&folded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5) {
        return 0;
    }
    const qr_str text = {(const char *)data + 5, size - 5};
    qr_languages others;
    memcpy(&others, data + 1, sizeof others);
    const enum qr_language detected = qr_language_detect(text);
    check_tokens(text, data[0] & 1 ? detected : (enum qr_language)(data[0] / 2 % QR_LANGUAGE_COUNT), others);
    check_characters(text);
    return 0;
}
