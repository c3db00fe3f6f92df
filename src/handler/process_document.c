/* process-document: from the source to canonical text; small documents go on to their chunks inside the same claim (TYPE-4).
 *
 * Where the bytes come from (REIDX-5): those that Quire owns for this generation; else the path as it is now; else the newest
 * that Quire owns; else the text of an earlier generation as it is, with the warning `source_missing`. */
#include "base/hash.h"
#include "base/json.h"
#include "handler/chunking.h"
#include "handler/document.h"
#include "handler/handlers.h"
#include "handler/rebuild.h"
#include "source/file.h"

enum { SMALL_TEXT_BYTES = 64 << 10 }; /* chunked at once; larger ones get a job, so that a claim stays short */

struct stored {
    const struct qr_attempt *attempt;
    bool has_source, has_text;
    struct qr_artifact source, text; /* the newest */
};

struct source {
    struct qr_buf bytes;
    bool is_from_path;
    bool is_fallback; /* the path is gone */
    bool is_text;     /* with is_fallback: canonical already, of an earlier generation */
    struct qr_file_facts facts;
};

static void source_done(struct source *source)
{
    qr_buf_done(&source->bytes);
}

/* ---- reading ---- */

static qr_rc find_stored(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct stored *stored = arg;
    const struct qr_attempt *attempt = stored->attempt;
    QR_TRY(qr_artifact_find(tx, attempt->item.id, QR_ARTIFACT_SOURCE, 0, attempt->run->arena, &stored->has_source,
                            &stored->source, err));
    return qr_artifact_find(tx, attempt->item.id, QR_ARTIFACT_TEXT, 0, attempt->run->arena, &stored->has_text,
                            &stored->text, err);
}

static qr_rc read_owned(struct qr_attempt *attempt, const struct qr_artifact *artifact, struct source *source,
                        qr_err *err)
{
    source->facts = (struct qr_file_facts){artifact->size_bytes, attempt->item.mtime_ns};
    return qr_artifact_read(attempt->context->artifacts, attempt->run->db, artifact, &source->bytes, err);
}

static qr_rc read_source(struct qr_attempt *attempt, struct source *source, qr_err *err)
{
    const struct qr_item *item = &attempt->item;
    struct stored stored = {.attempt = attempt};
    if (item->generation > 1 || item->source.len == 0) { /* else nothing is stored yet */
        QR_TRY(qr_db_read(attempt->run->db, find_stored, &stored, err));
    }
    if (stored.has_source && (stored.source.generation == item->generation || item->source.len == 0)) {
        return read_owned(attempt, &stored.source, source, err);
    }
    if (item->source.len == 0 || item->type == QR_ITEM_URL) {
        return qr_fail(err, QR_CODE_UNSUPPORTED_TYPE, "there is nothing to read it from");
    }
    source->is_from_path = true;
    const qr_rc rc =
        qr_file_read(item->source.ptr, attempt->settings.limits.file_bytes_max, &source->bytes, &source->facts, err);
    if (rc == QR_OK || err->code != QR_CODE_SOURCE_MISSING || !(stored.has_source || stored.has_text)) {
        return rc;
    }
    source->is_from_path = false;
    source->is_fallback = true;
    source->is_text = !stored.has_source;
    return read_owned(attempt, stored.has_source ? &stored.source : &stored.text, source, err);
}

static void note_facts(const struct source *source, struct qr_stage_result *result)
{
    result->source_was_read = true;
    result->size_bytes = source->facts.size_bytes;
    result->mtime_ns = source->facts.mtime_ns;
    result->has_hash = true;
    qr_hash_128(qr_buf_str(&source->bytes), result->content_hash);
}

/* ---- owning what was read (THING-5) ---- */

static bool asks_for_copy(const char *options)
{
    if (!options || !strstr(options, "\"copy\"")) {
        return false;
    }
    QR_JSON *object = NULL;
    return qr_json_parse(qr_str_of(options), &QR_JSON_REQUEST_LIMITS, &object, NULL) == QR_OK &&
           json_is_true(json_object_get(object, "copy"));
}

