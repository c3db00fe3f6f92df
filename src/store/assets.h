/* Assets: pictures and tables inside documents, and their analysis. */
#pragma once

#include "base/arena.h"
#include "model/stage_result.h"
#include "store/items.h"

/* Stored as these numbers: never renumber. */
enum qr_analysis_status {
    QR_ANALYSIS_PENDING = 1,
    QR_ANALYSIS_RUNNING = 2, /* derived: its job runs */
    QR_ANALYSIS_COMPLETED = 3,
    QR_ANALYSIS_FAILED = 4,
};
const char *qr_analysis_status_name(enum qr_analysis_status status);

struct qr_asset {
    qr_uuid id, item_id, artifact_id;
    int64_t generation;
    const char *kind, *mime, *place, *text, *code, *message;
    enum qr_analysis_status status;
    int64_t created_ms, updated_ms;
};

/* One that an earlier generation had (the id says so) moves to this one; its analysis stands where `is_analysed`. */
qr_rc qr_asset_add(struct qr_tx *tx, const struct qr_item *item, const struct qr_new_asset *asset, qr_err *err);
/* `analyze-asset`, unique while it is open. */
qr_rc qr_asset_enqueue(struct qr_tx *tx, struct qr_uuid_gen *ids, const struct qr_item *item, qr_uuid asset_id,
                       qr_err *err);
qr_rc qr_asset_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_asset *ret_asset,
                    qr_err *err);
qr_rc qr_asset_finish(struct qr_tx *tx, qr_uuid id, int64_t generation, enum qr_analysis_status status, qr_str text,
                      const char *code, const char *message, qr_err *err);
/* Of an item's generation: how many are not analysed yet, and how many gained text in it; text that an earlier one had
 * found is in the document already. */
qr_rc qr_assets_count(struct qr_tx *tx, qr_uuid item_id, int64_t generation, int64_t *ret_pending,
                      int64_t *ret_with_text, qr_err *err);
/* Of the base, those that are not analysed yet. */
qr_rc qr_assets_pending(struct qr_tx *tx, qr_uuid base_id, int limit, struct qr_arena *arena,
                        struct qr_asset **ret_assets, size_t *ret_count, qr_err *err);
/* In the order of their ids, behind `after`. */
qr_rc qr_assets_list(struct qr_tx *tx, qr_uuid item_id, int64_t generation, qr_uuid after, int limit,
                     struct qr_arena *arena, struct qr_asset **ret_assets, size_t *ret_count, qr_err *err);
/* Removes those of generations other than these two. */
qr_rc qr_assets_purge(struct qr_tx *tx, qr_uuid item_id, int64_t live_generation, int64_t wanted_generation,
                      qr_err *err);
/* Which asset a job is about, from its arguments. */
bool qr_asset_of_job(const char *args, qr_uuid *ret_id);
