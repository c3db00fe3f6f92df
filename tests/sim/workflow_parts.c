/* Puts a process together as api/wire.c does, with hooks at two places: around every handler, so that services know who calls
 * them; and around the plan, where results of jobs that are not wanted must change nothing (I2). */
#include "sim/workflow_sim.h"

#include "base/mem.h"
#include "handler/embedding.h"
#include "handler/handlers.h"
#include "handler/prune_vectors.h"
#include "job/beat.h"
#include "model/stage_result.h"
#include "search/visible.h"
#include "workflow/plan.h"
#include "workflow/recover.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct hook {
    qr_handler_fn *fn;
    qr_handler_many_fn *many;
    void *arg;
};

struct parts {
    struct qr_index_set *index;
    struct qr_visible_memory *visible; /* of searches */
    struct qr_artifacts artifacts;
    struct qr_workflow workflow;
    struct qr_batcher_hooks hooks_of_batchers; /* the product's own */
    struct qr_providers *providers;
    struct qr_handler_context context;
    struct model {
        int64_t key;
        struct qr_provider *provider;
    } models[8]; /* as they are asked for */
    struct hook hooks[QR_JOB_TYPE_END];
    struct qr_handler handlers[QR_JOB_TYPE_END];
    struct qr_plan plan; /* the product's own */
    struct qr_recovery_state recovery;
    struct qr_pruning pruning;
    struct qr_beat_task tasks[QR_RECOVERY_TASKS + 1];
    struct qr_beat *beat;
};

/* ---- folders ---- */

static char folder[200];
static char paths[8][256];

