/* /api/v1/jobs: the list, cancel and retry. jobs_show.c has the single job. */
#include "api/jobs.h"
#include "api/lookup.h"
#include "api/write.h"

#include "model/job_type.h"
#include "store/jobs_find.h"

/* ---- how a job looks ---- */

json_t *qr_json_time(int64_t wall_ms)
{
    char text[QR_TIME_TEXT_SIZE];
    qr_time_format(wall_ms, text);
    return wall_ms ? json_string(text) : json_null();
}

json_t *qr_json_uuid(qr_uuid id)
{
    char text[QR_UUID_TEXT_SIZE];
    qr_uuid_format(id, text);
    return qr_uuid_is_zero(id) ? json_null() : json_string(text);
}

/* Why the job waits, was put off or ended so; null = nothing is known or needed. */
static json_t *reason_json(const struct qr_job *job)
{
    return job->code[0] || job->message[0] ? json_pack("{s:s, s:s}", "code", job->code, "message", job->message)
                                           : json_null();
}

static json_t *progress_json(const struct qr_job *job)
{
    return job->progress_total ? json_pack("{s:I, s:I}", "done", (json_int_t)job->progress_done, "total",
                                           (json_int_t)job->progress_total)
                               : json_null();
}

json_t *qr_json_job(const struct qr_job *job)
{
    return json_pack("{s:o, s:s, s:s, s:s, s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
                     qr_json_uuid(job->id), "type", job->type, "queue", qr_queue_name(job->queue), "state",
                     qr_job_state_name(job->state), "priority", (json_int_t)job->priority, "base_id",
                     qr_json_uuid(job->base_id), "item_id", qr_json_uuid(job->item_id), "generation",
                     (json_int_t)job->generation, "attempts", (json_int_t)job->attempts, "crashes",
                     (json_int_t)job->crashes, "progress", progress_json(job), "reason", reason_json(job), "run_at",
                     qr_json_time(job->run_at_ms), "created_at", qr_json_time(job->created_ms), "claimed_at",
                     qr_json_time(job->claimed_ms), "finished_at", qr_json_time(job->finished_ms));
}

qr_rc qr_request_find_job(struct qr_tx *tx, const struct qr_request *request, struct qr_arena *arena,
                          struct qr_job *ret_job, qr_err *err)
{
    qr_uuid id;
    bool found;
    QR_TRY(qr_jobs_find_prefix(tx, request->params[0], &id, err));
    QR_TRY(qr_jobs_find(tx, id, arena, &found, ret_job, err));
    return found ? QR_OK : qr_fail(err, QR_CODE_NOT_FOUND, "there is no such job");
}

/* ---- the list ---- */

static qr_rc read_uuid(const struct qr_request *request, const char *name, qr_uuid *ret_id, qr_err *err)
{
    const char *text = qr_request_query(request, name);
    if (text && !qr_uuid_parse(qr_str_of(text), ret_id)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s is not an id", name);
    }
    return QR_OK;
}

static qr_rc read_state(const struct qr_request *request, enum qr_job_state *ret_state, qr_err *err)
{
    const char *text = qr_request_query(request, "state");
    *ret_state = text ? qr_job_state_find(qr_str_of(text)) : 0;
    if (text && !*ret_state) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "state is one of blocked, scheduled, queued, running, completed, failed, skipped, cancelled");
    }
    return QR_OK;
}

static qr_rc read_queue(const struct qr_request *request, enum qr_queue *ret_queue, qr_err *err)
{
    const char *text = qr_request_query(request, "queue");
    *ret_queue = text ? qr_queue_find(qr_str_of(text)) : 0;
    return text && !*ret_queue
               ? qr_fail(err, QR_CODE_INVALID_VALUE, "queue is one of expand, convert, embed, assets, delete")
               : QR_OK;
}

struct listing {
    struct qr_job_filter filter; /* its limit is one above the page's: is there more? */
    struct qr_arena *arena;
    struct qr_job *jobs;
    size_t count;
    qr_uuid looked_to;
};

static qr_rc load_listing(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct listing *listing = arg;
    qr_arena_reset(listing->arena);
    return qr_jobs_list(tx, &listing->filter, listing->arena, &listing->jobs, &listing->count, &listing->looked_to,
                        err);
}

static json_t *listing_json(const struct listing *listing)
{
    const size_t page = (size_t)listing->filter.limit - 1, count = QR_MIN(listing->count, page);
    json_t *data = json_array();
    for (size_t i = 0; data && i < count; i++) {
        if (json_array_append_new(data, qr_json_job(&listing->jobs[i])) != 0) {
            json_decref(data);
            data = NULL;
        }
    }
    const qr_uuid next = listing->count > page ? listing->jobs[page - 1].id : listing->looked_to;
    return json_pack("{s:o, s:o}", "data", data, "next_cursor", qr_json_uuid(next));
}

qr_rc qr_route_jobs_list(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct listing listing = {.arena = &arena};
    struct qr_job_filter *filter = &listing.filter;
    qr_arena_init(&arena, 0);
    filter->type = qr_request_query(request, "type");
    QR_TRY(qr_request_limit(request, &filter->limit, err));
    QR_TRY(read_state(request, &filter->state, err));
    QR_TRY(read_queue(request, &filter->queue, err));
    QR_TRY(read_uuid(request, "base", &filter->base_id, err));
    QR_TRY(read_uuid(request, "item", &filter->item_id, err));
    QR_TRY(qr_request_cursor_id(request, &filter->after, err));
    filter->limit++;
    QR_TRY(qr_db_read(request->quire->db, load_listing, &listing, err));
    return qr_reply_with(reply, 200, listing_json(&listing), err);
}

