/* refresh-source: whether a source is another than the one that was read (REFR-1 … REFR-4). Size and time first; only where
 * they differ the content decides. What cannot be read is a warning: nothing that is known is given up for it. */
#include "base/hash.h"
#include "handler/common.h"
#include "handler/handlers.h"
#include "source/file.h"

static void warn(struct qr_refresh_result *result, const char *message, struct qr_arena *arena)
{
    const char *kept = qr_arena_copy(arena, qr_str_of(message));
    result->is_missing_or_unreadable = true;
    result->warning = (struct qr_warning){"refresh_failed", kept ? kept : "the source cannot be read"};
}

static bool is_about_source(const qr_err *err)
{
    return err->code == QR_CODE_SOURCE_MISSING || err->code == QR_CODE_SOURCE_UNREADABLE ||
           err->code == QR_CODE_TOO_LARGE;
}

static qr_rc compare_content(struct qr_attempt *attempt, struct qr_refresh_result *result, qr_err *err)
{
    const struct qr_item *item = &attempt->item;
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
    struct qr_file_facts facts;
    unsigned char hash[QR_HASH_BYTES];
    QR_TRY(qr_file_read((struct qr_file_place){item->source.ptr, item->no_links},
                        attempt->settings.limits.file_bytes_max, &bytes, &facts, err));
    qr_hash_128(qr_buf_str(&bytes), hash);
    result->size_bytes = facts.size_bytes;
    result->mtime_ns = facts.mtime_ns;
    result->is_changed = !item->has_hash || memcmp(hash, item->content_hash, sizeof hash) != 0;
    if (result->is_changed && bytes.len == 0 && item->size_bytes > 0) {
        result->is_changed = false;
        warn(result, "the file is empty, though it was not before", attempt->run->arena);
    }
    return QR_OK;
}

static qr_rc look_at_file(struct qr_attempt *attempt, struct qr_refresh_result *result, qr_err *err)
{
    const struct qr_item *item = &attempt->item;
    struct qr_file_facts facts;
    QR_TRY(qr_file_look((struct qr_file_place){item->source.ptr, item->no_links}, &facts, err));
    result->size_bytes = facts.size_bytes;
    result->mtime_ns = facts.mtime_ns;
    const bool is_same = item->has_hash && facts.size_bytes == item->size_bytes && facts.mtime_ns == item->mtime_ns;
    return is_same ? QR_OK : compare_content(attempt, result, err);
}

static qr_rc refresh(struct qr_attempt *attempt, struct qr_refresh_result *result, qr_err *err)
{
    const struct qr_item *item = &attempt->item;
    switch (item->type) {
    case QR_ITEM_DIRECTORY:
        result->is_changed = true; /* REFR-4: its expansion finds out, and touches only what changed */
        return QR_OK;
    case QR_ITEM_URL:
        return qr_fail(err, QR_CODE_UNSUPPORTED_TYPE, "URLs cannot be fetched yet");
    default:
        break;
    }
    if (item->source.len == 0) {
        return QR_OK; /* Quire owns its bytes: there is nothing to look at */
    }
    const qr_rc rc = look_at_file(attempt, result, err);
    if (rc == QR_OK || !is_about_source(err)) {
        return rc;
    }
    *result = (struct qr_refresh_result){0};
    warn(result, err->msg, attempt->run->arena);
    return QR_OK;
}

void qr_handle_refresh_source(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin(&attempt, run, ret_outcome)) {
        return;
    }
    struct qr_refresh_result *result = qr_arena_alloc(run->arena, sizeof *result);
    const qr_rc rc =
        result ? refresh(&attempt, result, &ret_outcome->error) : qr_handler_out_of_memory(&ret_outcome->error);
    qr_outcome_set(ret_outcome, rc, result);
    if (rc != QR_OK && attempt.item.type == QR_ITEM_URL) {
        ret_outcome->kind = QR_OUTCOME_SKIPPED;
    }
}
