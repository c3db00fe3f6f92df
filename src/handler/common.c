/* What handlers do first and last. Loads everything about a job in one read over one snapshot, so that the look and what is
 * then worked with belong together. What follows from an outcome is not decided here: the plan does. */
#include "handler/common.h"

#include "base/json.h"
#include "store/jobs_item.h"

enum {
    HELD_MS = 60000,    /* while its base is failed a job only looks whether it was restored */
    WAIT_MS_MIN = 1000, /* for a service that takes nothing now */
};

qr_rc qr_handler_out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a job");
}

static void give_back_batchers(struct qr_attempt *attempt)
{
    if (attempt->batcher) {
        qr_providers_put(attempt->context->providers, attempt->batcher);
    }
    if (attempt->wanted_batcher) {
        qr_providers_put(attempt->context->providers, attempt->wanted_batcher);
    }
    attempt->batcher = attempt->wanted_batcher = NULL;
}

void qr_attempt_done(struct qr_attempt *attempt)
{
    give_back_batchers(attempt);
    if (attempt->own_processor) {
        qr_processor_free(attempt->own_processor);
    }
    if (attempt->own_analyser) {
        qr_analyser_free(attempt->own_analyser);
    }
}

/* ---- the look ---- */

struct look {
    const struct qr_job *job;
    struct qr_arena *arena;
    struct qr_base base;
    struct qr_item item;
};

static qr_rc look_at_base(struct qr_tx *tx, struct look *look, qr_err *err)
{
    bool found;
    QR_TRY(qr_base_find(tx, look->job->base_id, look->arena, &found, &look->base, err));
    return found ? QR_OK : qr_fail(err, QR_CODE_NOT_FOUND, "the base is gone");
}

static qr_rc fail_deleting(const char *what, qr_err *err)
{
    return qr_fail(err, QR_CODE_DELETING, "the %s is being deleted", what);
}

static qr_rc fail_gone(qr_err *err)
{
    return qr_fail(err, QR_CODE_NOT_FOUND, "the item is gone");
}

static qr_rc require_wanted(const struct qr_job *job, const struct qr_item *item, bool is_deleting, qr_err *err)
{
    if (is_deleting) {
        return fail_deleting("item", err);
    }
    const bool is_wanted = !qr_job_type_is_stage(job->type) || qr_item_status_is_active(item->status);
    if (item->generation != job->generation || !is_wanted) {
        return qr_fail(err, QR_CODE_STALE, "generation %lld of the item is not wanted any more",
                       (long long)job->generation);
    }
    return QR_OK;
}

static qr_rc look_at_item(struct qr_tx *tx, struct look *look, qr_err *err)
{
    const struct qr_job *job = look->job;
    bool found, is_deleting;
    QR_TRY(qr_item_find(tx, job->item_id, look->arena, &found, &look->item, err));
    QR_TRY(found ? QR_OK : fail_gone(err));
    QR_TRY(qr_item_path_is_deleting(tx, look->item.path, &is_deleting, err));
    return require_wanted(job, &look->item, is_deleting, err);
}

static qr_rc fail_held(qr_err *err)
{
    return qr_fail(err, QR_CODE_BASE_FAILED, "the base has failed; this waits until it is restored");
}

static qr_rc look_at_both(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct look *look = arg;
    QR_TRY(look_at_base(tx, look, err));
    if (look->base.status == QR_BASE_DELETING) {
        return fail_deleting("base", err);
    }
    if (look->base.status == QR_BASE_FAILED) {
        return fail_held(err);
    }
    return look_at_item(tx, look, err);
}

static qr_rc look_at_base_alone(struct qr_tx *tx, void *arg, qr_err *err)
{
    return look_at_base(tx, arg, err);
}

static qr_rc look_at_living_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct look *look = arg;
    QR_TRY(look_at_base(tx, look, err));
    return look->base.status == QR_BASE_DELETING ? fail_deleting("base", err) : QR_OK;
}

qr_rc qr_attempt_fail_lost(qr_err *err)
{
    return qr_fail(err, QR_CODE_LOST, "the job is not this worker's any more");
}

