/* Marks in passages. */
#include "search/highlight.h"
#include "support/test.h"

static qr_err err;

/* The text with [brackets] around what is marked. */
static const char *marked(const char *query_text, const char *text)
{
    static char line[1024];
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = NULL;
    struct qr_query query;
    struct qr_wanted wanted;
    struct qr_range *ranges;
    size_t count, len = 0, at = 0;
    qr_arena_init(&arena, 0);
    const qr_languages languages = QR_BIT(qr_language_detect(qr_str_of(text)));
    QR_CHECK_RC(QR_OK, qr_tokenizer_create(&tokenizer, &err));
    QR_CHECK_RC(QR_OK, qr_query_parse(qr_str_of(query_text), &arena, &query, &err));
    QR_CHECK_RC(QR_OK, qr_wanted_read(tokenizer, &query, languages, &arena, &wanted, &err));
    QR_CHECK_RC(QR_OK, qr_highlight(tokenizer, qr_str_of(text), &wanted, &arena, &ranges, &count, &err));
    for (size_t i = 0; i < count; i++) {
        QR_CHECK(ranges[i].start >= at && ranges[i].end > ranges[i].start && ranges[i].end <= strlen(text));
        len += (size_t)snprintf(line + len, sizeof line - len, "%.*s[%.*s]", (int)(ranges[i].start - at), text + at,
                                (int)(ranges[i].end - ranges[i].start), text + ranges[i].start);
        at = ranges[i].end;
    }
    snprintf(line + len, sizeof line - len, "%s", text + at);
    return line;
}

QR_TEST(the_words_of_the_query_are_marked_in_all_their_forms)
{
    QR_CHECK_TEXT("The [pears] are [Green], said the man with a [pear].",
                  marked("green pear", "The pears are Green, said the man with a pear."));
    QR_CHECK_TEXT("有雾时[雾号]每分钟鸣响四秒。", marked("雾号", "有雾时雾号每分钟鸣响四秒。"));
    QR_CHECK_TEXT("Une [brûlée] et une [brulee].", marked("brulee", "Une brûlée et une brulee."));
}

QR_TEST(what_is_excluded_or_about_the_item_is_not_marked)
{
    QR_CHECK_TEXT("a green [tree]", marked("tree -green path:green", "a green tree"));
    QR_CHECK_TEXT("nothing here", marked("", "nothing here"));
    QR_CHECK_TEXT("", marked("tree", ""));
}

QR_TEST(small_words_are_marked_only_where_the_query_has_nothing_else)
{
    QR_CHECK_TEXT("The [history] of the [pear] is in the book.",
                  marked("what is the history of a pear", "The history of the pear is in the book."));
    QR_CHECK_TEXT("[To] [be] [or] [not] [to] [be], said the prince.",
                  marked("to be or not to be", "To be or not to be, said the prince."));
    QR_CHECK_TEXT("Die [Geschichte] der Birne und die des Apfels.",
                  marked("die geschichte und", "Die Geschichte der Birne und die des Apfels."));
    QR_CHECK_TEXT("a [new] [time] for the others", marked("the new time", "a new time for the others"));
}

QR_TEST(small_words_of_a_phrase_are_marked_where_the_phrase_stands)
{
    QR_CHECK_TEXT("The [State] [of] [the] [art] of the [states] is [art].",
                  marked("\"state of the art\"", "The State of the art of the states is art."));
    QR_CHECK_TEXT("[Time] [and] [time] [and] [time], and the [times] and so on.",
                  marked("\"time and time\"", "Time and time and time, and the times and so on."));
    /* one that is excluded marks nothing, several do not hinder each other */
    QR_CHECK_TEXT("[the] [end] [of] the [pear] [at] [the] [end] [of] a day",
                  marked("\"the end of\" \"pear at\" -\"of a\"", "the end of the pear at the end of a day"));
    /* beyond what is looked at, only what is looked for without the phrase */
    QR_CHECK_TEXT("[a] [b]", marked("\"a b\"", "a b"));
}
