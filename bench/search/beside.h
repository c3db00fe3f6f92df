/* Searching while another folder is being indexed in the same process. */
#pragma once

#include "search/queries.h"

struct beside_figures {
    double idle_p50_ms, idle_p99_ms; /* the middle ones of the rounds */
    double busy_p50_ms, busy_p99_ms;
    double indexed_per_s; /* files, meanwhile */
};

/* Rounds without and with indexing take turns; each lasts `seconds`. `folder` goes into the base `other`, and out again
 * after each round. Searched is the place's base, which may be the same. It should take longer than a round. */
struct beside_figures beside_measure(struct place *place, const char *other, const char *folder, double seconds);
