/* What a search finds and shows: the syntax of queries, filters, words and vectors together, passages. */
#include "support/search_fixture.h"

#include <stdio.h>

/* ---- the syntax ---- */

static void open_cellar(struct library *library, struct qr_test *t, const char *settings)
{
    library_open(library, t, settings);
    library_note(library, "red", "the red wine of the old cellar\n");
    library_note(library, "white", "wine that is white, not of red grapes\n");
    library_note(library, "beer", "dark beer from the old town\n");
    library_note(library, "Grapes", "something about harvest\n");
    library_note(library, "headed", "# Vineyard\n\n## Grapes\n\nabout harvest as well\n");
    library_work(library);
}

static void check_found(struct library *library, const char *query, const char *names)
{
    const struct qr_search_answer answer = library_ask(library, query);
    char wanted[200];
    snprintf(wanted, sizeof wanted, "%s", names);
    size_t count = 0;
    for (char *name = strtok(wanted, " "); name; name = strtok(NULL, " ")) {
        if (!answer_has(&answer, name)) {
            QR_FAIL("%s does not find %s but: %s", query, name, answer_names(&answer));
        }
        count++;
    }
    if (answer.count != count) {
        QR_FAIL("%s finds: %s", query, answer_names(&answer));
    }
}

QR_DB_TEST(words_phrases_exclusions_and_fields_mean_what_they_say)
{
    struct library library;
    open_cellar(&library, t, "{}");
    check_found(&library, "wine old", "red white beer");
    check_found(&library, "old -cellar", "beer");
    check_found(&library, "wine -\"red grapes\"", "red");
    check_found(&library, "wine -beer -cellar -white", "");
    check_found(&library, "harvest type:note", "Grapes headed");
    check_found(&library, "harvest type:file", "");
    check_found(&library, "harvest -type:note", "");
    check_found(&library, "harvest path:grap*", "Grapes");
    check_found(&library, "harvest -path:grapes", "headed");
    check_found(&library, "harvest type:nonsense", "");
    library_close(&library);
}

/* Fewer than three hits are few: what fits a part follows, behind what fits all of it. */
QR_DB_TEST(little_found_is_followed_by_what_fits_a_part)
{
    struct library library;
    open_cellar(&library, t, "{}");
    struct qr_search_answer answer = library_ask(&library, "\"red wine\"");
    QR_CHECK(answer.is_relaxed);
    QR_CHECK_TEXT("red", answer.hits[0].item->name);
    QR_CHECK(answer_has(&answer, "white") && !answer_has(&answer, "beer"));
    answer = library_ask(&library, "title:grapes");
    QR_CHECK_TEXT("Grapes", answer.hits[0].item->name);
    answer = library_ask(&library, "heading:grapes");
    QR_CHECK_TEXT("headed", answer.hits[0].item->name);
    answer = library_ask(&library, "harv"); /* a beginning */
    QR_CHECK(answer.is_relaxed && answer.count == 2);
    answer = library_ask(&library, "wine grapes old");
    QR_CHECK(!answer.is_relaxed && answer.count >= 3);
    for (size_t i = 1; i < answer.count; i++) {
        QR_CHECK(answer.hits[i - 1].found.hit.score >= answer.hits[i].found.hit.score);
    }
    library_close(&library);
}

QR_DB_TEST(title_and_heading_weigh_more_than_text)
{
    struct library library;
    library_open(&library, t, "{}");
    library_note(&library, "text", "a long note that says quince somewhere among many other words of its text\n");
    library_note(&library, "quince", "a long note that says nothing of it among the many other words of its text\n");
    library_note(&library, "other", "nothing of that kind\n");
    library_work(&library);
    QR_CHECK_TEXT("quince text", answer_names(&(struct qr_search_answer[]){library_ask(&library, "quince")}[0]));
    library_close(&library);
}

/* ---- filters ---- */

enum { CROWD = 300 };

/* Many that match better than the few that the filters let through. */
static qr_uuid open_crowd(struct library *library, struct qr_test *t, const char *settings)
{
    char name[40];
    library_open(library, t, settings);
    qr_shop_make_folder(&library->shop, "d/deep");
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof name, "d/crowd%d.txt", i);
        qr_shop_write(&library->shop, name, "common common common");
    }
    qr_shop_write(&library->shop, "d/deep/rare.md", "one common word in a file that says much else besides it\n");
    const qr_uuid folder = qr_shop_add_folder(&library->shop, "d", "");
    library_note_with(library, "tagged", "one common word in a note that says much else besides it\n",
                      "{\"lang\":\"en\",\"year\":2024}");
    library_work(library);
    return folder;
}

static void check_only(struct library *library, const struct qr_search *search, const char *name)
{
    const struct qr_search_answer answer = library_run(library, search);
    QR_CHECK_TEXT(name, answer_names(&answer));
}

