/* /api/v1/queues: what is in them, pause and resume. */
#include "api/jobs.h"
#include "api/wire.h"
#include "api/write.h"

/* Counts end here: a look at a queue of a million jobs costs no more than this. */
enum { COUNT_MAX = 10000 };

static const enum qr_job_state counted_states[] = {QR_JOB_BLOCKED, QR_JOB_SCHEDULED, QR_JOB_QUEUED, QR_JOB_RUNNING,
                                                   QR_JOB_FAILED};

struct queue_view {
    int64_t paused_since_ms;
    uint64_t ended; /* in this process */
    int64_t counts[QR_COUNT(counted_states)];
};

static qr_rc load_queue(struct qr_tx *tx, enum qr_queue queue, struct queue_view *view, qr_err *err)
{
    QR_TRY(qr_queue_paused_since(tx, queue, &view->paused_since_ms, err));
    for (size_t i = 0; i < QR_COUNT(counted_states); i++) {
        QR_TRY(qr_jobs_count(tx, queue, counted_states[i], COUNT_MAX + 1, &view->counts[i], err));
    }
    return QR_OK;
}

static qr_rc load_queues(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct queue_view *views = arg;
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        QR_TRY(load_queue(tx, queue, &views[queue], err));
    }
    return QR_OK;
}

/* A number, or "10000+". */
static json_t *count_json(int64_t count)
{
    return count > COUNT_MAX ? json_sprintf("%d+", (int)COUNT_MAX) : json_integer((json_int_t)count);
}

static json_t *queue_json(enum qr_queue queue, const struct queue_view *view)
{
    json_t *counts = json_object();
    for (size_t i = 0; counts && i < QR_COUNT(counted_states); i++) {
        if (json_object_set_new(counts, qr_job_state_name(counted_states[i]), count_json(view->counts[i])) != 0) {
            json_decref(counts);
            counts = NULL;
        }
    }
    return json_pack("{s:s, s:o, s:o, s:I}", "name", qr_queue_name(queue), "paused_since",
                     qr_json_time(view->paused_since_ms), "counts", counts, "ended", (json_int_t)view->ended);
}

static json_t *trouble_json(struct quire *quire)
{
    qr_err trouble;
    qr_instance_trouble(quire, &trouble);
    return trouble.code == QR_CODE_NONE
               ? json_null()
               : json_pack("{s:s, s:s}", "code", qr_code_info(trouble.code)->name, "message", trouble.msg);
}

qr_rc qr_route_queues_list(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct queue_view views[QR_QUEUE_END] = {{0}};
    uint64_t ended[QR_QUEUE_END];
    QR_TRY(qr_db_read(request->quire->db, load_queues, views, err));
    qr_instance_ended_jobs(request->quire, ended);
    json_t *data = json_array();
    for (enum qr_queue queue = 1; data && queue < QR_QUEUE_END; queue++) {
        views[queue].ended = ended[queue];
        if (json_array_append_new(data, queue_json(queue, &views[queue])) != 0) {
            json_decref(data);
            data = NULL;
        }
    }
    return qr_reply_with(
        reply, 200, json_pack("{s:o, s:n, s:o}", "data", data, "next_cursor", "trouble", trouble_json(request->quire)),
        err);
}

/* ---- pause and resume ---- */

struct pause_change {
    enum qr_queue queue;
    uint64_t ended[QR_QUEUE_END];
    bool pause;
    json_t *body;
};

static qr_rc set_paused(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct pause_change *change = arg;
    struct queue_view view;
    QR_TRY(qr_queue_set_paused(tx, change->queue, change->pause, err));
    QR_TRY(load_queue(tx, change->queue, &view, err));
    view.ended = change->ended[change->queue];
    json_decref(change->body);
    change->body = queue_json(change->queue, &view); /* here, because after the commit nothing may fail any more */
    return change->body ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer");
}

static qr_rc change_pause(const struct qr_request *request, bool pause, struct qr_reply *reply, qr_err *err)
{
    struct pause_change change = {.queue = qr_queue_find(request->params[0]), .pause = pause};
    if (!change.queue) {
        return qr_fail(err, QR_CODE_NOT_FOUND,
                       "there is no such queue; there are expand, convert, embed, assets and delete");
    }
    qr_instance_ended_jobs(request->quire, change.ended);
    const qr_rc rc = qr_request_write(request, set_paused, &change, err);
    return qr_reply_made(reply, rc, 200, change.body, err);
}

qr_rc qr_route_queues_pause(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    return change_pause(request, true, reply, err);
}

qr_rc qr_route_queues_resume(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    return change_pause(request, false, reply, err);
}
