/* What the benchmarks share: times, quantiles, what the process costs, and a report as a table or as JSON. */
#pragma once

#include "base/compiler.h"

#include <jansson.h>

/* ---- times ---- */

int64_t bench_now_us(void);

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

/* ---- the process ---- */

double bench_resident_mb(void);
/* The part of one core that this process used while the caller slept that long. */
double bench_idle_cpu_percent(double seconds);

/* What an append of 4 KB and its fdatasync cost in this folder. */
void bench_fdatasync(const char *dir, struct bench_times *times);

/* ---- the report ---- */

struct bench_report {
    json_t *root;
    bool as_json;
};
void bench_report_start(struct bench_report *report, const char *name, bool as_json);
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
void bench_report_finish(struct bench_report *report);

/* ---- the command line: [--json] [--seconds N] [--dir DIR] [--peers] ---- */

struct bench_options {
    bool as_json;
    bool with_peers; /* measure other systems too, where there are any */
    double seconds;  /* a measurement lasts */
    char dir[256];   /* for files: an empty folder that is removed at the end */
};
void bench_options_parse(struct bench_options *options, int argc, char **argv);
void bench_options_clean(struct bench_options *options);
