/* bench/run jobs: what a job costs. Durable accepts by 1, 8 and 64 producers; the full cycle of jobs that do nothing, on an
 * empty table and on one where a million wait; how soon a job starts; what an idle runner takes. With --peers also other job
 * systems, in the same run.
 *
 * A cycle has two phases, for us and for every peer: N jobs are accepted, one call a job, each acknowledged; then a runner
 * is started and ends N jobs. Its rate is N over the time of both. */
#include "job/runner.h"
#include "peers/report.h"
#include "store/schema.h"
#include "support.h"
#include "support/fault_vfs.h"
#include "support/postgres.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOW_SYNC_US = 500,
    PRODUCERS_MAX = 64,
    SLOTS = 4,
    CYCLE_ROUNDS = 3,
    WAITING = 1000000,
    SCHEDULED = 200000,
    FILL_BATCH = 1000,
    IDLE_STARTS = 300,
    STOP_MS = 10000,
    POSTGRES_CONNECTIONS = 16,
};

static void must(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        fprintf(stderr, "bench: %s\n", err->msg);
        exit(1);
    }
}

static void sleep_us(int64_t us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* ---- a database with jobs ---- */

struct world {
    const char *driver; /* begins the keys of the report */
    struct qr_db *db;
    struct qr_uuid_gen ids;
};

static void open_world(struct world *world, const char *driver, const char *url, const char *vfs, int connections)
{
    const struct qr_db_options options = {.url = url,
                                          .migrations = qr_schema_migrations,
                                          .migration_count = qr_schema_migration_count,
                                          .vfs = vfs,
                                          .readers_max = connections};
    qr_err err;
    world->driver = driver;
    must(qr_db_open(&world->db, &options, &err), &err);
    qr_uuid_gen_init(&world->ids, qr_clock_system(), qr_rand_system());
}

static void close_world(struct world *world)
{
    qr_db_close(world->db);
    qr_uuid_gen_done(&world->ids);
}

struct adding {
    struct world *world;
    struct qr_job_spec spec;
    int count; /* in one transaction */
};

static qr_rc add_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct adding *adding = arg;
    qr_uuid ignored;
    for (int i = 0; i < adding->count; i++) {
        QR_TRY(qr_jobs_add(tx, qr_uuid_next(&adding->world->ids), &adding->spec, &ignored, NULL, err));
    }
    return QR_OK;
}

static struct qr_job_spec new_spec(const char *type)
{
    return (struct qr_job_spec){
        .queue = QR_QUEUE_CONVERT, .type = type, .args = QR_STR("{\"item\":\"0123456789abcdef\",\"part\":12345678}")};
}

static void fill(struct world *world, const struct qr_job_spec *spec, int count)
{
    struct adding adding = {.world = world, .spec = *spec, .count = FILL_BATCH};
    qr_err err;
    for (int added = 0; added < count; added += FILL_BATCH) {
        must(qr_db_write(world->db, QR_RELAXED, add_jobs, &adding, &err), &err);
    }
}

/* ---- handlers ---- */

static void do_nothing(struct qr_job_run *run QR_UNUSED, struct qr_outcome *outcome)
{
    outcome->level = QR_RELAXED;
}

static void do_nothing_durably(struct qr_job_run *run QR_UNUSED, struct qr_outcome *outcome)
{
    outcome->level = QR_DURABLE;
}

/* How long after the call that enqueued them jobs began. */
struct starts {
    pthread_mutex_t lock;
    struct bench_times times;
    int64_t last_us; /* when the last one began */
    atomic_llong count;
};

static void note_start(struct qr_job_run *run, struct qr_outcome *outcome)
{
    const int64_t now_us = bench_now_us();
    struct starts *starts = run->arg;
    pthread_mutex_lock(&starts->lock);
    bench_times_add(&starts->times, now_us - strtoll(run->job->args, NULL, 10));
    starts->last_us = now_us;
    pthread_mutex_unlock(&starts->lock);
    outcome->level = QR_RELAXED;
    atomic_fetch_add(&starts->count, 1);
}

