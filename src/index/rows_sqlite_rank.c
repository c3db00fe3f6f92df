/* Searching for any of some words, by reading the rows of each word once and scoring them here (index/bm25.h). FTS5's bm25()
 * gives the same answer, but goes through the rows of each word twice, and looks the length of every row up in a table. */
#include "index/rows_sqlite_rank.h"

#include "base/arena.h"
#include "base/mem.h"
#include "index/bm25.h"
#include "index/words.h"

/* Those of the schema: title, heading, text. */
static const double weights[] = {4.0, 2.0, 1.0};

/* The rows of one word. */
struct list {
    struct bm25_posting *postings;
    size_t count, capacity;
};

static void list_done(struct list *list)
{
    qr_free(list->postings);
}

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the rows of a word");
}

/* ---- the rows of a word ---- */

static bool add_posting(void *arg, int phrase QR_UNUSED, int64_t row_id, double frequency)
{
    enum { POSTINGS_MIN = 256 };
    struct list *list = arg;
    if (list->count == list->capacity) {
        const size_t capacity = QR_MAX((size_t)POSTINGS_MIN, list->capacity * 2);
        struct bm25_posting *postings = qr_resize(list->postings, capacity * sizeof *postings);
        if (!postings) {
            return false;
        }
        list->postings = postings;
        list->capacity = capacity;
    }
    list->postings[list->count++] = (struct bm25_posting){.id = row_id, .frequency = (float)frequency};
    return true;
}

static qr_rc read_postings(struct qr_tx *tx, qr_str word, struct list *list, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf match = {0};
    const struct qr_postings postings = {
        .weights = weights, .weight_count = QR_COUNT(weights), .fn = add_posting, .arg = list};
    qr_words_write(&match, word, QR_WORDS_FTS5);
    QR_TRY(qr_buf_check(&match, err));
    list->count = 0;
    return qr_tx_postings(tx, "SELECT postings(chunk_fts) FROM chunk_fts WHERE chunk_fts MATCH ?1 LIMIT 1",
                          QR_VALS(qr_val_text(qr_buf_str(&match))), &postings, err);
}

/* ---- how long they are ---- */

/* FTS5 keeps the number of words of each column of a row. */
static qr_rc read_page(struct qr_tx *tx, int64_t number, struct lengths_page *page, qr_err *err)
{
    const int64_t first = number * LENGTHS_A_PAGE;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT id, sz FROM chunk_fts_docsize WHERE id >= ?1 AND id < ?2",
                       QR_VALS(qr_val_i64(first), qr_val_i64(first + LENGTHS_A_PAGE)), err));
    *page = (struct lengths_page){0};
    while (qr_rows_next(&rows)) {
        qr_str columns = qr_rows_str(&rows, 1);
        uint32_t *length = &page->of[qr_rows_i64(&rows, 0) - first];
        for (size_t i = 0; i < QR_COUNT(weights); i++) {
            *length += (uint32_t)qr_rows_sqlite_take_number(&columns);
        }
    }
    return qr_rows_end(&rows, err);
}

static qr_rc find_lengths(struct qr_tx *tx, struct row_lengths *lengths, struct list *list, qr_err *err)
{
    struct lengths_page page = {0};
    int64_t number = -1;
    for (size_t i = 0; i < list->count; i++) {
        struct bm25_posting *posting = &list->postings[i];
        const size_t at = (size_t)(posting->id % LENGTHS_A_PAGE);
        const bool is_next = posting->id / LENGTHS_A_PAGE != number;
        if (is_next) {
            number = posting->id / LENGTHS_A_PAGE;
        }
        if ((is_next && !qr_row_lengths_find(lengths, number, &page)) || page.of[at] == 0) {
            QR_TRY(read_page(tx, number, &page, err));
            qr_row_lengths_put(lengths, number, &page);
        }
        if (page.of[at] == 0) {
            return qr_fail(err, QR_CODE_DATA_CORRUPT, "the text search has a row whose length it does not know");
        }
        posting->length = page.of[at];
    }
    return QR_OK;
}

/* ---- the words ---- */

/* Adds the word's rows; *ret_left_out: it was one to leave out. */
static qr_rc add_word(struct qr_tx *tx, const struct rows_rank *rank, qr_str word, struct list *list, struct bm25 *bm25,
                      bool *ret_left_out, qr_err *err)
{
    int64_t count = 0;
    *ret_left_out = rank->leaves_out && qr_word_counts_find(rank->counts, &rank->state, word, &count) &&
                    qr_word_is_everywhere(&rank->state, count);
    if (*ret_left_out) {
        return QR_OK;
    }
    QR_TRY(read_postings(tx, word, list, err));
    qr_word_counts_put(rank->counts, &rank->state, word, (int64_t)list->count);
    *ret_left_out = rank->leaves_out && qr_word_is_everywhere(&rank->state, (int64_t)list->count);
    if (*ret_left_out) {
        return QR_OK;
    }
    QR_TRY(find_lengths(tx, rank->lengths, list, err));
    return qr_bm25_add_word(bm25, list->postings, list->count) ? QR_OK : out_of_memory(err);
}

/* ---- the best rows ---- */

static qr_rc find_hit(struct qr_tx *tx, const struct bm25_row *row, bool *ret_found, struct qr_index_hit *ret_hit,
                      qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT item_id, generation, ordinal FROM chunk_row WHERE id = ?1",
                       QR_VALS(qr_val_i64(row->id)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        *ret_hit = qr_index_rows_hit(&rows);
        ret_hit->score = row->score;
    }
    return qr_rows_end(&rows, err);
}

static qr_rc take_hits(struct qr_tx *tx, struct bm25 *bm25, struct hits *hits, qr_err *err)
{
    struct bm25_row row;
    qr_bm25_order(bm25);
    while (!qr_hits_is_full(hits) && qr_bm25_take_best(bm25, &row)) {
        struct qr_index_hit hit;
        bool found;
        QR_TRY(find_hit(tx, &row, &found, &hit, err));
        if (found && qr_hits_may_show(hits, hit.item_id, hit.generation)) {
            qr_hits_append(hits, &hit);
        }
    }
    return QR_OK;
}

qr_rc qr_rows_sqlite_rank(struct qr_tx *tx, const struct rows_rank *rank, struct hits *hits, size_t *ret_left_out,
                          qr_err *err)
{
    QR_CLEANUP(list_done) struct list list = {0};
    QR_CLEANUP(qr_bm25_done) struct bm25 bm25;
    qr_bm25_init(&bm25, rank->state.rows, rank->places);
    *ret_left_out = 0;
    for (size_t i = 0; i < rank->word_count; i++) {
        bool is_left_out;
        QR_TRY(add_word(tx, rank, rank->words[i], &list, &bm25, &is_left_out, err));
        *ret_left_out += is_left_out;
    }
    return take_hits(tx, &bm25, hits, err);
}
