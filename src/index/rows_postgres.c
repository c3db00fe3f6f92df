/* The rows of all bases in tables of the main database; store/schema.c makes them (migration "index_rows").
 *
 * The row of index_store is the base's write lock: whoever changes rows of the base locks it first (X2). It also makes a
 * sync: a commit is durable together with all before it, but only one that changed something is written at all. */
#include "index/hits.h"
#include "index/rows.h"
#include "index/tokenizer.h"
#include "index/words.h"

enum {
    DROP_ROWS_MAX = 2000, /* in one transaction: a write has a deadline */
    DELETE_ITEMS_MAX = 64,
    RANKED_PAGE = 256, /* hits of the first page of a search; each further page has RANKED_GROWTH times as many */
    RANKED_GROWTH = 8, /* because each ranks all matches again */
    VECTOR_PAGE_BYTES = 1 << 20,
    WORD_PLACE_MAX = 16383, /* PostgreSQL knows no further one */
};

/* ---- the store's row ---- */

static qr_rc lock(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_store *request = arg;
    bool found;
    int64_t one;
    QR_TRY(qr_tx_get_i64(tx, "SELECT 1 FROM index_store WHERE base_id = ?1 /*pg FOR UPDATE */",
                         QR_VALS(rows_id_val(&request->base_id)), &found, &one, err));
    if (found) {
        return QR_OK;
    }
    /* an update, so that the one who comes second waits for the first, and has the lock then */
    return qr_tx_exec(tx,
                      "INSERT INTO index_store (base_id, stamp, syncs) VALUES (?1, '', 0) "
                      "ON CONFLICT (base_id) DO UPDATE SET syncs = index_store.syncs",
                      QR_VALS(rows_id_val(&request->base_id)), NULL, err);
}

static qr_rc sync(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_store *request = arg;
    return qr_tx_exec(tx,
                      "INSERT INTO index_store (base_id, stamp, syncs) VALUES (?1, '', 1) "
                      "ON CONFLICT (base_id) DO UPDATE SET syncs = index_store.syncs + 1",
                      QR_VALS(rows_id_val(&request->base_id)), NULL, err);
}

/* Words of another tokenizer are as good as none (X4). */
static qr_rc load_stamp(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_store *request = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT stamp FROM index_store WHERE base_id = ?1 AND tokenizer = ?2",
                       QR_VALS(rows_id_val(&request->base_id), qr_val_i64(QR_TOKENIZER_VERSION)), err));
    qr_index_rows_stamp(&rows, request);
    return qr_rows_end(&rows, err);
}

static qr_rc save_stamp(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_store *request = arg;
    return qr_tx_exec(tx,
                      "INSERT INTO index_store (base_id, stamp, syncs, tokenizer) VALUES (?1, ?2, 0, ?3) "
                      "ON CONFLICT (base_id) DO UPDATE SET stamp = excluded.stamp, tokenizer = excluded.tokenizer",
                      QR_VALS(rows_id_val(&request->base_id), qr_val_text(qr_str_of(request->stamp)),
                              qr_val_i64(QR_TOKENIZER_VERSION)),
                      NULL, err);
}

static qr_rc load_languages(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_store *request = arg;
    request->ret_languages = 0;
    return qr_tx_get_i64(tx, "SELECT languages FROM index_store WHERE base_id = ?1",
                         QR_VALS(rows_id_val(&request->base_id)), NULL, &request->ret_languages, err);
}

/* The stamp goes with the first rows: what is left of the store then is nobody's. */
static qr_rc drop(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_store *request = arg;
    int64_t deleted;
    QR_TRY(lock(tx, request, err));
    QR_TRY(qr_tx_exec(tx, "DELETE FROM index_store WHERE base_id = ?1", QR_VALS(rows_id_val(&request->base_id)), NULL,
                      err));
    QR_TRY(qr_tx_exec(tx,
                      "DELETE FROM index_chunk WHERE base_id = ?1 AND (item_id, generation, ordinal) IN "
                      "(SELECT item_id, generation, ordinal FROM index_chunk WHERE base_id = ?1 LIMIT ?2)",
                      QR_VALS(rows_id_val(&request->base_id), qr_val_i64(DROP_ROWS_MAX)), &deleted, err));
    request->ret_more = deleted == DROP_ROWS_MAX;
    return QR_OK;
}

/* ---- writing and removing ---- */

/* The words of a chunk as PostgreSQL writes them: 'word':place and weight. */
struct words {
    struct qr_buf *out;
    struct qr_tokenizer *tokenizer;
    qr_languages language;
    int64_t place;
    char weight;
};

