/* Searching the SQLite file of a base: by words with FTS5, by vectors one by one.
 *
 * F1  bm25() gives a word that occurs in more than half of the rows a weight of nearly nothing (1e-6), and yet scores every
 *     row that has it. Such words are left out of a query where others remain, as long as those find enough: the order is the
 *     same without them. */
#include "index/rows_sqlite_rank.h"
#include "index/vector_arrays.h"
#include "index/words.h"

/* ---- how much there is ---- */

struct store_state {
    struct word_state words;
    int64_t places;
    qr_languages languages;
};

/* A number as SQLite and FTS5 write it: seven bits a byte, the largest first, nine bytes at most. */
int64_t qr_rows_sqlite_take_number(qr_str *bytes)
{
    enum { BYTES_MAX = 9 };
    uint64_t number = 0;
    for (size_t i = 0; i < BYTES_MAX && bytes->len; i++) {
        const unsigned char byte = (unsigned char)bytes->ptr[0];
        *bytes = (qr_str){bytes->ptr + 1, bytes->len - 1};
        if (i == BYTES_MAX - 1) {
            return (int64_t)(number << 8 | byte);
        }
        number = number << 7 | (byte & 0x7f);
        if (byte < 0x80) {
            break;
        }
    }
    return (int64_t)number;
}

/* FTS5 keeps the number of its rows, and of the words of each column, in the row 1 of its data. */
static qr_rc load_state(struct qr_tx *tx, struct store_state *ret_state, qr_err *err)
{
    enum { COLUMNS = 3 };
    *ret_state = (struct store_state){0};
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT s.fts_upto, s.languages, d.block FROM store s LEFT JOIN chunk_fts_data d ON d.id = 1 "
                       "WHERE s.id = 1",
                       QR_NO_VALS, err));
    if (qr_rows_next(&rows)) {
        qr_str totals = qr_rows_str(&rows, 2);
        ret_state->words =
            (struct word_state){.last_id = qr_rows_i64(&rows, 0), .rows = qr_rows_sqlite_take_number(&totals)};
        ret_state->languages = (qr_languages)qr_rows_i64(&rows, 1);
        for (int i = 0; i < COLUMNS; i++) {
            ret_state->places += qr_rows_sqlite_take_number(&totals);
        }
    }
    return qr_rows_end(&rows, err);
}

static qr_rc count_word(struct qr_tx *tx, struct word_counts *counts, const struct word_state *state, qr_str word,
                        int64_t *ret_count, qr_err *err)
{
    if (counts && qr_word_counts_find(counts, state, word, ret_count)) {
        return QR_OK;
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf match = {0};
    qr_words_write(&match, word, QR_WORDS_FTS5);
    QR_TRY(qr_buf_check(&match, err));
    *ret_count = 0;
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM chunk_fts WHERE chunk_fts MATCH ?1",
                         QR_VALS(qr_val_text(qr_buf_str(&match))), NULL, ret_count, err));
    if (counts) {
        qr_word_counts_put(counts, state, word, *ret_count);
    }
    return QR_OK;
}

qr_rc qr_rows_sqlite_count_words(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_counts *request = arg;
    struct store_state state;
    QR_TRY(load_state(tx, &state, err));
    for (size_t i = 0; i < request->count; i++) {
        QR_TRY(count_word(tx, request->counts, &state.words, request->words[i], &request->ret_counts[i], err));
    }
    *request->ret_totals = (struct qr_index_totals){.rows = state.words.rows, .places = state.places};
    return QR_OK;
}

/* ---- by words ---- */

/* FTS5 gives the matches in the order of their rank, smaller is better. */
static qr_rc search_words(struct qr_tx *tx, qr_str match, struct hits *hits, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT c.item_id, c.generation, c.ordinal, f.rank FROM chunk_fts f "
                       "CROSS JOIN chunk_row c ON c.id = f.rowid WHERE chunk_fts MATCH ?1 ORDER BY f.rank",
                       QR_VALS(qr_val_text(match)), err));
    while (!qr_hits_is_full(hits) && qr_rows_next(&rows)) {
        struct qr_index_hit hit = qr_index_rows_hit(&rows);
        hit.score = -qr_rows_f64(&rows, 3);
        if (qr_hits_may_show(hits, hit.item_id, hit.generation)) {
            qr_hits_append(hits, &hit);
        }
    }
    return qr_rows_end(&rows, err);
}

