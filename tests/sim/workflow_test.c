/* The simulation of the whole workflow.
 *
 *     SEED=n sim_workflow_test    repeats one run, step by step the same
 *     SIM_TRACE=1 …               and prints what became of items, jobs, bases and runs
 *     SIM_RUNS=n SIM_FIRST=m …    runs n seeds from m on
 *
 * One process at a time: people who ask for everything there is to ask for, a runner with the real handlers, the beat. */
#include "sim/workflow_sim.h"

#include <string.h>
#include <unistd.h>

enum {
    RUNS = 20, /* 20 s with the sanitizers on a machine of its own */
    RUNS_LONG = 10 * RUNS,
    STEPS_MIN = 2000, /* with faults; the rest of a run drains */
    STEPS_MAX = 10000,
    DRAIN_STEPS_MAX = 2000000,
    INDEX_EVERY = 200, /* steps */
};

static void leader(void *arg)
{
    struct process *process = arg;
    people(arg);
    if (!process->is_ending) {
        people_finish(arg);
    }
}

static void start_actors(struct process *process)
{
    sim_detach(sim_spawn(process->number, leader, process));
    sim_detach(sim_spawn(process->number, people, process));
    sim_detach(sim_spawn(process->number, people, process));
}

static void nature(void *arg QR_UNUSED)
{
    while (world.faults) {
        sim_sleep(sim_between(0, 60000));
        if (world.faults) {
            tree_change();
        }
    }
}

/* Somebody removes an index store while no process is there to see it. */
static void lose_index(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    qr_uuid id;
    char text[QR_UUID_TEXT_SIZE], name[80];
    if (!flow_oracle_pick_id("SELECT id FROM base", &id)) {
        return;
    }
    qr_uuid_format(id, text);
    for (size_t i = 0; i < QR_COUNT(suffixes); i++) {
        snprintf(name, sizeof name, "index/%s.db%s", text, suffixes[i]);
        unlink(sim_path(name));
    }
}

static void disturb(void)
{
    struct process *process = &world.processes[1];
    if (!process->is_up || sim_is_frozen(process->number)) {
        return;
    }
    const int64_t what = sim_between(0, 99);
    if (what < 50) {
        world_crash(process);
        if (sim_chance(100)) {
            lose_index();
        }
    } else if (what < 75) {
        world_freeze(process);
    } else {
        world_shut_down(process, sim_chance(500) ? 0 : sim_between(0, 60000));
    }
}

static void step(uint64_t seed, int number)
{
    int died;
    qr_test_set_context("SEED=%llu, step %d", (unsigned long long)seed, number);
    if (!sim_step(&died)) {
        QR_FAIL("nobody can go on");
    }
    totals.steps++;
    if (world.is_dirty) {
        world.is_dirty = false;
        flow_oracle_check();
    }
    if (number % INDEX_EVERY == 0) {
        flow_oracle_check_index(false);
    }
    world_tend(died);
}

static void run(uint64_t seed)
{
    world_begin(seed);
    sim_folder_begin();
    services_begin();
    tree_begin();
    people_begin();
    flow_oracle_begin();
    sim_detach(sim_spawn(0, nature, NULL));
    totals.runs++;
    const int64_t began_ms = sim_now_ms();
    const int steps = (int)sim_between(STEPS_MIN, STEPS_MAX);
    for (int i = 0; i < steps; i++) {
        step(seed, i);
        if (sim_chance(2)) {
            disturb();
        }
    }
    world.faults = false;
    for (int i = steps; !people_have_finished(); i++) {
        if (i > DRAIN_STEPS_MAX) {
            QR_FAIL("I5: the run does not come to an end");
        }
        step(seed, i);
    }
    flow_oracle_check_drained();
    totals.virtual_s += (uint64_t)(sim_now_ms() - began_ms) / 1000;
    flow_oracle_end();
    world_end();
    sim_folder_end();
}

static void print_totals(void)
{
    printf("     %llu runs, %llu steps, %llu commits (%llu broken, %llu answers lost), %llu h of virtual time: %llu "
           "crashes, %llu shutdowns, %llu freezes; %llu requests (%llu refused), %llu items, %llu removed, %llu swaps, "
           "%llu provider calls (%llu failed), %llu stale results, %llu searches\n",
           (unsigned long long)totals.runs, (unsigned long long)totals.steps, (unsigned long long)totals.commits,
           (unsigned long long)totals.failed_commits, (unsigned long long)totals.lost_answers,
           (unsigned long long)totals.virtual_s / 3600, (unsigned long long)totals.crashes,
           (unsigned long long)totals.shutdowns, (unsigned long long)totals.zombies,
           (unsigned long long)flow_totals.requests, (unsigned long long)flow_totals.refused,
           (unsigned long long)flow_totals.items, (unsigned long long)flow_totals.removed,
           (unsigned long long)flow_totals.swaps, (unsigned long long)flow_totals.provider_calls,
           (unsigned long long)flow_totals.provider_failures, (unsigned long long)flow_totals.stale_results,
           (unsigned long long)flow_totals.searches);
}

/* I1 I2 I3 I4 I5 I6 I7 I8 */
QR_TEST_WITH_TIMEOUT(workflow_survives_crashes_faults_and_late_results, 600)
{
    parts_install();
    world.start_actors = start_actors;
    world_prepare(t);
    const char *seed = getenv("SEED"), *runs_text = getenv("SIM_RUNS"), *first = getenv("SIM_FIRST");
    if (seed) {
        run(strtoull(seed, NULL, 10));
    } else {
        const int runs = runs_text ? atoi(runs_text) : getenv("QUIRE_TEST_LONG") ? RUNS_LONG : RUNS;
        const uint64_t start = first ? strtoull(first, NULL, 10) : 1;
        for (int i = 0; i < runs; i++) {
            run(start + (uint64_t)i);
        }
    }
    print_totals();
}
