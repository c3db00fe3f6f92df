/* The rows of all bases in tables of the main database; store/schema.c makes them (migration "index_rows").
 *
 * The row of index_store is the base's write lock: whoever changes rows of the base locks it first (X2). It also makes a
 * sync: a commit is durable together with all before it, but only one that changed something is written at all. */
#include "index/hits.h"
#include "index/rows.h"
#include "index/words.h"

enum {
    DROP_ROWS_MAX = 2000, /* in one transaction: a write has a deadline */
    DELETE_ITEMS_MAX = 64,
    RANKED_PAGE = 256, /* hits of the first page of a search; each further page has RANKED_GROWTH times as many */
    RANKED_GROWTH = 8, /* because each ranks all matches again */
    VECTOR_PAGE_BYTES = 1 << 20,
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

static qr_rc load_stamp(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_store *request = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT stamp FROM index_store WHERE base_id = ?1",
                       QR_VALS(rows_id_val(&request->base_id)), err));
    qr_index_rows_stamp(&rows, request);
    return qr_rows_end(&rows, err);
}

static qr_rc save_stamp(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_store *request = arg;
    return qr_tx_exec(tx,
                      "INSERT INTO index_store (base_id, stamp, syncs) VALUES (?1, ?2, 0) "
                      "ON CONFLICT (base_id) DO UPDATE SET stamp = excluded.stamp",
                      QR_VALS(rows_id_val(&request->base_id), qr_val_text(qr_str_of(request->stamp))), NULL, err);
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

static qr_rc insert_chunk(struct qr_tx *tx, const struct rows_write *request, const struct qr_chunk *chunk, qr_err *err)
{
    return qr_tx_exec(tx,
                      "INSERT INTO index_chunk (base_id, item_id, generation, ordinal, byte_start, byte_end, "
                      "line_start, line_end, page, token_count, title, heading, text) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                      QR_VALS(rows_id_val(&request->base_id), rows_id_val(&request->item_id),
                              qr_val_i64(request->generation), qr_val_i64(chunk->ordinal), qr_val_i64(chunk->start),
                              qr_val_i64(chunk->end), qr_val_i64(chunk->line_start), qr_val_i64(chunk->line_end),
                              qr_val_i64(chunk->page), qr_val_i64(chunk->token_count), qr_val_text(chunk->title),
                              qr_val_text(chunk->heading), qr_val_text(chunk->text)),
                      NULL, err);
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
    for (size_t i = 0; i < request->count; i++) {
        QR_TRY(insert_chunk(tx, request, &request->chunks[i], err));
    }
    return QR_OK;
}

static qr_rc write_vectors(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_vectors *request = arg;
    for (size_t i = 0; i < request->count; i++) {
        const struct qr_chunk_vector *vector = &request->vectors[i];
        int64_t changes;
        QR_TRY(qr_tx_exec(tx,
                          "INSERT INTO index_vector (base_id, item_id, generation, ordinal, dimension, vector) "
                          "SELECT base_id, item_id, generation, ordinal, ?5, ?6 FROM index_chunk "
                          "WHERE base_id = ?1 AND item_id = ?2 AND generation = ?3 AND ordinal = ?4 "
                          "ON CONFLICT (base_id, item_id, generation, ordinal) "
                          "DO UPDATE SET dimension = excluded.dimension, vector = excluded.vector",
                          QR_VALS(rows_id_val(&request->base_id), rows_id_val(&request->item_id),
                                  qr_val_i64(request->generation), qr_val_i64(vector->ordinal),
                                  qr_val_i64(vector->vector ? request->dimension : 0),
                                  qr_index_vector_val(vector, request->dimension)),
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

/* ---- reading ---- */

#define CHUNKS_WITH_VECTORS                                                                                            \
    " FROM index_chunk c LEFT JOIN index_vector v ON v.base_id = c.base_id AND v.item_id = c.item_id AND "             \
    "v.generation = c.generation AND v.ordinal = c.ordinal "

static qr_rc chunks(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_chunks *request = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT " ROWS_CHUNK_COLUMNS CHUNKS_WITH_VECTORS
                       "WHERE c.base_id = ?1 AND c.item_id = ?2 AND c.generation = ?3 AND c.ordinal >= ?4 "
                       "AND (?5 = 0 OR v.ordinal IS NULL) ORDER BY c.ordinal LIMIT ?6",
                       QR_VALS(rows_id_val(&request->base_id), rows_id_val(&request->item_id),
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
                       "WHERE c.base_id = ?1 AND (c.item_id, c.generation) > (?2, ?3) "
                       "GROUP BY c.item_id, c.generation ORDER BY c.item_id, c.generation LIMIT ?4",
                       QR_VALS(rows_id_val(&request->base_id), rows_id_val(&request->after_item),
                               qr_val_i64(request->after_generation), qr_val_i64(request->limit)),
                       err));
    return qr_index_rows_collect_extents(&rows, request, err);
}

/* ---- searching ---- */

/* One page of matches, best first. *ret_more: the page was full. */
static qr_rc search_page(struct qr_tx *tx, const struct rows_search *request, qr_str query, int64_t from, int64_t count,
                         struct hits *hits, bool *ret_more, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT c.item_id, c.generation, c.ordinal, ts_rank(c.words, q.query) AS score "
                       "FROM index_chunk c, to_tsquery('simple', ?2) AS q(query) "
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
    qr_words_for_tsquery(&query, request->query);
    QR_TRY(qr_buf_check(&query, err));
    bool more = query.len > 0 && !qr_hits_is_full(&hits);
    for (int64_t from = 0, count = QR_MAX(RANKED_PAGE, request->limit); more;) {
        QR_TRY(search_page(tx, request, qr_buf_str(&query), from, count, &hits, &more, err));
        from += count;
        count *= RANKED_GROWTH;
    }
    request->ret_count = hits.count;
    return QR_OK;
}

/* The vectors behind *after, in the order of their keys. *ret_more: the page was full. */
static qr_rc compare_page(struct qr_tx *tx, const struct rows_search *request, const struct cosine *cosine,
                          struct hits *hits, struct qr_index_hit *after, bool *ret_more, qr_err *err)
{
    const int64_t count = 1 + VECTOR_PAGE_BYTES / ((int64_t)request->dimension * (int64_t)sizeof(float));
    int64_t seen = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT item_id, generation, ordinal, vector FROM index_vector "
                       "WHERE base_id = ?1 AND dimension = ?2 AND (item_id, generation, ordinal) > (?3, ?4, ?5) "
                       "ORDER BY item_id, generation, ordinal LIMIT ?6",
                       QR_VALS(rows_id_val(&request->base_id), qr_val_i64(request->dimension),
                               rows_id_val(&after->item_id), qr_val_i64(after->generation), qr_val_i64(after->ordinal),
                               qr_val_i64(count)),
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
    QR_TRY(qr_cosine_init(&cosine, request->vector, request->dimension, err));
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
    .sync = sync,
    .load_stamp = load_stamp,
    .save_stamp = save_stamp,
    .drop = drop,
    .chunks = chunks,
    .extents = extents,
    .search_text = search_text,
    .search_vector = search_vector,
};
