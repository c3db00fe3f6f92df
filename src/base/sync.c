/* The real ones: pthreads. tests/sim has the others. */
#include "base/sync.h"

#include "base/mem.h"
#include "base/thread.h"

#include <sys/resource.h>
#include <unistd.h>

enum { LOWER_BY = 10, LOWEST = 19 }; /* a ninth of the weight of others, never nothing */

struct start {
    void (*fn)(void *arg);
    void *arg;
};

static void *run(void *arg)
{
    const struct start start = *(struct start *)arg;
    qr_free(arg);
    start.fn(start.arg);
    return NULL;
}

qr_rc qr_thread_spawn(struct qr_thread *thread, const char *name, void (*fn)(void *arg), void *arg, qr_err *err)
{
    struct start *start = qr_alloc(sizeof *start);
    if (!start) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for thread %s", name);
    }
    *start = (struct start){fn, arg};
    const qr_rc rc = qr_thread_start(&thread->os, name, run, start, err);
    if (rc != QR_OK) {
        qr_free(start);
    }
    return rc;
}

void qr_thread_join(struct qr_thread *thread)
{
    pthread_join(thread->os, NULL);
}

void qr_thread_leave(struct qr_thread *thread)
{
    pthread_detach(thread->os);
}

/* Below the process's first thread, whoever started this one: it may be started by one that was lowered. Where the system
 * refuses, it goes on as it is. */
void qr_thread_lower(void)
{
    const int whole = getpriority(PRIO_PROCESS, (id_t)getpid());
    (void)setpriority(PRIO_PROCESS, 0 /* on Linux: this thread */, QR_MIN(whole + LOWER_BY, (int)LOWEST));
}

void qr_mutex_init(struct qr_mutex *mutex)
{
    pthread_mutex_init(&mutex->os, NULL);
}

void qr_mutex_done(struct qr_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->os);
}

void qr_mutex_lock(struct qr_mutex *mutex)
{
    pthread_mutex_lock(&mutex->os);
}

void qr_mutex_unlock(struct qr_mutex *mutex)
{
    pthread_mutex_unlock(&mutex->os);
}

void qr_signal_init(struct qr_signal *signal)
{
    qr_cond_init(&signal->os);
}

void qr_signal_done(struct qr_signal *signal)
{
    pthread_cond_destroy(&signal->os);
}

void qr_signal_wait(struct qr_signal *signal, struct qr_mutex *mutex)
{
    pthread_cond_wait(&signal->os, &mutex->os);
}

bool qr_signal_wait_until(struct qr_signal *signal, struct qr_mutex *mutex, const struct qr_clock *clock,
                          int64_t deadline_mono_ms)
{
    const int64_t left_ms = deadline_mono_ms - qr_clock_mono_ms(clock);
    if (left_ms <= 0) {
        return false;
    }
    /* by the distance, not by the time itself: a test's clock has another beginning, and stands still */
    qr_cond_wait_until_us(&signal->os, &mutex->os, qr_thread_mono_us() + left_ms * 1000);
    return qr_clock_mono_ms(clock) < deadline_mono_ms;
}

void qr_signal_one(struct qr_signal *signal)
{
    pthread_cond_signal(&signal->os);
}

void qr_signal_all(struct qr_signal *signal)
{
    pthread_cond_broadcast(&signal->os);
}
