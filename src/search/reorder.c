/* Has the reranker put the best hits in a new order. It is asked once a search: what a further round finds comes
 * behind what it has scored, in the order from before. */
#include "search/parts.h"

#include <stdlib.h>

static qr_rc write_document(const struct qr_searching *searching, const struct qr_search_hit *hit, qr_str *ret_text,
                            qr_err *err)
{
    const struct qr_reranker *reranker = searching->search->reranker;
    const size_t bytes_max = (size_t)QR_MIN(reranker->document_bytes, reranker->request_bytes);
    const qr_str heading = hit->row.chunk.heading, text = hit->row.chunk.text;
    QR_CLEANUP(qr_buf_done) struct qr_buf document = {0};
    if (heading.len) {
        qr_buf_add(&document, heading);
        qr_buf_add_text(&document, "\n\n");
    }
    qr_buf_add(&document, text);
    QR_TRY(qr_buf_check(&document, err));
    const qr_str cut = qr_utf8_prefix(qr_buf_str(&document), bytes_max);
    const char *copy = qr_arena_copy(searching->arena, cut);
    *ret_text = (qr_str){copy, cut.len};
    return copy ? QR_OK : qr_search_out_of_memory(err);
}

/* As many of the first hits as may be sent. */
static qr_rc write_documents(const struct qr_searching *searching, const struct qr_search_hit *hits, size_t hit_count,
                             qr_str *documents, size_t *ret_count, qr_err *err)
{
    const struct qr_search *search = searching->search;
    const size_t count = QR_MIN(hit_count, (size_t)search->rerank_top_n);
    size_t sum = 0;
    for (*ret_count = 0; *ret_count < count; (*ret_count)++) {
        QR_TRY(write_document(searching, &hits[*ret_count], &documents[*ret_count], err));
        sum += documents[*ret_count].len;
        if (sum > (size_t)search->reranker->request_bytes) {
            break;
        }
    }
    return QR_OK;
}

/* Fills in `scored`. What is wrong with the reranker is the answer's to say, and no failure of the search. */
static qr_rc ask(struct qr_searching *searching, const struct qr_search_hit *hits, size_t hit_count, qr_err *err)
{
    struct qr_reranker *reranker = searching->search->reranker;
    struct qr_search_answer *answer = searching->answer;
    QR_CLEANUP(qr_buf_done) struct qr_buf query = {0};
    qr_str *documents = qr_arena_array(searching->arena, hit_count + 1, sizeof *documents);
    double *scores = qr_arena_array(searching->arena, hit_count + 1, sizeof *scores);
    size_t count;
    searching->scored = qr_arena_array(searching->arena, hit_count + 1, sizeof *searching->scored);
    if (!documents || !scores || !searching->scored) {
        return qr_search_out_of_memory(err);
    }
    QR_TRY(write_documents(searching, hits, hit_count, documents, &count, err));
    qr_write_meaning(searching, &query);
    QR_TRY(qr_buf_check(&query, err));
    if (count == 0 || query.len == 0) {
        return QR_OK;
    }
    const qr_str asked = qr_utf8_prefix(qr_buf_str(&query), (size_t)reranker->document_bytes);
    if (reranker->score(reranker, asked, documents, count, scores, &answer->rerank_error) != QR_OK) {
        answer->degraded |= QR_DEGRADED_RERANK;
        return QR_OK;
    }
    answer->is_reranked = true;
    answer->rerank_count = count;
    for (size_t i = 0; i < count; i++) {
        if (scores[i] >= 0) {
            searching->scored[searching->scored_count] = hits[i].found.hit;
            searching->scored[searching->scored_count++].score = scores[i];
        }
    }
    return QR_OK;
}

static double score_of(const struct qr_searching *searching, const struct qr_index_hit *hit)
{
    for (size_t i = 0; i < searching->scored_count; i++) {
        const struct qr_index_hit *scored = &searching->scored[i];
        if (scored->ordinal == hit->ordinal && scored->generation == hit->generation &&
            qr_uuid_equal(scored->item_id, hit->item_id)) {
            return scored->score;
        }
    }
    return -1;
}

/* Those without a score last; equal ones as they were. */
static int compare(const void *a, const void *b)
{
    const struct qr_search_hit *first = a, *second = b;
    return first->rerank_score != second->rerank_score ? (first->rerank_score < second->rerank_score ? 1 : -1)
                                                       : first->fused_rank - second->fused_rank;
}

qr_rc qr_reorder(struct qr_searching *searching, struct qr_search_hit **hits, size_t *count, qr_err *err)
{
    const struct qr_search *search = searching->search;
    if (search->rerank_top_n == 0) {
        return QR_OK;
    }
    if (!search->reranker) {
        searching->answer->degraded |= QR_DEGRADED_RERANK;
        return QR_OK;
    }
    if (!searching->scored) {
        QR_TRY(qr_show_load(searching, hits, count, err));
        QR_TRY(ask(searching, *hits, *count, err));
    }
    if (!searching->answer->is_reranked) {
        return QR_OK;
    }
    for (size_t i = 0; i < *count; i++) {
        struct qr_search_hit *hit = &(*hits)[i];
        hit->fused_rank = (int)i + 1;
        hit->fused_score = hit->found.hit.score;
        hit->rerank_score = score_of(searching, &hit->found.hit);
        hit->found.hit.score = QR_MAX(hit->rerank_score, 0);
    }
    qsort(*hits, *count, sizeof **hits, compare);
    return QR_OK;
}