/* Who asks whether a word may be left out (F1). */
struct judging {
    struct qr_tx *tx;
    struct word_counts *counts;
    const struct word_state *state;
    qr_rc rc;
    qr_err *err;
};

static bool is_everywhere(void *arg, qr_str word)
{
    struct judging *judging = arg;
    int64_t count = 0;
    if (judging->rc == QR_OK) {
        judging->rc = count_word(judging->tx, judging->counts, judging->state, word, &count, judging->err);
    }
    return judging->rc == QR_OK && qr_word_is_everywhere(judging->state, count);
}

/* Any of the words, and nothing but words: mostly. */
static qr_rc search_any(struct qr_tx *tx, const struct rows_search *request, const struct store_state *state,
                        bool leaves_out, struct hits *hits, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_str words[QR_WORDS_MAX];
    size_t left_out;
    const struct qr_words_options options = {
        .dialect = QR_WORDS_FTS5, .languages = state->languages, .tokenizer = request->query->tokenizer};
    struct rows_rank rank = {.words = words,
                             .leaves_out = leaves_out,
                             .state = state->words,
                             .places = state->places,
                             .counts = request->counts,
                             .lengths = request->lengths};
    qr_arena_init(&arena, 0);
    QR_TRY(qr_words_list(request->query, &options, &arena, words, &rank.word_count, err));
    qr_hits_init(hits, request->ret_hits, request->limit, request->filter, request->filter_arg);
    QR_TRY(qr_rows_sqlite_rank(tx, &rank, hits, &left_out, err));
    request->query->left_out = left_out > 0;
    return QR_OK;
}

/* With `leaves_out`, the words that occur nearly everywhere are not looked for. */
static qr_rc search_query(struct qr_tx *tx, const struct rows_search *request, const struct store_state *state,
                          bool leaves_out, struct hits *hits, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf match = {0};
    struct judging judging = {.tx = tx, .counts = request->counts, .state = &state->words, .err = err};
    const struct qr_words_options words = {.dialect = QR_WORDS_FTS5,
                                           .languages = state->languages,
                                           .tokenizer = request->query->tokenizer,
                                           .leaves_out = leaves_out ? is_everywhere : NULL,
                                           .arg = &judging};
    request->query->left_out = false;
    QR_TRY(qr_words_query(&match, request->query, &words, err));
    QR_TRY(judging.rc);
    qr_hits_init(hits, request->ret_hits, request->limit, request->filter, request->filter_arg);
    return match.len ? search_words(tx, qr_buf_str(&match), hits, err) : QR_OK;
}

typedef qr_rc search_fn(struct qr_tx *tx, const struct rows_search *request, const struct store_state *state,
                        bool leaves_out, struct hits *hits, qr_err *err);

qr_rc qr_rows_sqlite_search_text(struct qr_tx *tx, void *arg, qr_err *err)
{
    enum { ROWS_MIN = 500 }; /* of fewer there is nothing to be saved */
    struct rows_search *request = arg;
    struct store_state state;
    struct hits hits;
    QR_TRY(load_state(tx, &state, err));
    search_fn *search = qr_words_are_alternatives(request->query) ? search_any : search_query;
    const bool may_leave_out = state.words.rows >= ROWS_MIN && !request->query->is_relaxed;
    QR_TRY(search(tx, request, &state, may_leave_out, &hits, err));
    if (request->query->left_out && !qr_hits_is_full(&hits)) {
        QR_TRY(search(tx, request, &state, false, &hits, err));
    }
    request->ret_count = hits.count;
    return QR_OK;
}

/* ---- hits of others ---- */

static qr_rc hit_matches(struct qr_tx *tx, const struct qr_index_hit *hit, const struct qr_buf *match, bool *ret_does,
                         qr_err *err)
{
    int64_t one;
    return qr_tx_get_i64(tx,
                         "SELECT 1 FROM chunk_row c CROSS JOIN chunk_fts f ON f.rowid = c.id "
                         "WHERE c.item_id = ?1 AND c.generation = ?2 AND c.ordinal = ?3 AND chunk_fts MATCH ?4",
                         QR_VALS(rows_id_val(&hit->item_id), qr_val_i64(hit->generation), qr_val_i64(hit->ordinal),
                                 qr_val_text(qr_buf_str(match))),
                         ret_does, &one, err);
}