/* And whether the job is still this worker's: while it stood still, another may have been given it (FENCE-1). */
static qr_rc look_again(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct look *look = arg;
    bool is_held;
    QR_TRY(qr_jobs_runs_under(tx, look->job->id, look->job->fence, &is_held, err));
    if (!is_held) {
        return qr_attempt_fail_lost(err);
    }
    return qr_uuid_is_zero(look->job->item_id) ? look_at_living_base(tx, arg, err) : look_at_both(tx, arg, err);
}

static void start(struct qr_attempt *attempt, struct qr_job_run *run)
{
    attempt->run = run;
    attempt->context = run->arg;
}

static qr_rc read_live(const struct qr_base *base, const struct qr_settings *settings, struct qr_arena *arena,
                       struct qr_embedding_settings *ret_live, qr_err *err)
{
    struct qr_settings of_live = *settings;
    if (qr_base_is_building(base)) {
        QR_TRY(qr_settings_parse_text(base->live_embedding, arena, &of_live, err));
    }
    *ret_live = of_live.embedding;
    return QR_OK;
}

qr_rc qr_attempt_read_settings(struct qr_attempt *attempt, qr_err *err)
{
    struct qr_arena *arena = attempt->run->arena;
    QR_TRY(qr_settings_parse_text(attempt->base.settings, arena, &attempt->settings, err));
    return read_live(&attempt->base, &attempt->settings, arena, &attempt->live, err);
}

static qr_rc load(struct qr_attempt *attempt, qr_tx_fn *fn, qr_err *err)
{
    struct look look = {.job = attempt->run->job, .arena = attempt->run->arena};
    QR_TRY(qr_db_read(attempt->run->db, fn, &look, err));
    attempt->base = look.base;
    attempt->item = look.item;
    return qr_attempt_read_settings(attempt, err);
}

bool qr_attempt_begin(struct qr_attempt *attempt, struct qr_job_run *run, struct qr_outcome *outcome)
{
    start(attempt, run);
    const qr_rc rc = load(attempt, look_at_both, &outcome->error);
    if (rc == QR_OK) {
        return true;
    }
    qr_outcome_set(outcome, rc, NULL);
    return false;
}

/* ---- where an item comes from ---- */

struct find_root {
    const struct qr_item *item;
    struct qr_arena *arena;
    bool found;
    struct qr_item root;
};

static qr_rc find_root(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct find_root *find = arg;
    const qr_str path = find->item->path;
    find->found = false;
    for (size_t at = 0; !find->found && at + QR_UUID_BYTES < path.len; at += QR_UUID_BYTES) {
        qr_uuid id;
        memcpy(id.bytes, path.ptr + at, QR_UUID_BYTES);
        QR_TRY(qr_item_find(tx, id, find->arena, &find->found, &find->root, err));
        find->found = find->found && find->root.type == QR_ITEM_DIRECTORY && find->root.source.len;
    }
    return QR_OK;
}

/* ---- the look at several ---- */

/* The last base and the last folder that were looked at: jobs that wait together are mostly of one. */
struct looks {
    struct qr_attempt *attempts;
    struct qr_job_run *const *runs;
    struct qr_outcome *const *outcomes;
    size_t count;
    struct qr_arena *arena;
    bool has_base, has_folder;
    struct qr_base base;
    struct qr_settings settings;
    struct qr_embedding_settings live;
    qr_uuid folder_id;
    bool folder_is_deleting;
    const char *folder_options;
};

/* Whether it is one of those that a look finds: of anything else it is not the job's fault. */
static bool is_answer(const qr_err *error)
{
    return error->code == QR_CODE_NOT_FOUND || error->code == QR_CODE_DELETING || error->code == QR_CODE_STALE ||
           error->code == QR_CODE_BASE_FAILED;
}

static qr_rc look_at_shared_base(struct qr_tx *tx, struct looks *looks, qr_uuid base_id, qr_err *err)
{
    if (!looks->has_base || !qr_uuid_equal(looks->base.id, base_id)) {
        bool found;
        looks->has_base = false;
        QR_TRY(qr_base_find(tx, base_id, looks->arena, &found, &looks->base, err));
        if (!found) {
            return qr_fail(err, QR_CODE_NOT_FOUND, "the base is gone");
        }
        QR_TRY(qr_settings_parse_text(looks->base.settings, looks->arena, &looks->settings, err));
        QR_TRY(read_live(&looks->base, &looks->settings, looks->arena, &looks->live, err));
        looks->has_base = true;
    }
    if (looks->base.status == QR_BASE_DELETING) {
        return fail_deleting("base", err);
    }
    return looks->base.status == QR_BASE_FAILED ? fail_held(err) : QR_OK;
}

