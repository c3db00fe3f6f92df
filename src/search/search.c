/* Search by words.
 *
 * S1  Whether a chunk may be shown is asked of the main database: its generation is the item's live one, and neither the item
 *     nor anything above it is deleting or disabled (I3, I4, HIDE-1). The index knows nothing of that. All hits of an answer
 *     are judged in one read.
 * S2  The index and the main database are never read at the same time: on PostgreSQL that would be two connections for one
 *     search, and as many searches as there are connections would wait for each other. So hits are found first and judged
 *     then; where some are hidden, it is searched again without those, deeper each time. */
#include "search/search.h"

#include "base/map.h"

enum {
    DEPTH_FACTOR = 4,
    DEPTH_MAX = 1 << 16, /* hits looked at in a round */
};

/* What an answer needs to know of a hit. */
struct candidate {
    struct qr_index_hit hit;
    const struct qr_item *item; /* NULL = not to be shown */
};

struct scan {
    const struct qr_search *search;
    struct qr_arena *arena;
    struct qr_map hidden; /* (item, generation) of rounds before */
    struct candidate *candidates;
    size_t count, visible_count;
};

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
}

/* ---- what was hidden before ---- */

struct hidden_key {
    char bytes[QR_UUID_BYTES + sizeof(int64_t)];
};

static struct hidden_key key_of(qr_uuid item_id, int64_t generation)
{
    struct hidden_key key;
    memcpy(key.bytes, item_id.bytes, QR_UUID_BYTES);
    memcpy(key.bytes + QR_UUID_BYTES, &generation, sizeof generation);
    return key;
}

static bool was_not_hidden(void *arg, qr_uuid item_id, int64_t generation)
{
    const struct scan *scan = arg;
    const struct hidden_key key = key_of(item_id, generation);
    return !qr_map_find(&scan->hidden, (qr_str){key.bytes, sizeof key.bytes});
}

static qr_rc remember_hidden(struct scan *scan, qr_err *err)
{
    for (size_t i = 0; i < scan->count; i++) {
        const struct qr_index_hit *hit = &scan->candidates[i].hit;
        const struct hidden_key key = key_of(hit->item_id, hit->generation);
        if (!scan->candidates[i].item && !qr_map_put(&scan->hidden, (qr_str){key.bytes, sizeof key.bytes}, scan)) {
            return out_of_memory(err);
        }
    }
    return QR_OK;
}

/* ---- who may be shown ---- */

struct verdict {
    bool is_visible;
    struct qr_item item;
};

static qr_rc judge(struct qr_tx *tx, const struct scan *scan, qr_uuid item_id, struct verdict *verdict, qr_err *err)
{
    bool found, is_deleting, is_disabled;
    struct qr_item *item = &verdict->item;
    QR_TRY(qr_item_find(tx, item_id, scan->arena, &found, item, err));
    if (!found || !qr_uuid_equal(item->base_id, scan->search->base_id)) {
        return QR_OK;
    }
    QR_TRY(qr_item_path_is_deleting(tx, item->path, &is_deleting, err));
    QR_TRY(qr_item_path_is_disabled(tx, item->path, &is_disabled, err));
    verdict->is_visible = !is_deleting && !is_disabled;
    return QR_OK;
}

/* Each item is asked about once, however many of its chunks were found. */
static qr_rc find_verdict(struct qr_tx *tx, const struct scan *scan, struct qr_map *seen, qr_uuid item_id,
                          const struct verdict **ret_verdict, qr_err *err)
{
    const qr_str key = {(const char *)item_id.bytes, QR_UUID_BYTES};
    struct verdict *verdict = qr_map_find(seen, key);
    if (!verdict) {
        verdict = qr_arena_alloc(scan->arena, sizeof *verdict);
        if (!verdict || !qr_map_put(seen, key, verdict)) {
            return out_of_memory(err);
        }
        QR_TRY(judge(tx, scan, item_id, verdict, err));
    }
    *ret_verdict = verdict;
    return QR_OK;
}

