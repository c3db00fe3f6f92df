/* The only file that knows every layer: puts the parts of the work together.
 *
 * Order on the way in: recovery for as long as its budget lasts, runner, beat, which goes on with it; on the way out the
 * reverse. */
#include "api/wire.h"

#include "api/refused.h"
#include "api/stores.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "handler/context.h"
#include "handler/prune_vectors.h"
#include "job/beat.h"
#include "job/runner.h"
#include "workflow/plan.h"
#include "workflow/recover.h"

#include <stdio.h>
#include <unistd.h>

enum { POSTGRES_POLL_MS = 5000, STUCK_MAX = 4, EMBEDDERS = 8 };

struct qr_work {
    struct quire *quire;
    struct qr_handler_context context;
    struct qr_handler handlers[QR_JOB_TYPE_END];
    struct qr_recovery_state recovery;
    struct qr_store_look store_look;
    struct qr_pruning pruning;
    struct qr_refused_look refused_look;
    struct qr_beat_task tasks[QR_RECOVERY_TASKS + 3];
    struct qr_reader *reader;
    struct qr_runner *runner;
    struct qr_beat *beat;
    char name[128]; /* of this worker */
};

/* ---- before a round is recorded ---- */

/* A swap makes rows of the index visible; a stage that counts on chunks finds those that the one before it wrote; and what a
 * purge took away nobody looks for again. */
static bool relies_on_index(const struct qr_ended *ended)
{
    const enum qr_job_type type = qr_job_type_find(qr_str_of(ended->job->type));
    const struct qr_stage_result *result = ended->outcome->result;
    if (type == QR_JOB_PURGE) {
        return true;
    }
    return (type == QR_JOB_PROCESS_DOCUMENT || type == QR_JOB_CHUNK_DOCUMENT || type == QR_JOB_INDEX_CHUNKS) &&
           result && result->reached >= QR_REACHED_CHUNKS;
}

/* The index is made durable first, once a base for all that are recorded together. */
static qr_rc make_durable(const struct qr_ended *ended, size_t count, void *arg, qr_err *err)
{
    const struct qr_workflow *workflow = arg;
    struct quire *quire = QR_CONTAINER_OF(workflow, struct quire, workflow);
    qr_uuid synced = {0};
    for (size_t i = 0; i < count; i++) {
        if (!qr_uuid_equal(ended[i].job->base_id, synced)) {
            synced = ended[i].job->base_id;
            QR_TRY(qr_index_sync(quire->index, synced, err));
        }
    }
    return QR_OK;
}

static struct qr_plan plan_of(struct quire *quire)
{
    struct qr_plan plan = qr_workflow_plan(&quire->workflow);
    plan.relies = relies_on_index;
    plan.before = make_durable;
    return plan;
}

/* ---- the parts ---- */

static void name_worker(struct qr_work *work)
{
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(work->name, sizeof work->name, "%s, pid %d", host, (int)getpid());
}

static qr_rc start_beat(struct qr_work *work, qr_err *err)
{
    struct quire *quire = work->quire;
    work->recovery = (struct qr_recovery_state){.workflow = &quire->workflow};
    work->store_look.quire = quire;
    qr_recovery_tasks(&work->recovery, work->tasks);
    work->tasks[QR_RECOVERY_TASKS] = qr_store_look_task(&work->store_look);
    qr_pruning_init(&work->pruning, quire->db, quire->index,
                    qr_config_number(qr_instance_config(quire), QR_CONFIG_CACHE_VECTOR_LIMIT));
    work->tasks[QR_RECOVERY_TASKS + 1] = qr_prune_task(&work->pruning);
    work->refused_look.quire = quire;
    work->tasks[QR_RECOVERY_TASKS + 2] = qr_refused_task(&work->refused_look);
    QR_TRY(qr_beat_create(
        &work->beat,
        &(struct qr_beat_options){
            .db = quire->db, .clock = quire->clock, .tasks = work->tasks, .task_count = QR_COUNT(work->tasks)},
        err));
    QR_TRY(qr_beat_run_recovery(work->beat, QR_BEAT_RECOVERY_MS, err));
    return qr_refused_try_again(quire, err); /* this process may have another key than the one that was refused */
}

