/* What would have to be embedded, before it is asked for. */
#pragma once

#include "index/index.h"
#include "model/settings.h"

struct qr_estimate {
    int64_t chunks;   /* live ones of the base */
    int64_t to_embed; /* that have no vector of the model, in the index or in the cache */
    int64_t cached;   /* whose vector only needs to be taken from the cache */
    int64_t tokens;   /* of those to embed, about */
    bool is_sampled;  /* there are so many that only some were looked up: the last three are about so many */
    int64_t seconds;  /* about so long it takes to embed them; -1 = nobody knows */
};
/* A base's chunks by another model. In memory that does not grow with the base, as the next. */
qr_rc qr_estimate_model(struct qr_db *db, struct qr_index_set *index, qr_uuid base_id,
                        const struct qr_embedding_settings *embedding, struct qr_estimate *ret_estimate, qr_err *err);
/* The chunks of the items, and of all that is below them, made anew by the base's model: what they are now is what they will be,
 * unless the sources changed. */
qr_rc qr_estimate_items(struct qr_db *db, struct qr_index_set *index, qr_uuid base_id, const qr_uuid *item_ids,
                        size_t count, const struct qr_embedding_settings *embedding, struct qr_estimate *ret_estimate,
                        qr_err *err);
/* Pure: from how fast the model was so far (0 = not known) and what its settings allow a minute; -1 = nobody knows. */
int64_t qr_estimate_seconds(const struct qr_embedding_settings *embedding, int64_t texts_a_minute, int64_t texts,
                            int64_t tokens);