const char *sim_path(const char *name)
{
    static unsigned next;
    char *path = paths[next++ % QR_COUNT(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int remove_one(const char *path, const struct stat *st QR_UNUSED, int type QR_UNUSED, struct FTW *ftw QR_UNUSED)
{
    return remove(path);
}

void sim_folder_begin(void)
{
    static const char *const names[] = {"index", "artifacts", "work", "tree"};
    snprintf(folder, sizeof folder, "%s/data-%d", world.t->dir, world.run);
    QR_CHECK(mkdir(folder, 0700) == 0);
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        QR_CHECK(mkdir(sim_path(names[i]), 0700) == 0);
    }
}

void sim_folder_end(void)
{
    QR_CHECK(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

/* ---- handlers ---- */

static struct {
    const struct qr_job *job;
    int64_t since_ms;
} current[SIM_COROUTINES_MAX];

const struct qr_job *parts_current_job(int64_t *ret_since_ms)
{
    *ret_since_ms = current[sim_self()].since_ms;
    return current[sim_self()].job;
}

/* When attempts began, in a ring. */
enum { BEGUN_MAX = 512 };
static struct {
    qr_uuid job_id;
    int64_t fence, since_ms;
} begun[BEGUN_MAX];
static unsigned begun_count;

static void note_begin(const struct qr_job *job)
{
    begun[begun_count % BEGUN_MAX].job_id = job->id;
    begun[begun_count % BEGUN_MAX].fence = job->fence;
    begun[begun_count++ % BEGUN_MAX].since_ms = qr_clock_wall_ms(sim_clock());
}

static int64_t begin_of(const struct qr_job *job)
{
    for (unsigned i = 1; i <= QR_MIN(begun_count, (unsigned)BEGUN_MAX); i++) {
        const unsigned at = (begun_count - i) % BEGUN_MAX;
        if (qr_uuid_equal(begun[at].job_id, job->id) && begun[at].fence == job->fence) {
            return begun[at].since_ms;
        }
    }
    return 0; /* long ago */
}

/* ---- who wants vectors ---- */

/* The jobs that the last look of each coroutine found to want them. */
static struct {
    const struct qr_job *jobs[QR_TOGETHER_MAX];
    size_t count;
} callers[SIM_COROUTINES_MAX];

static qr_rc look_at_callers(void *arg, struct qr_embed_asked *asked, size_t count, qr_err *err)
{
    struct qr_batcher_hooks *real = arg;
    callers[sim_self()].count = 0;
    QR_TRY(real->look(real->arg, asked, count, err));
    for (size_t i = 0; i < count; i++) {
        const struct qr_attempt *attempt = asked[i].arg;
        if (asked[i].is_wanted && callers[sim_self()].count < QR_TOGETHER_MAX) {
            callers[sim_self()].jobs[callers[sim_self()].count++] = attempt->run->job;
        }
    }
    return QR_OK;
}

static qr_rc keep(void *arg, const char *fingerprint, int dimension, const struct qr_embed_paid *paid, size_t count,
                  qr_err *err)
{
    const struct qr_batcher_hooks *real = arg;
    return real->keep(real->arg, fingerprint, dimension, paid, count, err);
}

static qr_rc known_dimension(void *arg, const char *fingerprint, int *ret_dimension, qr_err *err)
{
    const struct qr_batcher_hooks *real = arg;
    return real->dimension(real->arg, fingerprint, ret_dimension, err);
}

void parts_check_callers(int64_t *ret_since_ms)
{
    const size_t count = callers[sim_self()].count;
    QR_CHECK(count > 0);
    *ret_since_ms = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct qr_job *job = callers[sim_self()].jobs[i];
        const int64_t since_ms = begin_of(job);
        flow_oracle_check_call(job, since_ms);
        *ret_since_ms = QR_MIN(*ret_since_ms, since_ms);
    }
    callers[sim_self()].count = 0;
}

/* ---- around the handlers ---- */

static void handle(struct qr_job_run *run, struct qr_outcome *outcome)
{
    const struct hook *hook = run->arg;
    note_begin(run->job);
    current[sim_self()].job = run->job;
    current[sim_self()].since_ms = qr_clock_wall_ms(sim_clock());
    run->arg = hook->arg;
    hook->fn(run, outcome);
    current[sim_self()].job = NULL;
    if (world.faults && sim_chance(20)) {
        sim_sleep(sim_between(0, 20 * 60000)); /* its result comes late */
    }
}

/* Services but for that of vectors are called by those that run alone. */
static void handle_many(struct qr_job_run *const *runs, size_t count, struct qr_outcome *const *outcomes)
{
    const struct hook *hook = runs[0]->arg;
    for (size_t i = 0; i < count; i++) {
        runs[i]->arg = hook->arg;
        note_begin(runs[i]->job);
    }
    hook->many(runs, count, outcomes);
    if (world.faults && sim_chance(20)) {
        sim_sleep(sim_between(0, 20 * 60000)); /* their results come late */
    }
}

/* What a handler takes one after the other. */
struct hooked_stream {
    struct qr_job_stream stream; /* first */
    struct qr_job_stream *real;
    const struct hook *hook;
};

static size_t take_from_stream(struct qr_job_stream *stream, size_t max, size_t room, struct qr_job_run **ret_runs,
                               struct qr_outcome **ret_outcomes)
{
    struct hooked_stream *hooked = (struct hooked_stream *)stream;
    const size_t count = hooked->real->take(hooked->real, max, room, ret_runs, ret_outcomes);
    for (size_t i = 0; i < count; i++) {
        hooked->hook = ret_runs[i]->arg;
        ret_runs[i]->arg = hooked->hook->arg;
        note_begin(ret_runs[i]->job);
    }
    return count;
}

static void end_in_stream(struct qr_job_stream *stream, struct qr_job_run *run)
{
    struct hooked_stream *hooked = (struct hooked_stream *)stream;
    if (world.faults && sim_chance(5)) {
        sim_sleep(sim_between(0, 20 * 60000)); /* its result comes late, and those of all behind it */
    }
    hooked->real->end(hooked->real, run);
}

static void handle_stream(struct qr_job_stream *stream)
{
    struct hooked_stream hooked = {.stream = {take_from_stream, end_in_stream}, .real = stream};
    qr_handle_index_chunks_stream(&hooked.stream);
}

/* ---- the plan ---- */

static bool swaps(const struct qr_ended *ended)
{
    const struct qr_stage_result *result = ended->outcome->result;
    const enum qr_job_type type = qr_job_type_find(qr_str_of(ended->job->type));
    return (type == QR_JOB_PROCESS_DOCUMENT || type == QR_JOB_CHUNK_DOCUMENT || type == QR_JOB_INDEX_CHUNKS) &&
           ended->state == QR_JOB_COMPLETED && result && result->reached == QR_REACHED_INDEX;
}

static qr_rc plan_before(const struct qr_ended *ended, size_t count, void *arg, qr_err *err)
{
    struct parts *parts = arg;
    qr_uuid synced = {0};
    for (size_t i = 0; i < count; i++) {
        if (swaps(&ended[i]) && !qr_uuid_equal(ended[i].job->base_id, synced)) {
            synced = ended[i].job->base_id;
            flow_totals.swaps++;
            QR_TRY(qr_index_sync(parts->index, synced, err));
        }
    }
    return QR_OK;
}

#define WANTED                                                                                                         \
    "SELECT count(*) FROM item JOIN base ON base.id = item.base_id WHERE item.id = ?1 AND item.generation = ?2 AND "   \
    "item.status IN (2, 3) AND base.status <> 3 AND NOT EXISTS (SELECT 1 FROM item AS gone WHERE gone.status = 8 "     \
    "AND gone.base_id = item.base_id AND substr(item.path, 1, length(gone.path)) = gone.path)"
/* All that a result may change, in one number. */
#define STATE                                                                                                          \
    "SELECT status + 10 * (generation + 200 * (live_generation + 200 * (text_generation + 200 * (chunk_generation + "  \
    "200 * (expanded_generation + 200 * (kept_generation + 200 * (error_code <> ''))))))) FROM item WHERE id = ?1"

static bool is_stage(const struct qr_job *job)
{
    return qr_job_type_info(qr_job_type_find(qr_str_of(job->type)))->is_stage;
}

static qr_rc look(struct qr_tx *tx, const struct qr_job *job, bool *ret_is_wanted, int64_t *ret_state, qr_err *err)
{
    const struct qr_val id = qr_val_blob(job->item_id.bytes, QR_UUID_BYTES);
    int64_t count = 0;
    *ret_state = -1;
    QR_TRY(qr_tx_get_i64(tx, WANTED, QR_VALS(id, qr_val_i64(job->generation)), NULL, &count, err));
    *ret_is_wanted = count > 0;
    return qr_tx_get_i64(tx, STATE, QR_VALS(id), NULL, ret_state, err);
}

static qr_rc plan_ended(struct qr_tx *tx, const struct qr_ended *ended, size_t count, void *arg, qr_err *err)
{
    const struct parts *parts = arg;
    const struct qr_job *job = ended[0].job;
    const bool is_looked_at = count == 1 && is_stage(job) && !qr_job_state_is_open(ended[0].state);
    bool is_wanted = true, ignored;
    int64_t before = 0, after = 0;
    if (is_looked_at) {
        QR_TRY(look(tx, job, &is_wanted, &before, err));
    }
    QR_TRY(parts->plan.ended(tx, ended, count, parts->plan.arg, err));
    if (is_looked_at && !is_wanted) {
        QR_TRY(look(tx, job, &ignored, &after, err));
        flow_totals.stale_results++;
        if (before != after) {
            QR_FAIL("I2: a %s of generation %lld that nobody wants changed its item", job->type,
                    (long long)job->generation);
        }
    }
    return QR_OK;
}

static qr_rc plan_part(struct qr_tx *tx, const struct qr_job *job, void *part, void *arg, qr_err *err)
{
    const struct parts *parts = arg;
    bool is_wanted = true;
    int64_t state;
    if (is_stage(job)) {
        QR_TRY(look(tx, job, &is_wanted, &state, err));
    }
    QR_TRY(parts->plan.part(tx, job, part, parts->plan.arg, err));
    if (strcmp(job->type, "build-vectors") == 0) {
        flow_totals.model_switches += ((const struct qr_switch_part *)part)->has_switched;
    }
    if (!is_wanted) {
        QR_FAIL("I2: a part of a %s that nobody wants was taken", job->type);
    }
    return QR_OK;
}

static qr_rc plan_lock(struct qr_tx *tx, const qr_uuid *sorted_ids, size_t count, void *arg, qr_err *err)
{
    const struct parts *parts = arg;
    return parts->plan.lock(tx, sorted_ids, count, parts->plan.arg, err);
}

static struct qr_plan plan_of(struct parts *parts)
{
    return (struct qr_plan){.lock = plan_lock,
                            .relies = swaps,
                            .before = plan_before,
                            .part = plan_part,
                            .ended = plan_ended,
                            .arg = parts};
}

/* ---- models ---- */

static struct qr_provider *provider_of(const struct qr_embedding_settings *embedding, void *arg)
{
    struct parts *parts = arg;
    const int64_t key = qr_model_key(embedding);
    struct model *model = parts->models;
    while (model->provider && model->key != key) {
        model++;
        QR_CHECK(model < parts->models + QR_COUNT(parts->models));
    }
    if (!model->provider) {
        *model = (struct model){key, services_provider(embedding)};
    }
    return model->provider;
}

/* ---- in and out ---- */

static qr_rc open_stores(struct parts *parts, struct process *process, qr_err *err)
{
    parts->artifacts = (struct qr_artifacts){.dir = qr_copy_string(sim_path("artifacts")), .io = world_io()};
    parts->workflow = (struct qr_workflow){process->db, &process->ids, &parts->artifacts};
    parts->plan = qr_workflow_plan(&parts->workflow);
    QR_TRY(qr_visible_memory_create(&parts->visible, err));
    QR_TRY(qr_index_set_open(&parts->index,
                             &(struct qr_index_options){.dir = sim_path("index"),
                                                        .open_max = 2,
                                                        .vfs = "fault",
                                                        .io = world_io(),
                                                        .clock = sim_clock(),
                                                        .rand = sim_rand(),
                                                        .single_thread = true},
                             err));
    parts->hooks_of_batchers = qr_embedding_hooks(process->db);
    QR_TRY(qr_providers_open(
        &parts->providers,
        &(struct qr_providers_options){.clock = sim_clock(),
                                       .hooks = {look_at_callers, keep, known_dimension, &parts->hooks_of_batchers},
                                       .instead_of = provider_of,
                                       .instead_arg = parts},
        err));
    parts->context = (struct qr_handler_context){.db = process->db,
                                                 .ids = &process->ids,
                                                 .index = parts->index,
                                                 .artifacts = &parts->artifacts,
                                                 .reader = qr_reader_direct(),
                                                 .work_dir = qr_copy_string(sim_path("work")),
                                                 .providers = parts->providers,
                                                 .processor = services_processor(),
                                                 .analyser = services_analyser()};
    return QR_OK;
}

static void hook_handlers(struct parts *parts, struct qr_runner_options *options)
{
    options->handlers = parts->handlers;
    options->handler_count = qr_handlers(&parts->context, parts->handlers);
    for (size_t i = 0; i < options->handler_count; i++) {
        parts->hooks[i] = (struct hook){parts->handlers[i].fn, parts->handlers[i].many, parts->handlers[i].arg};
        parts->handlers[i].fn = handle;
        parts->handlers[i].many = parts->handlers[i].many ? handle_many : NULL;
        parts->handlers[i].stream = parts->handlers[i].stream ? handle_stream : NULL;
        parts->handlers[i].arg = &parts->hooks[i];
    }
}

static qr_rc open_parts(struct process *process, struct qr_runner_options *options, qr_err *err)
{
    struct parts *parts = qr_alloc_zero(sizeof *parts);
    QR_CHECK(parts);
    process->parts = parts;
    QR_TRY(open_stores(parts, process, err));
    hook_handlers(parts, options);
    options->plan = plan_of(parts);
    options->stuck_max = 4;
    for (int queue = QR_QUEUE_EXPAND; queue < QR_QUEUE_END; queue++) {
        options->slots[queue] = queue == QR_QUEUE_CONVERT || queue == QR_QUEUE_EMBED ? (int)sim_between(1, 3) : 1;
    }
    parts->recovery = (struct qr_recovery_state){.workflow = &parts->workflow, .rows_a_step = (int)sim_between(1, 20)};
    qr_recovery_tasks(&parts->recovery, parts->tasks);
    qr_pruning_init(&parts->pruning, process->db, parts_index(process), 0);
    parts->tasks[QR_RECOVERY_TASKS] = qr_prune_task(&parts->pruning);
    QR_TRY(qr_beat_create(
        &parts->beat,
        &(struct qr_beat_options){
            .db = process->db, .clock = sim_clock(), .tasks = parts->tasks, .task_count = QR_COUNT(parts->tasks)},
        err));
    return qr_beat_run_recovery(parts->beat, sim_between(0, 1) ? INT64_MAX : 0, err); /* B5: the beat has the rest */
}

static qr_rc start_parts(struct process *process, qr_err *err)
{
    return qr_beat_start(((struct parts *)process->parts)->beat, err);
}

static void stop_parts(struct process *process)
{
    qr_beat_free(((struct parts *)process->parts)->beat);
}

static void close_parts(struct process *process)
{
    struct parts *parts = process->parts;
    qr_visible_memory_free(parts->visible);
    qr_index_set_close(parts->index);
    qr_providers_close(parts->providers);
    for (size_t i = 0; i < QR_COUNT(parts->models); i++) {
        qr_provider_free(parts->models[i].provider);
    }
    qr_processor_free(parts->context.processor);
    qr_analyser_free(parts->context.analyser);
    qr_free((char *)parts->artifacts.dir);
    qr_free((char *)parts->context.work_dir);
    qr_free(parts);
    process->parts = NULL;
}

void parts_install(void)
{
    world.open_parts = open_parts;
    world.start_parts = start_parts;
    world.stop_parts = stop_parts;
    world.close_parts = close_parts;
}

const struct qr_workflow *parts_workflow(const struct process *process)
{
    return &((const struct parts *)process->parts)->workflow;
}

struct qr_index_set *parts_index(const struct process *process)
{
    return ((const struct parts *)process->parts)->index;
}

struct qr_visible_memory *parts_visible(const struct process *process)
{
    return ((const struct parts *)process->parts)->visible;
}

const struct qr_artifacts *parts_artifacts(const struct process *process)
{
    return &((const struct parts *)process->parts)->artifacts;
}
