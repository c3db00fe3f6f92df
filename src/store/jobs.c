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
static qr_rc find_open(struct qr_tx *tx, const struct qr_job_key *key, bool *ret_found, qr_uuid *ret_id, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id FROM job WHERE idempotency_key = ?1 AND idempotency_key IS NOT NULL "
                       "AND state IN " QR_JOB_OPEN_SQL,
                       QR_VALS(qr_val_key(key)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        *ret_id = qr_rows_uuid(&rows, 0);
    }
    return qr_rows_end(&rows, err);
}

/* Holds the serial key's active job, so that it cannot end before our transaction does: its end must see and promote the
 * blocked job that we are about to add (J3). */
static qr_rc lock_active(struct qr_tx *tx, const struct qr_job_key *key, bool *ret_found, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx,
                         "SELECT fence FROM job WHERE serial_key = ?1 AND serial_key IS NOT NULL "
                         "AND state IN " QR_JOB_ACTIVE_SQL " /*pg FOR UPDATE */",
                         QR_VALS(qr_val_key(key)), ret_found, &ignored, err);
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
                              qr_val_i64(spec->run_at_ms ? spec->run_at_ms : now_ms), qr_val_key(&job->idempotency_key),
                              qr_val_key(&job->serial_key), qr_val_text(spec->args.len ? spec->args : QR_STR("{}")),
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
    if (job->idempotency_key.is_set) {
        QR_TRY(find_open(tx, &job->idempotency_key, ret_existed, ret_id, err));
        if (*ret_existed) {
            *ret_done = true;
            return QR_OK;
        }
    }
    bool is_held = false;
    if (job->serial_key.is_set) {
        QR_TRY(lock_active(tx, &job->serial_key, &is_held, err));
    }
    *ret_id = job->id;
    return is_held ? insert(tx, job, now_ms, QR_JOB_BLOCKED, ret_done, err) : QR_OK;
}

/* What would break a claim later is refused here: then only its writer fails, and not each runner that meets it. */
static qr_rc check_spec(const struct qr_job_spec *spec, qr_err *err)
{
    const qr_str type = qr_str_of(spec->type);
    if (!qr_queue_is_known(spec->queue)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "there is no queue %d", (int)spec->queue);
    }
    if (type.len == 0 || type.len >= QR_JOB_TYPE_MAX || !qr_utf8_valid(type)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the type of a job is text of 1 to %d bytes", QR_JOB_TYPE_MAX - 1);
    }
    if (spec->args.len > QR_JOB_ARGS_MAX) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "the args of a job have at most %d bytes, not %zu",
                       QR_JOB_ARGS_MAX, spec->args.len);
    }
    if (!qr_utf8_valid(spec->args) || (spec->args.len && memchr(spec->args.ptr, '\0', spec->args.len))) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the args of a job are UTF-8 without a zero byte");
    }
    if (spec->priority < -QR_JOB_PRIORITY_MAX || spec->priority > QR_JOB_PRIORITY_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the priority of a job is from -%d to %d, not %d",
                       QR_JOB_PRIORITY_MAX, QR_JOB_PRIORITY_MAX, spec->priority);
    }
    if (spec->time_limit_ms < 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the time limit of a job is not negative");
    }
    return QR_OK;
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
    struct qr_new_job job = {.spec = *spec,
                             .id = new_id,
                             .idempotency_key = qr_job_key_of(spec->idempotency_key),
                             .serial_key = qr_job_key_of(spec->serial_key)};
    bool existed;
    int64_t now_ms;
    QR_TRY(check_spec(spec, err));
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    job.spec.run_at_ms = QR_MIN(spec->run_at_ms, now_ms + QR_JOB_RUN_AT_MS_MAX);
    job.spec.time_limit_ms = QR_MIN(spec->time_limit_ms, (int64_t)QR_JOB_TIME_LIMIT_MS_MAX);
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

static qr_rc lost(qr_err *err)
{
    return qr_fail(err, QR_CODE_LOST, "the job is no longer this worker's");
}

