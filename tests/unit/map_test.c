#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "support/test.h"

enum { KEYS = 300, STEPS = 200000 };

/* The model: one slot a key that could ever be used. */
static void *model[KEYS];
static int targets[KEYS]; /* values point here */

static qr_str key_of(size_t i, char room[static 64])
{
    /* lengths 0 to 36, some all NUL */
    memset(room, (int)(i / 12), 64);
    return (qr_str){room, i % 12 ? i % 12 : (i / 12 ? 12 + i / 12 : 0)};
}

static void check_against_model(const struct qr_map *map)
{
    char room[64];
    size_t expected_count = 0;
    for (size_t i = 0; i < KEYS; i++) {
        QR_CHECK(qr_map_find(map, key_of(i, room)) == model[i]);
        expected_count += model[i] != NULL;
    }
    QR_CHECK_INT(expected_count, map->count);
    size_t cursor = 0, seen = 0;
    qr_str key;
    void *value;
    while (qr_map_next(map, &cursor, &key, &value)) {
        QR_CHECK(qr_map_find(map, key) == value);
        seen++;
    }
    QR_CHECK_INT(expected_count, seen);
}

QR_TEST(random_operations_agree_with_a_simple_model)
{
    struct qr_rand_seeded rand;
    qr_rand_seeded_init(&rand, 20240611);
    struct qr_map map;
    qr_map_init(&map, qr_rand_u64(&rand.rand));
    char room[64];
    for (int step = 0; step < STEPS; step++) {
        /* waves, so that the map is filled and emptied again and again */
        const bool filling = step / 5000 % 2 == 0;
        const size_t i = qr_rand_below(&rand.rand, KEYS);
        if (qr_rand_below(&rand.rand, 10) < (filling ? 8 : 2)) {
            model[i] = &targets[qr_rand_below(&rand.rand, KEYS)];
            QR_CHECK(qr_map_put(&map, key_of(i, room), model[i]));
        } else {
            QR_CHECK(qr_map_take(&map, key_of(i, room)) == model[i]);
            model[i] = NULL;
        }
        if (step % 1000 == 0) {
            check_against_model(&map);
        }
    }
    check_against_model(&map);
    qr_map_done(&map);
    QR_CHECK_INT(0, map.count);
}

QR_TEST(an_empty_map_finds_nothing)
{
    struct qr_map map;
    qr_map_init(&map, 1);
    QR_CHECK(!qr_map_find(&map, QR_STR("a")));
    QR_CHECK(!qr_map_take(&map, QR_STR("a")));
    size_t cursor = 0;
    qr_str key;
    void *value;
    QR_CHECK(!qr_map_next(&map, &cursor, &key, &value));
    qr_map_done(&map);
}

QR_TEST(the_empty_key_is_a_key)
{
    struct qr_map map;
    int value;
    qr_map_init(&map, 1);
    QR_CHECK(qr_map_put(&map, (qr_str){NULL, 0}, &value));
    QR_CHECK(qr_map_find(&map, QR_STR("")) == &value);
    QR_CHECK(!qr_map_find(&map, QR_STR("\0")));
    qr_map_done(&map);
}

QR_TEST(keys_are_copied)
{
    struct qr_map map;
    int value;
    qr_map_init(&map, 1);
    char key[] = "abc";
    QR_CHECK(qr_map_put(&map, qr_str_of(key), &value));
    key[0] = 'x';
    QR_CHECK(qr_map_find(&map, QR_STR("abc")) == &value);
    QR_CHECK(!qr_map_find(&map, qr_str_of(key)));
    qr_map_done(&map);
}

QR_TEST(a_map_that_is_filled_and_emptied_for_ever_does_not_grow)
{
    struct qr_map map;
    int value;
    qr_map_init(&map, 1);
    for (int i = 0; i < 100000; i++) {
        QR_CHECK(qr_map_put(&map, (qr_str){(const char *)&i, sizeof i}, &value));
        QR_CHECK(qr_map_take(&map, (qr_str){(const char *)&i, sizeof i}) == &value);
    }
    QR_CHECK_INT(16, map.capacity);
    qr_map_done(&map);
}

static bool memory_is_out;

static void *alloc_while_there_is_some(size_t size_bytes)
{
    return memory_is_out ? NULL : malloc(size_bytes);
}

QR_TEST(out_of_memory_leaves_the_map_as_it_was)
{
    static const struct qr_mem_hooks hooks = {alloc_while_there_is_some, realloc, free};
    qr_mem_set_hooks(&hooks);
    struct qr_map map;
    qr_map_init(&map, 1);
    for (int i = 0; i < 200; i++) {
        memory_is_out = true;
        QR_CHECK(!qr_map_put(&map, (qr_str){(const char *)&i, sizeof i}, &targets[i]));
        QR_CHECK(!qr_map_find(&map, (qr_str){(const char *)&i, sizeof i}));
        memory_is_out = false;
        QR_CHECK_INT(i, map.count);
        QR_CHECK(qr_map_put(&map, (qr_str){(const char *)&i, sizeof i}, &targets[i]));
    }
    for (int i = 0; i < 200; i++) {
        QR_CHECK(qr_map_find(&map, (qr_str){(const char *)&i, sizeof i}) == &targets[i]);
    }
    qr_map_done(&map);
}
