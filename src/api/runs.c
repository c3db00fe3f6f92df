/* POST /api/v1/knowledge-spaces/{b}/process, and the runs that it makes. */
#include "api/jobs.h"
#include "api/lookup.h"
#include "workflow/process.h"

/* ---- how a run looks ---- */

static json_t *stages_json(const struct qr_run *run)
{
    json_t *stages = json_object();
    for (enum qr_run_stage stage = 0; stages && stage < QR_RUN_STAGES; stage++) {
        json_t *counts =
            json_pack("{s:I, s:I, s:I}", "total", (json_int_t)run->stages[stage].total, "done",
                      (json_int_t)run->stages[stage].done, "failed", (json_int_t)run->stages[stage].failed);
        if (json_object_set_new(stages, qr_run_stage_name(stage), counts) != 0) {
            json_decref(stages);
            stages = NULL;
        }
    }
    return stages;
}

static json_t *run_json(const struct qr_run *run)
{
    return json_pack("{s:o, s:o, s:s, s:o, s:I, s:s, s:I, s:o, s:o}", "id", qr_json_uuid(run->id), "base_id",
                     qr_json_uuid(run->base_id), "status", qr_run_status_name(run->status), "stages", stages_json(run),
                     "level", (json_int_t)run->level, "level_gate", run->gate_is_manual ? "manual" : "auto", "active",
                     (json_int_t)run->active, "created_at", qr_json_time(run->created_ms), "finished_at",
                     qr_json_time(run->finished_ms));
}

/* ---- process ---- */

static qr_rc read_wanted(const struct qr_request *request, int64_t *ret_wanted, qr_err *err)
{
    static const struct {
        const char *name;
        int64_t bit;
    } stages[] = {{"process_new_documents", QR_WANT_PROCESS},
                  {"chunk_processed_documents", QR_WANT_CHUNK},
                  {"analyze_assets", QR_WANT_ASSETS},
                  {"index_new_chunks", QR_WANT_INDEX}};
    *ret_wanted = 0;
    for (size_t i = 0; i < QR_COUNT(stages); i++) {
        bool is_wanted = false;
        QR_TRY(qr_field_bool(request->body, "", stages[i].name, &is_wanted, err));
        *ret_wanted |= is_wanted ? stages[i].bit : 0;
    }
    if (*ret_wanted == 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "say what to do: process_new_documents, chunk_processed_documents, analyze_assets or "
                       "index_new_chunks must be true");
    }
    return QR_OK;
}

static qr_rc read_gate(const struct qr_request *request, bool *ret_is_manual, qr_err *err)
{
    const char *gate = NULL;
    QR_TRY(qr_field_text(request->body, "", "level_gate", &gate, err));
    *ret_is_manual = gate && strcmp(gate, "manual") == 0;
    if (gate && !*ret_is_manual && strcmp(gate, "auto") != 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "level_gate is auto or manual");
    }
    return QR_OK;
}

qr_rc qr_route_process(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct qr_process process;
    struct qr_run run;
    QR_TRY(qr_request_base_id(request, &process.base_id, err));
    QR_TRY(read_wanted(request, &process.wanted, err));
    QR_TRY(read_gate(request, &process.gate_is_manual, err));
    QR_TRY(qr_workflow_process(&request->quire->workflow, &process, &run, err));
    return qr_reply_with(reply, 202, run_json(&run), err);
}

/* ---- one run ---- */

static qr_rc run_id(const struct qr_request *request, qr_uuid *ret_id, qr_err *err)
{
    return qr_uuid_parse(request->params[0], ret_id)
               ? QR_OK
               : qr_fail(err, QR_CODE_NOT_FOUND, "there is no such run: it is named by its whole id");
}

struct look {
    qr_uuid id;
    struct qr_run run;
};

static qr_rc find_run(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct look *look = arg;
    bool found;
    QR_TRY(qr_run_find(tx, look->id, &found, &look->run, err));
    return found ? QR_OK : qr_fail(err, QR_CODE_NOT_FOUND, "there is no such run");
}

qr_rc qr_route_run_show(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct look look = {0};
    QR_TRY(run_id(request, &look.id, err));
    QR_TRY(qr_db_read(request->quire->db, find_run, &look, err));
    return qr_reply_with(reply, 200, run_json(&look.run), err);
}

qr_rc qr_route_run_cancel(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    qr_uuid id;
    struct qr_run run;
    QR_TRY(run_id(request, &id, err));
    QR_TRY(qr_workflow_cancel_run(&request->quire->workflow, id, &run, err));
    return qr_reply_with(reply, 200, run_json(&run), err);
}

/* ---- the runs of a base ---- */

struct listing {
    qr_uuid base_id, before;
    int limit;
    struct qr_arena *arena;
    struct qr_run *runs;
    size_t count;
};

static qr_rc load_listing(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct listing *listing = arg;
    qr_arena_reset(listing->arena);
    return qr_runs_list(tx, listing->base_id, listing->before, listing->limit, listing->arena, &listing->runs,
                        &listing->count, err);
}

qr_rc qr_route_runs_list(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct listing listing = {.arena = &arena};
    QR_TRY(qr_request_base_id(request, &listing.base_id, err));
    QR_TRY(qr_request_limit(request, &listing.limit, err));
    QR_TRY(qr_request_cursor_id(request, &listing.before, err));
    const size_t page = (size_t)listing.limit++; /* is there more? */
    QR_TRY(qr_db_read(request->quire->db, load_listing, &listing, err));
    json_t *data = json_array();
    for (size_t i = 0; data && i < QR_MIN(listing.count, page); i++) {
        if (json_array_append_new(data, run_json(&listing.runs[i])) != 0) {
            json_decref(data);
            data = NULL;
        }
    }
    const qr_uuid next = listing.count > page ? listing.runs[page - 1].id : (qr_uuid){0};
    return qr_reply_with(reply, 200, json_pack("{s:o, s:o}", "data", data, "next_cursor", qr_json_uuid(next)), err);
}
