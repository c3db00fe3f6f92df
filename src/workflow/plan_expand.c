/* The expansion of a container: children that were found, changed, are due or gone (TYPE-1 … TYPE-3). */
#include "base/failpoint.h"
#include "workflow/plan_internal.h"

/* Children of one batch whose jobs are queued together; rows are written after that. */
struct batch {
    struct qr_item *items;
    struct qr_item **to_enqueue;
    bool *is_new;
    bool *rests; /* it was decided that nothing is to be done for it now */
    size_t count, enqueue_count;
    struct qr_item *gone;
    size_t gone_count;
};

/* With a run, children wait for their level; else they are scheduled as they are registered (PROC-5, PROC-6). */
static bool waits_for_its_level(const struct qr_item *parent)
{
    return !qr_uuid_is_zero(parent->run_id);
}

static qr_rc fill_new(struct qr_change *change, const struct qr_item *parent, const struct qr_found_child *child,
                      struct qr_item *item, qr_err *err)
{
    char *path = qr_arena_alloc(&change->arena, parent->path.len + QR_UUID_BYTES);
    if (!path) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an item");
    }
    *item = (struct qr_item){
        .id = qr_uuid_next(change->ids),
        .base_id = parent->base_id,
        .parent_id = parent->id,
        .depth = parent->depth + 1,
        .path = {path, parent->path.len + QR_UUID_BYTES},
        .type = child->type,
        .is_container = child->type == QR_ITEM_DIRECTORY,
        .name = child->name.ptr, /* NUL-terminated: in an arena */
        .key = child->key,
        .source = child->source,
        .no_links = parent->no_links,
        .mime = "",
        .size_bytes = child->size_bytes,
        .mtime_ns = child->mtime_ns,
        .generation = 1,
        .seen_generation = parent->generation,
        .status = QR_ITEM_IDLE,
        .wanted = parent->wanted,
        .run_id = parent->run_id,
        .enabled = true,
        .expand_code = "",
        .ticket = "",
    };
    memcpy(path, parent->path.ptr, parent->path.len);
    memcpy(path + parent->path.len, item->id.bytes, QR_UUID_BYTES);
    return QR_OK;
}

static void decide_new(struct qr_change *change, const struct qr_item *parent, const struct qr_settings *settings,
                       const struct qr_found_child *child, struct batch *batch, struct qr_item *item)
{
    batch->rests[item - batch->items] = true;
    if (child->error_code) {
        qr_set_failed(change, item, "expand", child->error_code, child->error_message);
    } else if (!qr_plan_source(change, item, settings)) {
        return; /* it is failed */
    } else if (waits_for_its_level(parent)) {
        item->status = QR_ITEM_IDLE;
    } else if (qr_next_stage(item)) {
        batch->to_enqueue[batch->enqueue_count++] = item;
        batch->rests[item - batch->items] = false;
    }
}

static qr_rc take_new(struct qr_change *change, const struct qr_item *parent, const struct qr_settings *settings,
                      const struct qr_found_child *child, struct batch *batch, qr_err *err)
{
    struct qr_item *item = &batch->items[batch->count];
    struct qr_item existing;
    bool exists; /* an expansion that is run again meets those it has registered */
    QR_TRY(qr_item_find_key(change->tx, parent->id, child->key, &change->arena, &exists, &existing, err));
    if (exists) {
        return QR_OK;
    }
    QR_TRY(fill_new(change, parent, child, item, err));
    batch->is_new[batch->count++] = true;
    decide_new(change, parent, settings, child, batch, item);
    return QR_OK;
}

static qr_rc take_known(struct qr_change *change, const struct qr_item *parent, const struct qr_settings *settings,
                        const struct qr_found_child *child, struct batch *batch, qr_err *err)
{
    struct qr_item *item = &batch->items[batch->count];
    bool found;
    QR_TRY(qr_item_find(change->tx, child->id, &change->arena, &found, item, err));
    if (!found || item->status == QR_ITEM_DELETING || !qr_uuid_equal(item->parent_id, parent->id)) {
        return QR_OK;
    }
    if (child->change == QR_CHILD_GONE) {
        batch->gone[batch->gone_count++] = *item;
        return QR_OK;
    }
    batch->is_new[batch->count++] = false;
    QR_TRY(qr_raise_generation(change, item, child->change == QR_CHILD_CHANGED ? "refresh" : "expand", err));
    if (item->seen_generation < parent->force_generation) { /* a reindex: it goes on below */
        item->wanted = QR_WANT_ALL;
        item->force_generation = item->is_container ? item->generation : 0;
    }
    item->seen_generation = parent->generation;
    item->size_bytes = child->size_bytes;
    item->mtime_ns = child->mtime_ns;
    item->wanted = item->wanted ? item->wanted : parent->wanted;
    decide_new(change, parent, settings, child, batch, item);
    return QR_OK;
}

