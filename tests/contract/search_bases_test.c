/* Several bases searched as if they were one. */
#include "support/fault.h"
#include "support/search_fixture.h"

#include <stdio.h>

enum { OTHERS = 30 };

struct two {
    struct library library;
    struct qr_search_base bases[2];
};

static qr_uuid add_base(struct library *library, const char *name, const char *settings)
{
    qr_uuid id;
    qr_err err;
    QR_CHECK_RC(QR_OK,
                qr_workflow_add_base(&library->shop.desk.workflow, qr_str_of(name), qr_str_of(settings), &id, &err));
    return id;
}

static void open_two(struct two *two, struct qr_test *t, const char *settings)
{
    library_open(&two->library, t, settings);
    const int64_t model = qr_shop_live_model(&two->library.shop);
    two->bases[0] = (struct qr_search_base){two->library.shop.desk.base_id, two->library.batcher, model};
    two->bases[1] = (struct qr_search_base){add_base(&two->library, "second", settings), two->library.batcher, model};
}

static void note_in(struct two *two, int base, const char *name, const char *content)
{
    two->library.shop.desk.base_id = two->bases[base].id;
    library_note(&two->library, name, content);
    two->library.shop.desk.base_id = two->bases[0].id;
}

static struct qr_search_answer ask_two(struct two *two, const char *query, enum qr_search_mode mode)
{
    struct qr_search search = library_search(&two->library, query);
    search.bases = two->bases;
    search.base_count = 2;
    search.mode = mode;
    return library_run(&two->library, &search);
}

static double score_in(struct two *two, int base, const char *query)
{
    struct qr_search search = library_search(&two->library, query);
    search.base_id = two->bases[base].id;
    search.mode = QR_MODE_TEXT;
    return library_run(&two->library, &search).hits[0].found.hit.score;
}

/* In the first base "engine" and "valve" are in one note each and count the same; but the second base is full of valves. */
QR_DB_TEST(words_are_as_rare_as_in_all_bases_together)
{
    struct two two;
    char name[16];
    open_two(&two, t, "{}");
    note_in(&two, 0, "engine", "engine notes of the day\n");
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "plain%d", i);
        note_in(&two, 0, name, "something else of the day\n");
    }
    note_in(&two, 0, "valve", "valve notes of the day\n");
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "valve%d", i);
        note_in(&two, 1, name, i % 2 ? "valve notes of the week\n" : "other notes of the week\n");
    }
    library_work(&two.library);
    const struct qr_search_answer answer = ask_two(&two, "engine valve", QR_MODE_TEXT);
    QR_CHECK_INT(10, answer.count);
    QR_CHECK_TEXT("engine", answer.hits[0].item->name);
    QR_CHECK(answer.hits[0].found.hit.score > 1.5 * answer.hits[1].found.hit.score);
    if (!qr_test_on_postgres(t)) { /* alone, they are alike */
        QR_CHECK(score_in(&two, 0, "valve") == score_in(&two, 0, "engine"));
    }
    library_close(&two.library);
}

/* A word that is everywhere in its base, and rare in all: its base alone would give it nothing. */
QR_DB_TEST(what_every_chunk_of_a_base_says_is_found_among_others)
{
    struct two two;
    char name[16];
    open_two(&two, t, "{}");
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "pump%d", i);
        note_in(&two, 0, name, "pump maintenance\n");
    }
    note_in(&two, 1, "once", "maintenance of a house\n");
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "note%d", i);
        note_in(&two, 1, name, "entirely different matters\n");
    }
    library_work(&two.library);
    if (!qr_test_on_postgres(t)) { /* by its own numbers the second base would come first */
        QR_CHECK(score_in(&two, 1, "pump maintenance") > score_in(&two, 0, "pump maintenance"));
    }
    const struct qr_search_answer answer = ask_two(&two, "pump maintenance", QR_MODE_TEXT);
    QR_CHECK_INT(4, answer.count);
    QR_CHECK_HAS("pump", answer.hits[0].item->name);
    QR_CHECK_HAS("pump", answer.hits[2].item->name);
    QR_CHECK_TEXT("once", answer.hits[3].item->name);
    QR_CHECK(qr_uuid_equal(answer.hits[0].item->base_id, two.bases[0].id));
    QR_CHECK(qr_uuid_equal(answer.hits[3].item->base_id, two.bases[1].id));
    library_close(&two.library);
}

