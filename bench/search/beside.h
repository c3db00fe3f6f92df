/* Searching while another folder is being indexed by the same process. */
#pragma once

#include "search/queries.h"

struct beside_round {
    double p50_ms, p99_ms;
};

struct beside {
    struct place *place;
    const char *other;  /* the base that the folder goes into, and out of again after each round */
    const char *folder; /* it should take longer than a round to index */
    double seconds;     /* a round lasts */
    /* Searches the place's base for that long. `id` is of what is being indexed, NULL = nothing is. */
    struct beside_round (*search)(struct beside *beside, const char *id);
    void *arg; /* of `search` */
};

struct beside_figures {
    double idle_p50_ms, idle_p99_ms; /* the middle ones of the rounds */
    double busy_p50_ms, busy_p99_ms;
    double indexed_per_s; /* files, meanwhile */
};

/* Rounds without and with indexing take turns. The place's base may be the same as the other. */
struct beside_figures beside_measure(struct beside *beside);
/* One query after another. */
struct beside_round beside_search(struct beside *beside, const char *id);
/* As many files as are enough for a round, where so many are indexed in a second alone. */
int beside_files(double files_per_s, double seconds);

void beside_report(struct bench_report *to, const struct beside_figures *figures, const char *key, const char *heading);
