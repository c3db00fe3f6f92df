/* What of a typed query reaches the database. */
#include "index/words.h"

#include "support/fault.h"
#include "support/test.h"

static qr_err err;

static struct qr_tokenizer *make_tokenizer(void)
{
    struct qr_tokenizer *tokenizer;
    QR_CHECK_RC(QR_OK, qr_tokenizer_create(&tokenizer, &err));
    return tokenizer;
}
#define TOKENIZER QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = make_tokenizer()

static void check_words(const char *expected, qr_str typed, bool is_phrase, const struct qr_words_options *options)
{
    TOKENIZER;
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_words_options own = *options;
    own.tokenizer = tokenizer;
    QR_CHECK_RC(QR_OK, is_phrase ? qr_words_phrase(&out, typed, &own, &err) : qr_words_any(&out, typed, &own, &err));
    QR_CHECK_STR(expected, qr_buf_str(&out));
}

static void check_fts5(const char *expected, qr_str typed)
{
    check_words(expected, typed, false, &(struct qr_words_options){.dialect = QR_WORDS_FTS5});
}

QR_TEST(words_are_quoted_and_joined_once_each)
{
    check_fts5("", QR_STR(""));
    check_fts5("\"alpha\"", QR_STR("alpha"));
    check_fts5("\"alpha\" OR \"beta\"", QR_STR(" alpha,beta alpha "));
    check_fts5("\"apfel\" OR \"東京\"", QR_STR("Äpfel 東京"));
    check_fts5("\"snake\" OR \"snakecas\" OR \"case\"", QR_STR("snake_case"));
    check_words("('a') | ('b')", QR_STR("a b"), false, &(struct qr_words_options){.dialect = QR_WORDS_TSQUERY});
}

QR_TEST(forms_of_a_word_count_as_one)
{
    struct qr_words_options options = {QR_WORDS_FTS5, QR_BIT(QR_LANGUAGE_FRENCH)};
    check_words("\"rate|ratF\" OR \"des|deF\"", QR_STR("rate des"), false, &options);
    options.dialect = QR_WORDS_TSQUERY;
    check_words("('rate' | 'ratF') | ('des' | 'deF')", QR_STR("rate des"), false, &options);
}

QR_TEST(a_phrase_keeps_the_order_and_asks_for_parts)
{
    struct qr_words_options options = {QR_WORDS_FTS5, 0};
    check_words("\"the snake case the dog\"", QR_STR("the snake_case, the dogs"), true, &options);
    options.dialect = QR_WORDS_TSQUERY;
    check_words("('the') <-> ('dog')", QR_STR("the dogs"), true, &options);
    check_words("", QR_STR("..."), true, &options);
}

QR_TEST(nothing_but_words_gets_through)
{
    check_fts5("\"a\" OR \"b\"", QR_STR("a\"b"));
    check_fts5("\"near\" OR \"a\" OR \"10\"", QR_STR("NEAR(a, 10)"));
    check_fts5("\"text\" OR \"x\"", QR_STR("{text}:x*"));
    check_fts5("\"a\" OR \"b\"", QR_STR("a\0b"));
    check_fts5("\"a\" OR \"b\"", QR_STR("a\xff"
                                        "b\xc3"));
    check_fts5("", QR_STR("\"'\\*^()-:+|&!<>"));
}

QR_TEST(a_query_has_a_limited_number_of_words)
{
    char typed[8 * 1000];
    size_t len = 0;
    for (int i = 0; i < 1000; i++) {
        len += (size_t)snprintf(typed + len, sizeof typed - len, "%d ", i);
    }
    TOKENIZER;
    const struct qr_words_options options = {.dialect = QR_WORDS_FTS5, .tokenizer = tokenizer};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    QR_CHECK_RC(QR_OK, qr_words_any(&out, (qr_str){typed, len}, &options, &err));
    size_t quotes = 0;
    for (size_t i = 0; i < out.len; i++) {
        quotes += out.data[i] == '"';
    }
    QR_CHECK_INT(2 * QR_WORDS_MAX, quotes);
}

/* ---- whole queries ---- */

struct written {
    struct qr_arena arena;
    struct qr_tokenizer *tokenizer;
    struct qr_buf out;
    struct qr_text_query query;
};