/* ---- writing a batch ---- */

static qr_rc save_batch(struct qr_change *change, struct batch *batch, bool *ret_all_queued, qr_err *err)
{
    qr_err failure = {0};
    qr_enqueue_stages(change, batch->to_enqueue, batch->enqueue_count, &failure);
    *ret_all_queued = failure.code == QR_CODE_NONE;
    for (size_t i = 0; i < batch->count; i++) {
        struct qr_item *item = &batch->items[i];
        QR_TRY(batch->is_new[i] ? qr_item_insert(change, item, err) : qr_item_save(change, item, err));
        if (!batch->is_new[i] && batch->rests[i]) { /* what was begun of the generation before is nobody's */
            QR_TRY(qr_purge_at_rest(change, item, err));
        }
    }
    return QR_OK;
}

/* TYPE-2. */
static qr_rc delete_gone(struct qr_change *change, const struct batch *batch, qr_err *err)
{
    return batch->gone_count
               ? qr_mark_deleting(change, batch->gone[0].base_id, batch->gone, batch->gone_count, NULL, err)
               : QR_OK;
}

static qr_rc init_batch(struct batch *batch, size_t count, struct qr_arena *arena, qr_err *err)
{
    *batch = (struct batch){
        .items = qr_arena_array(arena, count + 1, sizeof batch->items[0]),
        .to_enqueue = qr_arena_array(arena, count + 1, sizeof(struct qr_item *)),
        .is_new = qr_arena_array(arena, count + 1, sizeof batch->is_new[0]),
        .rests = qr_arena_array(arena, count + 1, sizeof batch->rests[0]),
        .gone = qr_arena_array(arena, count + 1, sizeof batch->gone[0]),
    };
    return batch->items && batch->to_enqueue && batch->is_new && batch->rests && batch->gone
               ? QR_OK
               : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a batch of items");
}

qr_rc qr_plan_expand_part(struct qr_change *change, const struct qr_job *job, struct qr_expand_part *part, qr_err *err)
{
    struct qr_item parent;
    struct qr_settings settings;
    struct batch batch;
    QR_TRY(qr_guard_result(change, job, &change->arena, &parent, err));
    QR_TRY(qr_base_settings(qr_change_base(change, parent.base_id), &change->arena, &settings, err));
    QR_TRY(init_batch(&batch, part->count, &change->arena, err));
    for (size_t i = 0; i < part->count; i++) {
        const struct qr_found_child *child = &part->children[i];
        QR_TRY(child->change == QR_CHILD_NEW ? take_new(change, &parent, &settings, child, &batch, err)
                                             : take_known(change, &parent, &settings, child, &batch, err));
    }
    bool all_queued;
    QR_TRY(save_batch(change, &batch, &all_queued, err));
    QR_TRY(delete_gone(change, &batch, err));
    QR_FAILPOINT("expand.batch.before_commit", err);
    part->enqueue_failed = !all_queued;
    return QR_OK;
}

/* ---- the end ---- */

qr_rc qr_plan_expand_ended(struct qr_change *change, struct qr_item *item, const struct qr_ended *ended, qr_err *err)
{
    if (ended->state == QR_JOB_COMPLETED) {
        item->expanded_generation = item->generation;
        item->expand_code = "";
        item->error_stage = item->error_code = item->error_message = "";
        item->error_generation = item->error_ms = 0;
        const struct qr_expand_result *result = ended->outcome->result;
        item->warnings =
            result ? qr_warnings_as_json(result->warnings, result->warning_count, &change->arena) : item->warnings;
        if (!item->warnings) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for warnings");
        }
    } else {
        const qr_err *error = &ended->outcome->error;
        const bool has_declined = ended->state == QR_JOB_SKIPPED || error->code == QR_CODE_NONE;
        const enum qr_item_status before = item->status;
        qr_set_failed(change, item, ended->job->type,
                      qr_code_info(has_declined ? QR_CODE_STAGE_SKIPPED : error->code)->name, error->msg);
        item->status = before; /* the roll-up decides: children of an earlier expansion may be at work */
    }
    QR_TRY(qr_item_save(change, item, err));
    return qr_item_roll_up_later(change, item, err);
}