/* ---- cancel and retry ---- */

struct change {
    const struct qr_request *request;
    qr_uuid new_id; /* of a retry */
    struct qr_arena *arena;
    json_t *body; /* the job as it is afterwards */
};

/* Inside the transaction: after the commit nothing may fail any more, or a retry that was done would be asked for again. */
static qr_rc make_body(struct qr_tx *tx, struct change *change, qr_uuid id, qr_err *err)
{
    bool found;
    struct qr_job job;
    QR_TRY(qr_jobs_find(tx, id, change->arena, &found, &job, err));
    if (!found) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such job");
    }
    json_decref(change->body);
    change->body = qr_json_job(&job);
    return change->body ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer");
}

static qr_rc not_open(enum qr_job_state state, qr_err *err)
{
    return qr_fail(err, QR_CODE_NOT_OPEN, "the job is %s: only an open one is cancelled", qr_job_state_name(state));
}

static qr_rc cancel(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct change *change = arg;
    qr_uuid id;
    enum qr_job_state before;
    qr_arena_reset(change->arena);
    QR_TRY(qr_jobs_find_prefix(tx, change->request->params[0], &id, err));
    QR_TRY(qr_jobs_cancel(tx, id, qr_code_info(QR_CODE_CANCELLED)->name, "cancelled on request", &before, err));
    if (!qr_job_state_is_open(before)) {
        return not_open(before, err);
    }
    return make_body(tx, change, id, err);
}

static qr_rc retry(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct change *change = arg;
    qr_uuid id, added;
    bool existed;
    qr_arena_reset(change->arena);
    QR_TRY(qr_jobs_find_prefix(tx, change->request->params[0], &id, err));
    QR_TRY(qr_jobs_add_again(tx, id, change->new_id, &added, &existed, err));
    return make_body(tx, change, added, err);
}

static qr_rc change_job(const struct qr_request *request, qr_tx_fn *fn, int status, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct change change = {.request = request, .new_id = qr_uuid_next(&request->quire->ids), .arena = &arena};
    const qr_rc rc = qr_request_write(request, fn, &change, err);
    return qr_reply_made(reply, rc, status, change.body, err);
}

/* ---- jobs of the workflow: what is done to one is done to its item (CANCEL-1, CANCEL-2) ---- */

struct job_view {
    const struct qr_request *request;
    qr_uuid id; /* all zero = the one of the path */
    enum qr_job_state state;
    bool is_workflows; /* about something of a base */
    json_t *body;
};

static qr_rc load_job(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct job_view *view = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_job job;
    bool found = true;
    qr_arena_init(&arena, 0);
    if (qr_uuid_is_zero(view->id)) {
        QR_TRY(qr_request_find_job(tx, view->request, &arena, &job, err));
    } else {
        QR_TRY(qr_jobs_find(tx, view->id, &arena, &found, &job, err));
    }
    if (!found) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such job");
    }
    json_decref(view->body);
    view->body = qr_json_job(&job);
    view->id = job.id;
    view->state = job.state;
    view->is_workflows = qr_job_type_find(qr_str_of(job.type)) != 0 && !qr_uuid_is_zero(job.base_id);
    return view->body ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer");
}

static qr_rc find_job(const struct qr_request *request, struct job_view *view, qr_err *err)
{
    *view = (struct job_view){.request = request};
    const qr_rc rc = qr_db_read(request->quire->db, load_job, view, err);
    json_decref(view->body);
    view->body = NULL;
    return rc;
}

/* It is done: where the job cannot be read now, its id is the answer. */
static qr_rc answer_job(const struct qr_request *request, qr_uuid id, int status, struct qr_reply *reply, qr_err *err)
{
    struct job_view view = {.request = request, .id = id};
    if (qr_db_read(request->quire->db, load_job, &view, NULL) != QR_OK) {
        json_decref(view.body);
        view.body = json_pack("{s:o}", "id", qr_json_uuid(id));
    }
    return qr_reply_with(reply, status, view.body, err);
}

qr_rc qr_route_jobs_cancel(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct job_view view;
    enum qr_job_state before;
    QR_TRY(find_job(request, &view, err));
    if (!view.is_workflows) {
        return change_job(request, cancel, 200, reply, err);
    }
    QR_TRY(qr_workflow_cancel_job(&request->quire->workflow, view.id, &before, err));
    return qr_job_state_is_open(before) ? answer_job(request, view.id, 200, reply, err) : not_open(before, err);
}

qr_rc qr_route_jobs_retry(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct job_view view;
    qr_uuid added;
    bool existed;
    QR_TRY(find_job(request, &view, err));
    if (!view.is_workflows) {
        return change_job(request, retry, 202, reply, err);
    }
    if (qr_job_state_is_open(view.state)) {
        return qr_fail(err, QR_CODE_NOT_TERMINAL, "the job is %s: it has not ended yet", qr_job_state_name(view.state));
    }
    QR_TRY(qr_workflow_retry_job(&request->quire->workflow, view.id, &added, &existed, err));
    return answer_job(request, added, 202, reply, err);
}