static struct qr_runner *start_runner(struct world *world, struct starts *starts)
{
    const struct qr_handler handlers[] = {
        {"nothing", do_nothing, NULL}, {"nothing-durably", do_nothing_durably, NULL}, {"note", note_start, starts}};
    static struct qr_handler kept[QR_COUNT(handlers)]; /* outlive this call; one runner at a time */
    memcpy(kept, handlers, sizeof kept);
    const struct qr_runner_options options = {
        .db = world->db,
        .ids = &world->ids,
        .clock = qr_clock_system(),
        .rand = qr_rand_system(),
        .handlers = kept,
        .handler_count = QR_COUNT(kept),
        .slots = {[QR_QUEUE_CONVERT] = SLOTS, [QR_QUEUE_EMBED] = 1, [QR_QUEUE_DELETE] = 1},
        .name = "bench",
        .owns_all = true,
    };
    struct qr_runner *runner;
    qr_err err;
    must(qr_runner_start(&runner, &options, &err), &err);
    return runner;
}

static void stop_runner(struct qr_runner *runner)
{
    if (!qr_runner_stop(runner, STOP_MS)) {
        fprintf(stderr, "bench: the runner did not end\n");
        exit(1);
    }
}

static void wait_completed(struct qr_runner *runner, uint64_t count)
{
    struct qr_runner_stats stats;
    for (qr_runner_stats(runner, &stats); stats.completed < count; qr_runner_stats(runner, &stats)) {
        sleep_us(1000);
    }
}

/* ---- accepting ---- */

struct producer {
    struct adding adding;
    int64_t until_us;
    int64_t pace_us; /* between two jobs; 0 = as fast as possible */
    bool says_when;  /* the arguments are the time of the call */
    struct bench_times times;
    pthread_t thread;
};

static void *produce(void *arg)
{
    struct producer *producer = arg;
    struct adding *adding = &producer->adding;
    char args[32];
    qr_err err;
    for (int64_t next_us = bench_now_us(), now_us = next_us; now_us < producer->until_us; now_us = bench_now_us()) {
        if (producer->pace_us && now_us < next_us) {
            sleep_us(next_us - now_us);
            now_us = bench_now_us();
        }
        next_us += producer->pace_us;
        if (producer->says_when) {
            snprintf(args, sizeof args, "%lld", (long long)now_us);
            adding->spec.args = qr_str_of(args);
        }
        must(qr_db_write(adding->world->db, QR_DURABLE, add_jobs, adding, &err), &err);
        bench_times_add(&producer->times, bench_now_us() - now_us);
    }
    return NULL;
}

