/* What a person typed, as a query of the database's text search.
 *
 * Only tokens of text/tokens.h reach the query, each in quotes: they hold no quote, white space, NUL or broken UTF-8. So no
 * syntax of the database gets through. */
#pragma once

#include "base/buf.h"
#include "index/index.h"
#include "text/tokens.h"

/* Enough for a pasted paragraph; each further word makes a query slower and adds little. */
enum { QR_WORDS_MAX = 64 };

/* What stands between the forms of a word; index/tokenizer.h takes them apart. */
#define QR_WORDS_OTHER_FORM '|'

enum qr_words_dialect {
    QR_WORDS_FTS5,    /* "one" OR "two|other form": index/tokenizer.h takes a string apart again */
    QR_WORDS_TSQUERY, /* 'one' | 'two' | 'other form' */
};

/* Whether a word, with its other forms, may be left out. */
typedef bool qr_word_fn(void *arg, qr_str word);

/* `languages` are those of the base's documents. */
struct qr_words_options {
    enum qr_words_dialect dialect;
    qr_languages languages;
    struct qr_tokenizer *tokenizer;
    bool is_prefix;         /* words that begin so fit too, but for very short ones */
    char weight;            /* PostgreSQL: only where the word has this weight; 0 = any */
    qr_word_fn *leaves_out; /* of a query; NULL = none is left out */
    void *arg;
};

/* Appends a query for texts with any of the words, each once; nothing where there is no word. */
qr_rc qr_words_any(struct qr_buf *out, qr_str typed, const struct qr_words_options *options, qr_err *err);
/* Appends one for texts with all the words one behind the other. What is made of parts is looked for by its parts. */
qr_rc qr_words_phrase(struct qr_buf *out, qr_str typed, const struct qr_words_options *options, qr_err *err);

/* Appends one for a whole query: what must occur, what may, and what must not; at most QR_WORDS_MAX words. Nothing where
 * there is no word that may occur. Sets what the query says of itself. */
qr_rc qr_words_query(struct qr_buf *out, struct qr_text_query *query, const struct qr_words_options *options,
                     qr_err *err);
/* Only what every hit must fulfil, and what none may; each is empty where there is nothing. */
qr_rc qr_words_conditions(struct qr_buf *out_required, struct qr_buf *out_excluded, const struct qr_text_query *query,
                          const struct qr_words_options *options, qr_err *err);
/* The words that a query looks for, each once with its other forms: "run|running". In the arena. Sets what the query says of
 * itself. */
qr_rc qr_words_list(struct qr_text_query *query, const struct qr_words_options *options, struct qr_arena *arena,
                    qr_str ret_words[static QR_WORDS_MAX], size_t *ret_count, qr_err *err);

/* Whether any of its words is enough, and no other condition is there: then the words of the list are all of it. */
bool qr_words_are_alternatives(const struct qr_text_query *query);

/* Appends one word with its other forms. */
void qr_words_write(struct qr_buf *out, qr_str word, enum qr_words_dialect dialect);

/* Appends a token as PostgreSQL writes it in a tsvector or tsquery: in quotes. */
void qr_words_lexeme(struct qr_buf *out, qr_str token);
