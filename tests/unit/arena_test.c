#include "base/arena.h"
#include "base/mem.h"
#include "support/test.h"

#include <stdalign.h>

QR_TEST(memory_is_zeroed_aligned_and_separate)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    unsigned char *blocks[500];
    for (size_t i = 0; i < QR_COUNT(blocks); i++) {
        blocks[i] = qr_arena_alloc(&arena, i);
        QR_CHECK(blocks[i]);
        QR_CHECK_INT(0, (uintptr_t)blocks[i] % alignof(max_align_t));
        for (size_t k = 0; k < i; k++) {
            QR_CHECK_INT(0, blocks[i][k]);
        }
        memset(blocks[i], (int)(i % 251 + 1), i);
    }
    for (size_t i = 0; i < QR_COUNT(blocks); i++) {
        for (size_t k = 0; k < i; k++) {
            QR_CHECK_INT(i % 251 + 1, blocks[i][k]);
        }
    }
    qr_arena_done(&arena);
    QR_CHECK_INT(0, arena.total_bytes);
}

QR_TEST(memory_is_zeroed_again_after_a_reset)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    qr_arena_reset(&arena); /* of an arena that was never used */
    char *first = qr_arena_alloc(&arena, 100);
    memset(first, 'x', 100);
    const size_t total_bytes = arena.total_bytes;
    qr_arena_reset(&arena);
    char *second = qr_arena_alloc(&arena, 100);
    QR_CHECK(first == second);
    QR_CHECK_INT(0, second[99]);
    QR_CHECK_INT(total_bytes, arena.total_bytes);
    qr_arena_done(&arena);
}

QR_TEST(a_large_request_gets_a_block_of_its_own)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_CHECK(qr_arena_alloc(&arena, 10));
    char *large = qr_arena_alloc(&arena, 3 << 20);
    QR_CHECK(large);
    large[(3 << 20) - 1] = 'x';
    QR_CHECK(qr_arena_alloc(&arena, 10));
    qr_arena_done(&arena);
}

QR_TEST(the_limit_is_usable_to_its_last_byte_and_not_beyond)
{
    static const size_t limits[] = {16, 160, 4096, 5008, 100000};
    for (size_t i = 0; i < QR_COUNT(limits); i++) {
        struct qr_arena arena;
        qr_arena_init(&arena, limits[i]);
        size_t got = 0;
        while (qr_arena_alloc(&arena, 16)) {
            got += 16;
            QR_CHECK(got <= limits[i]);
        }
        QR_CHECK_INT(limits[i] / 16 * 16, got);
        QR_CHECK(arena.total_bytes <= limits[i]);
        QR_CHECK(!qr_arena_alloc(&arena, limits[i]));
        qr_arena_reset(&arena);
        QR_CHECK(qr_arena_alloc(&arena, 16));
        qr_arena_done(&arena);
    }
}

QR_TEST(sizes_that_overflow_are_refused)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_CHECK(!qr_arena_alloc(&arena, SIZE_MAX));
    QR_CHECK(!qr_arena_alloc(&arena, SIZE_MAX - 16));
    QR_CHECK(!qr_arena_array(&arena, SIZE_MAX / 2, 3));
    QR_CHECK(!qr_arena_copy(&arena, (qr_str){"", SIZE_MAX}));
    QR_CHECK(qr_arena_array(&arena, 3, 8));
    qr_arena_done(&arena);
}

QR_TEST(copies_and_formatted_text_end_with_nul)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_CHECK_TEXT("abc", qr_arena_copy(&arena, (qr_str){"abcdef", 3}));
    QR_CHECK_TEXT("", qr_arena_copy(&arena, (qr_str){NULL, 0}));
    QR_CHECK_TEXT("7 of nine", qr_arena_printf(&arena, "%d of %s", 7, "nine"));
    qr_arena_done(&arena);
}

QR_TEST(checked_allocation_refuses_overflow_and_never_gives_null_for_nothing)
{
    QR_CHECK(!qr_alloc_array(SIZE_MAX / 2, 3));
    char *nothing = qr_alloc(0);
    QR_CHECK(nothing);
    nothing = qr_resize(nothing, 0);
    QR_CHECK(nothing);
    qr_free(nothing);
    qr_free(NULL);
    char *zeroed = qr_alloc_array(10, 10);
    for (int i = 0; i < 100; i++) {
        QR_CHECK_INT(0, zeroed[i]);
    }
    qr_free(zeroed);
    QR_CLEANUP(qr_free_ptr) char *copy = qr_copy_string("copy");
    QR_CHECK_TEXT("copy", copy);
}

QR_TEST(a_copy_for_people_is_valid_whatever_the_bytes_are)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_CHECK_TEXT("caf\xC3\xA9 \xE2\x82\xAC", qr_arena_copy_utf8(&arena, QR_STR("caf\xC3\xA9 \xE2\x82\xAC")));
    QR_CHECK_TEXT("a?b??", qr_arena_copy_utf8(&arena, QR_STR("a\0b\xFF\xC3")));
    QR_CHECK_TEXT("", qr_arena_copy_utf8(&arena, QR_STR("")));
    qr_arena_done(&arena);
}