static qr_rc add_word(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    struct words *words = arg;
    words->place += !qr_token_is_same_place(token);
    qr_words_lexeme(words->out, token->text);
    qr_buf_printf(words->out, ":%lld%c ", (long long)QR_MIN(words->place, WORD_PLACE_MAX), words->weight);
    return QR_OK;
}

static qr_rc add_words(struct words *words, qr_str text, char weight, qr_err *err)
{
    words->weight = weight;
    QR_TRY(qr_tokenize(words->tokenizer, text, QR_TOKENS_OF_DOCUMENT, words->language, add_word, words, err));
    words->place++; /* no phrase goes from one into the next */
    return qr_buf_check(words->out, err);
}

static qr_rc write_words(struct words *words, const struct qr_chunk *chunk, enum qr_language language, qr_err *err)
{
    qr_buf_clear(words->out);
    words->language = QR_BIT(language);
    words->place = 0;
    QR_TRY(add_words(words, chunk->title, 'A', err));
    QR_TRY(add_words(words, chunk->heading, 'B', err));
    return add_words(words, chunk->text, 'D', err);
}

static qr_rc insert_chunk(struct qr_tx *tx, const struct rows_write *request, const struct qr_chunk *chunk,
                          qr_str words, qr_err *err)
{
    return qr_tx_exec(tx,
                      "INSERT INTO index_chunk (base_id, item_id, generation, ordinal, byte_start, byte_end, "
                      "line_start, line_end, page, token_count, title, heading, text, words) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, CAST(?14 AS tsvector))",
                      QR_VALS(rows_id_val(&request->base_id), rows_id_val(&request->item_id),
                              qr_val_i64(request->generation), qr_val_i64(chunk->ordinal), qr_val_i64(chunk->start),
                              qr_val_i64(chunk->end), qr_val_i64(chunk->line_start), qr_val_i64(chunk->line_end),
                              qr_val_i64(chunk->page), qr_val_i64(chunk->token_count), qr_val_text(chunk->title),
                              qr_val_text(chunk->heading), qr_val_text(chunk->text), qr_val_text(words)),
                      NULL, err);
}

static qr_rc insert_chunks(struct qr_tx *tx, const struct rows_write *request, struct words *words,
                           qr_languages *ret_languages, qr_err *err)
{
    const enum qr_language common = qr_index_common_language(request->chunks, request->count);
    *ret_languages = 0;
    for (size_t i = 0; i < request->count; i++) {
        const enum qr_language language = qr_index_chunk_language(&request->chunks[i], common);
        *ret_languages |= QR_BIT(language);
        QR_TRY(write_words(words, &request->chunks[i], language, err));
        QR_TRY(insert_chunk(tx, request, &request->chunks[i], qr_buf_str(words->out), err));
    }
    return QR_OK;
}

static qr_rc write_chunks(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_write *request = arg;
    QR_TRY(qr_tx_exec(tx,
                      "DELETE FROM index_chunk WHERE base_id = ?1 AND item_id = ?2 AND generation = ?3 AND "
                      "ordinal >= ?4",
                      QR_VALS(rows_id_val(&request->base_id), rows_id_val(&request->item_id),
                              qr_val_i64(request->generation), qr_val_i64(request->from_ordinal)),
                      NULL, err));
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = NULL;
    QR_TRY(qr_tokenizer_create(&tokenizer, err));
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    struct words words = {.out = &text, .tokenizer = tokenizer};
    qr_languages languages;
    QR_TRY(insert_chunks(tx, request, &words, &languages, err));
    return qr_tx_exec(tx,
                      "UPDATE index_store SET languages = languages | ?2 WHERE base_id = ?1 AND languages & ?2 <> ?2",
                      QR_VALS(rows_id_val(&request->base_id), qr_val_i64(languages)), NULL, err);
}

