/* What a model would have to embed, before it is asked for. */
#pragma once

#include "index/index.h"
#include "model/settings.h"

struct qr_estimate {
    int64_t chunks;   /* live ones of the base */
    int64_t to_embed; /* that have no vector of the model, in the index or in the cache */
    int64_t cached;   /* whose vector only needs to be taken from the cache */
    int64_t tokens;   /* of those to embed, about */
    bool is_sampled;  /* there are so many that only some were looked up: the last three are about so many */
};
/* In memory that does not grow with the base. */
qr_rc qr_estimate_model(struct qr_db *db, struct qr_index_set *index, qr_uuid base_id,
                        const struct qr_embedding_settings *embedding, struct qr_estimate *ret_estimate, qr_err *err);