static qr_rc judge_all(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct scan *scan = arg;
    QR_CLEANUP(qr_map_done) struct qr_map seen;
    qr_map_init(&seen, 1); /* ids are ours: nobody chooses keys that collide */
    scan->visible_count = 0;
    for (size_t i = 0; i < scan->count; i++) {
        struct candidate *candidate = &scan->candidates[i];
        const struct verdict *verdict = NULL;
        QR_TRY(find_verdict(tx, scan, &seen, candidate->hit.item_id, &verdict, err));
        const bool is_live = verdict->item.live_generation == candidate->hit.generation;
        candidate->item = verdict->is_visible && is_live ? &verdict->item : NULL;
        scan->visible_count += candidate->item != NULL;
    }
    return QR_OK;
}

/* ---- rounds ---- */

static qr_rc find_candidates(struct scan *scan, int depth, qr_err *err)
{
    const struct qr_search *search = scan->search;
    struct qr_index_hit *hits = qr_arena_array(scan->arena, (size_t)depth, sizeof hits[0]);
    if (!hits) {
        return out_of_memory(err);
    }
    QR_TRY(qr_index_search_text(search->index, search->base_id, search->query, depth, was_not_hidden, scan, hits,
                                &scan->count, err));
    scan->candidates = qr_arena_array(scan->arena, scan->count + 1, sizeof scan->candidates[0]);
    for (size_t i = 0; scan->candidates && i < scan->count; i++) {
        scan->candidates[i].hit = hits[i];
    }
    return scan->candidates ? QR_OK : out_of_memory(err);
}

static qr_rc find_visible(struct scan *scan, qr_err *err)
{
    for (int depth = scan->search->top_k;; depth = QR_MIN(depth * DEPTH_FACTOR, (int)DEPTH_MAX)) {
        QR_TRY(find_candidates(scan, depth, err));
        QR_TRY(qr_db_read(scan->search->db, judge_all, scan, err));
        if (scan->visible_count == scan->count || scan->visible_count >= (size_t)scan->search->top_k) {
            return QR_OK;
        }
        QR_TRY(remember_hidden(scan, err)); /* so each round knows more than the one before, and they end */
    }
}

/* The rows themselves; one that was purged meanwhile is left out. */
static qr_rc load_rows(const struct scan *scan, struct qr_search_hit *hits, size_t *ret_count, qr_err *err)
{
    const struct qr_search *search = scan->search;
    *ret_count = 0;
    for (size_t i = 0; i < scan->count && *ret_count < (size_t)search->top_k; i++) {
        const struct candidate *candidate = &scan->candidates[i];
        const struct qr_index_hit *hit = &candidate->hit;
        struct qr_chunk_row *rows = NULL;
        size_t count = 0;
        if (candidate->item) {
            QR_TRY(qr_index_chunks(search->index, search->base_id, hit->item_id, hit->generation, hit->ordinal, false,
                                   1, scan->arena, &rows, &count, err));
        }
        if (count == 1 && rows[0].chunk.ordinal == hit->ordinal) {
            hits[(*ret_count)++] = (struct qr_search_hit){.score = hit->score, .item = candidate->item, .row = rows[0]};
        }
    }
    return QR_OK;
}

qr_rc qr_search_text(const struct qr_search *search, struct qr_arena *arena, struct qr_search_hit **ret_hits,
                     size_t *ret_count, qr_err *err)
{
    struct scan scan = {.search = search, .arena = arena};
    qr_map_init(&scan.hidden, 1);
    struct qr_search_hit *hits = qr_arena_array(arena, (size_t)search->top_k, sizeof hits[0]);
    qr_rc rc = hits ? find_visible(&scan, err) : out_of_memory(err);
    rc = rc == QR_OK ? load_rows(&scan, hits, ret_count, err) : rc;
    qr_map_done(&scan.hidden);
    *ret_hits = hits;
    return rc;
}
