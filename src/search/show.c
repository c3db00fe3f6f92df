/* From places to passages: which of the hits may be shown still, which belong together, and their text. */
#include "search/diverse.h"
#include "search/parts.h"
#include "search/passage.h"

/* What a hit shows: chunks from `first` to `last` of its item. */
struct passage {
    struct qr_search_hit *hit;
    int64_t first, last;
};

/* ---- who may be shown ---- */

/* Those of one base, in one read (S1). */
static qr_rc judge_base(struct qr_searching *searching, size_t which, const struct qr_fused *fused, size_t count,
                        const size_t *bases, struct qr_search_hit *hits, qr_err *err)
{
    struct qr_index_hit *asked = qr_arena_array(searching->arena, count + 1, sizeof *asked);
    const struct qr_item **items;
    size_t asked_count = 0;
    if (!asked) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        if (bases[i] == which) {
            asked[asked_count++] = fused[i].hit;
        }
    }
    QR_TRY(qr_scan_judge(&searching->bases[which].scan, asked, asked_count, &items, err));
    for (size_t i = 0, at = 0; i < count; i++) {
        if (bases[i] == which) {
            hits[i].item = items[at++];
        }
    }
    return QR_OK;
}

static bool is_in(const struct qr_leg_hits *leg, const struct qr_index_hit *hit)
{
    for (size_t i = 0; i < leg->count; i++) {
        if (qr_uuid_equal(leg->hits[i].item_id, hit->item_id)) {
            return true;
        }
    }
    return false;
}

/* Ids of items are unique: whichever base found it has it. */
static size_t base_of(const struct qr_searching *searching, const struct qr_index_hit *hit)
{
    size_t i = 0;
    while (i + 1 < searching->base_count && !is_in(&searching->bases[i].text, hit) &&
           !is_in(&searching->bases[i].vector, hit)) {
        i++;
    }
    return i;
}

static qr_rc find_visible(struct qr_searching *searching, const struct qr_fused *fused, size_t count,
                          struct qr_search_hit **ret_hits, size_t *ret_count, qr_err *err)
{
    size_t *bases = qr_arena_array(searching->arena, count + 1, sizeof *bases);
    struct qr_search_hit *hits = qr_arena_array(searching->arena, count + 1, sizeof *hits);
    if (!bases || !hits) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        hits[i].found = fused[i];
        bases[i] = base_of(searching, &fused[i].hit);
    }
    for (size_t i = 0; i < searching->base_count; i++) {
        QR_TRY(judge_base(searching, i, fused, count, bases, hits, err));
    }
    *ret_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (hits[i].item) {
            hits[(*ret_count)++] = hits[i];
        }
    }
    *ret_hits = hits;
    return QR_OK;
}

/* ---- rows ---- */

/* The chunks of the passages of one base, in one read. */
static qr_rc load_base(struct qr_searching *searching, qr_uuid base_id, const struct passage *passages, size_t count,
                       struct qr_chunk_span *spans, qr_err *err)
{
    struct qr_chunk_span *own = qr_arena_array(searching->arena, count + 1, sizeof *own);
    size_t own_count = 0;
    if (!own) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        const struct qr_index_hit *hit = &passages[i].hit->found.hit;
        if (qr_uuid_equal(passages[i].hit->item->base_id, base_id)) {
            own[own_count++] =
                (struct qr_chunk_span){hit->item_id, hit->generation, passages[i].first, passages[i].last, NULL, 0};
        }
    }
    QR_TRY(qr_index_load_spans(searching->search->index, base_id, own, own_count, searching->arena, err));
    for (size_t i = 0, at = 0; i < count; i++) {
        if (qr_uuid_equal(passages[i].hit->item->base_id, base_id)) {
            spans[i] = own[at++];
        }
    }
    return QR_OK;
}

