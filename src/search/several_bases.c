/* The text's hits of several bases in one order.
 *
 * The index scores by BM25 with the numbers of its own base: a word that is rare there counts much, though it may stand in
 * every chunk of another base. So the best hits of each base are scored again here, by the same formula over numbers of all
 * bases together: in how many chunks each word occurs, how many chunks there are, and how long they are. */
#include "index/words.h"
#include "search/parts.h"

#include <math.h>
#include <stdlib.h>

/* as FTS5 has them */
static const double saturation = 1.2, length_share = 0.75, least_idf = 1e-6; /* k1 and b */
static const double weights[] = {4, 2, 1}; /* of title, heading and text: those of the index */

struct statistics {
    qr_str words[QR_WORDS_MAX]; /* with their other forms: "run|running" */
    size_t count;
    double idf[QR_WORDS_MAX];
    double average_places; /* of a chunk; 0 = not known */
    struct qr_map places;  /* form of a word → its entry in `idf` */
};

/* A hit to be scored. */
struct scored {
    struct qr_index_hit hit;
    double frequencies[QR_WORDS_MAX];
    double places;
    bool fits; /* all of the query, not only a part */
};

/* ---- the numbers of all bases ---- */

static bool note_forms(struct statistics *statistics)
{
    for (size_t i = 0; i < statistics->count; i++) {
        for (qr_str left = statistics->words[i]; left.len;) {
            if (!qr_map_put(&statistics->places, qr_str_split(&left, QR_WORDS_OTHER_FORM), &statistics->idf[i])) {
                return false;
            }
        }
    }
    return true;
}

static double idf_of(int64_t rows, int64_t count)
{
    const double idf = log(((double)(rows - QR_MIN(count, rows)) + 0.5) / ((double)count + 0.5));
    return QR_MAX(idf, least_idf);
}

static qr_rc sum_up(struct qr_searching *searching, struct statistics *statistics, qr_err *err)
{
    int64_t counts[QR_WORDS_MAX], sums[QR_WORDS_MAX] = {0};
    struct qr_index_totals all = {0};
    bool has_places = true;
    for (size_t i = 0; i < searching->base_count; i++) {
        struct qr_index_totals totals;
        QR_TRY(qr_index_count_words(searching->search->index, searching->bases[i].id, statistics->words,
                                    statistics->count, counts, &totals, err));
        for (size_t word = 0; word < statistics->count; word++) {
            sums[word] += counts[word];
        }
        all.rows += totals.rows;
        all.places += totals.places;
        has_places = has_places && (totals.places > 0 || totals.rows == 0);
    }
    for (size_t word = 0; word < statistics->count; word++) {
        statistics->idf[word] = idf_of(all.rows, sums[word]);
    }
    statistics->average_places = has_places && all.rows ? (double)all.places / (double)all.rows : 0;
    return QR_OK;
}

static qr_rc read_statistics(struct qr_searching *searching, struct statistics *statistics, qr_err *err)
{
    struct qr_text_query query = {.clauses = searching->query.clauses, .count = searching->query.count};
    const struct qr_words_options options = {.languages = searching->languages, .tokenizer = searching->tokenizer};
    QR_TRY(qr_words_list(&query, &options, searching->arena, statistics->words, &statistics->count, err));
    QR_TRY(sum_up(searching, statistics, err));
    return note_forms(statistics) ? QR_OK : qr_search_out_of_memory(err);
}

/* ---- the words of a hit ---- */

struct reading {
    const struct statistics *statistics;
    struct scored *scored;
    double weight;
};

static qr_rc count_token(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    const struct reading *reading = arg;
    reading->scored->places += !qr_token_is_same_place(token);
    const double *idf = qr_map_find(&reading->statistics->places, token->text);
    if (idf) {
        reading->scored->frequencies[idf - reading->statistics->idf] += reading->weight;
    }
    return QR_OK;
}

static qr_rc read_chunk(struct qr_searching *searching, const struct statistics *statistics,
                        const struct qr_chunk *chunk, struct scored *scored, qr_err *err)
{
    const qr_str columns[] = {chunk->title, chunk->heading, chunk->text};
    const qr_languages language = QR_BIT(qr_language_detect(chunk->text));
    for (size_t i = 0; i < QR_COUNT(columns); i++) {
        struct reading reading = {statistics, scored, weights[i]};
        QR_TRY(
            qr_tokenize(searching->tokenizer, columns[i], QR_TOKENS_OF_DOCUMENT, language, count_token, &reading, err));
    }
    return QR_OK;
}

