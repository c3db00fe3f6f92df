#include "base/thread.h"
#include "base/uuid.h"
#include "support/test.h"

enum { THREADS = 4, IDS_PER_THREAD = 5000 };

static struct qr_rand_seeded rand_source;

static void init_with_test_clock(struct qr_uuid_gen *gen, int64_t wall_ms)
{
    qr_rand_seeded_init(&rand_source, 1);
    qr_uuid_gen_init(gen, qr_test_clock(wall_ms), &rand_source.rand);
}

static int compare(qr_uuid a, qr_uuid b)
{
    return memcmp(a.bytes, b.bytes, QR_UUID_BYTES);
}

static void check_is_v7(qr_uuid id)
{
    QR_CHECK_INT(7, id.bytes[6] >> 4);
    QR_CHECK_INT(2, id.bytes[8] >> 6);
}

QR_TEST(an_id_is_a_uuidv7_that_knows_its_time)
{
    struct qr_uuid_gen gen;
    init_with_test_clock(&gen, INT64_C(0x0192ABCDEF01));
    const qr_uuid id = qr_uuid_next(&gen);
    check_is_v7(id);
    QR_CHECK_INT(INT64_C(0x0192ABCDEF01), qr_uuid_time_ms(id));
    char text[QR_UUID_TEXT_SIZE];
    qr_uuid_format(id, text);
    QR_CHECK(qr_str_starts_with(qr_str_of(text), QR_STR("0192abcd-ef01-7000-")));
    qr_uuid_gen_done(&gen);
}

QR_TEST(ids_of_one_millisecond_grow_beyond_4096_of_them)
{
    struct qr_uuid_gen gen;
    init_with_test_clock(&gen, 1000);
    qr_uuid last = qr_uuid_next(&gen);
    for (int i = 1; i < 3 * 4096 + 10; i++) {
        const qr_uuid id = qr_uuid_next(&gen);
        check_is_v7(id);
        QR_CHECK(compare(last, id) < 0);
        last = id;
    }
    QR_CHECK_INT(1003, qr_uuid_time_ms(last)); /* borrowed from the future */
    qr_test_clock_advance(2);
    QR_CHECK(compare(last, qr_uuid_next(&gen)) < 0);
    qr_test_clock_advance(100);
    QR_CHECK_INT(1102, qr_uuid_time_ms(qr_uuid_next(&gen))); /* and back to the clock when it has caught up */
    qr_uuid_gen_done(&gen);
}

QR_TEST(ids_grow_while_the_clock_jumps_both_ways)
{
    struct qr_uuid_gen gen;
    init_with_test_clock(&gen, 1000000);
    struct qr_rand_seeded jumps;
    qr_rand_seeded_init(&jumps, 99);
    qr_uuid last = qr_uuid_next(&gen);
    for (int i = 0; i < 20000; i++) {
        qr_test_clock_jump((int64_t)qr_rand_below(&jumps.rand, 2001) - 1000);
        const qr_uuid id = qr_uuid_next(&gen);
        QR_CHECK(compare(last, id) < 0);
        last = id;
    }
    qr_uuid_gen_done(&gen);
}

QR_TEST(a_clock_before_1970_still_gives_growing_ids)
{
    struct qr_uuid_gen gen;
    init_with_test_clock(&gen, -5000);
    const qr_uuid first = qr_uuid_next(&gen);
    const qr_uuid second = qr_uuid_next(&gen);
    QR_CHECK_INT(0, qr_uuid_time_ms(first));
    QR_CHECK(compare(first, second) < 0);
    qr_uuid_gen_done(&gen);
}

struct worker {
    struct qr_uuid_gen *gen;
    qr_uuid ids[IDS_PER_THREAD];
};

static void *make_ids(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < IDS_PER_THREAD; i++) {
        worker->ids[i] = qr_uuid_next(worker->gen);
    }
    return NULL;
}

static int compare_for_sort(const void *a, const void *b)
{
    return memcmp(a, b, QR_UUID_BYTES);
}

QR_TEST(threads_share_a_generator_each_sees_growing_ids_and_all_differ)
{
    static struct worker workers[THREADS];
    static qr_uuid all[THREADS * IDS_PER_THREAD];
    struct qr_uuid_gen gen;
    qr_rand_seeded_init(&rand_source, 1); /* not thread-safe by itself */
    qr_uuid_gen_init(&gen, qr_clock_system(), &rand_source.rand);
    pthread_t threads[THREADS];
    qr_err err;
    for (int i = 0; i < THREADS; i++) {
        workers[i].gen = &gen;
        QR_CHECK_RC(QR_OK, qr_thread_start(&threads[i], "ids", make_ids, &workers[i], &err));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        for (int k = 1; k < IDS_PER_THREAD; k++) {
            QR_CHECK(compare(workers[i].ids[k - 1], workers[i].ids[k]) < 0);
        }
        memcpy(&all[(size_t)i * IDS_PER_THREAD], workers[i].ids, sizeof workers[i].ids);
    }
    qsort(all, QR_COUNT(all), sizeof all[0], compare_for_sort);
    for (size_t i = 1; i < QR_COUNT(all); i++) {
        QR_CHECK(!qr_uuid_equal(all[i - 1], all[i]));
        QR_CHECK(all[i - 1].bytes[6] != all[i].bytes[6] || memcmp(&all[i - 1], &all[i], 8) != 0); /* stamps too */
    }
    qr_uuid_gen_done(&gen);
}

QR_TEST(text_and_id_lead_back_to_each_other)
{
    static const char text[] = "0192abcd-ef01-7fff-8123-456789abcdef";
    qr_uuid id, upper;
    QR_CHECK(qr_uuid_parse(qr_str_of(text), &id));
    QR_CHECK(qr_uuid_parse(QR_STR("0192ABCD-EF01-7FFF-8123-456789ABCDEF"), &upper));
    QR_CHECK(qr_uuid_equal(id, upper));
    char again[QR_UUID_TEXT_SIZE];
    qr_uuid_format(id, again);
    QR_CHECK_TEXT(text, again);
}

QR_TEST(anything_but_the_36_character_form_is_refused)
{
    static const char *const bad[] = {
        "",
        "0192abcd-ef01-7fff-8123-456789abcde",
        "0192abcd-ef01-7fff-8123-456789abcdef0",
        "0192abcdef01-7fff-8123-456789abcdef--",
        "0192abcd_ef01-7fff-8123-456789abcdef",
        "0192abcg-ef01-7fff-8123-456789abcdef",
        "{192abcd-ef01-7fff-8123-456789abcde}",
        "0192abcd-ef01-7fff-8123-456789abcde ",
        "\xE1\x91\xB2\x90-ef01-7fff-8123-456789abcdefabcd",
    };
    for (size_t i = 0; i < QR_COUNT(bad); i++) {
        qr_uuid id = {{42}};
        QR_CHECK(!qr_uuid_parse(qr_str_of(bad[i]), &id));
        QR_CHECK_INT(42, id.bytes[0]);
    }
}
