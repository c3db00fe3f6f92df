/* The model of a base: which is wanted, which is live, which was before. docs/SEMANTICS.md, MODEL.
 *
 * Settings say which one is wanted. Until its vectors are built, search uses the one that was live, whose settings are kept
 * beside (`live_embedding`). Every change of the two, and every rebuild of the index, raises `vector_epoch`: a stage that
 * embedded for what was live before is run again, and a build that has seen less than there is does not switch. */
#include "workflow/models.h"

#include "base/failpoint.h"
#include "base/json.h"
#include "workflow/guard.h"
#include "workflow/process.h"

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the settings of a base");
}

/* ---- settings ---- */

/* {"embedding": …} of the settings. */
static qr_rc embedding_alone(const char *settings, struct qr_arena *arena, const char **ret_alone, qr_err *err)
{
    QR_JSON *whole = NULL;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_TRY(qr_json_parse(qr_str_of(settings[0] ? settings : "{}"), &QR_JSON_REQUEST_LIMITS, &whole, err));
    json_t *embedding = json_object_get(whole, "embedding");
    QR_JSON *alone = json_pack("{s:o}", "embedding", embedding ? json_incref(embedding) : json_object());
    if (!alone) {
        return out_of_memory(err);
    }
    QR_TRY(qr_json_write(alone, &text, err));
    *ret_alone = qr_arena_copy(arena, qr_buf_str(&text));
    return *ret_alone ? QR_OK : out_of_memory(err);
}

static qr_rc live_alone(const struct qr_base *base, struct qr_arena *arena, const char **ret_alone, qr_err *err)
{
    if (qr_base_is_building(base)) {
        *ret_alone = base->live_embedding;
        return QR_OK;
    }
    return embedding_alone(base->settings, arena, ret_alone, err);
}

/* ---- the job ---- */

static qr_rc cancel_build(struct qr_change *change, const struct qr_base *base, qr_err *err)
{
    enum qr_job_state before;
    if (qr_uuid_is_zero(base->build_job_id)) {
        return QR_OK;
    }
    const qr_rc rc =
        qr_jobs_cancel(change->tx, base->build_job_id, "cancelled", "another model is wanted now", &before, err);
    return rc == QR_NOT_FOUND ? QR_OK : rc; /* long ago */
}

static qr_rc enqueue_build(struct qr_change *change, qr_uuid base_id, qr_err *err)
{
    qr_uuid job_id;
    QR_TRY(qr_enqueue_base_job(change->tx, change->ids, QR_JOB_BUILD_VECTORS, base_id, &job_id, err));
    return qr_base_set_build(change->tx, base_id, job_id, err);
}

/* A build that failed or was cancelled may have left vectors that nobody uses, though the model is live. */
qr_rc qr_ensure_build(struct qr_change *change, const struct qr_base *base, qr_err *err)
{
    struct qr_job job;
    bool found = false;
    QR_TRY(qr_jobs_find(change->tx, base->build_job_id, &change->arena, &found, &job, err));
    const bool is_open = found && qr_job_state_is_open(job.state);
    const bool has_ended_badly = found && !is_open && job.state != QR_JOB_COMPLETED;
    const bool is_needed = (qr_base_is_building(base) && !is_open) || has_ended_badly;
    return is_needed ? enqueue_build(change, base->id, err) : QR_OK;
}

qr_rc qr_begin_build(struct qr_change *change, const struct qr_base *base, qr_err *err)
{
    return qr_uuid_is_zero(base->build_job_id) ? QR_OK : enqueue_build(change, base->id, err);
}

/* ---- a change of settings ---- */

struct choice {
    const struct qr_base *before;
    struct qr_base_models models; /* before */
    bool is_unreadable;           /* the settings before: as good as no model */
    int64_t key;                  /* of the one that is wanted now */
};

/* A base without items has nothing to build, and one without a model needs no vectors. */
static qr_rc can_switch_at_once(struct qr_change *change, const struct choice *choice, bool *ret_can, qr_err *err)
{
    bool has_items = false;
    if (choice->key != 0) {
        QR_TRY(qr_base_has_items(change->tx, choice->before->id, &has_items, err));
    }
    *ret_can = !has_items;
    return QR_OK;
}

