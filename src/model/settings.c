/* Owns the settings of a base: which there are, their defaults and their ranges. Pure.
 *
 * A setting that is absent keeps its default, which stands in DEFAULTS. An error names the setting by its whole path and
 * says what is allowed; it never quotes a value, which may be a secret. */
#include "model/settings_read.h"

#include "base/hash.h"
#include "model/item.h"
#include "model/source_plan.h"

#include <stddef.h>
#include <stdio.h>

enum {
    PREFIX_BYTES_MAX = 500,
    INPUTS_MAX = 2048,
    REQUEST_TOKENS_MAX = 10 * 1000 * 1000,
    REQUEST_BYTES_MIN = 10 * 1000,
    REQUEST_BYTES_MAX = 64 * 1000 * 1000,
    INPUT_TOKENS_MAX = 1000 * 1000,
    CHUNK_TOKENS_MIN = 16,
    CHUNK_TOKENS_MAX = 8192,
    SEPARATOR_BYTES_MAX = 100,
    ARGUMENTS_MAX = 64,
    EXTENSIONS_MAX = 200,
    FILE_BYTES_DEFAULT = 100 * 1000 * 1000,
    ITEMS_DEFAULT = 1000 * 1000,
};

static const struct qr_settings DEFAULTS = {
    .embedding = {.provider = "none",
                  .model = "",
                  .url = "",
                  .api_key_env = "",
                  .api_key_file = "",
                  .document_prefix = "",
                  .query_prefix = "",
                  .encoding = "",
                  /* what every known server takes; hosted ones take far more inputs, and count tokens differently */
                  .limits = {.inputs = 32, .request_tokens = 100 * 1000, .request_bytes = 1500 * 1000}},
    .chunking = {.strategy = "structured", .size_tokens = 400, .overlap_tokens = 0, .separator = "\n\n"},
    .retrieval = {.mode = "auto",
                  .top_k = 10,
                  .fusion = "weighted",
                  .text_weight = 0.5,
                  .vector_weight = 0.5,
                  .rerank = QR_RERANK_DEFAULTS},
    .file_processor = {.kind = "none", .docling = QR_DOCLING_DEFAULTS},
    .assets = {.analysis = "off", .vision = QR_VISION_DEFAULTS},
    .recovery = QR_RECOVERY_RESUME,
    .limits = {.file_bytes_max = FILE_BYTES_DEFAULT, .items_max = ITEMS_DEFAULT, .depth_max = QR_ITEM_DEPTH_MAX},
};

/* ---- sections ---- */

static qr_rc read_embedding_limits(const struct qr_section *above, struct qr_embedding_settings *embedding)
{
    struct qr_section section = {0};
    QR_TRY(qr_section_open(
        above, "limits", "embedding.limits.",
        "inputs request_tokens request_bytes input_tokens requests_a_minute tokens_a_minute in_flight", &section));
    QR_TRY(qr_section_number(&section, "inputs", 1, INPUTS_MAX, &embedding->limits.inputs));
    QR_TRY(qr_section_number(&section, "request_tokens", 1, REQUEST_TOKENS_MAX, &embedding->limits.request_tokens));
    QR_TRY(qr_section_number(&section, "request_bytes", REQUEST_BYTES_MIN, REQUEST_BYTES_MAX,
                             &embedding->limits.request_bytes));
    QR_TRY(qr_section_number(&section, "input_tokens", 0, INPUT_TOKENS_MAX, &embedding->limits.input_tokens));
    return qr_section_endpoint_limits(&section, &embedding->limits.requests_a_minute,
                                      &embedding->limits.tokens_a_minute, &embedding->limits.in_flight);
}

static qr_rc check_openai(const struct qr_section *section, struct qr_embedding_settings *embedding)
{
    if (embedding->model[0] == '\0') {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                       "embedding.model must be given where embedding.provider is \"openai\"");
    }
    embedding->url = embedding->url[0] ? embedding->url : "https://api.openai.com/v1";
    return QR_OK;
}