static qr_rc look_at_folder(struct qr_tx *tx, struct looks *looks, const struct qr_item *item, qr_err *err)
{
    if (looks->has_folder && qr_uuid_equal(looks->folder_id, item->parent_id)) {
        return QR_OK;
    }
    struct find_root find = {.item = item, .arena = looks->arena};
    looks->has_folder = false;
    QR_TRY(qr_item_path_is_deleting(tx, (qr_str){item->path.ptr, item->path.len - QR_UUID_BYTES},
                                    &looks->folder_is_deleting, err));
    QR_TRY(find_root(tx, &find, err));
    looks->folder_options = find.found ? find.root.options : NULL;
    looks->folder_id = item->parent_id;
    looks->has_folder = true;
    return QR_OK;
}

static qr_rc look_at_one(struct qr_tx *tx, struct looks *looks, size_t i, qr_err *err)
{
    const struct qr_job *job = looks->runs[i]->job;
    struct qr_attempt *attempt = &looks->attempts[i];
    struct qr_item *item = &attempt->item;
    bool found;
    QR_TRY(look_at_shared_base(tx, looks, job->base_id, err));
    attempt->base = looks->base;
    attempt->settings = looks->settings;
    attempt->live = looks->live;
    QR_TRY(qr_item_find(tx, job->item_id, looks->runs[i]->arena, &found, item, err));
    QR_TRY(found ? QR_OK : fail_gone(err));
    if (item->depth > 0) {
        QR_TRY(look_at_folder(tx, looks, item, err));
        attempt->source_options = looks->folder_options ? looks->folder_options : item->options;
    }
    const bool is_below_deleting = item->depth > 0 && looks->folder_is_deleting;
    return require_wanted(job, item, is_below_deleting || item->status == QR_ITEM_DELETING, err);
}

static qr_rc look_at_all(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct looks *looks = arg;
    looks->has_base = looks->has_folder = false;
    for (size_t i = 0; i < looks->count; i++) {
        struct qr_outcome *outcome = looks->outcomes[i];
        *outcome = (struct qr_outcome){0};
        const qr_rc rc = look_at_one(tx, looks, i, &outcome->error);
        if (rc != QR_OK && !is_answer(&outcome->error)) {
            *err = outcome->error;
            return rc;
        }
        if (rc != QR_OK) {
            qr_outcome_set(outcome, rc, NULL);
        }
    }
    return QR_OK;
}

void qr_attempts_begin(struct qr_attempt *attempts, struct qr_job_run *const *runs, size_t count,
                       struct qr_arena *arena, struct qr_outcome *const *outcomes)
{
    struct looks looks = {.attempts = attempts, .runs = runs, .outcomes = outcomes, .count = count, .arena = arena};
    qr_err ignored = {0};
    for (size_t i = 0; i < count; i++) {
        attempts[i] = (struct qr_attempt){0};
        start(&attempts[i], runs[i]);
    }
    if (count > 0 && qr_db_read(runs[0]->db, look_at_all, &looks, &ignored) != QR_OK) {
        for (size_t i = 0; i < count; i++) {
            *outcomes[i] = (struct qr_outcome){.kind = QR_OUTCOME_ALONE}; /* each finds out for itself */
        }
    }
}

bool qr_attempt_begin_base(struct qr_attempt *attempt, struct qr_job_run *run, uint32_t allowed,
                           struct qr_outcome *outcome)
{
    start(attempt, run);
    struct look look = {.job = run->job, .arena = run->arena};
    qr_rc rc = qr_db_read(run->db, look_at_base_alone, &look, &outcome->error);
    attempt->base = look.base;
    if (rc == QR_OK && look.base.status == QR_BASE_FAILED && !(allowed & QR_BIT(QR_BASE_FAILED))) {
        rc = fail_held(&outcome->error);
    }
    if (rc == QR_OK && !(allowed & QR_BIT(look.base.status))) {
        rc = qr_fail(&outcome->error, look.base.status == QR_BASE_DELETING ? QR_CODE_DELETING : QR_CODE_STALE,
                     "the base is %s: nothing is to be done", qr_base_status_name(look.base.status));
    }
    if (rc == QR_OK) {
        return true;
    }
    qr_outcome_set(outcome, rc, NULL);
    return false;
}

