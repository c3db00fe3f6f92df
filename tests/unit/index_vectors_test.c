/* Vectors in memory (index/vector_arrays.h): the answers are those of the rows, whatever is written, and memory has a bound. */
#include "index/set.h"

#include "base/thread.h"
#include "support/index_fixture.h"

#include <math.h>
#include <stdatomic.h>

enum {
    BASE = 1,
    OTHER_BASE,
    MODEL = 7,
    OTHER_MODEL = 8,
    DIMENSION = 19,
    ITEMS = 12,
    CHUNKS = 7,
    LIMIT = 40,
    MB = 1 << 20
};

#define SPACE(model) ((struct qr_vector_space){(model), DIMENSION})

static void open_set(struct index_fixture *f, struct qr_test *t, int64_t vector_bytes_max)
{
    *f = (struct index_fixture){.options = {.vector_bytes_max = vector_bytes_max}};
    snprintf(f->dir, sizeof f->dir, "%s/index", t->dir);
    f->options.dir = f->dir;
    index_fixture_reopen(f);
}

static void fill(struct qr_rand *rand, float *vector)
{
    for (size_t i = 0; i < DIMENSION; i++) {
        vector[i] = (float)qr_rand_below(rand, 2001) / 1000 - 1;
    }
}

/* ---- the rows are the oracle ---- */

static size_t search_rows(struct index_fixture *f, qr_uuid base, struct qr_vector_space space, const float *query,
                          qr_index_filter_fn *filter, struct qr_index_hit *ret_hits)
{
    struct rows_search request = {
        .base_id = base, .vector = query, .space = space, .limit = LIMIT, .filter = filter, .ret_hits = ret_hits};
    struct index_store *store;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_take(f->set, base, &store, &err));
    QR_CHECK_RC(QR_OK, qr_db_read(store->db, f->set->rows->search_vector, &request, &err));
    qr_index_give(f->set, store);
    return request.ret_count;
}

/* Gives the number of hits. */
static size_t check_equal(struct index_fixture *f, qr_uuid base, struct qr_vector_space space, const float *query,
                          qr_index_filter_fn *filter)
{
    struct qr_index_hit expected[LIMIT], hits[LIMIT];
    size_t count;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_search_vector(f->set, base, space, query, LIMIT, filter, NULL, hits, &count, &err));
    QR_CHECK_INT(search_rows(f, base, space, query, filter, expected), count);
    for (size_t i = 0; i < count; i++) {
        QR_CHECK(qr_uuid_equal(expected[i].item_id, hits[i].item_id));
        QR_CHECK_INT(expected[i].generation, hits[i].generation);
        QR_CHECK_INT(expected[i].ordinal, hits[i].ordinal);
        QR_CHECK(expected[i].score == hits[i].score); /* to the last bit */
    }
    QR_CHECK(f->set->vectors.bytes <= f->set->vectors.bytes_max);
    return count;
}

static bool is_even_item(void *arg QR_UNUSED, qr_uuid item_id, int64_t generation QR_UNUSED)
{
    return item_id.bytes[QR_UUID_BYTES - 1] % 2 == 0;
}

static bool is_first_generation(void *arg QR_UNUSED, qr_uuid item_id QR_UNUSED, int64_t generation)
{
    return generation == 1;
}

/* ---- what is written ---- */

static void write_chunks(struct index_fixture *f, qr_uuid base, qr_uuid item, int64_t generation, size_t count)
{
    struct qr_chunk chunks[CHUNKS];
    qr_err err;
    for (size_t i = 0; i < count; i++) {
        chunks[i] = (struct qr_chunk){.ordinal = (int64_t)i, .text = QR_STR("alpha"), .end = 5};
    }
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(f->set, base, item, generation, chunks, count, NULL, &err));
}

/* And the chunks, where there is no such one. */
static void write_vector(struct index_fixture *f, qr_uuid base, qr_uuid item, int64_t generation, int64_t ordinal,
                         struct qr_vector_space space, const float *vector)
{
    qr_err err;
    const struct qr_chunk_vector written = {ordinal, vector};
    if (qr_index_write_vectors(f->set, base, item, generation, space, &written, 1, NULL, &err) != QR_OK) {
        write_chunks(f, base, item, generation, CHUNKS);
        QR_CHECK_RC(QR_OK, qr_index_write_vectors(f->set, base, item, generation, space, &written, 1, NULL, &err));
    }
}

static void write_documents(struct index_fixture *f, qr_uuid base, unsigned first, const float *vector);

