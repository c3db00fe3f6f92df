/* A leaf whose stage was completed: what it found is written, and the next stage queued; after the last one, the swap. */
#include "base/failpoint.h"
#include "base/json.h"
#include "store/assets.h"
#include "workflow/models.h"
#include "workflow/plan_internal.h"

const char *qr_warnings_as_json(const struct qr_warning *warnings, size_t count, struct qr_arena *arena)
{
    if (count == 0) {
        return "";
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    for (size_t i = 0; i < count; i++) {
        qr_buf_add_text(&text, i ? ",{\"code\":" : "[{\"code\":");
        qr_json_add_string(&text, qr_str_of(warnings[i].code));
        qr_buf_add_text(&text, ",\"message\":");
        qr_json_add_string(&text, qr_str_of(warnings[i].message));
        qr_buf_add_text(&text, "}");
    }
    qr_buf_add_text(&text, "]");
    return qr_buf_check(&text, NULL) == QR_OK ? qr_arena_copy(arena, qr_buf_str(&text)) : NULL;
}

/* ---- what it found ---- */

/* The stage that read the source begins the warnings anew; later ones add theirs. */
static qr_rc take_source_facts(struct qr_change *change, struct qr_item *item, const struct qr_stage_result *result,
                               qr_err *err)
{
    if (!result->source_was_read) {
        for (size_t i = 0; i < result->warning_count; i++) {
            QR_TRY(qr_plan_replace_warning(change, item, result->warnings[i].code, &result->warnings[i], err));
        }
        return QR_OK;
    }
    item->size_bytes = result->size_bytes;
    item->mtime_ns = result->mtime_ns;
    item->has_hash = result->has_hash;
    memcpy(item->content_hash, result->content_hash, sizeof item->content_hash);
    if (result->reached ==
        QR_REACHED_UNCHANGED) { /* the warnings are those of what is live, but for that of a refresh */
        return strstr(item->warnings, "refresh_failed")
                   ? qr_plan_replace_warning(change, item, "refresh_failed", NULL, err)
                   : QR_OK;
    }
    item->has_made_of = result->has_made_of;
    memcpy(item->made_of, result->made_of, sizeof item->made_of);
    item->mime = result->mime ? result->mime : item->mime;
    item->warnings = qr_warnings_as_json(result->warnings, result->warning_count, &change->arena);
    return item->warnings ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for warnings");
}

static qr_rc adopt_assets(struct qr_change *change, const struct qr_item *item, const struct qr_stage_result *result,
                          qr_err *err)
{
    for (size_t i = 0; i < result->asset_count; i++) {
        const struct qr_new_asset *asset = &result->assets[i];
        QR_TRY(qr_artifact_adopt(change->tx, item->base_id, item->id, item->generation, &asset->bytes, err));
        QR_TRY(qr_asset_add(change->tx, item, asset, err));
    }
    return QR_OK;
}

/* ---- assets: side work that never holds back its document ---- */

static qr_rc enqueue_assets(struct qr_change *change, const struct qr_item *item, const struct qr_stage_result *result,
                            qr_err *err)
{
    struct qr_settings settings;
    const struct qr_base *base = qr_change_base(change, item->base_id);
    if (result->asset_count == 0 || !(item->wanted & QR_WANT_ASSETS)) {
        return QR_OK;
    }
    QR_TRY(qr_base_settings(base, &change->arena, &settings, err));
    if (strcmp(settings.assets.analysis, "off") == 0) {
        return QR_OK;
    }
    for (size_t i = 0; i < result->asset_count; i++) {
        if (!result->assets[i].is_analysed) {
            QR_TRY(qr_asset_enqueue(change->tx, change->ids, item, result->assets[i].id, err));
        }
    }
    return QR_OK;
}

/* ---- how far it has come ---- */

static void set_completed(struct qr_change *change, struct qr_item *item)
{
    item->indexed_ms = change->now_ms;
    item->status = QR_ITEM_COMPLETED;
    item->error_stage = item->error_code = item->error_message = "";
    item->error_generation = item->error_ms = 0;
}

/* The swap. The rows of this generation were made durable before this transaction began; those of the one before are purged
 * by a job that begins after it (REIDX-6). */
static qr_rc go_live(struct qr_change *change, struct qr_item *item, const struct qr_stage_result *result, qr_err *err)
{
    const bool leaves_rows_behind = item->generation > 1;
    item->live_generation = item->generation;
    item->chunk_count = result->chunk_count;
    item->token_count = result->token_count;
    set_completed(change, item);
    QR_TRY(qr_item_save(change, item, err));
    QR_FAILPOINT("index.swap.before_commit", err);
    QR_TRY(qr_note_missed(change, item->base_id, result, err));
    QR_TRY(leaves_rows_behind ? qr_enqueue_purge(change, item, err) : QR_OK);
    return qr_plan_after_assets(change, item, err);
}

/* MODEL-2: since the stage began another model has become the live one, or the index was made anew: what it wrote there is
 * not to be relied on. */
static bool was_overtaken(struct qr_change *change, const struct qr_item *item, const struct qr_stage_result *result)
{
    const struct qr_base *base = qr_change_base(change, item->base_id);
    return base && base->vector_epoch != result->vector_epoch;
}

/* Chunk rows that went into an index before it was made anew are gone, and the rebuild may have been past the item before this
 * record told of them: they are written once more, from the text. Those of an earlier stage it has seen. */
static bool has_chunks(struct qr_change *change, const struct qr_item *item, const struct qr_stage_result *result)
{
    return item->chunk_generation == item->generation || !was_overtaken(change, item, result);
}

static qr_rc reach_index(struct qr_change *change, struct qr_item *item, const struct qr_stage_result *result,
                         qr_err *err)
{
    return was_overtaken(change, item, result) ? qr_schedule_strictly(change, item, err)
                                               : go_live(change, item, result, err);
}

/* REIDX-7: no row was written, and none goes: what is live stays it, under its number. Only what generations left that came to no
 * end, between the last one that did and this one, is to be purged. */
static qr_rc stay_live(struct qr_change *change, struct qr_item *item, const struct qr_stage_result *result,
                       qr_err *err)
{
    if (was_overtaken(change, item, result)) {
        return qr_schedule_strictly(change, item, err);
    }
    const bool leaves_rows_behind = qr_item_done_generation(item) < item->generation - 1;
    item->kept_generation = item->generation;
    item->ticket = "";
    set_completed(change, item);
    QR_TRY(qr_item_save(change, item, err));
    QR_FAILPOINT("index.kept.before_commit", err);
    return leaves_rows_behind ? qr_enqueue_purge(change, item, err) : QR_OK;
}

qr_rc qr_plan_stage_completed(struct qr_change *change, struct qr_item *item, const struct qr_stage_result *result,
                              qr_err *err)
{
    QR_TRY(take_source_facts(change, item, result, err));
    if (result->text) {
        QR_TRY(qr_artifact_adopt(change->tx, item->base_id, item->id, item->generation, result->text, err));
    }
    if (result->source) {
        QR_TRY(qr_artifact_adopt(change->tx, item->base_id, item->id, item->generation, result->source, err));
    }
    QR_TRY(adopt_assets(change, item, result, err));
    QR_TRY(enqueue_assets(change, item, result, err));
    switch (result->reached) {
    case QR_REACHED_TICKET:
        item->ticket = result->ticket;
        item->ticket_ms = item->ticket_ms ? item->ticket_ms : change->now_ms;
        return qr_schedule_strictly(change, item, err);
    case QR_REACHED_UNCHANGED:
        return stay_live(change, item, result, err);
    case QR_REACHED_TEXT:
        item->text_generation = item->generation;
        item->ticket = "";
        return qr_schedule_strictly(change, item, err);
    case QR_REACHED_CHUNKS:
    case QR_REACHED_INDEX:
        item->chunk_generation = has_chunks(change, item, result) ? item->generation : item->chunk_generation;
        item->text_generation = item->generation;
        item->ticket = "";
        return result->reached == QR_REACHED_INDEX ? reach_index(change, item, result, err)
                                                   : qr_schedule_strictly(change, item, err);
    case QR_REACHED_CONTAINER:
    case QR_REACHED_NOTHING:
        break;
    }
    return qr_fail(err, QR_CODE_STAGE_SKIPPED, "a stage was completed without a result");
}
