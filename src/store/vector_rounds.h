/* Rounds of pruning: what finds out which entries of the vector cache are in use, and evicts others (PAID-2).
 *
 * A round has two phases. First it goes through the chunks of all bases and marks the entries of their texts with its number;
 * then it evicts entries without its mark, those first that were used longest ago, until the rest fits. Each step is a
 * transaction of its own, and where the round stands is a row: so a crash costs the step that was under way, and two who do the
 * same round do no harm.
 *
 * V1  An entry that a chunk uses has the mark before the first one is evicted. The chunk was there when the round came by; or it
 *     came later, and was given its vector later: by an entry that was added, or by one that was used. Both get the mark, since
 *     the round was under way. For that, a chunk is in the index before its vector is looked for; who looks into the cache sees
 *     in the same snapshot whether there is a round, and touches what it found before it uses it; and a round begins only when
 *     nobody is about to add an entry without its number.
 * V2  What is evicted is without the mark in the transaction that evicts it.
 * V3  Nobody evicts in a round that could not see all chunks. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"
#include "db/db.h"
#include "model/settings.h"
#include "store/vectors.h"

/* Stored as these numbers: never renumber. */
enum qr_round_phase { QR_ROUND_NONE = 0, QR_ROUND_MARKS = 1, QR_ROUND_EVICTS = 2 };

/* Where the marking stands: behind this chunk. */
struct qr_round_place {
    qr_uuid base_id, item_id;    /* all zero = before the first */
    int64_t generation, ordinal; /* of the next chunk of that item; generation 0 = the item is done */
};

struct qr_vector_round {
    int64_t number; /* of the round under way, or of the last one; 0 = there was none */
    enum qr_round_phase phase;
    int64_t to_bytes;
    int64_t looked_ms; /* when somebody last looked whether there is too much */
    struct qr_round_place place;
    int64_t excess_bytes;    /* to be evicted */
    int64_t evicted_upto_ms; /* entries up to this use, of the same moment up to this key, were looked at */
    unsigned char evicted_upto_key[QR_VECTOR_KEY_BYTES];
    int64_t began_ms, ended_ms;
    int64_t freed_count, freed_bytes; /* by this round, or the last one */
    char put_off[200];                /* why the last one evicted nothing; "" = it went to its end */
};

qr_rc qr_round_load(struct qr_tx *tx, struct qr_vector_round *ret_round, qr_err *err);
/* The same in a write; nobody else steps meanwhile. */
qr_rc qr_round_lock(struct qr_tx *tx, struct qr_vector_round *ret_round, qr_err *err);

/* Somebody has looked, and there was not too much. */
qr_rc qr_round_note_look(struct qr_tx *tx, qr_err *err);
/* Begins one, unless one is under way: that one then goes on to the lower of the two sizes. */
qr_rc qr_round_begin(struct qr_tx *tx, int64_t to_bytes, qr_err *err);

/* Marks the entries that there are of these keys; in the order of the keys no two who do it wait in a circle. */
qr_rc qr_round_mark(struct qr_tx *tx, const struct qr_vector_round *round,
                    const unsigned char (*keys)[QR_VECTOR_KEY_BYTES], size_t count, qr_err *err);
qr_rc qr_round_go_to(struct qr_tx *tx, const struct qr_round_place *place, qr_err *err);
/* All is marked. */
qr_rc qr_round_begin_evicting(struct qr_tx *tx, int64_t excess_bytes, qr_err *err);
/* Looks at the next entries, up to a limit, and evicts those that may go. *ret_is_over: nothing is left to do, and the round has
 * ended. */
enum { QR_ROUND_EVICT_MAX = 250 }; /* with their vectors: 4 MB at most */
qr_rc qr_round_evict(struct qr_tx *tx, const struct qr_vector_round *round, bool *ret_is_over, qr_err *err);
/* V3 */
qr_rc qr_round_put_off(struct qr_tx *tx, const char *why, qr_err *err);

/* Of all entries; reads no vector. */
struct qr_vector_totals {
    int64_t count, size_bytes;
};
qr_rc qr_vector_totals(struct qr_tx *tx, struct qr_vector_totals *ret_totals, qr_err *err);

/* The fingerprint of a model that vectors were ever kept of, behind `after`, in order. */
qr_rc qr_model_next(struct qr_tx *tx, const char *after, bool *ret_found,
                    char ret_fingerprint[static QR_FINGERPRINT_SIZE], qr_err *err);

/* Leaves of the base that may have chunks, by id, behind `after`; light rows. */
struct qr_chunked_item {
    qr_uuid id;
    int64_t generation, live_generation, chunk_count; /* of the live one */
};
qr_rc qr_items_chunked(struct qr_tx *tx, qr_uuid base_id, qr_uuid after, int limit, struct qr_chunked_item *ret_items,
                       size_t *ret_count, qr_err *err);
