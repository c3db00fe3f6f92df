/* GET /api/v1/jobs/{j}: a job with its history, and why it waits. */
#include "api/jobs.h"

#include "store/jobs_find.h"

enum { QUEUED_COUNT_MAX = 10000 };

/* Everything the answer needs, from one snapshot. */
struct view {
    const struct qr_request *request;
    struct qr_arena *arena;
    struct qr_job job;
    struct qr_job_attempt *attempts; /* the last first */
    size_t attempt_count;
    /* running */
    const char *worker_name;
    int64_t lease_until_ms, now_ms;
    /* waiting */
    bool has_blocker;
    qr_uuid blocker_id;
    enum qr_job_state blocker_state;
    int64_t paused_since_ms, live_workers, queued_count;
};

/* ---- reading ---- */

static qr_rc load_circumstances(struct qr_tx *tx, struct view *view, qr_err *err)
{
    const struct qr_job *job = &view->job;
    switch (job->state) {
    case QR_JOB_RUNNING:
        return qr_worker_find(tx, job->worker_id, view->arena, &view->worker_name, &view->lease_until_ms, err);
    case QR_JOB_BLOCKED:
        return qr_jobs_find_blocker(tx, job->id, &view->has_blocker, &view->blocker_id, &view->blocker_state, err);
    case QR_JOB_QUEUED:
        QR_TRY(qr_queue_paused_since(tx, job->queue, &view->paused_since_ms, err));
        QR_TRY(qr_workers_count_live(tx, &view->live_workers, err));
        return qr_jobs_count(tx, job->queue, QR_JOB_QUEUED, QUEUED_COUNT_MAX, &view->queued_count, err);
    default:
        return QR_OK;
    }
}

static qr_rc load_view(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct view *view = arg;
    qr_arena_reset(view->arena);
    QR_TRY(qr_tx_now_ms(tx, &view->now_ms, err));
    QR_TRY(qr_request_find_job(tx, view->request, view->arena, &view->job, err));
    QR_TRY(qr_jobs_attempts(tx, view->job.id, view->arena, &view->attempts, &view->attempt_count, err));
    return load_circumstances(tx, view, err);
}

/* ---- why it waits ---- */

static json_t *running_json(const struct view *view)
{
    const struct qr_job *job = &view->job;
    const int64_t deadline_ms = job->time_limit_ms ? job->claimed_ms + job->time_limit_ms : 0;
    const bool is_alive = view->worker_name[0] && view->lease_until_ms >= view->now_ms;
    json_t *worker = json_pack("{s:o, s:s, s:b, s:o}", "id", qr_json_uuid(job->worker_id), "name", view->worker_name,
                               "alive", is_alive, "lease_until", qr_json_time(view->lease_until_ms));
    return json_pack("{s:s, s:o, s:o, s:o}", "reason", "running", "since", qr_json_time(job->claimed_ms), "deadline",
                     qr_json_time(deadline_ms), "worker", worker);
}

/* `after` is what the last attempt came to (retried, snoozed, …); null = it was added for that time. */
static json_t *scheduled_json(const struct view *view)
{
    const struct qr_job *job = &view->job;
    return json_pack("{s:s, s:o, s:s?, s:s, s:s}", "reason", "scheduled", "until", qr_json_time(job->run_at_ms),
                     "after", view->attempt_count ? view->attempts[0].outcome : NULL, "code", job->code, "message",
                     job->message);
}

static json_t *blocked_json(const struct view *view)
{
    if (!view->has_blocker) {
        return json_pack("{s:s, s:n, s:n}", "reason", "blocked", "by", "by_state");
    }
    return json_pack("{s:s, s:o, s:s}", "reason", "blocked", "by", qr_json_uuid(view->blocker_id), "by_state",
                     qr_job_state_name(view->blocker_state));
}

static json_t *queued_json(const struct view *view)
{
    if (view->paused_since_ms) {
        return json_pack("{s:s, s:o}", "reason", "queue_paused", "since", qr_json_time(view->paused_since_ms));
    }
    return json_pack("{s:s, s:o, s:I}", "reason", view->live_workers ? "due" : "no_worker", "since",
                     qr_json_time(view->job.run_at_ms), "queued", (json_int_t)view->queued_count);
}

static json_t *waiting_json(const struct view *view)
{
    switch (view->job.state) {
    case QR_JOB_RUNNING:
        return running_json(view);
    case QR_JOB_SCHEDULED:
        return scheduled_json(view);
    case QR_JOB_BLOCKED:
        return blocked_json(view);
    case QR_JOB_QUEUED:
        return queued_json(view);
    default:
        return json_null(); /* it has ended */
    }
}

/* ---- the answer ---- */

static json_t *history_json(const struct view *view)
{
    json_t *history = json_array();
    for (size_t i = 0; history && i < view->attempt_count; i++) {
        const struct qr_job_attempt *attempt = &view->attempts[i];
        json_t *entry =
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "outcome", attempt->outcome, "code", attempt->code, "message",
                      attempt->message, "worker_id", qr_json_uuid(attempt->worker_id), "claimed_at",
                      qr_json_time(attempt->claimed_ms), "ended_at", qr_json_time(attempt->ended_ms));
        if (json_array_append_new(history, entry) != 0) {
            json_decref(history);
            history = NULL;
        }
    }
    return history;
}

/* As the value it is; args that are not JSON (they always are) as text. */
static json_t *args_json(const struct qr_job *job)
{
    json_t *args = NULL;
    const qr_rc rc = qr_json_parse(qr_str_of(job->args), &QR_JSON_REQUEST_LIMITS, &args, NULL);
    return rc == QR_OK || rc == QR_NOMEM ? args : json_string(job->args);
}

static json_t *view_json(const struct view *view)
{
    json_t *body = qr_json_job(&view->job);
    json_t *more =
        json_pack("{s:o, s:I, s:o, s:o}", "args", args_json(&view->job), "time_limit_ms",
                  (json_int_t)view->job.time_limit_ms, "waiting", waiting_json(view), "history", history_json(view));
    if (!body || !more || json_object_update(body, more) != 0) {
        json_decref(body);
        body = NULL;
    }
    json_decref(more);
    return body;
}

qr_rc qr_route_jobs_show(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct view view = {.request = request, .arena = &arena, .worker_name = ""};
    QR_TRY(qr_db_read(request->quire->db, load_view, &view, err));
    return qr_reply_with(reply, 200, view_json(&view), err);
}
