/* Queries that nobody should type, and do: each has a defined answer, quickly. */
#include "support/search_fixture.h"

#include <stdio.h>

static void open_with_note(struct library *library, struct qr_test *t)
{
    library_open(library, t, QR_SHOP_HASHED);
    library_note(library, "plain", "the quick brown fox jumps over the lazy dog and is not to be caught\n");
    library_note(library, "arabic", "تعمل محركات البحث بالفهارس المقلوبة\n");
    library_note(library, "hebrew", "שלום עולם, זה טקסט מימין לשמאל\n");
    library_work(library);
}

QR_DB_TEST(a_query_without_a_word_finds_nothing)
{
    static const char *const queries[] = {"",           " \t\n ",    "...",     "?!*()[]{}", "-",
                                          "--- ---",    "\"\"",      "\"...\"", "-fox",      "-fox -dog",
                                          "path:*.txt", "type:note", "🙂",    "«»",        "-\"lazy dog\""};
    struct library library;
    open_with_note(&library, t);
    for (size_t i = 0; i < QR_COUNT(queries); i++) {
        struct qr_search search = library_search(&library, queries[i]);
        for (enum qr_search_mode mode = QR_MODE_AUTO; mode < QR_MODE_COUNT; mode++) {
            search.mode = mode;
            const struct qr_search_answer answer = library_run(&library, &search);
            if (answer.count && mode == QR_MODE_TEXT) {
                QR_FAIL("%s finds %s", queries[i], answer_names(&answer));
            }
        }
    }
    library_close(&library);
}

QR_DB_TEST(stop_words_alone_are_words)
{
    struct library library;
    open_with_note(&library, t);
    struct qr_search search = library_search(&library, "to be and not");
    search.mode = QR_MODE_TEXT;
    const struct qr_search_answer answer = library_run(&library, &search);
    QR_CHECK_TEXT("plain", answer_names(&answer));
    library_close(&library);
}

QR_DB_TEST(right_to_left_text_is_found)
{
    struct library library;
    open_with_note(&library, t);
    QR_CHECK_TEXT("arabic", library_ask(&library, "محركات البحث").hits[0].item->name);
    QR_CHECK_TEXT("hebrew", library_ask(&library, "\"שלום עולם\"").hits[0].item->name);
    library_close(&library);
}

/* No syntax of regular expressions, FTS5 or tsquery means anything, or is an error. */
QR_DB_TEST(syntax_of_others_is_text)
{
    static const char *const queries[] = {
        "fox*",
        "^fox$",
        "(fox|cat)",
        "fox AND",
        "NOT fox",
        "fox NEAR(dog, 5)",
        "fox OR OR",
        "{title text}: fox",
        "text:fox",
        "chunk_fts MATCH 'fox'",
        "fox' OR '1'='1",
        "fox & ! | <-> :*",
        "fox:*A",
        "'fox'",
        "\\fox\\",
        "fox\\'; DROP TABLE item; --",
        "%fox% ?1 $1 :x @y",
        "\"fox",
        "fox\"",
        "fox + dog",
        "“fox",
        "[[:alpha:]]+ fox .*",
        "fox | | |",
        "(((((fox",
    };
    struct library library;
    open_with_note(&library, t);
    for (size_t i = 0; i < QR_COUNT(queries); i++) {
        struct qr_search search = library_search(&library, queries[i]);
        search.mode = QR_MODE_TEXT;
        const struct qr_search_answer answer = library_run(&library, &search);
        if (!answer_has(&answer, "plain")) {
            QR_FAIL("%s does not find the fox", queries[i]);
        }
    }
    library_close(&library);
}

static void repeat(struct qr_buf *out, const char *text, size_t bytes)
{
    while (out->len < bytes) {
        qr_buf_printf(out, "%s%zu ", text, out->len);
    }
}

QR_DB_TEST(a_hundred_kilobytes_are_answered)
{
    static const char *const pieces[] = {"fox",  "\"",   "-x",       "title:",  "path:a*",
                                         "((((", "東京", "a.b.c/d_", "\"a b\" "};
    enum { BYTES = 100 << 10 };
    struct library library;
    open_with_note(&library, t);
    for (size_t i = 0; i < QR_COUNT(pieces); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf query = {0};
        qr_buf_add_text(&query, "fox ");
        repeat(&query, pieces[i], BYTES);
        struct qr_search search = library_search(&library, query.data);
        const struct qr_search_answer answer = library_run(&library, &search);
        QR_CHECK(answer.degraded & QR_DEGRADED_QUERY || i == 1 || i == 5);
    }
    library_close(&library);
}

QR_DB_TEST(one_word_of_a_hundred_kilobytes_is_answered)
{
    enum { BYTES = 100 << 10 };
    struct library library;
    open_with_note(&library, t);
    char *query = qr_arena_alloc(&library.arena, BYTES + 1);
    memset(query, 'x', BYTES);
    QR_CHECK_INT(0, library_ask(&library, query).hits[0].found.ranks[QR_LEG_TEXT]);
    library_close(&library);
}

QR_DB_TEST(a_whole_paragraph_finds_where_it_stands)
{
    struct library library;
    open_with_note(&library, t);
    library_note(
        &library, "paragraph",
        "An inverted index maps each word to the places where it stands. To answer a query, the lists of its "
        "words are read and merged, and every document is scored by how often the words occur in it, how rare "
        "they are elsewhere, and how long it is. That is all that is needed for a search engine of some use.\n");
    library_work(&library);
    const struct qr_search_answer answer = library_ask(
        &library, "To answer a query, the lists of its words are read and merged, and every document is scored by how "
                  "often the words occur in it, how rare they are elsewhere, and how long it is.");
    QR_CHECK_TEXT("paragraph", answer.hits[0].item->name);
    library_close(&library);
}
