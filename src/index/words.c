/* Takes the words out of a typed query. The tokenizer of the database folds and splits them further. */
#include "index/words.h"

static bool is_ascii_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The length of the character that the text begins with where it belongs to a word; 0 = it parts words. */
static size_t word_char_len(qr_str text)
{
    if ((unsigned char)text.ptr[0] < 0x80) {
        return is_ascii_word_char(text.ptr[0]) ? 1 : 0;
    }
    return qr_utf8_char_len(text);
}

static qr_str rest_of(qr_str text, size_t from)
{
    return (qr_str){text.ptr + from, text.len - from};
}

/* Takes the next word from *rest; empty when there is none left. */
static qr_str next_word(qr_str *rest)
{
    while (rest->len && word_char_len(*rest) == 0) {
        *rest = rest_of(*rest, 1);
    }
    qr_str word = {rest->ptr, 0};
    size_t len;
    while (rest->len && (len = word_char_len(*rest)) > 0) {
        word.len += len;
        *rest = rest_of(*rest, len);
    }
    return word;
}

static bool is_known(const qr_str *words, size_t count, qr_str word)
{
    for (size_t i = 0; i < count; i++) {
        if (qr_str_equal(words[i], word)) {
            return true;
        }
    }
    return false;
}

static void build(struct qr_buf *out, qr_str typed, char quote, const char *operator)
{
    qr_str words[QR_WORDS_MAX];
    size_t count = 0;
    while (typed.len && count < QR_WORDS_MAX) {
        const qr_str word = qr_utf8_prefix(next_word(&typed), QR_WORD_BYTES_MAX);
        if (word.len == 0 || is_known(words, count, word)) {
            continue;
        }
        qr_buf_add_text(out, count ? operator: "");
        qr_buf_add_char(out, quote);
        qr_buf_add(out, word);
        qr_buf_add_char(out, quote);
        words[count++] = word;
    }
}

void qr_words_for_fts5(struct qr_buf *out, qr_str typed)
{
    build(out, typed, '"', " OR ");
}

void qr_words_for_tsquery(struct qr_buf *out, qr_str typed)
{
    build(out, typed, '\'', " | ");
}
