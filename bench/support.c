#include "support.h"

#include "support/fault_vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOW_SYNC_US = 500,
    IDLE_SECONDS = 5,
};

void bench_must(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        fprintf(stderr, "bench: %s\n", err->msg);
        exit(1);
    }
}

/* ---- times ---- */

int64_t bench_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void bench_sleep_us(int64_t us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static void reserve(struct bench_times *times, size_t more)
{
    while (times->count + more > times->capacity) {
        times->capacity = times->capacity ? times->capacity * 2 : 4096;
        times->us = realloc(times->us, times->capacity * sizeof times->us[0]);
        if (!times->us) {
            abort();
        }
    }
}

void bench_times_add(struct bench_times *times, int64_t us)
{
    reserve(times, 1);
    times->us[times->count++] = us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

void bench_times_join(struct bench_times *all, const struct bench_times *part)
{
    if (part->count) {
        reserve(all, part->count);
        memcpy(all->us + all->count, part->us, part->count * sizeof part->us[0]);
        all->count += part->count;
    }
}

static int compare_us(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

double bench_times_quantile(struct bench_times *times, double p)
{
    if (times->count == 0) {
        return 0;
    }
    qsort(times->us, times->count, sizeof times->us[0], compare_us);
    size_t i = (size_t)(p * (double)times->count);
    i = i < times->count ? i : times->count - 1;
    return times->us[i];
}

void bench_times_free(struct bench_times *times)
{
    free(times->us);
    *times = (struct bench_times){0};
}

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof values[0], compare_values);
    return count ? values[count / 2] : 0;
}

/* ---- the process ---- */

double bench_resident_mb(void)
{
    long pages = 0, ignored = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm) {
        if (fscanf(statm, "%ld %ld", &ignored, &pages) != 2) {
            pages = 0;
        }
        fclose(statm);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static double peak_mb(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)usage.ru_maxrss / 1024;
}

double bench_peak_mb(void)
{
    return peak_mb(RUSAGE_SELF);
}

double bench_children_peak_mb(void)
{
    return peak_mb(RUSAGE_CHILDREN);
}

static double cpu_seconds_of(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double bench_cpu_seconds(void)
{
    return cpu_seconds_of(RUSAGE_SELF);
}

double bench_children_cpu_seconds(void)
{
    return cpu_seconds_of(RUSAGE_CHILDREN);
}

/* The part of one core that this process used while the caller slept that long. */
static double idle_cpu_percent(double seconds)
{
    const double cpu_before = bench_cpu_seconds();
    const int64_t before_us = bench_now_us();
    bench_sleep_us((int64_t)(seconds * 1e6));
    return (bench_cpu_seconds() - cpu_before) / ((double)(bench_now_us() - before_us) / 1e6) * 100;
}

void bench_apart(void (*fn)(const void *arg, void *ret), const void *arg, void *ret, size_t size)
{
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("bench: mmap");
        exit(1);
    }
    fflush(stdout); /* else the child would print it again */
    const pid_t child = fork();
    if (child == 0) {
        fn(arg, shared);
        _exit(0);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "bench: a measurement has died\n");
        exit(1);
    }
    memcpy(ret, shared, size);
    munmap(shared, size);
}

struct idle_request {
    void (*settle)(const char *url);
    const char *url;
    double seconds;
};

static void measure_idle(const void *arg, void *ret)
{
    const struct idle_request *request = arg;
    struct bench_idle *idle = ret;
    request->settle(request->url);
    idle->resident_mb = bench_resident_mb();
    idle->cpu_percent = idle_cpu_percent(request->seconds);
}

/* ---- the disk ---- */

/* What an append of 4 KB and its fdatasync cost in this folder. */
static void time_fdatasync(const char *dir, struct bench_times *times)
{
    enum { ROUNDS = 300 };
    char path[512];
    snprintf(path, sizeof path, "%s/fdatasync", dir);
    const int fd = open(path, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    static const char block[4096] = {1};
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t before = bench_now_us();
        if (write(fd, block, sizeof block) != sizeof block || fdatasync(fd) != 0) {
            perror(path);
            exit(1);
        }
        bench_times_add(times, bench_now_us() - before);
    }
    close(fd);
    unlink(path);
}

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

static void measure_disk(struct bench_report *report, const char *dir)
{
    bench_report_heading(report, "The disk");
    struct bench_times syncs = {0};
    time_fdatasync(dir, &syncs);
    const double p50_us = bench_times_quantile(&syncs, 0.5);
    bench_report_number(report, "fdatasync_p50_ms", p50_us / 1e3, "ms", "fdatasync of a 4 KB append, p50");
    bench_report_number(report, "fdatasync_p99_ms", bench_times_quantile(&syncs, 0.99) / 1e3, "ms", "    p99");
    bench_times_free(&syncs);
    const int64_t delay_us = p50_us < SLOW_SYNC_US ? SLOW_SYNC_US : 0;
    bench_report_number(report, "sync_latency_added_ms", (double)delay_us / 1e3, "ms",
                        "latency added to each sync, of all systems");
    slow_down(delay_us);
}

/* ---- the report ---- */

