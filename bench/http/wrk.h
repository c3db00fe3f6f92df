/* wrk, the load generator: connections that each ask again as soon as they are answered. */
#pragma once

#include <stdbool.h>

struct wrk_load {
    unsigned port;
    const char *path;
    const char *bodies; /* a file, a body a line, to be posted in turn; NULL = GET */
    int connections;
    double seconds; /* rounded up to whole ones */
};

struct wrk_figures {
    double requests, requests_per_s, p50_ms, p99_ms;
};

bool wrk_is_there(void);
/* An answer that is none, or an error, ends the benchmark. */
struct wrk_figures wrk_run(const struct wrk_load *load);
