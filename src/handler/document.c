/* Documents: canonical text, assets, and the way to a file processor.
 *
 * An asset is known again by its bytes: its id is made of the item's id and them. So the analysis of a picture is kept when
 * the document is done once more (with the text that was read from it, or after a change elsewhere), and a document cannot
 * be sent in circles by its own assets (TYPE-7). */
#include "handler/document.h"

#include "base/base64.h"
#include "base/fs.h"
#include "base/hash.h"
#include "convert/pictures.h"
#include "convert/vision_wire.h"
#include "handler/reading.h"
#include "handler/ticket.h"
#include "source/file.h"
#include "store/assets.h"

enum { ASSETS_MAX = 1000 };

/* ---- warnings and facts ---- */

qr_rc qr_document_warn(struct qr_attempt *attempt, struct qr_stage_result *result, const char *code,
                       const char *message, qr_err *err)
{
    struct qr_warning *warnings = qr_arena_array(attempt->run->arena, result->warning_count + 1, sizeof warnings[0]);
    if (!warnings) {
        return qr_handler_out_of_memory(err);
    }
    if (result->warning_count) {
        memcpy(warnings, result->warnings, result->warning_count * sizeof warnings[0]);
    }
    warnings[result->warning_count] = (struct qr_warning){code, message};
    result->warnings = warnings;
    result->warning_count++;
    return QR_OK;
}

void qr_document_keep_facts(const struct qr_item *item, struct qr_stage_result *result)
{
    result->source_was_read = true;
    result->size_bytes = item->size_bytes;
    result->mtime_ns = item->mtime_ns;
    result->has_hash = item->has_hash;
    memcpy(result->content_hash, item->content_hash, sizeof result->content_hash);
}

void qr_document_discard(const struct qr_attempt *attempt, const struct qr_stage_result *result)
{
    const struct qr_artifacts *artifacts = attempt->context->artifacts;
    if (result->text) {
        qr_artifact_discard(artifacts, result->text);
    }
    if (result->source) {
        qr_artifact_discard(artifacts, result->source);
    }
    for (size_t i = 0; i < result->asset_count; i++) {
        qr_artifact_discard(artifacts, &result->assets[i].bytes);
    }
}

/* ---- assets ---- */

static qr_uuid asset_id(qr_uuid item_id, qr_str bytes)
{
    char item[QR_UUID_TEXT_SIZE];
    unsigned char hash[QR_HASH_256_BYTES];
    qr_uuid id;
    qr_uuid_format(item_id, item);
    qr_hash_256(qr_str_of(item), bytes, hash);
    memcpy(id.bytes, hash, QR_UUID_BYTES);
    return id;
}

static bool is_known(const struct qr_stage_result *result, qr_uuid id)
{
    for (size_t i = 0; i < result->asset_count; i++) {
        if (qr_uuid_equal(result->assets[i].id, id)) {
            return true; /* the same picture twice in one document */
        }
    }
    return false;
}

static qr_rc add_asset(struct qr_attempt *attempt, struct qr_stage_result *result, qr_str bytes, const char *mime,
                       size_t line, qr_err *err)
{
    struct qr_arena *arena = attempt->run->arena;
    struct qr_new_asset *asset = &result->assets[result->asset_count];
    const qr_uuid id = asset_id(attempt->item.id, bytes);
    if (result->asset_count == ASSETS_MAX || is_known(result, id)) {
        return QR_OK;
    }
    *asset = (struct qr_new_asset){
        .id = id, .kind = "picture", .mime = mime, .place = qr_arena_printf(arena, "line %zu", line)};
    if (!asset->place) {
        return qr_handler_out_of_memory(err);
    }
    QR_TRY(qr_artifact_prepare(attempt->context->artifacts, qr_uuid_next(attempt->context->ids), QR_ARTIFACT_ASSET,
                               bytes, arena, &asset->bytes, err));
    result->asset_count++;
    return QR_OK;
}

static qr_rc make_room_for_assets(struct qr_attempt *attempt, struct qr_stage_result *result, qr_err *err)
{
    result->assets = qr_arena_array(attempt->run->arena, ASSETS_MAX + 1, sizeof result->assets[0]);
    return result->assets ? QR_OK : qr_handler_out_of_memory(err);
}

/* Where the base's analysis is "test", a line like this is a picture whose bytes are what follows the comma: tests make
 * assets so. */
static qr_rc take_test_assets(struct qr_attempt *attempt, qr_str text, struct qr_stage_result *result, qr_err *err)
{
    const qr_str before = QR_STR("![asset](data:QUIRE-TEST,");
    if (strcmp(attempt->settings.assets.analysis, "test") != 0 || !memmem(text.ptr, text.len, before.ptr, before.len)) {
        return QR_OK;
    }
    QR_TRY(make_room_for_assets(attempt, result, err));
    for (size_t line_number = 1; text.len; line_number++) {
        qr_str line = qr_str_trim(qr_str_split(&text, '\n'));
        if (qr_str_starts_with(line, before) && qr_str_ends_with(line, QR_STR(")"))) {
            const qr_str bytes = {line.ptr + before.len, line.len - before.len - 1};
            QR_TRY(add_asset(attempt, result, bytes, "application/octet-stream", line_number, err));
        }
    }
    return QR_OK;
}

