/* Owns the rows of bases. The change of a base's items, and with it the base lock, is store/change.c. */
#include "store/bases.h"

#include "store/ids.h"

#include <assert.h>

#define COLUMNS                                                                                                        \
    "id, name, status, error_code, error_message, settings, version, vis_seq, event_seq, index_stamp, created_at, "    \
    "updated_at, live_embedding, previous_embedding, vector_epoch, build_missed, build_failed, build_job_id"

const char *qr_base_status_name(enum qr_base_status status)
{
    static const char *const names[] = {
        [QR_BASE_READY] = "ready", [QR_BASE_FAILED] = "failed", [QR_BASE_DELETING] = "deleting"};
    assert(status >= QR_BASE_READY && status <= QR_BASE_DELETING);
    return names[status];
}

/* ---- reading ---- */

static qr_rc read_base(const struct qr_rows *rows, struct qr_arena *arena, struct qr_base *ret_base, qr_err *err)
{
    const struct qr_base base = {
        .id = qr_rows_uuid(rows, 0),
        .name = qr_arena_copy(arena, qr_rows_str(rows, 1)),
        .status = (enum qr_base_status)qr_rows_i64(rows, 2),
        .error_code = qr_arena_copy(arena, qr_rows_str(rows, 3)),
        .error_message = qr_arena_copy(arena, qr_rows_str(rows, 4)),
        .settings = qr_arena_copy(arena, qr_rows_str(rows, 5)),
        .version = qr_rows_i64(rows, 6),
        .vis_seq = qr_rows_i64(rows, 7),
        .event_seq = qr_rows_i64(rows, 8),
        .index_stamp = qr_arena_copy(arena, qr_rows_str(rows, 9)),
        .created_ms = qr_rows_i64(rows, 10),
        .updated_ms = qr_rows_i64(rows, 11),
        .live_embedding = qr_arena_copy(arena, qr_rows_str(rows, 12)),
        .previous_embedding = qr_arena_copy(arena, qr_rows_str(rows, 13)),
        .vector_epoch = qr_rows_i64(rows, 14),
        .build_missed = qr_rows_i64(rows, 15),
        .build_failed = qr_rows_i64(rows, 16),
        .build_job_id = qr_rows_uuid(rows, 17),
    };
    if (!base.name || !base.error_code || !base.error_message || !base.settings || !base.index_stamp ||
        !base.live_embedding || !base.previous_embedding) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a base");
    }
    *ret_base = base;
    return QR_OK;
}

