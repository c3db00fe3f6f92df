/* Scores of rows by their words; against FTS5 itself: tests/contract/search_rank_test.c. */
#include "index/bm25.h"

#include "support/test.h"

static const struct bm25_posting rare[] = {{3, 1, 10}, {7, 2, 10}};
static const struct bm25_posting frequent[] = {{1, 1, 10}, {3, 1, 10}, {5, 1, 10}, {9, 1, 10}};

QR_TEST(the_best_come_first_and_equal_ones_by_their_ids) /* B2 */
{
    static const int64_t expected[] = {3, 7, 1, 5, 9};
    struct bm25 bm25;
    struct bm25_row row;
    qr_bm25_init(&bm25, 100, 1000);
    QR_CHECK(qr_bm25_add_word(&bm25, frequent, QR_COUNT(frequent)));
    QR_CHECK(qr_bm25_add_word(&bm25, NULL, 0));
    QR_CHECK(qr_bm25_add_word(&bm25, rare, QR_COUNT(rare)));
    QR_CHECK_INT(QR_COUNT(expected), bm25.count);
    qr_bm25_order(&bm25);
    for (size_t i = 0; i < QR_COUNT(expected); i++) {
        QR_CHECK(qr_bm25_take_best(&bm25, &row));
        QR_CHECK_INT(expected[i], row.id);
    }
    QR_CHECK(!qr_bm25_take_best(&bm25, &row));
    qr_bm25_done(&bm25);
}

QR_TEST(a_word_in_more_than_half_of_the_rows_still_counts_a_little)
{
    struct bm25 bm25;
    struct bm25_row row;
    qr_bm25_init(&bm25, 5, 50);
    QR_CHECK(qr_bm25_add_word(&bm25, frequent, QR_COUNT(frequent)));
    qr_bm25_order(&bm25);
    QR_CHECK(qr_bm25_take_best(&bm25, &row));
    QR_CHECK(row.id == 1 && row.score > 0 && row.score < 1e-5);
    qr_bm25_done(&bm25);
}
