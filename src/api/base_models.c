/* See base_models.h. */
#include "api/base_models.h"

qr_rc qr_build_view_load(struct qr_tx *tx, const struct qr_base *base, struct qr_arena *arena,
                         struct qr_build_view *ret_view, qr_err *err)
{
    *ret_view = (struct qr_build_view){0};
    return qr_base_is_building(base)
               ? qr_jobs_find(tx, base->build_job_id, arena, &ret_view->found, &ret_view->job, err)
               : QR_OK;
}

/* The embedding of settings; of those that cannot be read, nothing. */
static json_t *embedding_json(const char *settings)
{
    QR_JSON *whole = NULL;
    if (settings[0] && qr_json_parse(qr_str_of(settings), &QR_JSON_REQUEST_LIMITS, &whole, NULL) == QR_NOMEM) {
        return NULL;
    }
    json_t *embedding = json_object_get(whole, "embedding");
    return json_object_size(embedding) ? json_incref(embedding) : json_pack("{s:s}", "provider", "none");
}

static const char *live_settings(const struct qr_base *base)
{
    return qr_base_is_building(base) ? base->live_embedding : base->settings;
}

json_t *qr_json_base_models(const struct qr_base *base)
{
    return json_pack("{s:o, s:o, s:o, s:I}", "live", embedding_json(live_settings(base)), "wanted",
                     embedding_json(base->settings), "previous",
                     base->previous_embedding[0] ? embedding_json(base->previous_embedding) : json_null(),
                     "failed_chunks", (json_int_t)base->build_failed);
}

/* A job that is not open any more has not come to its end: it has failed, or somebody has cancelled it. */
static const char *status_of(const struct qr_build_view *view)
{
    switch (view->found ? view->job.state : QR_JOB_FAILED) {
    case QR_JOB_BLOCKED:
    case QR_JOB_QUEUED:
        return "queued";
    case QR_JOB_SCHEDULED:
        return "waiting";
    case QR_JOB_RUNNING:
    case QR_JOB_COMPLETED: /* the switch is being recorded */
        return "running";
    case QR_JOB_CANCELLED:
    case QR_JOB_SKIPPED:
        return "cancelled";
    default:
        return "failed";
    }
}

static json_t *error_json(const struct qr_build_view *view)
{
    return view->found && view->job.code[0]
               ? json_pack("{s:s, s:s}", "code", view->job.code, "message", view->job.message)
               : json_null();
}

json_t *qr_json_model_build(const struct qr_base *base, const struct qr_build_view *view)
{
    if (!qr_base_is_building(base)) {
        return json_null();
    }
    return json_pack("{s:s, s:I, s:I, s:o, s:o, s:o}", "status", status_of(view), "done",
                     (json_int_t)view->job.progress_done, "total", (json_int_t)view->job.progress_total, "from",
                     embedding_json(base->live_embedding), "to", embedding_json(base->settings), "error",
                     error_json(view));
}

json_t *qr_json_estimate(const struct qr_estimate *estimate)
{
    json_t *seconds = estimate->seconds >= 0 ? json_integer((json_int_t)estimate->seconds) : json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:b, s:o}", "chunks", (json_int_t)estimate->chunks, "to_embed",
                     (json_int_t)estimate->to_embed, "cached", (json_int_t)estimate->cached, "tokens",
                     (json_int_t)estimate->tokens, "is_sampled", (int)estimate->is_sampled, "seconds", seconds);
}
