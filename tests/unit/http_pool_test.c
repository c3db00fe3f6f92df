/* The threads that run requests (http/pool.h): P1 and P2 of http/pool.c. */
#include "http/pool.h"

#include "support/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { THREADS = 8 };

struct task {
    struct qr_pool_work work; /* first: run() casts back */
    sem_t *waits_for, *tells;
    atomic_int *done;
};

static void run(struct qr_pool_work *work)
{
    const struct task *task = (struct task *)work;
    sem_t *tells = task->tells;
    if (task->waits_for) {
        sem_wait(task->waits_for);
    }
    atomic_fetch_add(task->done, 1);
    if (tells) {
        sem_post(tells); /* the task may be gone after this */
    }
}

static struct qr_pool *make_pool(int threads)
{
    struct qr_pool *pool = NULL;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_pool_create(&pool, threads, &err));
    return pool;
}

/* P2: however few processors there are. */
QR_TEST(work_is_run_though_all_before_it_waits_for_it)
{
    struct qr_pool *pool = make_pool(THREADS);
    struct task tasks[THREADS];
    sem_t go;
    atomic_int done = 0;
    sem_init(&go, 0, 0);
    for (int i = 0; i < THREADS; i++) { /* each waits for the one behind it */
        const bool is_last = i == THREADS - 1;
        tasks[i] = (struct task){{.run = run}, is_last ? NULL : &go, &go, &done};
        qr_pool_add(pool, &tasks[i].work);
    }
    qr_pool_free(pool);
    QR_CHECK_INT(THREADS, done);
    sem_destroy(&go);
}

QR_TEST(what_was_handed_over_is_run_before_the_pool_ends)
{
    enum { TASKS = 1000 };
    static struct task tasks[TASKS];
    struct qr_pool *pool = make_pool(THREADS);
    atomic_int done = 0;
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = (struct task){{.run = run}, NULL, NULL, &done};
        qr_pool_add(pool, &tasks[i].work);
    }
    qr_pool_free(pool);
    QR_CHECK_INT(TASKS, done);
}

QR_TEST(one_thread_is_enough)
{
    struct qr_pool *pool = make_pool(1);
    struct task tasks[3];
    sem_t told;
    atomic_int done = 0;
    sem_init(&told, 0, 0);
    for (int i = 0; i < 3; i++) {
        tasks[i] = (struct task){{.run = run}, NULL, &told, &done};
        qr_pool_add(pool, &tasks[i].work);
        sem_wait(&told); /* so that it sleeps between two, as likely as not */
    }
    qr_pool_free(pool);
    QR_CHECK_INT(3, done);
    sem_destroy(&told);
}

/* Nothing is lost between those who add and those who fall asleep. */
QR_TEST(every_piece_is_run_when_many_add_and_wait)
{
    enum { ROUNDS = 2000 };
    struct qr_pool *pool = make_pool(3);
    struct task tasks[4];
    sem_t told;
    atomic_int done = 0;
    sem_init(&told, 0, 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 4; i++) {
            tasks[i] = (struct task){{.run = run}, NULL, &told, &done};
            qr_pool_add(pool, &tasks[i].work);
        }
        for (int i = 0; i < 4; i++) {
            sem_wait(&told);
        }
    }
    qr_pool_free(pool);
    QR_CHECK_INT(4 * ROUNDS, done);
    sem_destroy(&told);
}