qr_rc qr_jobs_require_fence(struct qr_tx *tx, qr_uuid id, int64_t fence, qr_err *err)
{
    bool found;
    int64_t ignored;
    QR_TRY(qr_tx_get_i64(tx, "SELECT fence FROM job WHERE id = ?1 AND state = 4 AND fence = ?2 /*pg FOR UPDATE */",
                         QR_VALS(qr_val_uuid(&id), qr_val_i64(fence)), &found, &ignored, err));
    return found ? QR_OK : lost(err);
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
                    "UPDATE job SET state = 4, fence = fence + 1, worker_id = ?4, claimed_at = ?5 "
                    "WHERE id IN (SELECT id FROM picked) RETURNING " QR_JOB_COLUMNS,
                    QR_VALS(qr_val_i64(claim->queue), qr_val_uuid(&base_id), qr_val_i64((int64_t)want),
                            qr_val_uuid(&claim->worker_id), qr_val_i64(now_ms), qr_val_i64(claim->suspects)),
                    err));
    const size_t before = claim->count;
    while (qr_rows_next(&rows)) {
        assert(claim->count - before < want);
        QR_TRY(qr_rows_job(&rows, claim->arena, &claim->jobs[claim->count], err));
        claim->args_bytes += strlen(claim->jobs[claim->count++].args);
    }
    QR_TRY(qr_rows_end(&rows, err));
    qsort(claim->jobs + before, claim->count - before, sizeof claim->jobs[0], compare_jobs);
    return QR_OK;
}

