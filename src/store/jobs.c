/* Adding, looking at, claiming and ending jobs. store/jobs.h states the invariants.
 *
 * Cost: every statement that a runner repeats goes through an index that holds only the rows in question (the partial
 * indexes of the migration): a million jobs that wait, are scheduled or have ended do not slow a claim. */
#include "store/jobs.h"

#include "base/failpoint.h"
#include "store/jobs_row.h"

#include <assert.h>
#include <stdlib.h>

/* ---- adding ---- */

enum { ADD_TRIES_MAX = 20 }; /* each needs another job of the key to end in just that moment */

/* The open job of the idempotency key. */
static qr_rc find_open(struct qr_tx *tx, struct qr_val key, bool *ret_found, qr_uuid *ret_id, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id FROM job WHERE idempotency_key = ?1 AND idempotency_key IS NOT NULL "
                       "AND state IN " QR_JOB_OPEN_SQL,
                       &key, 1, err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        *ret_id = qr_rows_uuid(&rows, 0);
    }
    return qr_rows_end(&rows, err);
}

/* Holds the serial key's active job, so that it cannot end before our transaction does: its end must see and promote the
 * blocked job that we are about to add (J3). */
static qr_rc lock_active(struct qr_tx *tx, struct qr_val key, bool *ret_found, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx,
                         "SELECT fence FROM job WHERE serial_key = ?1 AND serial_key IS NOT NULL "
                         "AND state IN " QR_JOB_ACTIVE_SQL " /*pg FOR UPDATE */",
                         &key, 1, ret_found, &ignored, err);
}

static qr_rc insert(struct qr_tx *tx, const struct qr_new_job *job, int64_t now_ms, enum qr_job_state state,
                    bool *ret_inserted, qr_err *err)
{
    const struct qr_job_spec *spec = &job->spec;
    int64_t changes;
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO job (id, queue, type, base_id, item_id, generation, state, priority, run_at, "
                      "idempotency_key, serial_key, args, time_limit, created_at) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING",
                      QR_VALS(qr_val_uuid(&job->id), qr_val_i64(spec->queue), qr_val_text(qr_str_of(spec->type)),
                              qr_val_uuid(&spec->base_id), qr_val_uuid_or_null(&spec->item_id),
                              qr_val_i64(spec->generation), qr_val_i64(state), qr_val_i64(spec->priority),
                              qr_val_i64(spec->run_at_ms ? spec->run_at_ms : now_ms), job->idempotency_key,
                              job->serial_key, qr_val_text(spec->args.len ? spec->args : QR_STR("{}")),
                              qr_val_i64(spec->time_limit_ms), qr_val_i64(now_ms)),
                      &changes, err));
    *ret_inserted = changes == 1;
    return QR_OK;
}

/* One try; *ret_done is false when the job that stood in the way has just ended. */
static qr_rc try_add(struct qr_tx *tx, const struct qr_new_job *job, int64_t now_ms, qr_uuid *ret_id, bool *ret_existed,
                     bool *ret_done, qr_err *err)
{
    *ret_id = job->id;
    *ret_existed = false;
    const bool is_due = job->spec.run_at_ms <= now_ms;
    QR_TRY(insert(tx, job, now_ms, is_due ? QR_JOB_QUEUED : QR_JOB_SCHEDULED, ret_done, err));
    if (*ret_done) {
        return QR_OK;
    }
    if (job->idempotency_key.type != QR_VAL_NULL) {
        QR_TRY(find_open(tx, job->idempotency_key, ret_existed, ret_id, err));
        if (*ret_existed) {
            *ret_done = true;
            return QR_OK;
        }
    }
    bool is_held = false;
    if (job->serial_key.type != QR_VAL_NULL) {
        QR_TRY(lock_active(tx, job->serial_key, &is_held, err));
    }
    *ret_id = job->id;
    return is_held ? insert(tx, job, now_ms, QR_JOB_BLOCKED, ret_done, err) : QR_OK;
}

qr_rc qr_jobs_add_new(struct qr_tx *tx, const struct qr_new_job *job, qr_uuid *ret_id, bool *ret_existed, qr_err *err)
{
    QR_FAILPOINT("jobs.enqueue", err);
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    bool done = false;
    for (int tries = 0; !done && tries < ADD_TRIES_MAX; tries++) {
        QR_TRY(try_add(tx, job, now_ms, ret_id, ret_existed, &done, err));
    }
    if (!done) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "too many jobs of one key begin and end at the same time");
    }
    return qr_tx_notify(tx, QR_JOBS_CHANNEL, err);
}

