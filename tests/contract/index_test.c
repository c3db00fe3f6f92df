/* What index.h promises, over every database. */
#include "index/index.h"

#include "base/failpoint.h"
#include "base/rand.h"
#include "support/index_fixture.h"

#include <math.h>

enum { BASE = 1, OTHER_BASE = 2, MODEL = 71, OTHER_MODEL = -72 };

#define SPACE(dimension) ((struct qr_vector_space){MODEL, dimension})

/* ---- rows ---- */

QR_DB_TEST(a_chunk_comes_back_as_it_was_written) /* X1 */
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const struct qr_chunk chunks[] = {
        {.ordinal = 0,
         .text = QR_STR("erster Absatz"),
         .start = 3,
         .end = 16,
         .line_start = 2,
         .line_end = 4,
         .page = 7,
         .heading = QR_STR("A > B"),
         .token_count = 5,
         .title = QR_STR("Titel")},
        {.ordinal = 1, .text = QR_STR("")},
    };
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, test_id(BASE), test_id(10), 3, chunks, 2, NULL, &err));
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_chunk_row *rows;
    size_t count;
    QR_CHECK_RC(QR_OK,
                qr_index_chunks(f.set, test_id(BASE), test_id(10), 3, 0, MODEL, 10, &arena, &rows, &count, &err));
    QR_CHECK_INT(2, count);
    const struct qr_chunk *first = &rows[0].chunk;
    QR_CHECK(qr_uuid_equal(rows[0].item_id, test_id(10)) && rows[0].generation == 3);
    QR_CHECK_STR("erster Absatz", first->text);
    QR_CHECK_STR("A > B", first->heading);
    QR_CHECK_STR("Titel", first->title);
    QR_CHECK(first->ordinal == 0 && first->start == 3 && first->end == 16 && first->line_start == 2);
    QR_CHECK(first->line_end == 4 && first->page == 7 && first->token_count == 5);
    QR_CHECK(!rows[0].has_vector && !rows[0].has_failed);
    QR_CHECK_INT(1, rows[1].chunk.ordinal);
    qr_arena_done(&arena);
    index_fixture_close(&f);
}

QR_DB_TEST(a_first_batch_replaces_the_generation_and_no_other) /* X1 GEN-2 */
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    const qr_uuid base = test_id(BASE), item = test_id(10), other = test_id(11);
    for (int64_t ordinal = 0; ordinal < 5; ordinal++) {
        index_write(&f, base, item, 2, ordinal, "alpha");
    }
    index_write(&f, base, item, 1, 0, "alpha");
    index_write(&f, base, other, 2, 0, "alpha");
    index_sync(&f, base);
    QR_CHECK_INT(7, index_hit_count(&f, base, "alpha"));
    index_write(&f, base, item, 2, 3, "beta"); /* from 3 on */
    QR_CHECK_INT(4, index_chunk_count(&f, base, item, 2));
    index_write(&f, base, item, 2, 0, "gamma");
    QR_CHECK_INT(1, index_chunk_count(&f, base, item, 2));
    index_sync(&f, base);
    QR_CHECK_INT(2, index_hit_count(&f, base, "alpha"));
    QR_CHECK_INT(0, index_hit_count(&f, base, "beta"));
    QR_CHECK_INT(1, index_hit_count(&f, base, "gamma"));
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, base, item, 2, NULL, 0, NULL, &err));
    QR_CHECK_INT(0, index_chunk_count(&f, base, item, 2));
    QR_CHECK_INT(1, index_chunk_count(&f, base, item, 1));
    index_fixture_close(&f);
}

QR_DB_TEST(a_batch_of_any_size_is_written_and_replaced)
{
    enum { COUNT = 600, TEXT_BYTES = 3000 };
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    static char text[TEXT_BYTES];
    static struct qr_chunk chunks[COUNT];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = i % 8 == 7 ? ' ' : (char)('a' + i * 7 % 23);
    }
    for (int64_t i = 0; i < COUNT; i++) {
        chunks[i] = (struct qr_chunk){.ordinal = i, .text = {text, sizeof text}};
    }
    for (int times = 0; times < 2; times++) {
        QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, test_id(BASE), test_id(10), 1, chunks, COUNT, NULL, &err));
        index_sync(&f, test_id(BASE));
    }
    struct qr_index_extent extent;
    size_t count;
    QR_CHECK_RC(QR_OK, qr_index_extents(f.set, test_id(BASE), MODEL, (qr_uuid){0}, 0, 1, &extent, &count, &err));
    QR_CHECK_INT(COUNT, extent.chunk_count);
    QR_CHECK_RC(QR_OK, qr_index_delete_items(f.set, test_id(BASE), (qr_uuid[]){test_id(10)}, 1, &err));
    QR_CHECK_INT(0, index_chunk_count(&f, test_id(BASE), test_id(10), 1));
    index_fixture_close(&f);
}

