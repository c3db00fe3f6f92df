/* Fusing the legs of a search, and answers that do not repeat one another. */
#include "search/diverse.h"
#include "search/fuse.h"
#include "support/test.h"

static qr_err err;

static struct qr_index_hit hit(unsigned char item, int64_t ordinal, double score)
{
    return (struct qr_index_hit){.item_id = {.bytes = {item}}, .generation = 1, .ordinal = ordinal, .score = score};
}

static const struct qr_fusion_options even = {QR_FUSION_WEIGHTED, {0.5, 0.5}};

struct fused {
    struct qr_arena arena;
    struct qr_fused *hits;
    size_t count;
};

static struct fused fuse(const struct qr_index_hit *text, size_t text_count, const struct qr_index_hit *vector,
                         size_t vector_count, const struct qr_fusion_options *options)
{
    struct fused fused;
    qr_arena_init(&fused.arena, 0);
    const struct qr_leg_hits legs[QR_LEGS] = {{QR_LEG_TEXT, text, text_count}, {QR_LEG_VECTOR, vector, vector_count}};
    QR_CHECK_RC(QR_OK, qr_fuse(legs, vector ? QR_LEGS : 1, options, &fused.arena, &fused.hits, &fused.count, &err));
    return fused;
}

static void fused_done(struct fused *fused)
{
    qr_arena_done(&fused->arena);
}
#define FUSED QR_CLEANUP(fused_done) struct fused

QR_TEST(one_leg_keeps_its_order_and_its_scores)
{
    const struct qr_index_hit text[] = {hit(1, 0, 9.5), hit(2, 0, 3.25)};
    FUSED fused = fuse(text, 2, NULL, 0, &even);
    QR_CHECK_INT(2, fused.count);
    QR_CHECK(fused.hits[0].hit.score == 9.5 && fused.hits[1].hit.score == 3.25);
    QR_CHECK_INT(1, fused.hits[0].ranks[QR_LEG_TEXT]);
    QR_CHECK_INT(0, fused.hits[0].ranks[QR_LEG_VECTOR]);
}

QR_TEST(what_both_legs_find_comes_before_what_one_finds)
{
    const struct qr_index_hit text[] = {hit(1, 0, 20), hit(2, 0, 15), hit(3, 0, 1)};
    const struct qr_index_hit vector[] = {hit(4, 0, 0.9), hit(2, 0, 0.8), hit(5, 0, 0.1)};
    for (enum qr_fusion fusion = QR_FUSION_WEIGHTED; fusion <= QR_FUSION_RANKS; fusion++) {
        FUSED fused = fuse(text, 3, vector, 3, &(struct qr_fusion_options){fusion, {0.5, 0.5}});
        QR_CHECK_INT(5, fused.count);
        QR_CHECK_INT(2, fused.hits[0].hit.item_id.bytes[0]);
        QR_CHECK_INT(2, fused.hits[0].ranks[QR_LEG_TEXT]);
        QR_CHECK_INT(2, fused.hits[0].ranks[QR_LEG_VECTOR]);
        QR_CHECK(fused.hits[0].scores[QR_LEG_TEXT] == 15 && fused.hits[0].scores[QR_LEG_VECTOR] == 0.8);
    }
}

QR_TEST(weights_decide_between_the_legs)
{
    const struct qr_index_hit text[] = {hit(1, 0, 20), hit(9, 0, 1)}, vector[] = {hit(2, 0, 0.9), hit(9, 0, 0.1)};
    FUSED for_text = fuse(text, 2, vector, 2, &(struct qr_fusion_options){QR_FUSION_WEIGHTED, {0.9, 0.1}});
    QR_CHECK_INT(1, for_text.hits[0].hit.item_id.bytes[0]);
    FUSED for_vector = fuse(text, 2, vector, 2, &(struct qr_fusion_options){QR_FUSION_WEIGHTED, {0.1, 0.9}});
    QR_CHECK_INT(2, for_vector.hits[0].hit.item_id.bytes[0]);
}

QR_TEST(the_last_of_a_leg_counts_more_than_what_it_did_not_find)
{
    const struct qr_index_hit text[] = {hit(1, 0, 20), hit(2, 0, 1)}, vector[] = {hit(3, 0, 1), hit(2, 0, 0.5)};
    FUSED fused = fuse(text, 2, vector, 2, &even);
    QR_CHECK(fused.hits[2].hit.item_id.bytes[0] == 2 && fused.hits[2].hit.score > 0);
}

QR_TEST(equal_scores_have_one_order)
{
    const struct qr_index_hit text[] = {hit(7, 1, 5), hit(7, 0, 5), hit(3, 0, 5)};
    FUSED fused = fuse(text, 3, NULL, 0, &even);
    QR_CHECK_INT(3, fused.hits[0].hit.item_id.bytes[0]);
    QR_CHECK_INT(0, fused.hits[1].hit.ordinal);
    QR_CHECK_INT(1, fused.hits[2].hit.ordinal);
}

QR_TEST(no_legs_are_no_hits)
{
    FUSED fused = fuse(NULL, 0, NULL, 0, &even);
    QR_CHECK_INT(0, fused.count);
}

/* ---- diversity ---- */

static const struct qr_diverse_text texts[] = {
    {QR_STR("The green pear hangs on the tree."), 10},
    {QR_STR("The green PEAR hangs on the tree!"), 9.9},
    {QR_STR("The green pear hung on the old tree."), 9.5},
    {QR_STR("Apples are harvested in autumn."), 7},
    {QR_STR("Nothing of the kind."), 1},
};

static void check_order(double diversity, size_t wanted, const char *expected)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    size_t *order, count;
    QR_CHECK_RC(QR_OK, qr_diverse(texts, QR_COUNT(texts), diversity, wanted, &arena, &order, &count, &err));
    char line[16] = "";
    for (size_t i = 0; i < count; i++) {
        line[i] = (char)('0' + order[i]);
    }
    QR_CHECK_TEXT(expected, line);
}

QR_TEST(without_diversity_the_order_stays)
{
    check_order(0, 5, "01234");
    check_order(0, 2, "01");
    check_order(0, 9, "01234");
}

QR_TEST(with_diversity_copies_come_late)
{
    check_order(0.5, 2, "03");
    check_order(1, 3, "034");
}
