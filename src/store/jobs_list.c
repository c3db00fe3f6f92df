/* Jobs as people look at them, the pause of queues, and the end of old rows. */
#include "base/buf.h"
#include "store/jobs_row.h"

#include <assert.h>
#include <stdio.h>

/* ---- listing ----
 *
 * From the newest on, at a cost that does not grow with the table. What is asked for is found in one of three ways:
 * - the jobs of an item: they are few;
 * - all that is in a state, where that is little: what runs, mostly what waits;
 * - in the order of ids, by an index that holds just what is asked for where there is one (what failed; what is blocked or
 *   scheduled in a queue); else by looking at so many jobs and no further. An index for each other question would cost every
 *   job a write or two. */

enum { FEW_MAX = 2000, LOOKED_AT_MAX = 5000 };

/* A statement and its values. */
struct query {
    struct qr_buf sql;
    struct qr_val vals[8];
    size_t count;
};

static void query_done(struct query *query)
{
    qr_buf_done(&query->sql);
}

/* Adds " AND column = ?N" and its value. */
static void add_condition(struct query *query, const char *text, struct qr_val val)
{
    assert(query->count < QR_COUNT(query->vals));
    query->vals[query->count++] = val;
    qr_buf_printf(&query->sql, " AND %s ?%zu", text, query->count);
}

/* The states' numbers are in the text: only then do the partial indexes fit. The plus keeps an index away that has the rows in
 * another order, or more of them. */
static void add_state_and_queue(struct query *query, const struct qr_job_filter *filter, bool by_index)
{
    if (filter->state) {
        qr_buf_printf(&query->sql, " AND %sstate = %d", by_index ? "" : "+", (int)filter->state);
    }
    if (filter->queue) {
        add_condition(query, by_index ? "queue =" : "+queue =", qr_val_i64(filter->queue));
    }
}