static qr_rc write_vectors(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_vectors *request = arg;
    const int dimension = request->space.dimension;
    for (size_t i = 0; i < request->count; i++) {
        const struct qr_chunk_vector *vector = &request->vectors[i];
        int64_t changes;
        QR_TRY(qr_tx_exec(tx,
                          "INSERT INTO index_vector (base_id, model, item_id, generation, ordinal, dimension, vector) "
                          "SELECT base_id, ?7, item_id, generation, ordinal, ?5, ?6 FROM index_chunk "
                          "WHERE base_id = ?1 AND item_id = ?2 AND generation = ?3 AND ordinal = ?4 "
                          "ON CONFLICT (base_id, model, item_id, generation, ordinal) "
                          "DO UPDATE SET dimension = excluded.dimension, vector = excluded.vector",
                          QR_VALS(rows_id_val(&request->base_id), rows_id_val(&request->item_id),
                                  qr_val_i64(request->generation), qr_val_i64(vector->ordinal),
                                  qr_val_i64(vector->vector ? dimension : 0), qr_index_vector_val(vector, dimension),
                                  qr_val_i64(request->space.model)),
                          &changes, err));
        if (changes == 0) {
            return qr_index_fail_no_chunk(request, vector, err);
        }
    }
    return QR_OK;
}

/* The vectors go with their chunks. */
static qr_rc delete_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_delete *request = arg;
    const size_t count = QR_MIN(request->count, DELETE_ITEMS_MAX);
    for (size_t i = 0; i < count; i++) {
        QR_TRY(qr_tx_exec(tx,
                          "DELETE FROM index_chunk WHERE base_id = ?1 AND item_id = ?2 AND generation <> ?3 AND "
                          "generation <> ?4 AND (?4 = 0 OR generation < ?4)",
                          QR_VALS(rows_id_val(&request->base_id), rows_id_val(&request->item_ids[i]),
                                  qr_val_i64(request->kept_generations[0]), qr_val_i64(request->kept_generations[1])),
                          NULL, err));
    }
    request->ret_done = count;
    return QR_OK;
}

static qr_rc keep_models(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_models *request = arg;
    int64_t deleted;
    QR_TRY(
        qr_tx_exec(tx,
                   "DELETE FROM index_vector WHERE base_id = ?1 AND (model, item_id, generation, ordinal) IN (SELECT "
                   "model, item_id, generation, ordinal FROM index_vector WHERE base_id = ?1 AND model <> ?2 AND "
                   "model <> ?3 AND model <> ?4 LIMIT ?5)",
                   QR_VALS(rows_id_val(&request->base_id), qr_val_i64(request->kept[0]), qr_val_i64(request->kept[1]),
                           qr_val_i64(request->kept[2]), qr_val_i64(DROP_ROWS_MAX)),
                   &deleted, err));
    request->ret_more = deleted == DROP_ROWS_MAX;
    return QR_OK;
}

/* ---- reading ---- */

/* The vectors are those of the model ?1. */
#define CHUNKS_WITH_VECTORS                                                                                            \
    " FROM index_chunk c LEFT JOIN index_vector v ON v.base_id = c.base_id AND v.model = ?1 AND "                      \
    "v.item_id = c.item_id AND v.generation = c.generation AND v.ordinal = c.ordinal "

static qr_rc chunks(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_chunks *request = arg;
    QR_ROWS(rows);
    QR_TRY(
        qr_tx_query(tx, &rows,
                    "SELECT " ROWS_CHUNK_COLUMNS CHUNKS_WITH_VECTORS
                    "WHERE c.base_id = ?2 AND c.item_id = ?3 AND c.generation = ?4 AND c.ordinal >= ?5 "
                    "AND (?6 = 0 OR v.ordinal IS NULL) ORDER BY c.ordinal LIMIT ?7",
                    QR_VALS(qr_val_i64(request->model), rows_id_val(&request->base_id), rows_id_val(&request->item_id),
                            qr_val_i64(request->generation), qr_val_i64(request->from_ordinal),
                            qr_val_i64(request->without_vector), qr_val_i64(request->limit)),
                    err));
    return qr_index_rows_collect(&rows, request, err);
}

static qr_rc extents(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_extents *request = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT c.item_id, c.generation, count(*), count(nullif(v.dimension, 0)), "
                       "count(v.dimension) - count(nullif(v.dimension, 0)) " CHUNKS_WITH_VECTORS
                       "WHERE c.base_id = ?2 AND (c.item_id, c.generation) > (?3, ?4) "
                       "GROUP BY c.item_id, c.generation ORDER BY c.item_id, c.generation LIMIT ?5",
                       QR_VALS(qr_val_i64(request->model), rows_id_val(&request->base_id),
                               rows_id_val(&request->after_item), qr_val_i64(request->after_generation),
                               qr_val_i64(request->limit)),
                       err));
    return qr_index_rows_collect_extents(&rows, request, err);
}