/* Runs `count` producers like the given one, and joins how long each accept took. */
static void run_producers(const struct producer *like, int count, struct bench_times *ret_times)
{
    static struct producer producers[PRODUCERS_MAX];
    for (int i = 0; i < count; i++) {
        producers[i] = *like;
        pthread_create(&producers[i].thread, NULL, produce, &producers[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(producers[i].thread, NULL);
        bench_times_join(ret_times, &producers[i].times);
        bench_times_free(&producers[i].times);
    }
}

static struct producer producer_for(struct world *world, const char *type, double seconds)
{
    return (struct producer){.adding = {world, new_spec(type), 1},
                             .until_us = bench_now_us() + (int64_t)(seconds * 1e6)};
}

static void report(struct bench_report *to, const struct world *world, const char *key, double value, const char *unit,
                   const char *label)
{
    char full[96];
    snprintf(full, sizeof full, "%s_%s", world->driver, key);
    bench_report_number(to, full, value, unit, label);
}

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
    report(to, world, key, rate, "/s", label);
    snprintf(key, sizeof key, "accept_p99_ms_%d", count);
    report(to, world, key, bench_times_quantile(&times, 0.99) / 1e3, "ms", "    p99");
    bench_times_free(&times);
    return rate;
}

static double bench_accepts(struct bench_report *to, struct world *world, double seconds)
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

/* Jobs through the whole cycle a second: the middle one of several rounds. */
static double measure_cycle(struct bench_report *to, struct world *world, const char *type, const char *key,
                            const char *label, double seconds)
{
    struct cycle rounds[CYCLE_ROUNDS];
    for (int i = 0; i < CYCLE_ROUNDS; i++) {
        rounds[i] = run_cycle(world, type, seconds);
    }
    qsort(rounds, CYCLE_ROUNDS, sizeof rounds[0], compare_cycles);
    const struct cycle middle = rounds[CYCLE_ROUNDS / 2];
    char full_key[64];
    report(to, world, key, middle.rate, "/s", label);
    snprintf(full_key, sizeof full_key, "%s_accepts", key);
    report(to, world, full_key, middle.accepts, "/s", "    accepted by 64 producers");
    snprintf(full_key, sizeof full_key, "%s_runs", key);
    report(to, world, full_key, middle.runs, "/s", "    then run");
    return middle.rate;
}

/* Jobs that end a second while 64 producers add more, and until all have ended. */
static double measure_at_once(struct bench_report *to, struct world *world, double seconds)
{
    struct bench_times times = {0};
    struct qr_runner *runner = start_runner(world, NULL);
    const struct producer producer = producer_for(world, "nothing", seconds);
    const int64_t began_us = bench_now_us();
    run_producers(&producer, PRODUCERS_MAX, &times);
    wait_completed(runner, times.count);
    const double rate = (double)times.count / ((double)(bench_now_us() - began_us) / 1e6);
    stop_runner(runner);
    report(to, world, "at_once_per_s", rate, "/s", "accepted and run at the same time");
    bench_times_free(&times);
    return rate;
}

static qr_rc pause_queue(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_queue_set_paused(tx, QR_QUEUE_EMBED, true, err);
}

/* Half of those that wait are behind us in our own line, half in a line that is paused. */
static void fill_table(struct world *world)
{
    qr_err err;
    must(qr_db_write(world->db, QR_DURABLE, pause_queue, NULL, &err), &err);
    struct qr_job_spec spec = new_spec("nothing");
    spec.priority = 1;
    fill(world, &spec, WAITING / 2);
    spec.queue = QR_QUEUE_EMBED;
    fill(world, &spec, WAITING / 2);
    spec.run_at_ms = qr_clock_wall_ms(qr_clock_system()) + (int64_t)24 * 3600 * 1000;
    fill(world, &spec, SCHEDULED);
}

/* ---- how soon a job starts ---- */

/* *ret_after: how long after the acknowledgement, which waits for the disk, they began. */
static void measure_idle_starts(struct world *world, struct starts *starts, struct bench_times *ret_after)
{
    char args[32];
    qr_err err;
    for (int i = 1; i <= IDLE_STARTS; i++) {
        struct adding adding = {world, new_spec("note"), 1};
        snprintf(args, sizeof args, "%lld", (long long)bench_now_us());
        adding.spec.args = qr_str_of(args);
        must(qr_db_write(world->db, QR_DURABLE, add_jobs, &adding, &err), &err);
        const int64_t acknowledged_us = bench_now_us();
        while (atomic_load(&starts->count) < i) {
            sleep_us(100);
        }
        bench_times_add(ret_after, starts->last_us - acknowledged_us);
        sleep_us(2000); /* until everything has settled */
    }
}

static void bench_idle_starts(struct bench_report *to, struct world *world)
{
    struct starts starts = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct bench_times after = {0};
    struct qr_runner *runner = start_runner(world, &starts);
    measure_idle_starts(world, &starts, &after);
    stop_runner(runner);
    report(to, world, "start_p50_ms_idle", bench_times_quantile(&starts.times, 0.5) / 1e3, "ms",
           "idle: from the call, sync included, to the handler, p50");
    report(to, world, "start_p99_ms_idle", bench_times_quantile(&starts.times, 0.99) / 1e3, "ms", "    p99");
    report(to, world, "start_after_accept_p50_ms_idle", bench_times_quantile(&after, 0.5) / 1e3, "ms",
           "idle: from the acknowledgement to the handler, p50");
    char key[64];
    snprintf(key, sizeof key, "%s_start_after_accept_p99_ms_idle", world->driver);
    bench_report_goal(to, key, bench_times_quantile(&after, 0.99) / 1e3, false, 5, "    p99, ms");
    bench_times_free(&after);
    bench_times_free(&starts.times);
}

/* While jobs come at half the rate that is possible; at the full rate it would be the length of the line. */
static void bench_busy_starts(struct bench_report *to, struct world *world, double rate, double seconds)
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
    report(to, world, "busy_per_s", (double)accepts.count / seconds, "/s", "busy, half the rate above: jobs that came");
    report(to, world, "start_p50_ms_busy", bench_times_quantile(&starts.times, 0.5) / 1e3, "ms",
           "    from the call to the handler, p50");
    report(to, world, "start_p99_ms_busy", bench_times_quantile(&starts.times, 0.99) / 1e3, "ms", "    p99");
    bench_times_free(&accepts);
    bench_times_free(&starts.times);
}

