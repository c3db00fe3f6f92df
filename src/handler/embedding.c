/* Embedding, and its one promise about money: at most one batch is paid for twice after a crash (PAID-1, I8). Before each
 * call it is asked whether the result is still wanted (GEN-1). */
#include "handler/embedding.h"

#include "base/failpoint.h"
#include "store/vectors.h"

enum { INPUTS_A_BATCH = 32, ROWS_A_PAGE = 500 };

struct batch {
    struct qr_attempt *attempt;
    struct qr_provider *provider;
    struct qr_chunk_row *rows;
    size_t count;
    unsigned char (*keys)[QR_VECTOR_KEY_BYTES];
    float *vectors; /* one after the other */
    bool *has_vector;
    size_t *missing; /* which of them the provider is asked for */
    size_t missing_count;
    struct qr_embedding *embeddings; /* of those */
};

static float *vector_of(const struct batch *batch, size_t index)
{
    return batch->vectors + index * (size_t)batch->provider->dimension;
}

static qr_rc batch_init(struct batch *batch, struct qr_arena *arena, qr_err *err)
{
    const size_t count = batch->count;
    batch->keys = qr_arena_array(arena, count, sizeof batch->keys[0]);
    batch->vectors = qr_arena_array(arena, count * (size_t)batch->provider->dimension, sizeof(float));
    batch->has_vector = qr_arena_array(arena, count, sizeof(bool));
    batch->missing = qr_arena_array(arena, count, sizeof(size_t));
    batch->embeddings = qr_arena_array(arena, count, sizeof batch->embeddings[0]);
    if (!batch->keys || !batch->vectors || !batch->has_vector || !batch->missing || !batch->embeddings) {
        return qr_handler_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        qr_vector_key(batch->provider->fingerprint, batch->rows[i].chunk.text, batch->keys[i]);
    }
    return QR_OK;
}

/* ---- the cache ---- */

static qr_rc look_up(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct batch *batch = arg;
    batch->missing_count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        QR_TRY(qr_vector_find(tx, batch->keys[i], batch->provider->dimension, vector_of(batch, i),
                              &batch->has_vector[i], err));
        if (!batch->has_vector[i]) {
            batch->missing[batch->missing_count++] = i;
        }
    }
    return QR_OK;
}

static qr_rc store(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct batch *batch = arg;
    for (size_t i = 0; i < batch->missing_count; i++) {
        const size_t index = batch->missing[i];
        if (!batch->embeddings[i].has_failed) {
            QR_TRY(qr_vector_add(tx, batch->keys[index], vector_of(batch, index), batch->provider->dimension, err));
        }
    }
    QR_FAILPOINT("embed.batch.before_commit", err);
    return QR_OK;
}

/* ---- the provider ---- */

static qr_rc call_provider(struct batch *batch, struct qr_arena *arena, qr_err *err)
{
    qr_str *texts = qr_arena_array(arena, batch->missing_count, sizeof texts[0]);
    if (!texts) {
        return qr_handler_out_of_memory(err);
    }
    for (size_t i = 0; i < batch->missing_count; i++) {
        texts[i] = batch->rows[batch->missing[i]].chunk.text;
        batch->embeddings[i] = (struct qr_embedding){.vector = vector_of(batch, batch->missing[i])};
    }
    QR_TRY(qr_attempt_check(batch->attempt, err));
    QR_TRY(batch->provider->embed(batch->provider, texts, batch->missing_count, batch->embeddings, err));
    /* not under the fence: what was paid for is kept, whoever the job belongs to by now */
    QR_TRY(qr_db_write(batch->attempt->run->db, QR_DURABLE, store, batch, err));
    QR_FAILPOINT("embed.batch.stored", err);
    for (size_t i = 0; i < batch->missing_count; i++) {
        batch->has_vector[batch->missing[i]] = !batch->embeddings[i].has_failed;
    }
    return QR_OK;
}

