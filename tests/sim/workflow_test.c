/* The simulation of the whole workflow.
 *
 * How one seed is repeated: sim/seeds.h.
 *
 * One process that owns the folder, or two workers on one database: in each people who ask for everything there is to ask for,
 * a runner with the real handlers, the beat. */
#include "sim/seeds.h"
#include "sim/workflow_sim.h"

#include "base/failpoint.h"

#include <string.h>
#include <unistd.h>

enum {
    RUNS = 15,        /* 20 s with the sanitizers on a machine of its own */
    STEPS_MIN = 2000, /* with faults; the rest of a run drains */
    STEPS_MAX = 10000,
    DRAIN_STEPS_MAX = 2000000,
    INDEX_EVERY = 200, /* steps */
};

static void leader(void *arg)
{
    struct process *process = arg;
    people(arg);
    if (!process->is_ending && process->number == 1) {
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

/* Now and then a job cannot be queued, whoever wants to: a part of a request, of a plan, of recovery. */
static void scarcity(void *arg QR_UNUSED)
{
    char plan[40];
    qr_err err = {0};
    while (world.faults && qr_failpoints_built_in()) {
        sim_sleep(sim_between(0, 60000));
        snprintf(plan, sizeof plan, "jobs.enqueue=error@%d", (int)sim_between(1, 12));
        if (world.faults) {
            QR_CHECK_RC(QR_OK, qr_failpoints_set(plan, &err));
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
    if (seeds_disturb(50, 25) && world.owns_all && sim_chance(100)) {
        lose_index();
    }
}

static void step(uint64_t seed, int number)
{
    seeds_step(seed, number, flow_oracle_check);
    if (number % INDEX_EVERY == 0) {
        flow_oracle_check_index(false);
    }
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
    sim_detach(sim_spawn(0, scarcity, NULL));
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
    qr_failpoints_set(NULL, NULL);
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
    seeds_print_totals();
    printf("%llu requests (%llu refused), %llu items, %llu removed, %llu swaps, %llu kept, %llu provider calls (%llu "
           "failed), "
           "%llu stale results, %llu searches, %llu changes of models (%llu switches)\n",
           (unsigned long long)flow_totals.requests, (unsigned long long)flow_totals.refused,
           (unsigned long long)flow_totals.items, (unsigned long long)flow_totals.removed,
           (unsigned long long)flow_totals.swaps, (unsigned long long)flow_totals.kept,
           (unsigned long long)flow_totals.provider_calls, (unsigned long long)flow_totals.provider_failures,
           (unsigned long long)flow_totals.stale_results, (unsigned long long)flow_totals.searches,
           (unsigned long long)flow_totals.model_changes, (unsigned long long)flow_totals.model_switches);
}

/* I1 I2 I3 I4 I5 I6 I7 I8 I11 */
QR_TEST_WITH_TIMEOUT(workflow_survives_crashes_faults_and_late_results, 600)
{
    parts_install();
    world.start_actors = start_actors;
    world.alone_per_mille = 600;
    world.processes_max = 2;
    world_prepare(t);
    seeds_run(RUNS, run);
    print_totals();
}
