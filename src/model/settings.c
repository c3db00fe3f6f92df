/* Owns the settings of a base: which there are, their defaults and their ranges. Pure.
 *
 * A setting that is absent keeps its default, which stands in DEFAULTS. An error names the setting by its whole path and
 * says what is allowed; it never quotes a value, which may be a secret. */
#include "model/settings.h"

#include "model/item.h"
#include "model/source_plan.h"

enum {
    NAME_BYTES_MAX = 200,
    DIMENSIONS_MAX = 4096,
    CHUNK_TOKENS_MIN = 16,
    CHUNK_TOKENS_MAX = 8192,
    SEPARATOR_BYTES_MAX = 100,
    ARGUMENTS_MAX = 64,
    ARGUMENT_BYTES_MAX = 4096,
    EXTENSIONS_MAX = 200,
    FILE_BYTES_DEFAULT = 100 * 1000 * 1000,
    ITEMS_DEFAULT = 1000 * 1000,
};

static const struct qr_settings DEFAULTS = {
    .embedding = {.provider = "none", .model = ""},
    .chunking = {.strategy = "structured", .size_tokens = 400, .overlap_tokens = 0, .separator = "\n\n"},
    .retrieval = {.mode = "auto", .top_k = 10, .fusion = "weighted", .text_weight = 0.5, .vector_weight = 0.5},
    .file_processor = {.kind = "none"},
    .assets = {.analysis = "off"},
    .recovery = QR_RECOVERY_RESUME,
    .limits = {.file_bytes_max = FILE_BYTES_DEFAULT, .items_max = ITEMS_DEFAULT, .depth_max = QR_ITEM_DEPTH_MAX},
};

/* One object of the settings, and where it stands. */
struct section {
    const json_t *object; /* NULL = absent: every setting in it keeps its default */
    const char *path;     /* "chunking." */
    struct qr_arena *arena;
    qr_err *err;
};

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the settings of a base");
}

/* ---- values ---- */

static qr_rc read_text(const struct section *section, const char *name, size_t len_max, const char **setting)
{
    const json_t *value = json_object_get(section->object, name);
    if (!value) {
        return QR_OK;
    }
    if (!json_is_string(value) || json_string_length(value) > len_max) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must be text of at most %zu bytes", section->path,
                       name, len_max);
    }
    *setting = qr_arena_copy(section->arena, qr_str_of(json_string_value(value)));
    return *setting ? QR_OK : out_of_memory(section->err);
}

/* One of the words, which stand between single spaces. */
static qr_rc read_word(const struct section *section, const char *name, const char *words, const char **setting)
{
    const json_t *value = json_object_get(section->object, name);
    if (!value) {
        return QR_OK;
    }
    qr_str rest = qr_str_of(words);
    while (rest.len && json_is_string(value)) {
        const qr_str word = qr_str_split(&rest, ' ');
        if (qr_str_equal(word, qr_str_of(json_string_value(value)))) {
            *setting = qr_arena_copy(section->arena, word);
            return *setting ? QR_OK : out_of_memory(section->err);
        }
    }
    return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must be one of: %s", section->path, name, words);
}

static qr_rc read_number(const struct section *section, const char *name, int64_t min, int64_t max, int64_t *setting)
{
    const json_t *value = json_object_get(section->object, name);
    if (!value) {
        return QR_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must be a whole number from %lld to %lld",
                       section->path, name, (long long)min, (long long)max);
    }
    *setting = json_integer_value(value);
    return QR_OK;
}

/* From 0 to 1. */
static qr_rc read_part(const struct section *section, const char *name, double *setting)
{
    const json_t *value = json_object_get(section->object, name);
    if (!value) {
        return QR_OK;
    }
    if (!json_is_number(value) || !(json_number_value(value) >= 0 && json_number_value(value) <= 1)) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must be a number from 0 to 1", section->path, name);
    }
    *setting = json_number_value(value);
    return QR_OK;
}

