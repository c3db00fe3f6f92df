/* Threads: what pthreads lacks. Locks are plain pthread_mutex_t; waits are on the monotonic clock. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"

#include <pthread.h>

/* Starts a thread with every signal blocked (signals belong to the main thread) and a name of at most 15 characters. */
qr_rc qr_thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *arg), void *arg, qr_err *err);

/* A condition variable whose timed wait follows CLOCK_MONOTONIC: a clock that jumps neither hangs nor spins it. */
void qr_cond_init(pthread_cond_t *cond);

/* Waits until signalled or until `deadline_us` of qr_thread_mono_us; false on time-out. */
bool qr_cond_wait_until_us(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_us);
int64_t qr_thread_mono_us(void);

/* For QR_CLEANUP: QR_LOCKED(&lock); holds it to the end of the scope. */
static inline void qr_mutex_unlock_ptr(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}
#define QR_LOCKED(lock)                                                                                                \
    QR_CLEANUP(qr_mutex_unlock_ptr)                                                                                    \
    pthread_mutex_t *QR_CONCAT(qr_locked_, __LINE__) QR_UNUSED = (pthread_mutex_lock(lock), (lock))
