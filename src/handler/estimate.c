/* Goes through what would be gone through, the index or the tree, once; of what would need a vector it looks up the cache, for
 * as many chunks as a person waits for. */
#include "handler/estimate.h"

#include "base/mem.h"
#include "model/model_key.h"
#include "store/items.h"
#include "store/models.h"
#include "store/vectors.h"

enum {
    EXTENTS_A_PAGE = 200,
    ITEMS_MAX = 100000,
    CHUNKS_A_PAGE = 200,
    LOOKED_UP_MAX = 20000,
    MINUTE_S = 60,
};

struct estimating {
    struct qr_db *db;
    struct qr_index_set *index;
    qr_uuid base_id;
    int64_t model;   /* 0 = none: nothing is embedded */
    bool makes_anew; /* what has a vector needs one, too */
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

static qr_rc load_page(struct estimating *estimating, const struct qr_index_extent *extent, int64_t from, qr_err *err)
{
    qr_arena_reset(&estimating->arena);
    return (estimating->makes_anew ? qr_index_chunks : qr_index_chunks_without_vector)(
        estimating->index, estimating->base_id, extent->item_id, extent->generation, from, estimating->model,
        CHUNKS_A_PAGE, &estimating->arena, &estimating->rows, &estimating->row_count, err);
}

static qr_rc look_up(struct estimating *estimating, const struct qr_index_extent *extent, qr_err *err)
{
    int64_t from = 0;
    do {
        struct page_count page = {.estimating = estimating};
        QR_TRY(load_page(estimating, extent, from, err));
        QR_TRY(qr_db_read(estimating->db, look_up_page, &page, err));
        estimating->looked_up += (int64_t)estimating->row_count;
        estimating->found += page.found;
        estimating->tokens_not_found += page.tokens_not_found;
        from = estimating->row_count ? estimating->rows[estimating->row_count - 1].chunk.ordinal + 1 : from;
    } while (estimating->row_count == CHUNKS_A_PAGE && estimating->looked_up < LOOKED_UP_MAX);
    return QR_OK;
}

static qr_rc add_up(struct estimating *estimating, const struct qr_index_extent *extent, int64_t missing,
                    struct qr_estimate *estimate, qr_err *err)
{
    estimate->chunks += extent->chunk_count;
    estimating->missing += missing;
    return missing > 0 && estimating->model && estimating->looked_up < LOOKED_UP_MAX ? look_up(estimating, extent, err)
                                                                                     : QR_OK;
}

/* ---- a base ---- */

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
            if (estimating->is_live[i]) {
                QR_TRY(add_up(estimating, extent, missing, estimate, err));
            }
        }
    } while (estimating->extent_count == EXTENTS_A_PAGE);
    return QR_OK;
}

/* ---- items ---- */

struct place { /* a path in a tree; empty = at its beginning */
    char bytes[(QR_ITEM_DEPTH_MAX + 1) * QR_UUID_BYTES];
    size_t len;
};

/* A page of a subtree: what is live in it. */
struct item_page {
    struct estimating *estimating;
    qr_uuid root_id;
    struct place after, next;
    bool has_more;
};

static void take_items(struct item_page *page, const struct qr_item *items, size_t count)
{
    struct estimating *estimating = page->estimating;
    for (size_t i = 0; i < count; i++) {
        if (!items[i].is_container && items[i].live_generation) {
            estimating->extents[estimating->extent_count++] = (struct qr_index_extent){
                .item_id = items[i].id, .generation = items[i].live_generation, .chunk_count = items[i].chunk_count};
        }
    }
    page->has_more = count == EXTENTS_A_PAGE;
    if (page->has_more) {
        const qr_str last = items[count - 1].path;
        page->next.len = QR_MIN(last.len, sizeof page->next.bytes);
        memcpy(page->next.bytes, last.ptr, page->next.len);
    }
}

static qr_rc load_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct item_page *page = arg;
    struct estimating *estimating = page->estimating;
    struct qr_item root, *items;
    size_t count;
    bool found;
    qr_arena_reset(&estimating->arena);
    estimating->extent_count = 0;
    page->has_more = false;
    QR_TRY(qr_item_find(tx, page->root_id, &estimating->arena, &found, &root, err));
    if (!found) {
        return QR_OK; /* deleted meanwhile */
    }
    QR_TRY(qr_items_subtree(tx, estimating->base_id, root.path, (qr_str){page->after.bytes, page->after.len}, false,
                            EXTENTS_A_PAGE, &estimating->arena, &items, &count, err));
    take_items(page, items, count);
    return QR_OK;
}

