/* Owns the coroutines, their stacks and the clock. One thread; the scheduler is the main context. */
#include "sim/sched.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum {
    STACK_BYTES = 1 << 20, /* the sanitizers' frames are large; untouched pages cost nothing */
    GUARD_BYTES = 4096,
    WALL_START_MS = 1700000000,
};

enum state { FREE, READY, WAITING, ENDED };

struct coroutine {
    ucontext_t context;
    char *stack; /* kept for the next one */
    void *fake_stack;
    void (*fn)(void *arg);
    void *arg;
    enum state state;
    int process;
    int held; /* locks and database calls: C1 */
    bool is_detached;
    const void *waits_on;
    int64_t until_ms; /* INT64_MAX = for ever */
    bool was_woken;
};

static struct {
    struct qr_rand_seeded rand;
    int64_t now_ms;
    struct coroutine coroutines[SIM_COROUTINES_MAX];
    int coroutine_count; /* the highest in use, and one */
    struct coroutine *current;
    int64_t frozen_until_ms[SIM_PROCESSES_MAX];
    int died;
    ucontext_t scheduler;
    void *scheduler_fake_stack;
    const void *scheduler_stack;
    size_t scheduler_stack_bytes;
} sim;

/* ---- chance and time ---- */

struct qr_rand *sim_rand(void)
{
    return &sim.rand.rand;
}

bool sim_chance(unsigned per_mille)
{
    return qr_rand_below(sim_rand(), 1000) < per_mille;
}

int64_t sim_between(int64_t least, int64_t most)
{
    return least + (int64_t)qr_rand_below(sim_rand(), (uint64_t)(most - least + 1));
}

static int64_t read_wall(const struct qr_clock *clock QR_UNUSED)
{
    return WALL_START_MS + sim.now_ms;
}

static int64_t read_mono(const struct qr_clock *clock QR_UNUSED)
{
    return sim.now_ms;
}

const struct qr_clock *sim_clock(void)
{
    static const struct qr_clock clock = {read_wall, read_mono};
    return &clock;
}

int64_t sim_now_ms(void)
{
    return sim.now_ms;
}

void sim_pass_ms(int64_t ms)
{
    sim.now_ms += ms;
}

/* ---- switching ---- */

static void leave_fiber(void **fake_stack QR_UNUSED, const void *stack QR_UNUSED, size_t stack_bytes QR_UNUSED)
{
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(fake_stack, stack, stack_bytes);
#endif
}

static void enter_fiber(void *fake_stack QR_UNUSED, const void **ret_stack QR_UNUSED, size_t *ret_bytes QR_UNUSED)
{
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, ret_stack, ret_bytes);
#endif
}

/* From a coroutine to the scheduler; `is_last`: it does not come back. */
static void switch_away(struct coroutine *self, bool is_last)
{
    leave_fiber(is_last ? NULL : &self->fake_stack, sim.scheduler_stack, sim.scheduler_stack_bytes);
    swapcontext(&self->context, &sim.scheduler);
    enter_fiber(self->fake_stack, &sim.scheduler_stack, &sim.scheduler_stack_bytes);
}

static void switch_to(struct coroutine *to)
{
    sim.current = to;
    leave_fiber(&sim.scheduler_fake_stack, to->stack + GUARD_BYTES, STACK_BYTES);
    swapcontext(&sim.scheduler, &to->context);
    enter_fiber(sim.scheduler_fake_stack, NULL, NULL);
    sim.current = NULL;
}

static void trampoline(void)
{
    struct coroutine *self = sim.current;
    enter_fiber(NULL, &sim.scheduler_stack, &sim.scheduler_stack_bytes);
    self->fn(self->arg);
    assert(self->held == 0);
    self->state = self->is_detached ? FREE : ENDED;
    sim_wake_all(self);
    switch_away(self, true);
    abort();
}

static void give_stack(struct coroutine *coroutine)
{
    if (!coroutine->stack) {
        coroutine->stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
        assert(coroutine->stack != MAP_FAILED);
        mprotect(coroutine->stack, GUARD_BYTES, PROT_NONE);
    }
#ifdef HAS_ASAN
    /* one that was dropped left its frames' marks behind */
    __asan_unpoison_memory_region(coroutine->stack + GUARD_BYTES, STACK_BYTES);
#endif
}

static struct coroutine *find_free(void)
{
    for (int i = 0; i < SIM_COROUTINES_MAX; i++) {
        if (sim.coroutines[i].state == FREE) {
            sim.coroutine_count = QR_MAX(sim.coroutine_count, i + 1);
            return &sim.coroutines[i];
        }
    }
    abort();
}

int sim_spawn(int process, void (*fn)(void *arg), void *arg)
{
    struct coroutine *coroutine = find_free();
    give_stack(coroutine);
    *coroutine = (struct coroutine){
        .stack = coroutine->stack,
        .fn = fn,
        .arg = arg,
        .state = READY,
        .process = process < 0 ? sim_process() : process,
    };
    getcontext(&coroutine->context);
    coroutine->context.uc_stack.ss_sp = coroutine->stack + GUARD_BYTES;
    coroutine->context.uc_stack.ss_size = STACK_BYTES;
    coroutine->context.uc_link = NULL;
    makecontext(&coroutine->context, trampoline, 0);
    return (int)(coroutine - sim.coroutines);
}

