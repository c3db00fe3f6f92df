/* Neighbours as one passage. */
#include "search/passage.h"
#include "support/test.h"

static qr_err err;

static struct qr_chunk chunk(int64_t ordinal, int64_t start, const char *text)
{
    const qr_str str = qr_str_of(text);
    return (struct qr_chunk){.ordinal = ordinal,
                             .text = str,
                             .start = start,
                             .end = start + (int64_t)str.len,
                             .line_start = ordinal + 1,
                             .line_end = ordinal + 1,
                             .token_count = 2};
}

static void check(const struct qr_chunk *chunks, size_t count, const char *text, int64_t start, int64_t end)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_chunk passage;
    QR_CHECK_RC(QR_OK, qr_passage_join(chunks, count, &arena, &passage, &err));
    QR_CHECK_STR(text, passage.text);
    QR_CHECK_INT(start, passage.start);
    QR_CHECK_INT(end, passage.end);
    QR_CHECK_INT(chunks[0].ordinal, passage.ordinal);
    QR_CHECK_INT(chunks[count - 1].line_end, passage.line_end);
}

QR_TEST(one_chunk_is_its_own_passage)
{
    const struct qr_chunk chunks[] = {chunk(3, 10, "alone")};
    check(chunks, 1, "alone", 10, 15);
}

QR_TEST(what_two_chunks_have_in_common_stands_once)
{
    const struct qr_chunk chunks[] = {chunk(0, 0, "one two"), chunk(1, 4, "two three"), chunk(2, 4, "two")};
    check(chunks, 3, "one two three", 0, 13);
}

QR_TEST(white_space_between_chunks_is_a_break)
{
    const struct qr_chunk chunks[] = {chunk(0, 0, "one"), chunk(1, 4, "two"), chunk(2, 9, "three"), chunk(3, 14, "!")};
    check(chunks, 4, "one\ntwo\n\nthree!", 0, 15);
}
