#include "jobs/world.h"

#include "store/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 4,
    STOP_MS = 10000,
};

void world_open(struct world *world, const char *driver, const char *url, const char *vfs, int connections)
{
    const struct qr_db_options options = {.url = url,
                                          .migrations = qr_schema_migrations,
                                          .migration_count = qr_schema_migration_count,
                                          .vfs = vfs,
                                          .readers_max = connections};
    qr_err err;
    world->driver = driver;
    bench_must(qr_db_open(&world->db, &options, &err), &err);
    qr_uuid_gen_init(&world->ids, qr_clock_system(), qr_rand_system());
}

void world_close(struct world *world)
{
    qr_db_close(world->db);
    qr_uuid_gen_done(&world->ids);
}

void world_report(struct bench_report *to, const struct world *world, const char *key, double value, const char *unit,
                  const char *label)
{
    char full[96];
    snprintf(full, sizeof full, "%s_%s", world->driver, key);
    bench_report_number(to, full, value, unit, label);
}

/* ---- adding ---- */

struct qr_job_spec new_spec(const char *type)
{
    return (struct qr_job_spec){
        .queue = QR_QUEUE_CONVERT, .type = type, .args = QR_STR("{\"item\":\"0123456789abcdef\",\"part\":12345678}")};
}

qr_rc add_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct adding *adding = arg;
    qr_uuid ignored;
    for (int i = 0; i < adding->count; i++) {
        QR_TRY(qr_jobs_add(tx, qr_uuid_next(&adding->world->ids), &adding->spec, &ignored, NULL, err));
    }
    return QR_OK;
}

struct producer producer_for(struct world *world, const char *type, double seconds)
{
    return (struct producer){.adding = {world, new_spec(type), 1},
                             .until_us = bench_now_us() + (int64_t)(seconds * 1e6)};
}

static void *produce(void *arg)
{
    struct producer *producer = arg;
    struct adding *adding = &producer->adding;
    char args[32];
    qr_err err;
    for (int64_t next_us = bench_now_us(), now_us = next_us; now_us < producer->until_us; now_us = bench_now_us()) {
        if (producer->pace_us && now_us < next_us) {
            bench_sleep_us(next_us - now_us);
            now_us = bench_now_us();
        }
        next_us += producer->pace_us;
        if (producer->says_when) {
            snprintf(args, sizeof args, "%lld", (long long)now_us);
            adding->spec.args = qr_str_of(args);
        }
        bench_must(qr_db_write(adding->world->db, QR_DURABLE, add_jobs, adding, &err), &err);
        bench_times_add(&producer->times, bench_now_us() - now_us);
    }
    return NULL;
}

void run_producers(const struct producer *like, int count, struct bench_times *ret_times)
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

/* ---- running ---- */

static void do_nothing(struct qr_job_run *run QR_UNUSED, struct qr_outcome *outcome)
{
    outcome->kind = QR_OUTCOME_COMPLETED;
    outcome->level = QR_RELAXED;
}

static void do_nothing_durably(struct qr_job_run *run QR_UNUSED, struct qr_outcome *outcome)
{
    outcome->kind = QR_OUTCOME_COMPLETED;
    outcome->level = QR_DURABLE;
}

static void note_start(struct qr_job_run *run, struct qr_outcome *outcome)
{
    const int64_t now_us = bench_now_us();
    struct starts *starts = run->arg;
    pthread_mutex_lock(&starts->lock);
    bench_times_add(&starts->times, now_us - strtoll(run->job->args, NULL, 10));
    starts->last_us = now_us;
    pthread_mutex_unlock(&starts->lock);
    outcome->kind = QR_OUTCOME_COMPLETED;
    outcome->level = QR_RELAXED;
    atomic_fetch_add(&starts->count, 1);
}

struct qr_runner *start_runner(struct world *world, struct starts *starts)
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
    bench_must(qr_runner_start(&runner, &options, &err), &err);
    return runner;
}

void stop_runner(struct qr_runner *runner)
{
    if (!qr_runner_stop(runner, STOP_MS)) {
        fprintf(stderr, "bench: the runner did not end\n");
        exit(1);
    }
}

void wait_completed(struct qr_runner *runner, uint64_t count)
{
    struct qr_runner_stats stats;
    for (qr_runner_stats(runner, &stats); stats.completed < count; qr_runner_stats(runner, &stats)) {
        bench_sleep_us(1000);
    }
}
