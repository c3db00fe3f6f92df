/* GET /api/v1/bases/{b}/items/{i}/events: what happened to an item and why, newest first: its jobs with their attempts, and
 * why its generations were raised. */
#include "api/circuits.h"
#include "api/items.h"
#include "model/job_type.h"

#include <stdlib.h>

enum { JOBS_MAX = 100 };

/* Which one it is, and its place among those of one moment: a generation is raised before its job is added. */
struct event_key {
    int64_t at_ms;
    int64_t generation; /* 0 = a job */
    qr_uuid job_id;
};

struct event {
    struct event_key key;
    json_t *json; /* borrowed from the list of all */
};

struct history {
    struct event *events;
    size_t count;
    json_t *all;
};

static qr_rc add_event(struct history *history, struct event_key key, json_t *json, qr_err *err)
{
    if (json_array_append_new(history->all, json) != 0) {
        return qr_answer_out_of_memory(err);
    }
    history->events[history->count++] = (struct event){key, json};
    return QR_OK;
}

static json_t *attempts_json(const struct qr_job_attempt *attempts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++) {
        json_t *entry = json_pack("{s:s, s:s, s:s, s:o, s:o}", "outcome", attempts[i].outcome, "code", attempts[i].code,
                                  "message", attempts[i].message, "claimed_at", qr_json_time(attempts[i].claimed_ms),
                                  "ended_at", qr_json_time(attempts[i].ended_ms));
        if (json_array_append_new(list, entry) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

/* Who holds a job that runs; null when none does. */
static qr_rc find_worker(struct qr_tx *tx, const struct qr_job *job, struct qr_arena *arena, json_t **ret_json,
                         qr_err *err)
{
    const char *name = "";
    int64_t until_ms = 0, now_ms;
    if (job->state != QR_JOB_RUNNING) {
        *ret_json = json_null();
        return QR_OK;
    }
    QR_TRY(qr_worker_find(tx, job->worker_id, arena, &name, &until_ms, err));
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    *ret_json = json_pack("{s:s, s:b, s:o}", "name", name, "alive", name[0] && until_ms >= now_ms, "lease_until",
                          qr_json_time(until_ms));
    return QR_OK;
}

static qr_rc add_job(struct qr_tx *tx, struct history *history, const struct qr_job *job, struct qr_arena *arena,
                     qr_err *err)
{
    struct qr_job_attempt *attempts;
    size_t count;
    json_t *worker;
    QR_TRY(qr_jobs_attempts(tx, job->id, arena, &attempts, &count, err));
    QR_TRY(find_worker(tx, job, arena, &worker, err));
    json_t *json = json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "kind", "job", "at",
        qr_json_time(job->created_ms), "job_id", qr_json_uuid(job->id), "stage", job->type, "state",
        qr_job_state_name(job->state), "generation", (json_int_t)job->generation, "attempts", (json_int_t)job->attempts,
        "crashes", (json_int_t)job->crashes, "code", job->code, "message", job->message, "run_at",
        qr_json_time(job->run_at_ms), "claimed_at", qr_json_time(job->claimed_ms), "finished_at",
        qr_json_time(job->finished_ms), "worker", worker, "history", attempts_json(attempts, count));
    return add_event(history, (struct event_key){.at_ms = job->created_ms, .job_id = job->id}, json, err);
}

/* The newest first; a total order, so that pages have one. */
static int compare_events(const void *a, const void *b)
{
    const struct event_key *x = &((const struct event *)a)->key, *y = &((const struct event *)b)->key;
    if (x->at_ms != y->at_ms) {
        return x->at_ms < y->at_ms ? 1 : -1;
    }
    const int jobs = memcmp(y->job_id.bytes, x->job_id.bytes, sizeof x->job_id.bytes); /* none has all zero */
    return jobs ? jobs : x->generation < y->generation ? 1 : x->generation > y->generation ? -1 : 0;
}

static qr_rc add_all(struct qr_tx *tx, struct history *history, const struct qr_item *item, struct qr_arena *arena,
                     qr_err *err)
{
    struct qr_job *jobs;
    struct qr_generation_note *notes;
    size_t job_count, note_count;
    qr_uuid ignored; /* an item's jobs are all looked at */
    const struct qr_job_filter filter = {.item_id = item->id, .limit = JOBS_MAX};
    QR_TRY(qr_jobs_list(tx, &filter, arena, &jobs, &job_count, &ignored, err));
    QR_TRY(qr_item_generations(tx, item->id, arena, &notes, &note_count, err));
    history->events = qr_arena_array(arena, job_count + note_count + 1, sizeof history->events[0]);
    if (!history->events || !history->all) {
        return qr_answer_out_of_memory(err);
    }
    for (size_t i = 0; i < job_count; i++) {
        QR_TRY(add_job(tx, history, &jobs[i], arena, err));
    }
    for (size_t i = 0; i < note_count; i++) {
        json_t *json = json_pack("{s:s, s:o, s:I, s:s}", "kind", "generation", "at", qr_json_time(notes[i].at_ms),
                                 "generation", (json_int_t)notes[i].generation, "reason", notes[i].reason);
        QR_TRY(add_event(history, (struct event_key){.at_ms = notes[i].at_ms, .generation = notes[i].generation}, json,
                         err));
    }
    return QR_OK;
}

/* What a job of the stage asks servers for. */
static const char *asks_for(const char *stage)
{
    static const struct {
        enum qr_job_type type;
        const char *what;
    } all[] = {{QR_JOB_INDEX_CHUNKS, "embedding"},
               {QR_JOB_PROCESS_DOCUMENT, "file_processor"},
               {QR_JOB_CHECK_FILE_PROCESSING, "file_processor"},
               {QR_JOB_ANALYZE_ASSET, "vision"}};
    for (size_t i = 0; i < QR_COUNT(all); i++) {
        if (strcmp(qr_job_type_info(all[i].type)->name, stage) == 0) {
            return all[i].what;
        }
    }
    return "";
}

/* Of a job that runs: the server that has not answered for a while. */
static qr_rc add_awaited(const struct history *history, const json_t *awaited, qr_err *err)
{
    for (size_t i = 0; i < history->count; i++) {
        json_t *json = history->events[i].json;
        const char *state = json_string_value(json_object_get(json, "state"));
        const char *stage = json_string_value(json_object_get(json, "stage"));
        json_t *one;
        size_t k;
        if (!state || strcmp(state, qr_job_state_name(QR_JOB_RUNNING)) != 0) {
            continue;
        }
        json_array_foreach(awaited, k, one)
        {
            if (strcmp(json_string_value(json_object_get(one, "for")), asks_for(stage)) == 0 &&
                json_object_set(json, "awaited", one) != 0) {
                return qr_answer_out_of_memory(err);
            }
        }
    }
    return QR_OK;
}

/* Behind the one that the cursor names, as many as were asked for. */
static qr_rc answer_page(const struct history *history, struct qr_item_answer *answer, qr_err *err)
{
    struct event after = {0};
    qr_str cursor;
    int limit;
    QR_TRY(qr_request_limit(answer->request, &limit, err));
    QR_TRY(qr_request_cursor(answer->request, answer->arena, &cursor, err));
    if (cursor.len && cursor.len != sizeof after.key) {
        return qr_cursor_unknown(err);
    }
    memcpy(&after.key, cursor.ptr, cursor.len);
    size_t from = 0;
    while (cursor.len && from < history->count && compare_events(&history->events[from], &after) <= 0) {
        from++;
    }
    const size_t end = QR_MIN(history->count, from + (size_t)limit);
    json_t *data = json_array();
    for (size_t i = from; data && i < end; i++) {
        if (json_array_append(data, history->events[i].json) != 0) {
            json_decref(data);
            data = NULL;
        }
    }
    const qr_str next = {end < history->count ? (const char *)&history->events[end - 1].key : NULL,
                         end < history->count ? sizeof after.key : 0};
    answer->body = json_pack("{s:o, s:o}", "data", data, "next_cursor", qr_json_cursor(next));
    return answer->body ? QR_OK : qr_answer_out_of_memory(err);
}

static qr_rc show_events(struct qr_tx *tx, struct qr_item_answer *answer, const struct qr_base *base,
                         struct qr_item *item, qr_err *err)
{
    QR_JSON *all = json_array();
    QR_JSON *awaited = NULL;
    struct history history = {.all = all};
    QR_TRY(add_all(tx, &history, item, answer->arena, err));
    QR_TRY(qr_awaited_of_base(answer->request->quire, base, answer->arena, &awaited, err));
    QR_TRY(add_awaited(&history, awaited, err));
    qsort(history.events, history.count, sizeof history.events[0], compare_events);
    return answer_page(&history, answer, err);
}

qr_rc qr_route_item_events(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    return qr_answer_about_item(request, show_events, 200, reply, err);
}