/* The hit's own row among those of its passage; NULL where it was purged meanwhile. */
static const struct qr_chunk_row *own_row(const struct qr_chunk_span *span, const struct qr_search_hit *hit)
{
    for (size_t i = 0; i < span->count; i++) {
        if (span->rows[i].chunk.ordinal == hit->found.hit.ordinal) {
            return &span->rows[i];
        }
    }
    return NULL;
}

static qr_rc join_rows(struct qr_searching *searching, const struct qr_chunk_span *span, struct qr_search_hit *hit,
                       qr_err *err)
{
    struct qr_chunk *chunks = qr_arena_array(searching->arena, span->count, sizeof *chunks);
    const qr_str heading = hit->row.chunk.heading;
    if (!chunks) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < span->count; i++) {
        chunks[i] = span->rows[i].chunk;
    }
    QR_TRY(qr_passage_join(chunks, span->count, searching->arena, &hit->row.chunk, err));
    hit->row.chunk.heading = heading; /* of the hit itself: the words that were found stand under it */
    return QR_OK;
}

/* Fills in the rows of the hits; *count: of those that there still are. */
static qr_rc load_passages(struct qr_searching *searching, const struct passage *passages, struct qr_search_hit *hits,
                           size_t *count, qr_err *err)
{
    struct qr_chunk_span *spans = qr_arena_array(searching->arena, *count + 1, sizeof *spans);
    if (!spans) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < searching->base_count; i++) {
        QR_TRY(load_base(searching, searching->bases[i].id, passages, *count, spans, err));
    }
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        const struct qr_chunk_row *row = own_row(&spans[i], passages[i].hit);
        if (row) {
            hits[kept] = *passages[i].hit;
            hits[kept].row = *row;
            QR_TRY(join_rows(searching, &spans[i], &hits[kept++], err));
        }
    }
    *count = kept;
    return QR_OK;
}

qr_rc qr_show_load(struct qr_searching *searching, struct qr_search_hit **hits, size_t *count, qr_err *err)
{
    struct passage *passages = qr_arena_array(searching->arena, *count + 1, sizeof *passages);
    struct qr_search_hit *loaded = qr_arena_array(searching->arena, *count + 1, sizeof *loaded);
    if (!passages || !loaded) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < *count; i++) {
        const int64_t ordinal = (*hits)[i].found.hit.ordinal;
        passages[i] = (struct passage){&(*hits)[i], ordinal, ordinal};
    }
    QR_TRY(load_passages(searching, passages, loaded, count, err));
    *hits = loaded;
    return QR_OK;
}

/* ---- diversity ---- */

static qr_rc make_diverse(struct qr_searching *searching, struct qr_search_hit **hits, size_t *count, qr_err *err)
{
    QR_TRY(qr_show_load(searching, hits, count, err));
    struct qr_diverse_text *texts = qr_arena_array(searching->arena, *count + 1, sizeof *texts);
    struct qr_search_hit *chosen = qr_arena_array(searching->arena, *count + 1, sizeof *chosen);
    size_t *order, chosen_count;
    if (!texts || !chosen) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < *count; i++) {
        texts[i] = (struct qr_diverse_text){(*hits)[i].row.chunk.text, (*hits)[i].found.hit.score};
    }
    const size_t wanted = (size_t)searching->search->top_k * QR_PASSAGE_CHUNKS_MAX; /* some will be joined */
    QR_TRY(
        qr_diverse(texts, *count, searching->search->diversity, wanted, searching->arena, &order, &chosen_count, err));
    for (size_t i = 0; i < chosen_count; i++) {
        chosen[i] = (*hits)[order[i]];
    }
    *hits = chosen;
    *count = chosen_count;
    return QR_OK;
}

/* ---- neighbours ---- */

/* Whether both are of one item, beside each other, and not too long together. */
static bool can_join(const struct passage *a, const struct passage *b)
{
    return qr_uuid_equal(a->hit->item->id, b->hit->item->id) && b->first <= a->last + 1 && a->first <= b->last + 1 &&
           QR_MAX(a->last, b->last) - QR_MIN(a->first, b->first) < QR_PASSAGE_CHUNKS_MAX;
}

