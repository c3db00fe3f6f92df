/* The settings of servers elsewhere: reranking, vision, conversion. Those of embeddings are in settings.c. Pure. */
#include "model/settings_read.h"

enum {
    DOCUMENT_BYTES_MIN = 100,
    DOCUMENT_BYTES_MAX = 1000 * 1000,
    REQUEST_BYTES_MIN = 1000,
    REQUEST_BYTES_MAX = 16 * 1000 * 1000,
    PROMPT_BYTES_MAX = 4000,
    ANSWER_TOKENS_MAX = 100 * 1000,
    PICTURE_BYTES_MIN = 1000,
    PICTURE_BYTES_MAX = 40 * 1000 * 1000,
    OPTIONS_MAX = 64,
    OPTION_NAME_BYTES_MAX = 64,
    OPTION_BYTES_MAX = 1000,
};

/* url, model and where the key is, of the section itself; the limits of its endpoint, of `limits`. */
static qr_rc read_service(const struct qr_section *section, const struct qr_section *limits, const char *example,
                          const char *operation, struct qr_service_settings *service)
{
    QR_TRY(qr_section_url(section, example, operation, &service->url));
    QR_TRY(qr_section_name(section, "model", &service->model));
    QR_TRY(qr_section_key_place(section, &service->api_key_env, &service->api_key_file));
    return qr_section_endpoint_limits(limits, &service->requests_a_minute, &service->tokens_a_minute,
                                      &service->in_flight);
}

static qr_rc fail_missing(const struct qr_section *section, const char *name, const char *where, const char *value)
{
    return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%s%s must be given where %s is \"%s\"", section->path, name,
                   where, value);
}

/* ---- rerank ---- */

static const char *rerank_url(const char *provider)
{
    return strcmp(provider, "cohere") == 0 ? "https://api.cohere.com/v2"
           : strcmp(provider, "jina") == 0 ? "https://api.jina.ai/v1"
                                           : "";
}

qr_rc qr_settings_read_rerank(const struct qr_section *above, struct qr_rerank_settings *rerank)
{
    struct qr_section section = {0}, limits = {0};
    QR_TRY(qr_section_open(above, "rerank", "retrieval.rerank.",
                           "provider url model api_key_env api_key_file top_n limits", &section));
    QR_TRY(qr_section_open(&section, "limits", "retrieval.rerank.limits.",
                           "document_bytes request_bytes requests_a_minute tokens_a_minute in_flight", &limits));
    QR_TRY(qr_section_word(&section, "provider", "none cohere jina tei", &rerank->provider));
    QR_TRY(read_service(&section, &limits, "http://localhost:8080", "/rerank", &rerank->service));
    QR_TRY(qr_section_number(&section, "top_n", 1, QR_RERANK_TOP_N_MAX, &rerank->top_n));
    QR_TRY(
        qr_section_number(&limits, "document_bytes", DOCUMENT_BYTES_MIN, DOCUMENT_BYTES_MAX, &rerank->document_bytes));
    QR_TRY(qr_section_number(&limits, "request_bytes", REQUEST_BYTES_MIN, REQUEST_BYTES_MAX, &rerank->request_bytes));
    if (rerank->service.url[0] == '\0') {
        rerank->service.url = rerank_url(rerank->provider);
    }
    return rerank->service.url[0] || strcmp(rerank->provider, "tei") != 0
               ? QR_OK
               : fail_missing(&section, "url", "retrieval.rerank.provider", rerank->provider);
}

static bool same_service(const struct qr_service_settings *a, const struct qr_service_settings *b)
{
    return strcmp(a->url, b->url) == 0 && strcmp(a->model, b->model) == 0 &&
           strcmp(a->api_key_env, b->api_key_env) == 0 && strcmp(a->api_key_file, b->api_key_file) == 0;
}

bool qr_rerank_settings_equal(const struct qr_rerank_settings *a, const struct qr_rerank_settings *b)
{
    return strcmp(a->provider, b->provider) == 0 && same_service(&a->service, &b->service);
}

/* ---- vision ---- */