static void check_filters(struct library *library, qr_uuid folder)
{
    struct qr_search search = library_search(library, "common");
    const qr_uuid deep = qr_desk_child(&library->shop.desk, folder, "deep").id;
    const qr_uuid file = qr_desk_child(&library->shop.desk, deep, "rare.md").id;
    search.top_k = 3;
    search.filter = (struct qr_search_filter){.item_ids = &deep, .item_id_count = 1};
    check_only(library, &search, "rare.md");
    search.filter.item_ids = &file;
    check_only(library, &search, "rare.md");
    search.filter = (struct qr_search_filter){.types = QR_BIT(QR_ITEM_NOTE)};
    check_only(library, &search, "tagged");
    search.filter = (struct qr_search_filter){.patterns = {{QR_STR("*.md"), false}}, .pattern_count = 1};
    check_only(library, &search, "rare.md");
    search.filter =
        (struct qr_search_filter){.patterns = {{QR_STR("*.txt"), true}, {QR_STR("deep/"), true}}, .pattern_count = 2};
    check_only(library, &search, "tagged");
    QR_JSON *attributes = json_pack("{s:[s,s], s:i}", "lang", "de", "en", "year", 2024);
    search.filter = (struct qr_search_filter){.attributes = attributes};
    check_only(library, &search, "tagged");
    const qr_uuid unknown = qr_uuid_next(&library->shop.desk.ids);
    search.filter = (struct qr_search_filter){.item_ids = &unknown, .item_id_count = 1};
    check_only(library, &search, "");
}

/* Also where what is typed leaves nothing of what the filter allows. */
static void check_filters_of_nothing(struct library *library)
{
    struct qr_search search = library_search(library, "common");
    const qr_uuid none = {0};
    search.filter = (struct qr_search_filter){.item_ids = &none, .item_id_count = 0};
    check_only(library, &search, "");
    search.filter = (struct qr_search_filter){.types = QR_FILTER_NO_TYPE};
    check_only(library, &search, "");
    search = library_search(library, "common type:file");
    search.filter.types = QR_BIT(QR_ITEM_NOTE);
    check_only(library, &search, "");
    search = library_search(library, "common type:note -type:note");
    check_only(library, &search, "");
    search = library_search(library, "common type:note");
    search.filter.types = QR_BIT(QR_ITEM_NOTE) | QR_FILTER_NO_TYPE;
    check_only(library, &search, "tagged");
}

QR_DB_TEST(filters_find_the_few_among_many_that_match_better)
{
    struct library library;
    const qr_uuid folder = open_crowd(&library, t, "{}");
    check_filters(&library, folder);
    check_filters_of_nothing(&library);
    library_close(&library);
}

QR_DB_TEST(filters_hold_for_vectors_too)
{
    struct library library;
    const qr_uuid folder = open_crowd(&library, t, QR_SHOP_HASHED);
    check_filters(&library, folder);
    check_filters_of_nothing(&library);
    library_close(&library);
}

/* ---- vectors ---- */

QR_DB_TEST(both_legs_are_fused_and_each_says_what_it_found)
{
    struct library library;
    open_cellar(&library, t, QR_SHOP_HASHED);
    struct qr_search search = library_search(&library, "red wine of the cellar");
    static const enum qr_search_mode modes[] = {QR_MODE_AUTO, QR_MODE_HYBRID};
    for (size_t i = 0; i < QR_COUNT(modes); i++) {
        search.mode = modes[i];
        const struct qr_search_answer answer = library_run(&library, &search);
        QR_CHECK_INT(QR_MODE_HYBRID, answer.mode);
        QR_CHECK(answer.is_fused && answer.degraded == 0);
        QR_CHECK_TEXT("red", answer.hits[0].item->name);
        QR_CHECK(answer.hits[0].found.ranks[QR_LEG_TEXT] == 1 && answer.hits[0].found.ranks[QR_LEG_VECTOR] == 1);
    }
    search.mode = QR_MODE_VECTOR;
    struct qr_search_answer answer = library_run(&library, &search);
    QR_CHECK(answer.mode == QR_MODE_VECTOR && !answer.is_fused && answer.hits[0].found.hit.score <= 1.0001);
    QR_CHECK_TEXT("red", answer.hits[0].item->name);
    search.mode = QR_MODE_TEXT;
    answer = library_run(&library, &search);
    QR_CHECK(answer.mode == QR_MODE_TEXT && !answer.is_fused && answer.hits[0].found.ranks[QR_LEG_VECTOR] == 0);
    library_close(&library);
}

