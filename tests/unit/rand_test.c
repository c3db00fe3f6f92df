#include "base/rand.h"
#include "support/test.h"

QR_TEST(a_seed_repeats_its_sequence)
{
    struct qr_rand_seeded a, b, c;
    qr_rand_seeded_init(&a, 7);
    qr_rand_seeded_init(&b, 7);
    qr_rand_seeded_init(&c, 8);
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        const uint64_t value = qr_rand_u64(&a.rand);
        QR_CHECK(value == qr_rand_u64(&b.rand));
        equal += value == qr_rand_u64(&c.rand);
    }
    QR_CHECK_INT(0, equal);
}

static void check_bounds(struct qr_rand *source)
{
    for (size_t size_bytes = 0; size_bytes < 100; size_bytes++) {
        unsigned char bytes[101];
        memset(bytes, 0xAA, sizeof bytes);
        source->fill(source, bytes, size_bytes);
        for (size_t i = size_bytes; i < sizeof bytes; i++) {
            QR_CHECK_INT(0xAA, bytes[i]);
        }
    }
}

QR_TEST(a_fill_of_any_size_stays_in_its_bounds)
{
    struct qr_rand_seeded seeded;
    qr_rand_seeded_init(&seeded, 1);
    check_bounds(&seeded.rand);
    check_bounds(qr_rand_system());
}

QR_TEST(a_limited_number_is_below_the_limit_and_even)
{
    struct qr_rand_seeded seeded;
    qr_rand_seeded_init(&seeded, 42);
    int counts[7] = {0};
    for (int i = 0; i < 70000; i++) {
        const uint64_t value = qr_rand_below(&seeded.rand, 7);
        QR_CHECK(value < 7);
        counts[value]++;
    }
    for (size_t i = 0; i < QR_COUNT(counts); i++) {
        QR_CHECK(counts[i] > 9500 && counts[i] < 10500);
    }
    for (int i = 0; i < 1000; i++) {
        QR_CHECK(qr_rand_below(&seeded.rand, 1) == 0);
        QR_CHECK(qr_rand_below(&seeded.rand, UINT64_MAX) < UINT64_MAX);
    }
}

/* Hands out what it is told to. */
struct scripted {
    struct qr_rand rand;
    const uint64_t *next;
};

static void scripted_fill(struct qr_rand *rand, void *bytes, size_t size_bytes)
{
    struct scripted *scripted = QR_CONTAINER_OF(rand, struct scripted, rand);
    QR_CHECK_INT(sizeof *scripted->next, size_bytes);
    memcpy(bytes, scripted->next++, size_bytes);
}

QR_TEST(the_uneven_tail_of_the_range_is_drawn_again)
{
    const uint64_t limit = (UINT64_C(1) << 63) + 1; /* only one whole multiple fits */
    const uint64_t values[] = {UINT64_MAX, limit, limit + 5, 9};
    struct scripted scripted = {{scripted_fill}, values};
    QR_CHECK(qr_rand_below(&scripted.rand, limit) == 9);
    QR_CHECK(scripted.next == values + 4);
}

QR_TEST(the_systems_numbers_differ)
{
    QR_CHECK(qr_rand_u64(qr_rand_system()) != qr_rand_u64(qr_rand_system()));
}
