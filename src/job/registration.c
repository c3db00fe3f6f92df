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

static qr_rc free_dead(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct registration *registration = arg;
    return qr_workers_free_jobs(tx, &registration->freed_count, err);
}

qr_rc qr_dispatch_free_dead(struct qr_runner *runner, qr_err *err)
{
    struct registration registration = {.runner = runner};
    do {
        QR_TRY(qr_db_write(runner->options.db, QR_DURABLE, free_dead, &registration, err));
        QR_HOLD(&runner->lock);
        runner->stats.rescued += (uint64_t)registration.freed_count;
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