QR_DB_TEST(rows_and_vectors_of_named_generations_are_counted_each_by_itself)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    const qr_uuid base = test_id(BASE), item = test_id(10);
    const struct qr_chunk chunks[] = {{.ordinal = 0, .text = QR_STR("one")}, {.ordinal = 1, .text = QR_STR("two")}};
    const float ones[] = {1, 1};
    const struct qr_chunk_vector vectors[] = {{.ordinal = 0, .vector = ones}, {.ordinal = 1}};
    qr_err err;
    for (int64_t generation = 1; generation <= 2; generation++) {
        QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, base, item, generation, chunks, 2, NULL, &err));
    }
    QR_CHECK_RC(QR_OK, qr_index_write_vectors(f.set, base, item, 1, (struct qr_vector_space){MODEL, 2}, vectors, 2,
                                              NULL, &err));
    struct qr_index_extent extents[] = {
        {.item_id = item, .generation = 1, .chunk_count = 77}, /* what it says before does not count */
        {.item_id = item, .generation = 2},
        {.item_id = item, .generation = 3},
        {.item_id = test_id(11), .generation = 1},
    };
    QR_CHECK_RC(QR_OK, qr_index_count_extents(f.set, base, MODEL, extents, QR_COUNT(extents), &err));
    const int64_t wanted[][3] = {{2, 1, 1}, {2, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    for (size_t i = 0; i < QR_COUNT(extents); i++) {
        QR_CHECK_INT(wanted[i][0], extents[i].chunk_count);
        QR_CHECK_INT(wanted[i][1], extents[i].vector_count);
        QR_CHECK_INT(wanted[i][2], extents[i].failed_count);
    }
    QR_CHECK_RC(QR_OK, qr_index_count_extents(f.set, base, 0, extents, 1, &err)); /* of no model */
    QR_CHECK_INT(2, extents[0].chunk_count);
    QR_CHECK_INT(0, extents[0].vector_count);
    index_fixture_close(&f);
}

QR_DB_TEST(bases_do_not_see_each_other)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    index_write(&f, test_id(BASE), test_id(10), 1, 0, "alpha");
    index_write(&f, test_id(OTHER_BASE), test_id(10), 1, 0, "beta");
    index_sync(&f, test_id(BASE));
    index_sync(&f, test_id(OTHER_BASE));
    QR_CHECK_INT(1, index_hit_count(&f, test_id(BASE), "alpha beta"));
    QR_CHECK_INT(1, index_hit_count(&f, test_id(OTHER_BASE), "alpha beta"));
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_delete_items(f.set, test_id(BASE), (qr_uuid[]){test_id(10)}, 1, &err));
    QR_CHECK_INT(1, index_chunk_count(&f, test_id(OTHER_BASE), test_id(10), 1));
    index_fixture_close(&f);
}

/* ---- the guard ---- */

struct gate {
    int asked;
    int refuse_at; /* the n-th time; 0 = never */
};

static qr_rc ask_gate(void *arg, qr_err *err)
{
    struct gate *gate = arg;
    return ++gate->asked == gate->refuse_at ? qr_fail(err, QR_CODE_LOST, "not yours any more") : QR_OK;
}

QR_DB_TEST(who_lost_his_right_writes_nothing) /* X2 */
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE), item = test_id(10);
    struct gate gate = {.refuse_at = 2};
    const struct qr_index_guard guard = {ask_gate, &gate};
    const struct qr_chunk old = {.text = QR_STR("alpha")}, new = {.text = QR_STR("beta")};
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, base, item, 1, &old, 1, &guard, &err));
    QR_CHECK_CODE(QR_CODE_LOST, qr_index_write_chunks(f.set, base, item, 1, &new, 1, &guard, &err));
    QR_CHECK_TEXT("not yours any more", err.msg);
    index_sync(&f, base);
    QR_CHECK_INT(1, index_hit_count(&f, base, "alpha"));
    QR_CHECK_INT(0, index_hit_count(&f, base, "beta"));
    gate = (struct gate){.refuse_at = 1};
    const float ones[2] = {1, 1};
    QR_CHECK_CODE(QR_CODE_LOST, qr_index_write_vectors(f.set, base, item, 1, SPACE(2),
                                                       &(struct qr_chunk_vector){0, ones}, 1, &guard, &err));
    struct qr_index_extent extent;
    size_t count;
    QR_CHECK_RC(QR_OK, qr_index_extents(f.set, base, MODEL, (qr_uuid){0}, 0, 1, &extent, &count, &err));
    QR_CHECK(count == 1 && extent.vector_count == 0);
    index_fixture_close(&f);
}

/* Wants those with an even number; counts how often it was asked. */
static qr_rc want_even(struct qr_index_document *documents, size_t count, void *arg, qr_err *err QR_UNUSED)
{
    int *asked = arg;
    for (size_t i = 0; i < count; i++) {
        documents[i].is_wanted = *(const int *)documents[i].owner % 2 == 0;
    }
    ++*asked;
    return QR_OK;
}