static qr_rc read_embedding(const struct qr_section *above, struct qr_embedding_settings *embedding)
{
    struct qr_section section = {0};
    int64_t dimensions = embedding->dimensions;
    QR_TRY(
        qr_section_open(above, "embedding", "embedding.",
                        "provider model url api_key_env api_key_file dimensions document_prefix query_prefix encoding "
                        "limits",
                        &section));
    QR_TRY(qr_section_word(&section, "provider", "none hash openai", &embedding->provider));
    QR_TRY(qr_section_name(&section, "model", &embedding->model));
    QR_TRY(qr_section_url(&section, "http://localhost:11434/v1", "/embeddings", &embedding->url));
    QR_TRY(qr_section_key_place(&section, &embedding->api_key_env, &embedding->api_key_file));
    QR_TRY(qr_section_number(&section, "dimensions", 0, QR_DIMENSIONS_MAX, &dimensions));
    embedding->dimensions = (int)dimensions;
    QR_TRY(qr_section_text(&section, "document_prefix", PREFIX_BYTES_MAX, &embedding->document_prefix));
    QR_TRY(qr_section_text(&section, "query_prefix", PREFIX_BYTES_MAX, &embedding->query_prefix));
    QR_TRY(qr_section_word(&section, "encoding", "float base64", &embedding->encoding));
    QR_TRY(read_embedding_limits(&section, embedding));
    return strcmp(embedding->provider, "openai") == 0 ? check_openai(&section, embedding) : QR_OK;
}

static qr_rc read_chunking(const struct qr_section *above, struct qr_settings *settings)
{
    struct qr_section section = {0};
    QR_TRY(qr_section_open(above, "chunking", "chunking.", "strategy size_tokens overlap_tokens separator", &section));
    QR_TRY(qr_section_word(&section, "strategy", "structured separator", &settings->chunking.strategy));
    QR_TRY(qr_section_number(&section, "size_tokens", CHUNK_TOKENS_MIN, CHUNK_TOKENS_MAX,
                             &settings->chunking.size_tokens));
    /* more would repeat most of the text in every chunk, and near the whole size never end */
    QR_TRY(qr_section_number(&section, "overlap_tokens", 0, settings->chunking.size_tokens / 2,
                             &settings->chunking.overlap_tokens));
    QR_TRY(qr_section_text(&section, "separator", SEPARATOR_BYTES_MAX, &settings->chunking.separator));
    if (settings->chunking.separator[0] == '\0') {
        return qr_fail(section.err, QR_CODE_INVALID_VALUE, "chunking.separator must not be empty");
    }
    return QR_OK;
}

static qr_rc read_retrieval(const struct qr_section *above, struct qr_settings *settings)
{
    struct qr_section section = {0}, weights = {0};
    QR_TRY(qr_section_open(above, "retrieval", "retrieval.", "mode top_k threshold fusion weights rerank", &section));
    QR_TRY(qr_section_word(&section, "mode", "auto text vector hybrid", &settings->retrieval.mode));
    QR_TRY(qr_section_number(&section, "top_k", 1, QR_TOP_K_MAX, &settings->retrieval.top_k));
    QR_TRY(qr_section_part(&section, "threshold", &settings->retrieval.threshold));
    QR_TRY(qr_section_word(&section, "fusion", "weighted rrf", &settings->retrieval.fusion));
    QR_TRY(qr_section_open(&section, "weights", "retrieval.weights.", "text vector", &weights));
    QR_TRY(qr_section_part(&weights, "text", &settings->retrieval.text_weight));
    QR_TRY(qr_section_part(&weights, "vector", &settings->retrieval.vector_weight));
    if (settings->retrieval.text_weight + settings->retrieval.vector_weight <= 0) {
        return qr_fail(section.err, QR_CODE_INVALID_VALUE, "one of retrieval.weights must be above 0");
    }
    return qr_settings_read_rerank(&section, &settings->retrieval.rerank);
}

