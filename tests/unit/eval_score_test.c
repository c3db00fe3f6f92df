/* Measures of a ranking against figures worked out by hand, as trec_eval counts. */
#include "cli/eval_score.h"

#include "support/test.h"

#include <math.h>

static void check_near(double expected, double actual)
{
    if (fabs(expected - actual) > 1e-9) {
        QR_FAIL("%.12f, not %.12f", actual, expected);
    }
}

static struct eval_judgement judgements[] = {{10, 2}, {20, 1}, {30, 1}};
static const struct eval_query query = {.judgements = judgements, .judgement_count = QR_COUNT(judgements)};

QR_TEST(the_best_order_scores_one)
{
    struct eval_scores scores = {0};
    eval_add(&scores, &query, (const size_t[]){10, 20, 30}, 3);
    eval_mean(&scores);
    check_near(1, scores.ndcg_10);
    check_near(1, scores.recall_10);
    check_near(1, scores.recall_100);
    check_near(1, scores.mrr);
    check_near(0, scores.zero_hits);
}

QR_TEST(gains_are_discounted_by_rank)
{
    struct eval_scores scores = {0};
    eval_add(&scores, &query, (const size_t[]){7, 20, 8, 10}, 4);
    eval_mean(&scores);
    const double gain = 1 / log2(3) + 2 / log2(5), ideal = 2 + 1 / log2(3) + 0.5;
    check_near(gain / ideal, scores.ndcg_10);
    check_near(2.0 / 3, scores.recall_10);
    check_near(0.5, scores.mrr);
}

QR_TEST(what_stands_below_ten_counts_for_recall_at_100_alone)
{
    struct eval_scores scores = {0};
    size_t ranking[12] = {100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 10, 20};
    eval_add(&scores, &query, ranking, QR_COUNT(ranking));
    eval_mean(&scores);
    check_near(0, scores.ndcg_10);
    check_near(0, scores.recall_10);
    check_near(2.0 / 3, scores.recall_100);
    check_near(1.0 / 11, scores.mrr);
}

QR_TEST(means_are_over_all_queries_also_those_that_found_nothing)
{
    struct eval_scores scores = {0};
    eval_add(&scores, &query, (const size_t[]){10, 20, 30}, 3);
    eval_add(&scores, &query, NULL, 0);
    eval_mean(&scores);
    check_near(0.5, scores.ndcg_10);
    check_near(0.5, scores.mrr);
    check_near(0.5, scores.zero_hits);
    QR_CHECK_INT(2, (long long)scores.query_count);
    struct eval_scores none = {0};
    eval_mean(&none);
    check_near(0, none.ndcg_10);
}