static qr_rc start_runner(struct qr_work *work, qr_err *err)
{
    struct quire *quire = work->quire;
    const bool is_alone = strcmp(qr_db_driver_name(quire->db), "sqlite") == 0;
    const int cores = (int)QR_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
    const int converters = QR_MIN(2 * cores + 2, 16); /* several wait for one commit of the index */
    name_worker(work);
    QR_TRY(qr_reader_open(
        &work->reader,
        &(struct qr_reader_options){.program = qr_config_text(qr_instance_config(quire), QR_CONFIG_READER_PROGRAM),
                                    .count_max = converters},
        err));
    work->context = (struct qr_handler_context){.db = quire->db,
                                                .ids = &quire->ids,
                                                .index = quire->index,
                                                .artifacts = &quire->artifacts,
                                                .reader = work->reader,
                                                .work_dir = quire->work_dir,
                                                .endpoints = quire->endpoints,
                                                .providers = quire->providers,
                                                .counts = &quire->counts};
    const struct qr_runner_options options = {
        .db = quire->db,
        .ids = &quire->ids,
        .clock = quire->clock,
        .rand = qr_rand_system(),
        .handlers = work->handlers,
        .handler_count = qr_handlers(&work->context, work->handlers),
        .plan = plan_of(quire),
        .slots = {[QR_QUEUE_EXPAND] = 1,
                  [QR_QUEUE_CONVERT] = converters,
                  [QR_QUEUE_EMBED] = EMBEDDERS, /* they wait for a server, or for one batch that all share */
                  [QR_QUEUE_ASSETS] = 1,
                  [QR_QUEUE_DELETE] = 1},
        .share_min = {[QR_QUEUE_EMBED] = QR_TOGETHER_MAX}, /* so that small documents share calls */
        .name = work->name,
        .owns_all = is_alone,
        .poll_ms = is_alone ? 0 : POSTGRES_POLL_MS,
        .stuck_max = STUCK_MAX,
    };
    QR_TRY(qr_runner_start(&work->runner, &options, err));
    qr_beat_spare(work->beat, work->runner);
    return QR_OK;
}

/* ---- on and off ---- */

/* Returns what was there. Before it goes: no request looks at it then. */
static struct qr_work *set_work(struct quire *quire, struct qr_work *work)
{
    QR_HOLD(&quire->work_lock);
    struct qr_work *before = quire->work;
    quire->work = work;
    return before;
}

qr_rc qr_instance_start_work(struct quire *quire, qr_err *err)
{
    if (quire->work) {
        return QR_OK;
    }
    struct qr_work *work = qr_alloc_zero(sizeof *work);
    if (!work) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while starting to work");
    }
    work->quire = quire;
    qr_rc rc = start_beat(work, err);
    rc = rc == QR_OK ? start_runner(work, err) : rc;
    rc = rc == QR_OK ? qr_beat_start(work->beat, err) : rc;
    set_work(quire, work);
    if (rc != QR_OK) {
        (void)qr_instance_stop_work(quire, 0);
    }
    return rc;
}

bool qr_instance_stop_work(struct quire *quire, int64_t grace_ms)
{
    struct qr_work *work = set_work(quire, NULL);
    if (!work) {
        return true;
    }
    qr_beat_free(work->beat);
    const bool all_ended = !work->runner || qr_runner_stop(work->runner, grace_ms);
    qr_vector_counts_store(&quire->counts, quire->db);
    if (all_ended) { /* a handler that did not return still uses its context */
        qr_reader_close(work->reader);
        qr_free(work);
    }
    return all_ended;
}

void qr_instance_ended_jobs(struct quire *quire, uint64_t ret_ended[static QR_QUEUE_END])
{
    struct qr_runner_stats stats = {0};
    QR_HOLD(&quire->work_lock);
    if (quire->work && quire->work->runner) {
        qr_runner_stats(quire->work->runner, &stats);
    }
    memcpy(ret_ended, stats.ended, sizeof stats.ended);
}

void qr_instance_trouble(struct quire *quire, qr_err *ret_trouble)
{
    struct qr_runner_stats stats = {0};
    QR_HOLD(&quire->work_lock);
    if (quire->work && quire->work->runner) {
        qr_runner_stats(quire->work->runner, &stats);
    }
    *ret_trouble = stats.trouble;
}

bool qr_instance_is_working(struct quire *quire)
{
    QR_HOLD(&quire->work_lock);
    return quire->work && quire->work->runner;
}

void qr_instance_job_stats(struct quire *quire, struct qr_runner_stats *ret_stats)
{
    *ret_stats = (struct qr_runner_stats){0};
    QR_HOLD(&quire->work_lock);
    if (quire->work && quire->work->runner) {
        qr_runner_stats(quire->work->runner, ret_stats);
        ret_stats->rescued += qr_beat_rescued(quire->work->beat);
    }
}
