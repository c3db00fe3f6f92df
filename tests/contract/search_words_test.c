/* What the index says about words: frequent ones that are left out, counts, and hits of others. */
#include "support/index_fixture.h"
#include "text/tokens.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 600, RARE_EVERY = 20, HITS_MAX = 1000 };

struct shelf {
    struct index_fixture index;
    struct qr_arena arena;
    struct qr_tokenizer *tokenizer;
    struct qr_text_query query;
    struct qr_index_hit hits[HITS_MAX];
    size_t count;
};

static const qr_uuid base = {{1}};

static void open_shelf(struct shelf *shelf, struct qr_test *t)
{
    qr_err err;
    index_fixture_open(&shelf->index, t);
    qr_arena_init(&shelf->arena, 0);
    QR_CHECK_RC(QR_OK, qr_tokenizer_create(&shelf->tokenizer, &err));
    for (unsigned i = 0; i < ROWS; i++) {
        char text[300] = "the ";
        for (unsigned word = 0; word < 3 + i % 17; word++) {
            strcat(text, "filling ");
        }
        snprintf(text + strlen(text), 100, "%s%s", i % RARE_EVERY ? "" : "walnut ", i % 3 ? "" : "hazel");
        index_write(&shelf->index, base, test_id(i + 1), 1, 0, text);
    }
}

static void close_shelf(struct shelf *shelf)
{
    qr_tokenizer_free(shelf->tokenizer);
    qr_arena_done(&shelf->arena);
    index_fixture_close(&shelf->index);
}

static void search(struct shelf *shelf, const char *typed, int limit)
{
    struct qr_query query;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_query_parse(qr_str_of(typed), &shelf->arena, &query, &err));
    shelf->query =
        (struct qr_text_query){.clauses = query.clauses, .count = query.count, .tokenizer = shelf->tokenizer};
    QR_CHECK_RC(QR_OK, qr_index_search_query(shelf->index.set, base, &shelf->query, limit, NULL, NULL, shelf->hits,
                                             &shelf->count, &err));
}

/* F1 of index/rows_sqlite_search.c. */
QR_DB_TEST(a_word_that_is_everywhere_does_not_change_who_comes_first)
{
    enum { LIMIT = 10 };
    struct shelf *shelf = calloc(1, sizeof *shelf);
    struct qr_index_hit alone[LIMIT];
    open_shelf(shelf, t);
    search(shelf, "walnut hazel", LIMIT);
    QR_CHECK(shelf->count == LIMIT && !shelf->query.left_out);
    memcpy(alone, shelf->hits, sizeof alone);
    search(shelf, "the walnut hazel", LIMIT);
    QR_CHECK_INT(LIMIT, shelf->count);
    QR_CHECK_INT(!qr_test_on_postgres(t), shelf->query.left_out);
    for (int i = 0; i < LIMIT && shelf->query.left_out; i++) {
        QR_CHECK(qr_uuid_equal(alone[i].item_id, shelf->hits[i].item_id));
    }
    close_shelf(shelf);
    free(shelf);
}

QR_DB_TEST(a_word_that_is_everywhere_is_looked_for_where_others_do_not_find_enough)
{
    struct shelf *shelf = calloc(1, sizeof *shelf);
    open_shelf(shelf, t);
    search(shelf, "the walnut", 100);
    QR_CHECK_INT(100, shelf->count);
    search(shelf, "the", HITS_MAX);
    QR_CHECK_INT(ROWS, shelf->count);
    search(shelf, "the nowhere", 7);
    QR_CHECK_INT(7, shelf->count);
    close_shelf(shelf);
    free(shelf);
}

QR_DB_TEST(words_are_counted_with_their_forms)
{
    struct shelf *shelf = calloc(1, sizeof *shelf);
    const qr_str words[] = {QR_STR("the"), QR_STR("walnut"), QR_STR("hazel"), QR_STR("walnut|hazel"), QR_STR("x'y\\")};
    int64_t counts[QR_COUNT(words)];
    struct qr_index_totals totals;
    qr_err err;
    open_shelf(shelf, t);
    for (int again = 0; again < 2; again++) {
        QR_CHECK_RC(QR_OK, qr_index_count_words(shelf->index.set, base, words, QR_COUNT(words), counts, &totals, &err));
        QR_CHECK_INT(ROWS, totals.rows);
        QR_CHECK(qr_test_on_postgres(t) ? totals.places == 0 : totals.places > ROWS);
        QR_CHECK_INT(ROWS, counts[0]);
        QR_CHECK_INT(ROWS / RARE_EVERY, counts[1]);
        QR_CHECK_INT(ROWS / 3, counts[2]);
        QR_CHECK_INT(ROWS / 3 + ROWS / RARE_EVERY - ROWS / (3 * RARE_EVERY), counts[3]);
        QR_CHECK_INT(0, counts[4]);
    }
    close_shelf(shelf);
    free(shelf);
}

QR_DB_TEST(hits_of_others_are_asked_whether_they_fit)
{
    struct shelf *shelf = calloc(1, sizeof *shelf);
    struct qr_index_hit hits[4];
    bool fits[4];
    struct qr_query query;
    qr_err err;
    open_shelf(shelf, t);
    const unsigned rows[] = {0, 20, 3, 1}; /* both, walnut, hazel, neither */
    for (size_t i = 0; i < QR_COUNT(rows); i++) {
        hits[i] = (struct qr_index_hit){.item_id = test_id(rows[i] + 1), .generation = 1};
    }
    QR_CHECK_RC(QR_OK, qr_query_parse(QR_STR("may \"walnut\" -hazel"), &shelf->arena, &query, &err));
    struct qr_text_query text = {.clauses = query.clauses, .count = query.count, .tokenizer = shelf->tokenizer};
    QR_CHECK_RC(QR_OK, qr_index_fits(shelf->index.set, base, &text, hits, QR_COUNT(hits), fits, &err));
    QR_CHECK(!fits[0] && fits[1] && !fits[2] && !fits[3]);
    text.is_relaxed = true; /* only what must not occur counts */
    QR_CHECK_RC(QR_OK, qr_index_fits(shelf->index.set, base, &text, hits, QR_COUNT(hits), fits, &err));
    QR_CHECK(!fits[0] && fits[1] && !fits[2] && fits[3]);
    close_shelf(shelf);
    free(shelf);
}