/* ---- an idle runner, measured in a process of its own ---- */

struct idle_figures {
    double resident_mb, cpu_percent;
};

static void be_idle(const char *url, double seconds, int answer_fd)
{
    struct world world;
    struct starts starts = {.lock = PTHREAD_MUTEX_INITIALIZER};
    open_world(&world, "idle", url, NULL, 0);
    struct qr_runner *runner = start_runner(&world, &starts);
    struct adding adding = {&world, new_spec("nothing"), 100};
    qr_err err;
    must(qr_db_write(world.db, QR_DURABLE, add_jobs, &adding, &err), &err);
    wait_completed(runner, 100);
    const struct idle_figures figures = {bench_resident_mb(), bench_idle_cpu_percent(seconds)};
    _exit(write(answer_fd, &figures, sizeof figures) == sizeof figures ? 0 : 1);
}

static struct idle_figures measure_idle(const char *url, double seconds)
{
    int fds[2];
    if (pipe(fds) != 0) {
        exit(1);
    }
    const pid_t child = fork();
    if (child == 0) {
        be_idle(url, seconds, fds[1]);
    }
    close(fds[1]);
    struct idle_figures figures = {0};
    if (read(fds[0], &figures, sizeof figures) != sizeof figures) {
        exit(1);
    }
    close(fds[0]);
    waitpid(child, NULL, 0);
    return figures;
}

