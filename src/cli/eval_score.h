/* How good a ranking is. Pure. */
#pragma once

#include "cli/eval_set.h"

enum { EVAL_DEPTH = 100 };

struct eval_scores {
    double ndcg_10, recall_10, recall_100, mrr; /* sums over the queries until eval_mean */
    double zero_hits;                           /* queries that found nothing */
    double took_ms;
    size_t query_count;
};

/* Adds what a query found: `ranking` are places of documents, best first, each once, at most EVAL_DEPTH. */
void eval_add(struct eval_scores *scores, const struct eval_query *query, const size_t *ranking, size_t count);
/* From sums to means. */
void eval_mean(struct eval_scores *scores);
