#include "jobs/cycle.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ROUNDS = 3,
    COMPARED_ROUNDS = 5,
    WAITING = 1000000,
    SCHEDULED = 200000,
    FILL_BATCH = 1000,
};

/* ---- accepting ---- */

/* Acknowledged durable jobs a second. */
static double measure_accepts(struct bench_report *to, struct world *world, int count, double seconds)
{
    struct bench_times times = {0};
    const struct producer producer = producer_for(world, "nothing", seconds);
    const int64_t began_us = bench_now_us();
    run_producers(&producer, count, &times);
    const double rate = (double)times.count / ((double)(bench_now_us() - began_us) / 1e6);
    char key[64], label[96];
    snprintf(key, sizeof key, "accepts_per_s_%d", count);
    snprintf(label, sizeof label, "%d producer%s: jobs accepted, each durable", count, count == 1 ? "" : "s");
    world_report(to, world, key, rate, "/s", label);
    snprintf(key, sizeof key, "accept_p99_ms_%d", count);
    world_report(to, world, key, bench_times_quantile(&times, 0.99) / 1e3, "ms", "    p99");
    bench_times_free(&times);
    return rate;
}

double bench_accepts(struct bench_report *to, struct world *world, double seconds)
{
    const double single = measure_accepts(to, world, 1, seconds);
    measure_accepts(to, world, 8, seconds);
    return measure_accepts(to, world, PRODUCERS_MAX, seconds) / single;
}

/* ---- the full cycle ---- */

struct cycle {
    double rate, accepts, runs; /* a second */
};

static struct cycle run_cycle(struct world *world, const char *type, double seconds)
{
    struct bench_times times = {0};
    const struct producer producer = producer_for(world, type, seconds);
    const int64_t began_us = bench_now_us();
    run_producers(&producer, PRODUCERS_MAX, &times);
    const int64_t accepted_us = bench_now_us();
    struct qr_runner *runner = start_runner(world, NULL);
    wait_completed(runner, times.count);
    const int64_t ended_us = bench_now_us();
    stop_runner(runner);
    const double count_us = (double)times.count * 1e6;
    bench_times_free(&times);
    return (struct cycle){count_us / (double)(ended_us - began_us), count_us / (double)(accepted_us - began_us),
                          count_us / (double)(ended_us - accepted_us)};
}

static int compare_cycles(const void *a, const void *b)
{
    const double x = ((const struct cycle *)a)->rate, y = ((const struct cycle *)b)->rate;
    return (x > y) - (x < y);
}

static struct cycle middle_of(struct cycle *rounds, size_t count)
{
    qsort(rounds, count, sizeof rounds[0], compare_cycles);
    return rounds[count / 2];
}

static void report_cycle(struct bench_report *to, const struct world *world, const char *key, const char *label,
                         const struct cycle *cycle)
{
    char full_key[64];
    world_report(to, world, key, cycle->rate, "/s", label);
    snprintf(full_key, sizeof full_key, "%s_accepts", key);
    world_report(to, world, full_key, cycle->accepts, "/s", "    accepted by 64 producers");
    snprintf(full_key, sizeof full_key, "%s_runs", key);
    world_report(to, world, full_key, cycle->runs, "/s", "    then run");
}

double bench_cycle(struct bench_report *to, struct world *world, const char *type, const char *key, const char *label,
                   double seconds)
{
    struct cycle rounds[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        rounds[i] = run_cycle(world, type, seconds);
    }
    const struct cycle middle = middle_of(rounds, ROUNDS);
    report_cycle(to, world, key, label, &middle);
    return middle.rate;
}

double bench_at_once(struct bench_report *to, struct world *world, double seconds)
{
    struct bench_times times = {0};
    struct qr_runner *runner = start_runner(world, NULL);
    const struct producer producer = producer_for(world, "nothing", seconds);
    const int64_t began_us = bench_now_us();
    run_producers(&producer, PRODUCERS_MAX, &times);
    wait_completed(runner, times.count);
    const double rate = (double)times.count / ((double)(bench_now_us() - began_us) / 1e6);
    stop_runner(runner);
    world_report(to, world, "at_once_per_s", rate, "/s", "accepted and run at the same time");
    bench_times_free(&times);
    return rate;
}

/* ---- a table with a million jobs against an empty one ---- */

static void fill(struct world *world, const struct qr_job_spec *spec, int count)
{
    struct adding adding = {.world = world, .spec = *spec, .count = FILL_BATCH};
    qr_err err;
    for (int added = 0; added < count; added += FILL_BATCH) {
        bench_must(qr_db_write(world->db, QR_RELAXED, add_jobs, &adding, &err), &err);
    }
}

static qr_rc pause_queue(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_queue_set_paused(tx, QR_QUEUE_EMBED, true, err);
}

/* Half of those that wait are behind us in our own line, half in a line that is paused. */
static void fill_table(struct world *world)
{
    qr_err err;
    bench_must(qr_db_write(world->db, QR_DURABLE, pause_queue, NULL, &err), &err);
    struct qr_job_spec spec = new_spec("nothing");
    spec.priority = 1;
    fill(world, &spec, WAITING / 2);
    spec.queue = QR_QUEUE_EMBED;
    fill(world, &spec, WAITING / 2);
    spec.run_at_ms = qr_clock_wall_ms(qr_clock_system()) + (int64_t)24 * 3600 * 1000;
    fill(world, &spec, SCHEDULED);
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Both are warmed up, then they take turns at being first. Compared are the two of a round, which met the same machine; of
 * these ratios the middle one counts. */
void bench_full_table(struct bench_report *to, struct world *empty, struct world *full, double seconds)
{
    struct world *const worlds[] = {empty, full};
    struct cycle rounds[QR_COUNT(worlds)][COMPARED_ROUNDS];
    double ratios[COMPARED_ROUNDS];
    fprintf(stderr, "filling the table with 1,200,000 jobs …\n");
    fill_table(full);
    run_cycle(empty, "nothing", seconds);
    run_cycle(full, "nothing", seconds);
    for (int round = 0; round < COMPARED_ROUNDS; round++) {
        const int first = round % 2;
        rounds[first][round] = run_cycle(worlds[first], "nothing", seconds);
        rounds[!first][round] = run_cycle(worlds[!first], "nothing", seconds);
        ratios[round] = rounds[1][round].rate / rounds[0][round].rate;
    }
    qsort(ratios, COMPARED_ROUNDS, sizeof ratios[0], compare_numbers);
    const struct cycle middle_empty = middle_of(rounds[0], COMPARED_ROUNDS);
    const struct cycle middle_full = middle_of(rounds[1], COMPARED_ROUNDS);
    report_cycle(to, empty, "cycle_empty_per_s", "an empty table, measured in turns with the next", &middle_empty);
    report_cycle(to, full, "cycle_full_per_s", "1,000,000 waiting and 200,000 scheduled", &middle_full);
    char key[64];
    snprintf(key, sizeof key, "%s_full_table_loss_percent", full->driver);
    bench_report_goal(to, key, (1 - ratios[COMPARED_ROUNDS / 2]) * 100, false, 25,
                      "    lost against the empty table, %");
}