/* The vectors find everything: what is excluded, or does not have what it must, is not shown for that. */
QR_DB_TEST(what_must_and_must_not_occur_holds_for_vectors_too)
{
    struct library library;
    open_cellar(&library, t, QR_SHOP_HASHED);
    struct qr_search search = library_search(&library, "old wine -cellar -grapes");
    for (enum qr_search_mode mode = QR_MODE_VECTOR; mode <= QR_MODE_HYBRID; mode++) {
        search.mode = mode;
        const struct qr_search_answer answer = library_run(&library, &search);
        QR_CHECK(answer_has(&answer, "beer"));
        QR_CHECK(!answer_has(&answer, "red") && !answer_has(&answer, "white") && !answer_has(&answer, "Grapes"));
    }
    search = library_search(&library, "wine \"old cellar\"");
    search.mode = QR_MODE_VECTOR;
    check_only(&library, &search, "red");
    library_close(&library);
}

QR_DB_TEST(a_provider_that_fails_costs_its_leg_and_is_named)
{
    struct library library;
    open_cellar(&library, t, QR_SHOP_HASHED);
    struct qr_search_answer answer = library_ask(&library, "wine " QR_HASH_PROVIDER_DOWN);
    QR_CHECK(answer.mode == QR_MODE_TEXT && answer.degraded == QR_DEGRADED_VECTOR);
    QR_CHECK(answer.count >= 2);
    answer = library_ask(&library, "wine " QR_HASH_UNEMBEDDABLE);
    QR_CHECK(answer.mode == QR_MODE_TEXT && answer.degraded == QR_DEGRADED_VECTOR && answer.count >= 2);
    struct qr_search search = library_search(&library, "wine");
    search.batcher = NULL;
    answer = library_run(&library, &search); /* nobody asked for vectors */
    QR_CHECK(answer.mode == QR_MODE_TEXT && answer.degraded == 0);
    search.mode = QR_MODE_VECTOR;
    answer = library_run(&library, &search);
    QR_CHECK(answer.mode == QR_MODE_TEXT && answer.degraded == QR_DEGRADED_VECTOR && answer.count >= 2);
    library_close(&library);
}

QR_DB_TEST(a_threshold_is_of_cosines_only)
{
    struct library library;
    open_cellar(&library, t, QR_SHOP_HASHED);
    struct qr_search search = library_search(&library, "the red wine of the old cellar");
    search.mode = QR_MODE_VECTOR;
    const size_t all = library_run(&library, &search).count;
    search.threshold = 0.9;
    struct qr_search_answer answer = library_run(&library, &search);
    QR_CHECK(answer.count == 1 && all > 1 && answer.degraded == 0);
    search.mode = QR_MODE_TEXT;
    answer = library_run(&library, &search);
    QR_CHECK(answer.count >= 3 && answer.degraded == QR_DEGRADED_THRESHOLD);
    search.mode = QR_MODE_HYBRID;
    answer = library_run(&library, &search); /* what the words found stays */
    QR_CHECK(answer.count >= 3 && answer.degraded == 0);
    library_close(&library);
}

/* ---- diversity and passages ---- */

QR_DB_TEST(diversity_puts_copies_behind_what_says_something_else)
{
    struct library library;
    library_open(&library, t, "{}");
    for (int i = 0; i < 4; i++) {
        library_note(&library, "copy", "apple apple pie with cream and sugar\n");
    }
    library_note(&library, "other", "the apple tree in the long garden of my neighbour\n");
    library_work(&library);
    struct qr_search search = library_search(&library, "apple");
    search.top_k = 2;
    check_only(&library, &search, "copy copy");
    search.diversity = 0.7;
    check_only(&library, &search, "copy other");
    library_close(&library);
}

/* Paragraphs that are chunks of their own. */
static void open_book(struct library *library, struct qr_test *t)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    static const char *const words[] = {"alpha", "plum", "plum", "delta", "epsilon", "zeta", "plum", "theta"};
    library_open(library, t, "{" LIBRARY_SMALL "}");
    for (size_t i = 0; i < QR_COUNT(words); i++) {
        qr_buf_printf(&text, "Paragraph %zu is about %s, and goes on with words enough to fill a chunk of its own: ", i,
                      words[i]);
        qr_buf_add_text(&text, "some more of them, and these, and those, until it is full.\n\n");
    }
    library_note(library, "book", text.data);
    library_work(library);
}

