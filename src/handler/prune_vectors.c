/* Owns the steps of a round. Each first looks, outside of any transaction, at where the round stands and what comes next: chunks
 * are read from index stores, which takes as long as it takes. Then one transaction does it, if the round still stands there;
 * else somebody else has done it.
 *
 * V3: a base whose chunks cannot all be seen (its index is lost, or being rebuilt, or some rows are missing) needs the cache more
 * than any other: its chunks are made again, and their vectors are to come from here. So the round is put off. */
#include "handler/prune_vectors.h"

#include "base/failpoint.h"
#include "handler/rebuild.h"
#include "job/beat.h"
#include "model/model_key.h"
#include "store/items.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ITEMS_A_PAGE = 256,
    BASES_A_LOOK = 32,   /* with nothing to mark */
    UNKNOWN_CHUNKS = 32, /* of one of several items */
};

/* ---- which models ---- */

enum { NAMED_MODELS = 3, INDEX_MODELS_MAX = 13 };

/* The fingerprints of all models whose vectors the base uses, is to use, or may go back to; and of those that its index still
 * has vectors of: should one be chosen again, they are taken as they are, without a look into the cache. */
struct models {
    char fingerprints[NAMED_MODELS + INDEX_MODELS_MAX][QR_FINGERPRINT_SIZE];
    size_t count;
    int64_t index_keys[INDEX_MODELS_MAX];
    size_t index_count;
};

static void add_fingerprint(struct models *models, const char *fingerprint)
{
    for (size_t i = 0; i < models->count; i++) {
        if (strcmp(models->fingerprints[i], fingerprint) == 0) {
            return;
        }
    }
    if (fingerprint[0]) { /* else nothing is embedded */
        snprintf(models->fingerprints[models->count++], QR_FINGERPRINT_SIZE, "%s", fingerprint);
    }
}

static void add_model(struct models *models, const struct qr_embedding_settings *settings)
{
    char fingerprint[QR_FINGERPRINT_SIZE];
    qr_embedding_fingerprint(settings, fingerprint);
    add_fingerprint(models, fingerprint);
}

/* The index knows models by their keys: of all that there ever were those with such a key. */
static qr_rc add_index_models(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct models *models = arg;
    char fingerprint[QR_FINGERPRINT_SIZE] = "";
    bool found = true;
    while (found) {
        QR_TRY(qr_model_next(tx, fingerprint, &found, fingerprint, err));
        for (size_t i = 0; found && i < models->index_count; i++) {
            if (models->index_keys[i] == qr_model_key_of(fingerprint)) {
                add_fingerprint(models, fingerprint);
            }
        }
    }
    return QR_OK;
}

static qr_rc load_models(const struct qr_base *base, struct qr_arena *arena, struct models *ret_models, qr_err *err)
{
    struct qr_base_models of;
    *ret_models = (struct models){0};
    QR_TRY(qr_base_models(base, arena, &of, err));
    add_model(ret_models, &of.wanted);
    add_model(ret_models, &of.live);
    add_model(ret_models, &of.previous);
    return QR_OK;
}

/* ---- the next chunks ---- */

/* One base of the marking, and the next of its items. */
struct view {
    struct qr_pruning *pruning;
    struct qr_arena arena;
    struct qr_round_place place; /* moves on */
    bool has_base;               /* else there is none behind the place */
    struct qr_base base;
    struct models models;
    struct qr_chunked_item items[ITEMS_A_PAGE];
    size_t item_count;
};

static qr_uuid last_id(void)
{
    qr_uuid id;
    memset(id.bytes, 0xff, sizeof id.bytes);
    return id;
}

static qr_rc load_next_base(struct qr_tx *tx, struct view *view, qr_err *err)
{
    struct qr_base *bases;
    size_t count;
    QR_TRY(qr_bases_list(tx, view->place.base_id, 1, false, &view->arena, &bases, &count, err));
    view->has_base = count > 0;
    if (view->has_base) {
        view->base = bases[0];
        view->place = (struct qr_round_place){.base_id = view->base.id};
    }
    return QR_OK;
}

/* The base of the place, unless it is gone or done; then the next one. */
static qr_rc load_base(struct qr_tx *tx, struct view *view, qr_err *err)
{
    view->has_base = false;
    if (!qr_uuid_is_zero(view->place.base_id) && !qr_uuid_equal(view->place.item_id, last_id())) {
        QR_TRY(qr_base_find(tx, view->place.base_id, &view->arena, &view->has_base, &view->base, err));
        view->has_base = view->has_base && view->base.status != QR_BASE_DELETING;
    }
    return view->has_base ? QR_OK : load_next_base(tx, view, err);
}