qr_rc qr_jobs_add(struct qr_tx *tx, qr_uuid new_id, const struct qr_job_spec *spec, qr_uuid *ret_id, bool *ret_existed,
                  qr_err *err)
{
    unsigned char idempotency_hash[QR_KEY_HASH_BYTES], serial_hash[QR_KEY_HASH_BYTES];
    const struct qr_new_job job = {.spec = *spec,
                                   .id = new_id,
                                   .idempotency_key = qr_val_key(spec->idempotency_key, idempotency_hash),
                                   .serial_key = qr_val_key(spec->serial_key, serial_hash)};
    bool existed;
    return qr_jobs_add_new(tx, &job, ret_id, ret_existed ? ret_existed : &existed, err);
}

/* ---- looking ---- */

qr_rc qr_jobs_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_job *ret_job,
                   qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT " QR_JOB_COLUMNS " FROM job WHERE id = ?1", QR_VALS(qr_val_uuid(&id)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        QR_TRY(qr_rows_job(&rows, arena, ret_job, err));
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_jobs_require_fence(struct qr_tx *tx, qr_uuid id, int64_t fence, qr_err *err)
{
    bool found;
    int64_t ignored;
    QR_TRY(qr_tx_get_i64(tx, "SELECT fence FROM job WHERE id = ?1 AND state = 4 AND fence = ?2 /*pg FOR UPDATE */",
                         QR_VALS(qr_val_uuid(&id), qr_val_i64(fence)), &found, &ignored, err));
    return found ? QR_OK : qr_fail(err, QR_CODE_LOST, "the job is no longer this worker's");
}

/* ---- claiming ---- */

static int compare_jobs(const void *a, const void *b)
{
    const struct qr_job *x = a, *y = b;
    if (x->priority != y->priority) {
        return x->priority < y->priority ? -1 : 1;
    }
    if (x->run_at_ms != y->run_at_ms) {
        return x->run_at_ms < y->run_at_ms ? -1 : 1;
    }
    return memcmp(x->id.bytes, y->id.bytes, QR_UUID_BYTES);
}

/* Up to `want` more, of one base. */
static qr_rc claim_of_base(struct qr_tx *tx, struct qr_job_claim *claim, qr_uuid base_id, size_t want, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_ROWS(rows);
    QR_TRY(
        qr_tx_query(tx, &rows,
                    "WITH picked AS MATERIALIZED (SELECT id FROM job WHERE state = 3 AND queue = ?1 AND suspect = ?6 "
                    "AND base_id = ?2 ORDER BY priority, run_at, id LIMIT ?3 /*pg FOR UPDATE SKIP LOCKED */) "
                    "UPDATE job SET state = 4, fence = fence + 1, worker_id = ?4, claimed_at = ?5, "
                    "deadline_at = CASE WHEN time_limit > 0 THEN ?5 + time_limit ELSE 0 END "
                    "WHERE id IN (SELECT id FROM picked) RETURNING " QR_JOB_COLUMNS,
                    QR_VALS(qr_val_i64(claim->queue), qr_val_uuid(&base_id), qr_val_i64((int64_t)want),
                            qr_val_uuid(&claim->worker_id), qr_val_i64(now_ms), qr_val_i64(claim->suspects)),
                    err));
    const size_t before = claim->count;
    while (qr_rows_next(&rows)) {
        assert(claim->count - before < want);
        QR_TRY(qr_rows_job(&rows, claim->arena, &claim->jobs[claim->count++], err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    qsort(claim->jobs + before, claim->count - before, sizeof claim->jobs[0], compare_jobs);
    return QR_OK;
}

/* The next base on the ring that has queued jobs: the first behind the last, else the first of all. */
static qr_rc next_base(struct qr_tx *tx, const struct qr_job_claim *claim, bool *ret_found, qr_uuid *ret_base,
                       qr_err *err)
{
    static const char *const searches[] = {
        "SELECT base_id FROM job WHERE state = 3 AND queue = ?1 AND suspect = ?3 AND base_id > ?2 ORDER BY base_id "
        "LIMIT 1",
        "SELECT base_id FROM job WHERE state = 3 AND queue = ?1 AND suspect = ?3 AND base_id <= ?2 ORDER BY base_id "
        "LIMIT 1",
    };
    *ret_found = false;
    for (size_t i = 0; i < QR_COUNT(searches) && !*ret_found; i++) {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows, searches[i],
                           QR_VALS(qr_val_i64(claim->queue), qr_val_uuid(claim->ring), qr_val_i64(claim->suspects)),
                           err));
        *ret_found = qr_rows_next(&rows);
        if (*ret_found) {
            *ret_base = qr_rows_uuid(&rows, 0);
        }
        QR_TRY(qr_rows_end(&rows, err));
    }
    return QR_OK;
}

qr_rc qr_jobs_suspect_waits(struct qr_tx *tx, enum qr_queue queue, bool *ret_waits, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(
        tx,
        "SELECT 1 FROM job WHERE state = 3 AND queue = ?1 AND suspect = 1 AND NOT EXISTS (SELECT 1 FROM "
        "queue_pause WHERE queue_pause.queue = ?1) LIMIT 1",
        QR_VALS(qr_val_i64(queue)), ret_waits, &ignored, err);
}

/* One base's turn: a quarter of the batch, unless it is the only one. *ret_more: there may be more to claim. */
static qr_rc claim_turn(struct qr_tx *tx, struct qr_job_claim *claim, int *passes, bool *ret_more, qr_err *err)
{
    enum { PASSES_MAX = 16 };
    qr_uuid base_id;
    QR_TRY(next_base(tx, claim, ret_more, &base_id, err));
    if (!*ret_more) {
        return QR_OK;
    }
    const bool is_alone = qr_uuid_equal(base_id, *claim->ring);
    const size_t before = claim->count, left = claim->limit - before;
    const size_t share = QR_MAX(claim->limit / 4, (size_t)1);
    QR_TRY(claim_of_base(tx, claim, base_id, is_alone ? left : QR_MIN(share, left), err));
    *claim->ring = base_id;
    /* another worker is at the rows of this base: the next one's turn */
    *passes = claim->count > before ? 0 : *passes + 1;
    *ret_more = *passes == 0 || (!is_alone && *passes < PASSES_MAX);
    return QR_OK;
}

qr_rc qr_jobs_claim(struct qr_tx *tx, struct qr_job_claim *claim, qr_err *err)
{
    claim->count = 0;
    QR_TRY(qr_worker_require_lease(tx, claim->worker_id, err));
    int64_t paused_since_ms;
    QR_TRY(qr_queue_paused_since(tx, claim->queue, &paused_since_ms, err));
    int passes = 0;
    bool more = paused_since_ms == 0;
    while (more && claim->count < claim->limit) {
        QR_TRY(claim_turn(tx, claim, &passes, &more, err));
    }
    return QR_OK;
}

qr_rc qr_jobs_promote_due(struct qr_tx *tx, int64_t *ret_count, int64_t *ret_next_ms, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "UPDATE job SET state = 3 WHERE id IN (SELECT id FROM job WHERE state = 2 AND run_at <= ?1 "
                      "ORDER BY run_at LIMIT ?2 /*pg FOR UPDATE SKIP LOCKED */)",
                      QR_VALS(qr_val_i64(now_ms), qr_val_i64(QR_JOB_BATCH_MAX)), ret_count, err));
    *ret_next_ms = 0;
    return qr_tx_get_i64(tx, "SELECT run_at FROM job WHERE state = 2 ORDER BY run_at LIMIT 1", QR_NO_VALS, NULL,
                         ret_next_ms, err);
}

