/* What is sent to a server that reranks, and what it answers. Pure. Private to src/search/. */
#pragma once

#include "base/buf.h"

struct qr_rerank_request {
    bool is_tei;       /* `texts` and no model; else `documents`, as Cohere and Jina have it */
    const char *model; /* "" = the server's own */
    qr_str query;
    const qr_str *documents;
    size_t count;
};

void qr_rerank_write(const struct qr_rerank_request *request, struct qr_buf *out);

/* The scores of `count` documents, from 0 to 1; -1 of those that the server left out. Of one that is named twice the better
 * score counts. `unavailable`: it is no such answer, names a document that it was not given, or has no score at all.
 *
 * Taken are {"results": […]}, {"data": […]} and a bare list, of {"index", "relevance_score" or "score"}. Where a score is not
 * between 0 and 1 they are logits, all of them. */
qr_rc qr_rerank_read(qr_str answer, size_t count, double *ret_scores, qr_err *err);