/* The text without what stands in it as base64, which is nothing to search in; each such picture is an asset. What cannot be
 * one stays as it is. */
static qr_rc take_pictures(struct qr_attempt *attempt, struct qr_stage_result *result, qr_str *text, qr_err *err)
{
    struct qr_pictures pictures = {.text = *text};
    struct qr_embedded_picture picture;
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0}, left = {0};
    size_t from = 0;
    if (strcmp(attempt->settings.assets.analysis, "vision") != 0 || !qr_pictures_next(&pictures, &picture)) {
        return QR_OK;
    }
    QR_TRY(make_room_for_assets(attempt, result, err));
    do {
        qr_buf_clear(&bytes);
        const bool is_base64 = qr_base64_read(picture.base64, &bytes);
        const char *mime = qr_picture_mime(qr_buf_str(&bytes));
        QR_TRY(qr_buf_check(&bytes, err));
        if (is_base64 && mime) {
            const char *kept = qr_arena_copy(attempt->run->arena, qr_buf_str(&bytes)); /* until it is adopted */
            QR_TRY(kept ? add_asset(attempt, result, (qr_str){kept, bytes.len}, mime, picture.line, err)
                        : qr_handler_out_of_memory(err));
            qr_buf_add(&left, (qr_str){text->ptr + from, picture.start - from});
            from = picture.end;
        }
    } while (qr_pictures_next(&pictures, &picture));
    qr_buf_add(&left, (qr_str){text->ptr + from, text->len - from});
    QR_TRY(qr_buf_check(&left, err));
    const char *copy = qr_arena_copy(attempt->run->arena, qr_buf_str(&left));
    *text = (qr_str){copy, left.len};
    return copy ? QR_OK : qr_handler_out_of_memory(err);
}

struct asset_texts {
    struct qr_attempt *attempt;
    struct qr_stage_result *result;
    struct qr_buf *out;
    size_t start;
};

static void add_section(struct qr_buf *out, const struct qr_asset *asset)
{
    qr_buf_printf(out, "\n\n## %s, %s\n\n", asset->kind, asset->place);
    qr_buf_add_text(out, asset->text);
    qr_buf_add_char(out, '\n');
}

static qr_rc find_asset_texts(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct asset_texts *texts = arg;
    struct qr_stage_result *result = texts->result;
    qr_buf_clear(texts->out);
    for (size_t i = 0; i < result->asset_count; i++) {
        bool found;
        struct qr_asset asset;
        QR_TRY(qr_asset_find(tx, result->assets[i].id, texts->attempt->run->arena, &found, &asset, err));
        result->assets[i].is_analysed = found && asset.status >= QR_ANALYSIS_COMPLETED;
        if (found && asset.status == QR_ANALYSIS_COMPLETED && asset.text[0]) {
            add_section(texts->out, &asset);
        }
    }
    return QR_OK;
}

