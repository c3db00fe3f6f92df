/* What a handler may call while it runs: from whatever thread, and fenced where it writes (R2). */
#include "job/runner_internal.h"

static struct task *task_of(const struct qr_job_run *run)
{
    return QR_CONTAINER_OF(run, struct task, run);
}

bool qr_job_is_cancelled(const struct qr_job_run *run)
{
    return atomic_load(&task_of(run)->cancelled);
}

void qr_job_progress(struct qr_job_run *run, int64_t done, int64_t total)
{
    struct task *task = task_of(run);
    struct qr_runner *runner = task->runner;
    QR_HOLD(&runner->lock);
    task->progress_done = done;
    task->progress_total = total;
    task->progress_is_new = true;
    const int64_t due_mono_ms = QR_MAX(task->progress_mono_ms + QR_PROGRESS_MS, (int64_t)1);
    if (task->state == TASK_RUNNING && (!runner->progress_due_mono_ms || due_mono_ms < runner->progress_due_mono_ms)) {
        runner->progress_due_mono_ms = due_mono_ms;
        qr_signal_one(&runner->dispatcher_wake);
    }
}

struct fenced_write {
    struct task *task;
    qr_tx_fn *fn;
    void *arg;
};

static qr_rc write_fenced(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct fenced_write *write = arg;
    const struct qr_job *job = &write->task->job;
    if (!qr_uuid_is_zero(job->base_id)) {
        QR_TRY(qr_plan_lock(tx, &job->base_id, 1, &write->task->runner->options.plan, err));
    }
    QR_TRY(qr_jobs_require_fence(tx, job->id, job->fence, err));
    return write->fn(tx, write->arg, err);
}

qr_rc qr_job_write(struct qr_job_run *run, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err)
{
    struct fenced_write write = {task_of(run), fn, arg};
    return qr_db_write(run->db, level, write_fenced, &write, err);
}

struct part_report {
    struct task *task;
    void *part;
};

static qr_rc plan_part(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct part_report *report = arg;
    const struct qr_plan *plan = &report->task->runner->options.plan;
    return plan->part ? plan->part(tx, &report->task->job, report->part, plan->arg, err) : QR_OK;
}

qr_rc qr_job_report_part(struct qr_job_run *run, enum qr_db_level level, void *part, qr_err *err)
{
    struct part_report report = {task_of(run), part};
    return qr_job_write(run, level, plan_part, &report, err);
}
