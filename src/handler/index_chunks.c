/* index-chunks: vectors for all chunks of the item's generation; then it may go live (TYPE-6, EMPTY-2). Documents are embedded
 * in a stream, so that their chunks share calls and a server is never left without any; each has its own end. While another
 * model is built, vectors of that too, as far as it goes: its trouble is not the item's (MODEL-2). */
#include "base/mem.h"
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
        const char *words = document->owner.refusal.msg; /* "" where they failed in an earlier attempt */
        return qr_fail(err, QR_CODE_CHUNKS_FAILED, "%lld of %lld chunks cannot be embedded%s%s",
                       (long long)embedded->failed_count, (long long)embedded->chunk_count, words[0] ? ": " : "",
                       words);
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
    return qr_embed_document_of(attempt, &attempt->item, attempt->item.generation, qr_model_key(&attempt->live));
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

/* ---- a stream of them ---- */

enum { BATCH_MAX = 64 };

/* Documents that were taken together: what they share lives until the last of them has ended. */
struct batch {
    struct qr_arena arena;
    size_t open_count;
    struct qr_attempt attempts[BATCH_MAX];
    struct qr_embed_document documents[BATCH_MAX];
    struct qr_job_run *runs[BATCH_MAX];
    struct qr_outcome *outcomes[BATCH_MAX];
};

struct stream {
    struct qr_job_stream *jobs;
    struct qr_batcher *batcher;              /* of those that are embedded now */
    struct qr_embed_document *first, **last; /* taken, and not begun to be embedded */
};

static void batch_put(struct batch *batch)
{
    if (--batch->open_count == 0) {
        qr_arena_done(&batch->arena);
        qr_free(batch);
    }
}

static void end_one(const struct stream *stream, struct batch *batch, size_t i)
{
    qr_attempt_done(&batch->attempts[i]);
    stream->jobs->end(stream->jobs, batch->runs[i]);
    batch_put(batch);
}

static void begin_one(struct stream *stream, struct batch *batch, size_t i)
{
    struct qr_outcome *outcome = batch->outcomes[i];
    const qr_rc rc = outcome->kind == QR_OUTCOME_NONE ? prepare(&batch->attempts[i], &outcome->error) : QR_OK;
    if (rc != QR_OK) {
        qr_outcome_set(outcome, rc, NULL);
    }
    if (outcome->kind != QR_OUTCOME_NONE) {
        end_one(stream, batch, i);
        return;
    }
    struct qr_embed_document *document = &batch->documents[i];
    *document = document_of(&batch->attempts[i]);
    document->taken_with = batch;
    *stream->last = document;
    stream->last = &document->next;
}

static void take_batch(struct stream *stream, size_t max, size_t room)
{
    struct batch *batch = qr_alloc_zero(sizeof *batch);
    if (!batch) {
        return; /* what was begun is left to be done alone */
    }
    const size_t count =
        stream->jobs->take(stream->jobs, QR_MIN(max, (size_t)BATCH_MAX), room, batch->runs, batch->outcomes);
    qr_arena_init(&batch->arena, 0);
    batch->open_count = count + 1;
    qr_attempts_begin(batch->attempts, batch->runs, count, &batch->arena, batch->outcomes);
    for (size_t i = 0; i < count; i++) {
        begin_one(stream, batch, i);
    }
    batch_put(batch);
}

/* Of one model, whatever bases they are of. While others wait nothing more is taken: they are next. A model in this process has
 * only those that its thread began with: others of its threads may be waiting for the rest. */
static struct qr_embed_document *take_documents(void *arg, size_t max, size_t room)
{
    struct stream *stream = arg;
    struct qr_embed_document *taken = NULL, **end = &taken;
    if (!stream->first && stream->batcher && qr_batcher_provider(stream->batcher)->call_threads > 0) {
        take_batch(stream, max, room);
    }
    for (struct qr_embed_document **link = &stream->first; *link;) {
        struct qr_embed_document *document = *link;
        if (document->attempt->batcher == stream->batcher) {
            *link = document->next;
            document->next = NULL;
            *end = document;
            end = &document->next;
        } else {
            link = &document->next;
        }
        stream->last = link;
    }
    stream->last = stream->first ? stream->last : &stream->first;
    return taken;
}

static void end_document(void *arg, struct qr_embed_document *document)
{
    struct batch *batch = document->taken_with;
    const size_t i = (size_t)(document - batch->documents);
    struct qr_outcome *outcome = batch->outcomes[i];
    if (!document->is_large) {
        set_outcome(document, outcome);
    }
    if (document->is_large || is_stale(outcome)) {
        *outcome = (struct qr_outcome){.kind = QR_OUTCOME_ALONE};
    }
    end_one(arg, batch, i);
}

/* The batcher is held for as long as anything of it is looked at: documents give theirs back one by one. */
static void embed_next(struct stream *stream)
{
    const struct qr_attempt *attempt = stream->first->attempt;
    struct qr_providers *providers = attempt->context->providers;
    struct qr_batcher *held = NULL;
    const struct qr_embed_feed feed = {take_documents, end_document, stream};
    stream->batcher = attempt->batcher;
    (void)!qr_providers_get(providers, &attempt->live, &held, NULL);
    qr_embed_stream(stream->batcher, &feed);
    qr_providers_put(providers, held);
}

void qr_handle_index_chunks_stream(struct qr_job_stream *jobs)
{
    struct stream stream = {.jobs = jobs};
    stream.last = &stream.first;
    take_batch(&stream, QR_TOGETHER_MAX, 0);
    while (stream.first) {
        embed_next(&stream);
    }
}