/* ---- ending ---- */

/* J3. On PostgreSQL the one we pick may be cancelled while we wait for its row: then look again. */
static qr_rc promote_next(struct qr_tx *tx, struct qr_val serial_key, int64_t now_ms, qr_err *err)
{
    for (;;) {
        bool found;
        int64_t ignored, changes;
        QR_TRY(qr_tx_get_i64(tx, "SELECT priority FROM job WHERE serial_key = ?1 AND state = 1 LIMIT 1", &serial_key, 1,
                             &found, &ignored, err));
        if (!found) {
            return QR_OK;
        }
        QR_TRY(
            qr_tx_exec(tx,
                       "UPDATE job SET state = CASE WHEN run_at <= ?2 THEN 3 ELSE 2 END WHERE id = (SELECT id FROM job "
                       "WHERE serial_key = ?1 AND state = 1 ORDER BY priority, id LIMIT 1 /*pg FOR UPDATE */)",
                       QR_VALS(serial_key, qr_val_i64(now_ms)), &changes, err));
        if (changes > 0) {
            return qr_tx_notify(tx, QR_JOBS_CHANNEL, err);
        }
    }
}

static qr_rc promote_behind(struct qr_tx *tx, qr_uuid id, int64_t now_ms, qr_err *err)
{
    unsigned char key_bytes[QR_KEY_HASH_BYTES];
    bool has_key = false;
    {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows, "SELECT serial_key FROM job WHERE id = ?1", QR_VALS(qr_val_uuid(&id)), err));
        has_key = qr_rows_next(&rows) && qr_rows_key(&rows, 0, key_bytes);
        QR_TRY(qr_rows_end(&rows, err));
    }
    return has_key ? promote_next(tx, qr_val_blob(key_bytes, sizeof key_bytes), now_ms, err) : QR_OK;
}