static void write_something(struct index_fixture *f, struct qr_rand *rand, qr_uuid base)
{
    float vector[DIMENSION];
    qr_err err;
    const qr_uuid item = test_id(10 + (unsigned)qr_rand_below(rand, ITEMS));
    const int64_t generation = 1 + (int64_t)qr_rand_below(rand, 3);
    const int64_t model = qr_rand_below(rand, 3) ? MODEL : OTHER_MODEL;
    const uint64_t kind = qr_rand_below(rand, 100);
    fill(rand, vector);
    if (kind == 3) {
        vector[5] = NAN;
    } else if (kind == 4) {
        memset(vector, 0, sizeof vector);
    }
    if (kind < 65) {
        struct qr_vector_space space = SPACE(model);
        space.dimension -= kind == 5; /* another one of the same model */
        write_vector(f, base, item, generation, (int64_t)qr_rand_below(rand, CHUNKS), space, kind == 6 ? NULL : vector);
    } else if (kind < 80) {
        write_chunks(f, base, item, generation, qr_rand_below(rand, CHUNKS + 1));
    } else if (kind < 86) {
        write_documents(f, base, 10 + (unsigned)qr_rand_below(rand, ITEMS), kind < 83 ? vector : NULL);
    } else if (kind < 91) {
        QR_CHECK_RC(QR_OK, qr_index_delete_items(f->set, base, (qr_uuid[]){item, test_id(10)}, 2, &err));
    } else if (kind < 95) {
        QR_CHECK_RC(QR_OK, qr_index_purge_item(f->set, base, item, generation, 3, &err));
    } else if (kind < 97) {
        QR_CHECK_RC(QR_OK, qr_index_keep_models(f->set, base, &model, 1, NULL, &err));
    } else if (kind < 98) {
        QR_CHECK_RC(QR_OK, qr_index_drop(f->set, base, &err));
    } else if (kind < 99) {
        index_fixture_reopen(f);
    }
}

static qr_rc want_all(struct qr_index_document *documents, size_t count, void *arg QR_UNUSED, qr_err *err QR_UNUSED)
{
    for (size_t i = 0; i < count; i++) {
        documents[i].is_wanted = true;
    }
    return QR_OK;
}

/* Two, over whatever there was of their first generation; with a vector each, or without. */
static void write_documents(struct index_fixture *f, qr_uuid base, unsigned first, const float *vector)
{
    const struct qr_chunk chunks[] = {{.ordinal = 0, .text = QR_STR("alpha"), .end = 5},
                                      {.ordinal = 1, .text = QR_STR("beta"), .end = 4}};
    const struct qr_chunk_vector written = {0, vector};
    struct qr_index_document documents[] = {
        {.item_id = test_id(first), .generation = 1, .chunks = chunks, .count = 2},
        {.item_id = test_id(first + 1), .generation = 1, .chunks = chunks, .count = 1},
    };
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_write_documents(f->set, base, documents, 2, want_all, NULL, &err));
    if (vector) {
        documents[0].count = 1;
        documents[0].vectors = documents[1].vectors = &written;
        QR_CHECK_RC(QR_OK, qr_index_write_vectors_of(f->set, base, SPACE(MODEL), documents, 2, want_all, NULL, &err));
    }
}

static void compare_with_rows(struct qr_test *t, uint64_t seed, int64_t vector_bytes_max, int rounds)
{
    struct index_fixture f;
    struct qr_rand_seeded chance;
    float query[DIMENSION];
    size_t found = 0;
    open_set(&f, t, vector_bytes_max);
    qr_rand_seeded_init(&chance, seed);
    for (int i = 0; i < rounds; i++) {
        const qr_uuid base = test_id(qr_rand_below(&chance.rand, 4) ? BASE : OTHER_BASE);
        for (uint64_t writes = qr_rand_below(&chance.rand, 6); writes > 0; writes--) {
            write_something(&f, &chance.rand, base);
        }
        fill(&chance.rand, query);
        found += check_equal(&f, base, SPACE(MODEL), query, NULL);
        check_equal(&f, base, SPACE(OTHER_MODEL), query, i % 3 ? is_even_item : is_first_generation);
    }
    QR_CHECK(found > (size_t)rounds); /* it was about something */
    index_fixture_close(&f);
}

QR_TEST(a_search_in_memory_finds_what_the_rows_have_whatever_is_written) /* A1, X1 */
{
    compare_with_rows(t, 11, 0, 300);
}

QR_TEST(so_it_does_where_there_is_room_for_some_or_none) /* A3 */
{
    compare_with_rows(t, 12, 2 * MB, 100);
    compare_with_rows(t, 13, 1, 60);
    compare_with_rows(t, 14, -1, 20);
}

/* ---- who reads what; with a store of our own ---- */

enum { STORE_ITEMS = 4, CHANGED_MAX = 256 };

struct store {
    float of_item[STORE_ITEMS]; /* NAN = it has no vector */
    int reads, whole_reads;
    size_t items_read;
    size_t vectors_each;         /* to be large; 0 = 1 */
    struct vector_arrays *marks; /* while it is read, item 0 changes */
    qr_rc rc;
};

