/* One search under way: what the files of src/search/ hand on to each other. Private to them.
 *
 *     search.c         reads the query, has the legs run, fuses them, has them shown
 *     legs.c           the words and the vectors of each base
 *     several_bases.c  the words of several bases as if they were one
 *     show.c           from places to passages
 *     reorder.c        has a reranker put them in another order */
#pragma once

#include "search/scan.h"
#include "search/search.h"
#include "text/tokens.h"

struct qr_searched_base {
    qr_uuid id;
    struct qr_batcher *batcher; /* NULL = the base has no vectors */
    int64_t model;              /* of its vectors */
    const float *query_vector;  /* NULL = there is none */
    int dimension;              /* of it */
    struct qr_scan scan;
    struct qr_leg_hits text, vector;
    size_t fitting_count; /* so many of the text's hits fit all of the query, those behind them a part */
};

/* Whether their vectors can be compared. */
static inline bool qr_bases_share_vectors(const struct qr_searched_base *a, const struct qr_searched_base *b)
{
    return a->batcher && b->batcher &&
           strcmp(qr_batcher_provider(a->batcher)->fingerprint, qr_batcher_provider(b->batcher)->fingerprint) == 0;
}

struct qr_searching {
    const struct qr_search *search;
    struct qr_arena *arena;
    struct qr_search_answer *answer;
    struct qr_query query;
    struct qr_search_filter filter;
    struct qr_tokenizer *tokenizer;
    struct qr_searched_base *bases;
    size_t base_count;
    qr_languages languages;      /* of all bases */
    struct qr_index_hit *scored; /* what the reranker has scored; NULL = it was not asked yet */
    size_t scored_count;
};

/* Has the models read the query, once for all rounds; says in the answer which do not. */
qr_rc qr_legs_begin(struct qr_searching *searching, qr_err *err);
/* Fills in the hits of both legs of all bases, at most `wanted` of each; says in the answer what was left out. */
qr_rc qr_legs_run(struct qr_searching *searching, int wanted, qr_err *err);

/* What the query means: its words, without what excludes and what is about items. */
void qr_write_meaning(const struct qr_searching *searching, struct qr_buf *out);

/* The text's hits of all bases in one order, best first. */
qr_rc qr_common_text(struct qr_searching *searching, struct qr_leg_hits *ret_hits, qr_err *err);

enum { QR_PASSAGE_CHUNKS_MAX = 5 }; /* joined as one: longer ones say less about where it is */

/* Makes the answer's hits of the best of the fused, without their highlights. */
qr_rc qr_show(struct qr_searching *searching, const struct qr_fused *fused, size_t count, qr_err *err);
/* Fills in the rows of the hits, each for itself; those that there still are. */
qr_rc qr_show_load(struct qr_searching *searching, struct qr_search_hit **hits, size_t *count, qr_err *err);
/* Puts the hits in the order that the reranker says, where the search has one and it answers. */
qr_rc qr_reorder(struct qr_searching *searching, struct qr_search_hit **hits, size_t *count, qr_err *err);
qr_rc qr_show_highlights(struct qr_searching *searching, qr_err *err);

/* The score of a hit that fits a part of the query, behind the one before it. */
static inline double qr_score_below(double score, double before)
{
    return QR_MIN(score, before * 0.999);
}

static inline qr_rc qr_search_out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
}
