/* What follows from side jobs: batches of items that get the next generation, sources that were looked at again, assets that
 * were analysed, bases that were restored. */
#include "base/failpoint.h"
#include "base/json.h"
#include "store/assets.h"
#include "store/jobs_held.h"
#include "workflow/models.h"
#include "workflow/plan_internal.h"

/* ---- reindex-subtree, restore-base ---- */

/* REIDX-3: one that was deleted meanwhile, or is not at rest any more, is left alone. */
static qr_rc may_raise(struct qr_change *change, const struct qr_raise_part *part, const struct qr_item *item,
                       bool *ret_may, qr_err *err)
{
    bool is_deleting;
    *ret_may = false;
    QR_TRY(qr_item_is_deleting(change, item, &is_deleting, err));
    if (is_deleting) {
        return QR_OK;
    }
    if (part->only_failed) {
        *ret_may = qr_item_has_failed_itself(item);
        return QR_OK;
    }
    struct qr_status_counts open;
    QR_TRY(qr_items_count_open(change->tx, item->base_id, item->path, 1, &open, err));
    *ret_may = open.total == 0;
    return QR_OK;
}

static qr_rc raise_one(struct qr_change *change, const struct qr_raise_part *part, qr_uuid id, qr_err *err)
{
    struct qr_item item;
    bool found, may;
    QR_TRY(qr_item_find(change->tx, id, &change->arena, &found, &item, err));
    if (!found) {
        return QR_OK;
    }
    QR_TRY(may_raise(change, part, &item, &may, err));
    if (!may) {
        return QR_OK;
    }
    QR_TRY(qr_raise_generation(change, &item, part->reason, err));
    item.wanted = QR_WANT_ALL;
    if (item.is_container && !part->only_failed) {
        item.force_generation = item.generation; /* REIDX-4: its expansion carries it on */
    }
    return qr_schedule_item(change, &item, err); /* one that cannot be queued is `failed` */
}

qr_rc qr_plan_raise_part(struct qr_change *change, const struct qr_job *job QR_UNUSED, const struct qr_raise_part *part,
                         qr_err *err)
{
    for (size_t i = 0; i < part->count; i++) {
        QR_TRY(raise_one(change, part, part->ids[i], err));
    }
    return QR_OK;
}

/* ---- refresh-source ---- */

/* The item, if it still is at the job's generation: something newer knows more than this job. */
static qr_rc find_unchanged(struct qr_change *change, const struct qr_job *job, bool *ret_found,
                            struct qr_item *ret_item, qr_err *err)
{
    bool is_deleting;
    QR_TRY(qr_item_find(change->tx, job->item_id, &change->arena, ret_found, ret_item, err));
    if (*ret_found) {
        QR_TRY(qr_item_is_deleting(change, ret_item, &is_deleting, err));
        *ret_found = !is_deleting && ret_item->generation == job->generation;
    }
    return QR_OK;
}

qr_rc qr_plan_replace_warning(struct qr_change *change, struct qr_item *item, const char *code,
                              const struct qr_warning *warning, qr_err *err)
{
    QR_JSON *list = NULL;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    if (qr_json_parse(qr_str_of(item->warnings[0] ? item->warnings : "[]"), &QR_JSON_REQUEST_LIMITS, &list, NULL) !=
        QR_OK) {
        list = json_array();
    }
    for (size_t i = json_array_size(list); i > 0; i--) {
        const char *known = json_string_value(json_object_get(json_array_get(list, i - 1), "code"));
        if (known && strcmp(known, code) == 0) {
            json_array_remove(list, i - 1);
        }
    }
    if (warning) {
        json_array_append_new(list, json_pack("{s:s, s:s}", "code", warning->code, "message", warning->message));
    }
    QR_TRY(qr_json_write(list, &text, err));
    item->warnings = json_array_size(list) ? qr_arena_copy(&change->arena, qr_buf_str(&text)) : "";
    return item->warnings ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a warning");
}

static const char refresh_failed[] = "refresh_failed";

static qr_rc warn(struct qr_change *change, struct qr_item *item, const char *message, qr_err *err)
{
    QR_TRY(qr_plan_replace_warning(change, item, refresh_failed, &(struct qr_warning){refresh_failed, message}, err));
    return qr_item_save(change, item, err);
}

