/* bench/run http: the server under load from outside, against what libmicrohttpd and the disk can do alone. The clients are
 * wrk's; --files is the size of the base in files, of ten chunks each, --megabytes that of the upload. */
#include "http/client.h"
#include "http/hello.h"
#include "http/served.h"
#include "http/wrk.h"
#include "ingest/corpus.h"
#include "search/beside.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    CHUNKS_DEFAULT = 10000,
    UPLOAD_MB_DEFAULT = 1024,
    ROUNDS = 5,
    ITEM_ROUNDS = 9,
    UPLOAD_ROUNDS = 3,
    CONNECTIONS = 64,
    SEARCHERS = 4, /* two for each core of a small machine */
    QUERIES = 2000,
    LISTENERS = 1000,
    RESIDENT_MB_MAX = 60,
};

struct bench {
    struct bench_report to;
    struct bench_options options;
    char data_dir[512];
    char queries[512]; /* a file with bodies of searches */
    struct served served;
    struct place place;
    double files_per_s; /* that were indexed */
};

/* A data folder with nothing to do. */
static void settle(const char *url)
{
    static struct place place;
    place_open(&place, url + strlen("sqlite:"), true);
}

/* ---- the base ---- */

static void write_queries(const char *path)
{
    struct query_source source = {.state = 7};
    char body[QUERY_BODY_SIZE];
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    for (int i = 0; i < QUERIES; i++) {
        query_write(body, "text", &source);
        fprintf(file, "%s\n", body);
    }
    fclose(file);
}

static void add_base(struct place *place, const char *name)
{
    json_t *base =
        place_call(place, "POST", "/bases",
                   json_pack("{s:s, s:{s:{s:s}}}", "name", name, "settings", "embedding", "provider", "none"));
    snprintf(place->base, sizeof place->base, "%s", json_string_value(json_object_get(base, "id")));
    json_decref(base);
}

static void fill_base(struct bench *bench)
{
    char folder[512], id[PLACE_ID_SIZE];
    const int files = bench->options.files ? bench->options.files : CHUNKS_DEFAULT / CORPUS_CHUNKS_A_FILE;
    snprintf(folder, sizeof folder, "%s/corpus", bench->options.dir);
    corpus_make(folder, files, 1);
    add_base(&bench->place, "words");
    const int64_t began_us = bench_now_us();
    place_add_folder(&bench->place, folder, false, id);
    place_wait(&bench->place, id);
    bench->files_per_s = files / ((double)(bench_now_us() - began_us) / 1e6);
    bench_report_heading(&bench->to, "The base");
    bench_report_number(&bench->to, "files", files, "", "files of ten chunks, added through the server");
    bench_report_number(&bench->to, "files_per_s", bench->files_per_s, "/s", "    indexed");
}

/* ---- requests a second ---- */

static void find_item(struct place *place, char *ret_path, size_t size)
{
    json_t *items = place_call_base(place, "GET", "/items?type=file&limit=1", NULL);
    const json_t *item = json_array_get(json_object_get(items, "data"), 0);
    snprintf(ret_path, size, "/api/v1/bases/%s/items/%s", place->base, json_string_value(json_object_get(item, "id")));
    json_decref(items);
}

static struct wrk_figures get(const struct bench *bench, unsigned port, const char *path)
{
    return wrk_run(
        &(struct wrk_load){.port = port, .path = path, .connections = CONNECTIONS, .seconds = bench->options.seconds});
}

