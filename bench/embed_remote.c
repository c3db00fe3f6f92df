/* bench/run embed-remote: embedding by a server elsewhere. How much of what the server can serve is used, what a chunk costs us,
 * whether memory grows with what waits, and what a reindex costs when all vectors are there already. --seconds is about how long the server of a round has to work; --chunks is the size of the base that is
 * reindexed, 100,000 with --large. */
#include "embed_remote/bare.h"
#include "embed_remote/documents.h"
#include "embed_remote/round.h"
#include "support/fault_vfs.h"
#include "workflow/place.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 3,
    BACKLOG_CHUNKS = 2000,
    BACKLOG_TIMES = 10,
    REINDEX_CHUNKS = 10000,
    REINDEX_CHUNKS_LARGE = 100000,
    REINDEX_INPUTS_A_SECOND = 2000,
    BARE_THREADS = 8,       /* as many requests at a time as we send */
    CHUNKS_A_SECOND = 2000, /* about as many as a second of --seconds is worth */
};

static const struct server {
    const char *key, *label;
    struct server_limits limits;
} servers[] = {
    {"processor", "works on 1,000 inputs a second, one after the other", {.inputs_a_second = 1000}},
    {"latency", "takes 200 ms a request and 8 requests at a time", {.latency_ms = 200, .in_flight_max = 8}},
    {"minute", "takes 1,200 requests a minute", {.requests_a_minute = 1200}},
};

static const struct kind {
    const char *key, *label;
    void (*make)(const char *dir, int chunks, unsigned seed);
} kinds[] = {
    {"small", "documents of one chunk", documents_make_small},
    {"large", "documents of 500 chunks", documents_make_large},
    {"medium", "documents of ten chunks", documents_make_medium}, /* only for what a chunk costs */
};
enum { THROUGHPUT_KINDS = 2 };

/* A data folder with nothing to do. */
static void settle(const char *url)
{
    static struct place place;
    place_open(&place, url + strlen("sqlite:"), true);
}

static const char *keyed(char buffer[static 96], const char *one, const char *two, const char *three)
{
    snprintf(buffer, 96, "%s_%s_%s", one, two, three);
    return buffer;
}

/* ---- throughput ---- */

struct measured {
    double can;                       /* inputs a second */
    double used, used_whole, refused; /* by one thread that runs jobs: parts of `can` */
    double used_own;                  /* by as many as there are otherwise */
    double inputs_a_request;
};

/* By its limits or, where that is less, what it gives to a client that does nothing else. */
static double measure_capacity(const struct bench_options *options, const struct server_limits *limits)
{
    const double declared = server_capacity(limits, BARE_INPUTS);
    const double bare = limits->requests_a_minute ? declared : bare_rate(limits, BARE_THREADS, 2 * options->seconds);
    return QR_MIN(declared, bare);
}

static void report_server(struct bench_report *to, const struct kind *kind, const struct server *server,
                          const struct measured *measured)
{
    char key[96], label[128];
    snprintf(label, sizeof label, "A server that %s", server->label);
    bench_report_number(to, keyed(key, kind->key, server->key, "can"), measured->can, "inputs/s", label);
    bench_report_goal(to, keyed(key, kind->key, server->key, "used"), measured->used, true, 0.95,
                      "    of that by one thread, in the steady state");
    bench_report_number(to, keyed(key, kind->key, server->key, "used_whole"), measured->used_whole, "",
                        "    from the first job to the last, with its beginning");
    bench_report_number(to, keyed(key, kind->key, server->key, "used_own"), measured->used_own, "",
                        "    by as many threads as there are");
    bench_report_number(to, keyed(key, kind->key, server->key, "inputs_a_request"), measured->inputs_a_request, "",
                        "    inputs in a request, of 32 at most");
    bench_report_number(to, keyed(key, kind->key, server->key, "refused"), measured->refused, "",
                        "    requests refused");
}

/* What else runs on the machine changes: the client and a round take turns, each is compared with the one before it, and the
 * median counts. */
static struct measured measure(const struct bench_options *options, struct round_request *request)
{
    struct measured measured = {0};
    double can[ROUNDS], used[ROUNDS], used_whole[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        can[i] = measure_capacity(options, request->limits);
        request->threads = 1;
        const struct round_figures one = round_run(request, 1);
        used[i] = one.steady_a_second / can[i];
        used_whole[i] = one.whole_a_second / can[i];
        measured.inputs_a_request = one.inputs / one.requests;
        measured.refused += one.refused;
    }
    request->threads = 0;
    const struct round_figures own = round_run(request, 1);
    measured.used_own = own.steady_a_second / can[ROUNDS - 1];
    measured.refused += own.refused;
    measured.can = bench_median(can, ROUNDS);
    measured.used = bench_median(used, ROUNDS);
    measured.used_whole = bench_median(used_whole, ROUNDS);
    return measured;
}

static void bench_kind(struct bench_report *to, const struct bench_options *options, const struct kind *kind)
{
    char dir[512], heading[128];
    struct round_request request = {.options = options, .folder = dir};
    snprintf(dir, sizeof dir, "%s/%s", options->dir, kind->key);
    snprintf(heading, sizeof heading, "Generated %s", kind->label);
    kind->make(dir, (int)(options->seconds * CHUNKS_A_SECOND), 1);
    bench_report_heading(to, heading);
    for (size_t i = 0; i < QR_COUNT(servers); i++) {
        request.limits = &servers[i].limits;
        const struct measured measured = measure(options, &request);
        report_server(to, kind, &servers[i], &measured);
    }
    bench_remove(dir);
}

