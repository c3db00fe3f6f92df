/* Coroutines over a virtual clock, and the seeded choice of which one goes next.
 *
 * C1  Nobody is switched away while it holds a lock or is inside a database call: so a lock is always free for whoever
 *     runs, and a transaction is one step, as SQLite's writers are one after another.
 * C2  Time passes only when nobody can go on, and a little with every commit.
 * C3  Everything that is chosen is chosen by the run's random numbers: a seed is a run. */
#pragma once

#include "base/clock.h"
#include "base/rand.h"

enum { SIM_COROUTINES_MAX = 256, SIM_PROCESSES_MAX = 8 };

/* Forgets everything and begins a run. */
void sim_begin(uint64_t seed);
void sim_end(void);
struct qr_rand *sim_rand(void);
/* True n times of 1000. */
bool sim_chance(unsigned per_mille);
int64_t sim_between(int64_t least, int64_t most);

const struct qr_clock *sim_clock(void);
int64_t sim_now_ms(void);
void sim_pass_ms(int64_t ms);

/* Starts a coroutine of a process; the current one's with process -1. */
int sim_spawn(int process, void (*fn)(void *arg), void *arg);
/* The process of the running coroutine; 0 outside of any. */
int sim_process(void);
/* The running coroutine; -1 outside of any. */
int sim_self(void);

/* Lets others go first, where that is possible (C1). */
void sim_yield(void);
/* Waits for sim_wake_… of the same address, at most until the time; false when it was the time. */
bool sim_wait(const void *on, int64_t until_ms);
void sim_wake_one(const void *on);
void sim_wake_all(const void *on);
void sim_sleep(int64_t ms);
/* Ends with the coroutine. */
void sim_join(int coroutine);
void sim_detach(int coroutine);

/* Between these two the coroutine is not switched away. */
void sim_hold(void);
void sim_release(void);
bool sim_is_held(void);

/* Its coroutines never run again. Not from one of them: those call sim_die. */
void sim_drop_process(int process);
/* The running coroutine's process ends here and now. *ret of sim_step tells. */
void sim_die(void);
/* It stands still until then, its clock does not. */
void sim_freeze(int process, int64_t until_ms);
bool sim_is_frozen(int process);

/* One coroutine goes on until it lets others. False when nobody ever will. *ret_died: the process that ended itself, or 0. */
bool sim_step(int *ret_died);
