/* The tokenizer of text/tokens.h as FTS5 sees it. Private to src/index/.
 *
 * FTS5 gives a tokenizer nothing but the text. To forget a text it makes its words again, so that everything they depend on
 * has to be in it: a text begins with the language it was taken to have when it was written, and that is stored with its row
 * and never changes (the view chunk_words puts it there). A query is tokenized before, by words.h, because what it asks for
 * depends on the base: here it is only taken apart again. */
#pragma once

#include "db/db.h"
#include "index/index.h"
#include "text/language.h"

extern const struct qr_db_tokenizer qr_index_tokenizer;

/* "\2en\2" stands before a text, in SQL: char(2) || language || char(2) || text. */
#define INDEX_LANGUAGE_SIGN '\2'

/* What stands before each word of a query: the next place, or another word for the same. No word contains them. */
#define INDEX_NEXT_WORD  ' '
#define INDEX_OTHER_WORD '|'

/* "\3" stands before the words of a text that were made before (made.h): they look like those of a query. FTS5 forgets them
 * by the text itself, which gives the same ones. */
#define INDEX_WORDS_SIGN '\3'

/* What is taken for the language of chunks that do not show their own: that of the first that does. */
enum qr_language qr_index_common_language(const struct qr_chunk *chunks, size_t count);
enum qr_language qr_index_chunk_language(const struct qr_chunk *chunk, enum qr_language common);