/* Of an item that is not done its own row comes first. */
static qr_rc load_items(struct qr_tx *tx, struct view *view, qr_err *err)
{
    qr_uuid after = view->place.item_id;
    if (view->place.generation > 0) { /* the id before it */
        for (size_t i = QR_UUID_BYTES; i-- > 0 && after.bytes[i]-- == 0;) {
        }
    }
    return qr_items_chunked(tx, view->base.id, after, ITEMS_A_PAGE, view->items, &view->item_count, err);
}

static qr_rc load_view(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct view *view = arg;
    qr_arena_reset(&view->arena);
    view->place = view->pruning->place;
    QR_TRY(load_base(tx, view, err));
    return view->has_base ? load_items(tx, view, err) : QR_OK;
}

/* ---- chunks of a generation ---- */

/* Spans of several items that are read together. */
struct reading {
    struct qr_chunk_span spans[QR_PRUNE_KEYS_MAX];
    const struct qr_chunked_item *items[QR_PRUNE_KEYS_MAX]; /* whose they are */
    size_t count;
    int64_t chunk_count, chunks_max;
    bool is_full; /* there was no room for what begins at `rest` */
    struct qr_round_place rest;
};

/* How many chunks it is known to have from there on; -1 = that is not known. */
static int64_t known_chunks(const struct qr_chunked_item *item, int64_t generation, int64_t from)
{
    return generation == item->live_generation ? QR_MAX(item->chunk_count - from, 0) : -1;
}

/* Most items have no chunks of which nobody knows how many: then little is asked for, unless there is nothing else. */
static int64_t chunks_to_ask_for(const struct reading *reading, int64_t known)
{
    const int64_t room = reading->chunks_max - reading->chunk_count;
    const int64_t wanted = known >= 0 ? known : reading->count == 0 ? room : (int64_t)UNKNOWN_CHUNKS;
    return QR_MIN(wanted, room);
}

static void add_span(struct reading *reading, const struct view *view, const struct qr_chunked_item *item,
                     int64_t generation, int64_t from)
{
    const int64_t known = known_chunks(item, generation, from);
    const int64_t asked = chunks_to_ask_for(reading, known);
    if (generation == 0 || known == 0 || reading->is_full) {
        return;
    }
    if (asked == 0 || reading->count == QR_COUNT(reading->spans)) {
        reading->is_full = true;
        reading->rest = (struct qr_round_place){view->base.id, item->id, generation, from};
        return;
    }
    reading->items[reading->count] = item;
    reading->spans[reading->count++] =
        (struct qr_chunk_span){.item_id = item->id, .generation = generation, .first = from, .last = from + asked - 1};
    reading->chunk_count += known >= 0 ? asked : 1;
}

/* What search shows, and what an attempt has made so far. All others are purged. */
static void add_spans(struct reading *reading, const struct view *view, const struct qr_chunked_item *item)
{
    const struct qr_round_place *place = &view->place;
    const int64_t generations[] = {QR_MIN(item->live_generation, item->generation),
                                   QR_MAX(item->live_generation, item->generation)};
    const bool is_begun = place->generation > 0 && qr_uuid_equal(item->id, place->item_id);
    for (size_t i = 0; i < QR_COUNT(generations); i++) {
        const bool is_done = is_begun && generations[i] < place->generation;
        if (!is_done && (i == 0 || generations[1] != generations[0])) {
            add_span(reading, view, item, generations[i],
                     is_begun && generations[i] == place->generation ? place->ordinal : 0);
        }
    }
}

/* ---- what is missing ---- */

struct missing {
    struct qr_arena arena;
    const struct qr_chunk_span *span;
    bool matters;
};

/* Whether the item is still as it was when its rows were read: not swapped since, nor deleted. One that failed to be read again
 * has nothing that could be shown. */
static qr_rc look_again(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct missing *missing = arg;
    struct qr_item item;
    bool found, is_deleting = true;
    qr_arena_reset(&missing->arena);
    QR_TRY(qr_item_find(tx, missing->span->item_id, &missing->arena, &found, &item, err));
    if (found) {
        QR_TRY(qr_item_path_is_deleting(tx, item.path, &is_deleting, err));
    }
    missing->matters =
        found && !is_deleting && item.live_generation == missing->span->generation && item.status != QR_ITEM_FAILED;
    return QR_OK;
}

static qr_rc see_whether_missed(struct qr_pruning *pruning, const struct qr_chunk_span *span, bool *ret_is_missed,
                                qr_err *err)
{
    struct missing missing = {.span = span};
    qr_arena_init(&missing.arena, 0);
    const qr_rc rc = qr_db_read(pruning->db, look_again, &missing, err);
    qr_arena_done(&missing.arena);
    *ret_is_missed = missing.matters;
    return rc;
}

