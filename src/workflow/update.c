/* update: new content supersedes at once (UPD-1, UPD-2); patch: what is said about an item (HIDE-1). */
#include "base/failpoint.h"
#include "base/hash.h"
#include "workflow/guard.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

/* ---- content ---- */

struct update_call {
    const struct qr_workflow *workflow;
    qr_uuid base_id, item_id;
    const struct qr_new_artifact *artifact;
    bool changed;
};

static qr_rc supersede(struct qr_change *change, const struct update_call *call, struct qr_item *item, qr_err *err)
{
    QR_TRY(qr_raise_generation(change, item, "update", err));
    QR_TRY(qr_artifact_adopt(change->tx, item->base_id, item->id, item->generation, call->artifact, err));
    item->source = (qr_str){0}; /* from now on its bytes are Quire's: no later generation may read the old path */
    item->mtime_ns = 0;
    item->size_bytes = call->artifact->size_bytes;
    item->has_hash = true;
    memcpy(item->content_hash, call->artifact->hash, sizeof item->content_hash);
    return qr_schedule_strictly(change, item, err);
}

static qr_rc update_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct update_call *call = arg;
    struct qr_base *base;
    struct qr_item item;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->base_id, 1, err));
    QR_TRY(qr_guard_base(&change, call->base_id, &base, err));
    QR_TRY(qr_guard_item(&change, call->base_id, call->item_id, &change.arena, &item, err));
    if (item.type != QR_ITEM_NOTE && item.type != QR_ITEM_FILE) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "a %s has no content of its own", qr_item_type_name(item.type));
    }
    if (item.depth > 0 && item.source.len) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "the content of a file in a folder comes from the folder: change it there");
    }
    call->changed = !item.has_hash || memcmp(item.content_hash, call->artifact->hash, sizeof item.content_hash) != 0;
    if (!call->changed) {
        return QR_OK;
    }
    QR_TRY(supersede(&change, call, &item, err));
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("update.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_update_owned(const struct qr_workflow *workflow, qr_uuid base_id, qr_uuid item_id,
                               const struct qr_new_artifact *artifact, bool *ret_changed, qr_err *err)
{
    struct update_call call = {workflow, base_id, item_id, artifact, false};
    const qr_rc rc = qr_db_write(workflow->db, QR_DURABLE, update_in_tx, &call, err);
    *ret_changed = call.changed;
    (void)QR_FAILPOINT_RC("update.after_commit", NULL);
    return rc;
}

qr_rc qr_workflow_update(const struct qr_workflow *workflow, qr_uuid base_id, qr_uuid item_id, qr_str content,
                         bool *ret_changed, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_new_artifact artifact;
    QR_TRY(qr_artifact_prepare(workflow->artifacts, qr_uuid_next(workflow->ids), QR_ARTIFACT_SOURCE, content, &arena,
                               &artifact, err));
    const qr_rc rc = qr_workflow_update_owned(workflow, base_id, item_id, &artifact, ret_changed, err);
    if (rc == QR_OK && !*ret_changed) { /* where the write failed its outcome may not be known: that file is swept */
        qr_artifact_discard(workflow->artifacts, &artifact);
    }
    return rc;
}

/* ---- what is said about it ---- */

struct patch_call {
    const struct qr_workflow *workflow;
    qr_uuid base_id, item_id;
    const struct qr_item_patch *patch;
};

static qr_rc patch_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct patch_call *call = arg;
    const struct qr_item_patch *patch = call->patch;
    struct qr_base *base;
    struct qr_item item;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->base_id, 1, err));
    QR_TRY(qr_guard_base(&change, call->base_id, &base, err));
    QR_TRY(qr_guard_item(&change, call->base_id, call->item_id, &change.arena, &item, err));
    item.name = patch->name ? patch->name : item.name;
    item.attributes = patch->attributes ? patch->attributes : item.attributes;
    item.enabled = patch->enabled ? *patch->enabled : item.enabled;
    QR_TRY(qr_item_save(&change, &item, err));
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("patch.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_patch(const struct qr_workflow *workflow, qr_uuid base_id, qr_uuid item_id,
                        const struct qr_item_patch *patch, qr_err *err)
{
    struct patch_call call = {workflow, base_id, item_id, patch};
    QR_TRY(qr_db_write(workflow->db, QR_DURABLE, patch_in_tx, &call, err));
    (void)QR_FAILPOINT_RC("patch.after_commit", NULL);
    return QR_OK;
}