static double resident_mb_max(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* ---- the two databases ---- */

static void bench_sqlite(struct bench_report *to, const struct bench_options *options, struct cycle_rates *ret_rates)
{
    char url[600];
    struct world world;
    bench_report_heading(to, "SQLite: accepting");
    snprintf(url, sizeof url, "sqlite:%s/accepts.db", options->dir);
    open_world(&world, "sqlite", url, "fault", 0);
    bench_report_goal(to, "sqlite_accepts_64_over_1", bench_accepts(to, &world, options->seconds), true, 20,
                      "64 producers against a single one");
    close_world(&world);

    bench_report_heading(to, "SQLite: the full cycle of jobs that do nothing");
    snprintf(url, sizeof url, "sqlite:%s/cycle.db", options->dir);
    open_world(&world, "sqlite", url, "fault", 0);
    const double empty =
        measure_cycle(to, &world, "nothing", "cycle_per_s", "accepted durably, end recorded relaxed", options->seconds);
    const double durable = measure_cycle(to, &world, "nothing-durably", "cycle_durable_per_s",
                                         "accepted and end recorded durably", options->seconds);
    const double at_once = measure_at_once(to, &world, options->seconds);
    bench_idle_starts(to, &world);
    bench_busy_starts(to, &world, at_once, options->seconds);
    fprintf(stderr, "filling the table with 1,200,000 jobs …\n");
    fill_table(&world);
    const double full = measure_cycle(to, &world, "nothing", "cycle_full_per_s",
                                      "the same with 1,000,000 waiting and 200,000 scheduled", options->seconds);
    bench_report_goal(to, "sqlite_full_table_loss_percent", (1 - full / empty) * 100, false, 25,
                      "    lost against the empty table, %");
    bench_report_goal(to, "resident_mb_max", resident_mb_max(), false, 64, "resident memory at its largest, MB");
    close_world(&world);
    *ret_rates = (struct cycle_rates){.relaxed = empty, .durable = durable};
}

static void bench_postgres(struct bench_report *to, const struct bench_options *options, struct qr_pg *pg,
                           struct cycle_rates *ret_rates)
{
    struct world world;
    bench_report_heading(to, "PostgreSQL on a Unix socket, fsync=on: accepting");
    open_world(&world, "postgresql", qr_pg_url(pg, "bench"), NULL, POSTGRES_CONNECTIONS);
    report(to, &world, "accepts_64_over_1", bench_accepts(to, &world, options->seconds), "×",
           "64 producers on 16 connections against a single one");
    close_world(&world);

    bench_report_heading(to, "PostgreSQL: the full cycle");
    open_world(&world, "postgresql", qr_pg_url(pg, "bench_cycle"), NULL, POSTGRES_CONNECTIONS);
    ret_rates->relaxed =
        measure_cycle(to, &world, "nothing", "cycle_per_s", "accepted durably, end recorded relaxed", options->seconds);
    ret_rates->durable = measure_cycle(to, &world, "nothing-durably", "cycle_durable_per_s",
                                       "accepted and end recorded durably", options->seconds);
    const double at_once = measure_at_once(to, &world, options->seconds);
    bench_idle_starts(to, &world);
    bench_busy_starts(to, &world, at_once, options->seconds);
    close_world(&world);
}

/* Where the disk is fast, every sync takes longer from here on: of ours and of the servers that are started. */
static void slow_down(int64_t delay_us)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)delay_us);
    fault_vfs_set_sync((struct fault_sync){.delay_us = delay_us});
    if (delay_us) {
        setenv("BENCH_SYNC_DELAY_US", text, 1);
        setenv("LD_PRELOAD", BENCH_SLOW_SYNC, 1);
    }
}

static void bench_disk(struct bench_report *to, const struct bench_options *options)
{
    bench_report_heading(to, "The disk");
    struct bench_times syncs = {0};
    bench_fdatasync(options->dir, &syncs);
    const double p50_us = bench_times_quantile(&syncs, 0.5);
    bench_report_number(to, "fdatasync_p50_ms", p50_us / 1e3, "ms", "fdatasync of a 4 KB append, p50");
    bench_report_number(to, "fdatasync_p99_ms", bench_times_quantile(&syncs, 0.99) / 1e3, "ms", "    p99");
    bench_times_free(&syncs);
    const int64_t delay_us = p50_us < SLOW_SYNC_US ? SLOW_SYNC_US : 0;
    bench_report_number(to, "sync_latency_added_ms", (double)delay_us / 1e3, "ms",
                        "latency added to each sync, of all systems");
    slow_down(delay_us);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    bench_options_parse(&options, argc, argv);
    struct bench_report to;
    bench_report_start(&to, "jobs", options.as_json);
    fault_vfs_register();

    /* first, while this process is small and has no threads */
    char url[600];
    snprintf(url, sizeof url, "sqlite:%s/idle.db", options.dir);
    const struct idle_figures idle = measure_idle(url, 5);

    struct cycle_rates sqlite = {0}, postgres = {0};
    bench_disk(&to, &options);
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
    if (pg.dir[0]) {
        qr_pg_remove(&pg);
    }
    bench_report_finish(&to);
    bench_options_clean(&options);
    return 0;
}