static double cpu_us_of(pid_t pid)
{
    clockid_t clock;
    struct timespec used = {0};
    if (clock_getcpuclockid(pid, &clock) == 0) {
        clock_gettime(clock, &used);
    }
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

/* The same, and the server's processor time for each: that depends least on what else the machine does. */
static struct wrk_figures get_watched(const struct bench *bench, pid_t pid, unsigned port, const char *path,
                                      double *ret_cpu_us)
{
    const double before_us = cpu_us_of(pid);
    const struct wrk_figures figures = get(bench, port, path);
    *ret_cpu_us = (cpu_us_of(pid) - before_us) / figures.requests;
    return figures;
}

static void report_median(struct bench *bench, const char *key, double values[static ITEM_ROUNDS], const char *unit,
                          const char *label)
{
    bench_report_number(&bench->to, key, bench_median(values, ITEM_ROUNDS), unit, label);
}

/* In turns, so that what else the machine does is the same for both. */
static void bench_item(struct bench *bench)
{
    double hello_per_s[ITEM_ROUNDS], item_per_s[ITEM_ROUNDS], item_p99_ms[ITEM_ROUNDS], ratios[ITEM_ROUNDS];
    double hello_cpu_us[ITEM_ROUNDS], item_cpu_us[ITEM_ROUNDS];
    struct hello hello;
    char path[256];
    find_item(&bench->place, path, sizeof path);
    hello_start(&hello);
    for (int i = 0; i < ITEM_ROUNDS; i++) {
        const struct wrk_figures bare = get_watched(bench, hello.pid, hello.port, "/", &hello_cpu_us[i]);
        const struct wrk_figures ours =
            get_watched(bench, bench->served.pid, bench->served.port, path, &item_cpu_us[i]);
        fprintf(stderr, "bench: hello %.0f/s, item %.0f/s\n", bare.requests_per_s, ours.requests_per_s);
        hello_per_s[i] = bare.requests_per_s;
        item_per_s[i] = ours.requests_per_s;
        item_p99_ms[i] = ours.p99_ms;
        ratios[i] = ours.requests_per_s / bare.requests_per_s;
    }
    hello_stop(&hello);
    bench_report_heading(&bench->to, "GET of an item, 64 connections");
    report_median(bench, "hello_per_s", hello_per_s, "/s", "libmicrohttpd, \"hello\"");
    report_median(bench, "hello_cpu_us", hello_cpu_us, "µs", "    CPU of the server for each");
    report_median(bench, "item_per_s", item_per_s, "/s", "GET of an item");
    report_median(bench, "item_cpu_us", item_cpu_us, "µs", "    CPU of the server for each");
    report_median(bench, "item_p99_ms", item_p99_ms, "ms", "    p99");
    bench_report_goal(&bench->to, "item_against_hello", bench_median(ratios, ITEM_ROUNDS), true, 0.5,
                      "    against libmicrohttpd");
}

static void bench_others(struct bench *bench)
{
    char list[128];
    snprintf(list, sizeof list, "/api/v1/bases/%s/items", bench->place.base);
    const struct wrk_figures health = get(bench, bench->served.port, "/healthz");
    const struct wrk_figures page = get(bench, bench->served.port, list);
    const struct wrk_figures openapi = get(bench, bench->served.port, "/openapi.json");
    bench_report_heading(&bench->to, "Other requests, 64 connections");
    bench_report_number(&bench->to, "healthz_per_s", health.requests_per_s, "/s", "/healthz");
    bench_report_number(&bench->to, "list_per_s", page.requests_per_s, "/s", "a page of 50 items");
    bench_report_number(&bench->to, "openapi_per_s", openapi.requests_per_s, "/s", "/openapi.json");
}

/* ---- search ---- */

static struct wrk_figures search(const struct bench *bench, int connections)
{
    char path[128];
    snprintf(path, sizeof path, "/api/v1/bases/%s/search", bench->place.base);
    return wrk_run(&(struct wrk_load){.port = bench->served.port,
                                      .path = path,
                                      .bodies = bench->queries,
                                      .connections = connections,
                                      .seconds = bench->options.seconds});
}

static void report_search(struct bench *bench, int connections)
{
    double p50_ms[ROUNDS], p99_ms[ROUNDS], per_s[ROUNDS], ratios[ROUNDS];
    char key[64];
    (void)search(bench, connections);
    for (int i = 0; i < ROUNDS; i++) {
        const struct wrk_figures figures = search(bench, connections);
        p50_ms[i] = figures.p50_ms;
        p99_ms[i] = figures.p99_ms;
        per_s[i] = figures.requests_per_s;
        ratios[i] = figures.p99_ms / figures.p50_ms;
    }
    snprintf(key, sizeof key, "search_%d_per_s", connections);
    bench_report_number(&bench->to, key, bench_median(per_s, ROUNDS), "/s",
                        connections == SEARCHERS ? "4 connections" : "64 connections");
    snprintf(key, sizeof key, "search_%d_p50_ms", connections);
    bench_report_number(&bench->to, key, bench_median(p50_ms, ROUNDS), "ms", "    p50");
    snprintf(key, sizeof key, "search_%d_p99_ms", connections);
    bench_report_number(&bench->to, key, bench_median(p99_ms, ROUNDS), "ms", "    p99");
    snprintf(key, sizeof key, "search_%d_p99_against_p50", connections);
    bench_report_goal(&bench->to, key, bench_median(ratios, ROUNDS), false, 5, "    p99 against p50");
}

static struct beside_round search_beside(struct beside *beside, const char *id QR_UNUSED)
{
    const struct wrk_figures figures = search(beside->arg, SEARCHERS);
    return (struct beside_round){figures.p50_ms, figures.p99_ms};
}

static void bench_beside(struct bench *bench)
{
    char folder[512];
    struct place other = bench->place;
    snprintf(folder, sizeof folder, "%s/other", bench->options.dir);
    corpus_make(folder, beside_files(bench->files_per_s, bench->options.seconds), 2);
    add_base(&other, "other");
    struct beside beside = {.place = &bench->place,
                            .other = other.base,
                            .folder = folder,
                            .seconds = bench->options.seconds,
                            .search = search_beside,
                            .arg = bench};
    const struct beside_figures there = beside_measure(&beside);
    beside_report(&bench->to, &there, "beside_other", "Search while another base is filled, 4 connections");
    beside.other = bench->place.base;
    const struct beside_figures here = beside_measure(&beside);
    beside_report(&bench->to, &here, "beside_same", "Search while a folder is added to the base itself, 4 connections");
}

/* ---- those who listen ---- */

static int listen_all(const struct bench *bench, int *fds)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < LISTENERS; i++) {
        fds[i] = client_listen(bench->served.port, "/api/v1/events");
        if (fds[i] < 0) {
            return i;
        }
    }
    return LISTENERS;
}

