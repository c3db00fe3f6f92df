/* One order out of several: what the words found and what the vectors found. Pure, but for the arena. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "index/index.h"

enum qr_leg { QR_LEG_TEXT, QR_LEG_VECTOR, QR_LEGS };

enum qr_fusion {
    QR_FUSION_WEIGHTED, /* scores of a leg are stretched to 0…1 and added with their weights */
    QR_FUSION_RANKS,    /* reciprocal ranks are added with their weights; scores do not count */
};

struct qr_fusion_options {
    enum qr_fusion fusion;
    double weights[QR_LEGS];
};

/* The best of a leg, best first. */
struct qr_leg_hits {
    enum qr_leg leg;
    const struct qr_index_hit *hits;
    size_t count;
};

struct qr_fused {
    struct qr_index_hit hit; /* its score is the fused one; that of the leg itself where there is only one */
    double scores[QR_LEGS];  /* of each leg, as it gave it */
    double parts[QR_LEGS];   /* what each leg adds to the fused score */
    int ranks[QR_LEGS];      /* from 1; 0 = the leg did not find it */
};

/* Best first; equal scores in the order of (item, generation, ordinal). With one leg its order and scores stay. Where
 * several are of one kind (vectors of different models), no hit is in two of them. */
qr_rc qr_fuse(const struct qr_leg_hits *legs, size_t leg_count, const struct qr_fusion_options *options,
              struct qr_arena *arena, struct qr_fused **ret_fused, size_t *ret_count, qr_err *err);