/* ---- the CPU ---- */

struct cost {
    double whole_us;   /* of a chunk, beyond that of a base without a model */
    double threads_us; /* of the threads that embed alone */
};

/* In turns with the same folder in a base without a model: the machine is about as busy for both. */
static struct cost measure_cost(const struct bench_options *options, const char *folder)
{
    static const struct server_limits fast = {0};
    double whole_us[ROUNDS], threads_us[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct round_request request = {.options = options, .folder = folder, .threads = 1};
        const struct round_figures none = round_run(&request, 1);
        request.limits = &fast;
        const struct round_figures figures = round_run(&request, 1);
        whole_us[i] = (figures.cpu_s - none.cpu_s) * 1e6 / figures.inputs;
        threads_us[i] = figures.embed_cpu_s * 1e6 / figures.inputs;
    }
    return (struct cost){bench_median(whole_us, ROUNDS), bench_median(threads_us, ROUNDS)};
}

static void bench_cost(struct bench_report *to, const struct bench_options *options)
{
    char dir[512], key[96], label[128];
    bench_report_heading(to, "Our CPU for a chunk, beyond that of a base without a model");
    for (size_t i = 0; i < QR_COUNT(kinds); i++) {
        snprintf(dir, sizeof dir, "%s/%s", options->dir, kinds[i].key);
        kinds[i].make(dir, (int)(options->seconds * CHUNKS_A_SECOND), 1);
        const struct cost cost = measure_cost(options, dir);
        bench_remove(dir);
        snprintf(label, sizeof label, "%s, with their jobs, µs", kinds[i].label);
        bench_report_goal(to, keyed(key, kinds[i].key, "cpu", "us"), cost.whole_us, false, 50, label);
        bench_report_number(to, keyed(key, kinds[i].key, "threads_cpu", "us"), cost.threads_us, "µs",
                            "    of that, in the threads that embed");
    }
}

/* ---- memory ---- */

static double measure_peak_mb(const struct bench_options *options, int chunks)
{
    static const struct server_limits fast = {0};
    char dir[512];
    const struct round_request request = {.options = options, .folder = dir, .limits = &fast};
    snprintf(dir, sizeof dir, "%s/backlog", options->dir);
    documents_make_small(dir, chunks, 2);
    const struct round_figures figures = round_run(&request, 1);
    bench_remove(dir);
    return figures.peak_mb;
}

static void bench_memory(struct bench_report *to, const struct bench_options *options)
{
    const double one_mb = measure_peak_mb(options, BACKLOG_CHUNKS);
    const double many_mb = measure_peak_mb(options, BACKLOG_CHUNKS * BACKLOG_TIMES);
    bench_report_heading(to, "Memory, by how much waits to be embedded");
    bench_report_number(to, "peak_mb", one_mb, "MB", "the most, with 2,000 chunks waiting");
    bench_report_number(to, "peak_10x_mb", many_mb, "MB", "    with 20,000");
    bench_report_goal(to, "peak_growth", many_mb / one_mb, false, 1.25, "    so many times as much");
}

/* ---- reindex ---- */

static void bench_reindex(struct bench_report *to, const struct bench_options *options)
{
    static const struct server_limits limits = {.inputs_a_second = REINDEX_INPUTS_A_SECOND};
    char dir[512];
    const int chunks = options->chunks ? options->chunks : options->large ? REINDEX_CHUNKS_LARGE : REINDEX_CHUNKS;
    const struct round_request request = {.options = options, .folder = dir, .limits = &limits, .with_reindex = true};
    snprintf(dir, sizeof dir, "%s/corpus", options->dir);
    documents_make_medium(dir, chunks, 3);
    const struct round_figures figures = round_run(&request, 1);
    bench_remove(dir);
    bench_report_heading(to, "Reindex of a base in which nothing has changed");
    bench_report_number(to, "reindex_chunks", figures.inputs, "", "chunks, ten a document");
    bench_report_number(to, "reindex_server", (double)limits.inputs_a_second, "inputs/s", "the server can do");
    bench_report_number(to, "reindex_first_s", figures.first_s, "s", "the first time");
    bench_report_number(to, "reindex_s", figures.reindex_s, "s", "again");
    bench_report_goal(to, "reindex_calls", figures.reindex_calls, false, 0, "    calls of the server");
    bench_report_goal(to, "reindex_times", figures.first_s / figures.reindex_s, true, 20, "    so many times as fast");
    bench_report_number(to, "reindex_even", figures.inputs / figures.reindex_s / 20, "inputs/s",
                        "    20 times as fast where the server does no more than");
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct bench_report to;
    bench_begin(&options, &to, "embed-remote", settle, argc, argv);
    sqlite3_vfs_register(sqlite3_vfs_find("fault"), 1); /* every database from here on is on a disk as slow as ours */
    setenv("no_proxy", "127.0.0.1", 1);
    for (size_t i = 0; i < THROUGHPUT_KINDS; i++) {
        bench_kind(&to, &options, &kinds[i]);
    }
    bench_cost(&to, &options);
    bench_memory(&to, &options);
    bench_reindex(&to, &options);
    bench_end(&options, &to);
    return 0;
}