static qr_rc count_extents(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_named *request = arg;
    for (size_t i = 0; i < request->count; i++) {
        struct qr_index_extent *extent = &request->extents[i];
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows,
                           "SELECT count(*), count(nullif(v.dimension, 0)), "
                           "count(v.dimension) - count(nullif(v.dimension, 0)) " CHUNKS_WITH_VECTORS
                           "WHERE c.base_id = ?2 AND c.item_id = ?3 AND c.generation = ?4",
                           QR_VALS(qr_val_i64(request->model), rows_id_val(&request->base_id),
                                   rows_id_val(&extent->item_id), qr_val_i64(extent->generation)),
                           err));
        QR_TRY(qr_index_rows_take_counts(&rows, extent, err));
    }
    return QR_OK;
}

/* Each is the first behind the one before: a look into the key, not at every vector. */
static qr_rc models(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_models *request = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "WITH RECURSIVE known (model) AS (SELECT min(model) FROM index_vector WHERE base_id = ?1 UNION "
                       "ALL SELECT (SELECT min(v.model) FROM index_vector v WHERE v.base_id = ?1 AND v.model > "
                       "known.model) FROM known WHERE known.model IS NOT NULL) "
                       "SELECT model FROM known WHERE model IS NOT NULL LIMIT ?2",
                       QR_VALS(rows_id_val(&request->base_id), qr_val_i64(request->limit)), err));
    return qr_index_rows_collect_models(&rows, request, err);
}

/* ---- searching ---- */

/* One page of matches, best first. *ret_more: the page was full. */
static qr_rc search_page(struct qr_tx *tx, const struct rows_search *request, qr_str query, int64_t from, int64_t count,
                         struct hits *hits, bool *ret_more, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT c.item_id, c.generation, c.ordinal, ts_rank(c.words, q.query) AS score "
                       "FROM index_chunk c, CAST(?2 AS tsquery) AS q(query) "
                       "WHERE c.base_id = ?1 AND c.words @@ q.query "
                       "ORDER BY score DESC, c.item_id, c.generation, c.ordinal LIMIT ?4 OFFSET ?3",
                       QR_VALS(rows_id_val(&request->base_id), qr_val_text(query), qr_val_i64(from), qr_val_i64(count)),
                       err));
    int64_t seen = 0;
    while (!qr_hits_is_full(hits) && qr_rows_next(&rows)) {
        struct qr_index_hit hit = qr_index_rows_hit(&rows);
        hit.score = qr_rows_f64(&rows, 3);
        seen++;
        if (qr_hits_may_show(hits, hit.item_id, hit.generation)) {
            qr_hits_append(hits, &hit);
        }
    }
    *ret_more = seen == count && !qr_hits_is_full(hits);
    return qr_rows_end(&rows, err);
}

static qr_rc search_text(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_search *request = arg;
    struct hits hits;
    qr_hits_init(&hits, request->ret_hits, request->limit, request->filter, request->filter_arg);
    QR_CLEANUP(qr_buf_done) struct qr_buf query = {0};
    struct rows_store store = {.base_id = request->base_id};
    QR_TRY(load_languages(tx, &store, err));
    const struct qr_words_options words = {.dialect = QR_WORDS_TSQUERY,
                                           .languages = (qr_languages)store.ret_languages,
                                           .tokenizer = request->query->tokenizer};
    QR_TRY(qr_words_query(&query, request->query, &words, err));
    bool more = query.len > 0 && !qr_hits_is_full(&hits);
    for (int64_t from = 0, count = QR_MAX(RANKED_PAGE, request->limit); more;) {
        QR_TRY(search_page(tx, request, qr_buf_str(&query), from, count, &hits, &more, err));
        from += count;
        count *= RANKED_GROWTH;
    }
    request->ret_count = hits.count;
    return QR_OK;
}

static qr_rc hit_matches(struct qr_tx *tx, qr_uuid base_id, const struct qr_index_hit *hit, const struct qr_buf *query,
                         bool *ret_does, qr_err *err)
{
    int64_t one;
    return qr_tx_get_i64(tx,
                         "SELECT 1 FROM index_chunk WHERE base_id = ?1 AND item_id = ?2 AND generation = ?3 AND "
                         "ordinal = ?4 AND words @@ CAST(?5 AS tsquery)",
                         QR_VALS(rows_id_val(&base_id), rows_id_val(&hit->item_id), qr_val_i64(hit->generation),
                                 qr_val_i64(hit->ordinal), qr_val_text(qr_buf_str(query))),
                         ret_does, &one, err);
}

