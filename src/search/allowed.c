/* Lists ids by the tree, in one read. */
#include "search/allowed.h"

#include "store/hidden.h"

#include <stdlib.h>

enum {
    IDS_MAX = 1 << 18,    /* in the list: 4 MB */
    LOOKED_MAX = 1 << 17, /* items whose facts are looked at: a few tenths of a second */
    ITEMS_A_READ = 1024,
};

/* Making a list. */
struct listing {
    struct qr_allowed *allowed;
    qr_uuid base_id;
    const struct qr_search_filter *filter;
    struct qr_arena *arena;
    size_t looked_at;
};

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
}

/* ---- the list ---- */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(((const qr_uuid *)a)->bytes, ((const qr_uuid *)b)->bytes, QR_UUID_BYTES);
}

bool qr_allowed_has(const struct qr_allowed *allowed, const qr_uuid *id)
{
    return !allowed->is_known || (allowed->count && bsearch(id, allowed->ids, allowed->count, sizeof *id, compare_ids));
}

static qr_rc grow(struct listing *listing, size_t count, qr_err *err)
{
    struct qr_allowed *allowed = listing->allowed;
    if (allowed->count + count <= allowed->capacity) {
        return QR_OK;
    }
    const size_t capacity = QR_MAX(allowed->capacity * 2, allowed->count + count);
    qr_uuid *ids = qr_arena_array(listing->arena, capacity, sizeof *ids);
    if (!ids) {
        return out_of_memory(err);
    }
    if (allowed->count) {
        memcpy(ids, allowed->ids, allowed->count * sizeof *ids);
    }
    allowed->ids = ids;
    allowed->capacity = capacity;
    return QR_OK;
}

static qr_rc add_id(struct listing *listing, qr_uuid id, qr_err *err)
{
    QR_TRY(grow(listing, 1, err));
    listing->allowed->ids[listing->allowed->count++] = id;
    return QR_OK;
}

static bool is_full(const struct listing *listing)
{
    return listing->allowed->count >= IDS_MAX || listing->looked_at >= LOOKED_MAX;
}

static void end_list(struct listing *listing)
{
    struct qr_allowed *allowed = listing->allowed;
    allowed->is_known = !is_full(listing);
    if (allowed->count) {
        qsort(allowed->ids, allowed->count, sizeof *allowed->ids, compare_ids);
    }
}

/* ---- what is named ---- */

typedef qr_rc list_item_fn(struct qr_tx *tx, struct listing *listing, const struct qr_item *item, qr_err *err);

static qr_rc add_with_all_below(struct qr_tx *tx, struct listing *listing, const struct qr_item *item, qr_err *err)
{
    struct qr_allowed *allowed = listing->allowed;
    struct qr_item_cursor cursor = {0};
    size_t count = ITEMS_A_READ;
    QR_TRY(add_id(listing, item->id, err));
    while (item->is_container && count == ITEMS_A_READ && !is_full(listing)) {
        QR_TRY(grow(listing, ITEMS_A_READ, err));
        QR_TRY(qr_ids_below(tx, listing->base_id, item->path, ITEMS_A_READ, &cursor, allowed->ids + allowed->count,
                            &count, err));
        allowed->count += count;
    }
    return QR_OK;
}

/* One that is not there, or in another base, allows nothing. */
static qr_rc list_each(struct qr_tx *tx, struct listing *listing, list_item_fn *list, qr_err *err)
{
    const struct qr_search_filter *filter = listing->filter;
    for (size_t i = 0; i < filter->item_id_count && !is_full(listing); i++) {
        struct qr_item item;
        bool found;
        QR_TRY(qr_item_find(tx, filter->item_ids[i], listing->arena, &found, &item, err));
        if (found && qr_uuid_equal(item.base_id, listing->base_id)) {
            QR_TRY(list(tx, listing, &item, err));
        }
    }
    return QR_OK;
}

static void begin_list(struct listing *listing)
{
    listing->allowed->count = 0;
    listing->looked_at = 0;
}

static qr_rc list_named(struct qr_tx *tx, void *arg, qr_err *err)
{
    begin_list(arg);
    QR_TRY(list_each(tx, arg, add_with_all_below, err));
    end_list(arg);
    return QR_OK;
}

qr_rc qr_allowed_list_named(struct qr_allowed *allowed, struct qr_db *db, qr_uuid base_id,
                            const struct qr_search_filter *filter, struct qr_arena *arena, qr_err *err)
{
    struct listing listing = {.allowed = allowed, .base_id = base_id, .filter = filter, .arena = arena};
    return qr_db_read(db, list_named, &listing, err);
}

/* ---- what passes ---- */

static qr_rc add_passing(void *arg, const struct qr_item_facts *facts, qr_err *err)
{
    struct listing *listing = arg;
    bool passes;
    listing->looked_at++;
    QR_TRY(qr_filter_check(listing->filter, facts, &passes, err));
    return passes ? add_id(listing, facts->id, err) : QR_OK;
}

static qr_rc add_passing_below(struct qr_tx *tx, struct listing *listing, qr_str path, qr_err *err)
{
    struct qr_item_cursor cursor = {0};
    size_t count = ITEMS_A_READ;
    while (count == ITEMS_A_READ && !is_full(listing)) {
        QR_TRY(qr_items_facts(tx, listing->base_id, path, ITEMS_A_READ, &cursor, add_passing, listing, &count, err));
    }
    return QR_OK;
}

static qr_rc add_passing_within(struct qr_tx *tx, struct listing *listing, const struct qr_item *item, qr_err *err)
{
    const struct qr_item_facts facts = qr_item_facts_of(item);
    QR_TRY(add_passing(listing, &facts, err));
    return item->is_container ? add_passing_below(tx, listing, item->path, err) : QR_OK;
}

static qr_rc list_passing(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct listing *listing = arg;
    begin_list(listing);
    QR_TRY(listing->filter->item_ids ? list_each(tx, listing, add_passing_within, err)
                                     : add_passing_below(tx, listing, (qr_str){0}, err));
    end_list(listing);
    return QR_OK;
}

qr_rc qr_allowed_list_passing(struct qr_allowed *allowed, struct qr_db *db, qr_uuid base_id,
                              const struct qr_search_filter *filter, struct qr_arena *arena, qr_err *err)
{
    struct qr_allowed passing = {0};
    struct listing listing = {.allowed = &passing, .base_id = base_id, .filter = filter, .arena = arena};
    QR_TRY(qr_db_read(db, list_passing, &listing, err));
    if (passing.is_known) {
        *allowed = passing; /* else what was known before is better than nothing */
    }
    return QR_OK;
}
