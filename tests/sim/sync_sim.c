/* base/sync.h over coroutines: takes the place of src/base/sync.c in the simulation. A lock is a flag (C1), a signal an
 * address, a thread the number of its coroutine. */
#include "base/sync.h"

#include "sim/sched.h"

#include <assert.h>
#include <string.h>

static unsigned char *flag_of(struct qr_mutex *mutex)
{
    return (unsigned char *)&mutex->os;
}

qr_rc qr_thread_spawn(struct qr_thread *thread, const char *name QR_UNUSED, void (*fn)(void *arg), void *arg,
                      qr_err *err QR_UNUSED)
{
    thread->os = (pthread_t)sim_spawn(-1, fn, arg);
    return QR_OK;
}

void qr_thread_join(struct qr_thread *thread)
{
    sim_join((int)thread->os);
}

void qr_thread_leave(struct qr_thread *thread)
{
    sim_detach((int)thread->os);
}

/* The scheduler decides. */
void qr_thread_lower(void)
{
}

void qr_mutex_init(struct qr_mutex *mutex)
{
    memset(mutex, 0, sizeof *mutex);
}

void qr_mutex_done(struct qr_mutex *mutex)
{
    assert(!*flag_of(mutex));
}

void qr_mutex_lock(struct qr_mutex *mutex)
{
    sim_yield();
    assert(!*flag_of(mutex));
    *flag_of(mutex) = 1;
    sim_hold();
}

void qr_mutex_unlock(struct qr_mutex *mutex)
{
    assert(*flag_of(mutex));
    *flag_of(mutex) = 0;
    sim_release();
    sim_yield();
}

void qr_signal_init(struct qr_signal *signal)
{
    memset(signal, 0, sizeof *signal);
}

void qr_signal_done(struct qr_signal *signal QR_UNUSED)
{
}

static bool wait(struct qr_signal *signal, struct qr_mutex *mutex, int64_t until_ms)
{
    enum { WITHOUT_CAUSE_PER_MILLE = 20 };
    assert(*flag_of(mutex));
    *flag_of(mutex) = 0;
    sim_release();
    bool was_woken = true;
    if (sim_chance(WITHOUT_CAUSE_PER_MILLE)) {
        sim_yield();
    } else {
        was_woken = sim_wait(signal, until_ms);
    }
    assert(!*flag_of(mutex));
    *flag_of(mutex) = 1;
    sim_hold();
    return was_woken;
}

void qr_signal_wait(struct qr_signal *signal, struct qr_mutex *mutex)
{
    wait(signal, mutex, INT64_MAX);
}

bool qr_signal_wait_until(struct qr_signal *signal, struct qr_mutex *mutex, const struct qr_clock *clock,
                          int64_t deadline_mono_ms)
{
    if (qr_clock_mono_ms(clock) >= deadline_mono_ms) {
        return false;
    }
    wait(signal, mutex, deadline_mono_ms);
    return qr_clock_mono_ms(clock) < deadline_mono_ms;
}

void qr_signal_one(struct qr_signal *signal)
{
    sim_wake_one(signal);
}

void qr_signal_all(struct qr_signal *signal)
{
    sim_wake_all(signal);
}
