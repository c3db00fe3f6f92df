/* Search by words.
 *
 * S1  Whether a chunk may be shown is asked of the main database: its generation is the item's live one, and neither the item
 *     nor anything above it is deleting or disabled (I3, I4, HIDE-1). The index knows nothing of that. One read of the main
 *     database lasts as long as the scan, so that all answers are of one moment, and each item is asked about once. */
#include "search/search.h"

#include "base/map.h"

struct scan {
    const struct qr_search *search;
    struct qr_arena *arena;
    struct qr_tx *tx;
    struct qr_map seen; /* item id → struct verdict */
    qr_err error;       /* the first one, met inside the filter */
    struct qr_index_hit hits[QR_SEARCH_TOP_K_MAX];
    size_t count;
};

struct verdict {
    bool is_visible;
    struct qr_item item;
};

/* ---- who may be shown ---- */

static qr_rc judge(struct scan *scan, qr_uuid item_id, struct verdict *verdict, qr_err *err)
{
    bool found, is_deleting, is_disabled;
    struct qr_item *item = &verdict->item;
    QR_TRY(qr_item_find(scan->tx, item_id, scan->arena, &found, item, err));
    if (!found || !qr_uuid_equal(item->base_id, scan->search->base_id)) {
        return QR_OK;
    }
    QR_TRY(qr_item_path_is_deleting(scan->tx, item->path, &is_deleting, err));
    QR_TRY(qr_item_path_is_disabled(scan->tx, item->path, &is_disabled, err));
    verdict->is_visible = !is_deleting && !is_disabled;
    return QR_OK;
}

static const struct verdict *verdict_on(struct scan *scan, qr_uuid item_id)
{
    const qr_str key = {(const char *)item_id.bytes, QR_UUID_BYTES};
    struct verdict *verdict = qr_map_find(&scan->seen, key);
    if (verdict || scan->error.code != QR_CODE_NONE) {
        return verdict;
    }
    verdict = qr_arena_alloc(scan->arena, sizeof *verdict);
    if (!verdict || judge(scan, item_id, verdict, &scan->error) != QR_OK || !qr_map_put(&scan->seen, key, verdict)) {
        if (scan->error.code == QR_CODE_NONE) {
            qr_fail(&scan->error, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
        }
        return NULL;
    }
    return verdict;
}

static bool may_be_shown(void *arg, qr_uuid item_id, int64_t generation)
{
    struct scan *scan = arg;
    const struct verdict *verdict = verdict_on(scan, item_id);
    return verdict && verdict->is_visible && verdict->item.live_generation == generation;
}

/* ---- the scan ---- */

static qr_rc scan_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct scan *scan = arg;
    const struct qr_search *search = scan->search;
    qr_map_done(&scan->seen);
    qr_map_init(&scan->seen, 1); /* ids are ours: nobody chooses keys that collide */
    qr_arena_reset(scan->arena);
    scan->tx = tx;
    scan->error = (qr_err){0};
    scan->count = 0;
    QR_TRY(qr_index_search_text(search->index, search->base_id, search->query, search->top_k, may_be_shown, scan,
                                scan->hits, &scan->count, err));
    if (scan->error.code != QR_CODE_NONE) {
        *err = scan->error;
        return qr_code_info(scan->error.code)->rc;
    }
    return QR_OK;
}

/* The rows themselves; one that was purged meanwhile is left out. */
static qr_rc load_rows(const struct scan *scan, struct qr_search_hit *hits, size_t *ret_count, qr_err *err)
{
    const struct qr_search *search = scan->search;
    *ret_count = 0;
    for (size_t i = 0; i < scan->count; i++) {
        const struct qr_index_hit *hit = &scan->hits[i];
        const struct verdict *verdict =
            qr_map_find(&scan->seen, (qr_str){(const char *)hit->item_id.bytes, QR_UUID_BYTES});
        struct qr_chunk_row *rows;
        size_t count;
        QR_TRY(qr_index_chunks(search->index, search->base_id, hit->item_id, hit->generation, hit->ordinal, false, 1,
                               scan->arena, &rows, &count, err));
        if (count == 1 && rows[0].chunk.ordinal == hit->ordinal && verdict) {
            hits[(*ret_count)++] = (struct qr_search_hit){.score = hit->score, .item = &verdict->item, .row = rows[0]};
        }
    }
    return QR_OK;
}

qr_rc qr_search_text(const struct qr_search *search, struct qr_arena *arena, struct qr_search_hit **ret_hits,
                     size_t *ret_count, qr_err *err)
{
    struct scan scan = {.search = search, .arena = arena};
    qr_map_init(&scan.seen, 1);
    qr_rc rc = qr_db_read(search->db, scan_base, &scan, err);
    struct qr_search_hit *hits = rc == QR_OK ? qr_arena_array(arena, scan.count + 1, sizeof hits[0]) : NULL;
    if (rc == QR_OK) {
        rc = hits ? load_rows(&scan, hits, ret_count, err)
                  : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
    }
    qr_map_done(&scan.seen);
    *ret_hits = hits;
    return rc;
}