/* The next base on the ring that has queued jobs: the first behind the last, else the first of all. */
static qr_rc next_base(struct qr_tx *tx, const struct qr_job_claim *claim, bool *ret_found, qr_uuid *ret_base,
                       qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT base_id FROM (SELECT base_id FROM job WHERE state = 3 AND queue = ?1 AND suspect = ?3 "
                       "AND base_id > ?2 ORDER BY base_id LIMIT 1) AS behind UNION ALL "
                       "SELECT base_id FROM (SELECT base_id FROM job WHERE state = 3 AND queue = ?1 AND suspect = ?3 "
                       "AND base_id <= ?2 ORDER BY base_id LIMIT 1) AS ahead",
                       QR_VALS(qr_val_i64(claim->queue), qr_val_uuid(claim->ring), qr_val_i64(claim->suspects)), err));
    *ret_found = false;
    while (qr_rows_next(&rows)) {
        const qr_uuid base_id = qr_rows_uuid(&rows, 0);
        const bool is_behind = memcmp(base_id.bytes, claim->ring->bytes, QR_UUID_BYTES) > 0;
        if (is_behind || !*ret_found) {
            *ret_base = base_id;
            *ret_found = true;
        }
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_jobs_offered(struct qr_tx *tx, struct qr_queue_offer ret_offers[static QR_QUEUE_END], qr_err *err)
{
    for (enum qr_queue queue = 0; queue < QR_QUEUE_END; queue++) {
        ret_offers[queue] = (struct qr_queue_offer){.is_paused = true};
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT queue, (SELECT suspect FROM job WHERE state = 3 AND job.queue = line.queue "
                       "ORDER BY suspect DESC LIMIT 1) FROM (SELECT 1 AS queue UNION ALL SELECT 2 UNION ALL SELECT 3 "
                       "UNION ALL SELECT 4 UNION ALL SELECT 5) AS line "
                       "WHERE NOT EXISTS (SELECT 1 FROM queue_pause WHERE queue_pause.queue = line.queue)",
                       QR_NO_VALS, err));
    static_assert(QR_QUEUE_END == 6, "each queue is named in the statement");
    while (qr_rows_next(&rows)) {
        ret_offers[qr_rows_i64(&rows, 0)] =
            (struct qr_queue_offer){.any = !qr_rows_is_null(&rows, 1), .suspects = qr_rows_i64(&rows, 1) == 1};
    }
    return qr_rows_end(&rows, err);
}

/* One base's turn: a quarter of the batch, unless it is the only one. *ret_more: there may be more to claim. */
static qr_rc claim_turn(struct qr_tx *tx, struct qr_job_claim *claim, int *passes, bool *ret_more, qr_err *err)
{
    enum { PASSES_MAX = 16, AT_ONCE_MAX = QR_JOB_BYTES_MAX / QR_JOB_ARGS_MAX };
    qr_uuid base_id;
    QR_TRY(next_base(tx, claim, ret_more, &base_id, err));
    if (!*ret_more) {
        return QR_OK;
    }
    const bool is_alone = qr_uuid_equal(base_id, *claim->ring);
    const size_t before = claim->count, left = claim->limit - before;
    const size_t share = QR_MAX(claim->limit / 4, (size_t)1);
    const size_t want = is_alone ? left : QR_MIN(share, left);
    QR_TRY(claim_of_base(tx, claim, base_id, QR_MIN(want, (size_t)AT_ONCE_MAX), err));
    *claim->ring = base_id;
    /* another worker is at the rows of this base: the next one's turn */
    *passes = claim->count > before ? 0 : *passes + 1;
    *ret_more = *passes == 0 || (!is_alone && *passes < PASSES_MAX);
    return QR_OK;
}

qr_rc qr_jobs_claim(struct qr_tx *tx, struct qr_job_claim *claim, qr_err *err)
{
    claim->count = claim->args_bytes = 0;
    int passes = 0;
    bool more = true;
    while (more && claim->count < claim->limit && claim->args_bytes < QR_JOB_BYTES_MAX) {
        QR_TRY(claim_turn(tx, claim, &passes, &more, err));
    }
    return QR_OK;
}

static qr_rc find_next_due(struct qr_tx *tx, int64_t *ret_next_ms, qr_err *err)
{
    *ret_next_ms = 0;
    return qr_tx_get_i64(tx, "SELECT run_at FROM job WHERE state = 2 ORDER BY run_at LIMIT 1", QR_NO_VALS, NULL,
                         ret_next_ms, err);
}

qr_rc qr_jobs_promote_due(struct qr_tx *tx, int64_t *ret_count, int64_t *ret_next_ms, qr_err *err)
{
    int64_t now_ms;
    *ret_count = 0;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(find_next_due(tx, ret_next_ms, err));
    if (*ret_next_ms == 0 || *ret_next_ms > now_ms) {
        return QR_OK;
    }
    QR_TRY(qr_tx_exec(tx,
                      "UPDATE job SET state = 3 WHERE id IN (SELECT id FROM job WHERE state = 2 AND run_at <= ?1 "
                      "ORDER BY run_at LIMIT ?2 /*pg FOR UPDATE SKIP LOCKED */)",
                      QR_VALS(qr_val_i64(now_ms), qr_val_i64(QR_JOB_BATCH_MAX)), ret_count, err));
    return find_next_due(tx, ret_next_ms, err);
}

/* ---- ending ---- */

/* J3. On PostgreSQL the one we pick may be cancelled while we wait for its row: then look again. */
static qr_rc promote_next(struct qr_tx *tx, const struct qr_job_key *serial_key, int64_t now_ms, qr_err *err)
{
    for (;;) {
        bool found;
        int64_t ignored, changes;
        QR_TRY(qr_tx_get_i64(tx, "SELECT priority FROM job WHERE serial_key = ?1 AND state = 1 LIMIT 1",
                             QR_VALS(qr_val_key(serial_key)), &found, &ignored, err));
        if (!found) {
            return QR_OK;
        }
        QR_TRY(
            qr_tx_exec(tx,
                       "UPDATE job SET state = CASE WHEN run_at <= ?2 THEN 3 ELSE 2 END WHERE id = (SELECT id FROM job "
                       "WHERE serial_key = ?1 AND state = 1 ORDER BY priority, id LIMIT 1 /*pg FOR UPDATE */)",
                       QR_VALS(qr_val_key(serial_key), qr_val_i64(now_ms)), &changes, err));
        if (changes > 0) {
            return qr_tx_notify(tx, QR_JOBS_CHANNEL, err);
        }
    }
}

qr_rc qr_jobs_finish(struct qr_tx *tx, const struct qr_job *job, const struct qr_job_end *end, qr_err *err)
{
    assert(qr_job_state_may_become(QR_JOB_RUNNING, end->state) && !qr_job_state_is_open(end->state));
    const bool is_failure = end->state == QR_JOB_FAILED && !end->is_crash;
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "UPDATE job SET state = ?3, finished_at = ?4, code = ?5, message = ?6, attempts = attempts + ?7 "
                      "WHERE id = ?1 AND state = 4 AND fence = ?2",
                      QR_VALS(qr_val_uuid(&job->id), qr_val_i64(job->fence), qr_val_i64(end->state), qr_val_i64(now_ms),
                              qr_val_text(qr_str_of(end->code)), qr_val_text(qr_str_of(end->message)),
                              qr_val_i64(is_failure)),
                      &changes, err));
    if (changes == 0) {
        return lost(err);
    }
    return job->serial_key.is_set ? promote_next(tx, &job->serial_key, now_ms, err) : QR_OK;
}