qr_rc qr_rows_sqlite_fits(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_fits *request = arg;
    QR_CLEANUP(qr_buf_done) struct qr_buf required = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf excluded = {0};
    struct store_state state;
    QR_TRY(load_state(tx, &state, err));
    const struct qr_words_options words = {
        .dialect = QR_WORDS_FTS5, .languages = state.languages, .tokenizer = request->query->tokenizer};
    QR_TRY(qr_words_conditions(&required, &excluded, request->query, &words, err));
    for (size_t i = 0; i < request->count; i++) {
        bool has_required = true, has_excluded = false;
        if (required.len) {
            QR_TRY(hit_matches(tx, &request->hits[i], &required, &has_required, err));
        }
        if (excluded.len && has_required) {
            QR_TRY(hit_matches(tx, &request->hits[i], &excluded, &has_excluded, err));
        }
        request->ret_fits[i] = has_required && !has_excluded;
    }
    return QR_OK;
}

/* ---- by vectors ---- */

static qr_rc query_vectors(struct qr_tx *tx, const struct qr_vector_space *space, int64_t offset, struct qr_rows *rows,
                           qr_err *err)
{
    return qr_tx_query(tx, rows,
                       "SELECT c.item_id, c.generation, c.ordinal, v.vector FROM chunk_vector v "
                       "CROSS JOIN chunk_row c ON c.id = v.id - ?2 WHERE v.id >= ?2 AND v.id < ?2 + (1 << 48) "
                       "AND v.dimension = ?1",
                       QR_VALS(qr_val_i64(space->dimension), qr_val_i64(offset)), err);
}

qr_rc qr_rows_sqlite_search_vector(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_search *request = arg;
    struct hits hits;
    qr_hits_init(&hits, request->ret_hits, request->limit, request->filter, request->filter_arg);
    QR_CLEANUP(qr_cosine_done) struct cosine cosine = {0};
    QR_TRY(qr_cosine_init(&cosine, request->vector, request->space.dimension, err));
    int64_t offset;
    QR_TRY(qr_rows_sqlite_vector_offset(tx, request->space.model, &offset, err));
    QR_ROWS(rows);
    QR_TRY(query_vectors(tx, &request->space, offset, &rows, err));
    while (qr_rows_next(&rows)) {
        struct qr_index_hit hit = qr_index_rows_hit(&rows);
        if (qr_hits_may_show(&hits, hit.item_id, hit.generation)) {
            hit.score = qr_cosine_with(&cosine, qr_rows_str(&rows, 3));
            qr_hits_offer(&hits, &hit);
        }
    }
    QR_TRY(qr_rows_end(&rows, err));
    qr_hits_sort(&hits);
    request->ret_count = hits.count;
    return QR_OK;
}

/* ---- vectors for memory ---- */

/* Closes the rows. */
static qr_rc take_vectors(struct vector_reading *reading, struct qr_rows *rows, qr_err *err)
{
    while (!reading->is_out_of_room && qr_rows_next(rows)) {
        const struct qr_index_hit hit = qr_index_rows_hit(rows);
        reading->is_out_of_room = !qr_vector_content_add(&reading->content, &hit, qr_rows_str(rows, 3));
    }
    return qr_rows_end(rows, err);
}

static qr_rc read_item(struct qr_tx *tx, struct vector_reading *reading, qr_str item_id, int64_t offset, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(
        tx, &rows,
        "SELECT c.item_id, c.generation, c.ordinal, v.vector FROM chunk_row c "
        "CROSS JOIN chunk_vector v ON v.id = c.id + ?3 WHERE c.item_id = ?1 AND v.dimension = ?2",
        QR_VALS(qr_val_blob(item_id.ptr, item_id.len), qr_val_i64(reading->space.dimension), qr_val_i64(offset)), err));
    return take_vectors(reading, &rows, err);
}

/* One snapshot, as qr_rows_sqlite_search_vector has it. */
qr_rc qr_rows_sqlite_read_vectors(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct vector_reading *reading = arg;
    int64_t offset;
    QR_TRY(qr_rows_sqlite_vector_offset(tx, reading->space.model, &offset, err));
    if (reading->is_whole) {
        QR_ROWS(rows);
        QR_TRY(query_vectors(tx, &reading->space, offset, &rows, err));
        return take_vectors(reading, &rows, err);
    }
    size_t cursor = 0;
    qr_str item_id;
    void *value;
    while (!reading->is_out_of_room && qr_map_next(&reading->items, &cursor, &item_id, &value)) {
        QR_TRY(read_item(tx, reading, item_id, offset, err));
    }
    return QR_OK;
}
