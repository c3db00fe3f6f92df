/* The words of chunks, made by the thread that calls for a write: making them takes a third of what FTS5 takes to store them,
 * and only one thread writes to a store at a time. Private to src/index/. */
#pragma once

#include "base/buf.h"
#include "index/index.h"

enum { MADE_COLUMNS = 3 }; /* title, heading, text */

/* Where the words of a chunk stand in a buffer, column after column, as the tokenizer of FTS5 takes them (tokenizer.h). */
struct made_chunk {
    int64_t id; /* of its row */
    enum qr_language language;
    size_t offset, lens[MADE_COLUMNS];
};

/* Those of one write. */
struct made_words {
    struct qr_buf text;
    struct made_chunk *chunks;
    size_t count;
};
/* With room for so many chunks. */
qr_rc qr_made_words_init(struct made_words *words, size_t room, qr_err *err);
void qr_made_words_done(struct made_words *words);
/* Adds those of a document, or of a part of one. */
qr_rc qr_made_words_add(struct made_words *words, struct qr_tokenizer *tokenizer, const struct qr_chunk *chunks,
                        size_t count, qr_err *err);

/* Those of rows that FTS5 does not have yet; limited, and some may be missing: then they are made again. Used in write
 * transactions of the store only.
 *
 * M1  Rows are in the order of their ids, and what is here of an id is of the last row that was given it: a transaction that
 *     is rolled back leaves ids that the next one gives again, and each row that is put in takes away those from its id on. */
struct made_rows {
    struct qr_buf text;
    struct made_chunk *rows;
    size_t count;
};
void qr_made_rows_done(struct made_rows *made);
void qr_made_rows_put(struct made_rows *made, int64_t id, const struct made_words *words, size_t at);
void qr_made_rows_forget(struct made_rows *made, int64_t upto_id);
/* NULL = must be made. */
const struct made_chunk *qr_made_rows_find(const struct made_rows *made, int64_t id);
