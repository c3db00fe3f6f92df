/* The searching calls of index.h. A search by words knows what X6 says. */
#include "index/set.h"
#include "text/tokens.h"

qr_rc qr_index_languages(struct qr_index_set *set, qr_uuid base_id, qr_languages *ret_languages, qr_err *err)
{
    struct rows_store request = {.base_id = base_id};
    TAKE(taken, set, base_id, err);
    QR_TRY(qr_db_read(taken.store->db, set->rows->load_languages, &request, err));
    *ret_languages = (qr_languages)request.ret_languages;
    return QR_OK;
}

qr_rc qr_index_search_text(struct qr_index_set *set, qr_uuid base_id, qr_str query, int limit,
                           qr_index_filter_fn *filter, void *arg, struct qr_index_hit *ret_hits, size_t *ret_count,
                           qr_err *err)
{
    const struct qr_clause clause = {.text = query};
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = NULL;
    QR_TRY(qr_tokenizer_create(&tokenizer, err));
    struct qr_text_query whole = {.clauses = &clause, .count = 1, .tokenizer = tokenizer};
    return qr_index_search_query(set, base_id, &whole, limit, filter, arg, ret_hits, ret_count, err);
}

qr_rc qr_index_search_query(struct qr_index_set *set, qr_uuid base_id, struct qr_text_query *query, int limit,
                            qr_index_filter_fn *filter, void *arg, struct qr_index_hit *ret_hits, size_t *ret_count,
                            qr_err *err)
{
    struct rows_search request = {
        .base_id = base_id,
        .query = query,
        .limit = limit,
        .filter = filter,
        .filter_arg = arg,
        .ret_hits = ret_hits,
    };
    TAKE(taken, set, base_id, err);
    request.counts = &taken.store->words;
    request.lengths = &taken.store->lengths;
    QR_TRY(qr_index_make_searchable(set, taken.store, err));
    QR_TRY(qr_db_read(taken.store->db, set->rows->search_text, &request, err));
    *ret_count = request.ret_count;
    return QR_OK;
}

static qr_rc read_vectors(void *arg, struct vector_reading *reading, qr_err *err)
{
    struct index_taken *taken = arg;
    return qr_db_read(taken->store->db, taken->set->rows->read_vectors, reading, err);
}

/* Where it is not done, there is no room for the vectors in memory. */
static qr_rc search_memory(struct qr_index_set *set, struct index_store *store, struct rows_search *request,
                           bool *ret_is_done, qr_err *err)
{
    struct index_taken taken = {set, store};
    struct hits hits;
    QR_CLEANUP(qr_cosine_done) struct cosine cosine = {0};
    QR_TRY(qr_cosine_init(&cosine, request->vector, request->space.dimension, err));
    qr_hits_init(&hits, request->ret_hits, request->limit, request->filter, request->filter_arg);
    const struct vector_search search = {.base_id = request->base_id,
                                         .space = request->space,
                                         .cosine = &cosine,
                                         .read = read_vectors,
                                         .read_arg = &taken};
    QR_TRY(qr_vector_arrays_search(&set->vectors, &search, &hits, ret_is_done, err));
    qr_hits_sort(&hits);
    request->ret_count = hits.count;
    return QR_OK;
}

qr_rc qr_index_search_vector(struct qr_index_set *set, qr_uuid base_id, struct qr_vector_space space,
                             const float *vector, int limit, qr_index_filter_fn *filter, void *arg,
                             struct qr_index_hit *ret_hits, size_t *ret_count, qr_err *err)
{
    if (space.dimension < 1) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "a vector has at least one dimension");
    }
    struct rows_search request = {
        .base_id = base_id,
        .vector = vector,
        .space = space,
        .limit = limit,
        .filter = filter,
        .filter_arg = arg,
        .ret_hits = ret_hits,
    };
    bool is_done = false;
    TAKE(taken, set, base_id, err);
    QR_TRY(set->rows->read_vectors ? search_memory(set, taken.store, &request, &is_done, err) : QR_OK);
    QR_TRY(is_done ? QR_OK : qr_db_read(taken.store->db, set->rows->search_vector, &request, err));
    *ret_count = request.ret_count;
    return QR_OK;
}

qr_rc qr_index_fits(struct qr_index_set *set, qr_uuid base_id, const struct qr_text_query *query,
                    const struct qr_index_hit *hits, size_t count, bool *ret_fits, qr_err *err)
{
    struct rows_fits request = {.base_id = base_id, .query = query, .hits = hits, .count = count, .ret_fits = ret_fits};
    TAKE(taken, set, base_id, err);
    QR_TRY(qr_index_make_searchable(set, taken.store, err));
    return qr_db_read(taken.store->db, set->rows->fits, &request, err);
}

qr_rc qr_index_count_words(struct qr_index_set *set, qr_uuid base_id, const qr_str *words, size_t count,
                           int64_t *ret_counts, struct qr_index_totals *ret_totals, qr_err *err)
{
    TAKE(taken, set, base_id, err);
    struct rows_counts request = {
        .base_id = base_id,
        .counts = set->dir ? &taken.store->words : NULL,
        .words = words,
        .count = count,
        .ret_counts = ret_counts,
        .ret_totals = ret_totals,
    };
    QR_TRY(qr_index_make_searchable(set, taken.store, err));
    return qr_db_read(taken.store->db, set->rows->count_words, &request, err);
}
