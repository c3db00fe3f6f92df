/* Runs. */
#include "store/runs.h"

#include "store/ids.h"

#include <assert.h>

const char *qr_run_status_name(enum qr_run_status status)
{
    static const char *const names[] = {"unknown", "running", "completed", "completed_with_errors", "cancelled"};
    return status >= QR_RUN_RUNNING && status <= QR_RUN_CANCELLED ? names[status] : names[0];
}

const char *qr_run_stage_name(enum qr_run_stage stage)
{
    static const char *const names[] = {"process", "chunk", "assets", "index"};
    assert(stage >= 0 && stage < QR_RUN_STAGES);
    return names[stage];
}

qr_rc qr_run_add(struct qr_tx *tx, const struct qr_run *run, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(tx,
                      "INSERT INTO run (id, base_id, stages, status, level, level_gate, created_at) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                      QR_VALS(qr_val_uuid(&run->id), qr_val_uuid(&run->base_id), qr_val_i64(run->wanted),
                              qr_val_i64(run->status), qr_val_i64(run->level), qr_val_i64(run->gate_is_manual),
                              qr_val_i64(now_ms)),
                      NULL, err);
}

#define RUN_COLUMNS "id, base_id, stages, status, level, level_gate, active, failed, created_at, finished_at"

static struct qr_run read_run(const struct qr_rows *rows)
{
    return (struct qr_run){
        .id = qr_rows_uuid(rows, 0),
        .base_id = qr_rows_uuid(rows, 1),
        .wanted = qr_rows_i64(rows, 2),
        .status = (enum qr_run_status)qr_rows_i64(rows, 3),
        .level = qr_rows_i64(rows, 4),
        .gate_is_manual = qr_rows_i64(rows, 5) != 0,
        .active = qr_rows_i64(rows, 6),
        .failed = qr_rows_i64(rows, 7),
        .created_ms = qr_rows_i64(rows, 8),
        .finished_ms = qr_rows_i64(rows, 9),
    };
}

static qr_rc load_stages(struct qr_tx *tx, struct qr_run *run, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT stage, total, done, failed FROM run_stage WHERE run_id = ?1",
                       QR_VALS(qr_val_uuid(&run->id)), err));
    while (qr_rows_next(&rows)) {
        const int64_t stage = qr_rows_i64(&rows, 0);
        if (stage >= 0 && stage < QR_RUN_STAGES) {
            run->stages[stage].total = qr_rows_i64(&rows, 1);
            run->stages[stage].done = qr_rows_i64(&rows, 2);
            run->stages[stage].failed = qr_rows_i64(&rows, 3);
        }
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_run_find(struct qr_tx *tx, qr_uuid id, bool *ret_found, struct qr_run *ret_run, qr_err *err)
{
    {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows, "SELECT " RUN_COLUMNS " FROM run WHERE id = ?1", QR_VALS(qr_val_uuid(&id)), err));
        *ret_found = qr_rows_next(&rows);
        if (*ret_found) {
            *ret_run = read_run(&rows);
        }
        QR_TRY(qr_rows_end(&rows, err));
    }
    return *ret_found ? load_stages(tx, ret_run, err) : QR_OK;
}

qr_rc qr_runs_list(struct qr_tx *tx, qr_uuid base_id, qr_uuid before, int limit, struct qr_arena *arena,
                   struct qr_run **ret_runs, size_t *ret_count, qr_err *err)
{
    *ret_count = 0;
    *ret_runs = qr_arena_array(arena, (size_t)limit, sizeof(struct qr_run));
    if (!*ret_runs) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for runs");
    }
    if (qr_uuid_is_zero(before)) {
        memset(before.bytes, 0xff, sizeof before.bytes);
    }
    {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows,
                           "SELECT " RUN_COLUMNS " FROM run WHERE base_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
                           QR_VALS(qr_val_uuid(&base_id), qr_val_uuid(&before), qr_val_i64(limit)), err));
        while (qr_rows_next(&rows)) {
            (*ret_runs)[(*ret_count)++] = read_run(&rows);
        }
        QR_TRY(qr_rows_end(&rows, err));
    }
    for (size_t i = 0; i < *ret_count; i++) {
        QR_TRY(load_stages(tx, &(*ret_runs)[i], err));
    }
    return QR_OK;
}

qr_rc qr_run_add_counts(struct qr_tx *tx, qr_uuid id, int64_t active, int64_t failed, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE run SET active = active + ?2, failed = failed + ?3 WHERE id = ?1",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(active), qr_val_i64(failed)), NULL, err);
}

qr_rc qr_run_want(struct qr_tx *tx, qr_uuid id, int64_t wanted, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE run SET stages = stages | ?2 WHERE id = ?1",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(wanted)), NULL, err);
}

qr_rc qr_run_set(struct qr_tx *tx, const struct qr_run *run, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(tx, "UPDATE run SET level = ?2, status = ?3, finished_at = ?4 WHERE id = ?1",
                      QR_VALS(qr_val_uuid(&run->id), qr_val_i64(run->level), qr_val_i64(run->status),
                              qr_val_i64(run->status == QR_RUN_RUNNING ? 0 : now_ms)),
                      NULL, err);
}

qr_rc qr_run_count_stage(struct qr_tx *tx, qr_uuid id, enum qr_run_stage stage, int64_t total, int64_t done,
                         int64_t failed, qr_err *err)
{
    return qr_tx_exec(
        tx,
        "INSERT INTO run_stage (run_id, stage, total, done, failed) VALUES (?1, ?2, ?3, ?4, ?5) "
        "ON CONFLICT (run_id, stage) DO UPDATE SET total = run_stage.total + excluded.total, "
        "done = run_stage.done + excluded.done, failed = run_stage.failed + excluded.failed",
        QR_VALS(qr_val_uuid(&id), qr_val_i64(stage), qr_val_i64(total), qr_val_i64(done), qr_val_i64(failed)), NULL,
        err);
}

qr_rc qr_runs_open(struct qr_tx *tx, qr_uuid base_id, int limit, qr_uuid *ret_ids, size_t *ret_count, qr_err *err)
{
    *ret_count = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT id FROM run WHERE base_id = ?1 AND status = 1 ORDER BY id LIMIT ?2",
                       QR_VALS(qr_val_uuid(&base_id), qr_val_i64(limit)), err));
    while (qr_rows_next(&rows)) {
        ret_ids[(*ret_count)++] = qr_rows_uuid(&rows, 0);
    }
    return qr_rows_end(&rows, err);
}