QR_DB_TEST(of_several_documents_those_are_written_that_are_still_wanted) /* X1 X2 GEN-2 */
{
    enum { COUNT = 6 };
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    const struct qr_chunk chunks[] = {{.text = QR_STR("alpha")}, {.ordinal = 1, .text = QR_STR("beta")}};
    struct qr_index_document documents[COUNT];
    int numbers[COUNT], asked = 0;
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i;
        documents[i] = (struct qr_index_document){
            .item_id = test_id(10 + i), .generation = 1, .chunks = chunks, .count = 2, .owner = &numbers[i]};
    }
    index_write(&f, base, test_id(10), 1, 0, "of an earlier attempt");
    QR_CHECK_RC(QR_OK, qr_index_write_documents(f.set, base, documents, COUNT, want_even, &asked, &err));
    QR_CHECK_INT(1, asked);
    struct qr_index_extent extents[COUNT];
    size_t count;
    QR_CHECK_RC(QR_OK, qr_index_extents(f.set, base, MODEL, (qr_uuid){0}, 0, COUNT, extents, &count, &err));
    QR_CHECK_INT(COUNT / 2, count);
    for (size_t i = 0; i < count; i++) {
        QR_CHECK(qr_uuid_equal(test_id(10 + 2 * (int)i), extents[i].item_id));
        QR_CHECK_INT(2, extents[i].chunk_count);
    }
    QR_CHECK_INT(0, index_hit_count(&f, base, "earlier"));
    index_fixture_close(&f);
}

/* ---- removing ---- */

QR_DB_TEST(deleting_takes_all_generations_and_can_be_repeated) /* X3 */
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE), gone[] = {test_id(10), test_id(12), test_id(99)};
    for (unsigned item = 10; item < 13; item++) {
        index_write(&f, base, test_id(item), 1, 0, "alpha");
        index_write(&f, base, test_id(item), 2, 0, "alpha");
    }
    index_sync(&f, base);
    index_write(&f, base, test_id(10), 3, 0, "alpha"); /* not yet searchable */
    for (int times = 0; times < 2; times++) {
        QR_CHECK_RC(QR_OK, qr_index_delete_items(f.set, base, gone, QR_COUNT(gone), &err));
        index_sync(&f, base);
        QR_CHECK_INT(2, index_hit_count(&f, base, "alpha"));
        QR_CHECK_INT(0, index_chunk_count(&f, base, test_id(10), 3));
    }
    index_fixture_close(&f);
}

QR_DB_TEST(a_purge_keeps_the_live_and_the_wanted_generation) /* RECOV-5 */
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE), item = test_id(10);
    for (int64_t generation = 1; generation <= 5; generation++) {
        index_write(&f, base, item, generation, 0, "alpha");
    }
    index_sync(&f, base);
    QR_CHECK_RC(QR_OK, qr_index_purge_item(f.set, base, item, 2, 5, &err));
    QR_CHECK_INT(2, index_hit_count(&f, base, "alpha"));
    QR_CHECK_INT(1, index_chunk_count(&f, base, item, 2));
    QR_CHECK_INT(1, index_chunk_count(&f, base, item, 5));
    QR_CHECK_RC(QR_OK, qr_index_purge_item(f.set, base, item, 0, 5, &err));
    QR_CHECK_INT(1, index_hit_count(&f, base, "alpha"));
    index_fixture_close(&f);
}

/* ---- extents ---- */

QR_DB_TEST(extents_are_listed_page_by_page_with_their_counts)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    const float ones[3] = {1, 1, 1};
    for (unsigned item = 10; item < 15; item++) {
        for (int64_t generation = 1; generation <= 2; generation++) {
            for (int64_t ordinal = 0; ordinal < 3; ordinal++) {
                index_write(&f, base, test_id(item), generation, ordinal, "alpha");
            }
        }
    }
    const struct qr_chunk_vector vectors[] = {{0, ones}, {2, NULL}};
    QR_CHECK_RC(QR_OK, qr_index_write_vectors(f.set, base, test_id(12), 2, SPACE(3), vectors, 2, NULL, &err));
    struct qr_index_extent page[4], last = {0};
    size_t count, seen = 0;
    do {
        QR_CHECK_RC(QR_OK, qr_index_extents(f.set, base, MODEL, last.item_id, last.generation, 4, page, &count, &err));
        for (size_t i = 0; i < count; i++, seen++) {
            const bool has_vectors = seen == 5;
            QR_CHECK(qr_uuid_equal(test_id(10 + (unsigned)seen / 2), page[i].item_id));
            QR_CHECK_INT(1 + seen % 2, page[i].generation);
            QR_CHECK_INT(3, page[i].chunk_count);
            QR_CHECK_INT(has_vectors, page[i].vector_count);
            QR_CHECK_INT(has_vectors, page[i].failed_count);
            last = page[i];
        }
    } while (count == 4);
    QR_CHECK_INT(10, seen);
    index_fixture_close(&f);
}

/* ---- vectors ---- */