/* ---- keys ---- */

static void put_off(struct qr_pruning *pruning, const struct qr_base *base, const char *why)
{
    char id[QR_UUID_TEXT_SIZE];
    qr_uuid_format(base->id, id);
    pruning->act = QR_PRUNE_PUT_OFF;
    snprintf(pruning->why, sizeof pruning->why, "base %s: %s", id, why);
}

static void add_keys(struct qr_pruning *pruning, const struct view *view, const struct qr_chunk_span *span)
{
    for (size_t i = 0; i < span->count; i++) {
        for (size_t m = 0; m < view->models.count && pruning->key_count < QR_PRUNE_KEYS_MAX; m++) {
            qr_vector_key(view->models.fingerprints[m], span->rows[i].chunk.text, pruning->keys[pruning->key_count++]);
        }
    }
}

/* Takes as much of a span as there is room for. *ret_is_whole: there is no more of its generation. */
static void take_span(struct view *view, struct qr_chunk_span span, int64_t known, bool *ret_is_whole)
{
    const int64_t asked = span.last - span.first + 1;
    const size_t left = (QR_PRUNE_KEYS_MAX - view->pruning->key_count) / view->models.count;
    int64_t next = span.last + 1;
    *ret_is_whole = span.count <= left && (known >= 0 ? known <= asked : (int64_t)span.count < asked);
    if (span.count > left) {
        span.count = left;
        next = left > 0 ? span.rows[left - 1].chunk.ordinal + 1 : span.first;
    }
    add_keys(view->pruning, view, &span);
    if (!*ret_is_whole) {
        view->place = (struct qr_round_place){view->base.id, span.item_id, span.generation, next};
    }
}

/* *ret_is_whole: all that was asked for is taken; else the place is where to go on. */
static qr_rc take_spans(struct view *view, const struct reading *reading, bool *ret_is_whole, qr_err *err)
{
    *ret_is_whole = true;
    for (size_t i = 0; i < reading->count && *ret_is_whole; i++) {
        const struct qr_chunk_span *span = &reading->spans[i];
        const int64_t known = known_chunks(reading->items[i], span->generation, span->first);
        if (known >= 0 && (int64_t)span->count < span->last - span->first + 1) {
            bool is_missed;
            QR_TRY(see_whether_missed(view->pruning, span, &is_missed, err));
            if (is_missed) {
                put_off(view->pruning, &view->base, "chunks are missing in its index");
                return QR_OK;
            }
        }
        take_span(view, *span, known, ret_is_whole);
    }
    return QR_OK;
}

/* ---- marking ---- */

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, QR_VECTOR_KEY_BYTES);
}

/* Of all items of the page that fit into the step. */
static qr_rc read_items(struct view *view, struct reading *reading, qr_err *err)
{
    bool is_whole;
    size_t i = 0;
    *reading = (struct reading){.chunks_max = (int64_t)(QR_PRUNE_KEYS_MAX / view->models.count)};
    while (i < view->item_count && !reading->is_full) {
        add_spans(reading, view, &view->items[i++]);
    }
    QR_TRY(qr_index_load_spans(view->pruning->index, view->base.id, reading->spans, reading->count, &view->arena, err));
    QR_TRY(take_spans(view, reading, &is_whole, err));
    if (is_whole && reading->is_full) {
        view->place = reading->rest;
    } else if (is_whole) {
        const bool is_last = view->item_count < ITEMS_A_PAGE;
        view->place =
            (struct qr_round_place){.base_id = view->base.id, .item_id = is_last ? last_id() : view->items[i - 1].id};
    }
    return QR_OK;
}

static void go_behind_base(struct view *view)
{
    view->place = (struct qr_round_place){.base_id = view->base.id, .item_id = last_id()};
}

