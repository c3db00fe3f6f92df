/* index-chunks: vectors for all chunks of the item's generation; then it may go live (TYPE-6, EMPTY-2). Documents that wait
 * together are embedded together, so that their chunks share calls; each has its own end. While another model is built,
 * vectors of that too, as far as it goes: its trouble is not the item's (MODEL-2). */
#include "handler/document.h"
#include "handler/embedding.h"
#include "handler/handlers.h"
#include "handler/rebuild.h"

/* *ret_has_all: the build need not care for this generation. */
static qr_rc embed_for_build(struct qr_attempt *attempt, bool *ret_has_all, qr_err *err)
{
    struct qr_embedded embedded;
    qr_err trouble = {0};
    qr_rc rc = QR_OK;
    if (qr_base_is_building(&attempt->base)) {
        rc = qr_embed_wanted_chunks(attempt, &attempt->item, attempt->item.generation, &embedded, &trouble);
    }
    *ret_has_all = rc == QR_OK;
    if (rc == QR_STALE) {
        *err = trouble;
        return rc;
    }
    return *ret_has_all ? QR_OK : qr_attempt_check(attempt, err); /* it may be this job's own end */
}

/* The result of a document that was embedded. */
static qr_rc take_result(struct qr_embed_document *document, struct qr_stage_result *result, qr_err *err)
{
    const struct qr_embedded *embedded = &document->embedded;
    if (document->rc != QR_OK) {
        *err = document->error;
        return document->rc;
    }
    if (embedded->failed_count > 0) {
        return qr_fail(err, QR_CODE_CHUNKS_FAILED, "%lld of %lld chunks cannot be embedded",
                       (long long)embedded->failed_count, (long long)embedded->chunk_count);
    }
    bool has_all;
    QR_TRY(embed_for_build(document->attempt, &has_all, err));
    result->reached = QR_REACHED_INDEX;
    result->vector_epoch = document->attempt->base.vector_epoch;
    result->lacks_wanted_vectors = !has_all;
    result->chunk_count = embedded->chunk_count;
    result->token_count = embedded->token_count;
    if (embedded->shortened_count == 0) {
        return QR_OK;
    }
    const char *message = qr_arena_printf(document->attempt->run->arena,
                                          "%lld of %lld chunks are too long for the model: of these, search by meaning "
                                          "knows the beginning only",
                                          (long long)embedded->shortened_count, (long long)embedded->chunk_count);
    return message ? qr_document_warn(document->attempt, result, "truncated", message, err)
                   : qr_handler_out_of_memory(err);
}

/* `stale_generation` is the outcome of an item that nobody wants any more, or of models that have changed meanwhile. */
static void set_outcome(struct qr_embed_document *document, struct qr_outcome *outcome)
{
    struct qr_attempt *attempt = document->attempt;
    struct qr_stage_result *result = qr_arena_alloc(attempt->run->arena, sizeof *result);
    const qr_rc rc =
        result ? take_result(document, result, &outcome->error) : qr_handler_out_of_memory(&outcome->error);
    qr_outcome_set(outcome, rc, result);
    qr_embedding_put_off(attempt->batcher, outcome);
}

static qr_rc prepare(struct qr_attempt *attempt, qr_err *err)
{
    struct qr_batcher *batcher;
    QR_TRY(qr_index_require_own(attempt, err));
    return qr_attempt_batcher(attempt, &batcher, err);
}

static struct qr_embed_document document_of(struct qr_attempt *attempt)
{
    return (struct qr_embed_document){.attempt = attempt,
                                      .item = &attempt->item,
                                      .generation = attempt->item.generation,
                                      .model = qr_model_key(&attempt->live)};
}

static void index_alone(struct qr_attempt *attempt, struct qr_outcome *outcome)
{
    *outcome = (struct qr_outcome){0};
    const qr_rc rc = prepare(attempt, &outcome->error);
    if (rc != QR_OK) {
        qr_outcome_set(outcome, rc, NULL);
        return;
    }
    struct qr_embed_document document = document_of(attempt);
    qr_embed_documents(attempt->batcher, &document, 1);
    set_outcome(&document, outcome);
}

static bool is_stale(const struct qr_outcome *outcome)
{
    return outcome->kind == QR_OUTCOME_SKIPPED && outcome->error.code == QR_CODE_STALE;
}

void qr_handle_index_chunks(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin(&attempt, run, ret_outcome)) {
        return;
    }
    do {
        index_alone(&attempt, ret_outcome);
        /* where the models change meanwhile it begins again: what was embedded before is in the cache */
    } while (is_stale(ret_outcome) && qr_attempt_reload_base(&attempt, &ret_outcome->error) == QR_OK);
}

/* ---- several ---- */

struct several {
    struct qr_attempt attempts[QR_TOGETHER_MAX];
    struct qr_embed_document documents[QR_TOGETHER_MAX];
    size_t positions[QR_TOGETHER_MAX]; /* of each document among the attempts */
};

/* Those of one model, whatever bases they are of. */
static void embed_group(struct several *several, struct qr_batcher *batcher, bool *is_due, size_t count,
                        struct qr_outcome *const *outcomes)
{
    size_t documents = 0;
    for (size_t i = 0; i < count; i++) {
        struct qr_attempt *attempt = &several->attempts[i];
        if (is_due[i] && attempt->batcher == batcher) {
            is_due[i] = false;
            several->positions[documents] = i;
            several->documents[documents++] = document_of(attempt);
        }
    }
    qr_embed_documents(batcher, several->documents, documents);
    for (size_t i = 0; i < documents; i++) {
        struct qr_outcome *outcome = outcomes[several->positions[i]];
        if (!several->documents[i].is_large) {
            set_outcome(&several->documents[i], outcome);
        }
        if (several->documents[i].is_large || is_stale(outcome)) {
            *outcome = (struct qr_outcome){.kind = QR_OUTCOME_ALONE};
        }
    }
}

static void embed_several(struct several *several, size_t count, struct qr_outcome *const *outcomes)
{
    bool is_due[QR_TOGETHER_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        if (outcomes[i]->kind == QR_OUTCOME_NONE) {
            const qr_rc rc = prepare(&several->attempts[i], &outcomes[i]->error);
            is_due[i] = rc == QR_OK;
            if (rc != QR_OK) {
                qr_outcome_set(outcomes[i], rc, NULL);
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (is_due[i]) {
            embed_group(several, several->attempts[i].batcher, is_due, count, outcomes);
        }
    }
}

void qr_handle_index_chunks_together(struct qr_job_run *const *runs, size_t count,
                                     struct qr_outcome *const *ret_outcomes)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct several *several = qr_arena_alloc(&arena, sizeof *several);
    if (!several) {
        for (size_t i = 0; i < count; i++) {
            ret_outcomes[i]->kind = QR_OUTCOME_ALONE;
        }
        return;
    }
    qr_attempts_begin(several->attempts, runs, count, &arena, ret_outcomes);
    embed_several(several, count, ret_outcomes);
    for (size_t i = 0; i < count; i++) {
        qr_attempt_done(&several->attempts[i]);
    }
}
