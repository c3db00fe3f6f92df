/* A search from the typed query to the passages: both legs of each base, one order, one judgement, then what is shown. */
#include "search/parts.h"

#include <stdlib.h>

enum {
    LEG_HITS_MIN = 50, /* of a leg that is fused with others: more than are shown, so that both may find the same */
    SPARE_FACTOR = 2,  /* hits beside those asked for: some will be joined, some are hidden meanwhile */
    /* of so many hits joining leaves enough; only hiding can leave too few */
    ENOUGH_FACTOR = QR_PASSAGE_CHUNKS_MAX + 1,
    DIVERSE_HITS_MAX = 200,
    LEGS_MAX = QR_SEARCH_BASES_MAX + 1,
};

/* ---- modes ---- */

static const char *const mode_names[] = {"auto", "text", "vector", "hybrid"};

const char *qr_search_mode_name(enum qr_search_mode mode)
{
    return mode_names[mode];
}

enum qr_search_mode qr_search_mode_find(const char *name)
{
    enum qr_search_mode mode = QR_MODE_AUTO;
    while (mode < QR_MODE_COUNT && strcmp(mode_names[mode], name) != 0) {
        mode++;
    }
    return mode;
}

/* A base that has no vectors is no reason to complain where nobody asked for them; beside others that have some it is. */
static void choose_mode(struct qr_searching *searching)
{
    const struct qr_search *search = searching->search;
    struct qr_search_answer *answer = searching->answer;
    size_t with_vectors = 0;
    for (size_t i = 0; i < searching->base_count; i++) {
        with_vectors += searching->bases[i].batcher != NULL;
    }
    answer->mode = search->mode == QR_MODE_AUTO ? QR_MODE_HYBRID : search->mode;
    if (answer->mode == QR_MODE_TEXT) {
        return;
    }
    if (with_vectors < searching->base_count && (with_vectors || search->mode != QR_MODE_AUTO)) {
        answer->degraded |= QR_DEGRADED_VECTOR;
    }
    answer->mode = with_vectors ? answer->mode : QR_MODE_TEXT;
}

/* ---- the query ---- */

/* type: and path: become part of the filter. */
static qr_rc read_query(struct qr_searching *searching, qr_err *err)
{
    struct qr_search_filter *filter = &searching->filter;
    QR_TRY(qr_query_parse(searching->search->query, searching->arena, &searching->query, err));
    bool was_cut = searching->query.was_cut;
    uint32_t types = 0, excluded_types = 0;
    for (size_t i = 0; i < searching->query.count; i++) {
        const struct qr_clause *clause = &searching->query.clauses[i];
        if (clause->field == QR_FIELD_PATH && filter->pattern_count < QR_FILTER_PATTERNS_MAX) {
            filter->patterns[filter->pattern_count++] = (struct qr_path_pattern){clause->text, clause->is_excluded};
        } else if (clause->field == QR_FIELD_PATH) {
            was_cut = true;
        } else if (clause->field == QR_FIELD_TYPE) {
            *(clause->is_excluded ? &excluded_types : &types) |= QR_BIT(qr_item_type_find(clause->text));
        }
    }
    if (types || excluded_types) {
        types = (types ? types : UINT32_MAX) & ~excluded_types & (filter->types ? filter->types : UINT32_MAX);
        filter->types = types | QR_FILTER_NO_TYPE; /* none left is not all */
    }
    searching->answer->degraded |= was_cut ? QR_DEGRADED_QUERY : 0;
    return QR_OK;
}

/* ---- one order ---- */

/* Vectors of one model in one order. */
static qr_rc gather_vectors(struct qr_searching *searching, size_t first, struct qr_leg_hits *ret_leg, qr_err *err)
{
    size_t sum = 0, count = 0;
    const struct qr_searched_base *bases = searching->bases;
    for (size_t i = first; i < searching->base_count; i++) {
        sum += qr_bases_share_vectors(&bases[first], &bases[i]) ? bases[i].vector.count : 0;
    }
    struct qr_index_hit *hits = qr_arena_array(searching->arena, sum + 1, sizeof *hits);
    if (!hits) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = first; i < searching->base_count; i++) {
        if (qr_bases_share_vectors(&bases[first], &bases[i]) && bases[i].vector.count) {
            memcpy(hits + count, bases[i].vector.hits, bases[i].vector.count * sizeof *hits);
            count += bases[i].vector.count;
        }
    }
    qsort(hits, count, sizeof *hits, qr_index_hit_compare);
    *ret_leg = (struct qr_leg_hits){QR_LEG_VECTOR, hits, count};
    return QR_OK;
}