enum { COMPLETED_TOGETHER = 16 };

/* Pairs that are not needed name no job: no id is empty. */
static qr_rc complete_some(struct qr_tx *tx, const struct qr_job *const *jobs, size_t count, int64_t now_ms,
                           bool *ret_is_lost, qr_err *err)
{
#define PAIR(id, fence) "(?" #id ", ?" #fence "), "
    struct qr_val vals[1 + 2 * COMPLETED_TOGETHER];
    vals[0] = qr_val_i64(now_ms);
    for (size_t i = 0; i < COMPLETED_TOGETHER; i++) {
        vals[1 + 2 * i] = i < count ? qr_val_uuid(&jobs[i]->id) : qr_val_blob("", 0);
        vals[2 + 2 * i] = qr_val_i64(i < count ? jobs[i]->fence : 0);
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(
        tx, &rows,
        "UPDATE job SET state = 5, finished_at = ?1, code = '', message = '' "
        "FROM (VALUES " PAIR(2, 3) PAIR(4, 5) PAIR(6, 7) PAIR(8, 9) PAIR(10, 11) PAIR(12, 13) PAIR(14, 15) PAIR(16, 17)
            PAIR(18, 19) PAIR(20, 21) PAIR(22, 23) PAIR(24, 25) PAIR(26, 27) PAIR(28, 29)
                PAIR(30, 31) "(?32, ?33)) "
                             "AS held "
                             "WHERE job.id = held.column1 AND +job.state = 4 AND job.fence = held.column2 RETURNING id",
        vals, QR_COUNT(vals), err));
#undef PAIR
    for (size_t i = 0; i < count; i++) {
        ret_is_lost[i] = true;
    }
    while (qr_rows_next(&rows)) {
        const qr_uuid id = qr_rows_uuid(&rows, 0);
        for (size_t i = 0; i < count; i++) {
            ret_is_lost[i] = ret_is_lost[i] && !qr_uuid_equal(jobs[i]->id, id);
        }
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_jobs_complete(struct qr_tx *tx, const struct qr_job *const *jobs, size_t count, bool *ret_is_lost, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    for (size_t at = 0; at < count; at += COMPLETED_TOGETHER) {
        const size_t some = QR_MIN(count - at, (size_t)COMPLETED_TOGETHER);
        QR_TRY(complete_some(tx, jobs + at, some, now_ms, ret_is_lost + at, err));
    }
    return QR_OK;
}

/* A claim and a release raise the fence by one each, so that the fences of the attempts to keep are known. */
static qr_rc write_history(struct qr_tx *tx, qr_uuid id, int64_t fence, const struct qr_job_release *release,
                           int64_t now_ms, qr_err *err)
{
    QR_TRY(qr_tx_exec(
        tx,
        "INSERT INTO job_attempt (job_id, fence, worker_id, claimed_at, ended_at, outcome, code, message) "
        "SELECT id, ?2, worker_id, claimed_at, ?3, ?4, ?5, ?6 FROM job WHERE id = ?1",
        QR_VALS(qr_val_uuid(&id), qr_val_i64(fence), qr_val_i64(now_ms), qr_val_text(qr_str_of(release->outcome)),
                qr_val_text(qr_str_of(release->code)), qr_val_text(qr_str_of(release->message))),
        NULL, err));
    const int64_t too_old = fence - 2 * QR_JOB_HISTORY_MAX;
    return too_old > 0 ? qr_tx_exec(tx, "DELETE FROM job_attempt WHERE job_id = ?1 AND fence <= ?2",
                                    QR_VALS(qr_val_uuid(&id), qr_val_i64(too_old)), NULL, err)
                       : QR_OK;
}

qr_rc qr_jobs_release(struct qr_tx *tx, qr_uuid id, int64_t fence, const struct qr_job_release *release, qr_err *err)
{
    const int64_t delay_ms = QR_MIN(QR_MAX(release->delay_ms, (int64_t)0), (int64_t)QR_JOB_DELAY_MS_MAX);
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "UPDATE job SET state = ?3, fence = fence + 1, run_at = ?4, code = ?5, "
                      "message = ?6, attempts = attempts + ?7, crashes = crashes + ?8, "
                      "suspect = CASE WHEN ?8 <> 0 THEN 1 WHEN ?9 <> 0 THEN 0 ELSE suspect END "
                      "WHERE id = ?1 AND state = 4 AND fence = ?2",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(fence),
                              qr_val_i64(delay_ms > 0 ? QR_JOB_SCHEDULED : QR_JOB_QUEUED),
                              qr_val_i64(now_ms + delay_ms), qr_val_text(qr_str_of(release->code)),
                              qr_val_text(qr_str_of(release->message)), qr_val_i64(release->counts_attempt),
                              qr_val_i64(release->counts_crash), qr_val_i64(release->clears_suspicion)),
                      &changes, err));
    if (changes == 0) {
        return lost(err);
    }
    QR_TRY(write_history(tx, id, fence, release, now_ms, err));
    /* whoever puts it off looks for the next one that is due itself */
    return delay_ms == 0 ? qr_tx_notify(tx, QR_JOBS_CHANNEL, err) : QR_OK;
}