/* Hits whose rows are gone meanwhile are left out. */
static qr_rc read_base(struct qr_searching *searching, const struct qr_searched_base *base,
                       const struct statistics *statistics, struct scored *scored, size_t *count, qr_err *err)
{
    struct qr_chunk_span *spans = qr_arena_array(searching->arena, base->text.count + 1, sizeof *spans);
    if (!spans) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < base->text.count; i++) {
        const struct qr_index_hit *hit = &base->text.hits[i];
        spans[i] = (struct qr_chunk_span){hit->item_id, hit->generation, hit->ordinal, hit->ordinal, NULL, 0};
    }
    QR_TRY(qr_index_load_spans(searching->search->index, base->id, spans, base->text.count, searching->arena, err));
    for (size_t i = 0; i < base->text.count; i++) {
        if (spans[i].count) {
            struct scored *one = &scored[(*count)++];
            *one = (struct scored){.hit = base->text.hits[i], .fits = i < base->fitting_count};
            QR_TRY(read_chunk(searching, statistics, &spans[i].rows[0].chunk, one, err));
        }
    }
    return QR_OK;
}

/* ---- scores ---- */

static double score_of(const struct scored *scored, const struct statistics *statistics, double average_places)
{
    const double length = average_places > 0 ? scored->places / average_places : 1;
    double score = 0;
    for (size_t i = 0; i < statistics->count; i++) {
        const double frequency = scored->frequencies[i];
        score += statistics->idf[i] * frequency * (saturation + 1) /
                 (frequency + saturation * (1 - length_share + length_share * length));
    }
    return score;
}

static int compare(const void *a, const void *other)
{
    const struct scored *x = a, *y = other;
    if (x->fits != y->fits) {
        return x->fits ? -1 : 1;
    }
    return qr_index_hit_compare(&x->hit, &y->hit);
}

static double average_of(const struct scored *scored, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += scored[i].places;
    }
    return count ? sum / (double)count : 0;
}

static qr_rc score_hits(struct qr_searching *searching, const struct statistics *statistics, struct qr_index_hit *hits,
                        size_t sum, size_t *ret_count, qr_err *err)
{
    struct scored *scored = qr_arena_array(searching->arena, sum + 1, sizeof *scored);
    size_t count = 0;
    if (!scored) {
        return qr_search_out_of_memory(err);
    }
    for (size_t i = 0; i < searching->base_count; i++) {
        QR_TRY(read_base(searching, &searching->bases[i], statistics, scored, &count, err));
    }
    const double average = statistics->average_places > 0 ? statistics->average_places : average_of(scored, count);
    for (size_t i = 0; i < count; i++) {
        scored[i].hit.score = score_of(&scored[i], statistics, average);
    }
    qsort(scored, count, sizeof *scored, compare);
    for (size_t i = 0; i < count; i++) {
        hits[i] = scored[i].hit;
        if (i > 0 && !scored[i].fits) {
            hits[i].score = qr_score_below(hits[i].score, hits[i - 1].score);
        }
    }
    *ret_count = count;
    return QR_OK;
}

qr_rc qr_common_text(struct qr_searching *searching, struct qr_leg_hits *ret_hits, qr_err *err)
{
    size_t sum = 0;
    for (size_t i = 0; i < searching->base_count; i++) {
        sum += searching->bases[i].text.count;
    }
    struct statistics *statistics = qr_arena_alloc(searching->arena, sizeof *statistics);
    struct qr_index_hit *hits = qr_arena_array(searching->arena, sum + 1, sizeof *hits);
    if (!statistics || !hits) {
        return qr_search_out_of_memory(err);
    }
    qr_map_init(&statistics->places, 1); /* at most some hundred keys: of chosen ones the worst is slow, not much */
    qr_rc rc = read_statistics(searching, statistics, err);
    rc = rc == QR_OK ? score_hits(searching, statistics, hits, sum, &ret_hits->count, err) : rc;
    qr_map_done(&statistics->places);
    ret_hits->leg = QR_LEG_TEXT;
    ret_hits->hits = hits;
    return rc;
}
