#include "base/thread.h"

#include "base/sync.h"
#include "support/test.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond;
static bool ready;

struct seen {
    sigset_t blocked;
    char name[32];
};

static void *look_around(void *arg)
{
    struct seen *seen = arg;
    pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked);
    pthread_mutex_lock(&lock); /* its name may come after its start */
    while (!ready) {
        pthread_cond_wait(&cond, &lock);
    }
    pthread_mutex_unlock(&lock);
    pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
    return NULL;
}

QR_TEST(a_thread_has_its_name_and_leaves_signals_to_the_main_thread)
{
    qr_cond_init(&cond);
    struct seen seen;
    sigset_t before, after;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    pthread_t thread;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_thread_start(&thread, "looker", look_around, &seen, &err));
    pthread_mutex_lock(&lock);
    ready = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    QR_CHECK_TEXT("looker", seen.name);
    QR_CHECK(sigismember(&seen.blocked, SIGTERM) && sigismember(&seen.blocked, SIGINT));
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    QR_CHECK_INT(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

/* A wait on the wall clock would take this deadline, small against the time since 1970, as long past. */
QR_TEST(a_timed_wait_follows_the_monotonic_clock_not_the_wall_clock)
{
    qr_cond_init(&cond);
    pthread_mutex_lock(&lock);
    const int64_t deadline_us = qr_thread_mono_us() + 30000;
    while (qr_cond_wait_until_us(&cond, &lock, deadline_us)) {
        QR_CHECK(qr_thread_mono_us() < deadline_us); /* woken without cause: allowed, but not late */
    }
    QR_CHECK(qr_thread_mono_us() >= deadline_us);
    pthread_mutex_unlock(&lock);
}

QR_TEST(a_deadline_in_the_past_times_out_at_once)
{
    qr_cond_init(&cond);
    pthread_mutex_lock(&lock);
    QR_CHECK(!qr_cond_wait_until_us(&cond, &lock, qr_thread_mono_us() - 1));
    QR_CHECK(!qr_cond_wait_until_us(&cond, &lock, 0));
    QR_CHECK(!qr_cond_wait_until_us(&cond, &lock, -1));
    QR_CHECK(!qr_cond_wait_until_us(&cond, &lock, INT64_MIN));
    pthread_mutex_unlock(&lock);
}

static void *get_ready(void *arg QR_UNUSED)
{
    QR_LOCKED(&lock);
    ready = true;
    pthread_cond_signal(&cond);
    return NULL;
}

QR_TEST(a_signal_ends_the_wait_long_before_its_deadline)
{
    qr_cond_init(&cond);
    pthread_t thread;
    qr_err err;
    bool in_time = true;
    pthread_mutex_lock(&lock);
    QR_CHECK_RC(QR_OK, qr_thread_start(&thread, "signaller", get_ready, NULL, &err));
    while (!ready && in_time) {
        in_time = qr_cond_wait_until_us(&cond, &lock, INT64_MAX);
    }
    QR_CHECK(ready && in_time);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}

static int counter;

static void *count(void *arg QR_UNUSED)
{
    for (int i = 0; i < 10000; i++) {
        QR_LOCKED(&lock);
        counter++;
    }
    return NULL;
}

QR_TEST(a_lock_is_held_to_the_end_of_its_scope_and_no_longer)
{
    pthread_t threads[4];
    qr_err err;
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        QR_CHECK_RC(QR_OK, qr_thread_start(&threads[i], "counter", count, NULL, &err));
    }
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    QR_CHECK_INT(40000, counter);
    QR_CHECK_INT(0, pthread_mutex_trylock(&lock));
}

/* ---- priority ---- */

static void *lower(void *arg)
{
    int *priority = arg;
    qr_thread_lower();
    qr_thread_lower(); /* once is enough */
    *priority = getpriority(PRIO_PROCESS, 0);
    return NULL;
}

QR_TEST(a_lowered_thread_goes_behind_the_others_and_they_stay_as_they_are)
{
    pthread_t thread;
    qr_err err;
    int priority = 0;
    const int before = getpriority(PRIO_PROCESS, (id_t)getpid());
    QR_CHECK_RC(QR_OK, qr_thread_start(&thread, "low", lower, &priority, &err));
    pthread_join(thread, NULL);
    QR_CHECK_INT(QR_MIN(before + 10, 19), priority);
    QR_CHECK_INT(before, getpriority(PRIO_PROCESS, (id_t)getpid()));
}
