/* The words of a text as they are searched: one tokenizer for what is indexed and for what is asked.
 *
 * Words are folded (case, accents) and stemmed. Which stemmer a document's words went through depends on its language, and a
 * query is too short to have one. So a stem carries its language (English, the commonest, is left unmarked), a document gives
 * one token a word, and a query gives the stems of every language that the base holds, as other forms of the same place.
 * The same word in the same spelling is therefore always found, whatever was taken for the language of either side, and a
 * stem of one language is never taken for a word of another.
 *
 * What is made of parts (snake_case, camelCase, e-mail, 1,234.56, 2024-05-01, a@b.org, config.yaml, IL-6, a URL) gives its
 * parts, each at a place of its own, and the whole as a token at the place of the first part. Chinese, Japanese and Korean
 * give pairs of characters, a place a character; Thai, Lao, Khmer and Myanmar threes of what people see as characters.
 * A document also has the shorter ones at the same place, a query uses them only where it has no more. No word is left out. */
#pragma once

#include "base/err.h"
#include "text/language.h"

/* Raised whenever the tokens of any text change. An index remembers the version it was made with; another one means that it
 * must be made anew. */
#define QR_TOKENIZER_VERSION 1

/* No token is longer; what is gets a beginning and a hash. */
enum { QR_TOKEN_BYTES_MAX = 64 };

enum qr_token_use { QR_TOKENS_OF_DOCUMENT, QR_TOKENS_OF_QUERY };

enum qr_token_kind {
    QR_TOKEN_NEW,  /* at the place behind the one before */
    QR_TOKEN_FORM, /* another form of the token before: whoever asks for one means the other (stems, accents) */
    QR_TOKEN_WHOLE, /* at the place of the token before, but something else: what the part before and those that follow make
                       together; or, in a document, a shorter piece of text that has no spaces */
};

struct qr_token {
    qr_str text;       /* valid during the call; valid UTF-8 without white space, quotes, NUL or `|` */
    size_t start, end; /* the bytes of the original */
    enum qr_token_kind kind;
};

static inline bool qr_token_is_same_place(const struct qr_token *token)
{
    return token->kind != QR_TOKEN_NEW;
}

/* Anything but QR_OK ends the tokenizing and is its result. */
typedef qr_rc qr_token_fn(void *arg, const struct qr_token *token, qr_err *err);

/* Stemmers and what they recently said: one for a thread at a time. */
struct qr_tokenizer;
qr_rc qr_tokenizer_create(struct qr_tokenizer **ret_tokenizer, qr_err *err);
void qr_tokenizer_free(struct qr_tokenizer *tokenizer);
static inline void qr_tokenizer_free_ptr(struct qr_tokenizer **tokenizer)
{
    qr_tokenizer_free(*tokenizer);
}

/* Gives the tokens of the text in the order of their places. `languages`: of a document the bit of its language, of a query
 * those of all documents it is to find (0 = none known; English always belongs to them). Any bytes are a text: nothing fails
 * but memory and `fn`. */
qr_rc qr_tokenize(struct qr_tokenizer *tokenizer, qr_str text, enum qr_token_use use, qr_languages languages,
                  qr_token_fn *fn, void *arg, qr_err *err);
