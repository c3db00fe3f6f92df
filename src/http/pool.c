/* The threads that run requests (http/pool.h).
 *
 * P1  No more threads are at work than there are processors, as long as the line moves: who has finished takes the next piece
 *     itself, which costs nothing, and waking another costs more than most requests do.
 * P2  Where the line has not moved for LOOK_US, those at work are waiting for something, or take long: twice as many may work,
 *     until nothing is left in the line. One of the idle threads looks after that, as long as there is a line. */
#include "http/pool.h"

#include "base/mem.h"
#include "base/thread.h"

#include <unistd.h>

enum { LOOK_US = 300 };

struct qr_pool {
    pthread_mutex_t lock; /* holds what follows */
    pthread_cond_t changed;
    struct qr_pool_work *first, **end; /* the line; `end` is where the next one is hung on */
    uint64_t taken;                    /* out of the line so far */
    int busy, idle;                    /* threads: at work, waiting for some */
    int waking;                        /* of the idle ones, that were called and have not come yet; never too many */
    int busy_max;                      /* that may be at work now: from `few` (P1) to `all` (P2) */
    bool has_lookout;                  /* P2 */
    bool is_ending;
    int few, all;     /* never change */
    int thread_count; /* only of whoever creates and frees it */
    pthread_t threads[];
};

static bool may_take(const struct qr_pool *pool)
{
    return pool->first && (pool->busy < pool->busy_max || pool->is_ending);
}

/* Whether there is something for one more thread: work, or to look out. */
static bool needs_thread(const struct qr_pool *pool)
{
    return pool->first && pool->idle > pool->waking &&
           (pool->busy + pool->waking < pool->busy_max || (!pool->has_lookout && pool->waking == 0));
}

static void call_thread(struct qr_pool *pool)
{
    if (needs_thread(pool)) {
        pool->waking++;
        pthread_cond_signal(&pool->changed);
    }
}

/* False = the time was over. */
static bool wait_idle(struct qr_pool *pool, int64_t deadline_us)
{
    bool is_called = true;
    pool->idle++;
    if (deadline_us) {
        is_called = qr_cond_wait_until_us(&pool->changed, &pool->lock, deadline_us);
    } else {
        pthread_cond_wait(&pool->changed, &pool->lock);
    }
    pool->idle--;
    pool->waking -= pool->waking > 0; /* also without a call: then one more is called than needed, not one fewer */
    return is_called;
}

/* P2 */
static void look_out(struct qr_pool *pool)
{
    const uint64_t taken = pool->taken;
    pool->has_lookout = true;
    const bool is_called = wait_idle(pool, qr_thread_mono_us() + LOOK_US);
    pool->has_lookout = false;
    if (!is_called && pool->first && pool->taken == taken) {
        pool->busy_max = QR_MIN(2 * pool->busy_max, pool->all);
    }
}

/* NULL = there will be no more. */
static struct qr_pool_work *take_next(struct qr_pool *pool, bool has_worked)
{
    QR_LOCKED(&pool->lock);
    pool->busy -= has_worked;
    while (!may_take(pool)) {
        if (pool->first && !pool->has_lookout) {
            look_out(pool);
        } else if (!pool->first && pool->is_ending) {
            return NULL;
        } else {
            wait_idle(pool, 0);
        }
    }
    struct qr_pool_work *work = pool->first;
    pool->first = work->next;
    pool->taken++;
    pool->busy++;
    if (!pool->first) {
        pool->end = &pool->first;
        pool->busy_max = pool->few;
    }
    call_thread(pool);
    return work;
}

static void *run_all(void *arg)
{
    struct qr_pool *pool = arg;
    struct qr_pool_work *work;
    for (bool has_worked = false; (work = take_next(pool, has_worked)); has_worked = true) {
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
    qr_cond_init(&pool->changed);
    pool->end = &pool->first;
    pool->all = threads;
    pool->few = pool->busy_max = QR_MAX(1, QR_MIN(threads, (int)sysconf(_SC_NPROCESSORS_ONLN)));
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
    call_thread(pool);
}