qr_rc qr_settings_read_vision(const struct qr_section *above, bool is_used, struct qr_vision_settings *vision)
{
    struct qr_section section = {0}, limits = {0};
    QR_TRY(qr_section_open(above, "vision", "assets.vision.",
                           "url model api_key_env api_key_file prompt max_tokens limits", &section));
    QR_TRY(qr_section_open(&section, "limits", "assets.vision.limits.",
                           "picture_bytes requests_a_minute tokens_a_minute in_flight", &limits));
    QR_TRY(read_service(&section, &limits, "http://localhost:11434/v1", "/chat/completions", &vision->service));
    QR_TRY(qr_section_text(&section, "prompt", PROMPT_BYTES_MAX, &vision->prompt));
    QR_TRY(qr_section_number(&section, "max_tokens", 0, ANSWER_TOKENS_MAX, &vision->max_tokens));
    QR_TRY(qr_section_number(&limits, "picture_bytes", PICTURE_BYTES_MIN, PICTURE_BYTES_MAX, &vision->picture_bytes));
    if (vision->service.url[0] == '\0') {
        vision->service.url = "https://api.openai.com/v1";
    }
    return vision->service.model[0] || !is_used ? QR_OK : fail_missing(&section, "model", "assets.analysis", "vision");
}

/* ---- docling ---- */

/* What Quire says itself; and `callbacks`, which would send results elsewhere. */
static bool is_ours(const char *name)
{
    static const char *const names[] = {"files",       "to_formats",     "image_export_mode",
                                        "target_type", "return_as_file", "callbacks"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_option_name(const char *name)
{
    const size_t len = strlen(name);
    return len > 0 && len <= OPTION_NAME_BYTES_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

static bool is_plain(const json_t *value)
{
    return json_is_string(value) ? json_string_length(value) <= OPTION_BYTES_MAX
                                 : json_is_boolean(value) || json_is_number(value);
}

/* As a field of a form has it; NULL when out of memory. */
static const char *option_text(const json_t *value, struct qr_arena *arena)
{
    if (json_is_string(value)) {
        return qr_arena_copy(arena, qr_str_of(json_string_value(value)));
    }
    if (json_is_boolean(value)) {
        return json_is_true(value) ? "true" : "false";
    }
    if (json_is_integer(value)) {
        return qr_arena_printf(arena, "%lld", (long long)json_integer_value(value));
    }
    return qr_arena_printf(arena, "%.15g", json_real_value(value));
}

/* An object in it may hold the key of a third service: there are none. */
static qr_rc add_option(const struct qr_section *section, const char *name, const json_t *value,
                        struct qr_form_field *fields, size_t *count)
{
    const bool is_list = json_is_array(value);
    const size_t value_count = is_list ? json_array_size(value) : 1;
    for (size_t i = 0; i < value_count; i++) {
        const json_t *one = is_list ? json_array_get(value, i) : value;
        if (!is_plain(one) || *count == OPTIONS_MAX) {
            return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                           "%soptions must hold texts of at most %d bytes, numbers, booleans, and lists of these; at "
                           "most %d in all",
                           section->path, (int)OPTION_BYTES_MAX, (int)OPTIONS_MAX);
        }
        struct qr_form_field *field = &fields[(*count)++];
        field->value = option_text(one, section->arena);
        field->name = qr_arena_copy(section->arena, qr_str_of(name));
        if (!field->name || !field->value) {
            return qr_section_out_of_memory(section->err);
        }
    }
    return QR_OK;
}

static qr_rc read_options(const struct qr_section *section, struct qr_docling_settings *docling)
{
    json_t *options = json_object_get(section->object, "options"), *value;
    struct qr_form_field *fields = qr_arena_array(section->arena, OPTIONS_MAX, sizeof *fields);
    const char *name;
    if (!fields) {
        return qr_section_out_of_memory(section->err);
    }
    if (options && !json_is_object(options)) {
        return qr_fail(section->err, QR_CODE_INVALID_VALUE, "%soptions must be an object", section->path);
    }
    json_object_foreach(options, name, value)
    {
        if (!is_option_name(name) || is_ours(name)) {
            return qr_fail(section->err, QR_CODE_INVALID_VALUE,
                           "%soptions must have names of docling-serve's options; the formats and the target are "
                           "given by Quire",
                           section->path);
        }
        QR_TRY(add_option(section, name, value, fields, &docling->option_count));
    }
    docling->options = fields;
    return QR_OK;
}

qr_rc qr_settings_read_docling(const struct qr_section *section, bool is_used, struct qr_docling_settings *docling)
{
    struct qr_section limits = {0};
    QR_TRY(qr_section_open(section, "limits", "file_processor.limits.", "requests_a_minute in_flight", &limits));
    QR_TRY(qr_section_url(section, "http://localhost:5001", "", &docling->service.url));
    QR_TRY(qr_section_key_place(section, &docling->service.api_key_env, &docling->service.api_key_file));
    QR_TRY(qr_section_endpoint_limits(&limits, &docling->service.requests_a_minute, &docling->service.tokens_a_minute,
                                      &docling->service.in_flight));
    QR_TRY(read_options(section, docling));
    return docling->service.url[0] || !is_used ? QR_OK : fail_missing(section, "url", "file_processor.kind", "docling");
}