/* A list of texts that are not empty. */
static qr_rc read_list(const struct section *section, const char *name, size_t count_max, size_t len_max,
                       const char ***ret_list, size_t *ret_count)
{
    const json_t *value = json_object_get(section->object, name);
    const size_t count = json_array_size(value);
    bool is_right = !value || (json_is_array(value) && count <= count_max);
    const char **list = qr_arena_array(section->arena, (is_right ? count : 0) + 1, sizeof list[0]);
    if (!list) {
        return out_of_memory(section->err);
    }
    for (size_t i = 0; is_right && i < count; i++) {
        const json_t *text = json_array_get(value, i);
        const size_t len = json_string_length(text); /* 0 where it is none */
        is_right = len > 0 && len <= len_max;
        list[i] = is_right ? qr_arena_copy(section->arena, qr_str_of(json_string_value(text))) : NULL;
        if (is_right && !list[i]) {
            return out_of_memory(section->err);
        }
    }
    if (!is_right) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                       "%s%s must be a list of at most %zu texts of 1 to %zu bytes", section->path, name, count_max,
                       len_max);
    }
    *ret_list = list;
    *ret_count = count;
    return QR_OK;
}

/* ---- sections ---- */

static qr_rc open_section(const struct section *above, const char *name, const char *path, const char *fields,
                          struct section *ret_section)
{
    const json_t *object = json_object_get(above->object, name);
    if (object && !json_is_object(object)) {
        return qr_fail(above->err, QR_CODE_INVALID_VALUE, "%s must be an object with the fields: %s", name, fields);
    }
    *ret_section = (struct section){object, path, above->arena, above->err};
    return object ? qr_json_require_fields(object, path, fields, above->err) : QR_OK;
}

static qr_rc read_embedding(const struct section *above, struct qr_settings *settings)
{
    struct section section = {0};
    int64_t dimensions = settings->embedding.dimensions;
    QR_TRY(open_section(above, "embedding", "embedding.", "provider model dimensions", &section));
    QR_TRY(read_word(&section, "provider", "none hash", &settings->embedding.provider));
    QR_TRY(read_text(&section, "model", NAME_BYTES_MAX, &settings->embedding.model));
    QR_TRY(read_number(&section, "dimensions", 0, DIMENSIONS_MAX, &dimensions));
    settings->embedding.dimensions = (int)dimensions;
    return QR_OK;
}

static qr_rc read_chunking(const struct section *above, struct qr_settings *settings)
{
    struct section section = {0};
    QR_TRY(open_section(above, "chunking", "chunking.", "strategy size_tokens overlap_tokens separator", &section));
    QR_TRY(read_word(&section, "strategy", "structured separator", &settings->chunking.strategy));
    QR_TRY(read_number(&section, "size_tokens", CHUNK_TOKENS_MIN, CHUNK_TOKENS_MAX, &settings->chunking.size_tokens));
    /* more would repeat most of the text in every chunk, and near the whole size never end */
    QR_TRY(read_number(&section, "overlap_tokens", 0, settings->chunking.size_tokens / 2,
                       &settings->chunking.overlap_tokens));
    QR_TRY(read_text(&section, "separator", SEPARATOR_BYTES_MAX, &settings->chunking.separator));
    if (settings->chunking.separator[0] == '\0') {
        return qr_fail(section.err, QR_CODE_INVALID_VALUE, "chunking.separator must not be empty");
    }
    return QR_OK;
}

static qr_rc read_retrieval(const struct section *above, struct qr_settings *settings)
{
    struct section section = {0}, weights = {0};
    QR_TRY(open_section(above, "retrieval", "retrieval.", "mode top_k threshold fusion weights", &section));
    QR_TRY(read_word(&section, "mode", "auto text vector hybrid", &settings->retrieval.mode));
    QR_TRY(read_number(&section, "top_k", 1, QR_TOP_K_MAX, &settings->retrieval.top_k));
    QR_TRY(read_part(&section, "threshold", &settings->retrieval.threshold));
    QR_TRY(read_word(&section, "fusion", "weighted rrf", &settings->retrieval.fusion));
    QR_TRY(open_section(&section, "weights", "retrieval.weights.", "text vector", &weights));
    QR_TRY(read_part(&weights, "text", &settings->retrieval.text_weight));
    QR_TRY(read_part(&weights, "vector", &settings->retrieval.vector_weight));
    if (settings->retrieval.text_weight + settings->retrieval.vector_weight <= 0) {
        return qr_fail(section.err, QR_CODE_INVALID_VALUE, "one of retrieval.weights must be above 0");
    }
    return QR_OK;
}

