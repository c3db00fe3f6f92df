/* What the words and the vectors of each base find. What a query says must occur, and must not, holds for both: the text
 * search looks at it itself, of what the vectors found the index is asked. */
#include "search/parts.h"

enum {
    LITTLE = 3,             /* fewer hits than these are worth a second, relaxed try */
    CONDITIONED_HITS = 200, /* of vectors, where words decide afterwards which of them are shown */
};

static bool is_about_words(const struct qr_clause *clause)
{
    return !qr_clause_is_about_item(clause);
}

/* ---- by words ---- */

struct text_leg {
    const struct qr_searching *searching;
    const struct qr_searched_base *base;
    struct qr_text_query query;
};

static qr_rc find_by_words(void *arg, int depth, qr_index_filter_fn *filter, void *filter_arg,
                           struct qr_index_hit *ret_hits, size_t *ret_count, qr_err *err)
{
    struct text_leg *leg = arg;
    return qr_index_search_query(leg->searching->search->index, leg->base->id, &leg->query, depth, filter, filter_arg,
                                 ret_hits, ret_count, err);
}

static struct qr_text_query text_query(const struct qr_searching *searching, bool is_relaxed)
{
    return (struct qr_text_query){.clauses = searching->query.clauses,
                                  .count = searching->query.count,
                                  .is_relaxed = is_relaxed,
                                  .tokenizer = searching->tokenizer};
}

static qr_rc run_text_leg(struct qr_searching *searching, struct qr_searched_base *base, bool is_relaxed, int wanted,
                          struct qr_leg_hits *ret_hits, qr_err *err)
{
    struct text_leg leg = {.searching = searching, .base = base, .query = text_query(searching, is_relaxed)};
    struct qr_index_hit *hits;
    QR_TRY(qr_scan_leg(&base->scan, find_by_words, &leg, wanted, &hits, &ret_hits->count, err));
    ret_hits->hits = hits;
    searching->answer->degraded |= leg.query.was_cut ? QR_DEGRADED_QUERY : 0;
    return QR_OK;
}

static bool is_among(const struct qr_leg_hits *leg, const struct qr_index_hit *hit)
{
    for (size_t i = 0; i < leg->count; i++) {
        const struct qr_index_hit *other = &leg->hits[i];
        if (qr_uuid_equal(other->item_id, hit->item_id) && other->ordinal == hit->ordinal) {
            return true;
        }
    }
    return false;
}

/* Behind the few that fit all of it come those that fit a part, with scores below. */
static qr_rc relax(struct qr_searching *searching, struct qr_searched_base *base, int wanted, qr_err *err)
{
    struct qr_leg_hits *found = &base->text, more;
    size_t count = found->count;
    struct qr_index_hit *all = qr_arena_array(searching->arena, (size_t)wanted + count, sizeof *all);
    if (!all) {
        return qr_search_out_of_memory(err);
    }
    QR_TRY(run_text_leg(searching, base, true, wanted, &more, err));
    if (count) {
        memcpy(all, found->hits, count * sizeof *all);
    }
    for (size_t i = 0; i < more.count && count < (size_t)wanted; i++) {
        if (!is_among(found, &more.hits[i])) {
            all[count] = more.hits[i];
            all[count].score = count ? qr_score_below(more.hits[i].score, all[count - 1].score) : more.hits[i].score;
            count++;
        }
    }
    searching->answer->is_relaxed = searching->answer->is_relaxed || count > found->count;
    *found = (struct qr_leg_hits){QR_LEG_TEXT, all, count};
    return QR_OK;
}

static qr_rc run_text_legs(struct qr_searching *searching, int wanted, qr_err *err)
{
    size_t sum = 0;
    for (size_t i = 0; i < searching->base_count; i++) {
        struct qr_searched_base *base = &searching->bases[i];
        QR_TRY(run_text_leg(searching, base, false, wanted, &base->text, err));
        base->fitting_count = base->text.count;
        sum += base->text.count;
    }
    for (size_t i = 0; i < searching->base_count && sum < (size_t)QR_MIN(wanted, LITTLE); i++) {
        QR_TRY(relax(searching, &searching->bases[i], wanted, err));
    }
    return QR_OK;
}

/* ---- the query's vector ---- */

