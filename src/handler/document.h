/* From the bytes of a document to its stored text: what process-document and check-file-processing do alike. */
#pragma once

#include "convert/convert.h"
#include "handler/common.h"

/* Converts the bytes (`name` as for qr_convert), takes out assets, adds what was read from them before, and makes the text
 * ready to be adopted: result->text and what belongs to it. *ret_text lives in the run's arena. */
qr_rc qr_document_take(struct qr_attempt *attempt, qr_str bytes, const char *name, struct qr_stage_result *result,
                       qr_str *ret_text, qr_err *err);
/* All of it but the converting. */
qr_rc qr_document_take_converted(struct qr_attempt *attempt, const struct qr_converted *converted,
                                 struct qr_stage_result *result, qr_str *ret_text, qr_err *err);
/* The canonical text as it is, ready to be adopted. */
qr_rc qr_document_keep_text(struct qr_attempt *attempt, qr_str text, struct qr_stage_result *result, qr_err *err);
qr_rc qr_document_warn(struct qr_attempt *attempt, struct qr_stage_result *result, const char *code,
                       const char *message, qr_err *err);
/* What the item's row says of its source stays: for stages that did not read it but have warnings. */
void qr_document_keep_facts(const struct qr_item *item, struct qr_stage_result *result);

/* Gives the item's file to the base's processor: QR_REACHED_TICKET. */
qr_rc qr_document_submit(struct qr_attempt *attempt, struct qr_stage_result *result, qr_err *err);
/* After its ticket has ended: the processor forgets it, and the copy of owned bytes that was made for it goes. A crash
 * before the result is recorded means that the file is given to it once more. */
void qr_document_forget_submitted(struct qr_attempt *attempt);

/* Of a result that will not be recorded: removes the files that were made for it. */
void qr_document_discard(const struct qr_attempt *attempt, const struct qr_stage_result *result);
