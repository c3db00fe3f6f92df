/* In how many rows words occur, as it is remembered. */
#include "index/word_counts.h"

#include "support/test.h"

#include <stdio.h>

static int64_t find(struct word_counts *counts, int64_t rows, int64_t last_id, const char *word)
{
    int64_t count = -1;
    qr_word_counts_find(counts, &(struct word_state){rows, last_id}, qr_str_of(word), &count);
    return count;
}

QR_TEST(a_count_is_remembered_until_a_tenth_of_the_rows_is_new_or_gone)
{
    struct word_counts counts;
    const struct word_state state = {.rows = 1000, .last_id = 5000};
    qr_word_counts_init(&counts, 1);
    QR_CHECK_INT(-1, find(&counts, 1000, 5000, "word"));
    qr_word_counts_put(&counts, &state, QR_STR("word"), 700);
    qr_word_counts_put(&counts, &state, QR_STR("none"), 0);
    QR_CHECK_INT(700, find(&counts, 1000, 5000, "word"));
    QR_CHECK_INT(0, find(&counts, 1000, 5000, "none"));
    QR_CHECK_INT(700, find(&counts, 1100, 5100, "word"));
    QR_CHECK_INT(-1, find(&counts, 1000, 5101, "word")); /* as many, but others */
    qr_word_counts_put(&counts, &state, QR_STR("word"), 700);
    QR_CHECK_INT(700, find(&counts, 900, 5000, "word"));
    QR_CHECK_INT(-1, find(&counts, 899, 5000, "word"));
    qr_word_counts_done(&counts);
}

QR_TEST(the_memory_is_bounded)
{
    enum { MANY = 20000, KEPT_MAX = 4096 };
    struct word_counts counts;
    const struct word_state state = {.rows = 1000, .last_id = 1000};
    qr_word_counts_init(&counts, 1);
    for (int i = 0; i < MANY; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%d", i);
        qr_word_counts_put(&counts, &state, qr_str_of(word), i);
        QR_CHECK(counts.words.count <= KEPT_MAX);
    }
    QR_CHECK_INT(MANY - 1, find(&counts, 1000, 1000, "w19999"));
    qr_word_counts_done(&counts);
}
