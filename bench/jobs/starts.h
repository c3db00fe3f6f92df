/* How soon a job starts. */
#pragma once

#include "jobs/world.h"

void bench_idle_starts(struct bench_report *to, struct world *world);

/* While jobs come at half of `rate`, which is what is possible; at the full rate it would be the length of the line. */
void bench_busy_starts(struct bench_report *to, struct world *world, double rate, double seconds);
