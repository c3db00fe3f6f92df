#include "support/workflow_fixture.h"

#include "store/jobs_item.h"
#include "store/schema.h"

enum { BEGIN_MS = 1000000000 };

/* ---- calls ---- */

struct desk_call {
    struct qr_desk *desk;
    const char *sql;
    int64_t number;
    qr_uuid id, parent_id;
    struct qr_item item;
    struct qr_job job;
    const char *key;
    bool found;
};

static void must(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        QR_FAIL("%s (%s)", err->msg, qr_code_info(err->code)->name);
    }
}

static qr_rc get_number(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct desk_call *call = arg;
    return qr_tx_get_i64(tx, call->sql, QR_NO_VALS, &call->found, &call->number, err);
}

int64_t qr_desk_i64(struct qr_desk *desk, const char *sql)
{
    struct desk_call call = {.desk = desk, .sql = sql};
    qr_err err;
    must(qr_db_read(desk->db, get_number, &call, &err), &err);
    return call.number;
}

static qr_rc run_sql(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct desk_call *call = arg;
    return qr_tx_exec(tx, call->sql, QR_NO_VALS, NULL, err);
}

void qr_desk_exec(struct qr_desk *desk, const char *sql)
{
    struct desk_call call = {.desk = desk, .sql = sql};
    qr_err err;
    must(qr_db_write(desk->db, QR_RELAXED, run_sql, &call, &err), &err);
}

/* ---- opening ---- */

static qr_rc register_worker(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_desk *desk = arg;
    return qr_worker_register(tx, desk->worker_id, "desk", err);
}

void qr_desk_open(struct qr_desk *desk, struct qr_test *t, const char *settings)
{
    *desk = (struct qr_desk){.t = t};
    struct qr_db_options options = qr_test_db_options(t, qr_schema_migrations, qr_schema_migration_count);
    options.clock = qr_test_clock(BEGIN_MS);
    qr_err err;
    must(qr_db_open(&desk->db, &options, &err), &err);
    qr_uuid_gen_init(&desk->ids, options.clock, qr_rand_system());
    qr_arena_init(&desk->arena, 0);
    desk->artifacts = (struct qr_artifacts){.dir = qr_test_on_postgres(t) ? NULL : t->dir};
    desk->workflow = (struct qr_workflow){.db = desk->db, .ids = &desk->ids, .artifacts = &desk->artifacts};
    desk->plan = qr_workflow_plan(&desk->workflow);
    desk->worker_id = qr_uuid_next(&desk->ids);
    must(qr_db_write(desk->db, QR_RELAXED, register_worker, desk, &err), &err);
    must(qr_workflow_add_base(&desk->workflow, QR_STR("base"), qr_str_of(settings), &desk->base_id, &err), &err);
}

void qr_desk_close(struct qr_desk *desk)
{
    qr_db_close(desk->db);
    qr_uuid_gen_done(&desk->ids);
    qr_arena_done(&desk->arena);
}

/* ---- invariants ---- */

struct invariant {
    const char *name, *violations; /* a query that counts them */
};

#define OPEN_STAGES                                                                                                    \
    "(SELECT count(*) FROM job WHERE job.item_id = item.id AND job.state IN (1, 2, 3, 4) AND job.type IN "             \
    "('prepare-root', 'process-document', 'check-file-processing', 'chunk-document', 'index-chunks'))"
#define CHILDREN(condition)                                                                                            \
    "(SELECT count(*) FROM item AS child WHERE child.parent_id = item.id AND child.status " condition ")"
/* what is below something that is deleting is removed soon, and nobody's any more */
#define LIVING                                                                                                         \
    "NOT EXISTS (SELECT 1 FROM item AS gone WHERE gone.status = 8 AND gone.base_id = item.base_id AND "                \
    "substr(item.path, 1, length(gone.path)) = gone.path)"