QR_DB_TEST(vectors_of_several_documents_are_written_together_but_for_those_that_are_not_wanted) /* X2 */
{
    enum { DOCUMENTS = 4 };
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    const float one[1] = {1};
    const int numbers[DOCUMENTS] = {0, 1, 2, 3};
    const struct qr_chunk_vector vectors[2] = {{0, one}, {1, NULL}};
    struct qr_index_document documents[DOCUMENTS];
    int asked = 0;
    for (int i = 0; i < DOCUMENTS; i++) {
        index_write(&f, base, test_id(10 + i), 1, 0, "alpha");
        index_write(&f, base, test_id(10 + i), 1, 1, "beta");
        documents[i] = (struct qr_index_document){
            .item_id = test_id(10 + i), .generation = 1, .vectors = vectors, .count = 2, .owner = &numbers[i]};
    }
    QR_CHECK_RC(QR_OK, qr_index_write_vectors_of(f.set, base, SPACE(1), documents, DOCUMENTS, want_even, &asked, &err));
    QR_CHECK_INT(1, asked); /* of all in one transaction */
    struct qr_index_extent extents[DOCUMENTS];
    size_t count;
    QR_CHECK_RC(QR_OK, qr_index_extents(f.set, base, MODEL, (qr_uuid){0}, 0, DOCUMENTS, extents, &count, &err));
    QR_CHECK_INT(DOCUMENTS, count);
    for (int i = 0; i < DOCUMENTS; i++) {
        QR_CHECK_INT(i % 2 == 0, extents[i].vector_count);
        QR_CHECK_INT(i % 2 == 0, extents[i].failed_count);
    }
    index_fixture_close(&f);
}

QR_DB_TEST(of_vectors_that_are_written_together_none_is_when_one_has_no_chunk)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    const float one[1] = {1};
    const int even = 0;
    const struct qr_chunk_vector vector = {0, one};
    struct qr_index_document documents[2];
    int asked = 0;
    index_write(&f, base, test_id(10), 1, 0, "alpha");
    for (int i = 0; i < 2; i++) {
        documents[i] = (struct qr_index_document){
            .item_id = test_id(10 + i), .generation = 1, .vectors = &vector, .count = 1, .owner = &even};
    }
    QR_CHECK_CODE(QR_CODE_NOT_FOUND,
                  qr_index_write_vectors_of(f.set, base, SPACE(1), documents, 2, want_even, &asked, &err));
    struct qr_index_extent extent;
    size_t count;
    QR_CHECK_RC(QR_OK, qr_index_extents(f.set, base, MODEL, (qr_uuid){0}, 0, 1, &extent, &count, &err));
    QR_CHECK(count == 1 && extent.vector_count == 0);
    index_fixture_close(&f);
}

QR_DB_TEST(spans_are_loaded_until_there_are_as_many_rows_as_are_wanted)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    const float one[1] = {1};
    struct qr_chunk_span spans[3];
    size_t done;
    for (int i = 0; i < 3; i++) {
        for (int64_t ordinal = 0; ordinal < 3; ordinal++) {
            index_write(&f, base, test_id(10 + i), 1, ordinal, "alpha");
        }
        spans[i] = (struct qr_chunk_span){.item_id = test_id(10 + i), .generation = 1, .first = 1, .last = 9};
    }
    QR_CHECK_RC(QR_OK, qr_index_write_vectors(f.set, base, test_id(10), 1, SPACE(1), &(struct qr_chunk_vector){2, one},
                                              1, NULL, &err));
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_CHECK_RC(QR_OK, qr_index_load_spans_upto(f.set, base, MODEL, spans, 3, 3, &arena, &done, &err));
    QR_CHECK(done == 2 && spans[0].count == 2 && spans[1].count == 1);
    QR_CHECK(!spans[0].rows[0].has_vector && spans[0].rows[1].has_vector && spans[1].rows[0].chunk.ordinal == 1);
    QR_CHECK_RC(QR_OK, qr_index_load_spans_upto(f.set, base, MODEL, spans, 3, 100, &arena, &done, &err));
    QR_CHECK(done == 3 && spans[2].count == 2);
    qr_arena_done(&arena);
    index_fixture_close(&f);
}

