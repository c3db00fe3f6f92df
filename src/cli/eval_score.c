/* As trec_eval counts: the gain of a document is its grade, discounted by the logarithm of its rank. */
#include "cli/eval_score.h"

#include <math.h>
#include <stdlib.h>

static double gain_of(const struct eval_query *query, size_t document)
{
    for (size_t i = 0; i < query->judgement_count; i++) {
        if (query->judgements[i].document == document) {
            return query->judgements[i].gain;
        }
    }
    return 0;
}

static int compare_down(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The discounted gain of the best order there could be. */
static double ideal_gain(const struct eval_query *query, size_t depth)
{
    enum { GAINS_MAX = 4096 };
    double gains[GAINS_MAX], sum = 0;
    const size_t count = QR_MIN(query->judgement_count, (size_t)GAINS_MAX);
    for (size_t i = 0; i < count; i++) {
        gains[i] = query->judgements[i].gain;
    }
    /* cppcheck-suppress uninitvar ; so many are set */
    qsort(gains, count, sizeof gains[0], compare_down);
    for (size_t i = 0; i < QR_MIN(count, depth); i++) {
        sum += gains[i] / log2((double)i + 2);
    }
    return sum;
}

void eval_add(struct eval_scores *scores, const struct eval_query *query, const size_t *ranking, size_t count)
{
    double gain_10 = 0, found_10 = 0, found_100 = 0, first = 0;
    for (size_t i = 0; i < count; i++) {
        const double gain = gain_of(query, ranking[i]);
        if (gain > 0) {
            gain_10 += i < 10 ? gain / log2((double)i + 2) : 0;
            found_10 += i < 10;
            found_100 += i < EVAL_DEPTH;
            first = first > 0 ? first : 1 / ((double)i + 1);
        }
    }
    scores->ndcg_10 += gain_10 / ideal_gain(query, 10);
    scores->recall_10 += found_10 / (double)query->judgement_count;
    scores->recall_100 += found_100 / (double)query->judgement_count;
    scores->mrr += first;
    scores->zero_hits += count == 0;
    scores->query_count++;
}

void eval_mean(struct eval_scores *scores)
{
    const double count = scores->query_count ? (double)scores->query_count : 1;
    scores->ndcg_10 /= count;
    scores->recall_10 /= count;
    scores->recall_100 /= count;
    scores->mrr /= count;
    scores->zero_hits /= count;
    scores->took_ms /= count;
}
