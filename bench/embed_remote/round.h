/* One round: a folder becomes a base with vectors, in a process of its own. First everything is read and split while the queue
 * `embed` is paused: what is measured begins with all chunks waiting, and shares the machine with nothing else of ours. */
#pragma once

#include "embed_remote/server.h"
#include "support.h"

struct round_request {
    const struct bench_options *options;
    const char *folder;
    const struct server_limits *limits; /* NULL = the base embeds nothing */
    int threads;                        /* that run jobs of the queue `embed`; 0 = as many as there are otherwise */
    bool with_reindex;
};

struct round_figures {
    double whole_s;     /* from the moment when the queue goes on until all is found */
    double cpu_s;       /* of our process, from its opening until then, without helpers and without the server */
    double embed_cpu_s; /* of that, of the threads that run jobs of the queue `embed` and those that make the calls */
    double peak_mb;     /* the most memory it had */
    /* of the server, while it was asked */
    double inputs, requests, refused;
    double steady_a_second; /* in the steady state */
    double whole_a_second;
    double capacity;
    double first_s; /* from the adding of the folder until all is found */
    double reindex_s, reindex_calls;
};

/* The middle one of several by the time it took, with the median of the CPU and the highest peak. */
struct round_figures round_run(const struct round_request *request, int rounds);
