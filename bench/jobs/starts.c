#include "jobs/starts.h"

#include <stdio.h>

enum { IDLE_STARTS = 300 };

/* *ret_after: how long after the acknowledgement, which waits for the disk, they began. */
static void measure_idle_starts(struct world *world, struct qr_runner *runner, struct starts *starts,
                                struct bench_times *ret_after)
{
    char args[32];
    qr_err err;
    for (int i = 1; i <= IDLE_STARTS; i++) {
        struct adding adding = {world, new_spec("note"), 1};
        snprintf(args, sizeof args, "%lld", (long long)bench_now_us());
        adding.spec.args = qr_str_of(args);
        bench_must(qr_db_write(world->db, QR_DURABLE, add_jobs, &adding, &err), &err);
        const int64_t acknowledged_us = bench_now_us();
        while (atomic_load(&starts->count) < i) {
            bench_sleep_us(100);
        }
        bench_times_add(ret_after, starts->last_us - acknowledged_us);
        wait_completed(runner, (uint64_t)i);
        bench_sleep_us(2000); /* until everything has settled */
    }
}

void bench_idle_starts(struct bench_report *to, struct world *world)
{
    struct starts starts = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct bench_times after = {0};
    struct qr_runner *runner = start_runner(world, &starts);
    measure_idle_starts(world, runner, &starts, &after);
    stop_runner(runner);
    world_report(to, world, "start_p50_ms_idle", bench_times_quantile(&starts.times, 0.5) / 1e3, "ms",
                 "idle: from the call, sync included, to the handler, p50");
    world_report(to, world, "start_p99_ms_idle", bench_times_quantile(&starts.times, 0.99) / 1e3, "ms", "    p99");
    world_report(to, world, "start_after_accept_p50_ms_idle", bench_times_quantile(&after, 0.5) / 1e3, "ms",
                 "idle: from the acknowledgement to the handler, p50");
    char key[64];
    snprintf(key, sizeof key, "%s_start_after_accept_p99_ms_idle", world->driver);
    bench_report_goal(to, key, bench_times_quantile(&after, 0.99) / 1e3, false, 5, "    p99, ms");
    bench_times_free(&after);
    bench_times_free(&starts.times);
}

void bench_busy_starts(struct bench_report *to, struct world *world, double rate, double seconds)
{
    struct starts starts = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct bench_times accepts = {0};
    struct qr_runner *runner = start_runner(world, &starts);
    struct producer producer = producer_for(world, "note", seconds);
    producer.says_when = true;
    producer.pace_us = (int64_t)(1e6 * PRODUCERS_MAX / (rate / 2));
    run_producers(&producer, PRODUCERS_MAX, &accepts);
    wait_completed(runner, accepts.count);
    stop_runner(runner);
    world_report(to, world, "busy_per_s", (double)accepts.count / seconds, "/s",
                 "busy, half the rate above: jobs that came");
    world_report(to, world, "start_p50_ms_busy", bench_times_quantile(&starts.times, 0.5) / 1e3, "ms",
                 "    from the call to the handler, p50");
    world_report(to, world, "start_p99_ms_busy", bench_times_quantile(&starts.times, 0.99) / 1e3, "ms", "    p99");
    bench_times_free(&accepts);
    bench_times_free(&starts.times);
}
