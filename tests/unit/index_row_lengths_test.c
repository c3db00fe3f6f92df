/* What is remembered of the lengths of rows. */
#include "index/row_lengths.h"

#include "base/thread.h"
#include "support/test.h"

QR_TEST(a_look_that_knows_fewer_rows_takes_nothing_away)
{
    struct row_lengths lengths;
    struct lengths_page page = {.of = {[0] = 10, [5] = 7}};
    qr_row_lengths_init(&lengths, 1);
    QR_CHECK(!qr_row_lengths_find(&lengths, 3, &page));
    qr_row_lengths_put(&lengths, 3, &page);
    qr_row_lengths_put(&lengths, 3, &(struct lengths_page){.of = {[0] = 10, [6] = 9}});
    QR_CHECK(qr_row_lengths_find(&lengths, 3, &page));
    QR_CHECK(page.of[0] == 10 && page.of[5] == 7 && page.of[6] == 9 && page.of[1] == 0);
    QR_CHECK(!qr_row_lengths_find(&lengths, 4, &page));
    qr_row_lengths_done(&lengths);
}

QR_TEST(what_is_remembered_has_a_bound)
{
    enum { PAGES = 40000 };
    struct row_lengths lengths;
    struct lengths_page page = {.of = {1}};
    qr_row_lengths_init(&lengths, 1);
    for (int64_t i = 0; i < PAGES; i++) {
        qr_row_lengths_put(&lengths, i, &page);
    }
    QR_CHECK(lengths.pages.count < PAGES);
    QR_CHECK(qr_row_lengths_find(&lengths, PAGES - 1, &page));
    qr_row_lengths_done(&lengths);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 2000, PAGES_USED = 16 };

struct worker {
    pthread_t thread;
    struct row_lengths *lengths;
    size_t own; /* the row of each page that this one knows */
    bool was_wrong;
};

static void *put_and_find(void *arg)
{
    struct worker *worker = arg;
    for (int64_t i = 0; i < ROUNDS; i++) {
        struct lengths_page page = {0};
        page.of[worker->own] = (uint32_t)worker->own + 1;
        qr_row_lengths_put(worker->lengths, i % PAGES_USED, &page);
        const bool is_known = qr_row_lengths_find(worker->lengths, i % PAGES_USED, &page);
        worker->was_wrong = worker->was_wrong || !is_known || page.of[worker->own] != worker->own + 1;
    }
    return NULL;
}

QR_TEST(threads_add_to_what_the_others_know)
{
    struct row_lengths lengths;
    struct worker workers[THREADS];
    struct lengths_page page;
    qr_err err;
    qr_row_lengths_init(&lengths, 1);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.lengths = &lengths, .own = i};
        QR_CHECK_RC(QR_OK, qr_thread_start(&workers[i].thread, "worker", put_and_find, &workers[i], &err));
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        QR_CHECK(!workers[i].was_wrong);
    }
    QR_CHECK(qr_row_lengths_find(&lengths, PAGES_USED - 1, &page));
    QR_CHECK(page.of[0] == 1 && page.of[THREADS - 1] == THREADS && page.of[THREADS] == 0);
    qr_row_lengths_done(&lengths);
}
