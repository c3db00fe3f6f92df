/* The splitter: its promises (S1–S4 of chunk/split.c) on texts made from seeds, and what people expect on small ones. */
#include "base/buf.h"
#include "base/rand.h"
#include "chunk/split.h"
#include "chunk/unicode.h"
#include "model/markdown.h"
#include "support/fault.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static qr_err err;

struct split {
    struct qr_arena arena;
    qr_str text;
    struct qr_piece *pieces;
    size_t count;
};

static struct split split_with(qr_str text, const struct qr_split_options *options)
{
    struct split split = {.text = text};
    qr_arena_init(&split.arena, 0);
    QR_CHECK_RC(QR_OK, qr_split(text, options, &split.arena, &split.pieces, &split.count, &err));
    return split;
}

static struct split split_text(const char *text, int64_t size_tokens)
{
    return split_with(qr_str_of(text), &(struct qr_split_options){.size_tokens = size_tokens});
}

static void split_done(struct split *split)
{
    qr_arena_done(&split->arena);
}
#define SPLIT QR_CLEANUP(split_done) struct split

static qr_str piece_text(const struct split *split, size_t i)
{
    const struct qr_piece *piece = &split->pieces[i];
    return (qr_str){split->text.ptr + piece->start, (size_t)(piece->end - piece->start)};
}

static void check_piece(const struct split *split, size_t i, const char *expected)
{
    QR_CHECK(i < split->count);
    QR_CHECK_STR(expected, piece_text(split, i));
}

/* ---- the promises ---- */

static int64_t line_of(qr_str text, int64_t at)
{
    int64_t line = 1;
    for (int64_t i = 0; i < at; i++) {
        line += text.ptr[i] == '\n';
    }
    return line;
}

static bool is_char_start(qr_str text, int64_t at)
{
    return at == (int64_t)text.len || ((unsigned char)text.ptr[at] & 0xC0) != 0x80;
}

static int64_t char_before(qr_str text, int64_t at)
{
    do {
        at--;
    } while (!is_char_start(text, at));
    return at;
}

/* Not before a mark, unless there are more of them than any writing has (32). */
static void check_place(qr_str text, int64_t at) /* S2 */
{
    QR_CHECK(is_char_start(text, at));
    int marks = 0;
    for (int64_t next = at; next < (int64_t)text.len && next > 0 && marks < 32; marks++) {
        const int64_t before = char_before(text, next);
        const struct qr_char last = qr_char_at((qr_str){text.ptr + before, text.len - (size_t)before});
        if (last.is_space || !qr_char_at((qr_str){text.ptr + next, text.len - (size_t)next}).is_joined) {
            break;
        }
        QR_CHECK(last.is_joined);
        next = before;
    }
}

/* A character with its marks may be larger than the size. */
static bool is_one_cluster(qr_str text)
{
    for (size_t len; (len = qr_space_len(text));) {
        text = (qr_str){text.ptr + len, text.len - len};
    }
    for (size_t at = qr_char_at(text).len; at < text.len;) {
        const struct qr_char c = qr_char_at((qr_str){text.ptr + at, text.len - at});
        if (!c.is_joined && text.ptr[at - 1] != '\x8D' && !qr_char_is_regional(c.code)) {
            return false;
        }
        at += c.len;
    }
    return true;
}

static void check_promises(const struct split *split, const struct qr_split_options *options)
{
    int64_t covered = 0;
    for (size_t i = 0; i < split->count; i++) {
        const struct qr_piece *piece = &split->pieces[i];
        const qr_str text = piece_text(split, i);
        QR_CHECK(piece->start < piece->end && piece->end <= (int64_t)split->text.len);
        QR_CHECK(piece->end > covered && (options->overlap_tokens || piece->start >= covered));
        if (piece->start > covered) { /* S1 */
            QR_CHECK(qr_is_blank((qr_str){split->text.ptr + covered, (size_t)(piece->start - covered)}));
        }
        QR_CHECK(qr_utf8_valid(text) && !qr_is_blank(text));
        if (options->separator.len == 0) {
            check_place(split->text, piece->start);
            check_place(split->text, piece->end);
        }
        QR_CHECK_INT(qr_token_count(text), piece->token_count);
        if (piece->token_count > options->size_tokens && !is_one_cluster(text)) { /* S3 */
            QR_FAIL("%lld tokens, not %lld: %.*s", (long long)piece->token_count, (long long)options->size_tokens,
                    QR_STR_ARG(text));
        }
        QR_CHECK_INT(line_of(split->text, piece->start), piece->line_start);
        QR_CHECK_INT(line_of(split->text, piece->end - 1), piece->line_end);
        QR_CHECK(qr_utf8_valid(piece->heading));
        covered = piece->end;
    }
    QR_CHECK(qr_is_blank((qr_str){split->text.ptr + covered, split->text.len - (size_t)covered}));
}

