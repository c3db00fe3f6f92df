/* Workers, their leases, and what becomes of the jobs of dead ones. */
#include "store/jobs_row.h"

#include <assert.h>

qr_rc qr_worker_register(struct qr_tx *tx, qr_uuid id, const char *name, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(tx, "INSERT INTO worker (id, name, started_at, lease_until, dead) VALUES (?1, ?2, ?3, ?4, 0)",
                      QR_VALS(qr_val_uuid(&id), qr_val_text(qr_str_of(name)), qr_val_i64(now_ms),
                              qr_val_i64(now_ms + QR_WORKER_LEASE_MS)),
                      NULL, err);
}

static qr_rc lease_lost(qr_err *err)
{
    return qr_fail(err, QR_CODE_LOST, "the worker's lease has ended");
}

/* A lease that has run out is not renewed, even if nobody noticed: somebody may be about to. */
qr_rc qr_worker_beat(struct qr_tx *tx, qr_uuid id, qr_err *err)
{
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx, "UPDATE worker SET lease_until = ?2 WHERE id = ?1 AND dead = 0 AND lease_until >= ?3",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(now_ms + QR_WORKER_LEASE_MS), qr_val_i64(now_ms)), &changes,
                      err));
    return changes ? QR_OK : lease_lost(err);
}

qr_rc qr_worker_require_lease(struct qr_tx *tx, qr_uuid id, qr_err *err)
{
    int64_t now_ms, ignored;
    bool found;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    /* shared: a claim must not slip between the declaration of death and the freeing of the jobs */
    QR_TRY(qr_tx_get_i64(tx,
                         "SELECT lease_until FROM worker WHERE id = ?1 AND dead = 0 AND lease_until >= ?2 "
                         "/*pg FOR SHARE */",
                         QR_VALS(qr_val_uuid(&id), qr_val_i64(now_ms)), &found, &ignored, err));
    return found ? QR_OK : lease_lost(err);
}

qr_rc qr_worker_unregister(struct qr_tx *tx, qr_uuid id, qr_err *err)
{
    return qr_tx_exec(tx,
                      "DELETE FROM worker WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE worker_id = ?1 AND "
                      "state = 4)",
                      QR_VALS(qr_val_uuid(&id)), NULL, err);
}

/* The clock was set back: a lease would end hours late. One that lives renews it soon, so each gets the time of a beat. */
static qr_rc shorten_leases(struct qr_tx *tx, int64_t now_ms, qr_err *err)
{
    enum { DOUBT_MS = 60000 };
    return qr_tx_exec(
        tx, "UPDATE worker SET lease_until = ?1 WHERE dead = 0 AND lease_until > ?2",
        QR_VALS(qr_val_i64(now_ms + QR_WORKER_LEASE_MS), qr_val_i64(now_ms + QR_WORKER_LEASE_MS + DOUBT_MS)), NULL,
        err);
}

qr_rc qr_workers_declare_dead(struct qr_tx *tx, bool all, qr_uuid spare, int64_t *ret_count, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(shorten_leases(tx, now_ms, err));
    return qr_tx_exec(tx, "UPDATE worker SET dead = 1 WHERE dead = 0 AND id <> ?1 AND (?2 <> 0 OR lease_until < ?3)",
                      QR_VALS(qr_val_uuid(&spare), qr_val_i64(all), qr_val_i64(now_ms)), ret_count, err);
}

/* ---- the jobs of the dead ---- */

/* Whoever takes it next sees how often that was (R6). There it can be put off when the end of a job cannot be recorded now: here
 * it could not, and one that ended untold would leave its item without a job (I1). */
static qr_rc free_job(struct qr_tx *tx, const struct qr_job *job, qr_err *err)
{
    return qr_jobs_release(tx, job->id, job->fence,
                           &(struct qr_job_release){
                               .outcome = "crashed",
                               .code = "",
                               .message = "the process that ran it died",
                               .counts_crash = job->crashes < QR_JOB_CRASHES_MAX, /* else nothing of it ran any more */
                           },
                           err);
}

/* Locked, and none that somebody else has locked: nothing waits here for the row of a job (L1). */
static qr_rc find_orphans(struct qr_tx *tx, struct qr_arena *arena, struct qr_job *ret_jobs, size_t *ret_count,
                          qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT " QR_JOB_COLUMNS
                       " FROM job WHERE state = 4 AND worker_id IN (SELECT id FROM worker WHERE dead = 1) "
                       "LIMIT ?1 /*pg FOR UPDATE SKIP LOCKED */",
                       QR_VALS(qr_val_i64(QR_JOB_RESCUE_MAX)), err));
    size_t count = 0;
    while (qr_rows_next(&rows)) {
        assert(count < QR_JOB_RESCUE_MAX);
        QR_TRY(qr_rows_job(&rows, arena, &ret_jobs[count++], err));
    }
    *ret_count = count;
    return qr_rows_end(&rows, err);
}

static qr_rc free_orphans(struct qr_tx *tx, size_t *ret_count, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_job *jobs = qr_arena_array(&arena, QR_JOB_RESCUE_MAX, sizeof jobs[0]);
    if (!jobs) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a batch of jobs");
    }
    QR_TRY(find_orphans(tx, &arena, jobs, ret_count, err));
    for (size_t i = 0; i < *ret_count; i++) {
        QR_TRY(free_job(tx, &jobs[i], err));
    }
    return QR_OK;
}

qr_rc qr_workers_free_jobs(struct qr_tx *tx, int64_t *ret_count, qr_err *err)
{
    size_t count = 0;
    QR_TRY(free_orphans(tx, &count, err));
    if (count > 0) { /* one that is not dead after all hears that its jobs are gone */
        QR_TRY(qr_tx_notify(tx, QR_JOBS_CANCEL_CHANNEL, err));
    }
    *ret_count = (int64_t)count;
    return qr_tx_exec(tx,
                      "DELETE FROM worker WHERE dead = 1 AND NOT EXISTS (SELECT 1 FROM job WHERE job.worker_id = "
                      "worker.id AND job.state = 4)",
                      QR_NO_VALS, NULL, err);
}

qr_rc qr_worker_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, const char **ret_name, int64_t *ret_until_ms,
                     qr_err *err)
{
    *ret_name = "";
    *ret_until_ms = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT name, lease_until FROM worker WHERE id = ?1 AND dead = 0",
                       QR_VALS(qr_val_uuid(&id)), err));
    if (qr_rows_next(&rows)) {
        *ret_name = qr_arena_copy(arena, qr_rows_str(&rows, 0));
        *ret_until_ms = qr_rows_i64(&rows, 1);
    }
    QR_TRY(qr_rows_end(&rows, err));
    return *ret_name ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a worker's name");
}
