/* Keeps the vector cache within its limit: rounds of pruning (PAID-2, store/vector_rounds.h), in steps of the beat or by
 * request. */
#pragma once

#include "index/index.h"
#include "model/settings.h"
#include "store/bases.h"
#include "store/vector_rounds.h"

enum {
    QR_PRUNE_KEYS_MAX = 480,     /* marked in one step */
    QR_PRUNE_EVERY_MS = 60000,   /* a round under way goes on */
    QR_PRUNE_LOOK_MS = 3600000,  /* it is looked whether there is too much */
    QR_PRUNE_STEPS_A_SLOT = 256, /* then other tasks of the beat have their turn */
};

/* What a step is to do, as it was seen outside of the transaction that does it. */
enum qr_prune_act {
    QR_PRUNE_NOTHING,
    QR_PRUNE_NOTE_LOOK,
    QR_PRUNE_BEGIN,
    QR_PRUNE_MARK,
    QR_PRUNE_BEGIN_EVICTING,
    QR_PRUNE_EVICT,
    QR_PRUNE_PUT_OFF,
};

struct qr_pruning {
    struct qr_db *db;
    struct qr_index_set *index;
    int64_t limit_bytes; /* the beat prunes beyond it */

    /* of the step */
    enum qr_prune_act act;
    struct qr_vector_round round; /* as it was */
    int64_t size_bytes;           /* of the cache, where it was looked at */
    struct qr_round_place place;  /* where the marking goes on behind this step */
    unsigned char keys[QR_PRUNE_KEYS_MAX][QR_VECTOR_KEY_BYTES];
    size_t key_count;
    char why[200];
    int step_count; /* of this slot of the beat */
};

void qr_pruning_init(struct qr_pruning *pruning, struct qr_db *db, struct qr_index_set *index, int64_t limit_bytes);

/* For job/beat.h; `pruning` must outlive the beat. */
struct qr_beat_task;
struct qr_beat_task qr_prune_task(struct qr_pruning *pruning);

/* Prunes to this size now, all steps, also those of a round that was under way. *ret_round: how it ended; all zero
 * where nothing had to be done. */
qr_rc qr_prune(struct qr_pruning *pruning, int64_t to_bytes, struct qr_vector_round *ret_round, qr_err *err);