static const char *const words[] = {
    "word ",
    "a ",
    "sentence. ",
    "Is it? ",
    "\n",
    "\n\n",
    "\n\n\n",
    "# One\n",
    "\n## Two words ##\n",
    "###### deep\n",
    "#no\n",
    "```\n",
    "```c\nint x;\n```\n",
    "~~~~\n",
    "- item\n",
    "12. item\n",
    "    indented\n",
    "\t",
    "漢字かな",
    "。",
    "、",
    "한국어 ",
    "「引用」",
    "e\u0301",
    "🇩🇪",
    "👩‍👩‍👧",
    "👍🏽",
    "\u0301",
    "\u00a0",
    "\u3000",
    "हिन्दी ",
    "ไทยคำ",
    "verylongwordwithoutanyspaceinit0123456789abcdefghijklmnopqrstuvwxyz",
    "| a | b |\n",
    "\u2028",
    "x",
};

static void add_random_text(struct qr_buf *text, struct qr_rand *rand, size_t parts)
{
    for (size_t i = 0; i < parts; i++) {
        const char *word = words[qr_rand_below(rand, QR_COUNT(words))];
        for (uint64_t n = qr_rand_below(rand, 10) == 0 ? qr_rand_below(rand, 40) : 1; n; n--) {
            qr_buf_add_text(text, word);
        }
    }
    QR_CHECK_RC(QR_OK, qr_buf_check(text, &err));
}

QR_TEST(pieces_are_verbatim_and_lose_only_white_space)
{
    enum { ROUNDS = 1000 };
    static const char *const separators[] = {"", "", "", "\n\n", "。", "word", "\n"};
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        qr_test_set_context("seed %llu", (unsigned long long)seed);
        struct qr_rand_seeded rand;
        qr_rand_seeded_init(&rand, seed);
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        add_random_text(&text, &rand.rand, qr_rand_below(&rand.rand, 120));
        const int64_t size = 1 + (int64_t)qr_rand_below(&rand.rand, seed % 2 ? 20 : 200);
        const struct qr_split_options options = {
            .size_tokens = size,
            .overlap_tokens = seed % 3 ? 0 : (int64_t)qr_rand_below(&rand.rand, (uint64_t)size + 2),
            .separator = qr_str_of(separators[qr_rand_below(&rand.rand, QR_COUNT(separators))]),
        };
        SPLIT split = split_with(qr_buf_str(&text), &options);
        check_promises(&split, &options);
    }
}

QR_TEST(white_space_alone_gives_no_pieces)
{
    SPLIT empty = split_text("", 10), blank = split_text(" \n\t\n\u00a0\u3000\n", 10);
    QR_CHECK_INT(0, empty.count);
    QR_CHECK_INT(0, blank.count);
}

/* ---- what people expect ---- */

QR_TEST(a_short_text_is_one_piece)
{
    SPLIT split = split_text("\n  One line.\nAnother.\n\n", 100);
    QR_CHECK_INT(1, split.count);
    check_piece(&split, 0, "  One line.\nAnother.");
    QR_CHECK_INT(2, split.pieces[0].line_start);
    QR_CHECK_INT(3, split.pieces[0].line_end);
    QR_CHECK_STR("", split.pieces[0].heading);
}

QR_TEST(a_section_begins_a_piece_and_gives_its_heading)
{
    const char *text =
        "# Book\n\n## First\n\nSome words about the first thing, enough of them.\n\n"
        "## Second ##\n\nSome words about the second thing, enough of them.\n\n# Other\n\nEnd of it all.";
    SPLIT split = split_text(text, 60);
    QR_CHECK_INT(3, split.count);
    check_piece(&split, 0, "# Book\n\n## First\n\nSome words about the first thing, enough of them.");
    QR_CHECK_STR("Book > First", split.pieces[0].heading);
    QR_CHECK_STR("Book > Second", split.pieces[1].heading);
    check_piece(&split, 2, "# Other\n\nEnd of it all.");
    QR_CHECK_STR("Other", split.pieces[2].heading);
}

QR_TEST(small_sections_are_kept_together_until_a_higher_one_begins)
{
    SPLIT split = split_text("## A\nx\n## B\ny\n### C\nz\n# D\nw\n", 200);
    QR_CHECK_INT(2, split.count);
    check_piece(&split, 0, "## A\nx\n## B\ny\n### C\nz");
    check_piece(&split, 1, "# D\nw");
}

