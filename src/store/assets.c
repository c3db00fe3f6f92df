/* Assets. */
#include "store/assets.h"

#include "store/ids.h"
#include "store/jobs_item.h"

#include <assert.h>
#include <stdio.h>

const char *qr_analysis_status_name(enum qr_analysis_status status)
{
    static const char *const names[] = {"", "pending", "running", "completed", "failed"};
    assert(status >= QR_ANALYSIS_PENDING && status <= QR_ANALYSIS_FAILED);
    return names[status];
}

/* What was found in the same bytes before is found again. */
static qr_rc copy_analysis(struct qr_tx *tx, qr_uuid id, int64_t generation, qr_err *err)
{
    return qr_tx_exec(tx,
                      "UPDATE asset SET analysis_status = old.analysis_status, text = old.text, code = old.code, "
                      "message = old.message FROM (SELECT analysis_status, text, code, message FROM asset WHERE "
                      "id = ?1 AND generation < ?2 ORDER BY generation DESC LIMIT 1) AS old WHERE asset.id = ?1 AND "
                      "asset.generation = ?2",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(generation)), NULL, err);
}

qr_rc qr_asset_add(struct qr_tx *tx, const struct qr_item *item, const struct qr_new_asset *asset, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO asset (id, base_id, item_id, generation, kind, mime, place, artifact_id, "
                      "analysis_status, text, code, message, created_at, updated_at) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, '', '', '', ?9, ?9) ON CONFLICT DO NOTHING",
                      QR_VALS(qr_val_uuid(&asset->id), qr_val_uuid(&item->base_id), qr_val_uuid(&item->id),
                              qr_val_i64(item->generation), qr_val_text(qr_str_of(asset->kind)),
                              qr_val_text(qr_str_of(asset->mime)), qr_val_text(qr_str_of(asset->place)),
                              qr_val_uuid(&asset->bytes.id), qr_val_i64(now_ms)),
                      NULL, err));
    return asset->is_analysed ? copy_analysis(tx, asset->id, item->generation, err) : QR_OK;
}

/* ---- the job ---- */

static const char args_before[] = "{\"asset\":\"", args_after[] = "\"}";

qr_rc qr_asset_enqueue(struct qr_tx *tx, struct qr_uuid_gen *ids, const struct qr_item *item, qr_uuid asset_id,
                       qr_err *err)
{
    char id[QR_UUID_TEXT_SIZE], key[32 + QR_UUID_TEXT_SIZE], args[sizeof args_before + sizeof args_after + sizeof id];
    qr_uuid_format(asset_id, id);
    snprintf(key, sizeof key, "asset:%s:%lld", id, (long long)item->generation);
    snprintf(args, sizeof args, "%s%s%s", args_before, id, args_after);
    qr_uuid ignored;
    bool existed;
    return qr_jobs_add_side(tx, ids, QR_JOB_ANALYZE_ASSET, item->base_id, item->id, item->generation, qr_str_of(key),
                            qr_str_of(args), 0, &ignored, &existed, err);
}

bool qr_asset_of_job(const char *args, qr_uuid *ret_id)
{
    const qr_str text = qr_str_of(args);
    const size_t before = sizeof args_before - 1, after = sizeof args_after - 1;
    return text.len == before + QR_UUID_TEXT_SIZE - 1 + after &&
           qr_uuid_parse((qr_str){text.ptr + before, QR_UUID_TEXT_SIZE - 1}, ret_id);
}

/* ---- looking ---- */

#define ASSET_COLUMNS                                                                                                  \
    "id, item_id, artifact_id, generation, kind, mime, place, text, code, message, analysis_status, created_at, "      \
    "updated_at"

static qr_rc read_asset(const struct qr_rows *rows, struct qr_arena *arena, struct qr_asset *ret_asset, qr_err *err)
{
    *ret_asset = (struct qr_asset){
        .id = qr_rows_uuid(rows, 0),
        .item_id = qr_rows_uuid(rows, 1),
        .artifact_id = qr_rows_uuid(rows, 2),
        .generation = qr_rows_i64(rows, 3),
        .kind = qr_arena_copy(arena, qr_rows_str(rows, 4)),
        .mime = qr_arena_copy(arena, qr_rows_str(rows, 5)),
        .place = qr_arena_copy(arena, qr_rows_str(rows, 6)),
        .text = qr_arena_copy(arena, qr_rows_str(rows, 7)),
        .code = qr_arena_copy(arena, qr_rows_str(rows, 8)),
        .message = qr_arena_copy(arena, qr_rows_str(rows, 9)),
        .status = (enum qr_analysis_status)qr_rows_i64(rows, 10),
        .created_ms = qr_rows_i64(rows, 11),
        .updated_ms = qr_rows_i64(rows, 12),
    };
    const struct qr_asset *asset = ret_asset;
    return asset->kind && asset->mime && asset->place && asset->text && asset->code && asset->message
               ? QR_OK
               : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an asset");
}

