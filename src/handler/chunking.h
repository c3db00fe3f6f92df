/* From canonical text to chunk rows of the index store. */
#pragma once

#include "handler/common.h"

/* Replaces the chunk rows of (item, generation): GEN-2. Each batch is written only while the job holds its fence. */
qr_rc qr_write_text_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation, qr_str text,
                           int64_t *ret_chunk_count, int64_t *ret_token_count, qr_err *err);

/* The same chunks, not written yet: for those who write several documents together. They live in the run's arena. */
qr_rc qr_split_text_chunks(struct qr_attempt *attempt, const struct qr_item *item, qr_str text,
                           struct qr_chunk **ret_chunks, size_t *ret_count, int64_t *ret_token_count, qr_err *err);

/* Says how far an item has come whose chunks are written: where nothing is embedded that is all, unless the index is not asked
 * for yet. */
void qr_reach_chunks(const struct qr_attempt *attempt, struct qr_stage_result *result);