static void start_report(struct bench_report *report, const char *name, bool as_json)
{
    *report = (struct bench_report){json_object(), as_json};
    json_object_set_new(report->root, "benchmark", json_string(name));
    json_object_set_new(report->root, "goals", json_object());
}

void bench_report_heading(struct bench_report *report, const char *heading)
{
    if (!report->as_json) {
        printf("\n%s\n", heading);
    }
}

void bench_report_number(struct bench_report *report, const char *key, double value, const char *unit,
                         const char *label)
{
    json_object_set_new(report->root, key, json_real(value));
    if (!report->as_json) {
        printf("  %-58s %12.*f %s\n", label, value < 10 ? 3 : value < 1000 ? 1 : 0, value, unit);
        fflush(stdout);
    }
}

void bench_report_text(struct bench_report *report, const char *key, const char *value, const char *label)
{
    json_object_set_new(report->root, key, json_string(value));
    if (!report->as_json) {
        printf("  %-58s %s\n", label, value);
    }
}

void bench_report_series(struct bench_report *report, const char *key, const double *values, size_t count,
                         const char *unit, const char *label)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    enum { BARS_MAX = 60 };
    json_t *array = json_array();
    double highest = 0;
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_real(values[i]));
        highest = values[i] > highest ? values[i] : highest;
    }
    json_object_set_new(report->root, key, array);
    if (report->as_json || count == 0) {
        return;
    }
    printf("  %-58s highest %.1f %s\n    ", label, highest, unit);
    for (size_t i = 0; i < BARS_MAX && i < count; i++) {
        const double value = values[count <= BARS_MAX ? i : i * count / BARS_MAX];
        printf("%s", bars[highest > 0 ? (size_t)(value / highest * 7.0) : 0]);
    }
    printf("\n");
}

void bench_report_goal(struct bench_report *report, const char *key, double value, bool at_least, double bound,
                       const char *label)
{
    const bool met = at_least ? value >= bound : value <= bound;
    json_t *goal =
        json_pack("{s:f, s:s, s:f, s:b}", "value", value, "wanted", at_least ? ">=" : "<=", "bound", bound, "met", met);
    json_object_set_new(json_object_get(report->root, "goals"), key, goal);
    if (!report->as_json) {
        printf("  %-58s %12.3f   wanted %s %g: %s\n", label, value, at_least ? "≥" : "≤", bound,
               met ? "met" : "MISSED");
        fflush(stdout);
    }
}

static void finish_report(struct bench_report *report)
{
    if (report->as_json) {
        json_dumpf(report->root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        printf("\n");
    }
    json_decref(report->root);
}

/* ---- the command line ---- */

static void usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--json] [--seconds N] [--files N] [--chunks N] [--megabytes N] [--dir DIR] [--source DIR] "
            "[--large] [--peers]\n",
            program);
    exit(2);
}

static void parse_options(struct bench_options *options, int argc, char **argv)
{
    *options = (struct bench_options){.seconds = 2};
    const char *parent = getenv("TMPDIR");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            options->as_json = true;
        } else if (strcmp(argv[i], "--peers") == 0) {
            options->with_peers = true;
        } else if (strcmp(argv[i], "--large") == 0) {
            options->large = true;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            options->seconds = atof(argv[++i]);
        } else if (strcmp(argv[i], "--files") == 0 && i + 1 < argc) {
            options->files = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--chunks") == 0 && i + 1 < argc) {
            options->chunks = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--megabytes") == 0 && i + 1 < argc) {
            options->megabytes = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc) {
            parent = argv[++i];
        } else if (strcmp(argv[i], "--source") == 0 && i + 1 < argc) {
            options->source = argv[++i];
        } else {
            usage(argv[0]);
        }
    }
    if (options->seconds <= 0 || options->files < 0 || options->chunks < 0 || options->megabytes < 0) {
        usage(argv[0]);
    }
    snprintf(options->dir, sizeof options->dir, "%s/quire-bench-XXXXXX", parent ? parent : "/var/tmp");
    if (!mkdtemp(options->dir)) {
        fprintf(stderr, "%s: %s\n", options->dir, strerror(errno));
        exit(1);
    }
    chmod(options->dir, 0755); /* the database server runs as another user */
}

static int remove_entry(const char *path, const struct stat *st QR_UNUSED, int type QR_UNUSED,
                        struct FTW *ftw QR_UNUSED)
{
    return remove(path);
}

void bench_remove(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- how every benchmark begins, and ends ---- */

struct bench_idle bench_begin(struct bench_options *options, struct bench_report *report, const char *name,
                              void (*settle)(const char *url), int argc, char **argv)
{
    char url[600];
    parse_options(options, argc, argv);
    start_report(report, name, options->as_json);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* as db/sqlite_open.c does where it is the first to use SQLite */
    fault_vfs_register();
    snprintf(url, sizeof url, "sqlite:%s/idle.db", options->dir);
    const struct idle_request request = {settle, url, IDLE_SECONDS};
    struct bench_idle idle;
    bench_apart(measure_idle, &request, &idle, sizeof idle); /* this process is about to grow */
    measure_disk(report, options->dir);
    return idle;
}

void bench_end(struct bench_options *options, struct bench_report *report)
{
    finish_report(report);
    bench_remove(options->dir);
}
