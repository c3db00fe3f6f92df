/* A model that reads query and passage together says how well they fit: it is asked about the best hits, which get the order
 * that it says. It is a server elsewhere; where it does not answer in time the order from before stays. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "model/settings.h"

struct qr_endpoints;

enum { QR_RERANK_MS_MAX = 3000 }; /* somebody waits for the answer */

struct qr_reranker {
    int64_t document_bytes, request_bytes; /* of one document, and of all together; more must not be given */
    int64_t wait_ms;                       /* at most QR_RERANK_MS_MAX; 0 = that */
    bool (*is_cancelled)(void *arg);       /* may be NULL */
    void *cancel_arg;
    void *arg;
    /* Scores from 0 to 1; -1 of those that it says nothing of, but not all. */
    qr_rc (*score)(struct qr_reranker *reranker, qr_str query, const qr_str *documents, size_t count,
                   double *ret_scores, qr_err *err);
    void (*free)(struct qr_reranker *reranker);
};

/* NULL where the settings name none. */
qr_rc qr_reranker_create(struct qr_reranker **ret_reranker, const struct qr_rerank_settings *settings,
                         struct qr_endpoints *endpoints, const struct qr_clock *clock, qr_err *err);
void qr_reranker_free(struct qr_reranker *reranker);
