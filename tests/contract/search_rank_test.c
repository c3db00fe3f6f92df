/* Scoring word by word (index/bm25.h) against FTS5's own bm25(), on random chunks. A query with a word that must not occur, and
 * does not anywhere, goes to bm25(); the same query without it does not. */
#include "support/index_fixture.h"
#include "text/tokens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 300, CHUNKS_MAX = 3, HITS_MAX = ITEMS * CHUNKS_MAX, WORDS = 120, QUERIES = 60, TEXT_SIZE = 2000 };

struct library {
    struct index_fixture index;
    struct qr_arena arena;
    struct qr_tokenizer *tokenizer;
    uint64_t state;
    unsigned shown_share; /* of a hundred items */
    struct qr_index_hit hits[HITS_MAX], expected[HITS_MAX];
};

static const qr_uuid base = {{1}};

/* ---- chance ---- */

static unsigned below(struct library *library, unsigned limit)
{
    library->state = library->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((library->state >> 33) % limit);
}

/* Few are everywhere, many are rare. English ones, so that stems and forms take part. */
static void add_word(struct library *library, char *out)
{
    static const char *const beginnings[] = {"read", "walk", "index", "search", "test", "paint", "talk", "rent"};
    static const char *const ends[] = {"", "s", "ing", "ed", "er"};
    const unsigned range = 1 + below(library, WORDS), word = below(library, range);
    const char letter = (char)('a' + word / (unsigned)QR_COUNT(beginnings));
    sprintf(out + strlen(out), "%s%c%s ", beginnings[word % QR_COUNT(beginnings)], letter,
            word % 3 ? "" : ends[below(library, QR_COUNT(ends))]);
}

static void add_words(struct library *library, char *out, unsigned count)
{
    out[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        add_word(library, out);
    }
}

/* ---- the library ---- */

static void write_item(struct library *library, unsigned number, int64_t generation)
{
    char texts[CHUNKS_MAX][TEXT_SIZE], headings[CHUNKS_MAX][TEXT_SIZE], title[TEXT_SIZE];
    struct qr_chunk chunks[CHUNKS_MAX];
    const unsigned count = 1 + below(library, CHUNKS_MAX);
    qr_err err;
    add_words(library, title, below(library, 4));
    for (unsigned i = 0; i < count; i++) {
        add_words(library, headings[i], below(library, 4));
        add_words(library, texts[i], 1 + below(library, 60));
        chunks[i] = (struct qr_chunk){
            .ordinal = i, .text = qr_str_of(texts[i]), .heading = qr_str_of(headings[i]), .title = qr_str_of(title)};
    }
    QR_CHECK_RC(
        QR_OK, qr_index_write_chunks(library->index.set, base, test_id(number), generation, chunks, count, NULL, &err));
}

static void write_items(struct library *library)
{
    for (unsigned i = 1; i <= ITEMS; i++) {
        write_item(library, i, 1);
        if (below(library, 40) == 0) {
            index_sync(&library->index, base);
        }
    }
    index_sync(&library->index, base);
}

/* So that ids have gaps, and the newest rows are of items that were there before. */
static void change_items(struct library *library)
{
    qr_err err;
    for (unsigned i = 1; i <= ITEMS; i++) {
        const unsigned what = below(library, 6);
        if (what == 0) {
            QR_CHECK_RC(QR_OK, qr_index_delete_items(library->index.set, base, (qr_uuid[]){test_id(i)}, 1, &err));
        } else if (what == 1) {
            write_item(library, i, 2);
            QR_CHECK_RC(QR_OK, qr_index_purge_item(library->index.set, base, test_id(i), 2, 2, &err));
        }
    }
    index_sync(&library->index, base);
}

/* ---- queries ---- */

static bool may_show(void *arg, qr_uuid item_id, int64_t generation)
{
    const struct library *library = arg;
    return (item_id.bytes[QR_UUID_BYTES - 1] * 7u + (unsigned)generation) % 100 < library->shown_share;
}

static size_t search(struct library *library, const char *typed, int limit, struct qr_index_hit *hits)
{
    struct qr_query query;
    qr_err err;
    size_t count;
    QR_CHECK_RC(QR_OK, qr_query_parse(qr_str_of(typed), &library->arena, &query, &err));
    struct qr_text_query text = {.clauses = query.clauses, .count = query.count, .tokenizer = library->tokenizer};
    QR_CHECK_RC(QR_OK,
                qr_index_search_query(library->index.set, base, &text, limit, may_show, library, hits, &count, &err));
    return count;
}

static void compare(struct library *library)
{
    char typed[TEXT_SIZE];
    add_words(library, typed, 1 + below(library, 8));
    library->shown_share = below(library, 3) ? 100 : below(library, 100);
    const int limit = below(library, 4) ? 1 + (int)below(library, 30) : HITS_MAX;
    const size_t count = search(library, typed, limit, library->hits);
    strcat(typed, "-nowhere");
    QR_CHECK_INT(search(library, typed, limit, library->expected), count);
    for (size_t i = 0; i < count; i++) {
        const struct qr_index_hit *hit = &library->hits[i], *expected = &library->expected[i];
        QR_CHECK(fabs(hit->score - expected->score) <= 1e-9 * fabs(expected->score));
        QR_CHECK(qr_uuid_equal(hit->item_id, expected->item_id) && hit->generation == expected->generation &&
                 hit->ordinal == expected->ordinal);
    }
}

QR_DB_TEST(words_score_as_the_databases_own_ranking_scores_them) /* B1 B2 */
{
    if (qr_test_on_postgres(t)) {
        return; /* it has no other ranking */
    }
    struct library *library = calloc(1, sizeof *library);
    qr_err err;
    index_fixture_open(&library->index, t);
    qr_arena_init(&library->arena, 0);
    QR_CHECK_RC(QR_OK, qr_tokenizer_create(&library->tokenizer, &err));
    for (int round = 0; round < 3; round++) {
        library->state += 1;
        if (round == 0) {
            write_items(library);
        } else {
            change_items(library); /* while lengths of rows are remembered */
        }
        for (int i = 0; i < QUERIES; i++) {
            compare(library);
        }
    }
    qr_tokenizer_free(library->tokenizer);
    qr_arena_done(&library->arena);
    index_fixture_close(&library->index);
    free(library);
}