static qr_rc fits(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_fits *request = arg;
    QR_CLEANUP(qr_buf_done) struct qr_buf required = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf excluded = {0};
    struct rows_store store = {.base_id = request->base_id};
    QR_TRY(load_languages(tx, &store, err));
    const struct qr_words_options words = {.dialect = QR_WORDS_TSQUERY,
                                           .languages = (qr_languages)store.ret_languages,
                                           .tokenizer = request->query->tokenizer};
    QR_TRY(qr_words_conditions(&required, &excluded, request->query, &words, err));
    for (size_t i = 0; i < request->count; i++) {
        bool has_required = true, has_excluded = false;
        if (required.len) {
            QR_TRY(hit_matches(tx, request->base_id, &request->hits[i], &required, &has_required, err));
        }
        if (excluded.len && has_required) {
            QR_TRY(hit_matches(tx, request->base_id, &request->hits[i], &excluded, &has_excluded, err));
        }
        request->ret_fits[i] = has_required && !has_excluded;
    }
    return QR_OK;
}

static qr_rc count_words(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_counts *request = arg;
    const struct qr_val base_id = rows_id_val(&request->base_id);
    QR_CLEANUP(qr_buf_done) struct qr_buf query = {0};
    *request->ret_totals = (struct qr_index_totals){0};
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM index_chunk WHERE base_id = ?1", &base_id, 1, NULL,
                         &request->ret_totals->rows, err));
    for (size_t i = 0; i < request->count; i++) {
        qr_buf_clear(&query);
        qr_words_write(&query, request->words[i], QR_WORDS_TSQUERY);
        QR_TRY(qr_buf_check(&query, err));
        request->ret_counts[i] = 0;
        QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM index_chunk WHERE base_id = ?1 AND words @@ CAST(?2 AS tsquery)",
                             QR_VALS(base_id, qr_val_text(qr_buf_str(&query))), NULL, &request->ret_counts[i], err));
    }
    return QR_OK;
}

/* The vectors behind *after, in the order of their keys. *ret_more: the page was full. */
static qr_rc compare_page(struct qr_tx *tx, const struct rows_search *request, const struct cosine *cosine,
                          struct hits *hits, struct qr_index_hit *after, bool *ret_more, qr_err *err)
{
    const int dimension = request->space.dimension;
    const int64_t count = 1 + VECTOR_PAGE_BYTES / ((int64_t)dimension * (int64_t)sizeof(float));
    int64_t seen = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT item_id, generation, ordinal, vector FROM index_vector "
                       "WHERE base_id = ?1 AND model = ?7 AND dimension = ?2 AND "
                       "(item_id, generation, ordinal) > (?3, ?4, ?5) ORDER BY item_id, generation, ordinal LIMIT ?6",
                       QR_VALS(rows_id_val(&request->base_id), qr_val_i64(dimension), rows_id_val(&after->item_id),
                               qr_val_i64(after->generation), qr_val_i64(after->ordinal), qr_val_i64(count),
                               qr_val_i64(request->space.model)),
                       err));
    while (qr_rows_next(&rows)) {
        struct qr_index_hit hit = qr_index_rows_hit(&rows);
        seen++;
        if (qr_hits_may_show(hits, hit.item_id, hit.generation)) {
            hit.score = qr_cosine_with(cosine, qr_rows_str(&rows, 3));
            qr_hits_offer(hits, &hit);
        }
        *after = hit;
    }
    *ret_more = seen == count;
    return qr_rows_end(&rows, err);
}

static qr_rc search_vector(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_search *request = arg;
    struct hits hits;
    qr_hits_init(&hits, request->ret_hits, request->limit, request->filter, request->filter_arg);
    QR_CLEANUP(qr_cosine_done) struct cosine cosine = {0};
    QR_TRY(qr_cosine_init(&cosine, request->vector, request->space.dimension, err));
    struct qr_index_hit after = {.ordinal = -1};
    bool more = true;
    while (more) {
        QR_TRY(compare_page(tx, request, &cosine, &hits, &after, &more, err));
    }
    qr_hits_sort(&hits);
    request->ret_count = hits.count;
    return QR_OK;
}

const struct rows_driver qr_rows_postgres = {
    .lock = lock,
    .write_chunks = write_chunks,
    .write_vectors = write_vectors,
    .delete_items = delete_items,
    .keep_models = keep_models,
    .sync = sync,
    .load_stamp = load_stamp,
    .save_stamp = save_stamp,
    .load_languages = load_languages,
    .drop = drop,
    .chunks = chunks,
    .extents = extents,
    .count_extents = count_extents,
    .models = models,
    .search_text = search_text,
    .search_vector = search_vector,
    .fits = fits,
    .count_words = count_words,
};
