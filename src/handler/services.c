/* What an attempt works with beside its store: the batcher, the processor and the analyser that its base's settings name. Made
 * when they are asked for; qr_attempt_done gives them back. */
#include "handler/common.h"
#include "handler/ticket.h"

bool qr_embedding_is_on(const struct qr_embedding_settings *embedding)
{
    return strcmp(embedding->provider, "none") != 0;
}

qr_rc qr_attempt_batcher(struct qr_attempt *attempt, struct qr_batcher **ret_batcher, qr_err *err)
{
    if (!attempt->batcher) {
        QR_TRY(qr_providers_get(attempt->context->providers, &attempt->live, &attempt->batcher, err));
    }
    *ret_batcher = attempt->batcher;
    return QR_OK;
}

qr_rc qr_attempt_wanted_batcher(struct qr_attempt *attempt, struct qr_batcher **ret_batcher, qr_err *err)
{
    if (!attempt->wanted_batcher) {
        QR_TRY(
            qr_providers_get(attempt->context->providers, &attempt->settings.embedding, &attempt->wanted_batcher, err));
    }
    *ret_batcher = attempt->wanted_batcher;
    return QR_OK;
}

static bool is_told_to_end(void *arg)
{
    return qr_job_is_cancelled(arg);
}

static qr_rc create_processor(struct qr_attempt *attempt, qr_err *err)
{
    const struct qr_settings *settings = &attempt->settings;
    const struct qr_docling_options options = {.settings = &settings->file_processor.docling,
                                               .endpoints = attempt->context->endpoints,
                                               .with_pictures = strcmp(settings->assets.analysis, "vision") == 0,
                                               .is_cancelled = is_told_to_end,
                                               .cancel_arg = attempt->run};
    return strcmp(settings->file_processor.kind, "docling") == 0
               ? qr_processor_docling(&attempt->own_processor, &options, err)
               : qr_processor_command(&attempt->own_processor, settings->file_processor.argv,
                                      attempt->context->work_dir, err);
}

qr_rc qr_attempt_processor(struct qr_attempt *attempt, struct qr_processor **ret_processor, qr_err *err)
{
    const struct qr_settings *settings = &attempt->settings;
    if (strcmp(settings->file_processor.kind, "none") == 0) {
        return qr_fail(err, QR_CODE_UNSUPPORTED_TYPE, "the base has no file processor any more");
    }
    if (!attempt->context->processor && !attempt->own_processor) {
        QR_TRY(create_processor(attempt, err));
    }
    *ret_processor = attempt->context->processor ? attempt->context->processor : attempt->own_processor;
    return QR_OK;
}

qr_rc qr_attempt_analyser(struct qr_attempt *attempt, struct qr_analyser **ret_analyser, qr_err *err)
{
    const char *analysis = attempt->settings.assets.analysis;
    if (strcmp(analysis, "off") == 0) {
        return qr_fail(err, QR_CODE_UNSUPPORTED_TYPE, "the base analyses no assets");
    }
    if (!attempt->context->analyser && !attempt->own_analyser) {
        QR_TRY(strcmp(analysis, "vision") == 0
                   ? qr_analyser_vision(&attempt->own_analyser, &attempt->settings.assets.vision,
                                        attempt->context->endpoints, is_told_to_end, attempt->run, err)
                   : qr_analyser_test(&attempt->own_analyser, err));
    }
    *ret_analyser = attempt->context->analyser ? attempt->context->analyser : attempt->own_analyser;
    return QR_OK;
}

void qr_attempt_cancel_ticket(struct qr_attempt *attempt, const struct qr_item *item)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_processor *processor = NULL;
    struct qr_ticket ticket = {0};
    qr_arena_init(&arena, 0);
    if (qr_attempt_processor(attempt, &processor, NULL) == QR_OK &&
        qr_ticket_read(item->ticket, &arena, &ticket, NULL) == QR_OK) {
        processor->cancel(processor, ticket.name);
    }
}

void qr_attempt_put_off(struct qr_attempt *attempt, struct qr_outcome *outcome)
{
    const struct qr_handler_context *context = attempt->context;
    struct qr_processor *processor = context->processor ? context->processor : attempt->own_processor;
    struct qr_analyser *analyser = context->analyser ? context->analyser : attempt->own_analyser;
    if (qr_code_info(outcome->error.code)->policy != QR_POLICY_WAIT) {
        return;
    }
    if (processor && processor->wait_ms) {
        outcome->delay_ms = QR_MAX(outcome->delay_ms, processor->wait_ms(processor));
    }
    if (analyser && analyser->wait_ms) {
        outcome->delay_ms = QR_MAX(outcome->delay_ms, analyser->wait_ms(analyser));
    }
}
