/* Threads, locks and signals as the job core uses them. Apart from base/thread.h so that a simulation can link another
 * implementation of just these calls, over a virtual clock and a seeded scheduler, under the product's own objects. */
#pragma once

#include "base/clock.h"
#include "base/err.h"

#include <pthread.h>

struct qr_thread {
    pthread_t os;
};

qr_rc qr_thread_spawn(struct qr_thread *thread, const char *name, void (*fn)(void *arg), void *arg, qr_err *err);
void qr_thread_join(struct qr_thread *thread);
/* Nobody will join it. */
void qr_thread_leave(struct qr_thread *thread);
/* The calling thread works for nobody who waits: where processors are short, those that answer somebody go first. */
void qr_thread_lower(void);

struct qr_mutex {
    pthread_mutex_t os;
};

void qr_mutex_init(struct qr_mutex *mutex);
void qr_mutex_done(struct qr_mutex *mutex);
void qr_mutex_lock(struct qr_mutex *mutex);
void qr_mutex_unlock(struct qr_mutex *mutex);

struct qr_signal {
    pthread_cond_t os;
};

void qr_signal_init(struct qr_signal *signal);
void qr_signal_done(struct qr_signal *signal);
/* The mutex is free while waiting. May return without cause. */
void qr_signal_wait(struct qr_signal *signal, struct qr_mutex *mutex);
/* False when it is not before deadline_mono_ms of the clock any more. */
bool qr_signal_wait_until(struct qr_signal *signal, struct qr_mutex *mutex, const struct qr_clock *clock,
                          int64_t deadline_mono_ms);
void qr_signal_one(struct qr_signal *signal);
void qr_signal_all(struct qr_signal *signal);

/* Holds the mutex to the end of the scope. */
static inline void qr_mutex_release_ptr(struct qr_mutex **mutex)
{
    qr_mutex_unlock(*mutex);
}
#define QR_HOLD(mutex)                                                                                                 \
    QR_CLEANUP(qr_mutex_release_ptr)                                                                                   \
    struct qr_mutex *QR_CONCAT(qr_held_, __LINE__) QR_UNUSED = (qr_mutex_lock(mutex), (mutex))
