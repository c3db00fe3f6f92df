/* index-chunks: vectors for all chunks of the item's generation; then it may go live (TYPE-6, EMPTY-2). */
#include "handler/embedding.h"
#include "handler/handlers.h"
#include "handler/rebuild.h"

static qr_rc index_chunks(struct qr_attempt *attempt, struct qr_stage_result *result, qr_err *err)
{
    struct qr_embedded embedded;
    QR_TRY(qr_index_require_own(attempt, err));
    QR_TRY(qr_embed_chunks(attempt, &attempt->item, attempt->item.generation, &embedded, err));
    if (embedded.failed_count > 0) {
        return qr_fail(err, QR_CODE_CHUNKS_FAILED, "%lld of %lld chunks cannot be embedded",
                       (long long)embedded.failed_count, (long long)embedded.chunk_count);
    }
    result->reached = QR_REACHED_INDEX;
    result->chunk_count = embedded.chunk_count;
    result->token_count = embedded.token_count;
    return QR_OK;
}

void qr_handle_index_chunks(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin(&attempt, run, ret_outcome)) {
        return;
    }
    struct qr_stage_result *result = qr_arena_alloc(run->arena, sizeof *result);
    const qr_rc rc =
        result ? index_chunks(&attempt, result, &ret_outcome->error) : qr_handler_out_of_memory(&ret_outcome->error);
    qr_outcome_set(ret_outcome, rc, result);
}
