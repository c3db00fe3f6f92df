/* add: rows and their first jobs, in one transaction (ADD-1 … ADD-5). */
#include "base/failpoint.h"
#include "base/hash.h"
#include "workflow/guard.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

struct add_call {
    const struct qr_workflow *workflow;
    const struct qr_add *add;
    const struct qr_new_artifact *contents; /* of notes and of files that are ours, by index */
    struct qr_item **rows;                  /* of those that are new, by index, while the transaction lasts */
    struct qr_arena *arena;
    struct qr_added *added;
    qr_err enqueue_failure; /* code NONE = every job was queued */
};

/* A root under way: rows are written after the jobs are queued, so that each row says what became of its job. */
struct pending {
    struct qr_item *items;
    struct qr_item **to_enqueue;
    size_t count, enqueue_count;
    const size_t *indexes;
};

static qr_str last_part(qr_str source)
{
    while (source.len > 1 && source.ptr[source.len - 1] == '/') {
        source.len--;
    }
    for (size_t i = source.len; i > 0; i--) {
        if (source.ptr[i - 1] == '/' && i < source.len) {
            return (qr_str){source.ptr + i, source.len - i};
        }
    }
    return source;
}

static bool has_content(const struct qr_add_item *given)
{
    return given->type == QR_ITEM_NOTE || given->owned;
}

/* Its place in the tree. A child is known by its name inside its folder. */
static qr_rc place_item(struct qr_change *change, const struct add_call *call, const struct qr_add_item *given,
                        struct qr_item *item, qr_err *err)
{
    const struct qr_item *parent = given->parent ? call->rows[given->parent - 1] : NULL;
    const qr_str above = parent ? parent->path : (qr_str){0};
    char *path = qr_arena_alloc(&change->arena, above.len + QR_UUID_BYTES);
    if (!path) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an item");
    }
    if (parent) {
        memcpy(path, above.ptr, above.len);
        item->parent_id = parent->id;
        item->depth = parent->depth + 1;
        item->seen_generation = parent->generation;
    }
    memcpy(path + above.len, item->id.bytes, QR_UUID_BYTES);
    item->path = (qr_str){path, above.len + QR_UUID_BYTES};
    item->key = parent ? given->name : item->path;
    return QR_OK;
}

static qr_rc fill_item(struct qr_change *change, const struct add_call *call, size_t index, struct qr_item *item,
                       qr_err *err)
{
    const struct qr_add_item *given = &call->add->items[index];
    *item = (struct qr_item){
        .id = qr_uuid_next(change->ids),
        .base_id = call->add->base_id,
        .type = given->type,
        .is_container = given->type == QR_ITEM_DIRECTORY,
        .source = given->source,
        .no_links = given->no_links,
        .mime = given->type == QR_ITEM_NOTE ? "text/markdown" : "",
        .size_bytes = -1,
        .generation = 1,
        .wanted = call->add->is_manual ? 0 : QR_WANT_ALL,
        .status = QR_ITEM_IDLE,
        .enabled = true,
        .expand_code = "",
        .ticket = "",
    };
    QR_TRY(place_item(change, call, given, item, err));
    item->name = qr_arena_copy_utf8(&change->arena, given->name.len ? given->name : last_part(given->source));
    item->attributes = qr_arena_copy(&change->arena, given->attributes);
    item->options = qr_arena_copy(&change->arena, given->options);
    if (!item->name || !item->attributes || !item->options) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an item");
    }
    if (has_content(given)) {
        memcpy(item->content_hash, call->contents[index].hash, sizeof item->content_hash);
        item->size_bytes = call->contents[index].size_bytes;
        item->has_hash = true;
    }
    return QR_OK;
}

/* What is to become of an item whose source is there already; *ret_is_new: it is added after all. */
static qr_rc meet_existing(struct qr_change *change, const struct add_call *call, size_t index, bool *ret_is_new,
                           qr_err *err)
{
    const struct qr_add_item *given = &call->add->items[index];
    struct qr_added *added = &call->added[index];
    struct qr_item existing;
    bool found = false;
    for (size_t i = 0; i < index && call->add->on_conflict != QR_CONFLICT_CREATE && given->source.len; i++) {
        if (qr_str_equal(call->add->items[i].source, given->source)) { /* twice in one request */
            *added = (struct qr_added){.id = call->added[i].id, .what = "skipped"};
            *ret_is_new = false;
            return QR_OK;
        }
    }
    if (call->add->on_conflict != QR_CONFLICT_CREATE && given->source.len) {
        QR_TRY(
            qr_item_find_root(change->tx, call->add->base_id, given->source, &change->arena, &found, &existing, err));
    }
    *ret_is_new = !found;
    if (!found) {
        return QR_OK;
    }
    *added = (struct qr_added){.id = existing.id, .what = "skipped"};
    if (call->add->on_conflict == QR_CONFLICT_UPDATE) {
        added->what = "updated";
        return qr_enqueue_refresh(change, &existing, err);
    }
    return QR_OK;
}

