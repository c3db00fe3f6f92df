/* bench/run jobs: what a job costs. Durable accepts by 1, 8 and 64 producers; the full cycle of jobs that do nothing, on an
 * empty table and on one where a million wait; how soon a job starts; what an idle runner takes. With --peers also other job
 * systems, in the same run. */
#include "jobs/cycle.h"
#include "jobs/starts.h"
#include "peers/report.h"
#include "support/postgres.h"

#include <stdio.h>
#include <sys/resource.h>

enum { POSTGRES_CONNECTIONS = 16 };

/* A runner with nothing to do, after it had something. */
static void settle(const char *url)
{
    enum { JOBS = 100 };
    static struct world world;
    static struct starts starts = {.lock = PTHREAD_MUTEX_INITIALIZER};
    world_open(&world, "idle", url, NULL, 0);
    struct qr_runner *runner = start_runner(&world, &starts);
    struct adding adding = {&world, new_spec("nothing"), JOBS};
    qr_err err;
    bench_must(qr_db_write(world.db, QR_DURABLE, add_jobs, &adding, &err), &err);
    wait_completed(runner, JOBS);
}

static double resident_mb_max(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void open_sqlite(struct world *world, const struct bench_options *options, const char *name)
{
    char url[600];
    snprintf(url, sizeof url, "sqlite:%s/%s.db", options->dir, name);
    world_open(world, "sqlite", url, "fault", 0);
}

static void bench_sqlite(struct bench_report *to, const struct bench_options *options, struct cycle_rates *ret_rates)
{
    struct world world, full;
    bench_report_heading(to, "SQLite: accepting");
    open_sqlite(&world, options, "accepts");
    bench_report_goal(to, "sqlite_accepts_64_over_1", bench_accepts(to, &world, options->seconds), true, 20,
                      "64 producers against a single one");
    world_close(&world);

    bench_report_heading(to, "SQLite: the full cycle of jobs that do nothing");
    open_sqlite(&world, options, "cycle");
    ret_rates->relaxed =
        bench_cycle(to, &world, "nothing", "cycle_per_s", "accepted durably, end recorded relaxed", options->seconds);
    ret_rates->durable = bench_cycle(to, &world, "nothing-durably", "cycle_durable_per_s",
                                     "accepted and end recorded durably", options->seconds);
    const double at_once = bench_at_once(to, &world, options->seconds);
    bench_idle_starts(to, &world);
    bench_busy_starts(to, &world, at_once, options->seconds);
    world_close(&world);

    bench_report_heading(to, "SQLite: the same cycle while others wait");
    open_sqlite(&world, options, "empty");
    open_sqlite(&full, options, "full");
    bench_full_table(to, &world, &full, options->seconds);
    world_close(&world);
    world_close(&full);
    bench_report_goal(to, "resident_mb_max", resident_mb_max(), false, 64, "resident memory at its largest, MB");
}

static void bench_postgres(struct bench_report *to, const struct bench_options *options, struct qr_pg *pg,
                           struct cycle_rates *ret_rates)
{
    struct world world;
    bench_report_heading(to, "PostgreSQL on a Unix socket, fsync=on: accepting");
    world_open(&world, "postgresql", qr_pg_url(pg, "bench"), NULL, POSTGRES_CONNECTIONS);
    world_report(to, &world, "accepts_64_over_1", bench_accepts(to, &world, options->seconds), "×",
                 "64 producers on 16 connections against a single one");
    world_close(&world);

    bench_report_heading(to, "PostgreSQL: the full cycle");
    world_open(&world, "postgresql", qr_pg_url(pg, "bench_cycle"), NULL, POSTGRES_CONNECTIONS);
    ret_rates->relaxed =
        bench_cycle(to, &world, "nothing", "cycle_per_s", "accepted durably, end recorded relaxed", options->seconds);
    ret_rates->durable = bench_cycle(to, &world, "nothing-durably", "cycle_durable_per_s",
                                     "accepted and end recorded durably", options->seconds);
    const double at_once = bench_at_once(to, &world, options->seconds);
    bench_idle_starts(to, &world);
    bench_busy_starts(to, &world, at_once, options->seconds);
    world_close(&world);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct bench_report to;
    const struct bench_idle idle = bench_begin(&options, &to, "jobs", settle, argc, argv);
    struct cycle_rates sqlite = {0}, postgres = {0};
    bench_sqlite(&to, &options, &sqlite);
    bench_report_goal(&to, "idle_cpu_percent", idle.cpu_percent, false, 0.1, "CPU of an idle runner over 5 s, %");
    bench_report_number(&to, "idle_resident_mb", idle.resident_mb, "MB", "resident memory of an idle runner");
    struct qr_pg pg = {.fsync = true};
    if (qr_pg_installed()) {
        qr_pg_start(&pg, options.dir);
        bench_postgres(&to, &options, &pg, &postgres);
    } else {
        bench_report_text(&to, "postgresql", "not installed", "PostgreSQL");
    }
    if (options.with_peers) {
        bench_peers(&to, &options, pg.dir[0] ? qr_pg_url(&pg, "peers") : "", sqlite, postgres);
    }
    qr_pg_remove(&pg);
    bench_end(&options, &to);
    return 0;
}
