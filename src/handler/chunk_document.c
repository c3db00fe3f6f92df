/* chunk-document: the stored text of the item's generation becomes chunk rows (TYPE-6). */
#include "handler/chunking.h"
#include "handler/handlers.h"
#include "handler/rebuild.h"

struct find_text {
    const struct qr_attempt *attempt;
    bool found;
    struct qr_artifact artifact;
};

static qr_rc find_text(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct find_text *find = arg;
    const struct qr_attempt *attempt = find->attempt;
    return qr_artifact_find(tx, attempt->item.id, QR_ARTIFACT_TEXT, attempt->item.generation, attempt->run->arena,
                            &find->found, &find->artifact, err);
}

static qr_rc chunk(struct qr_attempt *attempt, struct qr_stage_result *result, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    struct find_text find = {.attempt = attempt};
    QR_TRY(qr_db_read(attempt->run->db, find_text, &find, err));
    if (!find.found) {
        return qr_fail(err, QR_CODE_STAGE_SKIPPED, "the text of the document is not stored");
    }
    QR_TRY(qr_artifact_read(attempt->context->artifacts, attempt->run->db, &find.artifact, &text, err));
    QR_TRY(qr_index_require_own(attempt, err));
    QR_TRY(qr_write_text_chunks(attempt, &attempt->item, attempt->item.generation, qr_buf_str(&text),
                                &result->chunk_count, &result->token_count, err));
    qr_reach_chunks(attempt, result);
    return QR_OK;
}

void qr_handle_chunk_document(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin(&attempt, run, ret_outcome)) {
        return;
    }
    struct qr_stage_result *result = qr_arena_alloc(run->arena, sizeof *result);
    const qr_rc rc =
        result ? chunk(&attempt, result, &ret_outcome->error) : qr_handler_out_of_memory(&ret_outcome->error);
    qr_outcome_set(ret_outcome, rc, result);
    if (rc == QR_OK && result->reached == QR_REACHED_CHUNKS) {
        ret_outcome->level = QR_RELAXED;
    }
}