QR_DB_TEST(chunks_without_a_vector_are_those_that_have_none_and_have_not_failed)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE), item = test_id(10);
    const float one[1] = {1};
    for (int64_t ordinal = 0; ordinal < 6; ordinal++) {
        index_write(&f, base, item, 1, ordinal, "alpha");
    }
    const struct qr_chunk_vector vectors[] = {{1, one}, {4, NULL}};
    QR_CHECK_RC(QR_OK, qr_index_write_vectors(f.set, base, item, 1, SPACE(1), vectors, 2, NULL, &err));
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_chunk_row *rows;
    size_t count;
    QR_CHECK_RC(QR_OK, qr_index_chunks_without_vector(f.set, base, item, 1, 1, MODEL, 2, &arena, &rows, &count, &err));
    QR_CHECK(count == 2 && rows[0].chunk.ordinal == 2 && rows[1].chunk.ordinal == 3);
    QR_CHECK_RC(QR_OK, qr_index_chunks_without_vector(f.set, base, item, 1, 4, MODEL, 9, &arena, &rows, &count, &err));
    QR_CHECK(count == 1 && rows[0].chunk.ordinal == 5);
    QR_CHECK_RC(QR_OK, qr_index_chunks(f.set, base, item, 1, 0, MODEL, 9, &arena, &rows, &count, &err));
    QR_CHECK(count == 6 && rows[1].has_vector && !rows[1].has_failed && !rows[4].has_vector && rows[4].has_failed);
    /* what failed may succeed later, and the other way round */
    const struct qr_chunk_vector again[] = {{1, NULL}, {4, one}};
    QR_CHECK_RC(QR_OK, qr_index_write_vectors(f.set, base, item, 1, SPACE(1), again, 2, NULL, &err));
    QR_CHECK_RC(QR_OK, qr_index_chunks(f.set, base, item, 1, 0, MODEL, 9, &arena, &rows, &count, &err));
    QR_CHECK(rows[1].has_failed && rows[4].has_vector);
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_index_write_vectors(f.set, base, item, 1, SPACE(1),
                                                            &(struct qr_chunk_vector){9, one}, 1, NULL, &err));
    /* a chunk that is written again has none */
    index_write(&f, base, item, 1, 4, "beta");
    QR_CHECK_RC(QR_OK, qr_index_chunks_without_vector(f.set, base, item, 1, 4, MODEL, 9, &arena, &rows, &count, &err));
    QR_CHECK(count == 1 && rows[0].chunk.ordinal == 4);
    qr_arena_done(&arena);
    index_fixture_close(&f);
}

enum { VECTORS = 400, DIMENSION = 19, BEST = 25 };

static bool is_even_item(void *arg QR_UNUSED, qr_uuid item_id, int64_t generation QR_UNUSED)
{
    return item_id.bytes[QR_UUID_BYTES - 1] % 2 == 0;
}

static double brute_cosine(const float *a, const float *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < DIMENSION; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return ab / sqrt(aa * bb);
}

static void fill_vector(struct qr_rand *rand, float *vector)
{
    for (size_t i = 0; i < DIMENSION; i++) {
        vector[i] = (float)qr_rand_below(rand, 2001) / 1000 - 1;
    }
}

QR_DB_TEST(a_vector_search_equals_brute_force)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 7);
    static float vectors[VECTORS][DIMENSION];
    float query[DIMENSION];
    fill_vector(&chance.rand, query);
    for (unsigned i = 0; i < VECTORS; i++) {
        fill_vector(&chance.rand, vectors[i]);
        index_write(&f, base, test_id(i), 1, 0, "alpha");
        const struct qr_chunk_vector vector = {0, i == 40 ? NULL : vectors[i]};
        /* one that another model made, and one that failed */
        QR_CHECK_RC(QR_OK, qr_index_write_vectors(f.set, base, test_id(i), 1,
                                                  SPACE(i == 20 ? DIMENSION - 1 : DIMENSION), &vector, 1, NULL, &err));
    }
    double expected[VECTORS];
    size_t expected_count = 0;
    for (unsigned i = 0; i < VECTORS; i += 2) {
        if (i != 20 && i != 40) {
            expected[expected_count++] = brute_cosine(query, vectors[i]);
        }
    }
    struct qr_index_hit hits[BEST];
    size_t count;
    QR_CHECK_RC(QR_OK, qr_index_search_vector(f.set, base, SPACE(DIMENSION), query, BEST, is_even_item, NULL, hits,
                                              &count, &err));
    QR_CHECK_INT(BEST, count);
    for (size_t rank = 0; rank < BEST; rank++) {
        size_t best = 0;
        for (size_t i = 0; i < expected_count; i++) {
            best = expected[i] > expected[best] ? i : best;
        }
        QR_CHECK(fabs(expected[best] - hits[rank].score) < 1e-5);
        unsigned number = 0;
        for (int i = 0; i < 4; i++) {
            number = number << 8 | hits[rank].item_id.bytes[12 + i];
        }
        QR_CHECK(fabs(brute_cosine(query, vectors[number]) - hits[rank].score) < 1e-5);
        expected[best] = -2;
    }
    index_fixture_close(&f);
}

/* ---- text ---- */

QR_DB_TEST(any_of_the_words_matches_and_title_and_heading_weigh_more)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    const struct qr_chunk in_text = {.text = QR_STR("pumpe wartung filter")};
    const struct qr_chunk in_heading = {.text = QR_STR("wartung filter ventil"), .heading = QR_STR("pumpe")};
    const struct qr_chunk in_title = {.text = QR_STR("wartung filter ventil"), .title = QR_STR("pumpe")};
    const struct qr_chunk none = {.text = QR_STR("ganz anderes")};
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, base, test_id(1), 1, &in_text, 1, NULL, &err));
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, base, test_id(2), 1, &in_heading, 1, NULL, &err));
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, base, test_id(3), 1, &in_title, 1, NULL, &err));
    for (unsigned item = 4; item < 20; item++) {
        QR_CHECK_RC(QR_OK, qr_index_write_chunks(f.set, base, test_id(item), 1, &none, 1, NULL, &err));
    }
    index_sync(&f, base);
    struct qr_index_hit hits[10];
    size_t count;
    QR_CHECK_RC(QR_OK, qr_index_search_text(f.set, base, QR_STR("PUMPE?"), 10, NULL, NULL, hits, &count, &err));
    QR_CHECK_INT(3, count);
    for (unsigned i = 0; i < 3; i++) {
        QR_CHECK(qr_uuid_equal(test_id(3 - i), hits[i].item_id));
        QR_CHECK(hits[i].score > 0 && (i == 0 || hits[i - 1].score > hits[i].score));
    }
    QR_CHECK_INT(3, index_hit_count(&f, base, "nirgends ventil pumpe"));
    QR_CHECK_INT(0, index_hit_count(&f, base, "nirgends"));
    index_fixture_close(&f);
}