qr_rc qr_plan_refresh_ended(struct qr_change *change, const struct qr_ended *ended, qr_err *err)
{
    const struct qr_refresh_result *result = ended->outcome->result;
    struct qr_item item;
    bool found;
    QR_TRY(find_unchanged(change, ended->job, &found, &item, err));
    if (!found || ended->state == QR_JOB_SKIPPED) {
        return QR_OK;
    }
    if (ended->state != QR_JOB_COMPLETED || !result) {
        return warn(change, &item, ended->outcome->error.msg, err);
    }
    if (result->is_missing_or_unreadable) {
        return warn(change, &item, result->warning.message, err);
    }
    const bool had_warning = strstr(item.warnings, refresh_failed) != NULL;
    if (had_warning) {
        QR_TRY(qr_plan_replace_warning(change, &item, refresh_failed, NULL, err));
    }
    if (!result->is_changed) {
        return had_warning ? qr_item_save(change, &item, err) : QR_OK;
    }
    QR_TRY(qr_raise_generation(change, &item, "refresh", err));
    item.wanted = item.wanted ? item.wanted : QR_WANT_ALL;
    return qr_schedule_strictly(change, &item, err);
}

/* ---- analyze-asset ---- */

/* TYPE-7: when the last one has ended and text was gained, the document is done once more with it; whichever of the two
 * comes last sees to it. */
qr_rc qr_plan_after_assets(struct qr_change *change, struct qr_item *item, qr_err *err)
{
    int64_t pending, with_text;
    QR_TRY(qr_assets_count(change->tx, item->id, item->generation, &pending, &with_text, err));
    if (pending > 0 || with_text == 0 || item->status != QR_ITEM_COMPLETED) {
        return QR_OK;
    }
    QR_TRY(qr_raise_generation(change, item, "assets", err));
    return qr_schedule_strictly(change, item, err);
}

qr_rc qr_plan_asset_ended(struct qr_change *change, const struct qr_ended *ended, qr_err *err)
{
    const struct qr_asset_result *result = ended->outcome->result;
    const qr_err *error = &ended->outcome->error;
    struct qr_item item;
    bool found;
    QR_TRY(find_unchanged(change, ended->job, &found, &item, err));
    if (!found) {
        return QR_OK;
    }
    qr_uuid asset_id;
    if (!qr_asset_of_job(ended->job->args, &asset_id)) {
        return QR_OK;
    }
    if (ended->state == QR_JOB_COMPLETED && result) {
        QR_TRY(qr_asset_finish(change->tx, asset_id, ended->job->generation, QR_ANALYSIS_COMPLETED, result->text, "",
                               "", err));
    } else {
        const qr_code code = error->code == QR_CODE_NONE ? QR_CODE_STAGE_SKIPPED : error->code;
        QR_TRY(qr_asset_finish(change->tx, asset_id, ended->job->generation, QR_ANALYSIS_FAILED, (qr_str){"", 0},
                               qr_code_info(code)->name, error->msg, err));
    }
    return qr_plan_after_assets(change, &item, err);
}

/* ---- restore-base ---- */

qr_rc qr_plan_restore_ended(struct qr_change *change, const struct qr_ended *ended, qr_err *err)
{
    struct qr_base *base = qr_change_base(change, ended->job->base_id);
    if (!base || base->status == QR_BASE_DELETING || ended->state == QR_JOB_SKIPPED) {
        return QR_OK;
    }
    const qr_err *error = &ended->outcome->error;
    const bool is_ready = ended->state == QR_JOB_COMPLETED;
    /* that its vectors do not fit is known by this code alone, until they were all made again */
    const char *other_vectors = qr_code_info(QR_CODE_DIMENSION_MISMATCH)->name;
    const bool has_other_vectors = strcmp(base->error_code, other_vectors) == 0;
    const char *code = is_ready ? ""
                       : has_other_vectors
                           ? other_vectors
                           : qr_code_info(error->code == QR_CODE_NONE ? QR_CODE_STAGE_SKIPPED : error->code)->name;
    QR_TRY(qr_base_set_status(change->tx, base->id, is_ready ? QR_BASE_READY : QR_BASE_FAILED, code,
                              is_ready ? "" : error->msg, err));
    if (is_ready) {
        int64_t forwarded;
        QR_TRY(qr_begin_build(change, base, err)); /* what was built went with the index */
        QR_TRY(qr_jobs_forward_held(change->tx, base->id, &forwarded, err));
    }
    return qr_change_note(change, base->id, (qr_uuid){0}, QR_EVENT_BASE, 0, code, err);
}
