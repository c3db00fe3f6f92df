/* Statements of `check`. Each look-up beside the rows of a page is part of its statement, so that both are of one snapshot;
 * each is by an index, so that a page costs about the same however much there is. */
#include "store/check.h"

#include "store/ids.h"

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a check");
}

/* Bytes in the arena; *failed is set when there is no memory. */
static qr_str copy_bytes(const struct qr_rows *rows, int column, struct qr_arena *arena, bool *failed)
{
    const qr_str bytes = qr_rows_str(rows, column);
    const char *copy = qr_arena_copy(arena, bytes);
    *failed = *failed || !copy;
    return (qr_str){copy ? copy : "", copy ? bytes.len : 0};
}

/* ---- items ---- */

#define STAGE_TYPES "('prepare-root', 'process-document', 'check-file-processing', 'chunk-document', 'index-chunks')"

#define ITEM_COLUMNS                                                                                                   \
    "id, base_id, parent_id, path, depth, type, status, is_container, generation, live_generation, text_generation, "  \
    "chunk_generation, expanded_generation, n_completed, n_failed, n_active, n_idle, expand_code, error_code, "        \
    "error_message, chunk_count, "                                                                                     \
    "CASE WHEN status IN " QR_ITEM_ACTIVE_SQL " THEN (SELECT count(*) FROM job WHERE job.item_id = item.id AND "       \
    "job.item_id IS NOT NULL AND job.state IN " QR_JOB_OPEN_SQL " AND job.generation = item.generation AND "           \
    "job.type IN " STAGE_TYPES ") ELSE 0 END, "                                                                        \
    "CASE WHEN is_container = 0 AND text_generation > 0 AND text_generation IN (generation, live_generation) THEN "    \
    "(SELECT count(*) FROM artifact WHERE artifact.item_id = item.id AND artifact.kind = 2 AND "                       \
    "artifact.generation = item.text_generation) ELSE 1 END, "                                                         \
    "CASE WHEN status = 8 THEN (SELECT count(*) FROM job WHERE job.id = item.cleanup_job_id AND job.state "            \
    "IN " QR_JOB_OPEN_SQL ") ELSE 1 END, kept_generation"

static qr_rc read_item(const struct qr_rows *rows, struct qr_arena *arena, struct qr_check_item *ret_item, qr_err *err)
{
    bool failed = false;
    *ret_item = (struct qr_check_item){
        .id = qr_rows_uuid(rows, 0),
        .base_id = qr_rows_uuid(rows, 1),
        .parent_id = qr_rows_uuid(rows, 2),
        .path = copy_bytes(rows, 3, arena, &failed),
        .depth = qr_rows_i64(rows, 4),
        .type = qr_rows_i64(rows, 5),
        .status = qr_rows_i64(rows, 6),
        .is_container = qr_rows_i64(rows, 7) != 0,
        .generation = qr_rows_i64(rows, 8),
        .live_generation = qr_rows_i64(rows, 9),
        .text_generation = qr_rows_i64(rows, 10),
        .chunk_generation = qr_rows_i64(rows, 11),
        .expanded_generation = qr_rows_i64(rows, 12),
        .counts = {qr_rows_i64(rows, 13), qr_rows_i64(rows, 14), qr_rows_i64(rows, 15), qr_rows_i64(rows, 16)},
        .expansion_failed = qr_rows_str(rows, 17).len > 0,
        .error_code = copy_bytes(rows, 18, arena, &failed),
        .error_message = copy_bytes(rows, 19, arena, &failed),
        .chunk_count = qr_rows_i64(rows, 20),
        .stage_jobs = qr_rows_i64(rows, 21),
        .lacks_text = qr_rows_i64(rows, 22) == 0,
        .lacks_cleanup = qr_rows_i64(rows, 23) == 0,
        .kept_generation = qr_rows_i64(rows, 24),
    };
    return failed ? out_of_memory(err) : QR_OK;
}

qr_rc qr_check_items(struct qr_tx *tx, qr_uuid base_id, qr_str after, int limit, struct qr_arena *arena,
                     struct qr_check_items *ret_page, qr_err *err)
{
    struct qr_check_item *items = qr_arena_array(arena, (size_t)limit, sizeof items[0]);
    size_t count = 0;
    if (!items) {
        return out_of_memory(err);
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(
        tx, &rows, "SELECT " ITEM_COLUMNS " FROM item WHERE base_id = ?1 AND path > ?2 ORDER BY base_id, path LIMIT ?3",
        QR_VALS(qr_val_uuid(&base_id), qr_val_blob(after.ptr ? after.ptr : "", after.len), qr_val_i64(limit)), err));
    while (qr_rows_next(&rows)) {
        QR_TRY(read_item(&rows, arena, &items[count++], err));
    }
    *ret_page = (struct qr_check_items){items, count};
    return qr_rows_end(&rows, err);
}