static const struct invariant invariants[] = {
    {"I1: an active leaf or preparing container has one open stage job",
     "SELECT count(*) FROM item WHERE ((is_container = 0 AND status IN (2, 3)) OR (is_container = 1 AND status = 2)) "
     "AND " OPEN_STAGES " <> 1 AND " LIVING},
    {"I1: others have none", "SELECT count(*) FROM item WHERE ((is_container = 0 AND status IN (1, 6, 7)) OR "
                             "(is_container = 1 AND status IN (1, 3, 6, 7))) AND " OPEN_STAGES " <> 0 AND " LIVING},
    {"I1: of its generation",
     "SELECT count(*) FROM item JOIN job ON job.item_id = item.id WHERE job.state IN (1, 2, 3, 4) AND job.type IN "
     "('prepare-root', 'process-document', 'check-file-processing', 'chunk-document', 'index-chunks') AND "
     "job.generation <> item.generation AND " LIVING},
    {"I3: live_generation <= generation", "SELECT count(*) FROM item WHERE live_generation > generation"},
    {"REIDX-7: what is completed is live, or was found to come to what is live",
     "SELECT count(*) FROM item WHERE is_container = 0 AND status = 6 AND generation NOT IN (live_generation, "
     "kept_generation)"},
    {"I6: counters", "SELECT count(*) FROM item WHERE is_container = 1 AND " LIVING
                     " AND (n_completed <> " CHILDREN("= 6") " OR "
                                                             "n_failed <> " CHILDREN("= 7") " OR n_active <> " CHILDREN(
                                                                 "IN (2, 3)") " OR n_idle <> " CHILDREN("= 1") ")"},
    {"I6: status",
     "SELECT count(*) FROM item WHERE is_container = 1 AND status NOT IN (2, 8) AND status <> CASE WHEN n_active > 0 "
     "THEN 3 WHEN expand_code <> '' OR n_failed > 0 THEN 7 WHEN n_idle > 0 OR expanded_generation = 0 THEN 1 ELSE 6 "
     "END"},
};

void qr_desk_check(struct qr_desk *desk)
{
    for (size_t i = 0; i < QR_COUNT(invariants); i++) {
        const int64_t count = qr_desk_i64(desk, invariants[i].violations);
        if (count != 0) {
            QR_FAIL("%s: %lld items break it", invariants[i].name, (long long)count);
        }
    }
}

/* ---- items ---- */

static qr_uuid add(struct qr_desk *desk, const struct qr_add_item *item)
{
    const struct qr_add add = {.base_id = desk->base_id, .items = item, .count = 1};
    struct qr_added *added;
    qr_err err;
    must(qr_workflow_add(&desk->workflow, &add, &desk->arena, &added, &err), &err);
    qr_desk_check(desk);
    return added[0].id;
}

qr_uuid qr_desk_add_note(struct qr_desk *desk, const char *name, const char *content)
{
    return add(desk,
               &(struct qr_add_item){.type = QR_ITEM_NOTE, .name = qr_str_of(name), .content = qr_str_of(content)});
}

qr_uuid qr_desk_add_folder(struct qr_desk *desk, const char *path)
{
    return add(desk, &(struct qr_add_item){.type = QR_ITEM_DIRECTORY, .source = qr_str_of(path)});
}

static qr_rc find_item(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct desk_call *call = arg;
    if (call->key) {
        return qr_item_find_key(tx, call->parent_id, qr_str_of(call->key), &call->desk->arena, &call->found,
                                &call->item, err);
    }
    return qr_item_find(tx, call->id, &call->desk->arena, &call->found, &call->item, err);
}

static struct desk_call look_for(struct qr_desk *desk, qr_uuid id, qr_uuid parent_id, const char *key)
{
    struct desk_call call = {.desk = desk, .id = id, .parent_id = parent_id, .key = key};
    qr_err err;
    must(qr_db_read(desk->db, find_item, &call, &err), &err);
    return call;
}

bool qr_desk_has_item(struct qr_desk *desk, qr_uuid id)
{
    return look_for(desk, id, (qr_uuid){0}, NULL).found;
}

struct qr_item qr_desk_item(struct qr_desk *desk, qr_uuid id)
{
    const struct desk_call call = look_for(desk, id, (qr_uuid){0}, NULL);
    QR_CHECK(call.found);
    return call.item;
}

struct qr_item qr_desk_child(struct qr_desk *desk, qr_uuid parent_id, const char *name)
{
    const struct desk_call call = look_for(desk, (qr_uuid){0}, parent_id, name);
    if (!call.found) {
        QR_FAIL("there is no child %s", name);
    }
    return call.item;
}

