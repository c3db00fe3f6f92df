/* What an item does next, and the job that does it: the one place that decides it, for add, expansion, retry, recovery and
 * every stage that ends. */
#include "workflow/schedule.h"

#include "model/source_plan.h"
#include "workflow/guard.h"

#include <stdio.h>

enum { PURGE_DELAY_MS = 30000, CONVERTER_POLL_MS = 5000 };

enum qr_job_type qr_next_stage(const struct qr_item *item)
{
    const int64_t needs =
        qr_item_needs(item->is_container, item->generation, item->text_generation, item->chunk_generation,
                      qr_item_done_generation(item), item->expanded_generation);
    if (!(needs & item->wanted)) {
        return 0;
    }
    switch (needs) {
    case QR_WANT_CHUNK:
        return QR_JOB_CHUNK_DOCUMENT;
    case QR_WANT_INDEX:
        return QR_JOB_INDEX_CHUNKS;
    default:
        break;
    }
    if (item->is_container) {
        return QR_JOB_PREPARE_ROOT;
    }
    return item->ticket[0] ? QR_JOB_CHECK_FILE_PROCESSING : QR_JOB_PROCESS_DOCUMENT;
}

enum qr_item_status qr_scheduled_status(const struct qr_item *item)
{
    if (!qr_next_stage(item)) {
        return qr_item_done_generation(item) == item->generation && !item->is_container ? QR_ITEM_COMPLETED
                                                                                        : QR_ITEM_IDLE;
    }
    return item->is_container ? QR_ITEM_PREPARING : QR_ITEM_PROCESSING;
}

/* ---- enqueueing ---- */

struct enqueue {
    struct qr_change *change;
    struct qr_item *const *items;
    size_t count;
    size_t done; /* how far it came */
};

static qr_rc enqueue_all(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct enqueue *enqueue = arg;
    for (enqueue->done = 0; enqueue->done < enqueue->count; enqueue->done++) {
        const struct qr_item *item = enqueue->items[enqueue->done];
        const enum qr_job_type type = qr_next_stage(item);
        const int64_t at_ms = type == QR_JOB_CHECK_FILE_PROCESSING ? enqueue->change->now_ms + CONVERTER_POLL_MS : 0;
        qr_uuid ignored;
        if (type) {
            QR_TRY(qr_jobs_add_stage(tx, enqueue->change->ids, item, type, at_ms, &ignored, err));
        }
    }
    return QR_OK;
}

/* One savepoint for all; where the k-th fails, another one for those before it. */
static size_t enqueue_as_many(struct qr_change *change, struct qr_item *const *items, size_t count, qr_err *ret_failure)
{
    struct enqueue enqueue = {.change = change, .items = items, .count = count};
    while (qr_tx_nested(change->tx, enqueue_all, &enqueue, ret_failure) != QR_OK && enqueue.done > 0) {
        enqueue.count = enqueue.done;
        enqueue.done = 0; /* in a transaction that is lost, nothing runs any more */
    }
    return enqueue.done;
}

void qr_enqueue_stages(struct qr_change *change, struct qr_item *const *items, size_t count, qr_err *ret_failure)
{
    const size_t queued = enqueue_as_many(change, items, count, ret_failure);
    for (size_t i = 0; i < count; i++) {
        if (i < queued) {
            items[i]->status = qr_scheduled_status(items[i]);
        } else {
            qr_set_failed(change, items[i], "enqueue", qr_code_info(QR_CODE_ENQUEUE_FAILED)->name, ret_failure->msg);
        }
    }
    if (queued == count) {
        *ret_failure = (qr_err){0};
    }
}

qr_rc qr_schedule_item(struct qr_change *change, struct qr_item *item, qr_err *err)
{
    qr_err failure = {0};
    qr_enqueue_stages(change, &item, 1, &failure);
    return qr_item_save(change, item, err);
}

qr_rc qr_schedule_strictly(struct qr_change *change, struct qr_item *item, qr_err *err)
{
    QR_TRY(enqueue_all(change->tx, &(struct enqueue){.change = change, .items = &item, .count = 1}, err));
    item->status = qr_scheduled_status(item);
    QR_TRY(qr_item_save(change, item, err));
    return qr_purge_at_rest(change, item, err);
}

/* ---- generations ---- */

qr_rc qr_raise_generation(struct qr_change *change, struct qr_item *item, const char *reason, qr_err *err)
{
    QR_TRY(qr_jobs_cancel_stage(change->tx, item->id, "stale_generation", "a newer attempt replaced this one", err));
    item->generation++;
    item->ticket = "";
    item->ticket_ms = 0;
    item->run_id = (qr_uuid){0}; /* a run never raises a generation: this attempt is not its */
    return qr_item_note_generation(change->tx, item->id, item->generation, reason, err);
}

void qr_set_failed(struct qr_change *change, struct qr_item *item, const char *stage, const char *code,
                   const char *message)
{
    const char *kept = qr_arena_copy(&change->arena, qr_str_of(message));
    item->status = QR_ITEM_FAILED;
    item->error_stage = stage;
    item->error_code = code;
    item->error_message = kept ? kept : "";
    item->error_generation = item->generation;
    item->error_ms = change->now_ms;
    item->ticket = "";
    if (item->is_container) {
        item->expand_code = code;
    }
}

/* ---- source planning ---- */

static bool goes_to_processor(const struct qr_settings *settings, qr_str name)
{
    for (size_t i = 0; i < settings->file_processor.extension_count; i++) {
        const qr_str extension = qr_str_of(settings->file_processor.extensions[i]);
        if (name.len > extension.len + 1 && name.ptr[name.len - extension.len - 1] == '.' &&
            strncasecmp(name.ptr + name.len - extension.len, extension.ptr, extension.len) == 0) {
            return true;
        }
    }
    return false;
}