QR_TEST(a_hash_inside_code_is_no_heading)
{
    SPLIT split = split_text("# Real\n\n```sh\n# comment\n# another\nls\n```\n\nAfter it.", 300);
    QR_CHECK_INT(1, split.count);
    QR_CHECK_STR("Real", split.pieces[0].heading);
}

QR_TEST(code_that_fits_is_never_cut)
{
    const char *code = "```\nint first(void);\n\nint second(void);\n\nint third(void);\n\nint fourth(void);\n```";
    for (int words_before = 0; words_before < 30; words_before++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        for (int i = 0; i < words_before; i++) {
            qr_buf_add_text(&text, "word ");
        }
        qr_buf_add_text(&text, "\n\n");
        qr_buf_add_text(&text, code);
        qr_buf_add_text(&text, "\n\nAnd words after it, which go on for a while.");
        for (int64_t overlap = 0; overlap < 10; overlap += 5) {
            SPLIT split =
                split_with(qr_buf_str(&text), &(struct qr_split_options){.size_tokens = 26, .overlap_tokens = overlap});
            bool is_whole = false;
            for (size_t i = 0; i < split.count; i++) {
                const qr_str piece = piece_text(&split, i);
                is_whole |= memmem(piece.ptr, piece.len, code, strlen(code)) != NULL;
            }
            QR_CHECK(is_whole);
        }
    }
}

QR_TEST(code_that_is_too_large_is_cut_at_lines)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_buf_add_text(&text, "```\n");
    for (int i = 0; i < 50; i++) {
        qr_buf_printf(&text, "    line_%02d = value; # no heading\n", i);
    }
    qr_buf_add_text(&text, "```\n\n# Heading\n\nText.");
    SPLIT split = split_with(qr_buf_str(&text), &(struct qr_split_options){.size_tokens = 50});
    QR_CHECK(split.count > 5);
    for (size_t i = 1; i + 1 < split.count; i++) {
        QR_CHECK(qr_str_starts_with(piece_text(&split, i), QR_STR("    line_")));
        QR_CHECK_STR("", split.pieces[i].heading);
    }
    QR_CHECK_STR("Heading", split.pieces[split.count - 1].heading);
}

QR_TEST(long_text_is_cut_between_paragraphs_then_sentences_then_words)
{
    SPLIT split = split_text("One two three four.\n\nFive six. Seven eight.\n\nNine ten eleven.", 12);
    check_piece(&split, 0, "One two three four.\n\nFive six. Seven eight.");
    check_piece(&split, 1, "Nine ten eleven.");
    SPLIT sentences = split_text("First one here. Second one here. Third one here. Fourth", 9);
    for (size_t i = 0; i + 1 < sentences.count; i++) {
        QR_CHECK(qr_str_ends_with(piece_text(&sentences, i), QR_STR(".")));
    }
    SPLIT words_only = split_text("alpha beta gamma delta epsilon zeta eta theta iota kappa", 5);
    for (size_t i = 0; i < words_only.count; i++) {
        const int64_t end = words_only.pieces[i].end;
        QR_CHECK(end == (int64_t)words_only.text.len || words_only.text.ptr[end] == ' ');
    }
}

QR_TEST(japanese_is_cut_behind_its_full_stop)
{
    SPLIT split = split_text("これは最初の文です。これは二番目の文です。「引用。」これは三番目。", 15);
    QR_CHECK(split.count > 2);
    QR_CHECK(qr_str_ends_with(piece_text(&split, 0), QR_STR("。")));
}

QR_TEST(overlap_repeats_whole_words_of_the_piece_before)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    for (int i = 0; i < 300; i++) {
        qr_buf_printf(&text, "Sentence number %d says little. ", i);
    }
    const struct qr_split_options options = {.size_tokens = 50, .overlap_tokens = 15};
    SPLIT split = split_with(qr_buf_str(&text), &options);
    check_promises(&split, &options);
    for (size_t i = 1; i < split.count; i++) {
        const int64_t repeated = split.pieces[i - 1].end - split.pieces[i].start;
        QR_CHECK(repeated > 0 && repeated <= 15 * 4);
        QR_CHECK(qr_str_starts_with(piece_text(&split, i), QR_STR("Sentence number")));
    }
}