QR_DB_TEST(the_filter_is_applied_before_the_limit)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    enum { ITEMS = 700 }; /* more than a page of the scan */
    for (unsigned item = 0; item < ITEMS; item++) {
        const bool is_last = item == ITEMS - 2;
        index_write(&f, test_id(BASE), test_id(2 * item + !is_last), 1, 0, is_last ? "alpha beta beta" : "alpha");
    }
    index_sync(&f, test_id(BASE));
    struct qr_index_hit hits[5];
    size_t count;
    QR_CHECK_RC(QR_OK,
                qr_index_search_text(f.set, test_id(BASE), QR_STR("alpha"), 5, is_even_item, NULL, hits, &count, &err));
    QR_CHECK_INT(1, count);
    QR_CHECK(qr_uuid_equal(test_id(2 * (ITEMS - 2)), hits[0].item_id));
    QR_CHECK_RC(QR_OK, qr_index_search_text(f.set, test_id(BASE), QR_STR("alpha"), 5, NULL, NULL, hits, &count, &err));
    QR_CHECK_INT(5, count);
    index_fixture_close(&f);
}

QR_DB_TEST(no_query_is_an_error_or_has_a_syntax)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    const qr_uuid base = test_id(BASE);
    index_write(&f, base, test_id(10), 1, 0, "alpha near text");
    index_sync(&f, base);
    static const char *const NOTHING[] = {"",   " ",        "\"",       "\"\"",    "'",      "*",         "()", "-",
                                          ":*", "\\",       "{} ^ + ~", "&|!",     "''\\''", ";--",       "%_", "<->",
                                          "?1", "\xff\xfe", "\xc3",     "alpha*x", "al*",    "text:beta", "$1"};
    static const char *const FOUND[] = {
        "alpha",         "\"alpha",       "alpha\"",        "alpha*",         "NEAR(alpha x)", "text : alpha",
        "-alpha",        "^alpha",        "alpha AND beta", "NOT alpha",      "alpha OR",      "(alpha",
        "{text}: alpha", "alpha' | 'x",   "!alpha",         "beta <-> alpha", "alpha:A",       "'; DROP x alpha",
        "alpha\\",       "\377alpha\303", "ALPHA",          "beta + alpha"};
    for (size_t i = 0; i < QR_COUNT(NOTHING); i++) {
        qr_test_set_context("query %zu: %s", i, NOTHING[i]);
        const bool has_word = strstr(NOTHING[i], "text") || strstr(NOTHING[i], "alpha");
        QR_CHECK_INT(has_word, index_hit_count(&f, base, NOTHING[i]));
    }
    for (size_t i = 0; i < QR_COUNT(FOUND); i++) {
        qr_test_set_context("query %zu: %s", i, FOUND[i]);
        QR_CHECK_INT(1, index_hit_count(&f, base, FOUND[i]));
    }
    qr_test_set_context("%s", "");
    index_fixture_close(&f);
}

QR_DB_TEST(long_and_binary_queries_are_answered)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    index_write(&f, base, test_id(10), 1, 0, "alpha");
    index_sync(&f, base);
    static char query[64 << 10];
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 3);
    struct qr_index_hit hits[3];
    size_t count;
    for (int round = 0; round < 60; round++) {
        const size_t len = round < 20 ? 10240 : 1 + qr_rand_below(&chance.rand, sizeof query - 1);
        chance.rand.fill(&chance.rand, query, len);
        for (size_t i = 0; round % 2 && i < len; i++) {
            query[i] = "aéz\"'\0 *:-"[(unsigned char)query[i] % 11];
        }
        QR_CHECK_RC(QR_OK, qr_index_search_text(f.set, base, (qr_str){query, len}, 3, NULL, NULL, hits, &count, &err));
    }
    memset(query, 'x', sizeof query);
    QR_CHECK_RC(QR_OK,
                qr_index_search_text(f.set, base, (qr_str){query, sizeof query}, 3, NULL, NULL, hits, &count, &err));
    QR_CHECK_RC(QR_OK,
                qr_index_search_text(f.set, base, (qr_str){"beta\0alpha", 10}, 3, NULL, NULL, hits, &count, &err));
    QR_CHECK_INT(1, count);
    index_fixture_close(&f);
}