bool qr_plan_source(struct qr_change *change, struct qr_item *item, const struct qr_settings *settings)
{
    const struct qr_source_plan plan =
        qr_source_plan(&(struct qr_source_facts){.type = item->type,
                                                 .name = qr_str_of(item->name),
                                                 .has_processor = goes_to_processor(settings, qr_str_of(item->name)),
                                                 .size_bytes = item->size_bytes,
                                                 .size_bytes_max = settings->limits.file_bytes_max});
    if (plan.way == QR_WAY_INVALID) {
        qr_set_failed(change, item, "plan", qr_code_info(plan.code)->name, plan.message);
        return false;
    }
    if (!item->mime || !item->mime[0]) {
        item->mime = plan.mime;
    }
    return true;
}

qr_rc qr_base_settings(const struct qr_base *base, struct qr_arena *arena, struct qr_settings *ret_settings,
                       qr_err *err)
{
    return qr_settings_parse_text(base->settings, arena, ret_settings, err);
}

/* ---- side jobs ---- */

/* {"what":"delete","roots":[…]} */
static const char *roots_as_json(const char *what, const struct qr_item *roots, size_t count, struct qr_arena *arena)
{
    enum { ID = QR_UUID_TEXT_SIZE + 2 /* quotes and a comma, without the NUL */ };
    char *text = qr_arena_alloc(arena, sizeof "{\"what\":\"\",\"roots\":[]}" + strlen(what) + count * ID);
    if (!text) {
        return NULL;
    }
    char *at = stpcpy(stpcpy(stpcpy(text, "{\"what\":\""), what), "\",\"roots\":[");
    for (size_t i = 0; i < count; i++) {
        *at++ = i ? ',' : ' ';
        *at++ = '"';
        qr_uuid_format(roots[i].id, at);
        at += QR_UUID_TEXT_SIZE - 1;
        *at++ = '"';
    }
    stpcpy(at, "]}");
    return text;
}

qr_rc qr_enqueue_roots(struct qr_change *change, enum qr_job_type type, const char *what, qr_uuid base_id,
                       const struct qr_item *roots, size_t count, struct qr_arena *arena, qr_uuid *ret_job_id,
                       qr_err *err)
{
    const char *key = qr_roots_key(base_id, roots, count, what, arena);
    const char *args = roots_as_json(what, roots, count, arena);
    if (!key || !args) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a job");
    }
    bool existed;
    return qr_jobs_add_side(change->tx, change->ids, type, base_id, (qr_uuid){0}, 0, qr_str_of(key), qr_str_of(args), 0,
                            ret_job_id, &existed, err);
}

struct delete_job {
    struct qr_change *change;
    qr_uuid base_id;
    const struct qr_item *roots;
    size_t count;
    qr_uuid id;
};

static qr_rc enqueue_delete(struct qr_tx *tx QR_UNUSED, void *arg, qr_err *err)
{
    struct delete_job *job = arg;
    return qr_enqueue_roots(job->change, QR_JOB_DELETE_SUBTREE, "delete", job->base_id, job->roots, job->count,
                            &job->change->arena, &job->id, err);
}

qr_rc qr_mark_deleting(struct qr_change *change, qr_uuid base_id, struct qr_item *roots, size_t count,
                       struct qr_delete_mark *ret_mark, qr_err *err)
{
    struct delete_job job = {change, base_id, roots, count, {{0}}};
    struct qr_delete_mark mark = {0};
    if (qr_tx_nested(change->tx, enqueue_delete, &job, &mark.failure) == QR_OK) {
        mark = (struct qr_delete_mark){.job_id = job.id};
    }
    for (size_t i = 0; i < count; i++) {
        roots[i].status = QR_ITEM_DELETING;
        roots[i].cleanup_job_id = mark.job_id;
        QR_TRY(qr_item_save(change, &roots[i], err));
    }
    if (ret_mark) {
        *ret_mark = mark;
    }
    return QR_OK;
}

/* By generation: one that is open may have looked already, and what it found is thrown away when a newer one is wanted. */
static qr_rc enqueue_of_item(struct qr_change *change, enum qr_job_type type, const struct qr_item *item, int64_t at_ms,
                             qr_err *err)
{
    const char *name = qr_job_type_info(type)->name;
    char id[QR_UUID_TEXT_SIZE], key[128];
    qr_uuid_format(item->id, id);
    snprintf(key, sizeof key, "%s:%s:%lld", name, id, (long long)item->generation);
    qr_uuid ignored;
    bool existed;
    return qr_jobs_add_side(change->tx, change->ids, type, item->base_id, item->id, item->generation, qr_str_of(key),
                            (qr_str){0}, at_ms, &ignored, &existed, err);
}

qr_rc qr_enqueue_refresh(struct qr_change *change, const struct qr_item *item, qr_err *err)
{
    return enqueue_of_item(change, QR_JOB_REFRESH_SOURCE, item, 0, err);
}

qr_rc qr_enqueue_purge(struct qr_change *change, const struct qr_item *item, qr_err *err)
{
    return enqueue_of_item(change, QR_JOB_PURGE, item, change->now_ms + PURGE_DELAY_MS, err);
}

qr_rc qr_purge_at_rest(struct qr_change *change, const struct qr_item *item, qr_err *err)
{
    const bool is_at_rest = !item->is_container && !qr_item_status_is_active(item->status);
    return is_at_rest && item->generation > 1 ? qr_enqueue_purge(change, item, err) : QR_OK;
}