static qr_rc keep_source(struct qr_attempt *attempt, const struct source *source, struct qr_stage_result *result,
                         qr_err *err)
{
    struct qr_arena *arena = attempt->run->arena;
    struct qr_item root;
    bool found;
    QR_TRY(qr_find_source_root(attempt->run->db, &attempt->item, arena, &found, &root, err));
    if (!asks_for_copy(root.options)) {
        return QR_OK;
    }
    struct qr_new_artifact *artifact = qr_arena_alloc(arena, sizeof *artifact);
    if (!artifact) {
        return qr_handler_out_of_memory(err);
    }
    QR_TRY(qr_artifact_prepare(attempt->context->artifacts, qr_uuid_next(attempt->context->ids), QR_ARTIFACT_SOURCE,
                               qr_buf_str(&source->bytes), arena, artifact, err));
    result->source = artifact;
    if (!artifact->file) { /* the buffer does not live until it is adopted */
        artifact->bytes.ptr = qr_arena_copy(arena, artifact->bytes);
    }
    return artifact->file || artifact->bytes.ptr ? QR_OK : qr_handler_out_of_memory(err);
}

/* ---- how far it goes ---- */

static qr_rc go_on_to_chunks(struct qr_attempt *attempt, qr_str text, struct qr_stage_result *result, qr_err *err)
{
    result->reached = QR_REACHED_TEXT;
    if (text.len > SMALL_TEXT_BYTES || !(attempt->item.wanted & QR_WANT_CHUNK)) {
        return QR_OK;
    }
    QR_TRY(qr_index_require_own(attempt, err));
    QR_TRY(qr_write_text_chunks(attempt, &attempt->item, attempt->item.generation, text, &result->chunk_count,
                                &result->token_count, err));
    result->reached = qr_reached_with_chunks(attempt);
    return QR_OK;
}

/* The text of an earlier generation has its assets' sections already. */
static qr_rc reuse_text(struct qr_attempt *attempt, const struct source *source, struct qr_stage_result *result,
                        qr_str *ret_text, qr_err *err)
{
    const qr_str bytes = qr_buf_str(&source->bytes);
    const char *copy = qr_arena_copy(attempt->run->arena, bytes);
    if (!copy) {
        return qr_handler_out_of_memory(err);
    }
    *ret_text = (qr_str){copy, bytes.len};
    qr_document_keep_facts(&attempt->item, result);
    return qr_document_keep_text(attempt, *ret_text, result, err);
}

static qr_rc take_text(struct qr_attempt *attempt, const struct source *source, struct qr_stage_result *result,
                       qr_str *ret_text, qr_err *err)
{
    QR_TRY(source->is_text ? reuse_text(attempt, source, result, ret_text, err)
                           : qr_document_take(attempt, qr_buf_str(&source->bytes), result, ret_text, err));
    if (!source->is_fallback) {
        return QR_OK;
    }
    result->mtime_ns = -1; /* the row may know a newer file already, which was not read: it is new when it comes back */
    return qr_document_warn(attempt, result, "source_missing", "the file is gone; what was read before was used", err);
}

static qr_rc process(struct qr_attempt *attempt, struct qr_stage_result *result, qr_err *err)
{
    QR_CLEANUP(source_done) struct source source = {0};
    qr_str text;
    QR_TRY(read_source(attempt, &source, err));
    if (!source.is_text) {
        note_facts(&source, result);
    }
    if (source.is_from_path) {
        QR_TRY(keep_source(attempt, &source, result, err));
    }
    if (!source.is_text && qr_settings_has_processor(&attempt->settings, qr_str_of(attempt->item.name))) {
        return qr_document_submit(attempt, result, err);
    }
    QR_TRY(take_text(attempt, &source, result, &text, err));
    return go_on_to_chunks(attempt, text, result, err);
}

void qr_handle_process_document(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin(&attempt, run, ret_outcome)) {
        return;
    }
    struct qr_stage_result *result = qr_arena_alloc(run->arena, sizeof *result);
    const qr_rc rc =
        result ? process(&attempt, result, &ret_outcome->error) : qr_handler_out_of_memory(&ret_outcome->error);
    if (rc != QR_OK && result) {
        qr_document_discard(&attempt, result);
    }
    qr_outcome_set(ret_outcome, rc, result);
    if (rc == QR_OK && (result->reached == QR_REACHED_TEXT || result->reached == QR_REACHED_CHUNKS)) {
        ret_outcome->level = QR_RELAXED; /* lost with the power, it is done again: nothing was promised or paid for */
    }
}