/* ".PDF" and "pdf" mean the same. */
static qr_rc spell_extension(const struct section *section, const char **extension)
{
    char small[QR_EXTENSION_SIZE];
    const char *given = *extension[0] == '.' ? *extension + 1 : *extension;
    const char *name = qr_arena_printf(section->arena, "x.%s", given);
    if (!name) {
        return out_of_memory(section->err);
    }
    qr_source_extension(qr_str_of(name), small);
    if (strlen(small) != strlen(given) || small[0] == '\0') {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                       "%sextensions must hold the last part of file names, such as \"pdf\", of at most %d bytes",
                       section->path, (int)QR_EXTENSION_SIZE - 1);
    }
    *extension = qr_arena_copy(section->arena, qr_str_of(small));
    return *extension ? QR_OK : out_of_memory(section->err);
}

static qr_rc read_processor(const struct section *above, struct qr_settings *settings)
{
    struct section section = {0};
    const char **argv, **extensions;
    size_t argc, count;
    QR_TRY(open_section(above, "file_processor", "file_processor.", "kind argv extensions", &section));
    QR_TRY(read_word(&section, "kind", "none command", &settings->file_processor.kind));
    QR_TRY(read_list(&section, "argv", ARGUMENTS_MAX, ARGUMENT_BYTES_MAX, &argv, &argc));
    QR_TRY(read_list(&section, "extensions", EXTENSIONS_MAX, QR_EXTENSION_SIZE, &extensions, &count));
    for (size_t i = 0; i < count; i++) {
        QR_TRY(spell_extension(&section, &extensions[i]));
    }
    if (strcmp(settings->file_processor.kind, "command") == 0 && (argc == 0 || count == 0)) {
        return qr_fail(section.err, QR_CODE_INVALID_VALUE,
                       "%s must not be empty where file_processor.kind is \"command\"",
                       argc == 0 ? "file_processor.argv" : "file_processor.extensions");
    }
    settings->file_processor.argv = argv;
    settings->file_processor.argc = argc;
    settings->file_processor.extensions = extensions;
    settings->file_processor.extension_count = count;
    return QR_OK;
}

static qr_rc read_limits(const struct section *above, struct qr_settings *settings)
{
    struct section section = {0};
    QR_TRY(open_section(above, "limits", "limits.", "file_bytes_max items_max depth_max", &section));
    QR_TRY(read_number(&section, "file_bytes_max", 1, INT32_MAX, &settings->limits.file_bytes_max));
    QR_TRY(read_number(&section, "items_max", 1, INT32_MAX, &settings->limits.items_max));
    return read_number(&section, "depth_max", 1, QR_ITEM_DEPTH_MAX, &settings->limits.depth_max);
}

static qr_rc read_others(const struct section *above, struct qr_settings *settings)
{
    struct section assets;
    const char *recovery = "resume";
    QR_TRY(open_section(above, "assets", "assets.", "analysis", &assets));
    QR_TRY(read_word(&assets, "analysis", "off test", &settings->assets.analysis));
    QR_TRY(read_word(above, "recovery", "resume abandon", &recovery));
    settings->recovery = strcmp(recovery, "abandon") == 0 ? QR_RECOVERY_ABANDON : QR_RECOVERY_RESUME;
    return QR_OK;
}

/* ---- the whole ---- */

qr_rc qr_settings_parse(const json_t *object, struct qr_arena *arena, struct qr_settings *ret_settings, qr_err *err)
{
    struct qr_settings settings = DEFAULTS;
    const struct section whole = {object, "", arena, err};
    if (object && !json_is_object(object)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the settings of a base must be a JSON object");
    }
    QR_TRY(
        qr_json_require_fields(object, "", "embedding chunking retrieval file_processor assets recovery limits", err));
    QR_TRY(read_embedding(&whole, &settings));
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

bool qr_settings_same_vectors(const struct qr_settings *a, const struct qr_settings *b)
{
    return strcmp(a->embedding.provider, b->embedding.provider) == 0 &&
           strcmp(a->embedding.model, b->embedding.model) == 0 && a->embedding.dimensions == b->embedding.dimensions;
}