static qr_rc write_vectors(struct batch *batch, const struct qr_item *item, int64_t generation, struct qr_arena *arena,
                           qr_err *err)
{
    const struct qr_index_guard guard = qr_attempt_guard(batch->attempt);
    struct qr_chunk_vector *vectors = qr_arena_array(arena, batch->count, sizeof vectors[0]);
    if (!vectors) {
        return qr_handler_out_of_memory(err);
    }
    for (size_t i = 0; i < batch->count; i++) {
        vectors[i] =
            (struct qr_chunk_vector){batch->rows[i].chunk.ordinal, batch->has_vector[i] ? vector_of(batch, i) : NULL};
    }
    return qr_index_write_vectors(batch->attempt->context->index, item->base_id, item->id, generation,
                                  batch->provider->dimension, vectors, batch->count, &guard, err);
}

static qr_rc embed_batch(struct batch *batch, const struct qr_item *item, int64_t generation, struct qr_arena *arena,
                         qr_err *err)
{
    QR_TRY(batch_init(batch, arena, err));
    QR_TRY(qr_db_read(batch->attempt->run->db, look_up, batch, err));
    if (batch->missing_count > 0) {
        QR_TRY(call_provider(batch, arena, err));
    }
    return write_vectors(batch, item, generation, arena, err);
}

/* A chunk that is done has a vector or is marked as failed, so what is asked for next is always what is left. */
static qr_rc embed_all(struct qr_attempt *attempt, struct qr_provider *provider, const struct qr_item *item,
                       int64_t generation, qr_err *err)
{
    const int limit = QR_MAX(1, QR_MIN(provider->batch_inputs_max, (int)INPUTS_A_BATCH));
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    int64_t done = 0;
    for (;;) {
        struct batch batch = {.attempt = attempt, .provider = provider};
        qr_arena_reset(&arena);
        QR_TRY(qr_attempt_go_on(attempt, err));
        QR_TRY(qr_index_chunks(attempt->context->index, item->base_id, item->id, generation, 0, true, limit, &arena,
                               &batch.rows, &batch.count, err));
        if (batch.count == 0) {
            return QR_OK;
        }
        QR_TRY(embed_batch(&batch, item, generation, &arena, err));
        done += (int64_t)batch.count;
        if (qr_uuid_equal(item->id, attempt->item.id)) {
            qr_job_progress(attempt->run, done, 0);
        }
    }
}

/* ---- counting ---- */

static qr_rc count_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation,
                          struct qr_embedded *ret_embedded, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_embedded embedded = {0};
    size_t count = 0;
    int64_t from = 0;
    do {
        struct qr_chunk_row *rows;
        qr_arena_reset(&arena);
        QR_TRY(qr_attempt_go_on(attempt, err));
        QR_TRY(qr_index_chunks(attempt->context->index, item->base_id, item->id, generation, from, false, ROWS_A_PAGE,
                               &arena, &rows, &count, err));
        for (size_t i = 0; i < count; i++) {
            embedded.token_count += rows[i].chunk.token_count;
            embedded.failed_count += rows[i].has_failed;
            from = rows[i].chunk.ordinal + 1;
        }
        embedded.chunk_count += (int64_t)count;
    } while (count == ROWS_A_PAGE);
    *ret_embedded = embedded;
    return QR_OK;
}

qr_rc qr_embed_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation,
                      struct qr_embedded *ret_embedded, qr_err *err)
{
    struct qr_provider *provider;
    QR_TRY(qr_attempt_provider(attempt, &provider, err));
    if (provider) {
        const int dimensions = attempt->settings.embedding.dimensions;
        if (dimensions && provider->dimension != dimensions) {
            return qr_fail(err, QR_CODE_DIMENSION_MISMATCH, "the provider's vectors have %d dimensions, the base's %d",
                           provider->dimension, dimensions);
        }
        QR_TRY(embed_all(attempt, provider, item, generation, err));
    }
    return count_chunks(attempt, item, generation, ret_embedded, err);
}