qr_rc qr_desk_select(struct qr_desk *desk, qr_desk_entry *entry, const qr_uuid *ids, size_t count,
                     struct qr_selection_answer *ret_answer, qr_err *err)
{
    const struct qr_selection selection = {desk->base_id, ids, count};
    const qr_rc rc = entry(&desk->workflow, &selection, &desk->arena, ret_answer, err);
    qr_desk_check(desk);
    return rc;
}

qr_rc qr_desk_reindex(const struct qr_workflow *workflow, const struct qr_selection *selection, struct qr_arena *arena,
                      struct qr_selection_answer *ret_answer, qr_err *err)
{
    struct qr_status_counts counts;
    struct qr_reindex_estimate estimate;
    return qr_workflow_reindex(workflow, selection, false, arena, ret_answer, &counts, &estimate, err);
}

/* ---- jobs ---- */

int64_t qr_desk_open_jobs(struct qr_desk *desk, enum qr_job_type type)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM job WHERE state IN (1, 2, 3, 4) AND type = '%s'",
             qr_job_type_info(type)->name);
    return qr_desk_i64(desk, sql);
}

/* Straight to running, whatever else waits in its queue. */
static qr_rc claim(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct desk_call *call = arg;
    int64_t changes;
    QR_TRY(qr_tx_exec(
        tx,
        "UPDATE job SET state = 4, fence = fence + 1, worker_id = ?2, claimed_at = 1 WHERE id = ?1 AND "
        "state IN (2, 3)",
        QR_VALS(qr_val_blob(call->id.bytes, QR_UUID_BYTES), qr_val_blob(call->desk->worker_id.bytes, QR_UUID_BYTES)),
        &changes, err));
    if (changes != 1) {
        return qr_fail(err, QR_CODE_INTERNAL, "the job cannot be claimed");
    }
    return qr_jobs_find(tx, call->id, &call->desk->arena, &call->found, &call->job, err);
}

static struct qr_job claim_id(struct qr_desk *desk, qr_uuid id)
{
    struct desk_call call = {.desk = desk, .id = id};
    qr_err err;
    must(qr_db_write(desk->db, QR_RELAXED, claim, &call, &err), &err);
    return call.job;
}

static qr_rc find_stage(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct desk_call *call = arg;
    return qr_jobs_find_stage(tx, call->parent_id, &call->found, &call->id, err);
}

struct qr_job qr_desk_claim(struct qr_desk *desk, qr_uuid item_id, enum qr_job_type type)
{
    struct desk_call call = {.desk = desk, .parent_id = item_id};
    qr_err err;
    must(qr_db_read(desk->db, find_stage, &call, &err), &err);
    QR_CHECK(call.found);
    const struct qr_job job = claim_id(desk, call.id);
    QR_CHECK_TEXT(qr_job_type_info(type)->name, job.type);
    return job;
}

static qr_rc find_of_type(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct desk_call *call = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT id FROM job WHERE type = ?1 AND state IN (2, 3) ORDER BY id LIMIT 1",
                       QR_VALS(qr_val_text(qr_str_of(call->key))), err));
    call->found = qr_rows_next(&rows);
    if (call->found) {
        memcpy(call->id.bytes, qr_rows_str(&rows, 0).ptr, QR_UUID_BYTES);
    }
    return qr_rows_end(&rows, err);
}

struct qr_job qr_desk_claim_type(struct qr_desk *desk, enum qr_job_type type)
{
    struct desk_call call = {.desk = desk, .key = qr_job_type_info(type)->name};
    qr_err err;
    must(qr_db_read(desk->db, find_of_type, &call, &err), &err);
    QR_CHECK(call.found);
    return claim_id(desk, call.id);
}

struct ending {
    struct qr_desk *desk;
    const struct qr_job *job;
    enum qr_job_state state;
    struct qr_outcome outcome;
    void *part;
};

static qr_rc end(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct ending *ending = arg;
    const struct qr_job *job = ending->job;
    const struct qr_ended ended = {job, ending->state, &ending->outcome};
    QR_TRY(ending->desk->plan.lock(tx, &job->base_id, 1, ending->desk->plan.arg, err));
    QR_TRY(qr_jobs_finish(tx, job, &(struct qr_job_end){ending->state, "", "", false}, err));
    return ending->desk->plan.ended(tx, &ended, 1, ending->desk->plan.arg, err);
}