/* ".PDF" and "pdf" mean the same. */
static qr_rc spell_extension(const struct qr_section *section, const char **extension)
{
    char small[QR_EXTENSION_SIZE];
    const char *given = *extension[0] == '.' ? *extension + 1 : *extension;
    const char *name = qr_arena_printf(section->arena, "x.%s", given);
    if (!name) {
        return qr_section_out_of_memory(section->err);
    }
    qr_source_extension(qr_str_of(name), small);
    if (strlen(small) != strlen(given) || small[0] == '\0') {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                       "%sextensions must hold the last part of file names, such as \"pdf\", of at most %d bytes",
                       section->path, (int)QR_EXTENSION_SIZE - 1);
    }
    *extension = qr_arena_copy(section->arena, qr_str_of(small));
    return *extension ? QR_OK : qr_section_out_of_memory(section->err);
}

static qr_rc read_processor(const struct qr_section *above, struct qr_settings *settings)
{
    struct qr_section section = {0};
    const char **argv, **extensions;
    size_t argc, count;
    QR_TRY(qr_section_open(above, "file_processor", "file_processor.",
                           "kind argv extensions url api_key_env api_key_file options limits", &section));
    QR_TRY(qr_section_word(&section, "kind", "none command docling", &settings->file_processor.kind));
    QR_TRY(qr_section_list(&section, "argv", ARGUMENTS_MAX, QR_PATH_BYTES_MAX, &argv, &argc));
    QR_TRY(qr_section_list(&section, "extensions", EXTENSIONS_MAX, QR_EXTENSION_SIZE, &extensions, &count));
    for (size_t i = 0; i < count; i++) {
        QR_TRY(spell_extension(&section, &extensions[i]));
    }
    if (strcmp(settings->file_processor.kind, "command") == 0 && argc == 0) {
        return qr_fail(section.err, QR_CODE_INVALID_VALUE,
                       "file_processor.argv must not be empty where file_processor.kind is \"command\"");
    }
    if (strcmp(settings->file_processor.kind, "none") != 0 && count == 0) {
        return qr_fail(section.err, QR_CODE_INVALID_VALUE,
                       "file_processor.extensions must not be empty where file_processor.kind is \"%s\"",
                       settings->file_processor.kind);
    }
    QR_TRY(qr_settings_read_docling(&section, strcmp(settings->file_processor.kind, "docling") == 0,
                                    &settings->file_processor.docling));
    settings->file_processor.argv = argv;
    settings->file_processor.argc = argc;
    settings->file_processor.extensions = extensions;
    settings->file_processor.extension_count = count;
    return QR_OK;
}

static qr_rc read_limits(const struct qr_section *above, struct qr_settings *settings)
{
    struct qr_section section = {0};
    QR_TRY(qr_section_open(above, "limits", "limits.", "file_bytes_max items_max depth_max", &section));
    QR_TRY(qr_section_number(&section, "file_bytes_max", 1, INT32_MAX, &settings->limits.file_bytes_max));
    QR_TRY(qr_section_number(&section, "items_max", 1, INT32_MAX, &settings->limits.items_max));
    return qr_section_number(&section, "depth_max", 1, QR_ITEM_DEPTH_MAX, &settings->limits.depth_max);
}

static qr_rc read_others(const struct qr_section *above, struct qr_settings *settings)
{
    struct qr_section assets;
    const char *recovery = "resume";
    QR_TRY(qr_section_open(above, "assets", "assets.", "analysis vision", &assets));
    QR_TRY(qr_section_word(&assets, "analysis", "off test vision", &settings->assets.analysis));
    QR_TRY(
        qr_settings_read_vision(&assets, strcmp(settings->assets.analysis, "vision") == 0, &settings->assets.vision));
    QR_TRY(qr_section_word(above, "recovery", "resume abandon", &recovery));
    settings->recovery = strcmp(recovery, "abandon") == 0 ? QR_RECOVERY_ABANDON : QR_RECOVERY_RESUME;
    return QR_OK;
}

