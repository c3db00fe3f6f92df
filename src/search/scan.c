/* Rounds: find, judge, learn what hides, find again. */
#include "search/scan.h"

#include "store/hidden.h"

#include <stdlib.h>

enum {
    DEPTH_FACTOR = 4,
    DEPTH_MAX = 1 << 16, /* hits looked at in a round */
    LEARNED_HITS_MIN = 4,
    CAUSES_MAX = 8, /* learned after a round */
};

struct verdict {
    bool is_visible;
    qr_str hidden_by; /* the path of what hides it; empty = nothing does */
    bool is_deleting; /* that is why */
    bool is_refused;  /* by the filter, and by nothing else */
    struct qr_item item;
};

/* A round. */
struct judging {
    const struct qr_scan *scan;
    const struct qr_index_hit *hits;
    size_t count, visible_count, refused_count;
    const struct verdict **verdicts;
    const struct qr_item **items; /* NULL = not to be shown */
};

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
}

/* ---- a scan ---- */

qr_rc qr_scan_begin(struct qr_scan *scan, struct qr_db *db, struct qr_visible_memory *memory, qr_uuid base_id,
                    const struct qr_search_filter *filter, struct qr_arena *arena, qr_err *err)
{
    *scan = (struct qr_scan){.db = db, .base_id = base_id, .filter = filter, .arena = arena};
    qr_map_init(&scan->hidden, 1); /* ids are ours: nobody chooses keys that collide */
    QR_TRY(qr_hidden_begin(&scan->known, memory, db, base_id, err));
    if (qr_filter_fits_none(filter)) {
        scan->allowed.is_known = true; /* an empty list: nothing is looked at */
        return QR_OK;
    }
    return filter->item_ids ? qr_allowed_list_named(&scan->allowed, db, base_id, filter, arena, err) : QR_OK;
}