int sim_process(void)
{
    return sim.current ? sim.current->process : 0;
}

int sim_self(void)
{
    return sim.current ? (int)(sim.current - sim.coroutines) : -1;
}

/* ---- letting others go ---- */

void sim_hold(void)
{
    if (sim.current) {
        sim.current->held++;
    }
}

void sim_release(void)
{
    if (sim.current) {
        assert(sim.current->held > 0);
        sim.current->held--;
    }
}

bool sim_is_held(void)
{
    return sim.current && sim.current->held > 0;
}

void sim_yield(void)
{
    if (sim.current && sim.current->held == 0) {
        switch_away(sim.current, false);
    }
}

bool sim_wait(const void *on, int64_t until_ms)
{
    struct coroutine *self = sim.current;
    assert(self && self->held == 0);
    self->state = WAITING;
    self->waits_on = on;
    self->until_ms = until_ms;
    self->was_woken = false;
    switch_away(self, false);
    return self->was_woken;
}

static void wake(const void *on, bool all)
{
    /* a random one, from a random place on */
    const int count = sim.coroutine_count;
    const int start = count ? (int)qr_rand_below(sim_rand(), (uint64_t)count) : 0;
    for (int i = 0; i < count; i++) {
        struct coroutine *other = &sim.coroutines[(start + i) % count];
        if (other->state == WAITING && other->waits_on == on) {
            other->state = READY;
            other->was_woken = true;
            if (!all) {
                return;
            }
        }
    }
}

void sim_wake_one(const void *on)
{
    wake(on, false);
}

void sim_wake_all(const void *on)
{
    wake(on, true);
}

void sim_sleep(int64_t ms)
{
    sim_wait(NULL, sim.now_ms + ms);
}

void sim_join(int index)
{
    struct coroutine *coroutine = &sim.coroutines[index];
    while (coroutine->state != ENDED) {
        assert(coroutine->state != FREE);
        sim_wait(coroutine, INT64_MAX);
    }
    coroutine->state = FREE;
}

void sim_detach(int index)
{
    struct coroutine *coroutine = &sim.coroutines[index];
    coroutine->is_detached = true;
    if (coroutine->state == ENDED) {
        coroutine->state = FREE;
    }
}

/* ---- processes ---- */

void sim_drop_process(int process)
{
    for (int i = 0; i < sim.coroutine_count; i++) {
        if (sim.coroutines[i].process == process) {
            assert(&sim.coroutines[i] != sim.current);
            sim.coroutines[i].state = FREE;
        }
    }
    sim.frozen_until_ms[process] = 0;
}

void sim_die(void)
{
    assert(sim.current);
    sim.died = sim.current->process;
    switch_away(sim.current, true);
    abort();
}

void sim_freeze(int process, int64_t until_ms)
{
    sim.frozen_until_ms[process] = until_ms;
}

bool sim_is_frozen(int process)
{
    return sim.frozen_until_ms[process] > sim.now_ms;
}

/* ---- the scheduler ---- */

/* When it can go on; INT64_MAX = not by itself. */
static int64_t next_time(const struct coroutine *coroutine)
{
    int64_t at_ms = INT64_MAX;
    if (coroutine->state == READY) {
        at_ms = sim.now_ms;
    } else if (coroutine->state == WAITING) {
        at_ms = coroutine->until_ms;
    }
    return at_ms == INT64_MAX ? at_ms : QR_MAX(at_ms, sim.frozen_until_ms[coroutine->process]);
}

static int find_ready(struct coroutine *ret_ready[static SIM_COROUTINES_MAX])
{
    int count = 0;
    for (int i = 0; i < sim.coroutine_count; i++) {
        if (next_time(&sim.coroutines[i]) <= sim.now_ms) {
            ret_ready[count++] = &sim.coroutines[i];
        }
    }
    return count;
}

static bool jump(void)
{
    int64_t next_ms = INT64_MAX;
    for (int i = 0; i < sim.coroutine_count; i++) {
        const int64_t at_ms = next_time(&sim.coroutines[i]);
        next_ms = QR_MIN(next_ms, at_ms);
    }
    if (next_ms == INT64_MAX) {
        return false;
    }
    sim.now_ms = QR_MAX(sim.now_ms, next_ms);
    return true;
}

bool sim_step(int *ret_died)
{
    struct coroutine *ready[SIM_COROUTINES_MAX];
    int count = find_ready(ready);
    if (count == 0) {
        if (!jump()) {
            return false;
        }
        count = find_ready(ready);
    }
    struct coroutine *next = ready[qr_rand_below(sim_rand(), (uint64_t)count)];
    next->state = READY;
    sim.died = 0;
    switch_to(next);
    *ret_died = sim.died;
    return true;
}

void sim_begin(uint64_t seed)
{
    qr_rand_seeded_init(&sim.rand, seed);
    sim.now_ms = 1000000;
    sim_end();
}

void sim_end(void)
{
    for (int i = 0; i < SIM_PROCESSES_MAX; i++) {
        sim_drop_process(i);
    }
    sim.coroutine_count = 0;
}
