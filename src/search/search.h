/* Search: the passages of a base that fit what a person typed, among those that may be shown now. By words, by vectors, or by
 * both; S1 to S3 of search/scan.h hold. */
#pragma once

#include "embed/batcher.h"
#include "search/filter.h"
#include "search/fuse.h"
#include "search/highlight.h"
#include "search/rerank.h"
#include "search/visible.h"
#include "store/bases.h"

enum {
    QR_SEARCH_TOP_K_MAX = 100,
    QR_SEARCH_CONTEXT_MAX = 10,
    QR_QUERY_BYTES_MAX = 128 << 10,
    QR_MODEL_WAIT_MS = 3000, /* longer nobody looks at an empty screen: then it is by words */
};

enum qr_search_mode { QR_MODE_AUTO, QR_MODE_TEXT, QR_MODE_VECTOR, QR_MODE_HYBRID, QR_MODE_COUNT };
const char *qr_search_mode_name(enum qr_search_mode mode);
/* QR_MODE_COUNT when there is none of that name. */
enum qr_search_mode qr_search_mode_find(const char *name);

struct qr_search_base {
    qr_uuid id;
    struct qr_batcher *batcher; /* of its model; NULL = the base has no vectors */
    int64_t model;              /* of its vectors: qr_model_key */
};

enum { QR_SEARCH_BASES_MAX = 32 };

struct qr_search {
    struct qr_db *db;
    struct qr_index_set *index;
    struct qr_visible_memory *memory; /* NULL = each search begins with knowing nothing */
    struct qr_batcher *batcher;       /* of the base's model; NULL = it has no vectors */
    int64_t model;                    /* of its vectors: qr_model_key */
    qr_uuid base_id;
    const struct qr_search_base *bases; /* instead of the three above: several, searched as if they were one */
    size_t base_count;                  /* at most QR_SEARCH_BASES_MAX */
    const struct qr_clock *clock;       /* NULL = the system's */
    int64_t model_wait_ms;              /* so long a model has time to read the query; 0 = QR_MODEL_WAIT_MS */
    bool (*is_cancelled)(void *arg);    /* whether no model is waited for any more; may be NULL */
    void *cancel_arg;
    qr_str query; /* valid UTF-8, at most QR_QUERY_BYTES_MAX */
    enum qr_search_mode mode;
    int top_k;        /* 1 to QR_SEARCH_TOP_K_MAX */
    double threshold; /* hits of the vectors with a smaller cosine are none; 0 = none */
    struct qr_fusion_options fusion;
    struct qr_search_filter filter; /* what the query says of items comes to it */
    int context;                    /* so many neighbours before and behind each hit are shown with it */
    bool keeps_chunks;              /* hits beside each other are not made one passage */
    double diversity;               /* 0 = off, to 1; search/diverse.h */
    int rerank_top_n;               /* so many of the best hits get the order that the reranker says; 0 = none */
    struct qr_reranker *reranker;   /* NULL = there is none: the answer says so where it was asked for */
};

struct qr_search_hit {
    struct qr_fused found;
    const struct qr_item *item;
    struct qr_chunk_row row; /* the passage: of the chunk, and its neighbours */
    struct qr_range *highlights;
    size_t highlight_count;
    /* of an answer that was reranked: where it was before, and its score then; -1 = the reranker says nothing of it */
    int fused_rank;
    double fused_score, rerank_score;
};

/* Why an answer is not what was asked for. */
enum qr_degraded {
    QR_DEGRADED_VECTOR = QR_BIT(0),    /* a base without vectors now: by words only */
    QR_DEGRADED_THRESHOLD = QR_BIT(1), /* scores of words have no threshold */
    QR_DEGRADED_QUERY = QR_BIT(2),     /* only a part of the query was used */
    QR_DEGRADED_MODELS = QR_BIT(3), /* bases have vectors of different models: mixed by rank and share, not by cosine */
    QR_DEGRADED_RERANK = QR_BIT(4), /* the order is the one before reranking */
};

struct qr_search_answer {
    struct qr_search_hit *hits; /* best first */
    size_t count;
    enum qr_search_mode mode; /* as it was done */
    uint32_t degraded;        /* enum qr_degraded */
    bool is_relaxed;          /* what must occur did not: some hits fit a part */
    bool is_fused;            /* scores are of several legs; else those of the one that there was */
    struct qr_wanted wanted;  /* the words that were looked for */
    bool is_reranked;         /* scores are the reranker's */
    size_t rerank_count;      /* so many hits were given to it */
    qr_err rerank_error;      /* why it was of no use; else its code is QR_CODE_NONE */
};

/* Everything lives in the arena. */
qr_rc qr_search_run(const struct qr_search *search, struct qr_arena *arena, struct qr_search_answer *ret_answer,
                    qr_err *err);