static void add_rest(struct query *query, const struct qr_job_filter *filter)
{
    if (filter->type) {
        add_condition(query, "type =", qr_val_text(qr_str_of(filter->type)));
    }
    if (!qr_uuid_is_zero(filter->base_id)) {
        add_condition(query, "base_id =", qr_val_uuid(&filter->base_id));
    }
    if (!qr_uuid_is_zero(filter->item_id)) {
        add_condition(query, "item_id =", qr_val_uuid(&filter->item_id));
    }
    /* also where it says nothing: with it an index in the order of ids is taken, and not one that needs sorting */
    static const qr_uuid last = {.bytes = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    add_condition(query, "id <", qr_val_uuid(qr_uuid_is_zero(filter->after) ? &last : &filter->after));
}

/* An index has them in the order of ids: job_failed, job_listed. */
static bool is_in_order(const struct qr_job_filter *filter)
{
    return filter->state == QR_JOB_FAILED ||
           (filter->queue && (filter->state == QR_JOB_BLOCKED || filter->state == QR_JOB_SCHEDULED));
}

/* " AND state = N" for all in an open state, with what makes its own index be taken and not job_listed, which has others too:
 * what is blocked has a serial key, what is scheduled a time. */
static const char *of_open_state(enum qr_job_state state)
{
    switch (state) {
    case QR_JOB_BLOCKED:
        return " AND state = 1 AND serial_key IS NOT NULL";
    case QR_JOB_SCHEDULED:
        return " AND state = 2 AND run_at >= 0";
    case QR_JOB_QUEUED:
        return " AND state = 3";
    default:
        return " AND state = 4";
    }
}

static void add_open_state(struct query *query, const struct qr_job_filter *filter)
{
    qr_buf_add_text(&query->sql, of_open_state(filter->state));
    if (filter->queue) {
        add_condition(query, "queue =", qr_val_i64(filter->queue));
    }
}

/* Whether an index has them all together, and there are not many. */
static qr_rc are_few(struct qr_tx *tx, const struct qr_job_filter *filter, bool *ret_are, qr_err *err)
{
    QR_CLEANUP(query_done) struct query query = {0};
    int64_t count;
    *ret_are = false;
    if (!filter->state || !qr_job_state_is_open(filter->state) || is_in_order(filter)) {
        return QR_OK;
    }
    qr_buf_add_text(&query.sql, "SELECT count(*) FROM (SELECT 1 FROM job WHERE 1 = 1");
    add_open_state(&query, filter);
    qr_buf_printf(&query.sql, " LIMIT %d) AS counted", FEW_MAX + 1);
    QR_TRY(qr_buf_check(&query.sql, err));
    QR_TRY(qr_tx_get_i64(tx, query.sql.data, query.vals, query.count, NULL, &count, err));
    *ret_are = count <= FEW_MAX;
    return QR_OK;
}

/* The last job that a walk from `after` on looks at; all zero = it comes to the end. */
static qr_rc find_end_of_walk(struct qr_tx *tx, const struct qr_job_filter *filter, qr_uuid *ret_id, qr_err *err)
{
    const bool by_index = is_in_order(filter);
    QR_CLEANUP(query_done) struct query query = {0};
    QR_ROWS(rows);
    *ret_id = (qr_uuid){0};
    qr_buf_add_text(&query.sql, "SELECT id FROM job WHERE 1 = 1");
    if (by_index) {
        add_state_and_queue(&query, filter, true);
    }
    const struct qr_job_filter only_after = {.after = filter->after};
    add_rest(&query, &only_after);
    qr_buf_printf(&query.sql, " ORDER BY id DESC LIMIT 1 OFFSET %d", LOOKED_AT_MAX - 1);
    QR_TRY(qr_buf_check(&query.sql, err));
    QR_TRY(qr_tx_query(tx, &rows, query.sql.data, query.vals, query.count, err));
    if (qr_rows_next(&rows)) {
        *ret_id = qr_rows_uuid(&rows, 0);
    }
    return qr_rows_end(&rows, err);
}

static void add_few(struct query *query, const struct qr_job_filter *filter)
{
    qr_buf_add_text(&query->sql, " AND id IN (SELECT id FROM job WHERE 1 = 1");
    add_open_state(query, filter);
    qr_buf_printf(&query->sql, " LIMIT %d)", FEW_MAX);
    add_rest(query, filter);
}

static qr_rc add_walk(struct qr_tx *tx, struct query *query, const struct qr_job_filter *filter, qr_uuid *looked_to,
                      qr_err *err)
{
    const bool by_index = is_in_order(filter);
    const bool passes_over = filter->type || !qr_uuid_is_zero(filter->base_id) ||
                             (!by_index && (filter->state || filter->queue)); /* jobs that are not wanted */
    add_state_and_queue(query, filter, by_index);
    add_rest(query, filter);
    if (passes_over) {
        QR_TRY(find_end_of_walk(tx, filter, looked_to, err));
        add_condition(query, "id >=", qr_val_uuid(looked_to));
    }
    return QR_OK;
}

static qr_rc make_query(struct qr_tx *tx, struct query *query, const struct qr_job_filter *filter, qr_uuid *looked_to,
                        qr_err *err)
{
    bool few;
    qr_buf_add_text(&query->sql, "SELECT " QR_JOB_COLUMNS_WITH("''") " FROM job WHERE 1 = 1");
    if (!qr_uuid_is_zero(filter->item_id)) {
        add_state_and_queue(query, filter, false);
        add_rest(query, filter);
    } else {
        QR_TRY(are_few(tx, filter, &few, err));
        if (few) {
            add_few(query, filter);
        } else {
            QR_TRY(add_walk(tx, query, filter, looked_to, err));
        }
    }
    qr_buf_printf(&query->sql, " ORDER BY id DESC LIMIT %d", filter->limit);
    return qr_buf_check(&query->sql, err);
}

static qr_rc load_list(struct qr_tx *tx, const struct query *query, int limit, struct qr_arena *arena,
                       struct qr_job **ret_jobs, size_t *ret_count, qr_err *err)
{
    struct qr_job *jobs = qr_arena_array(arena, (size_t)limit, sizeof jobs[0]);
    if (!jobs) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a list of jobs");
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, query->sql.data, query->vals, query->count, err));
    size_t count = 0;
    while (qr_rows_next(&rows)) {
        QR_TRY(qr_rows_job(&rows, arena, &jobs[count++], err));
    }
    *ret_jobs = jobs;
    *ret_count = count;
    return qr_rows_end(&rows, err);
}

qr_rc qr_jobs_list(struct qr_tx *tx, const struct qr_job_filter *filter, struct qr_arena *arena,
                   struct qr_job **ret_jobs, size_t *ret_count, qr_uuid *ret_looked_to, qr_err *err)
{
    assert(filter->limit > 0 && filter->limit <= QR_JOB_BATCH_MAX);
    QR_CLEANUP(query_done) struct query query = {0};
    qr_uuid looked_to = {0};
    QR_TRY(make_query(tx, &query, filter, &looked_to, err));
    QR_TRY(load_list(tx, &query, filter->limit, arena, ret_jobs, ret_count, err));
    *ret_looked_to = *ret_count < (size_t)filter->limit ? looked_to : (qr_uuid){0};
    return QR_OK;
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