/* ---- the whole ---- */

qr_rc qr_settings_parse(const json_t *object, struct qr_arena *arena, struct qr_settings *ret_settings, qr_err *err)
{
    struct qr_settings settings = DEFAULTS;
    const struct qr_section whole = {object, "", arena, err};
    if (object && !json_is_object(object)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the settings of a base must be a JSON object");
    }
    QR_TRY(
        qr_json_require_fields(object, "", "embedding chunking retrieval file_processor assets recovery limits", err));
    QR_TRY(read_embedding(&whole, &settings.embedding));
    QR_TRY(read_chunking(&whole, &settings));
    QR_TRY(read_retrieval(&whole, &settings));
    QR_TRY(read_processor(&whole, &settings));
    QR_TRY(read_limits(&whole, &settings));
    QR_TRY(read_others(&whole, &settings));
    *ret_settings = settings;
    return QR_OK;
}

qr_rc qr_settings_parse_text(const char *text, struct qr_arena *arena, struct qr_settings *ret_settings, qr_err *err)
{
    QR_JSON *object = NULL;
    if (qr_str_trim(qr_str_of(text)).len > 0) {
        QR_TRY(qr_json_parse(qr_str_of(text), &QR_JSON_REQUEST_LIMITS, &object, err));
    }
    return qr_settings_parse(object, arena, ret_settings, err);
}

bool qr_settings_has_processor(const struct qr_settings *settings, qr_str name)
{
    char extension[QR_EXTENSION_SIZE];
    qr_source_extension(name, extension);
    if (strcmp(settings->file_processor.kind, "none") == 0) {
        return false;
    }
    for (size_t i = 0; i < settings->file_processor.extension_count; i++) {
        if (strcmp(settings->file_processor.extensions[i], extension) == 0) {
            return true;
        }
    }
    return false;
}

bool qr_embedding_settings_equal(const struct qr_embedding_settings *a, const struct qr_embedding_settings *b)
{
    return strcmp(a->provider, b->provider) == 0 && strcmp(a->model, b->model) == 0 && strcmp(a->url, b->url) == 0 &&
           strcmp(a->api_key_env, b->api_key_env) == 0 && strcmp(a->api_key_file, b->api_key_file) == 0 &&
           a->dimensions == b->dimensions && strcmp(a->document_prefix, b->document_prefix) == 0 &&
           strcmp(a->query_prefix, b->query_prefix) == 0;
}

void qr_embedding_fingerprint(const struct qr_embedding_settings *settings,
                              char ret_fingerprint[static QR_FINGERPRINT_SIZE])
{
    unsigned char parts[3 * QR_HASH_BYTES + sizeof(int32_t)], hash[QR_HASH_BYTES];
    const uint32_t dimensions = (uint32_t)settings->dimensions;
    if (strcmp(settings->provider, "none") == 0) {
        ret_fingerprint[0] = '\0';
        return;
    }
    qr_hash_128(qr_str_of(settings->provider), parts);
    qr_hash_128(qr_str_of(settings->model), parts + QR_HASH_BYTES);
    qr_hash_128(qr_str_of(settings->document_prefix), parts + (ptrdiff_t)(2 * QR_HASH_BYTES));
    for (int i = 0; i < 4; i++) {
        parts[3 * QR_HASH_BYTES + i] = (unsigned char)(dimensions >> (8 * i));
    }
    qr_hash_128((qr_str){(const char *)parts, sizeof parts}, hash);
    int len = snprintf(ret_fingerprint, QR_FINGERPRINT_SIZE, "%.*s:", 14, settings->provider);
    for (size_t i = 0; i < sizeof hash; i++) {
        len += snprintf(ret_fingerprint + len, (size_t)(QR_FINGERPRINT_SIZE - len), "%02x", hash[i]);
    }
}