qr_rc qr_jobs_set_progress(struct qr_tx *tx, qr_uuid id, int64_t fence, int64_t done, int64_t total, qr_err *err)
{
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(
        tx,
        "UPDATE job SET progress_done = ?3, progress_total = ?4, progress_at = ?5 "
        "WHERE id = ?1 AND state = 4 AND fence = ?2",
        QR_VALS(qr_val_uuid(&id), qr_val_i64(fence), qr_val_i64(done), qr_val_i64(total), qr_val_i64(now_ms)), &changes,
        err));
    return changes ? QR_OK : lost(err);
}

qr_rc qr_jobs_cancel(struct qr_tx *tx, qr_uuid id, const char *code, const char *message, enum qr_job_state *ret_state,
                     qr_err *err)
{
    int64_t now_ms, state = 0;
    struct qr_job_key serial_key = {0};
    bool found;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows, "SELECT state, serial_key FROM job WHERE id = ?1 /*pg FOR UPDATE */",
                           QR_VALS(qr_val_uuid(&id)), err));
        found = qr_rows_next(&rows);
        if (found) {
            state = qr_rows_i64(&rows, 0);
            serial_key = qr_rows_key(&rows, 1);
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
    return serial_key.is_set && *ret_state != QR_JOB_BLOCKED ? promote_next(tx, &serial_key, now_ms, err) : QR_OK;
}