/* The text with a section for each asset that was read. */
static qr_rc add_asset_texts(struct qr_attempt *attempt, struct qr_stage_result *result, qr_str *text, qr_err *err)
{
    if (result->asset_count == 0) {
        return QR_OK;
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf sections = {0};
    struct asset_texts texts = {.attempt = attempt, .result = result, .out = &sections};
    QR_TRY(qr_db_read(attempt->run->db, find_asset_texts, &texts, err));
    QR_TRY(qr_buf_check(&sections, err));
    if (sections.len == 0) {
        return QR_OK;
    }
    char *all = qr_arena_alloc(attempt->run->arena, text->len + sections.len + 1);
    if (!all) {
        return qr_handler_out_of_memory(err);
    }
    memcpy(all, text->ptr, text->len);
    memcpy(all + text->len, sections.data, sections.len);
    *text = (qr_str){all, text->len + sections.len};
    return QR_OK;
}

/* ---- the text ---- */

qr_rc qr_document_keep_text(struct qr_attempt *attempt, qr_str text, struct qr_stage_result *result, qr_err *err)
{
    struct qr_new_artifact *artifact = qr_arena_alloc(attempt->run->arena, sizeof *artifact);
    if (!artifact) {
        return qr_handler_out_of_memory(err);
    }
    QR_TRY(qr_artifact_prepare(attempt->context->artifacts, qr_uuid_next(attempt->context->ids), QR_ARTIFACT_TEXT, text,
                               attempt->run->arena, artifact, err));
    result->text = artifact;
    return QR_OK;
}

qr_rc qr_document_take(struct qr_attempt *attempt, qr_str bytes, const char *name, struct qr_stage_result *result,
                       qr_str *ret_text, qr_err *err)
{
    struct qr_converted converted = {0};
    QR_TRY(qr_attempt_convert(attempt, bytes, name, &converted, err));
    return qr_document_take_converted(attempt, &converted, result, ret_text, err);
}

qr_rc qr_document_take_converted(struct qr_attempt *attempt, const struct qr_converted *converted,
                                 struct qr_stage_result *result, qr_str *ret_text, qr_err *err)
{
    qr_str text = converted->text;
    result->title = converted->title;
    result->mime = attempt->item.mime[0] ? NULL : converted->source_mime;
    result->warnings = converted->warnings;
    result->warning_count = converted->warning_count;
    QR_TRY(take_test_assets(attempt, text, result, err));
    QR_TRY(take_pictures(attempt, result, &text, err));
    QR_TRY(add_asset_texts(attempt, result, &text, err));
    QR_TRY(qr_document_keep_text(attempt, text, result, err));
    *ret_text = text;
    return QR_OK;
}

/* ---- file processors ---- */

/* Owned bytes have no path, and a path whose links must not be followed cannot be handed on: a copy is made below the work
 * folder, under a name that the end of the ticket finds again. */
static const char *submitted_path(const struct qr_attempt *attempt)
{
    char item[QR_UUID_TEXT_SIZE];
    qr_uuid_format(attempt->item.id, item);
    return qr_arena_printf(attempt->run->arena, "%s/source-%s-%lld", attempt->context->work_dir, item,
                           (long long)attempt->item.generation);
}

struct owned_source {
    const struct qr_attempt *attempt;
    bool found;
    struct qr_artifact artifact;
};

static qr_rc find_owned(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct owned_source *owned = arg;
    return qr_artifact_find(tx, owned->attempt->item.id, QR_ARTIFACT_SOURCE, 0, owned->attempt->run->arena,
                            &owned->found, &owned->artifact, err);
}

static qr_rc write_copy(struct qr_attempt *attempt, qr_str bytes, const char **ret_path, qr_err *err)
{
    const char *path = submitted_path(attempt);
    const struct qr_io *io = attempt->context->artifacts->io ? attempt->context->artifacts->io : qr_io_system();
    if (!path) {
        return qr_handler_out_of_memory(err);
    }
    QR_TRY(qr_fs_make_dirs(io, attempt->context->work_dir, 0700, err));
    QR_TRY(qr_fs_replace(io, path, bytes, 0600, err));
    *ret_path = path;
    return QR_OK;
}

/* Where a processor finds the bytes. */
static qr_rc path_to_submit(struct qr_attempt *attempt, const char **ret_path, qr_err *err)
{
    const struct qr_item *item = &attempt->item;
    struct owned_source owned = {.attempt = attempt};
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
    struct qr_file_facts facts;
    QR_TRY(qr_db_read(attempt->run->db, find_owned, &owned, err));
    if (owned.found && (owned.artifact.generation == item->generation || item->source.len == 0)) {
        QR_TRY(qr_artifact_read(attempt->context->artifacts, attempt->run->db, &owned.artifact, &bytes, err));
        return write_copy(attempt, qr_buf_str(&bytes), ret_path, err);
    }
    if (item->no_links) {
        QR_TRY(qr_file_read((struct qr_file_place){item->source.ptr, true}, attempt->settings.limits.file_bytes_max,
                            &bytes, &facts, err));
        return write_copy(attempt, qr_buf_str(&bytes), ret_path, err);
    }
    *ret_path = item->source.ptr;
    return QR_OK;
}

/* A file that is given to it once more goes on being counted. */
static qr_rc hand_over(struct qr_attempt *attempt, struct qr_processor *processor, const char *path,
                       const char **ret_ticket, qr_err *err)
{
    struct qr_arena *arena = attempt->run->arena;
    struct qr_ticket before = {0}, ticket = {.handed_count = 1};
    if (attempt->item.ticket[0]) {
        QR_TRY(qr_ticket_read(attempt->item.ticket, arena, &before, err));
        ticket.handed_count = before.handed_count + 1;
    }
    QR_TRY(processor->submit(processor, path, attempt->item.name, arena, &ticket.name, err));
    *ret_ticket = qr_ticket_write(&ticket, arena);
    return *ret_ticket ? QR_OK : qr_handler_out_of_memory(err);
}

qr_rc qr_document_submit(struct qr_attempt *attempt, struct qr_stage_result *result, qr_err *err)
{
    struct qr_processor *processor;
    const char *path;
    QR_TRY(qr_attempt_processor(attempt, &processor, err));
    QR_TRY(path_to_submit(attempt, &path, err));
    QR_TRY(qr_attempt_check(attempt, err)); /* GEN-1: it may be paid for */
    QR_TRY(hand_over(attempt, processor, path, &result->ticket, err));
    result->reached = QR_REACHED_TICKET;
    return QR_OK;
}

void qr_document_forget_submitted(struct qr_attempt *attempt)
{
    qr_attempt_cancel_ticket(attempt, &attempt->item);
    const char *path = submitted_path(attempt);
    const struct qr_io *io = attempt->context->artifacts->io ? attempt->context->artifacts->io : qr_io_system();
    if (path && attempt->context->work_dir) {
        (void)!qr_fs_remove(io, path, NULL);
    }
}