/* ---- again ---- */

qr_rc qr_attempt_go_on(const struct qr_attempt *attempt, qr_err *err)
{
    return qr_job_is_cancelled(attempt->run) ? qr_fail(err, QR_CODE_CANCELLED, "it was told to end") : QR_OK;
}

qr_rc qr_attempt_check(struct qr_attempt *attempt, qr_err *err)
{
    QR_TRY(qr_attempt_go_on(attempt, err));
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct look look = {.job = attempt->run->job, .arena = &arena};
    return qr_db_read(attempt->run->db, look_again, &look, err);
}

qr_rc qr_attempt_check_in(struct qr_tx *tx, const struct qr_attempt *attempt, bool *ret_is_wanted, qr_err *ret_why,
                          qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct look look = {.job = attempt->run->job, .arena = &arena};
    *ret_why = (qr_err){0};
    qr_rc rc = qr_attempt_go_on(attempt, ret_why);
    if (rc == QR_OK) {
        rc = look_again(tx, &look, ret_why);
        if (rc != QR_OK && rc != QR_LOST && !is_answer(ret_why)) {
            *err = *ret_why;
            return rc;
        }
    }
    *ret_is_wanted = rc == QR_OK;
    return QR_OK;
}

struct hold {
    const struct qr_job *job;
    bool is_held;
};

static qr_rc look_at_hold(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct hold *hold = arg;
    return qr_jobs_runs_under(tx, hold->job->id, hold->job->fence, &hold->is_held, err);
}

static qr_rc guard(void *arg, qr_err *err)
{
    const struct qr_attempt *attempt = arg;
    struct hold hold = {.job = attempt->run->job};
    QR_TRY(qr_db_read(attempt->run->db, look_at_hold, &hold, err));
    return hold.is_held ? QR_OK : qr_attempt_fail_lost(err);
}

struct qr_index_guard qr_attempt_guard(struct qr_attempt *attempt)
{
    return (struct qr_index_guard){guard, attempt};
}

struct vector_hold {
    const struct qr_attempt *attempt;
    bool is_held;
    int64_t epoch;
};

static qr_rc look_at_vector_hold(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct vector_hold *hold = arg;
    const struct qr_job *job = hold->attempt->run->job;
    QR_TRY(qr_jobs_runs_under(tx, job->id, job->fence, &hold->is_held, err));
    return qr_base_epoch(tx, hold->attempt->base.id, &hold->epoch, err);
}

static qr_rc guard_vectors(void *arg, qr_err *err)
{
    const struct qr_attempt *attempt = arg;
    struct vector_hold hold = {.attempt = attempt};
    QR_TRY(qr_db_read(attempt->run->db, look_at_vector_hold, &hold, err));
    if (!hold.is_held) {
        return qr_attempt_fail_lost(err);
    }
    return hold.epoch == attempt->base.vector_epoch || attempt->is_rebuilding
               ? QR_OK
               : qr_fail(err, QR_CODE_STALE, "the models of the base have changed");
}

struct qr_index_guard qr_attempt_vector_guard(struct qr_attempt *attempt)
{
    return (struct qr_index_guard){guard_vectors, attempt};
}

qr_rc qr_attempt_reload_base(struct qr_attempt *attempt, qr_err *err)
{
    struct look look = {.job = attempt->run->job, .arena = attempt->run->arena};
    QR_TRY(qr_attempt_check(attempt, err));
    QR_TRY(qr_db_read(attempt->run->db, look_at_living_base, &look, err));
    attempt->base = look.base;
    give_back_batchers(attempt);
    return qr_attempt_read_settings(attempt, err);
}

struct holds {
    struct qr_index_document *documents;
    size_t count;
};

static qr_rc look_at_holds(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct holds *holds = arg;
    for (size_t i = 0; i < holds->count; i++) {
        const struct qr_attempt *attempt = holds->documents[i].owner;
        const struct qr_job *job = attempt->run->job;
        QR_TRY(qr_jobs_runs_under(tx, job->id, job->fence, &holds->documents[i].is_wanted, err));
    }
    return QR_OK;
}

qr_rc qr_attempts_guard(struct qr_index_document *documents, size_t count, void *arg, qr_err *err)
{
    return qr_db_read(arg, look_at_holds, &(struct holds){documents, count}, err);
}