qr_rc qr_check_item(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found,
                    struct qr_check_item *ret_item, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT " ITEM_COLUMNS " FROM item WHERE id = ?1", QR_VALS(qr_val_uuid(&id)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        QR_TRY(read_item(&rows, arena, ret_item, err));
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_check_count_children(struct qr_tx *tx, qr_uuid id, struct qr_child_counts *ret_counts, qr_err *err)
{
    QR_ROWS(rows);
    *ret_counts = (struct qr_child_counts){0};
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT status, count(*) FROM item WHERE parent_id = ?1 AND status <> 8 GROUP BY status",
                       QR_VALS(qr_val_uuid(&id)), err));
    while (qr_rows_next(&rows)) {
        const int64_t status = qr_rows_i64(&rows, 0);
        if (status >= QR_ITEM_IDLE && status <= QR_ITEM_DELETING) {
            qr_child_counts_add(ret_counts, (enum qr_item_status)status, qr_rows_i64(&rows, 1));
        }
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_check_set_counts(struct qr_tx *tx, qr_uuid id, const struct qr_child_counts *counts, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE item SET n_completed = ?2, n_failed = ?3, n_active = ?4, n_idle = ?5 WHERE id = ?1",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(counts->completed), qr_val_i64(counts->failed),
                              qr_val_i64(counts->active), qr_val_i64(counts->idle)),
                      NULL, err);
}

