/* Hits in the order that a reranker says, over every database. */
#include "support/search_fixture.h"

#include <stdlib.h>

/* Scores a document by the number behind its word "worth"; without one it says nothing of it. */
struct fake {
    struct qr_reranker reranker;
    int calls;
    size_t count;
    char query[100];
    qr_code fails; /* with this */
};

static qr_rc score(struct qr_reranker *reranker, qr_str query, const qr_str *documents, size_t count,
                   double *ret_scores, qr_err *err)
{
    struct fake *fake = reranker->arg;
    fake->calls++;
    fake->count = count;
    snprintf(fake->query, sizeof fake->query, "%.*s", QR_STR_ARG(query));
    for (size_t i = 0; i < count; i++) {
        QR_CHECK((int64_t)documents[i].len <= reranker->document_bytes);
        const char *worth = memmem(documents[i].ptr, documents[i].len, "worth ", 6);
        ret_scores[i] = worth ? strtod(worth + 6, NULL) / 100 : -1;
    }
    return fake->fails ? qr_fail(err, fake->fails, "as the test wants it") : QR_OK;
}

static struct fake make_fake(void)
{
    return (struct fake){.reranker = {.document_bytes = 1000, .request_bytes = 100000, .score = score}};
}

/* By words alone `a` is best, then `b`, `c`, `d`: the shorter, the better. */
static void open_library(struct library *library, struct qr_test *t)
{
    library_open(library, t, "{}");
    library_note(library, "a", "plum worth 10");
    library_note(library, "b", "plum cake worth 90");
    library_note(library, "c", "plum cake with nothing about its price");
    library_note(library, "d", "plum cake and tea on the terrace worth 50");
    library_work(library);
    const struct qr_search_answer answer = library_ask(library, "plum");
    QR_CHECK_TEXT("a b c d", answer_names(&answer));
}

static struct qr_search_answer ask(struct library *library, struct fake *fake, int top_n)
{
    struct qr_search search = library_search(library, "plum -apple type:note");
    fake->reranker.arg = fake;
    search.reranker = &fake->reranker;
    search.rerank_top_n = top_n;
    return library_run(library, &search);
}

QR_DB_TEST(hits_get_the_order_that_the_reranker_says)
{
    struct library library;
    struct fake fake = make_fake();
    open_library(&library, t);
    const struct qr_search_answer answer = ask(&library, &fake, 50);
    QR_CHECK_TEXT("b d a c", answer_names(&answer)); /* what it says nothing of comes last */
    QR_CHECK(answer.is_reranked && answer.degraded == 0);
    QR_CHECK_INT(4, answer.rerank_count);
    QR_CHECK_TEXT("plum", fake.query); /* what is excluded or about items is no part of the question */
    QR_CHECK(answer.hits[0].found.hit.score == 0.9 && answer.hits[0].rerank_score == 0.9);
    QR_CHECK_INT(2, answer.hits[0].fused_rank);
    QR_CHECK(answer.hits[0].fused_score > 0 && answer.hits[2].fused_score >= answer.hits[0].fused_score);
    QR_CHECK(answer.hits[3].found.hit.score == 0 && answer.hits[3].rerank_score == -1);
    library_close(&library);
}

QR_DB_TEST(only_so_many_hits_are_given_to_the_reranker)
{
    struct library library;
    struct fake fake = make_fake();
    open_library(&library, t);
    struct qr_search_answer answer = ask(&library, &fake, 2);
    QR_CHECK_TEXT("b a c d", answer_names(&answer));
    QR_CHECK_INT(2, fake.count);
    fake.reranker.request_bytes = 40; /* a and b fit, c does not */
    answer = ask(&library, &fake, 50);
    QR_CHECK_TEXT("b a c d", answer_names(&answer));
    QR_CHECK_INT(2, fake.count);
    fake.reranker.request_bytes = 100000;
    fake.reranker.document_bytes = 17; /* "worth 9" is left of b */
    answer = ask(&library, &fake, 50);
    QR_CHECK_TEXT("a b c d", answer_names(&answer));
    library_close(&library);
}

QR_DB_TEST(a_reranker_that_fails_leaves_the_order_as_it_was)
{
    static const qr_code codes[] = {QR_CODE_UNAVAILABLE,  QR_CODE_TIMEOUT,     QR_CODE_ENDPOINT_REFUSED,
                                    QR_CODE_RATE_LIMITED, QR_CODE_BAD_REQUEST, QR_CODE_OUT_OF_MEMORY};
    struct library library;
    open_library(&library, t);
    for (size_t i = 0; i < QR_COUNT(codes); i++) {
        struct fake fake = make_fake();
        fake.fails = codes[i];
        const struct qr_search_answer answer = ask(&library, &fake, 50);
        QR_CHECK_TEXT("a b c d", answer_names(&answer));
        QR_CHECK(!answer.is_reranked && answer.hits[0].found.hit.score > 0);
        QR_CHECK_INT(QR_DEGRADED_RERANK, answer.degraded);
        QR_CHECK_INT(codes[i], answer.rerank_error.code);
        QR_CHECK_INT(1, fake.calls);
    }
    library_close(&library);
}

QR_DB_TEST(a_search_that_asks_for_a_reranker_that_is_not_there_says_so)
{
    struct library library;
    open_library(&library, t);
    struct qr_search search = library_search(&library, "plum");
    search.rerank_top_n = 50;
    const struct qr_search_answer answer = library_run(&library, &search);
    QR_CHECK_TEXT("a b c d", answer_names(&answer));
    QR_CHECK_INT(QR_DEGRADED_RERANK, answer.degraded);
    library_close(&library);
}

/* Joining leaves too few, and a second round takes more hits: what was scored is not paid for again. */
QR_DB_TEST(a_reranker_is_asked_once_a_search)
{
    struct library library;
    struct fake fake = make_fake();
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    library_open(&library, t, "{" LIBRARY_SMALL "}");
    for (int i = 0; i < 60; i++) {
        qr_buf_printf(
            &text,
            "The plum number %d of the orchard behind the old house by the river, where in summer many people "
            "of the village come together for the picking, was worth %d.\n\n",
            i, i);
    }
    QR_CHECK(text.data);
    library_note(&library, "long", text.data);
    library_note(&library, "short", "a plum worth 99");
    library_work(&library);
    struct qr_search search = library_search(&library, "plum");
    fake.reranker.arg = &fake;
    search.reranker = &fake.reranker;
    search.rerank_top_n = 5;
    search.keeps_chunks = false;
    const struct qr_search_answer answer = library_run(&library, &search);
    QR_CHECK_INT(10, answer.count);
    QR_CHECK_INT(1, fake.calls);
    QR_CHECK_INT(5, fake.count);
    QR_CHECK(answer.hits[0].rerank_score > 0);
    for (size_t i = 1; i < answer.count; i++) {
        QR_CHECK(answer.hits[i].found.hit.score <= answer.hits[i - 1].found.hit.score);
    }
    library_close(&library);
}
