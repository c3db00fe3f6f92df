/* What the benchmarks share: times, quantiles, what the process and the disk cost, and a report as a table or as JSON. */
#pragma once

#include "base/err.h"

#include <jansson.h>

/* Says what went wrong and ends the benchmark. */
void bench_must(qr_rc rc, const qr_err *err);

/* ---- times ---- */

int64_t bench_now_us(void);
void bench_sleep_us(int64_t us);

/* Durations in microseconds, kept exactly; one a thread, joined at the end. */
struct bench_times {
    uint32_t *us;
    size_t count, capacity;
};
void bench_times_add(struct bench_times *times, int64_t us);
void bench_times_join(struct bench_times *all, const struct bench_times *part);
/* p in 0 … 1; sorts. 0 when empty. */
double bench_times_quantile(struct bench_times *times, double p);
void bench_times_free(struct bench_times *times);
/* The middle one; sorts. 0 when there is none. */
double bench_median(double *values, size_t count);

/* ---- the process ---- */

double bench_resident_mb(void);
/* The most it was resident, and the most that one of the processes was that it has started and seen the end of. */
double bench_peak_mb(void);
double bench_children_peak_mb(void);
/* That all threads of this process have used, and the processes that it has started and seen the end of. */
double bench_cpu_seconds(void);
double bench_children_cpu_seconds(void);
/* Runs `fn` in a process of its own, so that its memory is not this one's. The `size` bytes at `ret` are what it leaves. */
void bench_apart(void (*fn)(const void *arg, void *ret), const void *arg, void *ret, size_t size);
/* Removes a folder with everything in it. */
void bench_remove(const char *path);

/* ---- the report ---- */

struct bench_report {
    json_t *root;
    bool as_json;
};
/* A line of the table: a label and its figure. The key is its name in the JSON object. */
void bench_report_number(struct bench_report *report, const char *key, double value, const char *unit,
                         const char *label);
void bench_report_text(struct bench_report *report, const char *key, const char *value, const char *label);
void bench_report_series(struct bench_report *report, const char *key, const double *values, size_t count,
                         const char *unit, const char *label);
/* A figure that is wanted: at least, or at most, `bound`. Says whether it is met. */
void bench_report_goal(struct bench_report *report, const char *key, double value, bool at_least, double bound,
                       const char *label);
void bench_report_heading(struct bench_report *report, const char *heading);

/* ---- the command line: [--json] [--seconds N] [--files N] [--chunks N] [--dir DIR] [--megabytes N] [--source DIR] [--large] [--peers] ---- */

struct bench_options {
    bool as_json;
    bool with_peers;    /* measure other systems too, where there are any */
    bool large;         /* measure what takes minutes too, where there is something */
    double seconds;     /* a measurement lasts */
    int files;          /* of the largest folder; 0 = the benchmark's own number */
    int chunks;         /* of the largest base; 0 = the benchmark's own number */
    int megabytes;      /* of the largest upload; 0 = the benchmark's own number */
    char dir[256];      /* for files: an empty folder that is removed at the end */
    const char *source; /* a folder to be measured with; NULL = the benchmark's own choice */
};

/* ---- how every benchmark begins, and ends ---- */

/* What an idle process takes. */
struct bench_idle {
    double resident_mb, cpu_percent;
};

/* Reads the command line, begins the report, measures an idle process and the disk. `settle` opens the database at `url` and
 * comes back when there is nothing left to do; it is called in a process of its own.
 *
 * Where the disk is fast, every sync takes longer from here on: of databases opened through the VFS "fault", and of servers
 * that are started. */
struct bench_idle bench_begin(struct bench_options *options, struct bench_report *report, const char *name,
                              void (*settle)(const char *url), int argc, char **argv);
/* Prints what is left of the report, and removes the files. */
void bench_end(struct bench_options *options, struct bench_report *report);