static void join(struct passage *passage, const struct passage *other)
{
    passage->first = QR_MIN(passage->first, other->first);
    passage->last = QR_MAX(passage->last, other->last);
}

/* The passage has grown: one behind it may touch it now. */
static void join_behind(struct passage *passages, size_t *count, size_t at)
{
    for (size_t i = at + 1; i < *count; i++) {
        if (can_join(&passages[at], &passages[i])) {
            join(&passages[at], &passages[i]);
            memmove(&passages[i], &passages[i + 1], (--*count - i) * sizeof *passages);
            i = at;
        }
    }
}

/* Hits beside a better one of the same item become part of it. Those behind the last that is shown may still join two before
 * it, and then there is room for one of them. */
static size_t join_neighbours(const struct qr_search *search, struct qr_search_hit *hits, size_t hit_count,
                              struct passage *passages)
{
    size_t count = 0;
    for (size_t i = 0; i < hit_count; i++) {
        const struct passage next = {&hits[i], hits[i].found.hit.ordinal, hits[i].found.hit.ordinal};
        size_t at = search->keeps_chunks ? count : 0;
        while (at < count && !can_join(&passages[at], &next)) {
            at++;
        }
        if (at < count) {
            join(&passages[at], &next);
            join_behind(passages, &count, at);
        } else {
            passages[count++] = next;
        }
    }
    return QR_MIN(count, (size_t)search->top_k);
}

/* What diversity put behind is not taken for being a neighbour: only as many hits as it takes. */
static size_t join_diverse(const struct qr_search *search, struct qr_search_hit *hits, size_t hit_count,
                           struct passage *passages)
{
    const size_t wanted = QR_MIN((size_t)search->top_k, hit_count);
    size_t taken = wanted, count = join_neighbours(search, hits, taken, passages);
    while (count < wanted && taken < hit_count) {
        taken = QR_MIN(taken + wanted - count, hit_count);
        count = join_neighbours(search, hits, taken, passages);
    }
    return count;
}

static qr_rc make_passages(struct qr_searching *searching, struct qr_search_hit *hits, size_t count, qr_err *err)
{
    struct qr_search_answer *answer = searching->answer;
    const struct qr_search *search = searching->search;
    struct passage *passages = qr_arena_array(searching->arena, count + 1, sizeof *passages);
    answer->hits = qr_arena_array(searching->arena, count + 1, sizeof *answer->hits);
    if (!passages || !answer->hits) {
        return qr_search_out_of_memory(err);
    }
    answer->count = (search->diversity > 0 ? join_diverse : join_neighbours)(search, hits, count, passages);
    for (size_t i = 0; i < answer->count; i++) {
        passages[i].first = QR_MAX(passages[i].first - search->context, 0);
        passages[i].last += search->context;
    }
    return load_passages(searching, passages, answer->hits, &answer->count, err);
}

qr_rc qr_show_highlights(struct qr_searching *searching, qr_err *err)
{
    struct qr_search_answer *answer = searching->answer;
    QR_TRY(qr_wanted_read(searching->tokenizer, &searching->query, searching->languages, searching->arena,
                          &answer->wanted, err));
    for (size_t i = 0; i < answer->count; i++) {
        struct qr_search_hit *hit = &answer->hits[i];
        QR_TRY(qr_highlight(searching->tokenizer, hit->row.chunk.text, &answer->wanted, searching->arena,
                            &hit->highlights, &hit->highlight_count, err));
    }
    return QR_OK;
}

qr_rc qr_show(struct qr_searching *searching, const struct qr_fused *fused, size_t count, qr_err *err)
{
    struct qr_search_hit *hits = NULL;
    size_t visible = 0;
    QR_TRY(find_visible(searching, fused, count, &hits, &visible, err));
    QR_TRY(qr_reorder(searching, &hits, &visible, err));
    if (searching->search->diversity > 0) {
        QR_TRY(make_diverse(searching, &hits, &visible, err));
    }
    return make_passages(searching, hits, visible, err);
}