/* A leg a model: cosines of different ones cannot be compared. */
static qr_rc add_vector_legs(struct qr_searching *searching, struct qr_leg_hits legs[static LEGS_MAX], size_t *count,
                             qr_err *err)
{
    const size_t before = *count;
    for (size_t i = 0; i < searching->base_count; i++) {
        bool is_first = searching->bases[i].query_vector != NULL;
        for (size_t other = 0; other < i && is_first; other++) {
            is_first = !qr_bases_share_vectors(&searching->bases[other], &searching->bases[i]);
        }
        if (is_first) {
            QR_TRY(gather_vectors(searching, i, &legs[(*count)++], err));
        }
    }
    searching->answer->degraded |= *count - before > 1 ? QR_DEGRADED_MODELS : 0;
    return QR_OK;
}

static qr_rc fuse_legs(struct qr_searching *searching, struct qr_fused **ret_fused, size_t *ret_count, qr_err *err)
{
    struct qr_leg_hits legs[LEGS_MAX];
    size_t count = 0;
    if (searching->answer->mode != QR_MODE_VECTOR && searching->base_count > 1) {
        QR_TRY(qr_common_text(searching, &legs[count++], err));
    } else if (searching->answer->mode != QR_MODE_VECTOR) {
        legs[count++] = searching->bases[0].text;
    }
    if (searching->answer->mode != QR_MODE_TEXT) {
        QR_TRY(add_vector_legs(searching, legs, &count, err));
    }
    searching->answer->is_fused = count > 1;
    return qr_fuse(legs, count, &searching->search->fusion, searching->arena, ret_fused, ret_count, err);
}

/* ---- a search ---- */

/* The answer made of `shown` hits. *ret_has_more: a leg was full, or not all were looked at. */
static qr_rc run_round(struct qr_searching *searching, int shown, bool *ret_has_more, qr_err *err)
{
    const bool is_joined = searching->answer->mode == QR_MODE_HYBRID || searching->base_count > 1;
    const int wanted = is_joined ? QR_MAX(shown, (int)LEG_HITS_MIN) : shown;
    struct qr_fused *fused;
    size_t count;
    QR_TRY(qr_legs_run(searching, wanted, err));
    QR_TRY(fuse_legs(searching, &fused, &count, err));
    *ret_has_more = count > (size_t)shown;
    for (size_t i = 0; i < searching->base_count; i++) {
        const struct qr_searched_base *base = &searching->bases[i];
        *ret_has_more = *ret_has_more || QR_MAX(base->text.count, base->vector.count) >= (size_t)wanted;
    }
    return qr_show(searching, fused, QR_MIN(count, (size_t)shown), err);
}

/* Mostly one round; where joining has left too few, one more over so many that it cannot. */
static qr_rc run(struct qr_searching *searching, qr_err *err)
{
    const struct qr_search *search = searching->search;
    struct qr_search_answer *answer = searching->answer;
    const int wanted = search->diversity > 0 ? DIVERSE_HITS_MAX : search->top_k * SPARE_FACTOR;
    const int shown = search->reranker ? QR_MAX(wanted, search->rerank_top_n) : wanted;
    const int enough = search->top_k * ENOUGH_FACTOR;
    bool has_more;
    QR_TRY(qr_legs_begin(searching, err));
    QR_TRY(run_round(searching, shown, &has_more, err));
    if (answer->count < (size_t)search->top_k && has_more && enough > shown) {
        QR_TRY(run_round(searching, enough, &has_more, err));
    }
    answer->degraded |= answer->mode == QR_MODE_TEXT && search->threshold > 0 ? QR_DEGRADED_THRESHOLD : 0;
    return qr_show_highlights(searching, err);
}

static qr_rc begin(struct qr_searching *searching, qr_err *err)
{
    const struct qr_search *search = searching->search;
    const struct qr_search_base one = {search->base_id, search->batcher, search->model};
    const struct qr_search_base *bases = search->base_count ? search->bases : &one;
    const size_t count = search->base_count ? search->base_count : 1;
    searching->bases = qr_arena_array(searching->arena, count, sizeof *searching->bases);
    if (!searching->bases) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        struct qr_searched_base *base = &searching->bases[i];
        *base = (struct qr_searched_base){.id = bases[i].id, .batcher = bases[i].batcher, .model = bases[i].model};
        searching->base_count++;
        QR_TRY(qr_scan_begin(&base->scan, search->db, search->memory, base->id, &searching->filter, searching->arena,
                             err));
        qr_languages languages;
        QR_TRY(qr_index_languages(search->index, base->id, &languages, err));
        searching->languages |= languages;
    }
    choose_mode(searching);
    return qr_tokenizer_create(&searching->tokenizer, err);
}

qr_rc qr_search_run(const struct qr_search *search, struct qr_arena *arena, struct qr_search_answer *ret_answer,
                    qr_err *err)
{
    struct qr_searching searching = {.search = search, .arena = arena, .answer = ret_answer, .filter = search->filter};
    *ret_answer = (struct qr_search_answer){0};
    QR_TRY(read_query(&searching, err));
    qr_rc rc = begin(&searching, err);
    rc = rc == QR_OK ? run(&searching, err) : rc;
    for (size_t i = 0; i < searching.base_count; i++) {
        qr_scan_done(&searching.bases[i].scan);
    }
    qr_tokenizer_free(searching.tokenizer);
    return rc;
}
