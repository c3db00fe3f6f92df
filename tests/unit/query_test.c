/* Queries as people type them. */
#include "base/buf.h"
#include "support/test.h"
#include "text/query.h"

static qr_err err;

/* The clauses as one line: +required -excluded field:, phrases in double quotes. */
static const char *parsed(const char *typed)
{
    static char line[4096];
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_query query;
    QR_CHECK_RC(QR_OK, qr_query_parse(qr_str_of(typed), &arena, &query, &err));
    static const char *const fields[] = {"", "title:", "heading:", "path:", "type:"};
    size_t len = 0;
    line[0] = '\0';
    for (size_t i = 0; i < query.count; i++) {
        const struct qr_clause *clause = &query.clauses[i];
        const char *quote = clause->is_phrase ? "\"" : "";
        len += (size_t)snprintf(line + len, sizeof line - len, "%s%s%s%s%.*s%s", i ? " " : "",
                                clause->is_excluded ? "-" : "", fields[clause->field], quote, QR_STR_ARG(clause->text),
                                quote);
    }
    return line;
}

QR_TEST(a_query_is_taken_apart_into_words_phrases_exclusions_and_fields)
{
    static const struct {
        const char *typed, *clauses;
    } table[] = {
        {"", ""},
        {"  \t\n ", ""},
        {"apples and pears", "apples and pears"},
        {"\"green pears\" tree", "\"green pears\" tree"},
        {"pears -apples -\"red wine\"", "pears -apples -\"red wine\""},
        {"title:guide heading:\"first steps\"", "title:guide heading:\"first steps\""},
        {"path:docs/*.md -type:note", "path:docs/*.md -type:note"},
        {"“curly quotes” «guillemets» „unten oben“ 「引用」",
         "\"curly quotes\" \"guillemets\" \"unten oben\" \"引用\""},
        {"全角　空格", "全角 空格"},
    };
    for (size_t i = 0; i < QR_COUNT(table); i++) {
        qr_test_set_context("%s", table[i].typed);
        QR_CHECK_TEXT(table[i].clauses, parsed(table[i].typed));
    }
}

QR_TEST(what_is_no_syntax_is_text)
{
    static const struct {
        const char *typed, *clauses;
    } table[] = {
        {"a 5\" disk", "a 5\" disk"},
        {"\"never closed", "\"never closed"},
        {"5\" «both kinds» \"open", "5\" \"both kinds\" \"open"},
        {"a - b", "a - b"},
        {"-", "-"},
        {"make --quiet -> done", "make --quiet -> done"},
        {"http://example.org std::vector 12:30 note:this", "http://example.org std::vector 12:30 note:this"},
        {"title:", "title:"},
        {"title: guide", "title: guide"},
        {"\"\" x", "x"},
        {"e-mail well-known", "e-mail well-known"},
    };
    for (size_t i = 0; i < QR_COUNT(table); i++) {
        qr_test_set_context("%s", table[i].typed);
        QR_CHECK_TEXT(table[i].clauses, parsed(table[i].typed));
    }
}

QR_TEST(a_long_query_is_cut_and_says_so)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    QR_CLEANUP(qr_buf_done) struct qr_buf typed = {0};
    for (int i = 0; i < 50000; i++) {
        qr_buf_add_text(&typed, i % 3 ? "\" " : "w ");
    }
    struct qr_query query;
    QR_CHECK_RC(QR_OK, qr_query_parse(qr_buf_str(&typed), &arena, &query, &err));
    QR_CHECK(query.was_cut);
    QR_CHECK_INT(QR_QUERY_CLAUSES_MAX, query.count);
}

QR_TEST(no_memory_is_an_error)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 16);
    struct qr_query query;
    QR_CHECK_CODE(QR_CODE_OUT_OF_MEMORY, qr_query_parse(QR_STR("x"), &arena, &query, &err));
}