static void bench_listeners(struct bench *bench)
{
    int fds[LISTENERS];
    served_start(&bench->served, bench->data_dir);
    const double before_mb = served_resident_mb(&bench->served);
    const int count = listen_all(bench, fds);
    const double with_mb = served_resident_mb(&bench->served);
    bench_report_heading(&bench->to, "1,000 clients that wait for events, a fresh server");
    if (count < LISTENERS) {
        fprintf(stderr, "bench: %d of %d clients were let in\n", count, (int)LISTENERS);
        bench_report_text(&bench->to, "listeners_skipped", "/api/v1/events is not answered with events", "skipped");
    } else {
        bench_report_number(&bench->to, "listeners_before_mb", before_mb, "MB", "resident without them");
        bench_report_goal(&bench->to, "listeners_resident_mb", with_mb, false, RESIDENT_MB_MAX, "    with them, MB");
    }
    for (int i = 0; i < count; i++) {
        close(fds[i]);
    }
    served_stop(&bench->served);
}

/* ---- a large upload ---- */

/* Megabytes a second that can be written into the folder, and be safe there. */
static double disk_mb_per_s(const char *dir, int megabytes, unsigned seed)
{
    static char block[CLIENT_BLOCK_BYTES];
    char path[512];
    client_fill(block, seed);
    snprintf(path, sizeof path, "%s/disk", dir);
    const int64_t began_us = bench_now_us();
    const int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0;
    for (int i = 0; ok && i < megabytes; i++) {
        ok = write(fd, block, sizeof block) == sizeof block;
    }
    if (!ok || fsync(fd) != 0) {
        perror(path);
        exit(1);
    }
    const double took_s = (double)(bench_now_us() - began_us) / 1e6;
    close(fd);
    unlink(path);
    return megabytes / took_s;
}

static double upload_mb_per_s(const struct bench *bench, int megabytes, unsigned seed)
{
    char path[128];
    snprintf(path, sizeof path, "/api/v1/bases/%s/uploads?process=manual", bench->place.base);
    const int64_t began_us = bench_now_us();
    if (client_upload(bench->served.port, path, (size_t)megabytes << 20, seed) >= 300) {
        exit(1);
    }
    return megabytes / ((double)(bench_now_us() - began_us) / 1e6);
}

static void bench_upload(struct bench *bench)
{
    double disk[UPLOAD_ROUNDS], upload[UPLOAD_ROUNDS], ratios[UPLOAD_ROUNDS];
    const int megabytes = bench->options.megabytes ? bench->options.megabytes : UPLOAD_MB_DEFAULT;
    served_start(&bench->served, bench->data_dir);
    for (int i = 0; i < UPLOAD_ROUNDS; i++) {
        disk[i] = disk_mb_per_s(bench->options.dir, megabytes, (unsigned)i);
        upload[i] = upload_mb_per_s(bench, megabytes, (unsigned)i);
        ratios[i] = upload[i] / disk[i];
        fprintf(stderr, "bench: disk %.0f MB/s, upload %.0f MB/s\n", disk[i], upload[i]);
    }
    const double peak_mb = served_peak_mb(&bench->served);
    served_stop(&bench->served);
    bench_report_heading(&bench->to, "A large upload, a fresh server");
    bench_report_number(&bench->to, "upload_mb", megabytes, "MB", "a file of");
    bench_report_number(&bench->to, "disk_mb_per_s", bench_median(disk, UPLOAD_ROUNDS), "MB/s", "written and synced");
    bench_report_number(&bench->to, "upload_mb_per_s", bench_median(upload, UPLOAD_ROUNDS), "MB/s", "uploaded");
    bench_report_goal(&bench->to, "upload_against_disk", bench_median(ratios, UPLOAD_ROUNDS), true, 0.5,
                      "    against the disk");
    bench_report_goal(&bench->to, "upload_peak_mb", peak_mb, false, RESIDENT_MB_MAX, "    resident at most, MB");
}

static void bench_load(struct bench *bench)
{
    served_start(&bench->served, bench->data_dir);
    served_place(&bench->served, &bench->place);
    fill_base(bench);
    bench_item(bench);
    bench_others(bench);
    bench_report_heading(&bench->to, "Search by words");
    report_search(bench, SEARCHERS);
    report_search(bench, CONNECTIONS);
    bench_beside(bench);
    served_stop(&bench->served);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench_begin(&bench.options, &bench.to, "http", settle, argc, argv);
    if (!wrk_is_there()) {
        fprintf(stderr, "bench: wrk is missing: tools/setup bench\n");
        return 1;
    }
    snprintf(bench.data_dir, sizeof bench.data_dir, "%s/http-data", bench.options.dir);
    snprintf(bench.queries, sizeof bench.queries, "%s/queries", bench.options.dir);
    write_queries(bench.queries);
    bench_load(&bench);
    bench_listeners(&bench);
    bench_upload(&bench);
    bench_end(&bench.options, &bench.to);
    return 0;
}
