/* The worker's own row: its registration, its lease, and what becomes of the jobs of dead workers. */
#include "job/runner_internal.h"

struct registration {
    struct qr_runner *runner;
    qr_uuid id;
    int64_t freed_count;
};

static qr_rc register_worker(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct registration *registration = arg;
    int64_t dead_count;
    if (registration->runner->options.owns_all) {
        QR_TRY(qr_workers_declare_dead(tx, true, registration->id, &dead_count, err));
    }
    return qr_worker_register(tx, registration->id, registration->runner->options.name, err);
}

struct crash {
    const struct qr_plan *plan;
    const struct qr_job *job;
};

static qr_rc plan_crash(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct crash *crash = arg;
    struct qr_outcome outcome = {.kind = QR_OUTCOME_FAILED};
    qr_fail(&outcome.error, QR_CODE_CRASHED_WORKER, "the process died while it ran this job, too often to try again");
    const struct qr_ended ended = {crash->job, QR_JOB_FAILED, &outcome};
    return crash->plan->ended(tx, &ended, 1, crash->plan->arg, err);
}

/* Where the plan refuses, the job has failed all the same, as in record_alone: it must not keep the other jobs of the dead,
 * nor a process from starting. */
static qr_rc tell_of_crash(struct qr_tx *tx, const struct qr_job *job, void *arg, qr_err *err QR_UNUSED)
{
    const struct qr_plan *plan = arg;
    if (plan->ended) {
        qr_err refusal = {0};
        struct crash crash = {plan, job};
        if (qr_tx_nested(tx, plan_crash, &crash, &refusal) !=
            QR_OK) { /* perhaps of the moment: an item depends on it (I1) */
            (void)qr_tx_nested(tx, plan_crash, &crash, &refusal);
        }
    }
    return QR_OK;
}

struct qr_rescue qr_plan_rescue(const struct qr_plan *plan)
{
    return (struct qr_rescue){qr_plan_lock, tell_of_crash, (void *)plan};
}

static qr_rc free_dead(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct registration *registration = arg;
    const struct qr_rescue rescue = qr_plan_rescue(&registration->runner->options.plan);
    return qr_workers_free_jobs(tx, &rescue, &registration->freed_count, err);
}

qr_rc qr_dispatch_free_dead(struct qr_runner *runner, qr_err *err)
{
    struct registration registration = {.runner = runner};
    do {
        QR_TRY(qr_db_write(runner->options.db, QR_DURABLE, free_dead, &registration, err));
    } while (registration.freed_count > 0);
    QR_HOLD(&runner->lock);
    runner->has_dead_to_free = false;
    return QR_OK;
}

qr_rc qr_dispatch_register(struct qr_runner *runner, qr_err *err)
{
    struct registration registration = {.runner = runner, .id = qr_uuid_next(runner->options.ids)};
    QR_TRY(qr_db_write(runner->options.db, QR_DURABLE, register_worker, &registration, err));
    QR_HOLD(&runner->lock);
    runner->worker_id = registration.id;
    runner->lease_is_lost = false;
    runner->has_dead_to_free = runner->options.owns_all;
    return QR_OK;
}

static qr_rc unregister_worker(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_worker_unregister(tx, *(const qr_uuid *)arg, err);
}

qr_rc qr_dispatch_unregister(struct qr_runner *runner, qr_err *err)
{
    return qr_db_write(runner->options.db, QR_RELAXED, unregister_worker, &runner->worker_id, err);
}

static qr_rc beat(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_worker_beat(tx, *(const qr_uuid *)arg, err);
}

qr_rc qr_dispatch_beat(struct qr_runner *runner, qr_uuid worker_id, qr_err *err)
{
    return qr_db_write(runner->options.db, QR_RELAXED, beat, &worker_id, err);
}