/* ---- stamp and drop ---- */

QR_DB_TEST(a_new_store_has_no_stamp_and_keeps_the_one_it_is_given) /* X4 */
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    char stamp[QR_INDEX_STAMP_SIZE] = "x";
    QR_CHECK_RC(QR_OK, qr_index_stamp(f.set, test_id(BASE), stamp, &err));
    QR_CHECK_TEXT("", stamp);
    QR_CHECK_RC(QR_OK, qr_index_set_stamp(f.set, test_id(BASE), "0190a3b2-0000-7000-8000-000000000001", &err));
    index_fixture_reopen(&f);
    QR_CHECK_RC(QR_OK, qr_index_stamp(f.set, test_id(BASE), stamp, &err));
    QR_CHECK_TEXT("0190a3b2-0000-7000-8000-000000000001", stamp);
    QR_CHECK_RC(QR_OK, qr_index_stamp(f.set, test_id(OTHER_BASE), stamp, &err));
    QR_CHECK_TEXT("", stamp);
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE,
                  qr_index_set_stamp(f.set, test_id(BASE), "0190a3b2-0000-7000-8000-000000000001-long", &err));
    index_fixture_close(&f);
}

QR_DB_TEST(a_dropped_store_is_gone_with_its_stamp_and_can_be_dropped_again)
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    const float one[1] = {1};
    QR_CHECK_RC(QR_OK, qr_index_drop(f.set, base, &err));
    index_write(&f, base, test_id(10), 1, 0, "alpha");
    index_write(&f, test_id(OTHER_BASE), test_id(10), 1, 0, "alpha");
    QR_CHECK_RC(QR_OK, qr_index_write_vectors(f.set, base, test_id(10), 1, SPACE(1), &(struct qr_chunk_vector){0, one},
                                              1, NULL, &err));
    QR_CHECK_RC(QR_OK, qr_index_set_stamp(f.set, base, "stamp", &err));
    QR_CHECK_RC(QR_OK, qr_index_drop(f.set, base, &err));
    QR_CHECK_RC(QR_OK, qr_index_drop(f.set, base, &err));
    char stamp[QR_INDEX_STAMP_SIZE];
    QR_CHECK_RC(QR_OK, qr_index_stamp(f.set, base, stamp, &err));
    QR_CHECK_TEXT("", stamp);
    QR_CHECK_INT(0, index_chunk_count(&f, base, test_id(10), 1));
    QR_CHECK_INT(1, index_chunk_count(&f, test_id(OTHER_BASE), test_id(10), 1));
    index_fixture_close(&f);
}

/* ---- models ---- */

static size_t vector_hits(struct index_fixture *f, qr_uuid base, int64_t model, qr_uuid *ret_best)
{
    const float query[2] = {1, 0};
    struct qr_index_hit hits[4];
    size_t count;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_search_vector(f->set, base, (struct qr_vector_space){model, 2}, query, 4, NULL, NULL,
                                              hits, &count, &err));
    *ret_best = count ? hits[0].item_id : (qr_uuid){0};
    return count;
}

/* Of two items: what one model finds first is the other's last. */
static void write_of_two_models(struct index_fixture *f, qr_uuid base)
{
    const float near[2] = {1, 0}, far[2] = {0, 1};
    qr_err err;
    for (unsigned item = 10; item < 12; item++) {
        index_write(f, base, test_id(item), 1, 0, "alpha");
        const struct qr_chunk_vector of_one = {0, item == 10 ? near : far}, of_other = {0, item == 10 ? far : near};
        QR_CHECK_RC(QR_OK, qr_index_write_vectors(f->set, base, test_id(item), 1, SPACE(2), &of_one, 1, NULL, &err));
        QR_CHECK_RC(QR_OK, qr_index_write_vectors(f->set, base, test_id(item), 1,
                                                  (struct qr_vector_space){OTHER_MODEL, 2}, &of_other, 1, NULL, &err));
    }
}

QR_DB_TEST(vectors_of_two_models_are_beside_each_other_and_never_mixed) /* MODEL-5 */
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    const qr_uuid base = test_id(BASE);
    struct qr_index_extent extent;
    int64_t models[4];
    qr_uuid best;
    size_t count;
    qr_err err;
    write_of_two_models(&f, base);
    QR_CHECK(vector_hits(&f, base, MODEL, &best) == 2 && qr_uuid_equal(best, test_id(10)));
    QR_CHECK(vector_hits(&f, base, OTHER_MODEL, &best) == 2 && qr_uuid_equal(best, test_id(11)));
    QR_CHECK_INT(0, vector_hits(&f, base, 5, &best));
    QR_CHECK_RC(QR_OK, qr_index_models(f.set, base, 4, models, &count, &err));
    QR_CHECK(count == 2 && models[0] == OTHER_MODEL && models[1] == MODEL);
    QR_CHECK_RC(QR_OK, qr_index_extents(f.set, base, 5, (qr_uuid){0}, 0, 1, &extent, &count, &err));
    QR_CHECK(count == 1 && extent.chunk_count == 1 && extent.vector_count == 0 && extent.failed_count == 0);
    /* a row that goes takes those of all models along */
    QR_CHECK_RC(QR_OK, qr_index_delete_items(f.set, base, (qr_uuid[]){test_id(10)}, 1, &err));
    QR_CHECK(vector_hits(&f, base, MODEL, &best) == 1 && vector_hits(&f, base, OTHER_MODEL, &best) == 1);
    QR_CHECK_RC(QR_OK, qr_index_delete_items(f.set, base, (qr_uuid[]){test_id(11)}, 1, &err));
    QR_CHECK_RC(QR_OK, qr_index_models(f.set, base, 4, models, &count, &err));
    QR_CHECK_INT(0, count);
    index_fixture_close(&f);
}

