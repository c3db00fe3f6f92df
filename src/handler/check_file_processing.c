/* check-file-processing: asks a converter for what it was given (TYPE-5). The ticket is on the item. A ticket that the
 * converter does not know any more is a file to be given to it again: the new ticket takes the place of the old one, and the
 * 24 hours go on counting. A converter that does not tell since when it runs is counted from the first time it was seen
 * running; the ticket says so, so that a restart of ours does not begin anew. */
#include "handler/document.h"
#include "handler/handlers.h"
#include "handler/ticket.h"

enum {
    POLL_MS = 5000,
    RUNNING_MS_MAX = 30 * 60 * 1000, /* there; waiting in its queue does not count */
    TOTAL_MS_MAX = 24 * 60 * 60 * 1000,
    HANDED_MAX = 20, /* it forgets each time: several servers behind one address, that know nothing of each other */
};

static bool is_over_time(const struct qr_attempt *attempt, int64_t running_ms)
{
    const int64_t total_ms = qr_clock_wall_ms(attempt->run->clock) - attempt->item.ticket_ms;
    return running_ms > RUNNING_MS_MAX || total_ms > TOTAL_MS_MAX;
}

static qr_rc take_result(struct qr_attempt *attempt, qr_str markdown, struct qr_stage_result *result, qr_err *err)
{
    qr_str text;
    QR_TRY(qr_document_take(attempt, markdown, NULL, result, &text, err));
    qr_document_keep_facts(&attempt->item, result);
    if (result->warning_count > 0 && strcmp(result->warnings[0].code, "empty") == 0) {
        /* EMPTY-1: the file had something in it, but no text */
        result->warnings[0] = (struct qr_warning){"no_text", "the converter found no text in it"};
    }
    result->reached = QR_REACHED_TEXT;
    return QR_OK;
}

/* How long it has been running. */
static int64_t counted_ms(const struct qr_attempt *attempt, const struct qr_ticket *ticket)
{
    const int64_t now_ms = qr_clock_wall_ms(attempt->run->clock);
    return ticket->running_since_ms ? QR_MAX(now_ms - ticket->running_since_ms, (int64_t)0) : 0;
}

/* It was seen running for the first time: that is written down, and asked again later. */
static qr_rc note_running(const struct qr_attempt *attempt, struct qr_ticket *ticket, struct qr_stage_result *result,
                          qr_err *err)
{
    ticket->running_since_ms = qr_clock_wall_ms(attempt->run->clock);
    result->ticket = qr_ticket_write(ticket, attempt->run->arena);
    result->reached = QR_REACHED_TICKET;
    return result->ticket ? QR_OK : qr_handler_out_of_memory(err);
}

static qr_rc hand_over_again(struct qr_attempt *attempt, const struct qr_ticket *ticket, struct qr_stage_result *result,
                             qr_err *err)
{
    return ticket->handed_count < HANDED_MAX
               ? qr_document_submit(attempt, result, err)
               : qr_fail(err, QR_CODE_CONVERSION_FAILED, "the converter has lost it %d times", (int)HANDED_MAX);
}

/* *ret_waits: ask again later. */
static qr_rc check(struct qr_attempt *attempt, struct qr_stage_result *result, bool *ret_waits, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf markdown = {0};
    struct qr_processor *processor;
    struct qr_ticket ticket;
    enum qr_ticket_state state;
    int64_t running_ms = 0;
    QR_TRY(qr_attempt_processor(attempt, &processor, err));
    QR_TRY(qr_ticket_read(attempt->item.ticket, attempt->run->arena, &ticket, err));
    QR_TRY(processor->poll(processor, ticket.name, &state, &running_ms, &markdown, err));
    if (state == QR_TICKET_DONE) {
        return take_result(attempt, qr_buf_str(&markdown), result, err);
    }
    if (state == QR_TICKET_FAILED) {
        return err->code == QR_CODE_CONVERSION_FAILED
                   ? QR_INVALID
                   : qr_fail(err, QR_CODE_CONVERSION_FAILED, "the converter failed and did not say why");
    }
    const bool is_counted = running_ms < 0 && state == QR_TICKET_RUNNING;
    if (is_over_time(attempt, is_counted ? counted_ms(attempt, &ticket) : running_ms)) {
        processor->cancel(processor, ticket.name);
        return qr_fail(err, QR_CODE_CONVERSION_TIMEOUT, "the converter did not come to an end in time");
    }
    if (state == QR_TICKET_UNKNOWN) {
        return hand_over_again(attempt, &ticket, result, err);
    }
    if (is_counted && ticket.running_since_ms == 0) {
        return note_running(attempt, &ticket, result, err);
    }
    *ret_waits = true;
    return QR_OK;
}

void qr_handle_check_file_processing(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin(&attempt, run, ret_outcome)) {
        return;
    }
    bool waits = false;
    struct qr_stage_result *result = qr_arena_alloc(run->arena, sizeof *result);
    const qr_rc rc =
        result ? check(&attempt, result, &waits, &ret_outcome->error) : qr_handler_out_of_memory(&ret_outcome->error);
    if (rc == QR_OK && waits) {
        ret_outcome->kind = QR_OUTCOME_SNOOZED;
        ret_outcome->delay_ms = POLL_MS;
        return;
    }
    if (rc != QR_OK && result) {
        qr_document_discard(&attempt, result);
    }
    qr_attempt_put_off(&attempt, ret_outcome);
    qr_outcome_set(ret_outcome, rc, result);
    if (rc == QR_OK ? result->reached == QR_REACHED_TEXT
                    : qr_code_info(ret_outcome->error.code)->policy == QR_POLICY_FAIL) {
        qr_document_forget_submitted(&attempt);
    }
}
