/* The threads that run requests (http/pool.h). */
#include "http/pool.h"

#include "base/mem.h"
#include "base/thread.h"

struct qr_pool {
    pthread_mutex_t lock; /* holds what follows */
    pthread_cond_t changed;
    struct qr_pool_work *first, **end; /* the line; `end` is where the next one is hung on */
    bool is_ending;
    int thread_count; /* only of whoever creates and frees it */
    pthread_t threads[];
};

static struct qr_pool_work *take_next(struct qr_pool *pool)
{
    QR_LOCKED(&pool->lock);
    while (!pool->first && !pool->is_ending) {
        pthread_cond_wait(&pool->changed, &pool->lock);
    }
    struct qr_pool_work *work = pool->first;
    if (work) {
        pool->first = work->next;
        pool->end = pool->first ? pool->end : &pool->first;
    }
    return work;
}

static void *run_all(void *arg)
{
    struct qr_pool_work *work;
    while ((work = take_next(arg))) {
        work->run(work); /* which may free it */
    }
    return NULL;
}

qr_rc qr_pool_create(struct qr_pool **ret_pool, int threads, qr_err *err)
{
    struct qr_pool *pool = qr_alloc_zero(sizeof *pool + (size_t)threads * sizeof pool->threads[0]);
    if (!pool) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the threads of the server");
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pool->end = &pool->first;
    for (; pool->thread_count < threads; pool->thread_count++) {
        const qr_rc rc = qr_thread_start(&pool->threads[pool->thread_count], "quire-request", run_all, pool, err);
        if (rc != QR_OK) {
            qr_pool_free(pool);
            return rc;
        }
    }
    *ret_pool = pool;
    return QR_OK;
}

void qr_pool_free(struct qr_pool *pool)
{
    if (!pool) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->is_ending = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->thread_count; i++) {
        pthread_join(pool->threads[i], NULL);
    }
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    qr_free(pool);
}

void qr_pool_add(struct qr_pool *pool, struct qr_pool_work *work)
{
    QR_LOCKED(&pool->lock);
    work->next = NULL;
    *pool->end = work;
    pool->end = &work->next;
    pthread_cond_signal(&pool->changed);
}