qr_rc qr_asset_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_asset *ret_asset,
                    qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT " ASSET_COLUMNS " FROM asset WHERE id = ?1 ORDER BY generation DESC LIMIT 1",
                       QR_VALS(qr_val_uuid(&id)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        QR_TRY(read_asset(&rows, arena, ret_asset, err));
    }
    return qr_rows_end(&rows, err);
}

static qr_rc list_assets(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count, size_t limit,
                         struct qr_arena *arena, struct qr_asset **ret_assets, size_t *ret_count, qr_err *err)
{
    *ret_count = 0;
    *ret_assets = qr_arena_array(arena, limit, sizeof(struct qr_asset));
    if (!*ret_assets) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for assets");
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, vals, val_count, err));
    while (*ret_count < limit && qr_rows_next(&rows)) {
        QR_TRY(read_asset(&rows, arena, &(*ret_assets)[(*ret_count)++], err));
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_assets_list(struct qr_tx *tx, qr_uuid item_id, int64_t generation, qr_uuid after, int limit,
                     struct qr_arena *arena, struct qr_asset **ret_assets, size_t *ret_count, qr_err *err)
{
    return list_assets(tx,
                       "SELECT " ASSET_COLUMNS
                       " FROM asset WHERE item_id = ?1 AND generation = ?2 AND id > ?3 ORDER BY id LIMIT ?4",
                       QR_VALS(qr_val_uuid(&item_id), qr_val_i64(generation), qr_val_uuid(&after), qr_val_i64(limit)),
                       (size_t)limit, arena, ret_assets, ret_count, err);
}

qr_rc qr_assets_pending(struct qr_tx *tx, qr_uuid base_id, int limit, struct qr_arena *arena,
                        struct qr_asset **ret_assets, size_t *ret_count, qr_err *err)
{
    return list_assets(
        tx, "SELECT " ASSET_COLUMNS " FROM asset WHERE base_id = ?1 AND analysis_status = 1 ORDER BY id LIMIT ?2",
        QR_VALS(qr_val_uuid(&base_id), qr_val_i64(limit)), (size_t)limit, arena, ret_assets, ret_count, err);
}

qr_rc qr_asset_finish(struct qr_tx *tx, qr_uuid id, int64_t generation, enum qr_analysis_status status, qr_str text,
                      const char *code, const char *message, qr_err *err)
{
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_tx_exec(tx,
                      "UPDATE asset SET analysis_status = ?2, text = ?3, code = ?4, message = ?5, updated_at = ?6, "
                      "analysed_generation = ?7 WHERE id = ?1 AND generation = ?7 AND analysis_status IN (1, 2)",
                      QR_VALS(qr_val_uuid(&id), qr_val_i64(status), qr_val_text(text), qr_val_text(qr_str_of(code)),
                              qr_val_text(qr_str_of(message)), qr_val_i64(now_ms), qr_val_i64(generation)),
                      NULL, err);
}

qr_rc qr_assets_count(struct qr_tx *tx, qr_uuid item_id, int64_t generation, int64_t *ret_pending,
                      int64_t *ret_with_text, qr_err *err)
{
    const struct qr_val vals[] = {qr_val_uuid(&item_id), qr_val_i64(generation)};
    QR_TRY(qr_tx_get_i64(
        tx, "SELECT count(*) FROM asset WHERE item_id = ?1 AND generation = ?2 AND analysis_status IN (1, 2)", vals,
        QR_COUNT(vals), NULL, ret_pending, err));
    return qr_tx_get_i64(
        tx,
        "SELECT count(*) FROM asset WHERE item_id = ?1 AND generation = ?2 AND text <> '' AND analysed_generation = ?2",
        vals, QR_COUNT(vals), NULL, ret_with_text, err);
}

qr_rc qr_assets_purge(struct qr_tx *tx, qr_uuid item_id, int64_t live_generation, int64_t wanted_generation,
                      qr_err *err)
{
    return qr_tx_exec(tx, "DELETE FROM asset WHERE item_id = ?1 AND generation <> ?2 AND generation <> ?3",
                      QR_VALS(qr_val_uuid(&item_id), qr_val_i64(live_generation), qr_val_i64(wanted_generation)), NULL,
                      err);
}