qr_rc qr_check_next_named_base(struct qr_tx *tx, qr_uuid after, bool *ret_found, qr_uuid *ret_id, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT base_id FROM item WHERE base_id > ?1 ORDER BY base_id, path LIMIT 1",
                       QR_VALS(qr_val_uuid(&after)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        *ret_id = qr_rows_uuid(&rows, 0);
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_check_has_purge(struct qr_tx *tx, qr_uuid item_id, bool *ret_has, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx,
                         "SELECT 1 FROM job WHERE item_id = ?1 AND item_id IS NOT NULL AND type = 'purge' AND state "
                         "IN " QR_JOB_OPEN_SQL " LIMIT 1",
                         QR_VALS(qr_val_uuid(&item_id)), ret_has, &ignored, err);
}

/* ---- jobs ---- */

static qr_rc read_job(const struct qr_rows *rows, struct qr_arena *arena, struct qr_check_job *ret_job, qr_err *err)
{
    bool failed = false;
    *ret_job = (struct qr_check_job){
        .id = qr_rows_uuid(rows, 0),
        .base_id = qr_rows_uuid(rows, 1),
        .item_id = qr_rows_uuid(rows, 2),
        .queue = qr_rows_i64(rows, 3),
        .state = qr_rows_i64(rows, 4),
        .generation = qr_rows_i64(rows, 5),
        .type = qr_arena_copy(arena, qr_rows_str(rows, 6)),
        .code = copy_bytes(rows, 7, arena, &failed),
        .message = copy_bytes(rows, 8, arena, &failed),
        .has_item = !qr_rows_is_null(rows, 9),
        .item_status = qr_rows_i64(rows, 9),
        .item_generation = qr_rows_i64(rows, 10),
        .item_is_container = qr_rows_i64(rows, 11) != 0,
        .item_path = copy_bytes(rows, 12, arena, &failed),
        .has_worker = !qr_rows_is_null(rows, 13),
        .is_abandoned = qr_rows_i64(rows, 14) == 0,
    };
    return failed || !ret_job->type ? out_of_memory(err) : QR_OK;
}

qr_rc qr_check_jobs(struct qr_tx *tx, qr_uuid after, int limit, struct qr_arena *arena, struct qr_check_job **ret_jobs,
                    size_t *ret_count, qr_err *err)
{
    struct qr_check_job *jobs = qr_arena_array(arena, (size_t)limit, sizeof jobs[0]);
    size_t count = 0;
    if (!jobs) {
        return out_of_memory(err);
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(
        tx, &rows,
        "SELECT job.id, job.base_id, job.item_id, job.queue, job.state, job.generation, job.type, job.code, "
        "job.message, item.status, item.generation, item.is_container, item.path, worker.dead, CASE WHEN job.state = 1 "
        "THEN (SELECT count(*) FROM job AS first WHERE first.serial_key = job.serial_key AND first.serial_key IS NOT "
        "NULL AND first.state IN " QR_JOB_ACTIVE_SQL ") ELSE 1 END FROM job "
        "LEFT JOIN item ON item.id = job.item_id AND job.state IN " QR_JOB_OPEN_SQL
        " LEFT JOIN worker ON worker.id = job.worker_id AND job.state = 4 WHERE job.id > ?1 ORDER BY job.id LIMIT ?2",
        QR_VALS(qr_val_uuid(&after), qr_val_i64(limit)), err));
    while (qr_rows_next(&rows)) {
        QR_TRY(read_job(&rows, arena, &jobs[count++], err));
    }
    *ret_jobs = jobs;
    *ret_count = count;
    return qr_rows_end(&rows, err);
}

qr_rc qr_check_next_run(struct qr_tx *tx, qr_uuid after, bool *ret_found, struct qr_check_run *ret_run, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id, base_id, active, (SELECT count(*) FROM item WHERE item.run_id = run.id AND "
                       "item.run_id IS NOT NULL AND (item.status = 2 OR (item.status = 3 AND item.is_container = 0))), "
                       "NOT EXISTS (SELECT 1 FROM item WHERE item.status = 8 AND NOT item.base_id <> run.base_id) "
                       "AND EXISTS (SELECT 1 FROM base WHERE base.id = run.base_id AND base.status <> 3) "
                       "FROM run WHERE status = 1 AND id > ?1 ORDER BY id LIMIT 1",
                       QR_VALS(qr_val_uuid(&after)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        *ret_run = (struct qr_check_run){
            .id = qr_rows_uuid(&rows, 0),
            .base_id = qr_rows_uuid(&rows, 1),
            .active = qr_rows_i64(&rows, 2),
            .counted = qr_rows_i64(&rows, 3),
            .is_settled = qr_rows_i64(&rows, 4) != 0,
        };
    }
    return qr_rows_end(&rows, err);
}

/* ---- what belongs to items ---- */

static qr_rc read_belongings(struct qr_rows *rows, int limit, struct qr_arena *arena,
                             struct qr_check_belongings *ret_page, qr_err *err)
{
    struct qr_check_belonging *found = qr_arena_array(arena, (size_t)limit, sizeof found[0]);
    size_t count = 0;
    if (!found) {
        return out_of_memory(err);
    }
    while (qr_rows_next(rows)) {
        struct qr_check_belonging *row = &found[count++];
        *row = (struct qr_check_belonging){
            .id = qr_rows_uuid(rows, 0),
            .base_id = qr_rows_uuid(rows, 1),
            .item_id = qr_rows_uuid(rows, 2),
            .generation = qr_rows_i64(rows, 3),
            .size_bytes = qr_rows_i64(rows, 4),
            .file = qr_arena_copy(arena, qr_rows_str(rows, 5)),
            .has_item = qr_rows_i64(rows, 6) > 0,
        };
        if (!row->file) {
            return out_of_memory(err);
        }
    }
    *ret_page = (struct qr_check_belongings){found, count};
    return qr_rows_end(rows, err);
}

qr_rc qr_check_artifacts(struct qr_tx *tx, qr_uuid after, int limit, struct qr_arena *arena,
                         struct qr_check_belongings *ret_page, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id, base_id, item_id, generation, size_bytes, file, (SELECT count(*) FROM item "
                       "WHERE item.id = artifact.item_id) FROM artifact WHERE id > ?1 ORDER BY id LIMIT ?2",
                       QR_VALS(qr_val_uuid(&after), qr_val_i64(limit)), err));
    return read_belongings(&rows, limit, arena, ret_page, err);
}

qr_rc qr_check_assets(struct qr_tx *tx, qr_uuid after, int64_t after_generation, int limit, struct qr_arena *arena,
                      struct qr_check_belongings *ret_page, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id, base_id, item_id, generation, 0, '', (SELECT count(*) FROM item WHERE item.id = "
                       "asset.item_id) FROM asset WHERE (id, generation) > (?1, ?2) ORDER BY id, generation LIMIT ?3",
                       QR_VALS(qr_val_uuid(&after), qr_val_i64(after_generation), qr_val_i64(limit)), err));
    return read_belongings(&rows, limit, arena, ret_page, err);
}

qr_rc qr_check_remove_artifact(struct qr_tx *tx, qr_uuid id, bool *ret_removed, qr_err *err)
{
    int64_t changes;
    QR_TRY(qr_tx_exec(
        tx, "DELETE FROM artifact WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM item WHERE item.id = artifact.item_id)",
        QR_VALS(qr_val_uuid(&id)), &changes, err));
    *ret_removed = changes > 0;
    return QR_OK;
}

qr_rc qr_check_remove_asset(struct qr_tx *tx, qr_uuid id, int64_t generation, bool *ret_removed, qr_err *err)
{
    int64_t changes;
    QR_TRY(qr_tx_exec(tx,
                      "DELETE FROM asset WHERE id = ?1 AND generation = ?2 AND NOT EXISTS (SELECT 1 FROM item WHERE "
                      "item.id = asset.item_id)",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(generation)), &changes, err));
    *ret_removed = changes > 0;
    return QR_OK;
}