/* All are of one base. */
static qr_rc look_at_vector_holds(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct holds *holds = arg;
    const struct qr_attempt *first = holds->documents[0].owner;
    int64_t epoch;
    QR_TRY(look_at_holds(tx, arg, err));
    QR_TRY(qr_base_epoch(tx, first->base.id, &epoch, err));
    for (size_t i = 0; i < holds->count; i++) {
        const struct qr_attempt *attempt = holds->documents[i].owner;
        const bool is_same = epoch == attempt->base.vector_epoch || attempt->is_rebuilding;
        holds->documents[i].is_wanted = holds->documents[i].is_wanted && is_same;
    }
    return QR_OK;
}

qr_rc qr_attempts_vector_guard(struct qr_index_document *documents, size_t count, void *arg, qr_err *err)
{
    return qr_db_read(arg, look_at_vector_holds, &(struct holds){documents, count}, err);
}

/* ---- the outcome ---- */

/* What ended for good is an event that somebody may see: durable. A failure whose code says "skip" becomes that. */
void qr_outcome_set(struct qr_outcome *outcome, qr_rc rc, void *result)
{
    outcome->level = QR_DURABLE;
    if (rc == QR_OK) {
        outcome->kind = QR_OUTCOME_COMPLETED;
        outcome->error = (qr_err){0};
        outcome->result = result;
    } else if (outcome->error.code == QR_CODE_BASE_FAILED) { /* THING-2 */
        outcome->kind = QR_OUTCOME_SNOOZED;
        outcome->delay_ms = HELD_MS;
        outcome->level = QR_RELAXED;
    } else if (qr_code_info(outcome->error.code)->policy == QR_POLICY_WAIT) { /* AGAIN-2 */
        outcome->kind = QR_OUTCOME_SNOOZED;
        outcome->delay_ms = QR_MAX(outcome->delay_ms, (int64_t)WAIT_MS_MIN);
        outcome->level = QR_RELAXED;
    } else {
        const bool is_unwanted = rc == QR_STALE || rc == QR_NOT_FOUND;
        const bool skips = qr_code_info(outcome->error.code)->policy == QR_POLICY_SKIP;
        outcome->kind = is_unwanted && skips ? QR_OUTCOME_SKIPPED : QR_OUTCOME_FAILED;
    }
}

/* ---- arguments ---- */

static qr_rc parse_roots(const json_t *args, const struct qr_job_run *run, const char **ret_what, qr_uuid **ret_roots,
                         size_t *ret_count, qr_err *err)
{
    const json_t *roots = json_object_get(args, "roots");
    const char *what = json_string_value(json_object_get(args, "what"));
    const size_t count = json_array_size(roots);
    qr_uuid *ids = qr_arena_array(run->arena, count + 1, sizeof ids[0]);
    const char *kept = qr_arena_copy(run->arena, qr_str_of(what ? what : ""));
    if (!ids || !kept) {
        return qr_handler_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(roots, i));
        if (!text || !qr_uuid_parse(qr_str_of(text), &ids[i])) {
            return qr_fail(err, QR_CODE_INTERNAL, "the job's arguments have a root that is no id");
        }
    }
    *ret_roots = ids;
    *ret_count = count;
    if (ret_what) {
        *ret_what = kept;
    }
    return QR_OK;
}

qr_rc qr_job_roots(const struct qr_job_run *run, const char **ret_what, qr_uuid **ret_roots, size_t *ret_count,
                   qr_err *err)
{
    QR_JSON *args = NULL;
    if (qr_json_parse(qr_str_of(run->job->args), &QR_JSON_REQUEST_LIMITS, &args, err) != QR_OK) {
        return qr_fail(err, QR_CODE_INTERNAL, "the job's arguments are not JSON");
    }
    return parse_roots(args, run, ret_what, ret_roots, ret_count, err);
}

qr_rc qr_find_source_root(struct qr_db *db, const struct qr_item *item, struct qr_arena *arena, bool *ret_found,
                          struct qr_item *ret_root, qr_err *err)
{
    struct find_root find = {.item = item, .arena = arena};
    if (item->depth > 0) {
        QR_TRY(qr_db_read(db, find_root, &find, err));
    }
    *ret_found = find.found || item->source.len;
    *ret_root = find.found ? find.root : *item;
    return QR_OK;
}
