/* A folder from nothing until it is searchable, against a bare insert of the very chunks that came out of it. */
#pragma once

#include "support.h"

enum { FOLDER_FAILURES_SIZE = 400 };

struct folder_figures {
    int64_t files, files_failed, chunks;
    double bytes;       /* of the files that were completed */
    double whole_s;     /* from opening an empty data folder until everything is at rest and found */
    double whole_cpu_s; /* of this process; what its helpers took is not in it */
    double helper_cpu_s;
    double bare_s;                            /* the bare insert */
    double peak_mb;                           /* of the process and its helpers at one moment */
    double helper_peak_mb;                    /* of the largest of the helpers that read files */
    double longest_main_ms, longest_index_ms; /* transactions */
    char failures[FOLDER_FAILURES_SIZE];      /* "unsupported_type 12, too_large 1" */
};

/* `rounds` times in processes of their own, in new data folders; the middle ones count. */
struct folder_figures folder_measure(const struct bench_options *options, const char *folder, int rounds);
/* Under the heading, with keys that begin with `key`. */
void folder_report(struct bench_report *to, const struct folder_figures *figures, const char *key, const char *heading);
