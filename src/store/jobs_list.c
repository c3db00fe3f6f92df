/* Jobs as people look at them, the pause of queues, and the end of old rows. */
#include "base/buf.h"
#include "store/jobs_row.h"

#include <assert.h>
#include <stdio.h>

/* ---- listing ---- */

/* Adds " AND column = ?N" and its value. */
struct conditions {
    struct qr_buf sql;
    struct qr_val vals[8];
    size_t count;
};

static void add_condition(struct conditions *conditions, const char *text, struct qr_val val)
{
    assert(conditions->count < QR_COUNT(conditions->vals));
    conditions->vals[conditions->count++] = val;
    qr_buf_printf(&conditions->sql, " AND %s ?%zu", text, conditions->count);
}

static void add_filter(struct conditions *conditions, const struct qr_job_filter *filter)
{
    if (filter->state) {
        /* as a number in the text: only then do the partial indexes fit */
        qr_buf_printf(&conditions->sql, " AND state = %d", (int)filter->state);
    }
    if (filter->queue) {
        /* the plus keeps an index of queues from being preferred to that of items, which has few rows for each */
        add_condition(conditions, qr_uuid_is_zero(filter->item_id) ? "queue =" : "+queue =", qr_val_i64(filter->queue));
    }
    if (filter->type) {
        add_condition(conditions, "type =", qr_val_text(qr_str_of(filter->type)));
    }
    if (!qr_uuid_is_zero(filter->base_id)) {
        add_condition(conditions, "base_id =", qr_val_uuid(&filter->base_id));
    }
    if (!qr_uuid_is_zero(filter->item_id)) {
        add_condition(conditions, "item_id =", qr_val_uuid(&filter->item_id));
    }
    if (!qr_uuid_is_zero(filter->after)) {
        add_condition(conditions, "id <", qr_val_uuid(&filter->after));
    }
}

static qr_rc load_list(struct qr_tx *tx, const struct conditions *conditions, int limit, struct qr_arena *arena,
                       struct qr_job **ret_jobs, size_t *ret_count, qr_err *err)
{
    struct qr_job *jobs = qr_arena_array(arena, (size_t)limit, sizeof jobs[0]);
    if (!jobs) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a list of jobs");
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, conditions->sql.data, conditions->vals, conditions->count, err));
    size_t count = 0;
    while (qr_rows_next(&rows)) {
        QR_TRY(qr_rows_job(&rows, arena, &jobs[count++], err));
    }
    *ret_jobs = jobs;
    *ret_count = count;
    return qr_rows_end(&rows, err);
}

qr_rc qr_jobs_list(struct qr_tx *tx, const struct qr_job_filter *filter, struct qr_arena *arena,
                   struct qr_job **ret_jobs, size_t *ret_count, qr_err *err)
{
    assert(filter->limit > 0 && filter->limit <= QR_JOB_BATCH_MAX);
    struct conditions conditions = {0};
    qr_buf_init(&conditions.sql, 0);
    qr_buf_add_text(&conditions.sql, "SELECT " QR_JOB_COLUMNS_WITH("''") " FROM job WHERE 1 = 1");
    add_filter(&conditions, filter);
    qr_buf_printf(&conditions.sql, " ORDER BY id DESC LIMIT %d", filter->limit);
    qr_rc rc = qr_buf_check(&conditions.sql, err);
    if (rc == QR_OK) {
        rc = load_list(tx, &conditions, filter->limit, arena, ret_jobs, ret_count, err);
    }
    qr_buf_done(&conditions.sql);
    return rc;
}

qr_rc qr_jobs_count(struct qr_tx *tx, enum qr_queue queue, enum qr_job_state state, int64_t limit, int64_t *ret_count,
                    qr_err *err)
{
    char sql[160];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM (SELECT 1 FROM job WHERE state = %d AND queue = ?1 LIMIT ?2) AS counted",
             (int)state);
    return qr_tx_get_i64(tx, sql, QR_VALS(qr_val_i64(queue), qr_val_i64(limit)), NULL, ret_count, err);
}

static qr_rc load_attempt(const struct qr_rows *rows, struct qr_arena *arena, struct qr_job_attempt *ret_attempt,
                          qr_err *err)
{
    struct qr_job_attempt attempt = {
        .fence = qr_rows_i64(rows, 0),
        .claimed_ms = qr_rows_i64(rows, 1),
        .ended_ms = qr_rows_i64(rows, 2),
        .worker_id = qr_rows_uuid(rows, 3),
        .outcome = qr_arena_copy(arena, qr_rows_str(rows, 4)),
        .code = qr_arena_copy(arena, qr_rows_str(rows, 5)),
        .message = qr_arena_copy(arena, qr_rows_str(rows, 6)),
    };
    if (!attempt.outcome || !attempt.code || !attempt.message) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a job's history");
    }
    *ret_attempt = attempt;
    return QR_OK;
}

qr_rc qr_jobs_attempts(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, struct qr_job_attempt **ret_attempts,
                       size_t *ret_count, qr_err *err)
{
    struct qr_job_attempt *attempts = qr_arena_array(arena, QR_JOB_HISTORY_MAX, sizeof attempts[0]);
    if (!attempts) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a job's history");
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT fence, claimed_at, ended_at, worker_id, outcome, code, message FROM job_attempt "
                       "WHERE job_id = ?1 ORDER BY fence DESC LIMIT ?2",
                       QR_VALS(qr_val_uuid(&id), qr_val_i64(QR_JOB_HISTORY_MAX)), err));
    size_t count = 0;
    while (qr_rows_next(&rows)) {
        QR_TRY(load_attempt(&rows, arena, &attempts[count++], err));
    }
    *ret_attempts = attempts;
    *ret_count = count;
    return qr_rows_end(&rows, err);
}

qr_rc qr_jobs_prune(struct qr_tx *tx, int64_t before_ms, int64_t *ret_count, qr_err *err)
{
    return qr_tx_exec(tx,
                      "DELETE FROM job WHERE id IN (SELECT id FROM job WHERE finished_at > 0 AND finished_at < ?1 "
                      "ORDER BY finished_at LIMIT ?2)",
                      QR_VALS(qr_val_i64(before_ms), qr_val_i64(QR_JOB_PRUNE_MAX)), ret_count, err);
}

/* ---- pauses ---- */

qr_rc qr_queue_set_paused(struct qr_tx *tx, enum qr_queue queue, bool paused, qr_err *err)
{
    if (!paused) {
        QR_TRY(qr_tx_exec(tx, "DELETE FROM queue_pause WHERE queue = ?1", QR_VALS(qr_val_i64(queue)), NULL, err));
        return qr_tx_notify(tx, QR_JOBS_CHANNEL, err);
    }
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx, "INSERT INTO queue_pause (queue, since) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                      QR_VALS(qr_val_i64(queue), qr_val_i64(now_ms)), NULL, err));
    return qr_tx_notify(tx, QR_JOBS_CHANNEL, err); /* what is claimed and has not begun goes back */
}

qr_rc qr_queue_paused_since(struct qr_tx *tx, enum qr_queue queue, int64_t *ret_since_ms, qr_err *err)
{
    *ret_since_ms = 0;
    return qr_tx_get_i64(tx, "SELECT since FROM queue_pause WHERE queue = ?1", QR_VALS(qr_val_i64(queue)), NULL,
                         ret_since_ms, err);
}
