/* process-document: from the source to canonical text; small documents go on to their chunks inside the same claim (TYPE-4).
 *
 * Small documents that wait together are done together: one look at all of them, one sending to the reader, one write to the
 * index. What is not small, or meets any trouble on the way that may not be its own, is left to be done alone.
 *
 * Where the bytes come from (REIDX-5): those that Quire owns for this generation; else the path as it is now; else the newest
 * that Quire owns; else the text of an earlier generation as it is, with the warning `source_missing`. */
#include "base/hash.h"
#include "base/json.h"
#include "handler/chunking.h"
#include "handler/document.h"
#include "handler/handlers.h"
#include "handler/reading.h"
#include "handler/rebuild.h"
#include "handler/unchanged.h"
#include "source/file.h"

enum { SMALL_TEXT_BYTES = 64 << 10 }; /* chunked at once; larger ones get a job, so that a claim stays short */

struct stored {
    const struct qr_attempt *attempt;
    struct qr_holdings *holdings;
};

struct source {
    struct qr_buf bytes;
    struct qr_holdings holdings;
    bool is_from_path;
    bool is_copied;   /* with is_from_path: Quire is to own it */
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
    const struct stored *stored = arg;
    const struct qr_attempt *attempt = stored->attempt;
    struct qr_holdings *holdings = stored->holdings;
    QR_TRY(qr_artifact_find(tx, attempt->item.id, QR_ARTIFACT_SOURCE, 0, attempt->run->arena, &holdings->has_source,
                            &holdings->source, err));
    return qr_artifact_find(tx, attempt->item.id, QR_ARTIFACT_TEXT, 0, attempt->run->arena, &holdings->has_text,
                            &holdings->text, err);
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
    struct qr_holdings *held = &source->holdings;
    struct stored stored = {.attempt = attempt, .holdings = held};
    if (item->generation > 1 || item->source.len == 0) { /* else nothing is stored yet */
        QR_TRY(qr_db_read(attempt->run->db, find_stored, &stored, err));
    }
    if (held->has_source && (held->source.generation == item->generation || item->source.len == 0)) {
        return read_owned(attempt, &held->source, source, err);
    }
    if (item->source.len == 0 || item->type == QR_ITEM_URL) {
        return qr_fail(err, QR_CODE_UNSUPPORTED_TYPE, "there is nothing to read it from");
    }
    source->is_from_path = true;
    const qr_rc rc = qr_file_read((struct qr_file_place){item->source.ptr, item->no_links},
                                  attempt->settings.limits.file_bytes_max, &source->bytes, &source->facts, err);
    if (rc == QR_OK || err->code != QR_CODE_SOURCE_MISSING || !(held->has_source || held->has_text)) {
        return rc;
    }
    source->is_from_path = false;
    source->is_fallback = true;
    source->is_text = !held->has_source;
    return read_owned(attempt, held->has_source ? &held->source : &held->text, source, err);
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

static qr_rc see_whether_copied(struct qr_attempt *attempt, struct source *source, qr_err *err)
{
    if (!source->is_from_path) {
        return QR_OK;
    }
    if (!attempt->source_options) {
        struct qr_item root;
        bool found;
        QR_TRY(qr_find_source_root(attempt->run->db, &attempt->item, attempt->run->arena, &found, &root, err));
        attempt->source_options = root.options ? root.options : "";
    }
    source->is_copied = asks_for_copy(attempt->source_options);
    return QR_OK;
}

static qr_rc keep_source(struct qr_attempt *attempt, const struct source *source, struct qr_stage_result *result,
                         qr_err *err)
{
    struct qr_arena *arena = attempt->run->arena;
    if (!source->is_copied) {
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

static bool goes_on_to_chunks(const struct qr_attempt *attempt, qr_str text)
{
    return text.len <= SMALL_TEXT_BYTES && (attempt->item.wanted & QR_WANT_CHUNK);
}

static qr_rc go_on_to_chunks(struct qr_attempt *attempt, qr_str text, struct qr_stage_result *result, qr_err *err)
{
    QR_TRY(qr_index_require_own(attempt, err));
    QR_TRY(qr_write_text_chunks(attempt, &attempt->item, attempt->item.generation, text, &result->chunk_count,
                                &result->token_count, err));
    qr_reach_chunks(attempt, result);
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

/* `converted`: of the source, unless it is text. */
static qr_rc take_text(struct qr_attempt *attempt, const struct source *source, const struct qr_converted *converted,
                       struct qr_stage_result *result, qr_str *ret_text, qr_err *err)
{
    QR_TRY(source->is_text ? reuse_text(attempt, source, result, ret_text, err)
                           : qr_document_take_converted(attempt, converted, result, ret_text, err));
    result->reached = QR_REACHED_TEXT;
    result->has_made_of = result->has_made_of && result->asset_count == 0; /* what is read in them decides too */
    if (!source->is_fallback) {
        return QR_OK;
    }
    result->mtime_ns = -1; /* the row may know a newer file already, which was not read: it is new when it comes back */
    return qr_document_warn(attempt, result, "source_missing", "the file is gone; what was read before was used", err);
}

static bool has_processor(const struct qr_attempt *attempt)
{
    return qr_settings_has_processor(&attempt->settings, qr_str_of(attempt->item.name));
}

/* The bytes, and what the item gets to know of them. */
static qr_rc take_source(struct qr_attempt *attempt, struct source *source, struct qr_stage_result *result, qr_err *err)
{
    QR_TRY(read_source(attempt, source, err));
    if (!source->is_text) {
        note_facts(source, result);
    }
    QR_TRY(see_whether_copied(attempt, source, err));
    if (!source->is_fallback && !has_processor(attempt)) {
        qr_note_made_of(attempt, source->is_copied, result);
    }
    return QR_OK;
}

static struct qr_unchanged look_of(struct qr_attempt *attempt, const struct source *source,
                                   struct qr_stage_result *result)
{
    return (struct qr_unchanged){attempt, &source->holdings, source->is_copied, result};
}

/* Up to the text, or to the ticket of a file processor; no further than to the source where that is unchanged. */
static qr_rc process(struct qr_attempt *attempt, struct qr_stage_result *result, qr_str *ret_text, qr_err *err)
{
    QR_CLEANUP(source_done) struct source source = {0};
    struct qr_converted converted = {0};
    QR_TRY(take_source(attempt, &source, result, err));
    struct qr_unchanged look = look_of(attempt, &source, result);
    QR_TRY(qr_find_unchanged(&look, 1, err));
    if (result->reached == QR_REACHED_UNCHANGED) {
        return QR_OK;
    }
    QR_TRY(keep_source(attempt, &source, result, err));
    if (!source.is_text && has_processor(attempt)) {
        return qr_document_submit(attempt, result, err);
    }
    if (!source.is_text) {
        QR_TRY(qr_attempt_convert(attempt, qr_buf_str(&source.bytes), attempt->item.name, &converted, err));
    }
    return take_text(attempt, &source, &converted, result, ret_text, err);
}

static qr_rc process_alone(struct qr_attempt *attempt, struct qr_stage_result *result, qr_err *err)
{
    qr_str text;
    QR_TRY(process(attempt, result, &text, err));
    return result->reached == QR_REACHED_TEXT && goes_on_to_chunks(attempt, text)
               ? go_on_to_chunks(attempt, text, result, err)
               : QR_OK;
}

static void set_outcome(struct qr_attempt *attempt, qr_rc rc, struct qr_stage_result *result,
                        struct qr_outcome *outcome)
{
    if (rc != QR_OK && result) {
        qr_document_discard(attempt, result);
    }
    qr_attempt_put_off(attempt, outcome);
    qr_outcome_set(outcome, rc, result);
    if (rc == QR_OK && (result->reached == QR_REACHED_UNCHANGED || result->reached == QR_REACHED_TEXT ||
                        result->reached == QR_REACHED_CHUNKS)) {
        outcome->level = QR_RELAXED; /* lost with the power, it is done again: nothing was promised or paid for */
    }
}

void qr_handle_process_document(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin(&attempt, run, ret_outcome)) {
        return;
    }
    struct qr_stage_result *result = qr_arena_alloc(run->arena, sizeof *result);
    const qr_rc rc =
        result ? process_alone(&attempt, result, &ret_outcome->error) : qr_handler_out_of_memory(&ret_outcome->error);
    set_outcome(&attempt, rc, result, ret_outcome);
}

/* ---- several ---- */

/* The documents of a claim that are done together. */
struct several {
    struct qr_attempt attempts[QR_TOGETHER_MAX];
    struct qr_stage_result *results[QR_TOGETHER_MAX];
    struct qr_outcome *const *outcomes; /* QR_OUTCOME_NONE: there is more to do */
    size_t count;
    struct source sources[QR_TOGETHER_MAX];
    /* those that may be unchanged */
    struct qr_unchanged looks[QR_TOGETHER_MAX];
    size_t look_positions[QR_TOGETHER_MAX]; /* of each among the attempts */
    size_t look_count;
    struct qr_converted converted[QR_TOGETHER_MAX];
    struct qr_reader_file files[QR_TOGETHER_MAX]; /* those that are read in the reader, in the same order */
    /* those whose chunks are to be written */
    struct qr_index_document documents[QR_TOGETHER_MAX];
    size_t positions[QR_TOGETHER_MAX]; /* of each among the attempts */
    size_t document_count;
};

static qr_rc add_document(struct several *several, size_t i, qr_str text, qr_err *err)
{
    struct qr_attempt *attempt = &several->attempts[i];
    struct qr_stage_result *result = several->results[i];
    struct qr_chunk *chunks;
    size_t count;
    QR_TRY(qr_split_text_chunks(attempt, &attempt->item, text, &chunks, &count, &result->token_count, err));
    QR_TRY(qr_attempt_go_on(attempt, err));
    result->chunk_count = (int64_t)count;
    several->positions[several->document_count] = i;
    several->documents[several->document_count++] = (struct qr_index_document){.item_id = attempt->item.id,
                                                                               .generation = attempt->item.generation,
                                                                               .chunks = chunks,
                                                                               .count = count,
                                                                               .owner = attempt};
    return QR_OK;
}

static bool is_open(const struct several *several, size_t i)
{
    return several->outcomes[i]->kind == QR_OUTCOME_NONE;
}

static void leave_alone(struct several *several, size_t i)
{
    qr_document_discard(&several->attempts[i], several->results[i]);
    several->outcomes[i]->kind = QR_OUTCOME_ALONE;
}

static void take_one_source(struct several *several, size_t i)
{
    struct qr_attempt *attempt = &several->attempts[i];
    struct qr_outcome *outcome = several->outcomes[i];
    if (attempt->item.size_bytes > SMALL_TEXT_BYTES || has_processor(attempt)) {
        outcome->kind = QR_OUTCOME_ALONE;
        return;
    }
    struct qr_stage_result *result = qr_arena_alloc(attempt->run->arena, sizeof *result);
    several->results[i] = result;
    const qr_rc rc = result ? take_source(attempt, &several->sources[i], result, &outcome->error)
                            : qr_handler_out_of_memory(&outcome->error);
    if (rc != QR_OK) {
        set_outcome(attempt, rc, result, outcome);
    } else if (several->sources[i].bytes.len > SMALL_TEXT_BYTES) { /* it has grown */
        leave_alone(several, i);
    }
}

/* All of one base. What is wrong with the index is met again by those that go on. */
static void find_unchanged(struct several *several)
{
    qr_err ignored = {0};
    (void)!qr_find_unchanged(several->looks, several->look_count, &ignored);
    for (size_t k = 0; k < several->look_count; k++) {
        const size_t i = several->look_positions[k];
        struct qr_stage_result *result = several->results[i];
        struct qr_outcome *outcome = several->outcomes[i];
        const bool is_unchanged = result->reached == QR_REACHED_UNCHANGED;
        const qr_rc rc =
            is_unchanged ? QR_OK : keep_source(&several->attempts[i], &several->sources[i], result, &outcome->error);
        if (is_unchanged || rc != QR_OK) {
            set_outcome(&several->attempts[i], rc, result, outcome);
        }
    }
    several->look_count = 0;
}

static void leave_out_unchanged(struct several *several)
{
    const struct qr_attempt *before = NULL; /* the last one that is to be looked at */
    for (size_t i = 0; i < several->count; i++) {
        struct qr_attempt *attempt = &several->attempts[i];
        if (!is_open(several, i)) {
            continue;
        }
        if (before && !qr_uuid_equal(before->base.id, attempt->base.id)) {
            find_unchanged(several);
        }
        several->look_positions[several->look_count] = i;
        several->looks[several->look_count++] = look_of(attempt, &several->sources[i], several->results[i]);
        before = attempt;
    }
    find_unchanged(several);
}

static bool is_for_reader(const struct several *several, size_t i)
{
    return is_open(several, i) && !several->sources[i].is_text;
}

/* ISOL-2: one that had no answer finds out alone whether it is to blame. */
static void convert_sources(struct several *several, struct qr_reader *reader)
{
    size_t file_count = 0, at = 0;
    for (size_t i = 0; i < several->count; i++) {
        if (is_for_reader(several, i)) {
            struct qr_attempt *attempt = &several->attempts[i];
            several->files[file_count++] =
                qr_attempt_reader_file(attempt, qr_buf_str(&several->sources[i].bytes), attempt->item.name);
        }
    }
    qr_reader_convert_several(reader, several->files, file_count);
    for (size_t i = 0; i < several->count; i++) {
        if (!is_for_reader(several, i)) {
            continue;
        }
        const struct qr_reader_file *file = &several->files[at++];
        several->converted[i] = file->converted;
        if (!file->is_answered) {
            leave_alone(several, i);
        } else if (file->rc != QR_OK) {
            several->outcomes[i]->error = file->err;
            set_outcome(&several->attempts[i], file->rc, several->results[i], several->outcomes[i]);
        }
    }
}

static void take_sources(struct several *several)
{
    struct qr_reader *reader = NULL;
    for (size_t i = 0; i < several->count; i++) {
        if (is_open(several, i)) {
            reader = several->attempts[i].context->reader;
            take_one_source(several, i);
        }
    }
    leave_out_unchanged(several);
    if (reader) {
        convert_sources(several, reader);
    }
}

/* True: it waits for its chunks to be written. Else its outcome is set. */
static bool take_one(struct several *several, size_t i)
{
    struct qr_attempt *attempt = &several->attempts[i];
    struct qr_outcome *outcome = several->outcomes[i];
    struct qr_stage_result *result = several->results[i];
    qr_str text;
    qr_rc rc = take_text(attempt, &several->sources[i], &several->converted[i], result, &text, &outcome->error);
    const bool goes_on = rc == QR_OK && goes_on_to_chunks(attempt, text);
    rc = goes_on ? add_document(several, i, text, &outcome->error) : rc;
    if (!goes_on || rc != QR_OK) {
        set_outcome(attempt, rc, result, outcome);
    }
    return goes_on && rc == QR_OK;
}

static qr_rc write_to_index(struct several *several, qr_err *err)
{
    struct qr_attempt *first = &several->attempts[several->positions[0]];
    QR_TRY(qr_index_require_own(first, err));
    return qr_index_write_documents(first->context->index, first->base.id, several->documents, several->document_count,
                                    qr_attempts_guard, first->run->db, err);
}

/* All of one base. An error may be one document's alone: then each finds out for itself. */
static void write_documents(struct several *several)
{
    qr_err ignored = {0};
    const bool is_written = several->document_count > 0 && write_to_index(several, &ignored) == QR_OK;
    for (size_t k = 0; k < several->document_count; k++) {
        const size_t i = several->positions[k];
        struct qr_attempt *attempt = &several->attempts[i];
        struct qr_outcome *outcome = several->outcomes[i];
        if (!is_written) {
            leave_alone(several, i);
            continue;
        }
        qr_reach_chunks(attempt, several->results[i]);
        set_outcome(attempt, several->documents[k].is_wanted ? QR_OK : qr_attempt_fail_lost(&outcome->error),
                    several->results[i], outcome);
    }
    several->document_count = 0;
}

void qr_handle_process_documents(struct qr_job_run *const *runs, size_t count, struct qr_outcome *const *ret_outcomes)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct several *several = qr_arena_alloc(&arena, sizeof *several);
    if (!several) {
        for (size_t i = 0; i < count; i++) {
            ret_outcomes[i]->kind = QR_OUTCOME_ALONE;
        }
        return;
    }
    *several = (struct several){.outcomes = ret_outcomes, .count = count};
    qr_attempts_begin(several->attempts, runs, count, &arena, ret_outcomes);
    take_sources(several);
    const struct qr_attempt *before = NULL; /* the last one that waits to be written */
    for (size_t i = 0; i < count; i++) {
        if (!is_open(several, i)) {
            continue;
        }
        if (before && !qr_uuid_equal(before->base.id, several->attempts[i].base.id)) {
            write_documents(several);
        }
        before = take_one(several, i) ? &several->attempts[i] : before;
    }
    write_documents(several);
    for (size_t i = 0; i < count; i++) {
        source_done(&several->sources[i]);
    }
}
