/* Goes through the index once, as a build would; of what has no vector it looks up the cache, for as many chunks as a person
 * waits for. */
#include "handler/estimate.h"

#include "base/mem.h"
#include "model/model_key.h"
#include "store/items.h"
#include "store/vectors.h"

enum { EXTENTS_A_PAGE = 200, CHUNKS_A_PAGE = 200, LOOKED_UP_MAX = 20000 };

struct estimating {
    struct qr_db *db;
    struct qr_index_set *index;
    qr_uuid base_id;
    int64_t model;
    char fingerprint[QR_FINGERPRINT_SIZE];
    struct qr_arena arena; /* of a page */
    struct qr_index_extent extents[EXTENTS_A_PAGE];
    bool is_live[EXTENTS_A_PAGE];
    size_t extent_count;
    struct qr_chunk_row *rows;
    size_t row_count;
    int64_t missing;                            /* without a vector in the index */
    int64_t looked_up, found, tokens_not_found; /* of those */
};

static qr_rc find_live(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct estimating *estimating = arg;
    qr_arena_reset(&estimating->arena);
    for (size_t i = 0; i < estimating->extent_count; i++) {
        const struct qr_index_extent *extent = &estimating->extents[i];
        struct qr_item item;
        bool found;
        QR_TRY(qr_item_find(tx, extent->item_id, &estimating->arena, &found, &item, err));
        estimating->is_live[i] = found && item.live_generation == extent->generation;
    }
    return QR_OK;
}

struct page_count {
    struct estimating *estimating;
    int64_t found, tokens_not_found;
};

static qr_rc look_up_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct page_count *page = arg;
    page->found = page->tokens_not_found = 0;
    for (size_t i = 0; i < page->estimating->row_count; i++) {
        const struct qr_chunk *chunk = &page->estimating->rows[i].chunk;
        unsigned char key[QR_VECTOR_KEY_BYTES];
        bool exists;
        qr_vector_key(page->estimating->fingerprint, chunk->text, key);
        QR_TRY(qr_vector_exists(tx, key, &exists, err));
        page->found += exists;
        page->tokens_not_found += exists ? 0 : chunk->token_count;
    }
    return QR_OK;
}

static qr_rc look_up(struct estimating *estimating, const struct qr_index_extent *extent, qr_err *err)
{
    int64_t from = 0;
    do {
        struct page_count page = {.estimating = estimating};
        qr_arena_reset(&estimating->arena);
        QR_TRY(qr_index_chunks_without_vector(estimating->index, estimating->base_id, extent->item_id,
                                              extent->generation, from, estimating->model, CHUNKS_A_PAGE,
                                              &estimating->arena, &estimating->rows, &estimating->row_count, err));
        QR_TRY(qr_db_read(estimating->db, look_up_page, &page, err));
        estimating->looked_up += (int64_t)estimating->row_count;
        estimating->found += page.found;
        estimating->tokens_not_found += page.tokens_not_found;
        from = estimating->row_count ? estimating->rows[estimating->row_count - 1].chunk.ordinal + 1 : from;
    } while (estimating->row_count == CHUNKS_A_PAGE && estimating->looked_up < LOOKED_UP_MAX);
    return QR_OK;
}

static qr_rc go_through(struct estimating *estimating, struct qr_estimate *estimate, qr_err *err)
{
    qr_uuid after = {0};
    int64_t after_generation = 0;
    do {
        QR_TRY(qr_index_extents(estimating->index, estimating->base_id, estimating->model, after, after_generation,
                                EXTENTS_A_PAGE, estimating->extents, &estimating->extent_count, err));
        QR_TRY(qr_db_read(estimating->db, find_live, estimating, err));
        for (size_t i = 0; i < estimating->extent_count; i++) {
            const struct qr_index_extent *extent = &estimating->extents[i];
            const int64_t missing = extent->chunk_count - extent->vector_count - extent->failed_count;
            after = extent->item_id;
            after_generation = extent->generation;
            if (!estimating->is_live[i]) {
                continue;
            }
            estimate->chunks += extent->chunk_count;
            estimating->missing += missing;
            if (missing > 0 && estimating->model && estimating->looked_up < LOOKED_UP_MAX) {
                QR_TRY(look_up(estimating, extent, err));
            }
        }
    } while (estimating->extent_count == EXTENTS_A_PAGE);
    return QR_OK;
}

qr_rc qr_estimate_model(struct qr_db *db, struct qr_index_set *index, qr_uuid base_id,
                        const struct qr_embedding_settings *embedding, struct qr_estimate *ret_estimate, qr_err *err)
{
    struct estimating *estimating = qr_alloc_zero(sizeof *estimating);
    struct qr_estimate estimate = {0};
    if (!estimating) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an estimate");
    }
    *estimating = (struct estimating){.db = db, .index = index, .base_id = base_id, .model = qr_model_key(embedding)};
    qr_embedding_fingerprint(embedding, estimating->fingerprint);
    qr_arena_init(&estimating->arena, 0);
    const qr_rc rc = go_through(estimating, &estimate, err);
    const int64_t looked_up = estimating->looked_up;
    if (rc == QR_OK && looked_up > 0) {
        const double share = (double)estimating->missing / (double)looked_up;
        estimate.is_sampled = estimating->missing > looked_up;
        estimate.cached = (int64_t)((double)estimating->found * share);
        estimate.to_embed = estimating->missing - estimate.cached;
        estimate.tokens = (int64_t)((double)estimating->tokens_not_found * share);
    }
    qr_arena_done(&estimating->arena);
    qr_free(estimating);
    if (rc == QR_OK) {
        *ret_estimate = estimate;
    }
    return rc;
}
