#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

qr_rc qr_thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *arg), void *arg, qr_err *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(ret_thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        return qr_fail_errno(err, failed, "cannot start thread %s", name);
    }
    pthread_setname_np(*ret_thread, name);
    return QR_OK;
}

void qr_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool qr_cond_wait_until_us(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_us)
{
    deadline_us = QR_MAX(deadline_us, (int64_t)0); /* a negative time is an error to pthreads, not one long past */
    const struct timespec until = {deadline_us / 1000000, deadline_us % 1000000 * 1000};
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

int64_t qr_thread_mono_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
