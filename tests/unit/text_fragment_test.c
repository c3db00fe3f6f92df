/* Words by which a browser finds a passage in its page. */
#include "api/text_fragment.h"
#include "support/test.h"

/* Of the text, with [brackets] around its highlights. */
static const char *fragment(const char *marked)
{
    static char line[1024];
    char text[1024];
    struct qr_range ranges[16];
    size_t len = 0, count = 0;
    for (; *marked; marked++) {
        if (*marked == '[') {
            ranges[count].start = len;
        } else if (*marked == ']') {
            ranges[count++].end = len;
        } else {
            text[len++] = *marked;
        }
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    qr_text_fragment_write((qr_str){text, len}, ranges, count, &out);
    snprintf(line, sizeof line, "%s", qr_buf_str(&out).ptr);
    return line;
}

QR_TEST(the_words_around_the_highlight_are_chosen)
{
    QR_CHECK_TEXT("four%20five%20six%20seven%20eight%20nine%20ten%20eleven",
                  fragment("one two three four five six [seven] eight nine ten eleven twelve\n"));
    QR_CHECK_TEXT("one%20two", fragment("[one] two\n"));
    QR_CHECK_TEXT("one%20two", fragment("one [two]"));
    QR_CHECK_TEXT("one%20two%20three", fragment("one  two\tthree"));
}

QR_TEST(the_line_with_the_most_highlights_is_chosen)
{
    QR_CHECK_TEXT("a%20ripe%20pear", fragment("## [Pear]\n\nnothing\n\na [ripe] [pear]\n"));
    QR_CHECK_TEXT("Pear", fragment("## [Pear]\n\na ripe [pear]\n"));
    QR_CHECK_TEXT("Title", fragment("\n# Title\n\ntext\n"));
}

QR_TEST(what_the_page_does_not_have_is_left_away)
{
    QR_CHECK_TEXT("ripe%20pears", fragment("- ripe [pears]\n"));
    QR_CHECK_TEXT("ripe%20pears", fragment("  > 12. ripe [pears]\n"));
    QR_CHECK_TEXT("no%20heading", fragment("\\# no [heading]\n"));
    QR_CHECK_TEXT("int%20pear%3B", fragment("```c\nint [pear];\n```\n"));
    QR_CHECK_TEXT("red%20wine", fragment("| name | red [wine] | 12 |\n"));
    QR_CHECK_TEXT("a%7Cb", fragment("| x | a\\|[b] | 12 |\n"));
    QR_CHECK_TEXT("head", fragment("| --- | --- |\n| head | x |\n"));
    QR_CHECK_TEXT("", fragment("```\n```\n\n"));
    QR_CHECK_TEXT("", fragment(""));
}

QR_TEST(what_means_something_in_a_fragment_is_coded)
{
    QR_CHECK_TEXT("e%2Dmail%2C%20R%26D%20%C3%A9t%C3%A9", fragment("e-mail, R&D [été]"));
}

QR_TEST(text_without_spaces_ends_at_its_marks_and_nothing_grows_without_bound)
{
    QR_CHECK_TEXT("%E6%9C%89%E9%9B%BE%E6%97%B6%E3%80%82%E9%9B%BE%E5%8F%B7%E3%80%82", fragment("有雾时。[雾号]。"));
    char line[900];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    QR_CHECK_INT(160, strlen(fragment(line)));
    for (size_t i = 5; i < sizeof line - 1; i += 100) {
        line[i] = ' ';
    }
    QR_CHECK(strlen(fragment(line)) <= 170);
}
