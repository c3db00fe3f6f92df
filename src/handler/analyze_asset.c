/* analyze-asset: the text in one picture or table (TYPE-7). Whatever happens to it, its document is not touched here. */
#include "handler/common.h"
#include "handler/handlers.h"
#include "store/assets.h"

struct asset_look {
    const struct qr_attempt *attempt;
    qr_uuid id;
    bool found;
    struct qr_asset asset;
    struct qr_artifact artifact;
};

static qr_rc look(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct asset_look *look = arg;
    struct qr_arena *arena = look->attempt->run->arena;
    QR_TRY(qr_asset_find(tx, look->id, arena, &look->found, &look->asset, err));
    if (!look->found || !qr_uuid_equal(look->asset.item_id, look->attempt->item.id)) {
        look->found = false;
        return QR_OK;
    }
    return qr_artifact_find_id(tx, look->asset.artifact_id, arena, &look->found, &look->artifact, err);
}

static qr_rc analyse(struct qr_attempt *attempt, struct qr_asset_result *result, qr_err *err)
{
    struct asset_look asset = {.attempt = attempt};
    struct qr_analyser *analyser;
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
    if (!qr_asset_of_job(attempt->run->job->args, &asset.id)) {
        return qr_fail(err, QR_CODE_INTERNAL, "the job does not name its asset");
    }
    QR_TRY(qr_db_read(attempt->run->db, look, &asset, err));
    if (!asset.found) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "the asset is gone");
    }
    QR_TRY(qr_artifact_read(attempt->context->artifacts, attempt->run->db, &asset.artifact, &bytes, err));
    QR_TRY(qr_attempt_analyser(attempt, &analyser, err));
    QR_TRY(qr_attempt_check(attempt, err)); /* GEN-1: it may be paid for */
    QR_TRY(analyser->analyse(analyser, qr_buf_str(&bytes), asset.asset.mime, attempt->run->arena, &result->text, err));
    result->asset_id = asset.id;
    return QR_OK;
}

void qr_handle_analyze_asset(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin(&attempt, run, ret_outcome)) {
        return;
    }
    struct qr_asset_result *result = qr_arena_alloc(run->arena, sizeof *result);
    const qr_rc rc =
        result ? analyse(&attempt, result, &ret_outcome->error) : qr_handler_out_of_memory(&ret_outcome->error);
    qr_attempt_put_off(&attempt, ret_outcome);
    qr_outcome_set(ret_outcome, rc, result);
}