static qr_rc go_through_item(struct estimating *estimating, qr_uuid id, int64_t *left, struct qr_estimate *estimate,
                             qr_err *err)
{
    struct item_page page = {.estimating = estimating, .root_id = id, .has_more = true};
    while (page.has_more && *left > 0) {
        QR_TRY(qr_db_read(estimating->db, load_items, &page, err));
        for (size_t i = 0; i < estimating->extent_count; i++) {
            const struct qr_index_extent *extent = &estimating->extents[i];
            QR_TRY(add_up(estimating, extent, extent->chunk_count, estimate, err));
        }
        page.after = page.next;
        *left -= EXTENTS_A_PAGE;
    }
    return QR_OK;
}

/* ---- how long it takes ---- */

struct pace_call {
    const char *fingerprint;
    int64_t texts_a_minute;
};

static qr_rc load_pace(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct pace_call *call = arg;
    return qr_model_pace(tx, call->fingerprint, &call->texts_a_minute, err);
}

/* Of so much each minute; 0 = there is no limit. */
static double minutes_of(double much, int64_t a_minute)
{
    return a_minute > 0 ? much / (double)a_minute : 0;
}

int64_t qr_estimate_seconds(const struct qr_embedding_settings *embedding, int64_t texts_a_minute, int64_t texts,
                            int64_t tokens)
{
    const double requests = QR_MAX((double)texts / (double)QR_MAX(embedding->limits.inputs, (int64_t)1),
                                   minutes_of((double)tokens, embedding->limits.request_tokens));
    double minutes = minutes_of((double)texts, texts_a_minute);
    minutes = QR_MAX(minutes, minutes_of(requests, embedding->limits.requests_a_minute));
    minutes = QR_MAX(minutes, minutes_of((double)tokens, embedding->limits.tokens_a_minute));
    if (texts > 0 && minutes <= 0) {
        return -1;
    }
    return (int64_t)(minutes * MINUTE_S + 0.5);
}

/* ---- the whole ---- */

static struct estimating *begin(struct qr_db *db, struct qr_index_set *index, qr_uuid base_id,
                                const struct qr_embedding_settings *embedding, qr_err *err)
{
    struct estimating *estimating = qr_alloc_zero(sizeof *estimating);
    if (!estimating) {
        qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an estimate");
        return NULL;
    }
    *estimating = (struct estimating){.db = db, .index = index, .base_id = base_id, .model = qr_model_key(embedding)};
    qr_embedding_fingerprint(embedding, estimating->fingerprint);
    qr_arena_init(&estimating->arena, 0);
    return estimating;
}

static void extrapolate(const struct estimating *estimating, struct qr_estimate *estimate)
{
    if (estimating->looked_up == 0) {
        return;
    }
    const double share = (double)estimating->missing / (double)estimating->looked_up;
    estimate->is_sampled = estimating->missing > estimating->looked_up;
    estimate->cached = (int64_t)((double)estimating->found * share);
    estimate->to_embed = estimating->missing - estimate->cached;
    estimate->tokens = (int64_t)((double)estimating->tokens_not_found * share);
}

static qr_rc end(struct estimating *estimating, qr_rc rc, const struct qr_embedding_settings *embedding,
                 struct qr_estimate *estimate, struct qr_estimate *ret_estimate, qr_err *err)
{
    struct pace_call call = {.fingerprint = estimating->fingerprint};
    extrapolate(estimating, estimate);
    rc = rc == QR_OK ? qr_db_read(estimating->db, load_pace, &call, err) : rc;
    estimate->seconds = qr_estimate_seconds(embedding, call.texts_a_minute, estimate->to_embed, estimate->tokens);
    qr_arena_done(&estimating->arena);
    qr_free(estimating);
    if (rc == QR_OK) {
        *ret_estimate = *estimate;
    }
    return rc;
}

qr_rc qr_estimate_model(struct qr_db *db, struct qr_index_set *index, qr_uuid base_id,
                        const struct qr_embedding_settings *embedding, struct qr_estimate *ret_estimate, qr_err *err)
{
    struct estimating *estimating = begin(db, index, base_id, embedding, err);
    struct qr_estimate estimate = {0};
    return estimating ? end(estimating, go_through(estimating, &estimate, err), embedding, &estimate, ret_estimate, err)
                      : QR_NOMEM;
}

qr_rc qr_estimate_items(struct qr_db *db, struct qr_index_set *index, qr_uuid base_id, const qr_uuid *item_ids,
                        size_t count, const struct qr_embedding_settings *embedding, struct qr_estimate *ret_estimate,
                        qr_err *err)
{
    struct estimating *estimating = begin(db, index, base_id, embedding, err);
    struct qr_estimate estimate = {0};
    int64_t left = ITEMS_MAX;
    qr_rc rc = QR_OK;
    if (!estimating) {
        return QR_NOMEM;
    }
    estimating->makes_anew = true;
    for (size_t i = 0; i < count && rc == QR_OK; i++) {
        rc = go_through_item(estimating, item_ids[i], &left, &estimate, err);
    }
    return end(estimating, rc, embedding, &estimate, ret_estimate, err);
}