static qr_rc find_one(struct qr_tx *tx, const char *sql, struct qr_val key, struct qr_arena *arena, bool *ret_found,
                      struct qr_base *ret_base, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, &key, 1, err));
    const bool found = qr_rows_next(&rows);
    if (found) {
        QR_TRY(read_base(&rows, arena, ret_base, err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_found = found;
    return QR_OK;
}

qr_rc qr_base_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_base *ret_base,
                   qr_err *err)
{
    return find_one(tx, "SELECT " COLUMNS " FROM base WHERE id = ?1", qr_val_uuid(&id), arena, ret_found, ret_base,
                    err);
}

qr_rc qr_base_find_name(struct qr_tx *tx, qr_str name, struct qr_arena *arena, bool *ret_found,
                        struct qr_base *ret_base, qr_err *err)
{
    return find_one(tx, "SELECT " COLUMNS " FROM base WHERE name = ?1 AND status <> 3", qr_val_text(name), arena,
                    ret_found, ret_base, err);
}

qr_rc qr_bases_list(struct qr_tx *tx, qr_uuid after, int limit, bool with_deleting, struct qr_arena *arena,
                    struct qr_base **ret_bases, size_t *ret_count, qr_err *err)
{
    assert(limit > 0);
    struct qr_base *bases = qr_arena_array(arena, (size_t)limit, sizeof bases[0]);
    if (!bases) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a list of bases");
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT " COLUMNS " FROM base WHERE id > ?1 AND (?2 <> 0 OR status <> 3) ORDER BY id LIMIT ?3",
                       QR_VALS(qr_val_uuid(&after), qr_val_i64(with_deleting), qr_val_i64(limit)), err));
    size_t count = 0;
    while (qr_rows_next(&rows)) {
        assert(count < (size_t)limit);
        QR_TRY(read_base(&rows, arena, &bases[count++], err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_bases = bases;
    *ret_count = count;
    return QR_OK;
}

qr_rc qr_base_has_items(struct qr_tx *tx, qr_uuid id, bool *ret_has, qr_err *err)
{
    int64_t ignored;
    return qr_tx_get_i64(tx, "SELECT 1 FROM item WHERE base_id = ?1 LIMIT 1", QR_VALS(qr_val_uuid(&id)), ret_has,
                         &ignored, err);
}

/* ---- writing ---- */

static qr_rc name_is_taken(qr_str name, qr_err *err)
{
    return qr_fail(err, QR_CODE_ALREADY_EXISTS, "a base called \"%.*s\" exists", QR_STR_ARG(name));
}

static qr_rc require_changed(int64_t changes, qr_err *err)
{
    return changes ? QR_OK : qr_fail(err, QR_CODE_NOT_FOUND, "the base is gone");
}

qr_rc qr_base_add(struct qr_tx *tx, qr_uuid id, qr_str name, qr_str settings, qr_err *err)
{
    assert(name.len <= QR_BASE_NAME_BYTES_MAX);
    int64_t now_ms, changes;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO base (id, name, status, settings, version, created_at, updated_at) VALUES (?1, ?2, "
                      "1, ?3, 1, ?4, ?4) ON CONFLICT (name) WHERE status <> 3 DO NOTHING",
                      QR_VALS(qr_val_uuid(&id), qr_val_text(name), qr_val_text(settings), qr_val_i64(now_ms)), &changes,
                      err));
    return changes ? QR_OK : name_is_taken(name, err);
}

/* Why nothing was changed by the update of `version`. */
static qr_rc why_not_set(struct qr_tx *tx, qr_uuid id, int64_t version, qr_err *err)
{
    int64_t current = 0;
    bool found;
    QR_TRY(
        qr_tx_get_i64(tx, "SELECT version FROM base WHERE id = ?1", QR_VALS(qr_val_uuid(&id)), &found, &current, err));
    QR_TRY(require_changed(found, err));
    return qr_fail(err, QR_CODE_VERSION_CONFLICT, "the base has version %lld, not %lld", (long long)current,
                   (long long)version);
}

qr_rc qr_base_set(struct qr_tx *tx, qr_uuid id, int64_t version, qr_str name, qr_str settings, qr_err *err)
{
    assert(name.len <= QR_BASE_NAME_BYTES_MAX);
    int64_t now_ms, changes, ignored;
    bool is_taken;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_get_i64(tx, "SELECT 1 FROM base WHERE name = ?1 AND id <> ?2 AND status <> 3",
                         QR_VALS(qr_val_text(name), qr_val_uuid(&id)), &is_taken, &ignored, err));
    if (is_taken) {
        return name_is_taken(name, err);
    }
    QR_TRY(qr_tx_exec(
        tx,
        "UPDATE base SET name = ?3, settings = ?4, version = version + 1, updated_at = ?5 WHERE id = ?1 "
        "AND (?2 = 0 OR version = ?2)",
        QR_VALS(qr_val_uuid(&id), qr_val_i64(version), qr_val_text(name), qr_val_text(settings), qr_val_i64(now_ms)),
        &changes, err));
    return changes ? QR_OK : why_not_set(tx, id, version, err);
}

