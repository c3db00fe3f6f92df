/* The splitter: what people expect on small texts. Its promises over all texts are in split_promises_test.c, its formats in
 * split_formats_test.c and split_code_test.c. */
#include "support/split_fixture.h"

static struct split split_text(const char *text, int64_t size_tokens)
{
    return split_with(qr_str_of(text), &(struct qr_split_options){.size_tokens = size_tokens});
}

static void check_piece(const struct split *split, size_t i, const char *expected)
{
    QR_CHECK(i < split->count);
    QR_CHECK_STR(expected, piece_text(split, i));
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
    check_promises(&split);
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

QR_TEST(a_wide_sentence_a_danda_and_a_thai_space_end_sentences)
{
    check_split("text/plain", 8, "这是第一句话。这是第二句！", "{}\n这是第一句话。\n---\n{}\n这是第二句！\n---\n");
    check_split("text/plain", 14, "यह पहला वाक्य है। यह दूसरा है।", "{}\nयह पहला वाक्य है।\n---\n{}\nयह दूसरा है।\n---\n");
    check_split("text/plain", 16, "สวัสดีครับท่าน ผมชื่อสมชายครับ", "{}\nสวัสดีครับท่าน\n---\n{}\nผมชื่อสมชายครับ\n---\n");
    check_split("text/plain", 9, "هل أنت هنا؟ نعم أنا هنا.", "{}\nهل أنت هنا؟\n---\n{}\nنعم أنا هنا.\n---\n");
}

QR_TEST(an_abbreviation_ends_no_sentence)
{
    check_split("text/plain", 12, "We met Dr. Smith there, e.g. at no. 5. Then we left him alone.",
                "{}\nWe met Dr. Smith there, e.g. at no. 5.\n---\n{}\nThen we left him alone.\n---\n");
}

QR_TEST(a_small_rest_goes_to_the_piece_before)
{
    SPLIT split = split_text("## A\n\nSome words about the first thing, and enough of them to stay.\n\n## B\n\nx", 60);
    QR_CHECK_INT(1, split.count);
    SPLIT higher = split_text("## A\n\nSome words about the first thing, and enough of them to stay.\n\n# B\n\nx", 60);
    QR_CHECK_INT(2, higher.count);
}

QR_TEST(overlap_is_left_out_where_a_unit_needs_the_room)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    for (int i = 0; i < 20; i++) {
        qr_buf_printf(&text,
                      "Text before. More of it.\n\n```\nline %02d is long\nand another one\nand a third\n```\n\n", i);
    }
    const struct qr_split_options options = {.size_tokens = 17, .overlap_tokens = 8};
    SPLIT split = split_with(qr_buf_str(&text), &options);
    check_promises(&split);
    size_t whole = 0;
    for (size_t i = 0; i < split.count; i++) {
        const qr_str piece = piece_text(&split, i);
        whole += memmem(piece.ptr, piece.len, "```\nline", 8) && memmem(piece.ptr, piece.len, "third\n```", 9);
    }
    QR_CHECK_INT(20, whole);
}
