/* Min–max: the best of a leg counts 1 and its worst nearly 0, whatever the leg's scale. A leg whose hits all score the same
 * says nothing about their order: all of them count 1. */
#include "search/fuse.h"

#include "base/map.h"

#include <stdlib.h>

enum { RANK_OFFSET = 60 }; /* as usual for reciprocal ranks: the first few ranks do not outweigh everything */

static const double worst_counts = 0.05; /* the last hit of a leg was found all the same; what was not found counts 0 */

struct hit_key {
    char bytes[QR_UUID_BYTES + 2 * sizeof(int64_t)];
};

static struct hit_key key_of(const struct qr_index_hit *hit)
{
    struct hit_key key;
    memcpy(key.bytes, hit->item_id.bytes, QR_UUID_BYTES);
    memcpy(key.bytes + QR_UUID_BYTES, &hit->generation, sizeof hit->generation);
    memcpy(key.bytes + QR_UUID_BYTES + sizeof hit->generation, &hit->ordinal, sizeof hit->ordinal);
    return key;
}

static double part_of(const struct qr_leg_hits *leg, size_t i, enum qr_fusion fusion)
{
    if (fusion == QR_FUSION_RANKS) {
        return 1.0 / (double)(RANK_OFFSET + i + 1);
    }
    const double best = leg->hits[0].score, worst = leg->hits[leg->count - 1].score;
    return best > worst ? worst_counts + (1 - worst_counts) * (leg->hits[i].score - worst) / (best - worst) : 1;
}

static int compare(const void *a, const void *b)
{
    return qr_index_hit_compare(&((const struct qr_fused *)a)->hit, &((const struct qr_fused *)b)->hit);
}

struct fusing {
    struct qr_fused *fused;
    size_t count;
    struct qr_map known; /* hit → its place in `fused` */
};

static struct qr_fused *find_or_add(struct fusing *fusing, const struct qr_index_hit *hit)
{
    const struct hit_key key = key_of(hit);
    struct qr_fused *known = qr_map_find(&fusing->known, (qr_str){key.bytes, sizeof key.bytes});
    if (known) {
        return known;
    }
    struct qr_fused *fused = &fusing->fused[fusing->count];
    if (!qr_map_put(&fusing->known, (qr_str){key.bytes, sizeof key.bytes}, fused)) {
        return NULL;
    }
    fusing->count++;
    fused->hit = *hit;
    fused->hit.score = 0;
    return fused;
}

static bool add_leg(struct fusing *fusing, const struct qr_leg_hits *leg, const struct qr_fusion_options *options,
                    bool is_alone)
{
    const enum qr_leg which = leg->leg;
    for (size_t i = 0; i < leg->count; i++) {
        struct qr_fused *fused = find_or_add(fusing, &leg->hits[i]);
        if (!fused) {
            return false;
        }
        const double part = is_alone ? leg->hits[i].score : options->weights[which] * part_of(leg, i, options->fusion);
        fused->scores[which] = leg->hits[i].score;
        fused->ranks[which] = (int)i + 1;
        fused->parts[which] = part;
        fused->hit.score += part;
    }
    return true;
}

qr_rc qr_fuse(const struct qr_leg_hits *legs, size_t leg_count, const struct qr_fusion_options *options,
              struct qr_arena *arena, struct qr_fused **ret_fused, size_t *ret_count, qr_err *err)
{
    size_t sum = 0;
    for (size_t i = 0; i < leg_count; i++) {
        sum += legs[i].count;
    }
    struct fusing fusing = {.fused = qr_arena_array(arena, sum + 1, sizeof *fusing.fused)};
    qr_map_init(&fusing.known, 1); /* ids are ours: nobody chooses keys that collide */
    bool ok = fusing.fused != NULL;
    for (size_t i = 0; ok && i < leg_count; i++) {
        ok = add_leg(&fusing, &legs[i], options, leg_count == 1);
    }
    qr_map_done(&fusing.known);
    if (!ok) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
    }
    qsort(fusing.fused, fusing.count, sizeof *fusing.fused, compare);
    *ret_fused = fusing.fused;
    *ret_count = fusing.count;
    return QR_OK;
}
