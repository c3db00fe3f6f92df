/* How many jobs are accepted and ended a second.
 *
 * A cycle has two phases, for us and for every peer: N jobs are accepted, one call a job, each acknowledged; then a runner
 * is started and ends N jobs. Its rate is N over the time of both; reported is the middle one of several rounds. */
#pragma once

#include "jobs/world.h"

/* Jobs accepted durably by 1, 8 and 64 producers; gives 64 over 1. */
double bench_accepts(struct bench_report *to, struct world *world, double seconds);

/* Jobs of that type through the whole cycle a second. */
double bench_cycle(struct bench_report *to, struct world *world, const char *type, const char *key, const char *label,
                   double seconds);

/* Jobs that end a second while 64 producers add more, and until all have ended. */
double bench_at_once(struct bench_report *to, struct world *world, double seconds);

/* Fills `full` with jobs that wait, and says what they cost. */
void bench_full_table(struct bench_report *to, struct world *empty, struct world *full, double seconds);
