#include "sim/seeds.h"

#include <stdlib.h>

enum { LONG_FACTOR = 10 };

void seeds_run(int runs, void (*run)(uint64_t seed))
{
    const char *seed = getenv("SEED"), *runs_text = getenv("SIM_RUNS"), *first = getenv("SIM_FIRST");
    if (seed) {
        run(strtoull(seed, NULL, 10));
        return;
    }
    const int count = runs_text ? atoi(runs_text) : getenv("QUIRE_TEST_LONG") ? LONG_FACTOR * runs : runs;
    const uint64_t start = first ? strtoull(first, NULL, 10) : 1;
    for (int i = 0; i < count; i++) {
        run(start + (uint64_t)i);
    }
}

void seeds_step(uint64_t seed, int number, void (*check)(void))
{
    int died;
    qr_test_set_context("SEED=%llu, step %d", (unsigned long long)seed, number);
    if (!sim_step(&died)) {
        QR_FAIL("nobody can go on");
    }
    totals.steps++;
    if (world.is_dirty) {
        world.is_dirty = false;
        check();
    }
    world_tend(died);
}

bool seeds_disturb(int kills, int freezes)
{
    struct process *process = &world.processes[sim_between(1, world.process_count)];
    if (!process->is_up || sim_is_frozen(process->number)) {
        return false;
    }
    const int64_t what = sim_between(0, 99);
    if (what < kills) {
        world_crash(process);
    } else if (what < kills + freezes) {
        world_freeze(process);
    } else {
        world_shut_down(process, sim_chance(500) ? 0 : sim_between(0, 60000));
    }
    return what < kills;
}

void seeds_print_totals(void)
{
    printf("     %llu runs, %llu steps, %llu commits (%llu broken, %llu answers lost), %llu h of virtual time: %llu "
           "crashes, %llu shutdowns, %llu freezes, %llu lost wake-ups; ",
           (unsigned long long)totals.runs, (unsigned long long)totals.steps, (unsigned long long)totals.commits,
           (unsigned long long)totals.failed_commits, (unsigned long long)totals.lost_answers,
           (unsigned long long)totals.virtual_s / 3600, (unsigned long long)totals.crashes,
           (unsigned long long)totals.shutdowns, (unsigned long long)totals.zombies,
           (unsigned long long)totals.lost_wakeups);
}