static qr_rc refuse(void *arg, qr_err *err)
{
    ++*(int *)arg;
    return qr_fail(err, QR_CODE_LOST, "by test");
}

QR_DB_TEST(models_that_are_not_kept_are_gone_and_the_others_stay) /* MODEL-5, X2 */
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    const qr_uuid base = test_id(BASE);
    int64_t models[4];
    int asked = 0;
    qr_uuid best;
    size_t count;
    qr_err err;
    write_of_two_models(&f, base);
    write_of_two_models(&f, test_id(OTHER_BASE));
    QR_CHECK_CODE(QR_CODE_LOST, qr_index_keep_models(f.set, base, (int64_t[]){MODEL}, 1,
                                                     &(struct qr_index_guard){refuse, &asked}, &err));
    QR_CHECK_INT(1, asked);
    QR_CHECK_INT(2, vector_hits(&f, base, OTHER_MODEL, &best));
    QR_CHECK_RC(QR_OK, qr_index_keep_models(f.set, base, (int64_t[]){MODEL, 0, 9}, 3, NULL, &err));
    QR_CHECK_INT(0, vector_hits(&f, base, OTHER_MODEL, &best));
    QR_CHECK_INT(2, vector_hits(&f, base, MODEL, &best));
    QR_CHECK_RC(QR_OK, qr_index_models(f.set, base, 4, models, &count, &err));
    QR_CHECK(count == 1 && models[0] == MODEL);
    QR_CHECK_INT(2, vector_hits(&f, test_id(OTHER_BASE), OTHER_MODEL, &best));
    QR_CHECK_RC(QR_OK, qr_index_keep_models(f.set, base, NULL, 0, NULL, &err));
    QR_CHECK_INT(0, vector_hits(&f, base, MODEL, &best));
    QR_CHECK_INT(2, index_chunk_count(&f, base, test_id(10), 1) + index_chunk_count(&f, base, test_id(11), 1));
    index_fixture_close(&f);
}

/* ---- failures ---- */

QR_DB_TEST(a_write_that_fails_before_its_commit_leaves_nothing)
{
    if (!qr_failpoints_built_in()) {
        qr_test_skip("failpoints are not built in");
    }
    struct index_fixture f;
    index_fixture_open(&f, t);
    qr_err err;
    const qr_uuid base = test_id(BASE), item = test_id(10);
    const struct qr_chunk chunk = {.text = QR_STR("alpha")};
    index_write(&f, base, item, 1, 0, "beta");
    QR_CHECK_RC(QR_OK, qr_failpoints_set("index.write.before_commit=error@1", &err));
    QR_CHECK(qr_index_write_chunks(f.set, base, item, 1, &chunk, 1, NULL, &err) != QR_OK);
    index_sync(&f, base);
    QR_CHECK_INT(1, index_hit_count(&f, base, "beta"));
    QR_CHECK_INT(0, index_hit_count(&f, base, "alpha"));
    index_write(&f, base, item, 1, 1, "gamma"); /* its row may have the id that was not kept (M1) */
    index_sync(&f, base);
    QR_CHECK_INT(1, index_hit_count(&f, base, "gamma"));
    QR_CHECK_INT(0, index_hit_count(&f, base, "alpha"));
    /* one that fails after it is repeated by its caller, and counts for the next sync */
    QR_CHECK_RC(QR_OK, qr_failpoints_set("index.write.after_commit=error@1", &err));
    QR_CHECK(qr_index_write_chunks(f.set, base, item, 1, &chunk, 1, NULL, &err) != QR_OK);
    index_sync(&f, base);
    QR_CHECK_INT(1, index_hit_count(&f, base, "alpha"));
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    index_fixture_close(&f);
}

QR_DB_TEST(what_was_written_is_there_after_a_restart) /* X6: without a sync, too */
{
    struct index_fixture f;
    index_fixture_open(&f, t);
    index_write(&f, test_id(BASE), test_id(10), 1, 0, "alpha");
    index_fixture_reopen(&f);
    QR_CHECK_INT(1, index_chunk_count(&f, test_id(BASE), test_id(10), 1));
    QR_CHECK_INT(1, index_hit_count(&f, test_id(BASE), "alpha"));
    index_fixture_close(&f);
}