void qr_scan_done(struct qr_scan *scan)
{
    qr_hidden_done(&scan->known);
    qr_map_done(&scan->hidden);
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

static bool may_be_shown(void *arg, qr_uuid item_id, int64_t generation)
{
    const struct qr_scan *scan = arg;
    const struct hidden_key key = key_of(item_id, generation);
    return qr_allowed_has(&scan->allowed, &item_id) && !qr_hidden_has(&scan->known, item_id) &&
           !qr_map_find(&scan->hidden, (qr_str){key.bytes, sizeof key.bytes});
}

static qr_rc remember_hidden(struct qr_scan *scan, const struct judging *judging, qr_err *err)
{
    for (size_t i = 0; i < judging->count; i++) {
        const struct hidden_key key = key_of(judging->hits[i].item_id, judging->hits[i].generation);
        if (!judging->items[i] && !qr_map_put(&scan->hidden, (qr_str){key.bytes, sizeof key.bytes}, scan)) {
            return out_of_memory(err);
        }
    }
    return QR_OK;
}

/* ---- who may be shown ---- */

/* What a read has found out. */
struct seen {
    struct qr_map verdicts; /* item id → struct verdict */
    struct qr_map folders;  /* the path of what holds items → struct hiding */
};

struct hiding {
    size_t len; /* of the path of what hides; 0 = nothing does */
    bool is_deleting;
};

static void seen_done(struct seen *seen)
{
    qr_map_done(&seen->verdicts);
    qr_map_done(&seen->folders);
}

/* What is above is the same for all items of a folder. */
static qr_rc find_hiding_above(struct qr_tx *tx, const struct qr_scan *scan, struct seen *seen, qr_str folder,
                               const struct hiding **ret_hiding, qr_err *err)
{
    struct hiding *hiding = qr_map_find(&seen->folders, folder);
    if (!hiding) {
        hiding = qr_arena_alloc(scan->arena, sizeof *hiding);
        if (!hiding || !qr_map_put(&seen->folders, folder, hiding)) {
            return out_of_memory(err);
        }
        QR_TRY(qr_item_hidden_by(tx, folder, &hiding->len, &hiding->is_deleting, err));
    }
    *ret_hiding = hiding;
    return QR_OK;
}

static qr_rc find_hiding(struct qr_tx *tx, const struct qr_scan *scan, struct seen *seen, struct verdict *verdict,
                         qr_err *err)
{
    const struct qr_item *item = &verdict->item;
    const struct hiding *above = NULL;
    const bool is_deleting = item->status == QR_ITEM_DELETING;
    const qr_str folder = {item->path.ptr, item->path.len - QR_MIN(item->path.len, (size_t)QR_UUID_BYTES)};
    QR_TRY(find_hiding_above(tx, scan, seen, folder, &above, err));
    if (above->len) {
        verdict->hidden_by = (qr_str){item->path.ptr, above->len};
        verdict->is_deleting = above->is_deleting;
    } else if (is_deleting || !item->enabled) {
        verdict->hidden_by = item->path;
        verdict->is_deleting = is_deleting;
    }
    return QR_OK;
}

static qr_rc judge(struct qr_tx *tx, const struct qr_scan *scan, struct seen *seen, qr_uuid item_id,
                   struct verdict *verdict, qr_err *err)
{
    bool found;
    struct qr_item *item = &verdict->item;
    QR_TRY(qr_item_find(tx, item_id, scan->arena, &found, item, err));
    if (!found || !qr_uuid_equal(item->base_id, scan->base_id)) {
        return QR_OK;
    }
    QR_TRY(find_hiding(tx, scan, seen, verdict, err));
    if (verdict->hidden_by.len) {
        return QR_OK;
    }
    const struct qr_item_facts facts = qr_item_facts_of(item);
    QR_TRY(qr_filter_check(scan->filter, &facts, &verdict->is_visible, err));
    verdict->is_refused = !verdict->is_visible;
    return QR_OK;
}

/* Each item is asked about once, however many of its chunks were found. */
static qr_rc find_verdict(struct qr_tx *tx, const struct qr_scan *scan, struct seen *seen, qr_uuid item_id,
                          const struct verdict **ret_verdict, qr_err *err)
{
    const qr_str key = {(const char *)item_id.bytes, QR_UUID_BYTES};
    struct verdict *verdict = qr_map_find(&seen->verdicts, key);
    if (!verdict) {
        verdict = qr_arena_alloc(scan->arena, sizeof *verdict);
        if (!verdict || !qr_map_put(&seen->verdicts, key, verdict)) {
            return out_of_memory(err);
        }
        QR_TRY(judge(tx, scan, seen, item_id, verdict, err));
    }
    *ret_verdict = verdict;
    return QR_OK;
}

static qr_rc judge_all(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct judging *judging = arg;
    QR_CLEANUP(seen_done) struct seen seen;
    qr_map_init(&seen.verdicts, 1);
    qr_map_init(&seen.folders, 1);
    judging->visible_count = judging->refused_count = 0;
    for (size_t i = 0; i < judging->count; i++) {
        const struct verdict *verdict = NULL;
        QR_TRY(find_verdict(tx, judging->scan, &seen, judging->hits[i].item_id, &verdict, err));
        const bool is_live = verdict->item.live_generation == judging->hits[i].generation;
        judging->verdicts[i] = verdict;
        judging->items[i] = verdict->is_visible && is_live ? &verdict->item : NULL;
        judging->visible_count += judging->items[i] != NULL;
        judging->refused_count += verdict->is_refused;
    }
    return QR_OK;
}

static qr_rc judge_hits(const struct qr_scan *scan, const struct qr_index_hit *hits, size_t count,
                        struct judging *ret_judging, qr_err *err)
{
    *ret_judging = (struct judging){.scan = scan,
                                    .hits = hits,
                                    .count = count,
                                    .verdicts = qr_arena_array(scan->arena, count + 1, sizeof(void *)),
                                    .items = qr_arena_array(scan->arena, count + 1, sizeof(void *))};
    return ret_judging->verdicts && ret_judging->items ? qr_db_read(scan->db, judge_all, ret_judging, err)
                                                       : out_of_memory(err);
}

qr_rc qr_scan_judge(struct qr_scan *scan, const struct qr_index_hit *hits, size_t count,
                    const struct qr_item ***ret_items, qr_err *err)
{
    struct judging judging;
    QR_TRY(judge_hits(scan, hits, count, &judging, err));
    *ret_items = judging.items;
    return QR_OK;
}

/* ---- what hides them ---- */

/* What hides hits of a round, and how many; an empty path: each is deleting for itself. */
struct cause {
    qr_str path;
    size_t hits;
};

static void count_cause(struct cause causes[static CAUSES_MAX], size_t *count, qr_str path)
{
    size_t i = 0;
    while (i < *count && !qr_str_equal(causes[i].path, path)) {
        i++;
    }
    if (i == *count && i < CAUSES_MAX) {
        causes[(*count)++] = (struct cause){.path = path};
    }
    if (i < *count) {
        causes[i].hits++;
    }
}

static size_t find_causes(const struct judging *judging, struct cause causes[static CAUSES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < judging->count; i++) {
        const struct verdict *verdict = judging->verdicts[i];
        const bool hides_itself = verdict->hidden_by.len == verdict->item.path.len;
        if (verdict->hidden_by.len && (!hides_itself || verdict->is_deleting)) {
            count_cause(causes, &count, !hides_itself ? verdict->hidden_by : (qr_str){0});
        }
    }
    return count;
}

static qr_rc learn_causes(struct qr_scan *scan, const struct judging *judging, size_t ids_max, qr_err *err)
{
    struct cause causes[CAUSES_MAX];
    const size_t count = find_causes(judging, causes);
    for (size_t i = 0; i < count; i++) {
        if (causes[i].hits < LEARNED_HITS_MIN) {
            continue;
        }
        QR_TRY(causes[i].path.len ? qr_hidden_learn_below(&scan->known, causes[i].path, ids_max, err)
                                  : qr_hidden_learn_deleting(&scan->known, ids_max, err));
    }
    return QR_OK;
}

/* ---- rounds ---- */

static void keep_visible(const struct judging *judging, struct qr_index_hit *hits, int wanted, size_t *ret_count)
{
    *ret_count = 0;
    for (size_t i = 0; i < judging->count && *ret_count < (size_t)wanted; i++) {
        if (judging->items[i]) {
            hits[(*ret_count)++] = hits[i];
        }
    }
}

/* There are enough, or there is nothing else. Where hits are hidden, there may be: an item whose generation was replaced meanwhile
 * has rows of the next one. */
static bool is_over(const struct judging *judging, int depth, int wanted)
{
    const bool was_full = judging->count == (size_t)depth;
    const size_t settled = judging->visible_count + (was_full ? 0 : judging->refused_count);
    return judging->visible_count >= (size_t)wanted || settled == judging->count;
}

/* Before the next round. Hits of the first one may be nearly all there are: not much is learned for that. */
static qr_rc learn(struct qr_scan *scan, const struct judging *judging, bool is_first, qr_err *err)
{
    QR_TRY(learn_causes(scan, judging, is_first ? QR_HIDDEN_PART_MAX : QR_HIDDEN_IDS_MAX, err));
    if (judging->refused_count == 0 || scan->has_listed) {
        return QR_OK;
    }
    scan->has_listed = true;
    return qr_allowed_list_passing(&scan->allowed, scan->db, scan->base_id, scan->filter, scan->arena, err);
}

/* Of a round that was not full there is nothing behind. */
qr_rc qr_scan_leg(struct qr_scan *scan, qr_leg_fn *leg, void *arg, int wanted, struct qr_index_hit **ret_hits,
                  size_t *ret_count, qr_err *err)
{
    bool is_first = true;
    for (int depth = wanted;; depth = QR_MIN(depth * DEPTH_FACTOR, (int)DEPTH_MAX)) {
        struct judging judging;
        size_t count;
        struct qr_index_hit *hits = qr_arena_array(scan->arena, (size_t)depth, sizeof hits[0]);
        if (!hits) {
            return out_of_memory(err);
        }
        QR_TRY(leg(arg, depth, may_be_shown, scan, hits, &count, err));
        QR_TRY(judge_hits(scan, hits, count, &judging, err));
        if (is_over(&judging, depth, wanted)) {
            keep_visible(&judging, hits, wanted, ret_count);
            *ret_hits = hits;
            return QR_OK;
        }
        if (count == (size_t)depth) {
            QR_TRY(learn(scan, &judging, is_first, err));
            is_first = false;
        }
        QR_TRY(remember_hidden(scan, &judging, err)); /* each round knows more than the one before, and they end */
    }
}