qr_rc qr_desk_end(struct qr_desk *desk, const struct qr_job *job, enum qr_job_state state, qr_code code, void *result,
                  qr_err *err)
{
    struct ending ending = {.desk = desk, .job = job, .state = state};
    ending.outcome.kind = state == QR_JOB_COMPLETED ? QR_OUTCOME_COMPLETED
                          : state == QR_JOB_SKIPPED ? QR_OUTCOME_SKIPPED
                                                    : QR_OUTCOME_FAILED;
    ending.outcome.result = result;
    if (code != QR_CODE_NONE) {
        qr_fail(&ending.outcome.error, code, "the test says so");
    }
    const qr_rc rc = qr_db_write(desk->db, QR_DURABLE, end, &ending, err);
    qr_desk_check(desk);
    return rc;
}

static qr_rc report(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct ending *ending = arg;
    const struct qr_job *job = ending->job;
    QR_TRY(ending->desk->plan.lock(tx, &job->base_id, 1, ending->desk->plan.arg, err));
    QR_TRY(qr_jobs_require_fence(tx, job->id, job->fence, err));
    return ending->desk->plan.part(tx, job, ending->part, ending->desk->plan.arg, err);
}

qr_rc qr_desk_part(struct qr_desk *desk, const struct qr_job *job, void *part, qr_err *err)
{
    struct ending ending = {.desk = desk, .job = job, .part = part};
    const qr_rc rc = qr_db_write(desk->db, QR_DURABLE, report, &ending, err);
    qr_desk_check(desk);
    return rc;
}

/* ---- stages ---- */

void qr_desk_index(struct qr_desk *desk, qr_uuid item_id)
{
    const struct qr_job job = qr_desk_claim(desk, item_id, QR_JOB_PROCESS_DOCUMENT);
    struct qr_new_artifact text = {
        .id = qr_uuid_next(&desk->ids), .kind = QR_ARTIFACT_TEXT, .bytes = QR_STR("text"), .size_bytes = 4};
    struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .text = &text, .chunk_count = 1, .token_count = 1};
    qr_err err;
    must(qr_desk_end(desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err), &err);
}

void qr_desk_fail(struct qr_desk *desk, qr_uuid item_id, qr_code code)
{
    const struct qr_job job = qr_desk_claim(desk, item_id, QR_JOB_PROCESS_DOCUMENT);
    qr_err err;
    must(qr_desk_end(desk, &job, QR_JOB_FAILED, code, NULL, &err), &err);
}

void qr_desk_expand(struct qr_desk *desk, qr_uuid item_id, const char *const *names, size_t count)
{
    const struct qr_item folder = qr_desk_item(desk, item_id);
    const struct qr_job job = qr_desk_claim(desk, item_id, QR_JOB_PREPARE_ROOT);
    struct qr_found_child *children = qr_arena_array(&desk->arena, count + 1, sizeof children[0]);
    size_t changed = 0;
    QR_CHECK(children);
    for (size_t i = 0; i < count; i++) {
        qr_str name = qr_str_of(names[i]);
        const bool is_folder = qr_str_ends_with(name, QR_STR("/"));
        name.len -= is_folder;
        const char *key = qr_arena_copy(&desk->arena, name);
        const struct desk_call known = look_for(desk, (qr_uuid){0}, item_id, key);
        if (known.found && !is_folder && known.item.seen_generation >= folder.force_generation) {
            continue;
        }
        children[changed++] = (struct qr_found_child){
            .change = known.found ? QR_CHILD_WANTED : QR_CHILD_NEW,
            .id = known.item.id,
            .type = is_folder ? QR_ITEM_DIRECTORY : QR_ITEM_FILE,
            .key = qr_str_of(key),
            .name = qr_str_of(key),
            .source = qr_str_of(qr_arena_printf(&desk->arena, "%.*s/%s", QR_STR_ARG(folder.source), key)),
            .size_bytes = 1,
            .mtime_ns = 1,
        };
    }
    qr_err err;
    must(qr_desk_part(desk, &job, &(struct qr_expand_part){.children = children, .count = changed}, &err), &err);
    must(qr_desk_end(desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, NULL, &err), &err);
}