/* The numbers of two halves are those of the whole. SQLite: the very formula of FTS5. */
QR_DB_TEST(halves_score_like_the_whole)
{
    static const char *const texts[] = {"one apple a day keeps the doctor away\n",
                                        "two apples and a pear in the basket of the doctor, who likes fruit\n",
                                        "pears only\n",
                                        "nothing of the kind\n",
                                        "three words here\n",
                                        "apple apple apple\n",
                                        "a garden with trees and nothing else in it\n"};
    struct two two;
    open_two(&two, t, "{}");
    const struct qr_search_base whole = {add_base(&two.library, "whole", "{}"), NULL};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        char name[16];
        snprintf(name, sizeof name, "n%zu", i);
        note_in(&two, i % 2, name, texts[i]);
        two.library.shop.desk.base_id = whole.id;
        library_note(&two.library, name, texts[i]);
        two.library.shop.desk.base_id = two.bases[0].id;
    }
    library_work(&two.library);
    const struct qr_search_answer halves = ask_two(&two, "apple doctor pear", QR_MODE_TEXT);
    struct qr_search search = library_search(&two.library, "apple doctor pear");
    search.base_id = whole.id;
    const struct qr_search_answer one = library_run(&two.library, &search);
    QR_CHECK_INT(one.count, halves.count);
    for (size_t i = 0; i < one.count && !qr_test_on_postgres(t); i++) {
        const double difference = one.hits[i].found.hit.score - halves.hits[i].found.hit.score;
        QR_CHECK_TEXT(one.hits[i].item->name, halves.hits[i].item->name);
        QR_CHECK(difference < 1e-5 && difference > -1e-5);
    }
    library_close(&two.library);
}

QR_DB_TEST(conditions_filters_and_the_relaxed_try_hold_for_all)
{
    struct two two;
    open_two(&two, t, "{}");
    note_in(&two, 0, "first", "the old harbour at night\n");
    note_in(&two, 1, "second", "the harbour of old, at noon\n");
    library_work(&two.library);
    struct qr_search_answer answer = ask_two(&two, "harbour -noon", QR_MODE_TEXT);
    QR_CHECK_TEXT("first", answer_names(&answer));
    answer = ask_two(&two, "\"old harbour\"", QR_MODE_TEXT);
    QR_CHECK(answer.is_relaxed);
    QR_CHECK_TEXT("first second", answer_names(&answer));
    answer = ask_two(&two, "harbour path:second", QR_MODE_TEXT);
    QR_CHECK_TEXT("second", answer_names(&answer));
    answer = ask_two(&two, "...", QR_MODE_AUTO);
    QR_CHECK_INT(0, answer.count);
    library_close(&two.library);
}

/* ---- vectors ---- */

QR_DB_TEST(vectors_of_one_model_are_compared_and_the_query_is_embedded_once)
{
    struct two two;
    open_two(&two, t, QR_SHOP_HASHED);
    note_in(&two, 0, "near", "green tea with milk\n");
    note_in(&two, 1, "nearest", "green tea\n");
    library_work(&two.library);
    const int64_t calls = qr_batcher_provider(two.library.batcher)->call_count;
    struct qr_search_answer answer = ask_two(&two, "green tea", QR_MODE_VECTOR);
    QR_CHECK_INT(calls + 1, qr_batcher_provider(two.library.batcher)->call_count);
    QR_CHECK_TEXT("nearest near", answer_names(&answer));
    QR_CHECK(answer.degraded == 0 && !answer.is_fused);
    answer = ask_two(&two, "green tea", QR_MODE_HYBRID);
    QR_CHECK(answer.count == 2 && answer.is_fused && answer.degraded == 0);
    library_close(&two.library);
}

QR_DB_TEST(vectors_of_different_models_are_legs_of_their_own_and_that_is_said)
{
    struct two two;
    struct qr_batcher *other;
    open_two(&two, t, QR_SHOP_HASHED);
    note_in(&two, 0, "near", "green tea with milk\n");
    note_in(&two, 1, "nearest", "green tea\n");
    library_work(&two.library);
    other = qr_shop_batcher(&two.library.shop, "{\"embedding\":{\"provider\":\"hash\",\"dimensions\":32}}");
    two.bases[1].batcher = other;
    struct qr_search_answer answer = ask_two(&two, "green tea", QR_MODE_HYBRID);
    QR_CHECK(answer.count == 2 && answer.degraded == QR_DEGRADED_MODELS);
    two.bases[1].batcher = NULL;
    answer = ask_two(&two, "green tea", QR_MODE_AUTO);
    QR_CHECK(answer.count == 2 && answer.mode == QR_MODE_HYBRID && answer.degraded == QR_DEGRADED_VECTOR);
    library_close(&two.library);
}

/* ---- memory ---- */

static void search_once(void *arg)
{
    struct two *two = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_search search = library_search(&two->library, "green \"tea with\" -coffee path:*");
    struct qr_search_answer answer;
    qr_err err;
    search.bases = two->bases;
    search.base_count = 2;
    search.diversity = 0.5;
    search.context = 1;
    const qr_rc rc = qr_search_run(&search, &arena, &answer, &err);
    QR_CHECK(rc == QR_OK || (rc == QR_NOMEM && qr_fault_fired()));
    qr_fault_disarm();
}

QR_DB_TEST(running_out_of_memory_is_said)
{
    struct two two;
    qr_fault_memory_install();
    open_two(&two, t, QR_SHOP_HASHED);
    note_in(&two, 0, "near", "green tea with milk\n");
    note_in(&two, 1, "nearest", "green tea\n");
    library_work(&two.library);
    search_once(&two);
    qr_fault_sweep(QR_FAULT_MEMORY, search_once, &two);
    library_close(&two.library);
}
