/* Any bytes as the settings of a base: what is accepted is within its ranges, and what a file name means to it is asked. */
#include "model/settings.h"
#include "model/source_plan.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_settings(const struct qr_settings *settings)
{
    const struct qr_embedding_settings *embedding = &settings->embedding;
    char fingerprint[QR_FINGERPRINT_SIZE];
    require(embedding->dimensions >= 0 && embedding->dimensions <= QR_DIMENSIONS_MAX && embedding->provider);
    require(embedding->limits.inputs > 0 && embedding->limits.request_bytes > 0 &&
            embedding->limits.request_tokens > 0);
    require(strcmp(embedding->provider, "openai") != 0 || (embedding->model[0] && embedding->url[0]));
    require(!strchr(embedding->url, '@') || strcmp(embedding->provider, "openai") != 0);
    qr_embedding_fingerprint(embedding, fingerprint);
    require(strlen(fingerprint) < sizeof fingerprint);
    require(settings->chunking.size_tokens >= 16 && settings->chunking.size_tokens <= 8192);
    require(settings->chunking.overlap_tokens >= 0 &&
            settings->chunking.overlap_tokens <= settings->chunking.size_tokens / 2);
    require(settings->chunking.separator[0] != '\0');
    require(settings->limits.file_bytes_max > 0 && settings->limits.items_max > 0);
    require(settings->limits.depth_max > 0 && settings->limits.depth_max <= QR_ITEM_DEPTH_MAX);
    require(settings->retrieval.rerank.top_n > 0 && settings->retrieval.rerank.top_n <= QR_RERANK_TOP_N_MAX);
    require(settings->retrieval.rerank.document_bytes > 0 && settings->retrieval.rerank.request_bytes > 0);
    require(strcmp(settings->assets.analysis, "vision") != 0 || settings->assets.vision.service.model[0]);
    require(strcmp(settings->file_processor.kind, "docling") != 0 || settings->file_processor.docling.service.url[0]);
    for (size_t i = 0; i < settings->file_processor.docling.option_count; i++) {
        require(settings->file_processor.docling.options[i].name[0] &&
                settings->file_processor.docling.options[i].value);
    }
    require(settings->file_processor.argv[settings->file_processor.argc] == NULL);
    for (size_t i = 0; i < settings->file_processor.extension_count; i++) {
        char again[QR_EXTENSION_SIZE], name[QR_EXTENSION_SIZE + 2] = "a.";
        strcat(name, settings->file_processor.extensions[i]);
        qr_source_extension(qr_str_of(name), again);
        require(strcmp(again, settings->file_processor.extensions[i]) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_settings settings;
    qr_err err = {0};
    qr_arena_init(&arena, 0);
    const qr_str bytes = {(const char *)data, size};
    const char *text = qr_arena_copy(&arena, bytes);
    require(text);
    const qr_rc rc = qr_settings_parse_text(text, &arena, &settings, &err);
    require(rc == QR_OK || rc == QR_INVALID || rc == QR_TOO_LARGE);
    if (rc == QR_OK) {
        check_settings(&settings);
        const bool has_processor = qr_settings_has_processor(&settings, bytes);
        const struct qr_source_plan plan = qr_source_plan(&(struct qr_source_facts){
            .type = QR_ITEM_FILE, .name = bytes, .has_processor = has_processor, .size_bytes = (int64_t)size});
        require(plan.mime && plan.message && (plan.way == QR_WAY_INVALID) == (plan.code != QR_CODE_NONE));
    }
    return 0;
}