qr_rc qr_jobs_finish(struct qr_tx *tx, const struct qr_job *job, enum qr_job_state state, const char *code,
                     const char *message, qr_err *err)
{
    assert(qr_job_state_may_become(QR_JOB_RUNNING, state) && !qr_job_state_is_open(state));
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "UPDATE job SET state = ?3, finished_at = ?4, code = ?5, message = ?6 "
                      "WHERE id = ?1 AND state = 4 AND fence = ?2",
                      QR_VALS(qr_val_uuid(&job->id), qr_val_i64(job->fence), qr_val_i64(state), qr_val_i64(now_ms),
                              qr_val_text(qr_str_of(code)), qr_val_text(qr_str_of(message))),
                      &changes, err));
    if (changes == 0) {
        return qr_fail(err, QR_CODE_LOST, "the job is no longer this worker's");
    }
    return job->has_serial_key ? promote_behind(tx, job->id, now_ms, err) : QR_OK;
}

qr_rc qr_jobs_release(struct qr_tx *tx, qr_uuid id, int64_t fence, const struct qr_job_release *release, qr_err *err)
{
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "UPDATE job SET state = ?3, fence = fence + 1, run_at = ?4, deadline_at = 0, code = ?5, "
                      "message = ?6, attempts = attempts + ?7, crashes = crashes + ?8, "
                      "suspect = CASE WHEN ?8 <> 0 THEN 1 WHEN ?9 <> 0 THEN 0 ELSE suspect END "
                      "WHERE id = ?1 AND state = 4 AND fence = ?2",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(fence),
                              qr_val_i64(release->delay_ms > 0 ? QR_JOB_SCHEDULED : QR_JOB_QUEUED),
                              qr_val_i64(now_ms + release->delay_ms), qr_val_text(qr_str_of(release->code)),
                              qr_val_text(qr_str_of(release->message)), qr_val_i64(release->counts_attempt),
                              qr_val_i64(release->counts_crash), qr_val_i64(release->clears_suspicion)),
                      &changes, err));
    if (changes == 0) {
        return qr_fail(err, QR_CODE_LOST, "the job is no longer this worker's");
    }
    QR_TRY(qr_tx_exec(
        tx,
        "INSERT INTO job_attempt (job_id, fence, worker_id, claimed_at, ended_at, outcome, code, message) "
        "SELECT id, ?2, worker_id, claimed_at, ?3, ?4, ?5, ?6 FROM job WHERE id = ?1",
        QR_VALS(qr_val_uuid(&id), qr_val_i64(fence), qr_val_i64(now_ms), qr_val_text(qr_str_of(release->outcome)),
                qr_val_text(qr_str_of(release->code)), qr_val_text(qr_str_of(release->message))),
        NULL, err));
    return qr_tx_notify(tx, QR_JOBS_CHANNEL, err);
}

qr_rc qr_jobs_set_progress(struct qr_tx *tx, qr_uuid id, int64_t fence, int64_t done, int64_t total, qr_err *err)
{
    int64_t changes;
    QR_TRY(qr_tx_exec(
        tx, "UPDATE job SET progress_done = ?3, progress_total = ?4 WHERE id = ?1 AND state = 4 AND fence = ?2",
        QR_VALS(qr_val_uuid(&id), qr_val_i64(fence), qr_val_i64(done), qr_val_i64(total)), &changes, err));
    return changes ? QR_OK : qr_fail(err, QR_CODE_LOST, "the job is no longer this worker's");
}

qr_rc qr_jobs_cancel(struct qr_tx *tx, qr_uuid id, const char *code, const char *message, enum qr_job_state *ret_state,
                     qr_err *err)
{
    int64_t now_ms, state = 0;
    unsigned char key_bytes[QR_KEY_HASH_BYTES];
    bool found, has_key = false;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows, "SELECT state, serial_key FROM job WHERE id = ?1 /*pg FOR UPDATE */",
                           QR_VALS(qr_val_uuid(&id)), err));
        found = qr_rows_next(&rows);
        if (found) {
            state = qr_rows_i64(&rows, 0);
            has_key = qr_rows_key(&rows, 1, key_bytes);
        }
        QR_TRY(qr_rows_end(&rows, err));
    }
    if (!found) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such job");
    }
    *ret_state = (enum qr_job_state)state;
    if (!qr_job_state_is_open(*ret_state)) {
        return QR_OK;
    }
    QR_TRY(qr_tx_exec(
        tx, "UPDATE job SET state = 8, fence = fence + 1, finished_at = ?2, code = ?3, message = ?4 WHERE id = ?1",
        QR_VALS(qr_val_uuid(&id), qr_val_i64(now_ms), qr_val_text(qr_str_of(code)), qr_val_text(qr_str_of(message))),
        NULL, err));
    if (*ret_state == QR_JOB_RUNNING) {
        QR_TRY(qr_tx_notify(tx, QR_JOBS_CANCEL_CHANNEL, err));
    }
    if (has_key && *ret_state != QR_JOB_BLOCKED) {
        return promote_next(tx, qr_val_blob(key_bytes, sizeof key_bytes), now_ms, err);
    }
    return QR_OK;
}
