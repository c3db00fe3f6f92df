/* Vectors for the chunks that have none. */
#pragma once

#include "handler/common.h"

struct qr_embedded {
    int64_t chunk_count, token_count, failed_count; /* of the generation, when all is done */
};

/* Batch by batch: from the cache, else from the provider, whose answer is in the cache, durable, before it is used (PAID-1).
 * Where the base embeds nothing, it only counts. */
qr_rc qr_embed_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation,
                      struct qr_embedded *ret_embedded, qr_err *err);