static qr_rc insert_all(struct qr_change *change, struct add_call *call, const struct pending *pending, qr_err *err)
{
    for (size_t i = 0; i < pending->count; i++) {
        struct qr_item *item = &pending->items[i];
        const size_t index = pending->indexes[i];
        QR_TRY(qr_item_insert(change, item, err));
        if (has_content(&call->add->items[index])) {
            QR_TRY(
                qr_artifact_adopt(change->tx, item->base_id, item->id, item->generation, &call->contents[index], err));
        }
        call->added[index] = (struct qr_added){.id = item->id, .what = "created"};
    }
    return QR_OK;
}

static qr_rc add_new(struct qr_change *change, struct add_call *call, const struct qr_settings *settings, qr_err *err)
{
    const size_t max = call->add->count + 1;
    struct pending pending = {
        .items = qr_arena_array(&change->arena, max, sizeof(struct qr_item)),
        .to_enqueue = qr_arena_array(&change->arena, max, sizeof(struct qr_item *)),
    };
    size_t *indexes = qr_arena_array(&change->arena, max, sizeof indexes[0]);
    pending.indexes = indexes;
    call->rows = qr_arena_array(&change->arena, max, sizeof(struct qr_item *));
    if (!pending.items || !pending.to_enqueue || !indexes || !call->rows) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for items");
    }
    for (size_t i = 0; i < call->add->count; i++) {
        bool is_new;
        QR_TRY(meet_existing(change, call, i, &is_new, err));
        if (!is_new) {
            continue;
        }
        struct qr_item *item = &pending.items[pending.count];
        indexes[pending.count++] = i;
        QR_TRY(fill_item(change, call, i, item, err));
        call->added[i].id = item->id;
        call->rows[i] = item;
        if (qr_plan_source(change, item, settings) && qr_next_stage(item)) {
            pending.to_enqueue[pending.enqueue_count++] = item;
        }
    }
    qr_enqueue_stages(change, pending.to_enqueue, pending.enqueue_count, &call->enqueue_failure);
    return insert_all(change, call, &pending, err);
}

static qr_rc add_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct add_call *call = arg;
    struct qr_base *base;
    struct qr_settings settings;
    QR_CHANGE(change);
    call->enqueue_failure = (qr_err){0};
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->add->base_id, 1, err));
    QR_TRY(qr_guard_base(&change, call->add->base_id, &base, err));
    QR_TRY(qr_base_settings(base, &change.arena, &settings, err));
    QR_TRY(add_new(&change, call, &settings, err));
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("add.before_commit", err);
    return QR_OK;
}

/* ---- the contents of notes: files of large ones are written before the transaction ---- */

static void discard_contents(const struct add_call *call, const struct qr_new_artifact *contents, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (call->add->items[i].type == QR_ITEM_NOTE) {
            qr_artifact_discard(call->workflow->artifacts, &contents[i]);
        }
    }
}

static qr_rc prepare_contents(struct add_call *call, struct qr_new_artifact *contents, qr_err *err)
{
    for (size_t i = 0; i < call->add->count; i++) {
        const struct qr_add_item *given = &call->add->items[i];
        contents[i] = given->owned ? *given->owned : contents[i];
        const qr_rc rc = given->type != QR_ITEM_NOTE
                             ? QR_OK
                             : qr_artifact_prepare(call->workflow->artifacts, qr_uuid_next(call->workflow->ids),
                                                   QR_ARTIFACT_SOURCE, given->content, call->arena, &contents[i], err);
        if (rc != QR_OK) {
            discard_contents(call, contents, i);
            return rc;
        }
    }
    return QR_OK;
}

qr_rc qr_workflow_add(const struct qr_workflow *workflow, const struct qr_add *add, struct qr_arena *arena,
                      struct qr_added **ret_added, qr_err *err)
{
    struct qr_new_artifact *contents = qr_arena_array(arena, add->count + 1, sizeof contents[0]);
    struct add_call call = {.workflow = workflow,
                            .add = add,
                            .contents = contents,
                            .arena = arena,
                            .added = qr_arena_array(arena, add->count + 1, sizeof(struct qr_added))};
    if (!contents || !call.added) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for items");
    }
    *ret_added = call.added;
    QR_TRY(prepare_contents(&call, contents, err));
    /* where the write fails its outcome may not be known: files that no row adopted are swept */
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, add_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("add.after_commit", NULL);
    if (call.enqueue_failure.code != QR_CODE_NONE) {
        return qr_fail(err, QR_CODE_ENQUEUE_FAILED, "some items could not be queued: %s", call.enqueue_failure.msg);
    }
    return QR_OK;
}