QR_DB_TEST(neighbours_become_one_passage_and_context_shows_those_beside)
{
    struct library library;
    open_book(&library, t);
    struct qr_search search = library_search(&library, "plum");
    struct qr_search_answer answer = library_run(&library, &search);
    QR_CHECK_INT(3, answer.count);
    search.keeps_chunks = false;
    answer = library_run(&library, &search);
    QR_CHECK_INT(2, answer.count);
    const bool joined_first = strstr(answer.hits[0].row.chunk.text.ptr, "Paragraph 2 ") != NULL;
    const struct qr_chunk *joined = &answer.hits[!joined_first].row.chunk,
                          *single = &answer.hits[joined_first].row.chunk;
    QR_CHECK_HAS("Paragraph 1 ", joined->text.ptr);
    QR_CHECK_HAS("Paragraph 2 ", joined->text.ptr);
    QR_CHECK(joined->end > joined->start && joined->line_end > joined->line_start);
    QR_CHECK(!strstr(single->text.ptr, "Paragraph 5 "));
    search.context = 1;
    answer = library_run(&library, &search);
    QR_CHECK_HAS("Paragraph 0 ", answer.hits[!joined_first].row.chunk.text.ptr);
    QR_CHECK_HAS("Paragraph 3 ", answer.hits[!joined_first].row.chunk.text.ptr);
    QR_CHECK_HAS("Paragraph 5 ", answer.hits[joined_first].row.chunk.text.ptr);
    QR_CHECK_HAS("Paragraph 7 ", answer.hits[joined_first].row.chunk.text.ptr);
    library_close(&library);
}

enum { PAGES = 200 };

/* One word in each of many chunks beside each other. */
static void open_long_book(struct library *library, struct qr_test *t)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    library_open(library, t, "{" LIBRARY_SMALL ",\"embedding\":{\"provider\":\"hash\"}}");
    for (int i = 0; i < PAGES; i++) {
        qr_buf_printf(&text,
                      "Paragraph %d is about plum, and goes on with words enough to fill a chunk of its own: ", i);
        qr_buf_add_text(&text, "some more of them, and these, and those, until it is full.\n\n");
    }
    library_note(library, "book", text.data);
    library_work(library);
}

QR_DB_TEST(joining_leaves_no_fewer_passages_than_there_are)
{
    static const enum qr_search_mode modes[] = {QR_MODE_TEXT, QR_MODE_VECTOR, QR_MODE_HYBRID};
    struct library library;
    open_long_book(&library, t);
    struct qr_search search = library_search(&library, "plum");
    search.keeps_chunks = false;
    for (size_t i = 0; i < QR_COUNT(modes); i++) {
        search.mode = modes[i];
        search.diversity = 0;
        search.top_k = 20;
        QR_CHECK_INT(20, library_run(&library, &search).count);
        search.diversity = 0.5;
        QR_CHECK_INT(20, library_run(&library, &search).count);
        search.diversity = 0;
        search.top_k = QR_SEARCH_TOP_K_MAX;
        const size_t count = library_run(&library, &search).count; /* each of at most five chunks */
        QR_CHECK(count >= PAGES / 5 && count <= QR_SEARCH_TOP_K_MAX);
    }
    library_close(&library);
}

QR_DB_TEST(a_passage_is_not_a_whole_book)
{
    struct library library;
    open_book(&library, t);
    struct qr_search search = library_search(&library, "paragraph");
    search.keeps_chunks = false;
    const struct qr_search_answer answer = library_run(&library, &search);
    QR_CHECK_INT(2, answer.count); /* of eight chunks */
    library_close(&library);
}

QR_DB_TEST(highlights_are_where_the_words_stand)
{
    struct library library;
    library_open(&library, t, "{}");
    library_note(&library, "note", "Ärzte laufen; running dogs, 東京大学, and the run.\n");
    library_work(&library);
    const struct qr_search_answer answer = library_ask(&library, "runs ärzte 東京 -cats");
    QR_CHECK_INT(1, answer.count);
    const struct qr_search_hit *hit = &answer.hits[0];
    const qr_str text = hit->row.chunk.text;
    QR_CLEANUP(qr_buf_done) struct qr_buf marked = {0};
    for (size_t i = 0; i < hit->highlight_count; i++) {
        const struct qr_range range = hit->highlights[i];
        QR_CHECK(range.start < range.end && range.end <= text.len);
        QR_CHECK(i == 0 || hit->highlights[i - 1].end <= range.start);
        QR_CHECK(qr_utf8_prefix(text, range.start).len == range.start &&
                 qr_utf8_prefix(text, range.end).len == range.end);
        qr_buf_printf(&marked, "%.*s|", (int)(range.end - range.start), text.ptr + range.start);
    }
    QR_CHECK_STR("Ärzte|running|東京|run|", qr_buf_str(&marked));
    library_close(&library);
}

QR_DB_TEST(results_appear_while_indexing_goes_on)
{
    struct library library;
    library_open(&library, t, "{}");
    library_note(&library, "first", "early words\n");
    library_work(&library);
    library_note(&library, "second", "early words too\n"); /* waits */
    QR_CHECK_INT(1, library_ask(&library, "early").count);
    library_work(&library);
    QR_CHECK_INT(2, library_ask(&library, "early").count);
    library_close(&library);
}