static void write_query(struct written *written, const char *typed, bool is_relaxed, struct qr_words_options options)
{
    struct qr_query query;
    qr_arena_init(&written->arena, 0);
    written->out = (struct qr_buf){0};
    written->tokenizer = make_tokenizer();
    QR_CHECK_RC(QR_OK, qr_query_parse(qr_str_of(typed), &written->arena, &query, &err));
    written->query = (struct qr_text_query){.clauses = query.clauses, .count = query.count, .is_relaxed = is_relaxed};
    options.tokenizer = written->tokenizer;
    QR_CHECK_RC(QR_OK, qr_words_query(&written->out, &written->query, &options, &err));
}

static void written_done(struct written *written)
{
    qr_tokenizer_free(written->tokenizer);
    qr_buf_done(&written->out);
    qr_arena_done(&written->arena);
}
#define WRITTEN QR_CLEANUP(written_done) struct written

static void check_query(const char *for_fts5, const char *for_tsquery, const char *typed, bool is_relaxed)
{
    WRITTEN fts5, tsquery;
    write_query(&fts5, typed, is_relaxed, (struct qr_words_options){.dialect = QR_WORDS_FTS5});
    QR_CHECK_STR(for_fts5, qr_buf_str(&fts5.out));
    write_query(&tsquery, typed, is_relaxed, (struct qr_words_options){.dialect = QR_WORDS_TSQUERY});
    QR_CHECK_STR(for_tsquery, qr_buf_str(&tsquery.out));
}

QR_TEST(words_of_a_query_may_occur_each_once)
{
    check_query("\"the\" OR \"cat\" OR \"dog\"", "('the') | ('cat') | ('dog')", "the cat the dog THE", false);
    check_query("", "", "", false);
    check_query("", "", "-- ... \"\" -", false);
}

QR_TEST(a_phrase_and_a_field_must_occur)
{
    check_query("(\"red wine\")", "(('red') <-> ('wine'))", "\"red wine\"", false);
    check_query("(title : (\"wine\"))", "(('wine':A))", "title:wine", false);
    check_query("(heading : (\"old wine\"))", "(('old':B) <-> ('wine':B))", "heading:\"old wine\"", false);
    check_query("(\"a b\") AND (title : (\"c\"))", "(('a') <-> ('b')) & (('c':A))", "\"a b\" title:c", false);
}

QR_TEST(what_may_occur_beside_what_must_need_not)
{
    check_query("(\"a b\") AND (((\"a b\")) OR \"c\" OR \"d\")",
                "(('a') <-> ('b')) & (((('a') <-> ('b'))) | ('c') | ('d'))", "c \"a b\" d", false);
}

QR_TEST(what_is_excluded_is_taken_from_the_rest)
{
    check_query("(\"a\" OR \"b\") NOT ((\"c\") OR (\"d e\"))", "(('a') | ('b')) & !((('c')) | (('d') <-> ('e')))",
                "a -c b -\"d e\"", false);
    check_query("(\"a\") NOT ((title : (\"c\")))", "(('a')) & !((('c':A)))", "a -title:c", false);
    check_query("", "", "-only -exclusions", false);
}

QR_TEST(relaxed_nothing_must_occur_and_beginnings_fit_but_exclusions_stay)
{
    check_query("\"red\" * OR \"wine\" * OR \"of\"", "('red':*) | ('wine':*) | ('of')", "\"red wine\" title:of", true);
    check_query("(\"abc\" *) NOT ((title : (\"xyz\")))", "(('abc':*)) & !((('xyz':A)))", "abc -title:xyz", true);
}

QR_TEST(what_is_about_items_is_passed_over)
{
    check_query("\"a\"", "('a')", "path:docs/ a type:note -path:x", false);
}

QR_TEST(a_long_query_loses_words_that_may_occur_and_nothing_else)
{
    char typed[4000];
    size_t len = 0;
    for (int i = 0; i < 200; i++) {
        len += (size_t)snprintf(typed + len, sizeof typed - len, "w%d ", i);
    }
    snprintf(typed + len, sizeof typed - len, "-secret \"must occur\"");
    WRITTEN written;
    write_query(&written, typed, false, (struct qr_words_options){.dialect = QR_WORDS_FTS5});
    QR_CHECK(written.query.was_cut);
    QR_CHECK(strstr(written.out.data, "NOT ((\"secret\"))"));
    QR_CHECK(strstr(written.out.data, "(\"must occur\") AND"));
    WRITTEN shorter;
    write_query(&shorter, "few words", false, (struct qr_words_options){.dialect = QR_WORDS_FTS5});
    QR_CHECK(!shorter.query.was_cut);
}