static qr_rc see_base(struct view *view, struct reading *reading, qr_err *err)
{
    struct qr_pruning *pruning = view->pruning;
    qr_err why = {0};
    bool is_own;
    const qr_rc parsed = load_models(&view->base, &view->arena, &view->models, &why);
    if (parsed != QR_OK && parsed != QR_NOMEM) {
        put_off(pruning, &view->base, "its settings cannot be read");
        return QR_OK;
    }
    QR_TRY(parsed);
    const bool has_none = view->models.count == 0;
    if (!view->base.index_stamp[0] || view->item_count == 0) {
        go_behind_base(view);
        return QR_OK;
    }
    QR_TRY(qr_index_is_own(pruning->index, &view->base, &is_own, err));
    if (!is_own && !has_none) {
        put_off(pruning, &view->base, "its index is lost, or is being rebuilt");
        return QR_OK;
    }
    if (is_own) {
        QR_TRY(qr_index_models(pruning->index, view->base.id, INDEX_MODELS_MAX, view->models.index_keys,
                               &view->models.index_count, err));
        QR_TRY(qr_db_read(pruning->db, add_index_models, &view->models, err));
    }
    if (view->models.index_count == INDEX_MODELS_MAX) {
        put_off(pruning, &view->base, "its index has vectors of too many models");
    } else if (view->models.count == 0) {
        go_behind_base(view);
    } else {
        return read_items(view, reading, err);
    }
    return QR_OK;
}

/* Goes on from the round's place, until there are keys or the last base was seen. */
static qr_rc see_chunks(struct view *view, struct reading *reading, bool *ret_is_done, qr_err *err)
{
    struct qr_pruning *pruning = view->pruning;
    for (int i = 0; i < BASES_A_LOOK && pruning->key_count == 0; i++) {
        QR_TRY(qr_db_read(pruning->db, load_view, view, err));
        if (!view->has_base) {
            *ret_is_done = true;
            return QR_OK;
        }
        const qr_rc rc = see_base(view, reading, err);
        if (rc == QR_CORRUPT) {
            put_off(pruning, &view->base, "its index is damaged");
            return QR_OK;
        }
        if (rc == QR_NOT_FOUND) {
            return QR_OK; /* the base goes; the next look finds it deleting */
        }
        QR_TRY(rc);
        if (pruning->act == QR_PRUNE_PUT_OFF) {
            return QR_OK;
        }
        pruning->place = view->place;
    }
    return QR_OK;
}

struct sums {
    struct qr_vector_round round;
    struct qr_vector_totals totals;
    int64_t now_ms;
};

static qr_rc load_round(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct sums *sums = arg;
    QR_TRY(qr_tx_now_ms(tx, &sums->now_ms, err));
    return qr_round_load(tx, &sums->round, err);
}

static qr_rc load_totals(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct sums *sums = arg;
    return qr_vector_totals(tx, &sums->totals, err);
}

static qr_rc see_size(struct qr_pruning *pruning, qr_err *err)
{
    struct sums sums;
    QR_TRY(qr_db_read(pruning->db, load_totals, &sums, err));
    pruning->size_bytes = sums.totals.size_bytes;
    return QR_OK;
}

static qr_rc see_next_chunks(struct qr_pruning *pruning, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) struct view *view = qr_alloc_zero(sizeof *view);
    QR_CLEANUP(qr_free_ptr) struct reading *reading = qr_alloc_zero(sizeof *reading);
    bool is_done = false;
    if (!view || !reading) {
        return qr_handler_out_of_memory(err);
    }
    view->pruning = pruning;
    pruning->act = QR_PRUNE_MARK;
    pruning->place = pruning->round.place;
    pruning->key_count = 0;
    qr_arena_init(&view->arena, 0);
    const qr_rc rc = see_chunks(view, reading, &is_done, err);
    qr_arena_done(&view->arena);
    QR_TRY(rc);
    qsort(pruning->keys, pruning->key_count, sizeof pruning->keys[0], compare_keys);
    if (is_done) {
        pruning->act = QR_PRUNE_BEGIN_EVICTING;
        return see_size(pruning, err);
    }
    return QR_OK;
}

/* ---- a step ---- */

static qr_rc see_whether_too_much(struct qr_pruning *pruning, int64_t now_ms, qr_err *err)
{
    const int64_t looked_ms = pruning->round.looked_ms;
    if (looked_ms > 0 && looked_ms <= now_ms && now_ms - looked_ms < QR_PRUNE_LOOK_MS) {
        return QR_OK;
    }
    QR_TRY(see_size(pruning, err));
    pruning->act = pruning->size_bytes > pruning->limit_bytes ? QR_PRUNE_BEGIN : QR_PRUNE_NOTE_LOOK;
    return QR_OK;
}

static qr_rc see(void *arg, qr_err *err)
{
    struct qr_pruning *pruning = arg;
    struct sums sums;
    QR_TRY(qr_db_read(pruning->db, load_round, &sums, err));
    pruning->round = sums.round;
    pruning->act = QR_PRUNE_NOTHING;
    switch (sums.round.phase) {
    case QR_ROUND_NONE:
        return see_whether_too_much(pruning, sums.now_ms, err);
    case QR_ROUND_MARKS:
        return see_next_chunks(pruning, err);
    case QR_ROUND_EVICTS:
        pruning->act = QR_PRUNE_EVICT;
        return QR_OK;
    }
    return QR_OK;
}

