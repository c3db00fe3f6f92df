/* An item as JSON: what is stored, and what is derived from its open stage job (STATE-1, STATE-2). */
#include "api/items.h"
#include "store/jobs_item.h"

/* ---- what is derived ---- */

static bool waits_for_stage(const struct qr_item *item)
{
    return item->status == QR_ITEM_PREPARING || (item->status == QR_ITEM_PROCESSING && !item->is_container);
}

static qr_rc find_stage(struct qr_tx *tx, const struct qr_item *item, struct qr_arena *arena,
                        struct qr_stage_view *ret_stage, qr_err *err)
{
    *ret_stage = (struct qr_stage_view){0};
    return waits_for_stage(item) ? qr_jobs_stage_view(tx, item->id, arena, ret_stage, err) : QR_OK;
}

static enum qr_item_status shown_status(const struct qr_item *item, const struct qr_stage_view *stage)
{
    if (item->is_container || item->status != QR_ITEM_PROCESSING || !stage->found || stage->state != QR_JOB_RUNNING) {
        return item->status;
    }
    return qr_job_type_info(stage->type)->queue == QR_QUEUE_EMBED ? QR_ITEM_EMBEDDING : QR_ITEM_READING;
}

qr_rc qr_item_shown_status(struct qr_tx *tx, const struct qr_item *item, struct qr_arena *arena,
                           enum qr_item_status *ret_status, qr_err *err)
{
    struct qr_stage_view stage;
    QR_TRY(find_stage(tx, item, arena, &stage, err));
    *ret_status = shown_status(item, &stage);
    return QR_OK;
}

/* The first stage of this generation was begun: it runs, was tried, or left something behind. */
static bool was_claimed(const struct qr_item *item, const struct qr_stage_view *stage)
{
    return (stage->found && (stage->claimed_ms > 0 || stage->attempts > 0)) ||
           item->text_generation >= item->generation || item->chunk_generation >= item->generation || item->ticket[0];
}

/* Whether another try may end otherwise though neither the file nor the settings change (AGAIN-1). */
static bool is_retryable(const char *code)
{
    static const qr_code lasting[] = {QR_CODE_UNSUPPORTED_TYPE, QR_CODE_TOO_LARGE, QR_CODE_CORRUPT,
                                      QR_CODE_DIMENSION_MISMATCH, QR_CODE_LIMIT_EXCEEDED};
    for (size_t i = 0; i < QR_COUNT(lasting); i++) {
        if (strcmp(code, qr_code_info(lasting[i])->name) == 0) {
            return false;
        }
    }
    return true;
}

/* ---- parts; NULL is out of memory ---- */

static json_t *progress_json(const struct qr_stage_view *stage)
{
    return stage->found ? json_pack("{s:s, s:I, s:I}", "stage", qr_job_type_info(stage->type)->name, "done",
                                    (json_int_t)stage->progress_done, "total", (json_int_t)stage->progress_total)
                        : json_null();
}

static json_t *counts_json(const struct qr_item *item)
{
    const struct qr_child_counts *counts = &item->counts;
    const json_int_t total = counts->completed + counts->failed + counts->active + counts->idle;
    if (!item->is_container) {
        return json_null();
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "total", total, "completed", (json_int_t)counts->completed, "failed",
                     (json_int_t)counts->failed, "active", (json_int_t)counts->active, "idle",
                     (json_int_t)counts->idle);
}

static json_t *error_json(const struct qr_item *item)
{
    if (!item->error_code[0]) {
        return json_null();
    }
    return json_pack("{s:s, s:s, s:s, s:b, s:I, s:o}", "stage", item->error_stage, "code", item->error_code, "message",
                     item->error_message, "retryable", is_retryable(item->error_code), "generation",
                     (json_int_t)item->error_generation, "at", qr_json_time(item->error_ms));
}

/* JSON that was stored; what is broken shows as the default. */
static json_t *stored_json(const char *text, const char *otherwise)
{
    json_t *value = NULL;
    if (!text[0]) { /* most items: nothing to parse */
        return otherwise[0] == '[' ? json_array() : json_object();
    }
    const qr_rc rc = qr_json_parse(qr_str_of(text), &QR_JSON_REQUEST_LIMITS, &value, NULL);
    return rc == QR_OK || rc == QR_NOMEM ? value : json_loads(otherwise, 0, NULL);
}

static json_t *hash_json(const struct qr_item *item)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * sizeof item->content_hash];
    for (size_t i = 0; i < sizeof item->content_hash; i++) {
        text[2 * i] = digits[item->content_hash[i] >> 4];
        text[2 * i + 1] = digits[item->content_hash[i] & 0xf];
    }
    return item->has_hash ? json_stringn(text, sizeof text) : json_null();
}

static json_t *source_json(const struct qr_item *item, struct qr_arena *arena)
{
    const char *text = item->source.len ? qr_arena_copy_utf8(arena, item->source) : NULL;
    return item->source.len == 0 ? json_null() : text ? json_string(text) : NULL;
}

static json_t *size_json(const struct qr_item *item)
{
    return item->size_bytes >= 0 && !item->is_container ? json_integer((json_int_t)item->size_bytes) : json_null();
}

/* ---- the whole ---- */

static json_t *identity_json(const struct qr_item *item, struct qr_arena *arena)
{
    return json_pack("{s:o, s:o, s:o, s:s, s:s, s:o, s:I, s:s?, s:o, s:o}", "id", qr_json_uuid(item->id), "base_id",
                     qr_json_uuid(item->base_id), "parent_id", qr_json_uuid(item->parent_id), "type",
                     qr_item_type_name(item->type), "name", item->name, "source", source_json(item, arena), "depth",
                     (json_int_t)item->depth, "mime", item->mime[0] ? item->mime : NULL, "size_bytes", size_json(item),
                     "content_hash", hash_json(item));
}

static json_t *state_json(const struct qr_item *item, const struct qr_stage_view *stage)
{
    const struct qr_item_progress progress = {
        .status = shown_status(item, stage),
        .is_container = item->is_container,
        .generation = item->generation,
        .live_generation = item->live_generation,
        .text_generation = item->text_generation,
        .expanded_generation = item->expanded_generation,
        .was_claimed = was_claimed(item, stage),
    };
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:b, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "status",
                     qr_item_status_name(progress.status), "index_status", qr_item_index_status(&progress),
                     "document_status", qr_item_document_status(&progress), "generation", (json_int_t)item->generation,
                     "live_generation", (json_int_t)item->live_generation, "enabled", item->enabled, "attributes",
                     stored_json(item->attributes, "{}"), "chunk_count", (json_int_t)item->chunk_count, "token_count",
                     (json_int_t)item->token_count, "progress", progress_json(stage), "counts", counts_json(item),
                     "warnings", stored_json(item->warnings, "[]"), "error", error_json(item), "created_at",
                     qr_json_time(item->created_ms), "updated_at", qr_json_time(item->updated_ms), "indexed_at",
                     qr_json_time(item->indexed_ms));
}

qr_rc qr_json_item(struct qr_tx *tx, const struct qr_item *item, struct qr_arena *arena, json_t **ret_json, qr_err *err)
{
    struct qr_stage_view stage;
    QR_TRY(find_stage(tx, item, arena, &stage, err));
    QR_JSON *whole = identity_json(item, arena);
    QR_JSON *state = state_json(item, &stage);
    if (!whole || !state || json_object_update(whole, state) != 0) {
        return qr_answer_out_of_memory(err);
    }
    *ret_json = json_incref(whole);
    return QR_OK;
}