static qr_rc add_item(struct store *store, struct vector_reading *reading, unsigned item)
{
    const qr_str bytes = {(const char *)&store->of_item[item], sizeof store->of_item[item]};
    for (size_t i = 0; i < QR_MAX(store->vectors_each, (size_t)1) && !isnan(store->of_item[item]); i++) {
        const struct qr_index_hit hit = {.item_id = test_id(item), .generation = 1, .ordinal = (int64_t)i};
        if (!qr_vector_content_add(&reading->content, &hit, bytes)) {
            reading->is_out_of_room = true;
        }
    }
    store->items_read++;
    return QR_OK;
}

static qr_rc read_store(void *arg, struct vector_reading *reading, qr_err *err)
{
    struct store *store = arg;
    store->reads++;
    store->whole_reads += reading->is_whole;
    for (unsigned item = 0; item < STORE_ITEMS; item++) {
        const qr_uuid id = test_id(item);
        if (reading->is_whole || qr_map_find(&reading->items, (qr_str){(const char *)id.bytes, QR_UUID_BYTES})) {
            QR_TRY(add_item(store, reading, item));
        }
    }
    if (store->marks) {
        store->of_item[0] = -store->of_item[0];
        qr_vector_arrays_mark(store->marks, test_id(BASE), test_id(0));
        store->marks = NULL;
    }
    return store->rc ? qr_fail(err, QR_CODE_TIMEOUT, "no") : QR_OK;
}

/* Gives the sum of the scores, and whether the array was used. */
static double search_store(struct vector_arrays *arrays, struct store *store, unsigned base, bool *ret_is_done)
{
    struct qr_index_hit room[LIMIT];
    struct hits hits;
    const float one = 1;
    double sum = 0;
    qr_err err;
    QR_CLEANUP(qr_cosine_done) struct cosine cosine;
    QR_CHECK_RC(QR_OK, qr_cosine_init(&cosine, &one, 1, &err));
    qr_hits_init(&hits, room, LIMIT, NULL, NULL);
    const struct vector_search search = {
        .base_id = test_id(base), .space = {MODEL, 1}, .cosine = &cosine, .read = read_store, .read_arg = store};
    QR_CHECK_RC(store->rc, qr_vector_arrays_search(arrays, &search, &hits, ret_is_done, &err));
    for (size_t i = 0; i < hits.count; i++) {
        sum += hits.hits[i].score;
    }
    QR_CHECK(arrays->bytes <= arrays->bytes_max);
    return sum;
}

QR_TEST(only_what_changed_is_read_again)
{
    struct vector_arrays arrays;
    struct store store = {.of_item = {1, 2, 3, NAN}};
    bool is_done;
    qr_vector_arrays_init(&arrays, MB);
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 3 && is_done);
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 3 && is_done);
    QR_CHECK_INT(1, store.reads);
    store.of_item[2] = NAN;
    store.of_item[3] = -4;
    qr_vector_arrays_mark(&arrays, test_id(BASE), test_id(2));
    qr_vector_arrays_mark(&arrays, test_id(BASE), test_id(3));
    qr_vector_arrays_mark(&arrays, test_id(OTHER_BASE), test_id(0));
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 1 && is_done);
    QR_CHECK_INT(2, store.reads);
    QR_CHECK_INT(1, store.whole_reads);
    QR_CHECK_INT(STORE_ITEMS + 2, store.items_read);
    qr_vector_arrays_forget(&arrays, test_id(BASE));
    QR_CHECK_INT(0, arrays.bytes);
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 1 && is_done);
    QR_CHECK_INT(2, store.whole_reads);
    qr_vector_arrays_done(&arrays);
}

QR_TEST(what_changes_while_it_is_read_is_read_again) /* A2 */
{
    struct vector_arrays arrays;
    struct store store = {.of_item = {1, 2, NAN, NAN}, .marks = &arrays};
    bool is_done;
    qr_vector_arrays_init(&arrays, MB);
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 2); /* as it was when its snapshot began */
    store.marks = &arrays;
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 0);
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 2);
    QR_CHECK_INT(3, store.reads);
    QR_CHECK_INT(1, store.whole_reads);
    qr_vector_arrays_done(&arrays);
}

QR_TEST(an_array_of_which_much_has_changed_is_forgotten) /* A4 */
{
    struct vector_arrays arrays;
    struct store store = {.of_item = {1, 1, 1, 1}};
    bool is_done;
    qr_vector_arrays_init(&arrays, MB);
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 4);
    for (unsigned i = 0; i <= CHANGED_MAX + 1; i++) {
        qr_vector_arrays_mark(&arrays, test_id(BASE), test_id(i));
    }
    QR_CHECK_INT(0, arrays.bytes);
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 4);
    QR_CHECK_INT(2, store.whole_reads);
    qr_vector_arrays_done(&arrays);
}