static bool is_the(void *arg QR_UNUSED, qr_str word)
{
    return qr_str_equal(word, QR_STR("the"));
}

static void check_left_out(const char *expected, const char *typed, bool left_out)
{
    WRITTEN written;
    write_query(&written, typed, false, (struct qr_words_options){.dialect = QR_WORDS_FTS5, .leaves_out = is_the});
    QR_CHECK_STR(expected, qr_buf_str(&written.out));
    QR_CHECK_INT(left_out, written.query.left_out);
}

QR_TEST(words_are_left_out_only_where_others_remain)
{
    check_left_out("\"cat\"", "the cat", true);
    check_left_out("\"the\"", "the", false);
    check_left_out("\"cat\"", "cat", false);
    check_left_out("(\"the cat\")", "\"the cat\"", false);
    check_left_out("(\"the cat\")", "the \"the cat\"", true);
    check_left_out("(\"cat\") NOT ((\"the\"))", "cat -the", false);
}

QR_TEST(conditions_are_what_must_and_must_not_occur)
{
    TOKENIZER;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    QR_CLEANUP(qr_buf_done) struct qr_buf required = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf excluded = {0};
    struct qr_query query;
    qr_arena_init(&arena, 0);
    QR_CHECK_RC(QR_OK, qr_query_parse(QR_STR("may \"must occur\" -not"), &arena, &query, &err));
    const struct qr_words_options options = {.dialect = QR_WORDS_FTS5, .tokenizer = tokenizer};
    struct qr_text_query text = {.clauses = query.clauses, .count = query.count};
    QR_CHECK_RC(QR_OK, qr_words_conditions(&required, &excluded, &text, &options, &err));
    QR_CHECK_STR("(\"must occur\")", qr_buf_str(&required));
    QR_CHECK_STR("(\"not\")", qr_buf_str(&excluded));
    qr_buf_clear(&required);
    qr_buf_clear(&excluded);
    text.is_relaxed = true;
    QR_CHECK_RC(QR_OK, qr_words_conditions(&required, &excluded, &text, &options, &err));
    QR_CHECK_STR("", qr_buf_str(&required));
    QR_CHECK_STR("(\"not\")", qr_buf_str(&excluded));
}

QR_TEST(the_words_of_a_query_are_listed_each_once_with_their_forms)
{
    TOKENIZER;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_query query;
    qr_str words[QR_WORDS_MAX];
    size_t count;
    qr_arena_init(&arena, 0);
    QR_CHECK_RC(QR_OK, qr_query_parse(QR_STR("rate \"des rate\" -not type:note"), &arena, &query, &err));
    const struct qr_words_options options = {.languages = QR_BIT(QR_LANGUAGE_FRENCH), .tokenizer = tokenizer};
    struct qr_text_query text = {.clauses = query.clauses, .count = query.count};
    QR_CHECK_RC(QR_OK, qr_words_list(&text, &options, &arena, words, &count, &err));
    QR_CHECK_INT(2, count);
    QR_CHECK_STR("rate|ratF", words[0]);
    QR_CHECK_STR("des|deF", words[1]);
}

/* ---- memory ---- */

static void write_once(void *arg QR_UNUSED)
{
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = NULL;
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    const struct qr_clause clauses[] = {{.text = QR_STR("one of the many queries")},
                                        {.text = QR_STR("that people"), .is_phrase = true},
                                        {.text = QR_STR("type"), .is_excluded = true}};
    struct qr_text_query query = {.clauses = clauses, .count = QR_COUNT(clauses)};
    qr_rc rc = qr_tokenizer_create(&tokenizer, &err);
    if (rc == QR_OK) {
        const struct qr_words_options options = {.dialect = QR_WORDS_TSQUERY,
                                                 .languages = QR_BIT(QR_LANGUAGE_FRENCH),
                                                 .tokenizer = tokenizer,
                                                 .leaves_out = is_the};
        rc = qr_words_query(&out, &query, &options, &err);
    }
    QR_CHECK(rc == (qr_fault_fired() ? QR_NOMEM : QR_OK));
    qr_fault_disarm();
}

QR_TEST(running_out_of_memory_is_said)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, write_once, NULL);
}