static qr_rc choose(struct qr_change *change, const struct choice *choice, qr_err *err)
{
    const struct qr_base *before = choice->before;
    const char *live = "{\"embedding\":{}}", *previous = before->previous_embedding;
    bool is_live = choice->key == choice->models.live_key;
    if (!choice->is_unreadable) {
        QR_TRY(live_alone(before, &change->arena, &live, err));
    }
    if (!is_live) {
        QR_TRY(can_switch_at_once(change, choice, &is_live, err));
        previous = is_live ? live : previous;
    }
    QR_TRY(cancel_build(change, before, err));
    QR_TRY(qr_base_set_models(change->tx, before->id, is_live ? "" : live, previous, err));
    QR_TRY(qr_base_set_build_failed(change->tx, before->id, 0, err));
    QR_TRY(
        enqueue_build(change, before->id, err)); /* also where all is live: it takes away what nobody uses any more */
    return qr_change_note(change, before->id, (qr_uuid){0}, QR_EVENT_BASE, 0, is_live ? "" : "model_building", err);
}

qr_rc qr_model_choose(struct qr_change *change, const struct qr_base *before, const char *settings, qr_err *err)
{
    struct choice choice = {.before = before};
    struct qr_settings wanted;
    const qr_rc rc = qr_base_models(before, &change->arena, &choice.models, err);
    choice.is_unreadable = rc == QR_INVALID;
    QR_TRY(choice.is_unreadable ? QR_OK : rc);
    QR_TRY(qr_settings_parse_text(settings, &change->arena, &wanted, err));
    choice.key = qr_model_key(&wanted.embedding);
    /* the same once more: a build that has failed, or was cancelled, is begun again */
    const bool is_same = !choice.is_unreadable && choice.key == choice.models.wanted_key;
    return is_same ? qr_ensure_build(change, before, err) : choose(change, &choice, err);
}

/* ---- a call ---- */

struct set_call {
    const struct qr_workflow *workflow;
    qr_uuid base_id;
    qr_str settings;
};

static qr_rc set_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct set_call *call = arg;
    struct qr_base *base;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, call->workflow->ids, &call->base_id, 1, err));
    QR_TRY(qr_guard_base_exists(&change, call->base_id, &base, err));
    QR_TRY(qr_base_set(tx, base->id, 0, qr_str_of(base->name), call->settings, err));
    QR_TRY(qr_model_choose(&change, base, call->settings.ptr, err));
    QR_TRY(qr_workflow_finish(&change, err));
    QR_FAILPOINT("model.choose.before_commit", err);
    return QR_OK;
}

qr_rc qr_workflow_set_settings(const struct qr_workflow *workflow, qr_uuid base_id, const char *settings, qr_err *err)
{
    struct set_call call = {workflow, base_id, qr_str_of(settings)};
    return qr_db_write(workflow->db, QR_DURABLE, set_in_tx, &call, err);
}

/* ---- what the build reports ---- */

/* MODEL-3: under the base lock, and only when nothing went live or was lost since the pass began that it has not seen. */
qr_rc qr_plan_switch_part(struct qr_change *change, const struct qr_job *job, struct qr_switch_part *part, qr_err *err)
{
    const struct qr_base *base = qr_change_base(change, job->base_id);
    part->has_switched = false;
    if (!base || base->status == QR_BASE_DELETING || base->vector_epoch != part->vector_epoch ||
        base->build_missed != part->build_missed) {
        return QR_OK;
    }
    part->has_switched = true;
    QR_TRY(qr_base_set_build_failed(change->tx, base->id, part->failed_count, err));
    if (!qr_base_is_building(base)) {
        return QR_OK;
    }
    QR_TRY(qr_base_set_models(change->tx, base->id, "", base->live_embedding, err));
    QR_TRY(qr_change_note(change, base->id, (qr_uuid){0}, QR_EVENT_BASE, 0, "", err));
    QR_FAILPOINT("model.switch.before_commit", err);
    return QR_OK;
}

qr_rc qr_note_missed(struct qr_change *change, qr_uuid base_id, const struct qr_stage_result *result, qr_err *err)
{
    const struct qr_base *base = qr_change_base(change, base_id);
    const bool misses = base && qr_base_is_building(base) && result->lacks_wanted_vectors;
    return misses ? qr_base_raise_missed(change->tx, base_id, err) : QR_OK;
}