static bool stands_there(const struct qr_vector_round *a, const struct qr_vector_round *b)
{
    return a->number == b->number && a->phase == b->phase && a->to_bytes == b->to_bytes &&
           qr_uuid_equal(a->place.base_id, b->place.base_id) && qr_uuid_equal(a->place.item_id, b->place.item_id) &&
           a->place.generation == b->place.generation && a->place.ordinal == b->place.ordinal;
}

static qr_rc act(struct qr_tx *tx, const struct qr_pruning *pruning, const struct qr_vector_round *round, bool *more,
                 qr_err *err)
{
    bool is_over;
    switch (pruning->act) {
    case QR_PRUNE_NOTHING:
        *more = false;
        return QR_OK;
    case QR_PRUNE_NOTE_LOOK:
        *more = false;
        return qr_round_note_look(tx, err);
    case QR_PRUNE_BEGIN:
        return qr_round_begin(tx, pruning->limit_bytes, err);
    case QR_PRUNE_MARK:
        QR_TRY(qr_round_mark(tx, round, pruning->keys, pruning->key_count, err));
        return qr_round_go_to(tx, &pruning->place, err);
    case QR_PRUNE_BEGIN_EVICTING:
        return qr_round_begin_evicting(tx, pruning->size_bytes - round->to_bytes, err);
    case QR_PRUNE_EVICT:
        QR_TRY(qr_round_evict(tx, round, &is_over, err));
        *more = !is_over;
        return QR_OK;
    case QR_PRUNE_PUT_OFF:
        *more = false;
        return qr_round_put_off(tx, pruning->why, err);
    }
    return QR_OK;
}

static qr_rc do_step(struct qr_tx *tx, struct qr_pruning *pruning, bool *ret_more, qr_err *err)
{
    struct qr_vector_round round;
    *ret_more = true;
    if (pruning->act != QR_PRUNE_BEGIN) { /* which takes a lock of its own */
        QR_TRY(qr_round_lock(tx, &round, err));
        if (!stands_there(&round, &pruning->round)) {
            *ret_more = round.phase != QR_ROUND_NONE;
            return QR_OK;
        }
    }
    QR_TRY(act(tx, pruning, &round, ret_more, err));
    QR_FAILPOINT("vectors.round.before_commit", err);
    return QR_OK;
}

static qr_rc beat_step(struct qr_tx *tx, void *arg, bool *ret_more, qr_err *err)
{
    struct qr_pruning *pruning = arg;
    bool more;
    QR_TRY(do_step(tx, pruning, &more, err));
    *ret_more = more && pruning->step_count < QR_PRUNE_STEPS_A_SLOT;
    pruning->step_count = *ret_more ? pruning->step_count + 1 : 0;
    return QR_OK;
}

void qr_pruning_init(struct qr_pruning *pruning, struct qr_db *db, struct qr_index_set *index, int64_t limit_bytes)
{
    *pruning = (struct qr_pruning){.db = db, .index = index, .limit_bytes = limit_bytes};
}

struct qr_beat_task qr_prune_task(struct qr_pruning *pruning)
{
    return (struct qr_beat_task){"prune-vectors", QR_PRUNE_EVERY_MS, beat_step, pruning, .look = see};
}

/* ---- by request ---- */

struct asking {
    struct qr_pruning *pruning;
    int64_t to_bytes;
    bool more;
};

static qr_rc begin(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct asking *asking = arg;
    return qr_round_begin(tx, asking->to_bytes, err);
}

static qr_rc step(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct asking *asking = arg;
    return do_step(tx, asking->pruning, &asking->more, err);
}

static qr_rc load_into(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_round_load(tx, arg, err);
}

qr_rc qr_prune(struct qr_pruning *pruning, int64_t to_bytes, struct qr_vector_round *ret_round, qr_err *err)
{
    struct asking asking = {.pruning = pruning, .to_bytes = to_bytes, .more = true};
    struct qr_vector_round round;
    QR_TRY(see_size(pruning, err));
    if (pruning->size_bytes <= to_bytes) {
        *ret_round = (struct qr_vector_round){0};
        return QR_OK;
    }
    QR_TRY(qr_db_write(pruning->db, QR_RELAXED, begin, &asking, err));
    while (asking.more) {
        QR_TRY(see(pruning, err));
        QR_TRY(qr_db_write(pruning->db, QR_RELAXED, step, &asking, err));
    }
    QR_TRY(qr_db_read(pruning->db, load_into, &round, err));
    *ret_round = round;
    return QR_OK;
}