QR_TEST(a_separator_is_a_border_and_stays_with_what_it_ends)
{
    SPLIT split = split_with(QR_STR("Q1\nA1\n---\nQ2\nA2\n---\nQ3"),
                             &(struct qr_split_options){.size_tokens = 100, .separator = QR_STR("---\n")});
    QR_CHECK_INT(3, split.count);
    check_piece(&split, 0, "Q1\nA1\n---");
    check_piece(&split, 1, "Q2\nA2\n---");
    check_piece(&split, 2, "Q3");
}

QR_TEST(tokens_are_four_bytes_or_one_wide_character)
{
    QR_CHECK_INT(0, qr_token_count(QR_STR("")));
    QR_CHECK_INT(0, qr_token_count(QR_STR(" \n ")));
    QR_CHECK_INT(1, qr_token_count(QR_STR("four")));
    QR_CHECK_INT(2, qr_token_count(QR_STR("fours")));
    QR_CHECK_INT(4, qr_token_count(QR_STR("漢字かな")));
    QR_CHECK_INT(qr_token_count(QR_STR("a b")), qr_token_count(QR_STR("  a \n\n     b\n")));
}

/* ---- small edits ---- */

static size_t pieces_in_common(const struct split *a, const struct split *b)
{
    size_t common = 0, from = 0;
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = from; j < b->count && j < from + 200; j++) {
            if (qr_str_equal(piece_text(a, i), piece_text(b, j))) {
                common++;
                from = j + 1;
                break;
            }
        }
    }
    return common;
}

/* Plain running text, without anything to hold on to but sentences. */
QR_TEST(most_pieces_survive_a_small_edit)
{
    struct qr_rand_seeded rand;
    qr_rand_seeded_init(&rand, 7);
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    for (int i = 0; i < 6000; i++) {
        for (uint64_t n = 3 + qr_rand_below(&rand.rand, 15); n; n--) {
            qr_buf_printf(&text, "w%llu ", (unsigned long long)qr_rand_below(&rand.rand, 5000));
        }
        qr_buf_add_text(&text, "end. ");
    }
    const struct qr_split_options options = {.size_tokens = 400};
    SPLIT before = split_with(qr_buf_str(&text), &options);
    QR_CLEANUP(qr_buf_done) struct qr_buf edited = {0};
    qr_buf_add_text(&edited, "A few new words, right at the beginning. ");
    qr_buf_add(&edited, qr_buf_str(&text));
    SPLIT after = split_with(qr_buf_str(&edited), &options);
    const size_t common = pieces_in_common(&before, &after);
    printf("after an edit at the beginning %zu of %zu pieces are the same\n", common, before.count);
    QR_CHECK(before.count - common <= 20);
}

/* ---- S4 ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double time_to_split(const char *unit, size_t size_bytes, int64_t overlap_tokens)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    while (text.len < size_bytes) {
        qr_buf_add_text(&text, unit);
    }
    QR_CHECK_RC(QR_OK, qr_buf_check(&text, &err));
    const double begin = seconds();
    SPLIT split = split_with(qr_buf_str(&text), &(struct qr_split_options){.overlap_tokens = overlap_tokens});
    QR_CHECK(split.count < text.len / 100);
    return seconds() - begin;
}

QR_TEST_WITH_TIMEOUT(time_grows_with_the_text_and_no_faster, 300)
{
    static const char *const units[] = {
        "x",      "word ", "\n",           " ",     "漢", "#\n", "```\n", "```\nx\n```\n", "e\u0301\u0301",
        "\u0301", "`",     "# a\n```\n\n", "- a\n", "🇩🇪"};
    for (size_t i = 0; i < QR_COUNT(units); i++) {
        enum { SMALL = 1 << 16 };
        const double small = time_to_split(units[i], SMALL, 50), large = time_to_split(units[i], 8 * SMALL, 50);
        qr_test_set_context("unit %zu: %f s, %f s", i, small, large);
        QR_CHECK(large <= 8 * small * 3 + 0.2);
    }
    qr_test_set_context("%s", "");
    printf("a line of 8 MB takes %.2f s\n", time_to_split("words without an end ", 8 << 20, 0));
}

static void split_scenario(void *arg)
{
    (void)arg;
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_piece *pieces;
    size_t count;
    const qr_rc rc = qr_split(QR_STR("# A\n\nSome text. More of it, and more. And more."),
                              &(struct qr_split_options){.size_tokens = 3}, &arena, &pieces, &count, &err);
    QR_CHECK(rc == QR_OK || rc == QR_NOMEM);
    qr_fault_disarm();
    qr_arena_done(&arena);
}

QR_TEST(running_out_of_memory_is_an_error)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, split_scenario, NULL);
}