void qr_write_meaning(const struct qr_searching *searching, struct qr_buf *out)
{
    for (size_t i = 0; i < searching->query.count; i++) {
        const struct qr_clause *clause = &searching->query.clauses[i];
        if (!clause->is_excluded && is_about_words(clause)) {
            qr_buf_add_text(out, out->len ? " " : "");
            qr_buf_add(out, clause->text);
        }
    }
}

static qr_rc copy_vector(const struct qr_searching *searching, const struct qr_embed_work *work,
                         struct qr_searched_base *base, qr_err *err)
{
    if (work->inputs[0].state != QR_INPUT_DONE) {
        return qr_fail(err, QR_CODE_EMBEDDING_FAILED, "the query has no vector");
    }
    float *vector = qr_arena_array(searching->arena, (size_t)work->dimension, sizeof *vector);
    if (!vector) {
        return qr_search_out_of_memory(err);
    }
    memcpy(vector, work->inputs[0].vector, (size_t)work->dimension * sizeof *vector);
    base->query_vector = vector;
    base->dimension = work->dimension;
    return QR_OK;
}

static const struct qr_searched_base *base_with_same_vectors(const struct qr_searching *searching, size_t upto)
{
    for (size_t i = 0; i < upto; i++) {
        if (qr_bases_share_vectors(&searching->bases[i], &searching->bases[upto])) {
            return &searching->bases[i];
        }
    }
    return NULL;
}

/* A model that was asked to read the query. */
struct asked {
    struct qr_embed_input input;
    struct qr_embed_work work;
    const struct qr_searched_base *same; /* whose vector it is; NULL = its own */
};

/* Before all documents that wait, and not for longer than a person does: all of them at once, so that together they take no
 * more time than one. */
static void ask_models(const struct qr_searching *searching, qr_str text, struct asked *asked)
{
    const struct qr_search *search = searching->search;
    const struct qr_clock *clock = search->clock ? search->clock : qr_clock_system();
    const int64_t wait_ms = search->model_wait_ms ? search->model_wait_ms : QR_MODEL_WAIT_MS;
    const int64_t deadline_ms = qr_clock_mono_ms(clock) + wait_ms;
    for (size_t i = 0; i < searching->base_count; i++) {
        asked[i].same = base_with_same_vectors(searching, i);
        if (searching->bases[i].batcher && !asked[i].same) {
            asked[i].input.text = text;
            asked[i].work = (struct qr_embed_work){.inputs = &asked[i].input,
                                                   .count = 1,
                                                   .is_query = true,
                                                   .deadline_mono_ms = deadline_ms,
                                                   .is_cancelled = search->is_cancelled,
                                                   .cancel_arg = search->cancel_arg};
            qr_embed_begin(searching->bases[i].batcher, &asked[i].work);
        }
    }
}

static qr_rc take_answer(const struct qr_searching *searching, struct asked *asked, struct qr_searched_base *base,
                         qr_err *err)
{
    qr_rc rc = qr_embed_wait(&asked->work, err);
    rc = rc == QR_OK ? copy_vector(searching, &asked->work, base, err) : rc;
    qr_embed_end(&asked->work);
    return rc;
}

/* Once for all bases of a model. A model that does not answer costs the leg, not the search. */
static qr_rc embed_query(struct qr_searching *searching, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    struct asked *asked = qr_arena_array(searching->arena, searching->base_count, sizeof *asked);
    bool is_out_of_memory = false;
    qr_write_meaning(searching, &text);
    QR_TRY(qr_buf_check(&text, err));
    if (!asked || text.len == 0) {
        return asked ? QR_OK : qr_search_out_of_memory(err);
    }
    ask_models(searching, qr_buf_str(&text), asked);
    for (size_t i = 0; i < searching->base_count; i++) { /* each of them, whatever came of those before */
        struct qr_searched_base *base = &searching->bases[i];
        const struct qr_searched_base *same = asked[i].same;
        if (!base->batcher) {
            continue;
        }
        const qr_rc rc = same ? QR_OK : take_answer(searching, &asked[i], base, err);
        is_out_of_memory = is_out_of_memory || rc == QR_NOMEM;
        base->query_vector = same ? same->query_vector : base->query_vector;
        base->dimension = same ? same->dimension : base->dimension;
        searching->answer->degraded |= base->query_vector ? 0 : QR_DEGRADED_VECTOR;
    }
    return is_out_of_memory ? qr_search_out_of_memory(err) : QR_OK;
}