/* Deleting is one-way: a base that is failing or restored meanwhile stays deleting. */
qr_rc qr_base_set_status(struct qr_tx *tx, qr_uuid id, enum qr_base_status status, const char *error_code,
                         const char *error_message, qr_err *err)
{
    assert(status >= QR_BASE_READY && status <= QR_BASE_DELETING);
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(tx,
                      "UPDATE base SET status = ?2, error_code = ?3, error_message = ?4, updated_at = ?5 WHERE id = ?1 "
                      "AND status <> 3",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(status), qr_val_text(qr_str_of(error_code)),
                              qr_val_text(qr_str_of(error_message)), qr_val_i64(now_ms)),
                      NULL, err);
}

qr_rc qr_base_set_stamp(struct qr_tx *tx, qr_uuid id, const char *stamp, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE base SET index_stamp = ?2 WHERE id = ?1",
                      QR_VALS(qr_val_uuid(&id), qr_val_text(qr_str_of(stamp))), NULL, err);
}

/* ---- models ---- */

static qr_rc read_embedding(const char *settings, struct qr_arena *arena, struct qr_embedding_settings *ret_embedding,
                            int64_t *ret_key, qr_err *err)
{
    struct qr_settings parsed;
    QR_TRY(qr_settings_parse_text(settings, arena, &parsed, err));
    *ret_embedding = parsed.embedding;
    *ret_key = qr_model_key(&parsed.embedding);
    return QR_OK;
}

qr_rc qr_base_models(const struct qr_base *base, struct qr_arena *arena, struct qr_base_models *ret_models, qr_err *err)
{
    struct qr_base_models models;
    QR_TRY(read_embedding(base->settings, arena, &models.wanted, &models.wanted_key, err));
    models.live = models.wanted;
    models.live_key = models.wanted_key;
    if (qr_base_is_building(base)) {
        QR_TRY(read_embedding(base->live_embedding, arena, &models.live, &models.live_key, err));
    }
    QR_TRY(read_embedding(base->previous_embedding, arena, &models.previous, &models.previous_key, err));
    *ret_models = models;
    return QR_OK;
}

qr_rc qr_base_set_models(struct qr_tx *tx, qr_uuid id, const char *live_embedding, const char *previous_embedding,
                         qr_err *err)
{
    return qr_tx_exec(
        tx,
        "UPDATE base SET live_embedding = ?2, previous_embedding = ?3, vector_epoch = vector_epoch + 1 "
        "WHERE id = ?1",
        QR_VALS(qr_val_uuid(&id), qr_val_text(qr_str_of(live_embedding)), qr_val_text(qr_str_of(previous_embedding))),
        NULL, err);
}

qr_rc qr_base_set_build(struct qr_tx *tx, qr_uuid id, qr_uuid job_id, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE base SET build_job_id = ?2 WHERE id = ?1",
                      QR_VALS(qr_val_uuid(&id), qr_val_uuid(&job_id)), NULL, err);
}

qr_rc qr_base_set_build_failed(struct qr_tx *tx, qr_uuid id, int64_t chunk_count, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE base SET build_failed = ?2 WHERE id = ?1",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(chunk_count)), NULL, err);
}

qr_rc qr_base_epoch(struct qr_tx *tx, qr_uuid id, int64_t *ret_epoch, qr_err *err)
{
    *ret_epoch = -1;
    return qr_tx_get_i64(tx, "SELECT vector_epoch FROM base WHERE id = ?1", QR_VALS(qr_val_uuid(&id)), NULL, ret_epoch,
                         err);
}

qr_rc qr_base_raise_epoch(struct qr_tx *tx, qr_uuid id, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE base SET vector_epoch = vector_epoch + 1 WHERE id = ?1", QR_VALS(qr_val_uuid(&id)),
                      NULL, err);
}

qr_rc qr_base_raise_missed(struct qr_tx *tx, qr_uuid id, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE base SET build_missed = build_missed + 1 WHERE id = ?1", QR_VALS(qr_val_uuid(&id)),
                      NULL, err);
}

qr_rc qr_base_remove(struct qr_tx *tx, qr_uuid id, qr_err *err)
{
    return qr_tx_exec(tx, "DELETE FROM base WHERE id = ?1", QR_VALS(qr_val_uuid(&id)), NULL, err);
}