QR_TEST(a_read_that_fails_is_the_searchs_failure_and_the_next_one_reads_it_all)
{
    struct vector_arrays arrays;
    struct store store = {.of_item = {1, 1, 1, 1}};
    bool is_done;
    qr_vector_arrays_init(&arrays, MB);
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 4 && is_done);
    qr_vector_arrays_mark(&arrays, test_id(BASE), test_id(1));
    store.rc = QR_TIMEOUT;
    search_store(&arrays, &store, BASE, &is_done);
    QR_CHECK(!is_done);
    store.rc = QR_OK;
    QR_CHECK(search_store(&arrays, &store, BASE, &is_done) == 4 && is_done);
    QR_CHECK_INT(2, store.whole_reads);
    qr_vector_arrays_done(&arrays);
}

QR_TEST(bases_that_do_not_fit_together_take_no_memory_from_each_other_in_turn) /* A3 */
{
    enum { EACH = 12000 }; /* four items of so many: more than 1 MB */
    struct vector_arrays arrays;
    struct store one = {.of_item = {1, 1, 1, 1}, .vectors_each = EACH}, other = one;
    bool is_done;
    qr_vector_arrays_init(&arrays, 2 * MB);
    for (int i = 0; i < 12; i++) {
        search_store(&arrays, &one, BASE, &is_done);
        QR_CHECK(is_done);
        search_store(&arrays, &other, OTHER_BASE, &is_done);
        QR_CHECK(!is_done);
    }
    QR_CHECK_INT(1, one.reads);
    QR_CHECK_INT(2, other.reads);  /* tried again after a while */
    for (int i = 0; i < 40; i++) { /* nobody asks for the first one any more */
        search_store(&arrays, &other, OTHER_BASE, &is_done);
    }
    QR_CHECK(is_done);
    qr_vector_arrays_done(&arrays);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 60, THREAD_DIMENSION = THREADS + 1 };

struct worker {
    pthread_t thread;
    struct index_fixture *f;
    size_t number;
    atomic_int *wrong;
};

/* Whether a search for the worker's own direction finds its item, as `vector` has it. */
static bool finds_own(struct worker *worker, const float *vector)
{
    const qr_uuid item = test_id(100 + (unsigned)worker->number);
    struct qr_index_hit hits[LIMIT];
    size_t count = 0;
    qr_err err;
    const qr_rc rc =
        qr_index_search_vector(worker->f->set, test_id(BASE), (struct qr_vector_space){MODEL, THREAD_DIMENSION}, vector,
                               LIMIT, NULL, NULL, hits, &count, &err);
    for (size_t i = 0; i < count && rc == QR_OK; i++) {
        if (qr_uuid_equal(hits[i].item_id, item)) {
            return fabs(hits[i].score - 1) < 1e-6;
        }
    }
    return false;
}

static void *write_and_search(void *arg)
{
    struct worker *worker = arg;
    const qr_uuid base = test_id(BASE), item = test_id(100 + (unsigned)worker->number);
    const struct qr_chunk chunk = {.text = QR_STR("alpha"), .end = 5};
    qr_err err;
    for (int i = 1; i <= ROUNDS; i++) {
        float vector[THREAD_DIMENSION] = {0};
        vector[worker->number] = 1;
        vector[THREADS] = (float)i / 8; /* another direction each time: the one before does not pass */
        const struct qr_chunk_vector written = {0, vector};
        bool is_right =
            qr_index_write_chunks(worker->f->set, base, item, i, &chunk, 1, NULL, &err) == QR_OK &&
            qr_index_write_vectors(worker->f->set, base, item, i, (struct qr_vector_space){MODEL, THREAD_DIMENSION},
                                   &written, 1, NULL, &err) == QR_OK &&
            finds_own(worker, vector);
        is_right = is_right && qr_index_delete_items(worker->f->set, base, &item, 1, &err) == QR_OK &&
                   !finds_own(worker, vector);
        atomic_fetch_add(worker->wrong, !is_right);
    }
    return NULL;
}

QR_TEST(threads_find_what_they_wrote_and_not_what_they_deleted) /* A1 */
{
    struct index_fixture f;
    struct worker workers[THREADS];
    atomic_int wrong = 0;
    qr_err err;
    open_set(&f, t, 0);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.f = &f, .number = i, .wrong = &wrong};
        QR_CHECK_RC(QR_OK, qr_thread_start(&workers[i].thread, "worker", write_and_search, &workers[i], &err));
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    QR_CHECK_INT(0, atomic_load(&wrong));
    index_fixture_close(&f);
}