/* ---- by vectors ---- */

struct vector_leg {
    const struct qr_searching *searching;
    const struct qr_searched_base *base;
};

static qr_rc find_by_vector(void *arg, int depth, qr_index_filter_fn *filter, void *filter_arg,
                            struct qr_index_hit *ret_hits, size_t *ret_count, qr_err *err)
{
    const struct vector_leg *leg = arg;
    const struct qr_searched_base *base = leg->base;
    const struct qr_vector_space space = {base->model, base->dimension};
    return qr_index_search_vector(leg->searching->search->index, base->id, space, base->query_vector, depth, filter,
                                  filter_arg, ret_hits, ret_count, err);
}

static void apply_threshold(struct qr_leg_hits *leg, double threshold)
{
    while (threshold > 0 && leg->count && leg->hits[leg->count - 1].score < threshold) {
        leg->count--;
    }
}

static bool has_conditions(const struct qr_searching *searching)
{
    for (size_t i = 0; i < searching->query.count; i++) {
        const struct qr_clause *clause = &searching->query.clauses[i];
        if (is_about_words(clause) && (clause->is_excluded || qr_clause_is_required(clause))) {
            return true;
        }
    }
    return false;
}

static qr_rc keep_fitting(struct qr_searching *searching, const struct qr_searched_base *base,
                          struct qr_index_hit *hits, size_t *count, qr_err *err)
{
    const struct qr_text_query query = text_query(searching, searching->answer->is_relaxed);
    bool *fits = qr_arena_array(searching->arena, *count + 1, sizeof *fits);
    if (!fits) {
        return qr_search_out_of_memory(err);
    }
    QR_TRY(qr_index_fits(searching->search->index, base->id, &query, hits, *count, fits, err));
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (fits[i]) {
            hits[kept++] = hits[i];
        }
    }
    *count = kept;
    return QR_OK;
}

static qr_rc run_vector_leg(struct qr_searching *searching, struct qr_searched_base *base, int wanted, qr_err *err)
{
    struct vector_leg leg = {searching, base};
    const bool is_conditioned = has_conditions(searching);
    struct qr_index_hit *hits;
    size_t count;
    QR_TRY(qr_scan_leg(&base->scan, find_by_vector, &leg, is_conditioned ? QR_MAX(wanted, CONDITIONED_HITS) : wanted,
                       &hits, &count, err));
    if (is_conditioned) {
        QR_TRY(keep_fitting(searching, base, hits, &count, err));
    }
    base->vector = (struct qr_leg_hits){QR_LEG_VECTOR, hits, QR_MIN(count, (size_t)wanted)};
    apply_threshold(&base->vector, searching->search->threshold);
    return QR_OK;
}

/* ---- both ---- */

static bool has_query_vector(const struct qr_searching *searching)
{
    bool has = false;
    for (size_t i = 0; i < searching->base_count; i++) {
        has = has || searching->bases[i].query_vector;
    }
    return has;
}

qr_rc qr_legs_begin(struct qr_searching *searching, qr_err *err)
{
    struct qr_search_answer *answer = searching->answer;
    if (answer->mode != QR_MODE_TEXT) {
        QR_TRY(embed_query(searching, err));
        answer->mode =
            (answer->degraded & QR_DEGRADED_VECTOR) && !has_query_vector(searching) ? QR_MODE_TEXT : answer->mode;
    }
    return QR_OK;
}

qr_rc qr_legs_run(struct qr_searching *searching, int wanted, qr_err *err)
{
    const struct qr_search_answer *answer = searching->answer;
    if (answer->mode != QR_MODE_VECTOR) {
        QR_TRY(run_text_legs(searching, wanted, err));
    }
    for (size_t i = 0; i < searching->base_count; i++) {
        if (searching->bases[i].query_vector && answer->mode != QR_MODE_TEXT) {
            QR_TRY(run_vector_leg(searching, &searching->bases[i], wanted, err));
        }
    }
    return QR_OK;
}
